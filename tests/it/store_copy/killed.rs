//! The command itself: killed half way, begun anew, and people who sign in afterwards.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::store::StoreError;
use soloist::store::dispatch::{Dispatch as _, TaskFilter};

use super::filled::{claimed, crowd, fill};
use super::places::{Place, mariadb, postgres, redis, sqlite};
use super::shown;
use crate::support::node::Ground;
use crate::support::wait::until_async;

const MANY: usize = 6_000;

/// Kills the copying process in the middle of many tasks.
async fn killed(to: Place) {
    let from = sqlite();
    let store = from.open().await;
    fill(&store).await;
    crowd(&store, MANY).await;
    let ground = Ground::new(&to.url, "");
    let mut child = ground
        .command(&["store", "copy", "--from", &from.url, "--to", &to.url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("soloist starts");
    // Long after its mark, long before its end: some tasks are there, seen past the mark.
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    until_async("the target refuses nodes", async || {
        let opened = soloist::stores::connect(&to.url, &to.options).await;
        matches!(opened, Err(StoreError::Unsupported(_))).then_some(())
    })
    .await;
    kill(pid, Signal::SIGKILL).expect("our own child");
    child.wait().expect("it ended");
    let node = ground.run(&["serve", "--node", "node-a"]);
    let said = String::from_utf8_lossy(&node.stderr).into_owned();
    assert_eq!(node.status.code(), Some(2), "{said}");
    assert!(said.contains("a copy into this store is not finished"), "{said}");
    assert_eq!(ground.run(&["status"]).status.code(), Some(2));
    let said = ground.must(&["store", "copy", "--from", &from.url, "--to", &to.url]);
    assert!(said.contains("had an unfinished copy: it was removed"), "{said}");
    let copy = to.open().await;
    let (before, after) = (shown(&store).await, shown(&copy).await);
    for (what, lines) in &before {
        assert_eq!(lines, &after[what], "{what} in {}", to.url);
    }
    let mut all = 0;
    let mut last = None;
    loop {
        let page = copy.tasks(&TaskFilter::default(), last.as_ref(), 500).await.expect("an answer");
        let Some(task) = page.last() else { break };
        all += page.len();
        last = Some((task.changed, task.id.clone()));
    }
    assert_eq!(all, MANY + 43);
    assert!(claimed(&copy).await.0.len() > MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_into_a_file_that_was_killed_is_begun_anew() {
    killed(sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_into_redis_that_was_killed_is_begun_anew() {
    killed(redis()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_into_postgres_that_was_killed_is_begun_anew() {
    killed(postgres()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_into_mariadb_that_was_killed_is_begun_anew() {
    killed(mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_on_in_the_other_store_and_its_people_sign_in_there() {
    let jobs = "[[job]]\nname = \"outbound\"\ncommand = [\"sh\", \"-c\", \"echo token $SOLOIST_TOKEN; exec sleep 600\"]\n";
    let server = redis();
    let before = Ground::new("sqlite:soloist.db", jobs);
    before.add_user("li", "admin");
    let token = before.token("li");
    before.must(&["on", "outbound", "--user", "li"]);
    let mut node = before.start("node-a");
    let line = |ground: &Ground, after: usize| {
        let text = ground.must(&["logs", "outbound"]);
        let lines: Vec<u64> =
            text.lines().filter_map(|line| line.rsplit_once("token ")?.1.parse().ok()).collect();
        (lines.len() > after).then_some(lines)
    };
    let first = crate::support::wait::until("the first run speaks", || line(&before, 0));
    let here = format!("sqlite:{}", before.path("soloist.db").display());
    let copying = ["store", "copy", "--from", &here, "--to", &server.url];
    let refused = before.run(&copying);
    assert_eq!(refused.status.code(), Some(4), "{}", String::from_utf8_lossy(&refused.stderr));
    assert_eq!(node.terminate(), Some(0));
    let dry = [&copying[..], &["--dry-run", "--json"]].concat();
    let counted: serde_json::Value = serde_json::from_str(&before.must(&dry)).expect("JSON");
    assert_eq!((&counted["dry_run"], &counted["copied"]["accounts"]), (&true.into(), &1.into()));
    let said = before.must(&copying);
    assert!(said.contains("COPIED") && said.contains("then start the nodes"), "{said}");
    let after = Ground::new(&server.url, jobs);
    assert!(after.must(&["audit"]).contains(&here), "who copied, and from where");
    let node = after.start("node-b");
    let both = crate::support::wait::until("the second run speaks", || line(&after, 1));
    assert!(both[1] > first[0], "{both:?}");
    let api = node.api(&token);
    let me = api.get("/api/v1/jobs/outbound").await;
    assert_eq!(me["participants"][0]["user"], "li", "{me}");
    tokio::time::sleep(Duration::from_millis(1)).await;
}
