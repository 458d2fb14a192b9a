//! Leaving ZooKeeper: the command itself, with a store and its coordination as one name.

use std::time::Duration;

use soloist::domain::ensemble::joined;
use soloist::store::copy::CopyError;

use super::copied;
use super::places::{beside, beside_zookeeper, postgres};
use crate::support::machine::judged;
use crate::support::node::Ground;
use crate::support::wait::{until, until_async};
use crate::support::zookeeper::ZooKeeper;

// ZooKeeper answers nobody for as long as its disk stands still.
judged! {
    a_job_leaves_zookeeper_and_goes_on_without_it
}

const JOBS: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sh\", \"-c\", \"echo token $SOLOIST_TOKEN; exec sleep 600\"]\n";

/// The tokens that the job's runs have said, oldest first, once there are so many.
fn tokens(ground: &Ground, many: usize) -> Vec<u64> {
    until("a run speaks", || {
        let text = ground.must(&["logs", "outbound"]);
        let said = text.lines().filter_map(|line| line.rsplit_once("token ")?.1.parse().ok());
        let said: Vec<u64> = said.collect();
        (said.len() >= many).then_some(said)
    })
}

async fn a_job_leaves_zookeeper_and_goes_on_without_it() {
    let (from, to) = (postgres(), postgres());
    let login = ZooKeeper::shared().chroot().replace("zookeeper://", "zookeeper://li:secret@");
    let both = joined(&from.url, Some(&login));
    let before = Ground::new(&both, JOBS);
    before.add_user("li", "admin");
    let token = before.token("li");
    before.must(&["on", "outbound", "--user", "li"]);
    let mut node = before.start("node-a");
    let first = tokens(&before, 1);
    let copying = ["store", "copy", "--from", &both, "--to", &to.url];
    let refused = before.run(&copying);
    assert_eq!(refused.status.code(), Some(4), "{}", String::from_utf8_lossy(&refused.stderr));
    assert_eq!(node.terminate(), Some(0));
    let said = before.must(&copying);
    assert!(said.contains("COPIED") && said.contains("remove `coordination`"), "{said}");
    let after = Ground::new(&to.url, JOBS);
    let audit = after.must(&["audit"]);
    let (_, place) = login.split_once('@').expect("a login");
    assert!(audit.contains(place) && !audit.contains("secret"), "who copied, from where: {audit}");
    let node = after.start("node-b");
    let second = tokens(&after, 2);
    assert!(second[1] > first[0], "{second:?} after {first:?}");
    let me = node.api(&token).get("/api/v1/jobs/outbound").await;
    assert_eq!(me["participants"][0]["user"], "li", "{me}");
}

#[tokio::test]
async fn a_store_is_not_copied_without_the_leases_that_are_elsewhere() {
    let from = beside_zookeeper(postgres());
    from.open().await;
    let (store, _) = from.url.split_once(' ').expect("a store and its coordination");
    match copied(store, &postgres().url, &from.options).await {
        Err(CopyError::Source(why)) => {
            let why = why.to_string();
            assert!(why.contains("--from \"STORE-URL COORDINATION-URL\""), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_store_whose_zookeeper_may_have_forgotten_leases_is_copied_only_after_them() {
    let mut ensemble = ZooKeeper::start(1, &[], &[]);
    let mut from = beside(postgres(), &ensemble);
    from.options.longest_lease = Duration::from_secs(5);
    from.open().await;
    ensemble.kill(0);
    ensemble.start_again(0, true);
    ensemble.wait();
    // A node is started once more, and stopped.
    let node = until_async("it opens", async || {
        soloist::stores::connect(&from.url, &from.options).await.ok()
    })
    .await;
    drop(node);
    let to = postgres();
    let why = copied(&from.url, &to.url, &from.options).await.expect_err("too early").to_string();
    assert!(why.contains("may have forgotten leases"), "{why}");
    until_async("it is copied", async || copied(&from.url, &to.url, &from.options).await.ok())
        .await;
}
