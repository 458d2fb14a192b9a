//! What keeps a node from starting: one clear message, the right exit code, and nothing left behind.

use std::net::TcpListener;

use crate::support::node::Ground;
use crate::support::redis::RedisServer;

/// Runs `soloist ARGS`, which must fail with `code`; gives what it said.
fn refusal(ground: &Ground, args: &[&str], code: i32) -> String {
    let output = ground.run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty(), "nothing but errors: {:?}", output.stdout);
    assert!(!said.contains("panicked"), "{said}");
    said
}

const JOB: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"60\"]\n";

#[test]
fn every_mistake_in_a_configuration_is_reported_at_once() {
    let jobs = "colour = \"red\"\nlease_ttl = \"600ms\"\n\
        [[job]]\nname = \"outbound\"\ncommand = [\"no-such-command-here\"]\n\
        [[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"1\"]\n\
        [[job]]\nname = \"Inbound\"\ncommand = \"sleep 1\"\ncolor = 1\n";
    let ground = Ground::new("sqlite:soloist.db", jobs);
    for args in [&["check"][..], &["serve"], &[]] {
        let said = refusal(&ground, args, 2);
        for part in [
            "soloist.toml",
            "colour",
            "600ms",
            "no-such-command-here",
            "outbound",
            "Inbound",
            "command",
            "color",
        ] {
            assert!(said.contains(part), "{args:?} does not name {part}:\n{said}");
        }
    }
    assert!(!ground.path("soloist.db").exists(), "nothing was started");
}

#[test]
fn an_unreadable_configuration_is_named() {
    let ground = Ground::new("sqlite:soloist.db", "");
    std::fs::remove_file(ground.path("soloist.toml")).expect("removed");
    assert!(refusal(&ground, &["check"], 2).contains("soloist.toml"));
    std::fs::write(ground.path("soloist.toml"), "store = \"sqlite:x.db\"\nlisten = [[[\n")
        .expect("written");
    let said = refusal(&ground, &["serve"], 2);
    assert!(said.contains("soloist.toml") && said.contains('2'), "the line is named: {said}");
}

#[test]
fn stores_that_cannot_be_are_refused() {
    for url in ["redis+sentinel://h:1", "redis+cluster://h:1/3", "postgres://h/db"] {
        let ground = Ground::new(url, JOB);
        assert!(refusal(&ground, &["serve"], 2).contains("use "), "{url}: says what to use");
    }
}

#[test]
fn an_occupied_port_is_named_with_a_remedy() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOB);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let said = refusal(&ground, &["serve", "--listen", &address], 1);
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
}

#[test]
fn a_store_that_is_down_at_the_start_is_named_without_its_password() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("its address");
    drop(free);
    for url in [
        format!("redis://:sesame@{address}/0"),
        format!("redis+sentinel://:sesame@{address}/jobs?sentinel_password=sesame"),
    ] {
        let ground = Ground::new(&url, JOB);
        let said = refusal(&ground, &["serve"], 1);
        assert!(said.contains(&address.to_string()), "{said}");
        assert!(!said.contains("sesame"), "{said}");
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let redis = RedisServer::start(&[]);
    redis.run::<()>(&["SET", "soloist:schema", "999"]);
    let ground = Ground::new(&redis.url(), JOB);
    let said = refusal(&ground, &["serve"], 1);
    assert!(said.contains("999") && said.contains("newer"), "{said}");
}

#[test]
fn a_redis_that_may_evict_leases_is_refused() {
    let redis = RedisServer::start(&["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]);
    let ground = Ground::new(&redis.url(), JOB);
    assert!(refusal(&ground, &["serve"], 2).contains("noeviction"));
}

#[test]
fn a_second_node_of_one_name_is_refused() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOB);
    let _first = ground.start("node-a");
    let said = refusal(&ground, &["serve", "--node", "node-a"], 1);
    assert!(said.contains("node-a") && said.contains("--node"), "{said}");
}
