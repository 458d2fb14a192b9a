//! What becomes of ticks is told to people and to a service outside: real nodes, jobs that are late, miss a tick, lose a run, end too
//! quickly or without success, and a receiver in this process.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::alerts::{Receiver, SECRET};
use crate::support::api::Api;
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

/// Alerts of these kinds, told to the receiver.
fn rules(receiver: &Receiver, kinds: &[&str]) -> String {
    let rules: String = kinds
        .iter()
        .map(|kind| {
            let (when, lasting) = kind.split_once(' ').unwrap_or((kind, ""));
            let lasting = if lasting.is_empty() { "" } else { &format!("for = {lasting:?}\n") };
            format!("[[alert]]\nwhen = {when:?}\n{lasting}to = [\"ops\"]\n")
        })
        .collect();
    let url = &receiver.url;
    format!(
        "{rules}[channel.ops]\nkind = \"webhook\"\nurl = \"{url}/webhook\"\nsecret = \"{SECRET}\"\n"
    )
}

/// The job `settle` with these keys.
fn job(keys: &str) -> String {
    format!(
        "[[job]]\nname = \"settle\"\ntitle = {{ en = \"Settlement\", zh = \"结算\" }}\nlease_ttl = \"2s\"\n{keys}\n"
    )
}

/// What the receiver was told of an alert: its begin or its end.
async fn told(receiver: &Receiver, alert: &str, kind: &str) -> Value {
    until_async(&format!("{alert} is told: {kind}"), async || {
        let came = receiver.came();
        let its = came.into_iter().map(|one| one.body);
        its.clone().find(|body| body["alert"] == alert && body["type"] == kind)
    })
    .await
}

fn english(body: &Value) -> &str {
    body["text"]["en"].as_str().expect("text")
}

fn count(receiver: &Receiver, alert: &str) -> usize {
    receiver.came().iter().filter(|came| came.body["alert"] == alert).count()
}

/// How often an address was called.
fn beats(receiver: &Receiver, path: &str) -> usize {
    receiver.came().iter().filter(|came| came.path == path).count()
}

/// One node on a store of its own, and an operator.
fn alone(text: &str) -> (Ground, Node, Api) {
    let ground = Ground::new("sqlite:soloist.db", text);
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let li = node.api(&ground.token("li"));
    (ground, node, li)
}

async fn ticks(li: &Api, outcome: &str) -> Vec<Value> {
    let path = format!("/api/v1/jobs/settle/ticks?limit=500&outcome={outcome}");
    li.get(&path).await["ticks"].as_array().expect("ticks").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_no_node_may_run_is_told_with_its_cause_and_then_as_missed() {
    let receiver = Receiver::start();
    let keys =
        "command = [\"true\"]\nevery = \"6s\"\nnodes = [\"node-z\"]\nstart_within = \"2500ms\"";
    let kinds = ["not_started", "missed_tick"];
    let (ground, _a, li) = alone(&format!("{}{}", job(keys), rules(&receiver, &kinds)));
    li.switch("settle", true).await;
    let begin = told(&receiver, "not_started", "alert.begin").await;
    let said = english(&begin);
    assert!(said.contains("Settlement") && said.contains("should have started by"), "{said}");
    assert!(said.contains("no living node may run it"), "the cause: {said}");
    assert!(begin["text"]["zh"].as_str().expect("text").contains("存活的节点都不允许"), "{begin}");
    assert_eq!(begin["job"], "settle");
    let missed = told(&receiver, "missed_tick", "alert.begin").await;
    assert!(english(&missed).contains("nobody took it in time"), "{missed}");
    let page = li.get("/api/v1/alerts").await;
    let on = page["alerts"][1]["on"][0]["text"].as_str().expect("text").to_owned();
    assert!(on.contains("a tick was missed") && on.contains("nobody took it in time"), "{on}");
    let why = li.get("/api/v1/jobs/settle").await["why"].clone();
    let z = ground.start("node-z");
    let over = told(&receiver, "not_started", "alert.end").await;
    assert!(english(&over).starts_with("Over: a tick of Settlement"), "{over}");
    assert_eq!(over["since"], begin["since"]);
    told(&receiver, "missed_tick", "alert.end").await;
    assert_eq!((count(&receiver, "not_started"), count(&receiver, "missed_tick")), (2, 2), "{why}");
    drop(z);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_no_machine_can_start_is_missed_with_what_each_lacks() {
    let receiver = Receiver::start();
    let keys = "command = [\"no-such-program\"]\nevery = \"1s\"\nmissed = \"skip\"";
    let text = format!("{}{}", job(keys), rules(&receiver, &["missed_tick"]));
    let (ground, _a, li) = alone(&text);
    li.switch("settle", true).await;
    let lacks = "it could not be started: node-a: command: \"no-such-program\" is not found";
    let told = told(&receiver, "missed_tick", "alert.begin").await;
    assert!(english(&told).contains(lacks), "{told}");
    assert!(told["text"]["zh"].as_str().expect("text").contains("无法启动：node-a: "), "{told}");
    let missed = ticks(&li, "missed").await;
    assert!(missed[0]["why"].as_str().expect("why").starts_with(lacks), "{missed:?}");
    let printed = ground.must(&["ticks", "settle", "--outcome", "missed"]);
    assert!(printed.contains(lacks), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_a_cause_and_off_is_none() {
    let receiver = Receiver::start();
    let keys = "command = [\"true\"]\nevery = \"3s\"\nstart_within = \"1s\"";
    let text = format!("{}{}", job(keys), rules(&receiver, &["not_started"]));
    let (ground, _a, li) = alone(&text);
    ground.must(&["hold", "settle", "--user", "li", "--reason", "stocktaking"]);
    li.switch("settle", true).await;
    let begin = told(&receiver, "not_started", "alert.begin").await;
    assert!(english(&begin).contains("held by li: stocktaking"), "{begin}");
    li.switch("settle", false).await;
    told(&receiver, "not_started", "alert.end").await;
    ground.must(&["resume", "settle", "--user", "li"]);
    until_async("ticks pass that nobody wants", async || {
        let gaps = ticks(&li, "unwanted").await;
        gaps.iter().any(|gap| gap["count"].as_u64() >= Some(2)).then_some(())
    })
    .await;
    assert_eq!(count(&receiver, "not_started"), 2, "off is no cause: {:?}", receiver.came());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_does_not_end_in_time_is_told_until_it_does() {
    let receiver = Receiver::start();
    let keys = "command = [\"sh\", \"-c\", \"until test -e go; do sleep 0.1; done\"]\nevery = \"3s\"\nfinish_within = \"1s\"";
    let text = format!("{}{}", job(keys), rules(&receiver, &["not_finished"]));
    let (ground, _a, li) = alone(&text);
    li.switch("settle", true).await;
    let begin = told(&receiver, "not_finished", "alert.begin").await;
    assert!(english(&begin).contains("should have ended by"), "{begin}");
    std::fs::write(ground.path("go"), "").expect("written");
    let over = told(&receiver, "not_finished", "alert.end").await;
    assert!(english(&over).contains("overdue any more"), "{over}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_tick_is_told_by_the_node_that_is_left() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    let keys = "command = [\"sleep\", \"600\"]\nevery = \"1h\"\non_loss = \"spent\"";
    let ground =
        Ground::new(&redis.url(), &format!("{}{}", job(keys), rules(&receiver, &["tick_lost"])));
    ground.add_user("li", "operator");
    let (mut a, mut b) = (ground.start("node-a"), ground.start("node-b"));
    let token = ground.token("li");
    let li = a.api(&token);
    let (status, said) = li.call(Method::POST, "/api/v1/jobs/settle/runs", Some(json!({}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{said}");
    let holder = until_async("somebody is at work", async || {
        let job = li.get("/api/v1/jobs/settle").await;
        job["run"]["id"].as_str()?;
        job["lease"]["node"].as_str().map(ToOwned::to_owned)
    })
    .await;
    if holder == a.name {
        a.kill()
    } else {
        b.kill()
    }
    let begin = told(&receiver, "tick_lost", "alert.begin").await;
    let said = english(&begin);
    assert!(said.contains(&format!("{holder} was lost")), "{said}");
    assert!(said.contains("soloist trigger settle --tick"), "what to do: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_too_quick_is_told_and_the_address_of_its_heartbeat_is_called_each_time() {
    let receiver = Receiver::start();
    let url = &receiver.url;
    let keys = format!(
        "command = [\"sh\", \"-c\", \"test ! -e slow || sleep 1.2\"]\nevery = \"2s\"\nat_least = \"1s\"\nheartbeat_url = \"{url}/job-sesame\""
    );
    let top = format!("heartbeat_url = \"{url}/all-sesame\"\n");
    let text = format!("{top}{}{}", job(&keys), rules(&receiver, &["too_quick"]));
    let (ground, node, li) = alone(&text);
    li.switch("settle", true).await;
    let begin = told(&receiver, "too_quick", "alert.begin").await;
    let said = english(&begin);
    assert!(said.contains("too quickly") && said.contains("at_least is 1 s"), "{said}");
    std::fs::write(ground.path("slow"), "").expect("written");
    told(&receiver, "too_quick", "alert.end").await;
    li.switch("settle", false).await;
    until_async("no run is left", async || {
        (li.get("/api/v1/jobs/settle").await["state"] == "off").then_some(())
    })
    .await;
    let done = ticks(&li, "done").await.len();
    until_async("each success was told", async || {
        (beats(&receiver, "/job-sesame") >= done).then_some(())
    })
    .await;
    assert_eq!(beats(&receiver, "/job-sesame"), done, "and nothing else was");
    assert!((1..=2).contains(&beats(&receiver, "/all-sesame")), "once a minute");
    let ada = ground.must(&["user", "list"]);
    assert!(!ada.contains("sesame"));
    for path in ["/jobs/settle/configuration", "/alerts", "/api/v1/jobs/settle", "/api/v1/nodes"] {
        let page = crate::support::http::client().build().expect("a client");
        let page = page.get(format!("{}{path}", node.url)).bearer_auth(li.token());
        let page = page.send().await.expect("an answer").text().await.expect("text");
        assert!(!page.contains("sesame"), "{path}: {page}");
        assert!(path != "/jobs/settle/configuration" || page.contains("heartbeat_url"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_ask_is_told_and_its_success_is_a_heartbeat() {
    let receiver = Receiver::start();
    let keys = format!(
        "runner = \"external\"\nevery = \"4s\"\nmissed_window = \"1h\"\nstart_within = \"1s\"\nheartbeat_url = \"{}/done\"",
        receiver.url
    );
    // It need not renew for as long as this test lasts.
    let job = job(&keys).replace("lease_ttl = \"2s\"", "lease_ttl = \"60s\"");
    let (_ground, _a, li) = alone(&format!("{job}{}", rules(&receiver, &["not_started"])));
    li.switch("settle", true).await;
    let begin = told(&receiver, "not_started", "alert.begin").await;
    assert!(english(&begin).contains("No program has asked for it yet."), "{begin}");
    let ask = json!({"holder": "shop-7f", "request_id": "one", "wait_ms": 10_000});
    let (status, grant) = li.call(Method::POST, "/api/v1/leases/settle", Some(ask)).await;
    assert_eq!((status, grant["tick"].is_string()), (StatusCode::OK, true), "{grant}");
    told(&receiver, "not_started", "alert.end").await;
    assert_eq!(beats(&receiver, "/done"), 0, "it has begun and not ended");
    let end = json!({"secret": grant["secret"], "end": "done", "code": 0});
    let (status, said) = li.call(Method::POST, "/api/v1/leases/settle/release", Some(end)).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    until_async("its heartbeat is called", async || (beats(&receiver, "/done") == 1).then_some(()))
        .await;
}

/// A node whose log goes into a file.
struct Logged(Child);

impl Drop for Logged {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_heartbeat_that_fails_stops_nothing_and_is_said_in_the_log_without_its_address() {
    // Nobody listens there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = closed.local_addr().expect("an address");
    drop(closed);
    let url = format!("heartbeat_url = \"http://{at}/sesame\"\n");
    let keys = format!("command = [\"true\"]\nevery = \"1s\"\n{url}");
    let ground = Ground::new("sqlite:soloist.db", &format!("{url}{}", job(&keys)));
    ground.add_user("li", "operator");
    let log = File::create(ground.path("log")).expect("a file");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--node", "node-a"];
    let child = ground.command(&serve).stdout(Stdio::null()).stderr(log).spawn();
    let _node = Logged(child.expect("it starts"));
    ground.must(&["on", "settle", "--user", "li"]);
    let said = || std::fs::read_to_string(ground.path("log")).unwrap_or_default();
    until("both failures are said", || {
        let said = said();
        let both = ["the heartbeat of a job was not taken", "the heartbeat of the cluster was not"];
        both.iter().all(|line| said.contains(line)).then_some(())
    });
    let lines = said();
    assert!(lines.contains("connection refused"), "{lines}");
    assert!(!lines.contains("sesame") && !lines.contains(&at.to_string()), "{lines}");
    until("the job runs on", || {
        let list = ground.must(&["ticks", "settle", "--json", "--outcome", "done"]);
        let list: Value = serde_json::from_str(&list).expect("JSON");
        (list["ticks"].as_array()?.len() >= 3).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn no_success_for_too_long_is_told_of_a_continuous_job_too() {
    let receiver = Receiver::start();
    let keys = "command = [\"sh\", \"-c\", \"test -e go\"]\nrepeat = \"200ms\"\nbackoff = { first = \"100ms\", max = \"200ms\" }";
    let text = format!("{}{}", job(keys), rules(&receiver, &["no_success_for 2s"]));
    let (ground, _a, li) = alone(&text);
    li.switch("settle", true).await;
    let begin = told(&receiver, "no_success_for", "alert.begin").await;
    assert!(english(&begin).contains("has had no success since"), "{begin}");
    std::fs::write(ground.path("go"), "").expect("written");
    let over = told(&receiver, "no_success_for", "alert.end").await;
    assert!(english(&over).contains("has ended well"), "{over}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_became_of_ticks_and_say_when_the_last_success_was() {
    let (_ground, node, li) = alone(&job("command = [\"true\"]\nevery = \"1s\""));
    let metrics = async || {
        let answer = crate::support::http::get(format!("{}/metrics", node.url)).await;
        answer.expect("an answer").text().await.expect("text")
    };
    let value = |text: &str, series: &str| -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?.parse().ok()
    };
    let done = "soloist_schedule_ticks_total{job=\"settle\",outcome=\"done\"}";
    let next = "soloist_schedule_next_timestamp_seconds{job=\"settle\"}";
    let success = "soloist_job_last_success_timestamp_seconds{job=\"settle\"}";
    let before = metrics().await;
    assert_eq!(value(&before, done), Some(0.0), "{before}");
    assert_eq!((value(&before, next), value(&before, success)), (None, None), "nobody wants it");
    li.switch("settle", true).await;
    let text = until_async("three ticks are counted", async || {
        let text = metrics().await;
        (value(&text, done) >= Some(3.0)).then_some(text)
    })
    .await;
    let now = jiff::Timestamp::now().as_second();
    #[expect(clippy::cast_precision_loss, reason = "seconds of this century are exact")]
    let near = |series| value(&text, series).is_some_and(|at| (at - now as f64).abs() < 10.0);
    assert!(near(next) && near(success), "{text}");
    let counted = value(&text, "soloist_schedule_lateness_seconds_count");
    assert!(counted >= Some(3.0), "{text}");
    li.switch("settle", false).await;
    let told = until_async("the count is that of the list", async || {
        let list: u64 =
            ticks(&li, "done").await.iter().filter_map(|one| one["count"].as_u64()).sum();
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        let same = value(&metrics().await, done) == Some(list as f64);
        same.then_some(list)
    })
    .await;
    assert!(told >= 3);
    assert_eq!(value(&metrics().await, next), None, "nobody wants it any more");
}

/// A table of zones in which Berlin has the times of `from`.
fn zones(dir: &Path, from: &str) {
    let known = Path::new("/usr/share/zoneinfo");
    std::fs::create_dir_all(dir.join("Europe")).expect("a directory");
    std::fs::copy(known.join(from), dir.join("Europe/Berlin")).expect("a zone");
    std::fs::copy(known.join("Etc/UTC"), dir.join("UTC")).expect("a zone");
}

#[tokio::test(flavor = "multi_thread")]
async fn zone_tables_differ_where_they_give_a_schedule_other_times_and_nowhere_else() {
    let redis = RedisServer::start(&[]);
    let text = job("command = [\"true\"]\nschedule = \"30 2 * * *\"\nzone = \"Europe/Berlin\"");
    let ground = Ground::new(
        &redis.url(),
        &format!("{text}[[job]]\nname = \"plain\"\ncommand = [\"true\"]\n"),
    );
    ground.add_user("li", "operator");
    let (same, other) = (ground.path("same"), ground.path("other"));
    zones(&same, "Europe/Berlin");
    // As Berlin was to be without summer time.
    zones(&other, "Africa/Algiers");
    let a = ground.start("node-a");
    let _b = ground.start_with("node-b", &[("TZDIR", &same)]);
    let mut c = ground.start_with("node-c", &[("TZDIR", &other)]);
    let li = a.api(&ground.token("li"));
    let drift = async |job: &str| li.get(&format!("/api/v1/jobs/{job}")).await["drift"].clone();
    let expected = json!([{"node": "node-c", "differs": ["zone_table"]}]);
    until_async("the other table is told", async || {
        (drift("settle").await == expected).then_some(())
    })
    .await;
    assert_eq!(drift("plain").await, json!([]), "no zone counts for it");
    let status = ground.must(&["status"]);
    let said = "the zone table of node-c gives settle other times than most: update its tzdata";
    assert!(status.contains(said), "{status}");
    let (_, findings) = crate::doctor::examined(&ground, &[]);
    let what = |check: &str, verdict| crate::doctor::found(&findings, check, verdict).to_owned();
    assert!(what("definitions", "warn").contains(said), "{findings:#?}");
    let named: BTreeSet<&str> = findings.iter().filter_map(|one| one["check"].as_str()).collect();
    assert!(named.contains("zone table"), "{findings:#?}");
    assert!(findings.iter().any(|one| {
        one["check"] == "zone table"
            && one["what"].as_str().is_some_and(|what| what.contains("Europe/Berlin"))
    }));
    let client = crate::support::http::client().build().expect("a client");
    let page = client.get(format!("{}/jobs/settle/configuration", a.url));
    let page = page.bearer_auth(li.token()).send().await.expect("a page");
    let page = page.text().await.expect("text");
    assert!(page.contains("other times by its zone table"), "{page}");
    assert_eq!(c.terminate(), Some(0));
    until_async("nothing differs any more", async || {
        (drift("settle").await == json!([])).then_some(())
    })
    .await;
}
