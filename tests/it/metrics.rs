//! `/metrics` of real nodes: every name is there from the start, and the figures are those of what happened.

use nix::sys::signal::Signal;

use crate::lifecycle::{JOB, Pair};
use crate::support::node::Node;
use crate::support::wait::until_async;

/// Every metric but those of rotations and of single ticks and successes.
const NAMES: [&str; 13] = [
    "soloist_dispatch_claims_total",
    "soloist_job_state",
    "soloist_job_wanted_not_running_seconds",
    "soloist_lease_margin_seconds",
    "soloist_takeover_seconds",
    "soloist_lease_lost_total",
    "soloist_run_crashes_total",
    "soloist_run_timed_out_total",
    "soloist_live_connections",
    "soloist_live_push_seconds",
    "soloist_live_resyncs_total",
    "soloist_store_call_seconds",
    "soloist_schedule_lateness_seconds",
];

/// From this machine, without a login.
async fn metrics(url: &str) -> String {
    let answer = crate::support::http::get(format!("{url}/metrics")).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.text().await.expect("text")
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} in\n{text}")).parse().expect("a number")
}

/// Waits until a series has reached a value, and gives the whole text.
async fn until_value(url: &str, series: &str, least: f64) -> String {
    until_async(&format!("{series} is {least}"), async || {
        let text = metrics(url).await;
        (value(&text, series) >= least).then_some(text)
    })
    .await
}

fn sorted<'a>(pair: &'a mut Pair, holder: &str) -> (&'a mut Node, &'a mut Node) {
    if pair.a.name == holder { (&mut pair.a, &mut pair.b) } else { (&mut pair.b, &mut pair.a) }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_name_is_there_from_the_start_with_its_help() {
    let pair = Pair::start("beat", "");
    let text = metrics(&pair.a.url).await;
    for name in NAMES {
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help in\n{text}");
        let sample = |line: &str| line.starts_with(name);
        assert!(text.lines().any(sample), "{name} has no sample in\n{text}");
    }
    for zero in [
        "soloist_lease_margin_seconds_count",
        "soloist_takeover_seconds_count",
        "soloist_lease_lost_total",
        "soloist_run_crashes_total{job=\"outbound\"}",
        "soloist_job_wanted_not_running_seconds{job=\"outbound\"}",
    ] {
        assert!(value(&text, zero).abs() < f64::EPSILON, "{zero}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_leave_a_margin_and_a_kill_9_a_take_over_far_below_the_lease() {
    let mut pair = Pair::start("beat", "lease_ttl = \"20s\"");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let (dying, living) = sorted(&mut pair, &first.node);
    let count = "soloist_lease_margin_seconds_count";
    let text = until_value(&dying.url, count, 2.0).await;
    // Every renewal found more than half of the lease, and none more than all of it.
    let below =
        |le: &str| value(&text, &format!("soloist_lease_margin_seconds_bucket{{le=\"{le}\"}}"));
    assert!(below("10").abs() < f64::EPSILON, "{text}");
    assert!((below("30") - value(&text, count)).abs() < f64::EPSILON, "{text}");
    assert!(value(&metrics(&living.url).await, count).abs() < f64::EPSILON);

    let url = living.url.clone();
    dying.kill();
    let text = until_value(&url, "soloist_takeover_seconds_count", 1.0).await;
    assert!(value(&text, "soloist_takeover_seconds_sum") < 10.0, "{text}");
    assert!(value(&text, "soloist_takeover_seconds_bucket{le=\"+Inf\"}") < 1.5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ran_out_is_a_take_over_too() {
    let mut pair = Pair::start("beat", "lease_ttl = \"2s\"");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let token = pair.li.clone();
    let (frozen, living) = sorted(&mut pair, &first.node);
    let api = living.api(&token);
    // A run that was never recorded is taken over by nobody.
    until_async("the start is recorded", async || (!api.runs(JOB).await.is_empty()).then_some(()))
        .await;
    frozen.signal(Signal::SIGSTOP);
    let text = until_value(&living.url, "soloist_takeover_seconds_count", 1.0).await;
    let sum = value(&text, "soloist_takeover_seconds_sum");
    assert!(sum < 2.0, "counted from the end of the lease: {sum}");
    frozen.signal(Signal::SIGCONT);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_not_waiting_takes_nothing_over() {
    let mut pair = Pair::start("beat", "");
    pair.ground.add_user("ada", "admin");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let other = if first.node == "node-a" { "node-b" } else { "node-a" };
    pair.ground.must(&["drain", other, "--user", "ada"]);
    let token = pair.li.clone();
    let (dying, living) = sorted(&mut pair, &first.node);
    let api = living.api(&token);
    until_async("the drain is known", async || {
        let nodes = api.get("/api/v1/nodes").await.to_string();
        nodes.contains("\"draining\":true").then_some(())
    })
    .await;
    dying.kill();
    until_async("the loss is recorded", async || {
        (api.runs(JOB).await[0]["end"] == "lost").then_some(())
    })
    .await;
    let url = living.url.clone();
    pair.ground.must(&["undrain", other, "--user", "ada"]);
    let _second = pair.witness.until_started(2);
    let text =
        until_value(&url, "soloist_job_state{job=\"outbound\",state=\"running\"}", 1.0).await;
    assert!(value(&text, "soloist_takeover_seconds_count").abs() < f64::EPSILON, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crashes_lost_leases_and_waiting_are_counted() {
    let mut pair = Pair::start("crash", "backoff = { first = \"60s\", max = \"60s\" }");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let (holder, _) = sorted(&mut pair, &first.node);
    let crashes = "soloist_run_crashes_total{job=\"outbound\"}";
    until_value(&holder.url, crashes, 1.0).await;
    let waiting = "soloist_job_wanted_not_running_seconds{job=\"outbound\"}";
    until_value(&holder.url, waiting, 0.1).await;

    let mut pair = Pair::start("beat", "");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let mut lease = pair.redis.lease("outbound");
    lease["owner"] = "another".into();
    let key = "soloist:{outbound}:lease";
    pair.redis.run::<()>(&["SET", key, &lease.to_string(), "KEEPTTL"]);
    let (holder, _) = sorted(&mut pair, &first.node);
    until_value(&holder.url, "soloist_lease_lost_total", 1.0).await;
}
