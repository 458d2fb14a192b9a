//! Backup and restore as `docs/operations.md` says.

use std::process::Command;

use crate::support::node::{Ground, Node};

const JOB: &str =
    "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"600\"]\nmin_uptime = \"50ms\"\n";

/// A node of `ground`, once its job is in `state`.
async fn until_it_is(ground: &Ground, state: &str) -> Node {
    let node = ground.start("node-a");
    let mut live = node.api(&ground.token("li")).live().await;
    live.until_state("outbound", state).await;
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_put_back_is_the_store_as_it_was() {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    ground.add_user("li", "operator");
    ground.must(&["on", "outbound", "--user", "li"]);
    let mut node = until_it_is(&ground, "running").await;
    // While it runs.
    let backup = ground.path("backup.db");
    let saved = Command::new("sqlite3")
        .arg(ground.path("soloist.db"))
        .arg(format!(".backup '{}'", backup.display()))
        .status();
    assert!(saved.expect("sqlite3 starts").success());

    ground.must(&["off", "outbound", "--user", "li"]);
    ground.add_user("wang", "operator");
    assert_eq!(node.terminate(), Some(0));

    for left in ["soloist.db-wal", "soloist.db-shm", "soloist.db-wake"] {
        std::fs::remove_file(ground.path(left)).ok();
    }
    std::fs::copy(&backup, ground.path("soloist.db")).expect("put back");
    let mut node = until_it_is(&ground, "running").await;
    let users = ground.must(&["user", "list"]);
    assert!(users.contains("li") && !users.contains("wang"), "{users}");
    assert_eq!(node.terminate(), Some(0));
}
