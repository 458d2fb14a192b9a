//! Nodes and stores that die, sleep or leave while a job runs: somebody goes on, and never two at a time.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::lifecycle::{JOB, Pair};
use crate::support::machine::{in_time, judged};
use crate::support::node::Node;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

judged! {
    kill_9_of_the_holder_ends_its_whole_tree_and_the_other_goes_on_long_before_the_lease
    a_terminated_node_hands_its_job_over_and_then_exits_with_0
    a_second_sigterm_does_not_wait_for_the_grace
    a_sleeping_holder_loses_its_script_before_another_starts_it
    a_restart_of_redis_with_its_append_only_file_does_not_touch_the_script
    a_store_that_is_gone_is_said_at_once_and_the_picture_becomes_unknown
    a_store_that_was_emptied_says_off_only_when_the_script_it_forgot_is_gone
    participations_survive_the_end_of_every_node
}

/// The node that holds the job, and the other.
fn holder_first<'a>(pair: &'a mut Pair, holder: &str) -> (&'a mut Node, &'a mut Node) {
    if pair.a.name == holder { (&mut pair.a, &mut pair.b) } else { (&mut pair.b, &mut pair.a) }
}

async fn kill_9_of_the_holder_ends_its_whole_tree_and_the_other_goes_on_long_before_the_lease() {
    // A minute of lease: whoever waited for it would fail the test by its patience.
    let mut pair = Pair::start("stubborn", "lease_ttl = \"60s\"");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    until_async("the grandchild beats", async || {
        pair.witness.acts().iter().any(|act| act.pid != first.pid).then_some(())
    })
    .await;
    let token = pair.li.clone();
    let (dying, living) = holder_first(&mut pair, &first.node);
    let survivor = living.api(&token);
    let mut live = survivor.live().await;
    dying.kill();
    let second = pair.witness.until_started(2);
    assert_ne!(second.node, first.node);
    assert!(second.token > first.token);
    let job = live.until(JOB, "the other runs it", |job| job["run"]["pid"] == second.pid).await;
    assert_eq!(job["lease"]["token"], second.token);
    assert!(live.seen.iter().all(|(_, state)| state != "off"), "{:?}", live.seen);
    let runs = survivor.runs(JOB).await;
    assert_eq!(runs[1]["end"], "lost", "{runs:?}");
    assert_eq!(pair.witness.living_under(first.token), [0; 0]);
    let line = survivor.get(&format!("/api/v1/jobs/{JOB}/timeline")).await;
    let spans = line["spans"].as_array().expect("spans");
    assert_eq!(spans[0]["node"], first.node.as_str(), "{line}");
    assert_eq!(spans[0]["end"], "lost", "{line}");
    assert_eq!(spans[1]["node"], second.node.as_str(), "{line}");
    assert_eq!(spans[1]["to"], Value::Null, "{line}");
    let took = spans[1]["takeover_ms"].as_u64().expect("a take-over");
    in_time(took < 2_000, || format!("the take-over is told as {took} ms"));
    assert_eq!(line["participations"][0]["user"], "li", "{line}");
    pair.witness.check();
}

async fn a_terminated_node_hands_its_job_over_and_then_exits_with_0() {
    let mut pair = Pair::start("beat", "");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let (leaving, _) = holder_first(&mut pair, &first.node);
    assert_eq!(leaving.terminate(), Some(0));
    let second = pair.witness.until_started(2);
    assert_ne!(second.node, first.node);
    let acts = pair.witness.acts();
    let before: Vec<_> = acts.iter().filter(|act| act.token == first.token).collect();
    assert_eq!(before.last().map(|act| act.word.as_str()), Some("end"), "it was asked first");
    pair.witness.check();
}

async fn a_second_sigterm_does_not_wait_for_the_grace() {
    let mut pair = Pair::start("stubborn", "stop_grace = \"60s\"");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let (leaving, _) = holder_first(&mut pair, &first.node);
    leaving.signal(Signal::SIGTERM);
    until("TERM has reached the script", || {
        pair.witness.acts().iter().any(|act| act.word == "ignored").then_some(())
    });
    let (leaving, _) = holder_first(&mut pair, &first.node);
    assert_eq!(leaving.terminate(), Some(0));
    let _second = pair.witness.until_started(2);
    pair.witness.check();
}

async fn a_sleeping_holder_loses_its_script_before_another_starts_it() {
    let mut pair = Pair::start("stubborn", "lease_ttl = \"2s\"");
    let token = pair.li.clone();
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let (sleeping, awake) = holder_first(&mut pair, &first.node);
    let survivor = awake.api(&token);
    let mut live = survivor.live().await;
    sleeping.signal(Signal::SIGSTOP);
    live.until_state(JOB, "failing_over").await;
    let second = pair.witness.until_started(2);
    assert_ne!(second.node, first.node);
    let (sleeping, _) = holder_first(&mut pair, &first.node);
    sleeping.signal(Signal::SIGCONT);
    pair.witness.until_more(second.token, 50);
    assert_eq!(pair.witness.starts(), 2, "the awakened node leaves it alone");
    pair.witness.check();
    let lost = until_async("the first run is in the history", async || {
        survivor.runs(JOB).await.get(1).cloned()
    });
    let lost = lost.await;
    assert!(matches!(lost["end"].as_str(), Some("lost" | "fenced")), "{lost}");
}

async fn a_restart_of_redis_with_its_append_only_file_does_not_touch_the_script() {
    let redis = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut pair = Pair::start_on(redis, "beat", "lease_ttl = \"3s\"");
    let wang = pair.wang();
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let mut live = wang.live().await;
    live.until_state(JOB, "running").await;
    pair.redis.restart();
    // Longer than two leases: only renewals that succeed after the restart can explain that it goes on.
    let deadline = first.at + 8.0;
    until("two leases have passed", || {
        let acts = pair.witness.acts();
        acts.last().is_some_and(|act| act.at > deadline).then_some(())
    });
    in_time(pair.witness.starts() == 1, || "the same run goes on".to_owned());
    assert!(pair.witness.acts().iter().all(|act| act.word != "end"));
    let job = wang.get(&format!("/api/v1/jobs/{JOB}")).await;
    assert_eq!(job["run"]["pid"], first.pid);
    let before = job["run"]["progress"]["done"].as_u64().unwrap_or(0);
    live.until(JOB, "progress is pushed again", |job| {
        job["run"]["progress"]["done"].as_u64().unwrap_or(0) > before
    })
    .await;
    pair.witness.check();
}

async fn a_store_that_is_gone_is_said_at_once_and_the_picture_becomes_unknown() {
    let mut pair = Pair::start("beat", "lease_ttl = \"2s\"");
    let li = pair.li();
    li.switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let mut live = li.live().await;
    live.until_state(JOB, "running").await;
    pair.redis.kill();
    until_async("/readyz says so", async || {
        let answer =
            crate::support::http::get(format!("{}/readyz", pair.a.url)).await.expect("it answers");
        (answer.status() == 503).then_some(())
    })
    .await;
    live.until_state(JOB, "unknown").await;
    until("the script was ended before its lease could be another's", || {
        pair.witness.living().is_empty().then_some(())
    });
    let last = pair.witness.acts().pop().expect("acts");
    assert_eq!(last.token, first.token);
    assert!(live.seen.iter().all(|(_, state)| state != "off"), "{:?}", live.seen);
}

async fn a_store_that_was_emptied_says_off_only_when_the_script_it_forgot_is_gone() {
    let pair = Pair::start("stubborn", "lease_ttl = \"2s\"\nstop_grace = \"1s\"");
    pair.li().switch(JOB, true).await;
    let _first = pair.witness.until_started(1);
    pair.redis.run::<()>(&["FLUSHALL"]);
    // Accounts are forgotten, too: only the command line still may ask.
    let mut words = Vec::new();
    until_async("off is said", async || {
        let living = pair.witness.living();
        let status = pair.ground.must(&["status", JOB, "--json"]);
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let word = status["state"].as_str().expect("a state").to_owned();
        words.push((word.clone(), living.len()));
        (word == "off").then_some(())
    })
    .await;
    assert!(pair.witness.living().is_empty(), "{words:?}");
    assert!(words.iter().any(|(word, _)| word == "unknown"), "{words:?}");
    pair.witness.check();
}

async fn participations_survive_the_end_of_every_node() {
    let mut pair = Pair::start("beat", "");
    pair.li().switch(JOB, true).await;
    let _first = pair.witness.until_started(1);
    // The holder first or last: both ways the job must not be forgotten.
    pair.a.kill();
    pair.b.kill();
    until("both trees are gone", || pair.witness.living().is_empty().then_some(()));
    let before = pair.witness.starts();
    let again = pair.ground.start("node-c");
    let next = pair.witness.until_started(before + 1);
    assert_eq!(next.node, "node-c");
    let job = again.api(&pair.li).get(&format!("/api/v1/jobs/{JOB}")).await;
    assert_eq!(job["participants"][0]["user"], "li");
    assert_ne!(job["lease"], Value::Null);
    pair.witness.check();
}
