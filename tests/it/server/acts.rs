//! What is done by a node is done by the token's account, and said as at the store.

use std::io::Write as _;
use std::process::Stdio;

use super::{Away, ground};
use crate::support::wait::until;

#[test]
fn a_job_is_switched_held_and_resumed() {
    let ground = ground();
    let node = ground.start("node-a");
    let away = Away::new(&[&node], &ground.token("li"));
    assert_eq!(away.must(&["on", "outbound", "--reason", "orders"]), "li switched outbound on.\n");
    assert_eq!(away.must(&["on", "outbound"]), "li had outbound on already.\n");
    until("it runs", || away.must(&["status"]).contains("node-a").then_some(()));
    let held = away.must(&["hold", "outbound", "--reason", "stock-taking"]);
    assert_eq!(held, "outbound is held by li: stock-taking\n");
    assert_eq!(away.must(&["resume", "outbound"]), "outbound is no longer held.\n");
    let off = away.must(&["off", "outbound"]);
    assert_eq!(off, "li switched outbound off. li was the last: this stops it.\n");
    let audit = ground.must(&["audit", "--who", "li", "--json"]);
    for act in ["participation.on", "job.hold", "job.resume", "participation.off"] {
        assert!(audit.contains(act), "{act} is missing: {audit}");
    }
    let ada = Away::new(&[&node], &ground.token("ada"));
    assert_eq!(ada.must(&["on", "outbound", "--user", "li"]), "li switched outbound on.\n");
    assert!(
        ada.must(&["drain", "node-a", "--reason", "kernel update"]).contains("hands its jobs over")
    );
    assert!(ada.must(&["undrain", "node-a"]).contains("may take jobs again"));
    let audit = ground.must(&["audit", "--target", "node-a", "--json"]);
    assert!(audit.contains("\"kernel update\""), "why is in the audit: {audit}");
}

#[test]
fn accounts_tokens_and_sessions_are_managed() {
    let ground = ground();
    let node = ground.start("node-a");
    let ada = Away::new(&[&node], &ground.token("ada"));
    let mut adding = ada.command(&["user", "add", "wang", "--role", "viewer", "--password-stdin"]);
    let mut adding = adding.stdin(Stdio::piped()).spawn().expect("soloist starts");
    writeln!(adding.stdin.take().expect("a pipe"), "wang keeps seven blue lanterns").expect("read");
    assert!(adding.wait().expect("it ends").success());
    assert!(ada.must(&["user", "list"]).contains("wang"));
    assert_eq!(
        ada.must(&["user", "role", "wang", "operator"]),
        "wang is now operator; signed out everywhere.\n"
    );
    let link = ada.must(&["user", "passwd", "wang", "--invite"]);
    assert!(link.starts_with("http://"), "the link alone: {link}");
    let secret = ada.must(&["token", "new", "--user", "wang", "--name", "laptop"]);
    let wang = Away::new(&[&node], secret.trim());
    assert_eq!(wang.must(&["on", "outbound"]), "wang switched outbound on.\n");
    let tokens = ada.must(&["token", "list", "--json"]);
    let tokens: serde_json::Value = serde_json::from_str(&tokens).expect("JSON");
    let own = tokens["tokens"].as_array().expect("a list").iter();
    let id = own.clone().find(|one| one["user"] == "wang").expect("its token")["id"].clone();
    let id = id.as_str().expect("an id");
    assert_eq!(ada.must(&["token", "revoke", id]), format!("Token {id} of wang is revoked.\n"));
    wang.fails(&["status"], 4);
    let removed = ada.must(&["user", "remove", "wang"]);
    assert!(
        removed.contains("It no longer wants outbound (was the last: this stops it)."),
        "{removed}"
    );
    assert_eq!(ada.must(&["session", "list"]), "Nobody is signed in.\n");
    ada.fails(&["session", "revoke", "nothing"], 3);
}

#[test]
fn sources_tasks_and_rotations_are_managed() {
    let ground = ground();
    let node = ground.start("node-a");
    let away = Away::new(&[&node], &ground.token("li"));
    let set = away.must(&["source", "set", "pages", "--gap", "250ms", "--cap", "2"]);
    assert_eq!(set, "Source pages: gap 250ms, cap 2, lease 1m.\n");
    away.must(&["source", "pause", "pages"]);
    assert!(
        away.must(&["source", "list"]).contains("paused, gap 250ms, cap 2"),
        "only that changed"
    );
    away.must(&["source", "resume", "pages"]);
    let put = ["task", "put", "--source", "pages", "--key", "a", "--payload", "{\"n\":1.50}"];
    assert_eq!(away.must(&put), "1 created, 0 existed already.\n");
    assert_eq!(away.must(&put), "0 created, 1 existed already.\n");
    let tasks: serde_json::Value =
        serde_json::from_str(&away.must(&["task", "list", "--json"])).expect("JSON");
    let id = tasks["tasks"][0]["id"].as_str().expect("an id");
    assert!(away.must(&["task", "show", id]).contains("payload  {\"n\":1.50}"), "as it was put");
    assert_eq!(away.must(&["task", "remove", id, "--yes"]), format!("Task {id} is removed.\n"));
    away.must(&["task", "put", "--source", "pages", "--key", "b"]);
    let said = away.fails(&["source", "remove", "pages"], 4);
    assert!(said.contains("1 tasks, 0 of them in flight, would be lost"), "{said}");
    let gone = away.must(&["source", "remove", "pages", "--yes"]);
    assert_eq!(gone, "Source pages is removed, with 1 tasks.\n");
    let set = away.must(&["rotation", "set", "api", "--type", "a", "--type", "b,quota=2/1m"]);
    assert_eq!(set, "Rotation api: a > b quota 2 in 1m, lease 30s.\n");
    assert_eq!(away.must(&["rotation", "remove", "api", "--yes"]), "Rotation api is removed.\n");
}

#[test]
fn a_collector_puts_tasks_for_its_source_when_its_token_says_so() {
    let ground = ground();
    let node = ground.start("node-a");
    for source in ["pages", "shop"] {
        ground.must(&["source", "set", source]);
    }
    let token = |words: &[&str]| {
        ground.must(&[&["token", "new", "--user", "robot"], words].concat()).trim().to_owned()
    };
    let put = |source| ["task", "put", "--source", source, "--key", "found"];
    let plain = Away::new(&[&node], &token(&["--source", "pages"]));
    assert!(plain.fails(&put("pages"), 4).contains("collector"));
    let putting = Away::new(&[&node], &token(&["--source", "pages", "--put"]));
    assert_eq!(putting.must(&put("pages")), "1 created, 0 existed already.\n");
    assert!(putting.fails(&put("shop"), 4).contains("for the source pages only"));
    // It is for nothing else.
    putting.fails(&["source", "pause", "pages"], 4);
    putting.fails(&["status"], 4);
    let refused = ground.run(&["token", "new", "--user", "robot", "--put"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--put is for the sources of the token"), "{said}");
    assert!(ground.must(&["token", "list"]).contains("source pages (may put)"));
}

#[test]
fn alerts_are_muted_and_channels_tested_from_the_node() {
    let alerts = "[[alert]]\nwhen = \"given_up\"\nto = [\"ops\"]\n[channel.ops]\nkind = \"slack\"\nurl = \"http://127.0.0.1:9/\"\n";
    let ground = super::Ground::new("sqlite:soloist.db", &format!("{}{alerts}", super::JOB));
    super::accounts(&ground);
    let node = ground.start("node-a");
    let li = Away::new(&[&node], &ground.token("li"));
    let mute = ["alert", "mute", "given_up", "--for", "1h", "--reason", "moving"];
    assert!(li.must(&mute).starts_with("given_up is mute until "));
    assert_eq!(li.must(&["alert", "list"]), ground.must(&["alert", "list"]));
    assert!(ground.must(&["audit", "--act", "alert.mute", "--json"]).contains("moving"));
    assert_eq!(li.must(&["alert", "unmute", "given_up"]), "given_up speaks again.\n");
    li.fails(&["alert", "mute", "rain", "--for", "1h"], 3);
    li.fails(&["alert", "test", "ops"], 4);
    let ada = Away::new(&[&node], &ground.token("ada"));
    assert!(ada.fails(&["alert", "test", "ops"], 1).contains("ops did not take the test"));
}
