//! Exit codes and sentences are as good as at the store; the token is in none of them.

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use super::{Away, ground};

#[test]
fn what_a_node_refuses_has_the_exit_code_that_the_store_would_give() {
    let ground = ground();
    let node = ground.start("node-a");
    let li = Away::new(&[&node], &ground.token("li"));
    for words in [
        &["status", "nothing"][..],
        &["why", "nothing"],
        &["on", "nothing"],
        &["logs", "nothing"],
        &["runs", "nothing"],
        &["source", "pause", "nothing"],
        &["rotation", "list", "nothing"],
        &["task", "show", "00000000000000000000000000000000"],
        &["drain", "node-zzz"],
    ] {
        let said = li.fails(words, 3);
        assert!(said.contains("node-zzz") || said.contains("no") || said.contains("not"), "{said}");
    }
    // Not among those whom an operator may name.
    let said = li.fails(&["on", "outbound", "--user", "ada"], 4);
    assert!(said.contains("only an admin may switch for another user"), "{said}");
    let said = li.fails(&["hold", "outbound", "--reason", "x", "--user", "ada"], 4);
    assert!(said.contains("this is done as li"), "{said}");
    for words in [&["user", "list"][..], &["user", "add", "wang", "--role", "admin", "--invite"]] {
        assert!(li.fails(words, 4).contains("li"), "{words:?}");
    }
    let ada = Away::new(&[&node], &ground.token("ada"));
    assert!(ada.fails(&["on", "outbound", "--user", "nobody"], 3).contains("no account nobody"));
    assert!(ada.fails(&["move", "outbound"], 4).contains("outbound"));
    assert!(ada.fails(&["drill", "outbound"], 4).contains("not running"));
    assert!(ada.fails(&["user", "remove", "ada"], 4).contains("admin"));
    assert!(ada.fails(&["user", "passwd", "nobody", "--invite"], 3).contains("nobody"));
    assert!(ada.fails(&["hold", "outbound", "--reason", " "], 2).contains("reason"));
}

#[test]
fn a_node_that_is_not_there_is_named_with_what_to_check() {
    let said =
        Away::at("http://127.0.0.1:1,http://127.0.0.1:2", "sol_x1y2z3").fails(&["status"], 1);
    for part in ["http://127.0.0.1:1", "http://127.0.0.1:2", "--server", "$SOLOIST_SERVER"] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
}

#[test]
fn a_token_that_is_not_accepted_is_named_by_its_place() {
    let ground = ground();
    let node = ground.start("node-a");
    let away = Away::new(&[&node], "sol_x1y2z3x1y2z3x1y2z3");
    assert!(away.fails(&["status"], 4).contains("the token from $SOLOIST_API_TOKEN"));
    let file = away.directory.path().join("token");
    std::fs::write(&file, format!("{}\n", ground.token("li"))).expect("written");
    let words = ["status", "--token-file", "token"];
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("ours");
    let said = away.fails(&words, 2);
    assert!(said.contains("others may read") && said.contains("chmod 600"), "{said}");
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("ours");
    assert!(away.must(&words).contains("outbound"));
    std::fs::write(&file, "sol_x1y2z3x1y2z3x1y2z3").expect("written");
    assert!(away.fails(&words, 4).contains("the token from token"));
}

#[test]
fn the_next_node_is_asked_when_one_is_away() {
    let ground = ground();
    let node = ground.start("node-a");
    let token = ground.token("li");
    let two = Away::at(&format!("http://127.0.0.1:1,{}", node.url), &token);
    assert!(two.must(&["on", "outbound"]).contains("li switched outbound on"));
    assert!(two.must(&["status"]).contains("outbound"));
}

#[test]
fn a_redirect_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let elsewhere = to.local_addr().expect("an address");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = [0; 4_096];
        let length = stream.read(&mut head).expect("a request");
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).expect("written");
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    let away = Away::at(&format!("http://{address}"), "sol_x1y2z3");
    let said = away.fails(&["status"], 1);
    assert!(said.contains("redirects") && said.contains("not followed"), "{said}");
    let request = answering.join().expect("it answered").to_ascii_lowercase();
    assert!(request.contains("authorization: bearer sol_x1y2z3"), "{request}");
    to.set_nonblocking(true).expect("a listener");
    assert!(to.accept().is_err(), "nobody went there");
}
