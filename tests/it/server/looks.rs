//! What is printed by a node is what is printed at the store.

use super::{Away, ground};
use crate::support::wait::until;

/// Numbers that go on while one looks.
const MOVING: [&str; 8] = [
    "\"age_ms\"",
    "\"expires_in_ms\"",
    "\"now\"",
    "\"last_used\"",
    "\"load_percent\"",
    "\"free_mb\"",
    "\"disk_free_mb\"",
    "\"clock_ahead_ms\"",
];

/// Without the numbers that go on: of JSON those lines, of tables with a span of time every number.
fn masked(words: &[&str], text: &str) -> String {
    let spans = matches!(words, ["nodes"] | ["lease", "list"]);
    let lines = text.lines().filter(|line| !MOVING.iter().any(|key| line.contains(key)));
    let lines = lines.map(|line| match spans {
        false => line.to_owned(),
        true => {
            let line = line.replace(|c: char| c.is_ascii_digit(), "#");
            line.split_whitespace().collect::<Vec<_>>().join(" ").replace("##", "#")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_listing_is_the_same_by_a_node_as_at_the_store() {
    let ground = ground();
    let node = ground.start("node-a");
    ground.must(&["source", "set", "pages", "--gap", "1s", "--cap", "3", "--window", "9/1h"]);
    ground.must(&["source", "set", "shop", "--paused"]);
    ground.must(&[
        "task",
        "put",
        "--source",
        "pages",
        "--key",
        "a",
        "--payload",
        "{\"b\":1,\"a\":2}",
    ]);
    ground.must(&[
        "task",
        "put",
        "--source",
        "pages",
        "--key",
        "z",
        "--at",
        "2100-01-01T00:00:00Z",
    ]);
    ground.must(&[
        "rotation",
        "set",
        "api",
        "--type",
        "orders,gap=2s",
        "--type",
        "stock,quota=3/1h",
    ]);
    ground.must(&["turn", "--rotation", "api", "--type", "stock", "--", "true"]);
    ground.must(&["on", "outbound", "--user", "li"]);
    until("the job runs and has said something", || {
        ground.must(&["logs", "outbound"]).contains("shipping").then_some(())
    });
    let away = Away::new(&[&node], &ground.token("ada"));
    let tasks = ground.must(&["task", "list", "--json"]);
    let tasks: serde_json::Value = serde_json::from_str(&tasks).expect("JSON");
    let id = tasks["tasks"][0]["id"].as_str().expect("an id");
    let looks: [&[&str]; 18] = [
        &["status"],
        &["status", "outbound"],
        &["why", "outbound"],
        &["logs", "outbound"],
        &["runs", "outbound"],
        &["nodes"],
        &["lease", "list"],
        &["alert", "list"],
        &["audit", "--limit", "100"],
        &["audit", "--act", "source.*"],
        &["user", "list"],
        &["token", "list"],
        &["session", "list"],
        &["source", "list"],
        &["task", "list"],
        &["task", "show", id],
        &["rotation", "list"],
        &["rotation", "list", "api"],
    ];
    // With its first use, which the list of tokens shows.
    away.must(&["user", "list"]);
    for words in looks {
        for json in [false, true] {
            let words = [words, if json { &["--json"] } else { &[] }].concat();
            if words[0] == "why" && json {
                continue;
            }
            let mut last = (String::new(), String::new());
            for _ in 0..200 {
                last = (away.must(&words), ground.must(&words));
                last = (masked(&words, &last.0), masked(&words, &last.1));
                // Either may have looked before a change that the other saw.
                if last.0 == last.1 {
                    break;
                }
            }
            assert_eq!(last.0, last.1, "soloist {words:?}: by a node, at the store");
            assert!(!last.0.is_empty(), "soloist {words:?} printed nothing");
        }
    }
}

#[test]
fn the_audit_is_exported_by_a_node_with_its_chain() {
    let ground = ground();
    let node = ground.start("node-a");
    let away = Away::new(&[&node], &ground.token("ada"));
    away.must(&["audit", "--export", "audit.ndjson"]);
    let text = std::fs::read_to_string(away.directory.path().join("audit.ndjson")).expect("a file");
    assert!(text.contains("user.add") && text.contains("\"end\":true"), "{text}");
    let said = away.must(&["audit", "--verify", "audit.ndjson"]);
    assert!(said.contains("chain unbroken"), "{said}");
}

#[test]
fn the_doctor_says_what_can_be_seen_from_outside() {
    let ground = ground();
    let node = ground.start("node-a");
    let secret =
        ground.must(&["token", "new", "--user", "li", "--job", "outbound", "--expires", "2d"]);
    let away = Away::new(&[&node], secret.trim());
    let said = away.must(&["doctor"]);
    for part in [
        "is ready",
        "of li, an operator",
        "only for job outbound",
        "clock",
        "run soloist doctor on a node",
    ] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert!(said.contains("warn  token"), "it ends soon: {said}");
    assert!(!said.contains(secret.trim()));
    let robot = ground.must(&["token", "new", "--user", "robot", "--source", "pages"]);
    let said = Away::new(&[&node], robot.trim()).must(&["doctor"]);
    assert!(said.contains("accepted"), "{said}");
    let one_away = Away::at(&format!("{},http://127.0.0.1:1", node.url), secret.trim());
    assert!(one_away.fails(&["doctor"], 1).contains("1 thing is bad"));
}

#[test]
fn output_is_followed_at_a_node() {
    let ground = ground();
    let node = ground.start("node-a");
    let away = Away::new(&[&node], &ground.token("li"));
    let following = away.start(&["logs", "outbound", "--follow", "--json"]);
    away.must(&["on", "outbound"]);
    let mut following = following;
    let stdout = following.child.stdout.take().expect("a pipe");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    let line = lines.next().expect("a line").expect("UTF-8");
    assert!(line.contains("\"text\":\"shipping\""), "{line}");
    following.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(following.end().0, 0);
}
