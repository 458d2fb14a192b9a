//! What people want, what the script does and what everybody sees of it: two real nodes on a real Redis.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::machine::{holds, in_time, judged, within};
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;
use crate::support::witness::{self, Witness};

judged! {
    a_job_runs_for_as_long_as_one_of_two_wants_it_and_both_nodes_show_it
    off_is_shown_only_after_a_tree_that_ignores_term_is_dead
    a_crash_is_retried_with_growing_waits_and_stop_beats_restart
    attempts_run_out_and_switching_on_again_starts_over
    exit_0_repeats_however_short_the_run_was
    a_job_that_never_repeats_is_off_when_it_is_done
    a_hold_stops_a_job_and_the_resume_starts_it_again_by_itself
    a_moved_job_goes_to_the_named_node_and_back_without_an_overlap
    a_job_asked_to_move_to_a_node_that_has_just_died_runs_again_where_it_was
    a_job_that_rests_moves_before_its_next_run
}

/// Two nodes, one Redis, one job `outbound` whose script is the witness, and two people.
pub(crate) struct Pair {
    pub(crate) redis: RedisServer,
    pub(crate) ground: Ground,
    pub(crate) a: Node,
    pub(crate) b: Node,
    pub(crate) li: String,
    pub(crate) wang: String,
    pub(crate) witness: Witness,
}

pub(crate) const JOB: &str = "outbound";
const MOVE: &str = "/api/v1/jobs/outbound/move";

impl Pair {
    pub(crate) fn start(mode: &str, more: &str) -> Self {
        Self::start_on(RedisServer::start(&[]), mode, more)
    }

    pub(crate) fn start_on(redis: RedisServer, mode: &str, more: &str) -> Self {
        let ground = Ground::new(&redis.url(), &witness::job(JOB, mode, more));
        witness::place(&ground);
        ground.add_user("li", "operator");
        ground.add_user("wang", "operator");
        let (li, wang) = (ground.token("li"), ground.token("wang"));
        let (a, b) = (ground.start("node-a"), ground.start("node-b"));
        let witness = Witness::of(&ground, JOB);
        Self { redis, ground, a, b, li, wang, witness }
    }

    pub(crate) fn li(&self) -> Api {
        self.a.api(&self.li)
    }

    /// At the other node, as behind a load balancer.
    pub(crate) fn wang(&self) -> Api {
        self.b.api(&self.wang)
    }
}

/// Whatever is shown as `off` or `held` is over.
fn nobody_lives(witness: &Witness) {
    let living = witness.living();
    holds(living.is_empty(), || format!("shown as over while these live: {living:?}"));
}

fn users(job: &Value) -> Vec<&str> {
    let participants = job["participants"].as_array().expect("participants");
    participants.iter().filter_map(|participant| participant["user"].as_str()).collect()
}

async fn a_job_runs_for_as_long_as_one_of_two_wants_it_and_both_nodes_show_it() {
    let pair = Pair::start("beat", "");
    let (li, wang) = (pair.li(), pair.wang());
    let (mut at_a, mut at_b) = (li.live().await, wang.live().await);
    assert_eq!(at_a.job(JOB)["state"], "off");

    li.switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    for live in [&mut at_a, &mut at_b] {
        let job = live.until_state(JOB, "running").await;
        assert_eq!(job["lease"]["node"], first.node.as_str());
        assert_eq!(job["lease"]["token"], first.token);
        assert_eq!(job["run"]["pid"], first.pid);
        assert_eq!(users(&job), ["li"]);
        assert_eq!(job["wanted"], true);
        let step = |job: &Value| job["run"]["progress"]["done"].as_u64().unwrap_or(0);
        let before = step(&job);
        let job = live.until(JOB, "progress moves", |job| step(job) > before).await;
        assert_eq!(job["run"]["progress"]["total"], 100_000);
    }
    until_async("the output is kept", async || {
        let log = wang.get(&format!("/api/v1/jobs/{JOB}/log?limit=50")).await;
        let lines = log["lines"].as_array().expect("lines").clone();
        assert!(lines.iter().all(|line| line["text"] != "::progress 1/100000 step 1"));
        lines.iter().any(|line| line["text"] == "this is step 25").then_some(())
    })
    .await;

    wang.switch(JOB, true).await;
    let both = at_a.until(JOB, "both want it", |job| users(job).len() == 2).await;
    assert_eq!(users(&both), ["li", "wang"]);
    li.switch(JOB, false).await;
    at_b.until(JOB, "li has left", |job| users(job) == ["wang"]).await;
    pair.witness.until_more(first.token, 20);
    assert_eq!(pair.witness.starts(), 1, "it ran on without a restart");

    wang.switch(JOB, false).await;
    for live in [&mut at_a, &mut at_b] {
        live.until_state(JOB, "off").await;
        nobody_lives(&pair.witness);
        // A socket keeps which jobs have changed and no queue of states: who is late sees the newest.
        let stopping = live.seen.contains(&(JOB.to_owned(), "stopping".to_owned()));
        in_time(stopping, || "it was not shown as stopping".to_owned());
    }
    let last = pair.witness.acts().pop().expect("acts");
    assert_eq!(last.word, "end", "the script had its grace: {last:?}");
    let runs = li.runs(JOB).await;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["end"], "stopped");
    assert_eq!(runs[0]["processes_killed"], 0);
    pair.witness.check();
}

async fn off_is_shown_only_after_a_tree_that_ignores_term_is_dead() {
    let pair = Pair::start("stubborn", "stop_grace = \"700ms\"");
    let li = pair.li();
    let mut live = pair.wang().live().await;
    li.switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    until_async("the grandchild beats", async || {
        pair.witness.acts().iter().any(|act| act.pid != first.pid).then_some(())
    })
    .await;
    assert!(pair.witness.living().len() >= 2, "the script and its grandchild");
    li.switch(JOB, false).await;
    let stopping = live.until_state(JOB, "stopping").await;
    assert_ne!(stopping["lease"], Value::Null, "the lease stays until all is gone");
    live.until_state(JOB, "off").await;
    nobody_lives(&pair.witness);
    let acts = pair.witness.acts();
    let ignored = acts.iter().find(|act| act.word == "ignored").expect("TERM came first");
    let grace = acts.last().expect("acts").at - ignored.at;
    assert!(grace >= 0.5, "KILL came {grace} s after TERM, not after 0.7 s");
    within(Duration::from_secs_f64(grace), Duration::from_secs(3), "KILL after a grace of 0.7 s");
    let runs = li.runs(JOB).await;
    assert_eq!(runs[0]["end"], "stopped");
    assert!(runs[0]["processes_killed"].as_u64() >= Some(1), "{}", runs[0]);
}

async fn a_crash_is_retried_with_growing_waits_and_stop_beats_restart() {
    let pair = Pair::start("crash", "backoff = { first = \"400ms\", max = \"20s\" }");
    let li = pair.li();
    let mut live = pair.wang().live().await;
    li.switch(JOB, true).await;
    let fourth = pair.witness.until_started(4);
    let starts: Vec<f64> =
        pair.witness.acts().iter().filter(|act| act.word == "start").map(|act| act.at).collect();
    for (nth, least) in [0.32, 0.64, 1.28].iter().enumerate() {
        // Jitter shortens a wait by a fifth at most; hundredths of a second are what the script can read.
        let waited = starts[nth + 1] - starts[nth];
        assert!(waited >= least - 0.02, "wait {nth} was {waited} s, not {least} s or more");
    }
    // Older pictures wait to be read, and they look the same.
    until_async("the fourth has ended", async || {
        let runs = li.runs(JOB).await;
        (runs.len() == 4 && runs[0]["ended"].is_string()).then_some(())
    })
    .await;
    let backing_off = live
        .until(JOB, "backing off for the fourth time", |job| {
            job["state"] == "backing_off"
                && job["last_exit"]["code"] == 3
                && job["lease"] == Value::Null
                && pair.witness.starts() == 4
        })
        .await;
    assert_eq!(backing_off["next"]["what"], "retry");
    li.switch(JOB, false).await;
    live.until_state(JOB, "off").await;
    let runs = li.runs(JOB).await;
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run["end"] == "crashed" && run["exit"]["code"] == 3), "{runs:?}");
    // The fifth was due 2.6 to 3.2 s after the fourth. That moment passes, and nobody starts.
    until_async("the retry's moment has passed", async || {
        let text = std::fs::read_to_string("/proc/uptime").expect("Linux");
        let now: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("seconds");
        (now > fourth.at + 3.5).then_some(())
    })
    .await;
    assert_eq!(pair.witness.starts(), 4, "stop beats restart");

    // Nobody resets anything: switching on is all, and the row of crashes begins anew.
    li.switch(JOB, true).await;
    let sixth = pair.witness.until_started(6);
    let fifth = pair.witness.until_started(5);
    let waited = Duration::from_secs_f64(sixth.at - fifth.at);
    within(waited, Duration::from_secs(2), "the waits began anew");
    pair.witness.check();
}

async fn attempts_run_out_and_switching_on_again_starts_over() {
    let more = "backoff = { first = \"20ms\", max = \"40ms\" }\ngive_up_after = 3";
    let pair = Pair::start("crash", more);
    let (li, wang) = (pair.li(), pair.wang());
    let mut live = wang.live().await;
    li.switch(JOB, true).await;
    live.until_state(JOB, "given_up").await;
    assert_eq!(pair.witness.starts(), 3);
    wang.switch(JOB, true).await;
    let _sixth = pair.witness.until_started(6);
    live.until_state(JOB, "given_up").await;
    pair.witness.check();
}

async fn exit_0_repeats_however_short_the_run_was() {
    let pair = Pair::start("once", "repeat = \"50ms\"");
    let li = pair.li();
    let mut live = pair.wang().live().await;
    li.switch(JOB, true).await;
    let _fifth = pair.witness.until_started(5);
    assert!(li.runs(JOB).await.iter().skip(1).all(|run| run["end"] == "exited"));
    assert!(live.seen.iter().all(|(_, state)| state != "backing_off"));
    li.switch(JOB, false).await;
    live.until_state(JOB, "off").await;
    pair.witness.check();
}

async fn a_job_that_never_repeats_is_off_when_it_is_done() {
    let pair = Pair::start("once", "repeat = \"never\"");
    let mut live = pair.wang().live().await;
    pair.li().switch(JOB, true).await;
    let _first = pair.witness.until_started(1);
    let done =
        live.until(JOB, "done", |job| job["state"] == "off" && job["last_exit"]["code"] == 0);
    assert_eq!(users(&done.await), Vec::<&str>::new());
    assert_eq!(pair.witness.starts(), 1);
    pair.wang().switch(JOB, true).await;
    let _second = pair.witness.until_started(2);
    pair.witness.check();
}

async fn a_hold_stops_a_job_and_the_resume_starts_it_again_by_itself() {
    let pair = Pair::start("beat", "");
    let (li, wang) = (pair.li(), pair.wang());
    let mut live = wang.live().await;
    li.switch(JOB, true).await;
    let _first = pair.witness.until_started(1);
    let path = format!("/api/v1/jobs/{JOB}/hold");
    let reason = Some(json!({"reason": "stock-taking"}));
    assert_eq!(wang.call(Method::PUT, &path, reason).await.0, StatusCode::OK);
    let held = live.until_state(JOB, "held").await;
    nobody_lives(&pair.witness);
    assert_eq!(held["hold"]["reason"], "stock-taking");
    assert_eq!(held["wanted"], false);
    assert_eq!(users(&held), ["li"], "the switch stays as it was");
    assert!(wang.call(Method::DELETE, &path, None).await.0.is_success());
    let _second = pair.witness.until_started(2);
    pair.witness.check();
}

async fn a_moved_job_goes_to_the_named_node_and_back_without_an_overlap() {
    let pair = Pair::start("beat", "");
    let li = pair.li();
    li.switch(JOB, true).await;
    let mut holder = pair.witness.until_started(1).node;
    for nth in 2..5 {
        let to = if holder == "node-a" { "node-b" } else { "node-a" };
        let path = format!("/api/v1/jobs/{JOB}/move");
        let body = json!({ "to": to, "reason": "  new disk\n" });
        let (status, answer) = li.call(Method::POST, &path, Some(body)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        let noted = li.get("/api/v1/audit?act=job.move&limit=1").await;
        assert_eq!(noted["entries"][0]["reason"], format!("to {to}: new disk"), "{noted}");
        let next = pair.witness.until_started(nth);
        assert_eq!(next.node, to);
        holder = next.node;
    }
    let path = format!("/api/v1/nodes/{holder}/drain");
    assert!(li.call(Method::PUT, &path, None).await.0.is_success());
    assert_ne!(pair.witness.until_started(5).node, holder, "a drained node is emptied");
    let ends = pair.witness.acts().iter().filter(|act| act.word == "end").count();
    assert_eq!(ends, 4, "every hand-over was a graceful stop");
    pair.witness.check();
}

async fn a_job_asked_to_move_to_a_node_that_has_just_died_runs_again_where_it_was() {
    for on_redis in [true, false] {
        for named in [true, false] {
            let redis = on_redis.then(|| RedisServer::start(&[]));
            let store = redis.as_ref().map_or("sqlite:soloist.db".to_owned(), RedisServer::url);
            let ground = Ground::new(&store, &witness::job(JOB, "beat", ""));
            witness::place(&ground);
            ground.add_user("li", "operator");
            let token = ground.token("li");
            let (mut a, mut b) = (ground.start("node-a"), ground.start("node-b"));
            let witness = Witness::of(&ground, JOB);
            a.api(&token).switch(JOB, true).await;
            let holder = witness.until_started(1).node;
            let (dead, left) = if holder == "node-a" { (&mut b, &mut a) } else { (&mut a, &mut b) };
            dead.kill();
            let body = if named { json!({ "to": dead.name }) } else { json!({}) };
            let (status, answer) = left.api(&token).call(Method::POST, MOVE, Some(body)).await;
            in_time(status == StatusCode::ACCEPTED, || {
                format!("its last report is still fresh, so it counts as alive: {answer}")
            });
            assert_eq!(witness.until_started(2).node, holder, "nobody else lives");
            witness.check();
            until_async("the dead node counts as silent", async || {
                let nodes = left.api(&token).get("/api/v1/nodes").await;
                let nodes = nodes["nodes"].as_array().expect("nodes").clone();
                nodes.iter().any(|node| node["alive"] == false).then_some(())
            })
            .await;
            for body in [json!({ "to": dead.name }), json!({})] {
                let (status, answer) = left.api(&token).call(Method::POST, MOVE, Some(body)).await;
                assert_eq!(status, StatusCode::CONFLICT, "it would strand the job: {answer}");
            }
        }
    }
}

async fn a_job_that_rests_moves_before_its_next_run() {
    let pair = Pair::start("once", "repeat = \"2s\"\n");
    let li = pair.li();
    li.switch(JOB, true).await;
    let first = pair.witness.until_started(1).node;
    let other = if first == "node-a" { "node-b" } else { "node-a" };
    until_async("it rests", async || {
        let job = li.get("/api/v1/jobs/outbound").await;
        (job["lease"].is_null() && job["next"]["what"] == "repeat").then_some(())
    })
    .await;
    let (status, answer) = li.call(Method::POST, MOVE, Some(json!({ "to": other }))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let began = pair.witness.until_started(2);
    in_time(began.node == other, || format!("it was asked to move before: {began:?}"));
    pair.witness.check();
}
