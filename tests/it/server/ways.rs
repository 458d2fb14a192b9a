//! A command is carried out by the same handlers at a node and at the store: the same answers, the same refusals; and nobody who comes over
//! a connection is taken for the person at the terminal.

use std::process::Output;

use reqwest::StatusCode;

use super::{Away, accounts};
use crate::support::http::client;
use crate::support::node::{Ground, Node};

/// No node here may run it, so that nothing changes by itself.
const JOBS: &str = r#"
[[job]]
name = "outbound"
command = ["true"]
nodes = ["node-z"]
[[job]]
name = "settle"
command = ["true"]
nodes = ["node-z"]
schedule = "30 2 * * *"
zone = "UTC"
[[alert]]
when = "given_up"
to = ["ops"]
[channel.ops]
kind = "slack"
url = "http://127.0.0.1:9/"
"#;

/// Each is said to a cluster that the ones before have been said to.
const TABLE: &[&[&str]] = &[
    &["status"],
    &["status", "nothing"],
    &["why", "outbound"],
    &["why", "nothing"],
    &["on", "outbound", "--reason", "orders"],
    &["on", "outbound"],
    &["on", "nothing"],
    &["on", "outbound", "--reason", LONG],
    &["hold", "outbound", "--reason", "stock-taking"],
    &["hold", "outbound", "--reason", " "],
    &["on", "outbound"],
    &["status", "outbound", "--json"],
    &["resume", "outbound"],
    &["resume", "outbound"],
    &["move", "outbound"],
    &["move", "outbound", "--to", "node-y"],
    &["drill", "outbound"],
    &["drill", "nothing"],
    &["off", "outbound"],
    &["off", "outbound"],
    &["runs", "outbound"],
    &["runs", "nothing"],
    &["logs", "outbound"],
    &["logs", "nothing", "--json"],
    &["next", "settle", "--count", "2"],
    &["next", "outbound"],
    &["ticks", "settle"],
    &["ticks", "settle", "--outcome", "sunny"],
    &["trigger", "nothing"],
    &["trigger", "outbound", "--param", "day=1"],
    &["trigger", "outbound", "--tick", "outbound@2026-01-01T00:00Z"],
    &["drain", "node-y"],
    &["drain", "node-a", "--reason", "kernel update"],
    &["undrain", "node-a"],
    &["forget", "node-a"],
    &["forget", "node-y"],
    &["lease", "list"],
    &["alert", "mute", "given_up", "--until", "2100-01-01T00:00:00Z", "--reason", "moving"],
    &["alert", "mute", "given_up", "--for", "1ms"],
    &["alert", "mute", "rain", "--for", "1h"],
    &["alert", "list"],
    &["alert", "unmute", "given_up"],
    &["alert", "test", "pigeon"],
    &["user", "list"],
    &["user", "add", "li", "--role", "viewer", "--invite"],
    &["user", "add", "bot", "--role", "collector", "--invite"],
    &["user", "role", "nobody", "viewer"],
    &["user", "role", "li", "operator"],
    &["user", "role", "li", "viewer"],
    &["user", "role", "ada", "viewer"],
    &["user", "passwd", "nobody", "--invite"],
    &["user", "link", "li", "--subject", "s-1"],
    &["user", "link", "li", "--none"],
    &["user", "remove", "nobody"],
    &["user", "remove", "ada"],
    &["user", "remove", "li"],
    &["token", "new", "--user", "nobody"],
    &["token", "new", "--user", "robot", "--put"],
    &["token", "new", "--user", "robot", "--expires", "6y"],
    &["token", "revoke", "nothing"],
    &["session", "list"],
    &["session", "list", "--user", "nobody"],
    &["session", "revoke", "nothing"],
    &["audit", "--who", "nobody"],
    &["audit", "--act", "node.*", "--json"],
    &["source", "set", "pages", "--gap", "250ms", "--cap", "2"],
    &["source", "set", "pages", "--lease", "1ms"],
    &["source", "pause", "pages"],
    &["source", "pause", "nothing"],
    &["source", "block", "pages", "--for", "0s"],
    &["source", "block", "nothing", "--for", "1m"],
    &["source", "list", "--json"],
    &["task", "put", "--source", "pages", "--key", "a", "--payload", "{\"n\":1.50}"],
    &["task", "put", "--source", "pages", "--key", "a"],
    &["task", "put", "--source", "nothing", "--key", "a"],
    &["task", "list"],
    &["task", "show", "00000000000000000000000000000000"],
    &["task", "revive", "00000000000000000000000000000000"],
    &["task", "remove", "00000000000000000000000000000000", "--yes"],
    &["source", "remove", "pages"],
    &["source", "remove", "pages", "--yes"],
    &["source", "remove", "pages", "--yes"],
    &["rotation", "set", "api", "--type", "a", "--type", "b,quota=2/1m"],
    &["rotation", "set", "api", "--type", "a", "--lease", "1ms"],
    &["rotation", "set", "api", "--type", "a", "--type", "a"],
    &["rotation", "list", "api"],
    &["rotation", "list", "nothing"],
    &["rotation", "remove", "api", "--yes"],
    &["rotation", "remove", "api", "--yes"],
];

/// Longer than a reason may be.
const LONG: &str = match std::str::from_utf8(&[b'x'; 501]) {
    Ok(text) => text,
    Err(_) => panic!("ASCII"),
};

/// A cluster of one node, with the accounts of [`accounts`].
fn cluster() -> (Ground, Node) {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    accounts(&ground);
    let node = ground.start("node-a");
    (ground, node)
}

/// The exit code, and what was said on both ways without the numbers, which are instants and ports.
fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(|c: char| c.is_ascii_digit(), "#");
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").replace("##", "#").replace("##", "#").replace("##", "#")
    };
    // A person at the terminal is noted as one.
    let out = text(&output.stdout).replace("cli:ada", "ada").replace("\"terminal\"", "\"#.#.#.#\"");
    (output.status.code(), out.replace("\"person\"", "\"program\""), text(&output.stderr))
}

#[test]
fn a_command_is_answered_and_refused_alike_by_a_node_and_at_the_store() {
    let (by_node, node) = cluster();
    let (at_store, _other) = cluster();
    let away = Away::new(&[&node], &by_node.token("ada"));
    // So that both have as much in their audit.
    drop(at_store.token("ada"));
    for words in TABLE {
        // These name the account that they are about.
        let named = matches!(words[0], "user" | "token" | "session");
        let own = |mut command: std::process::Command| {
            if !named {
                command.env("SOLOIST_USER", "ada");
            }
            command.output().expect("soloist starts")
        };
        let (by_node, at_store) = (own(away.command(words)), own(at_store.command(words)));
        assert_eq!(said(&by_node), said(&at_store), "soloist {words:?}: by a node, at the store");
        assert_ne!(by_node.status.code(), Some(101), "{words:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_sent_makes_its_sender_the_person_at_the_terminal() {
    let (ground, node) = cluster();
    let li = ground.token("li");
    let client = client().build().expect("a client");
    let claims = [
        ("authorization", "Terminal ada"),
        ("authorization", "Bearer"),
        ("authorization", "Bearer terminal"),
        ("authorization", "Bearer cli:root"),
        ("cookie", "soloist=; soloist_session=; person=ada; terminal=1"),
        ("forwarded", "for=terminal;by=ada"),
        ("x-forwarded-for", "terminal"),
        ("x-soloist-person", "ada"),
        ("x-person", "{\"user\":\"ada\",\"role\":null}"),
        ("x-remote-user", "ada"),
        ("from", "cli:root"),
        ("via", "terminal"),
        ("host", "terminal"),
        ("user-agent", "terminal"),
    ];
    // From this very machine, as the terminal is.
    for (name, value) in claims {
        let ask = client.get(format!("{}/api/v1/users", node.url)).header(name, value);
        let status = ask.send().await.expect("an answer").status();
        let shut = [StatusCode::UNAUTHORIZED, StatusCode::MISDIRECTED_REQUEST];
        assert!(shut.contains(&status), "{name}: {value}: {status}");
        if name == "authorization" {
            continue;
        }
        // Who is somebody stays who they are.
        let ask = client.get(format!("{}/api/v1/me", node.url)).header(name, value);
        let me = ask.bearer_auth(&li).send().await.expect("an answer");
        let me: serde_json::Value = me.json().await.expect("JSON");
        assert_eq!((&me["name"], &me["by"]), (&"li".into(), &"token".into()), "{name}: {value}");
    }
}
