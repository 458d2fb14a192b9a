//! Nodes whose configurations differ: everybody is told, on every node the same, and no job is hidden.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

const SLEEP: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"600\"]\n";
const OTHER: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"601\"]\nenv = { PIN = \"sesame-sesame\" }\n[[job]]\nname = \"labels\"\ntitle = { en = \"Labels\", zh = \"标签\" }\ncommand = [\"sleep\", \"600\"]\noperators = [\"li\"]\nmin_uptime = \"0s\"\n";

async fn job(api: &Api, name: &str) -> Option<Value> {
    let jobs = api.get("/api/v1/jobs").await;
    jobs["jobs"].as_array()?.iter().find(|job| job["name"] == name).cloned()
}

async fn until_drift(api: &Api, name: &str, wanted: &Value) {
    until_async("the drift is told", async || {
        (job(api, name).await?["drift"] == *wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_defined_otherwise_or_elsewhere_is_told_alike_on_every_node() {
    let redis = RedisServer::start(&[]);
    let (one, two) = (Ground::new(&redis.url(), SLEEP), Ground::new(&redis.url(), OTHER));
    one.add_user("li", "operator");
    one.add_user("wang", "operator");
    let (li, wang) = (one.token("li"), one.token("wang"));
    let (a, b) = (one.start("node-a"), two.start("node-b"));
    let other = json!([{"node": "node-b", "differs": ["command", "env"]}]);
    let missing = json!([{"node": "node-a", "differs": ["missing"]}]);
    for api in [a.api(&li), b.api(&li)] {
        until_drift(&api, "outbound", &other).await;
        until_drift(&api, "labels", &missing).await;
        let nodes = api.get("/api/v1/nodes").await;
        let hash = |nth: usize| nodes["nodes"][nth]["jobs"]["outbound"].as_str().map(str::to_owned);
        assert!(hash(0).is_some() && hash(0) != hash(1), "{nodes}");
        assert!(!nodes.to_string().contains("sesame-sesame"), "no value is told: {nodes}");
    }
    for ground in [&one, &two] {
        let status = ground.must(&["status"]);
        let said = "drift: node-b defines outbound otherwise than most: command, env";
        assert!(status.contains(said) && status.contains("labels"), "{status}");
        let doctor = ground.run(&["doctor"]);
        let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert!(doctor.contains("node-b defines outbound otherwise"), "{doctor}");
        assert!(doctor.contains("node-a does not define labels"), "{doctor}");
    }

    // node-a cannot run it, and yet shows it live and switches it, for its operators.
    let at_a = a.api(&li);
    let mut live = at_a.live().await;
    assert_eq!(live.job("labels")["title"], "Labels");
    let path = "/api/v1/jobs/labels/participation";
    let (status, said) = a.api(&wang).call(Method::PUT, path, Some(json!({"on": true}))).await;
    assert_eq!(status, 403, "wang is not among its operators: {said}");
    at_a.switch("labels", true).await;
    let running = live.until_state("labels", "running").await;
    assert_eq!(running["lease"]["node"], "node-b");
    let client = crate::support::http::client().build().expect("a client");
    let page = client.get(format!("{}/", a.url)).bearer_auth(&li).send().await.expect("a page");
    let page = page.text().await.expect("text");
    assert!(page.contains("/jobs/labels"), "the page shows it");
    for said in [
        "data-fact=\"drift\"",
        "<strong>node-b</strong> has another configuration: outbound (command, env)",
        "<strong>node-a</strong> has another configuration: labels (missing there)",
        "<title>(2!) ",
    ] {
        assert!(page.contains(said), "the line at its top lacks {said}: {page}");
    }
    at_a.switch("labels", false).await;
    live.until_state("labels", "off").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_is_followed_without_a_new_socket_and_its_jobs_go_with_it() {
    let redis = RedisServer::start(&[]);
    let (one, two) = (Ground::new(&redis.url(), SLEEP), Ground::new(&redis.url(), OTHER));
    one.add_user("li", "operator");
    let li = one.token("li");
    let a = one.start("node-a");
    let at_a = a.api(&li);
    let mut live = at_a.live().await;
    let mut b = two.start("node-b");
    while live.frame().await["jobs"].as_array().is_none_or(|jobs| jobs.len() != 2) {}
    live.until_state("labels", "off").await;
    assert_eq!(b.terminate(), Some(0));
    until_async("its job is gone", async || job(&at_a, "labels").await.is_none().then_some(()))
        .await;
    until_drift(&at_a, "outbound", &json!([])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_only_another_node_has_is_shown_here_and_run_there() {
    const NIGHTLY: &str = "[[job]]\nname = \"nightly\"\ncommand = [\"true\"]\nschedule = \"30 2 * * *\"\nzone = \"Asia/Shanghai\"\n";
    let redis = RedisServer::start(&[]);
    let (one, two) = (Ground::new(&redis.url(), SLEEP), Ground::new(&redis.url(), NIGHTLY));
    one.add_user("li", "operator");
    let li = one.token("li");
    let (a, b) = (one.start("node-a"), two.start("node-b"));
    let (at_a, at_b) = (a.api(&li), b.api(&li));
    until_async("it is heard of", async || job(&at_a, "nightly").await).await;
    let mut live = at_a.live().await;
    at_b.switch("nightly", true).await;
    let shown = live.until_state("nightly", "scheduled").await;
    let there = job(&at_b, "nightly").await.expect("its own");
    assert_eq!(shown["schedule"]["words"], there["schedule"]["words"], "{shown}");
    assert!(shown["schedule"]["next"]["tick"].is_string(), "{shown}");
    let next = at_a.get("/api/v1/jobs/nightly/next?count=2").await;
    assert_eq!(next, at_b.get("/api/v1/jobs/nightly/next?count=2").await);
    let runs = "/api/v1/jobs/nightly/runs";
    let (status, said) = at_a.call(Method::POST, runs, Some(json!({}))).await;
    assert!(status == 409 && said.to_string().contains("ask one of them"), "{status} {said}");
    let client = crate::support::http::client().build().expect("a client");
    let page = client.get(format!("{}/jobs/nightly", a.url)).bearer_auth(&li).send().await;
    let page = page.expect("a page").text().await.expect("text");
    assert!(page.contains("id=\"ticks-next\"") && page.contains("02:30"), "{page}");
    assert!(!page.contains("/jobs/nightly/run\""), "it is started there: {page}");
    let (status, said) = at_b.call(Method::POST, runs, Some(json!({}))).await;
    assert_eq!(status, 202, "{said}");
}
