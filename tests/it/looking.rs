//! Looking changes nothing: a store that does not exist is an error that names it, and none is made.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use soloist::store::{Options, StoreError};

use crate::support::cluster::RedisCluster;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;

/// Commands that look, or that change what must be there already.
const WORDS: [&[&str]; 24] = [
    &["status"],
    &["why", "outbound"],
    &["on", "outbound"],
    &["off", "outbound"],
    &["hold", "outbound", "--reason", "x"],
    &["resume", "outbound"],
    &["move", "outbound"],
    &["drill", "outbound"],
    &["nodes"],
    &["drain", "node-a"],
    &["undrain", "node-a"],
    &["logs", "outbound"],
    &["runs", "outbound"],
    &["user", "list"],
    &["user", "role", "li", "admin"],
    &["user", "remove", "li"],
    &["token", "new", "--user", "li"],
    &["token", "list"],
    &["lease", "list"],
    &["source", "list"],
    &["task", "put", "--source", "shop", "--key", "a"],
    &["rotation", "list"],
    &["collect", "--source", "shop", "--until-empty", "--", "true"],
    &["turn", "--rotation", "api", "--type", "a", "--wait", "0s", "--", "true"],
];

/// What it says on standard error, after it failed with exit code 3.
fn not_found(words: &[&str], output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{words:?}: {said}");
    assert!(output.stdout.is_empty(), "{words:?} printed something");
    said
}

fn job() -> &'static str {
    "[[job]]\nname = \"outbound\"\ncommand = [\"true\"]\n"
}

#[test]
fn no_command_that_looks_makes_a_file() {
    let ground = Ground::new("sqlite:typo/x.db", job());
    for words in WORDS {
        let said = not_found(words, &ground.run(words));
        let file = ground.path("soloist.toml").display().to_string();
        assert!(said.contains("sqlite:") && said.contains("typo/x.db"), "{words:?}: {said}");
        assert!(said.contains(&file), "{words:?} names the configuration: {said}");
        assert!(!ground.path("typo").exists(), "{words:?} made a store");
    }
    // An empty file is no store either.
    fs::create_dir(ground.path("typo")).expect("made");
    fs::write(ground.path("typo/x.db"), "").expect("written");
    not_found(&["status"], &ground.run(&["status"]));
    assert_eq!(fs::metadata(ground.path("typo/x.db")).expect("still there").len(), 0);
    assert_eq!(fs::read_dir(ground.path("typo")).expect("a directory").count(), 1);
}

#[test]
fn the_configuration_that_was_missed_is_named() {
    let empty = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_soloist"))
        .arg("status")
        .current_dir(empty.path())
        .env_remove("SOLOIST_STORE")
        .env_remove("SOLOIST_CONFIG")
        .output()
        .expect("soloist starts");
    let said = not_found(&["status"], &output);
    for part in ["data/soloist.db", "no soloist.toml in this directory", "--config"] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
    let made = fs::read_dir(empty.path()).expect("a directory").count();
    assert_eq!(made, 0, "{:?} was made", Path::new(empty.path()));
}

#[test]
fn doctor_says_that_there_is_no_store_and_makes_none() {
    let ground = Ground::new("sqlite:typo/x.db", job());
    let output = ground.run(&["doctor"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no store at") && said.contains("typo/x.db"), "{said}");
    assert!(!ground.path("typo").exists());
    ground.must(&["check"]);
    assert!(!ground.path("typo").exists());
}

#[test]
fn no_command_that_looks_writes_into_a_redis_where_soloist_never_was() {
    let redis = RedisServer::start(&[]);
    // What tests write there so that they need not wait.
    redis.run::<()>(&["FLUSHALL"]);
    redis.run::<()>(&["SET", "of-somebody-else", "1"]);
    let ground = Ground::new(&redis.url(), job());
    for words in WORDS {
        let said = not_found(words, &ground.run(words));
        assert!(said.contains(&redis.url()), "{words:?}: {said}");
        assert_eq!(redis.run::<u64>(&["DBSIZE"]), 1, "{words:?} wrote something");
    }
    assert!(String::from_utf8_lossy(&ground.run(&["doctor"]).stdout).contains("no store at"));
    assert_eq!(redis.run::<u64>(&["DBSIZE"]), 1, "doctor wrote something");
    ground.add_user("li", "operator");
    assert!(ground.must(&["status"]).contains("outbound"), "now there is one");
}

#[test]
fn a_redis_that_was_emptied_under_its_nodes_is_a_store() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), job());
    let _node = ground.start("node-a");
    redis.run::<()>(&["FLUSHALL"]);
    ground.must(&["status"]);
}

#[tokio::test]
async fn a_cluster_where_soloist_never_was_has_no_store() {
    let cluster = RedisCluster::shared();
    let prefix = format!("looking-{}:", std::process::id());
    let options = Options {
        prefix,
        make: false,
        timeout: std::time::Duration::from_secs(20),
        ..Options::default()
    };
    let opened = soloist::stores::connect(&cluster.url(), &options).await;
    assert!(matches!(opened.map(drop), Err(StoreError::Absent(_))));
    let made =
        soloist::stores::connect(&cluster.url(), &Options { make: true, ..options.clone() }).await;
    made.map(drop).expect("made");
    soloist::stores::connect(&cluster.url(), &options).await.map(drop).expect("now there is one");
}

#[test]
fn those_that_begin_something_make_a_store() {
    for words in [
        &["link"][..],
        &["source", "set", "shop"],
        &["rotation", "set", "api", "--type", "a"],
        &["run", "--name", "nightly", "--", "true"],
    ] {
        let ground = Ground::new("sqlite:new/x.db", job());
        ground.must(words);
        assert!(ground.path("new/x.db").is_file(), "{words:?}");
        ground.must(&["status"]);
    }
}
