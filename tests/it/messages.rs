//! What is said when something is wrong: the cause, in words, and what to do about this cause and no other.

use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};

use crate::support::node::Ground;
use crate::support::redis::RedisServer;

const JOB: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"60\"]\n";

/// What `soloist ARGS` says when it ends with `code`.
fn said(ground: &Ground, args: &[&str], code: i32) -> String {
    let output = ground.run(args);
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    text
}

/// What `soloist status` says of a store that it cannot use.
fn of_store(url: &str, code: i32) -> String {
    said(&Ground::new(url, JOB), &["status"], code)
}

#[test]
fn a_wrong_password_is_to_be_corrected_and_the_server_not_to_be_started() {
    let redis = RedisServer::start(&[]);
    redis.run::<()>(&["CONFIG", "SET", "requirepass", "sesame"]);
    let port = redis.port();
    for url in [format!("redis://:wrong@127.0.0.1:{port}/0"), format!("redis://127.0.0.1:{port}/0")]
    {
        let text = of_store(&url, 1);
        assert!(text.trim_end().ends_with("correct them in the store URL"), "{text}");
        assert!(!text.contains("start it") && !text.contains("wrong@"), "{text}");
    }
}

#[test]
fn a_port_without_tls_that_is_asked_for_it_is_named_as_such() {
    let redis = RedisServer::start(&[]);
    let text = of_store(&format!("rediss://127.0.0.1:{}/0", redis.port()), 1);
    assert!(text.contains("TLS") && text.contains("redis://"), "{text}");
}

/// Redis does so in protected mode: it says why and hangs up, whatever it is asked.
#[test]
fn a_server_that_hangs_up_is_quoted() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let why = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user.\r\n";
            stream.write_all(why.as_bytes()).ok();
            stream.shutdown(Shutdown::Both).ok();
        }
    });
    let text = of_store(&format!("redis://{address}/0"), 1);
    assert!(text.contains("protected mode") && text.contains("requirepass"), "{text}");
}

#[test]
fn a_server_without_a_free_connection_says_so() {
    let redis = RedisServer::start(&[]);
    let held: Vec<TcpStream> = (0..2)
        .map(|_| TcpStream::connect(("127.0.0.1", redis.port())).expect("it is taken"))
        .collect();
    redis.run::<()>(&["CONFIG", "SET", "maxclients", "2"]);
    let text = of_store(&redis.url(), 1);
    assert!(text.contains("maxclients"), "{text}");
    drop(held);
}

#[test]
fn what_is_no_redis_at_all_is_named_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok();
            // Kept open until the other side has read it.
            std::io::copy(&mut stream, &mut std::io::sink()).ok();
        }
    });
    let text = of_store(&format!("redis://{address}/0"), 1);
    assert!(text.contains("does not answer as Redis does"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_database_of_another_program_is_named_as_such_and_left_as_it_was() {
    let redis = RedisServer::start(&[]);
    for words in [&["SET", "soloist:schema", "theirs"][..], &["RPUSH", "soloist:schema", "theirs"]]
    {
        redis.run::<()>(&["DEL", "soloist:schema"]);
        redis.run::<()>(words);
        let text = of_store(&redis.url(), 2);
        assert!(text.contains("another program") && text.contains("`prefix`"), "{text}");
    }
    let text = of_store(&format!("redis://127.0.0.1:{}/999", redis.port()), 2);
    assert!(text.contains("`databases`"), "{text}");

    let ground = Ground::new("sqlite:theirs.db", JOB);
    for version in [-3, 0, 7] {
        let file = ground.path("theirs.db");
        std::fs::remove_file(&file).ok();
        let db = rusqlite::Connection::open(&file).expect("a database");
        db.execute_batch(&format!("CREATE TABLE theirs (x); PRAGMA user_version = {version}"))
            .expect("theirs");
        drop(db);
        let before = std::fs::read(&file).expect("readable");
        let text = said(&ground, &["status"], 2);
        assert!(text.contains("is a database of another program"), "{text}");
        assert_eq!(std::fs::read(&file).expect("readable"), before, "nothing was written to it");
    }
}

#[test]
fn an_address_that_is_not_of_this_machine_is_named_as_such() {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    // RFC 5737: of nobody's machine.
    let text = said(&ground, &["serve", "--listen", "192.0.2.7:0"], 1);
    assert!(text.contains("no such address") && !text.contains("stop"), "{text}");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let text = said(&ground, &["serve", "--listen", &address], 1);
    assert!(text.contains("another program uses it"), "{text}");
}

#[test]
fn roles_have_their_article() {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    ground.add_user("root", "admin");
    for (name, role, named) in
        [("li", "operator", "li is an operator"), ("vera", "viewer", "vera is a viewer")]
    {
        ground.add_user(name, role);
        let text = said(&ground, &["link", "--user", name], 4);
        assert!(text.contains(named), "{text}");
    }
}

#[test]
fn a_time_that_is_left_is_said_in_seconds() {
    let redis = RedisServer::start(&[]);
    redis.run::<()>(&["FLUSHALL"]);
    let ground = Ground::new(&redis.url(), "");
    let text =
        said(&ground, &["run", "--name", "x", "--ttl", "10min", "--wait", "0", "--", "true"], 75);
    let (_, left) = text.split_once("for another ").expect(&text);
    assert!(left.starts_with("9m") || left.starts_with("10m"), "{text}");
    assert!(!left.split(',').next().expect("a part").contains("ms"), "{text}");
}
