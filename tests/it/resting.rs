//! A healthy pause: a job between two runs is `resting`, and no trouble; when no node may take it, it is `waiting`.

use serde_json::Value;

use crate::support::api::Live;
use crate::support::node::Ground;
use crate::support::wait::until_async;
use crate::support::witness;

const JOB: &str = "outbound";

/// One series of `/metrics`, read from this machine without a login.
async fn metric(url: &str, series: &str) -> f64 {
    let answer = crate::support::http::get(format!("{url}/metrics")).await.expect("an answer");
    let text = answer.text().await.expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} in\n{text}")).parse().expect("a number")
}

async fn until_metric(url: &str, series: &str, fits: impl Fn(f64) -> bool) {
    until_async(series, async || fits(metric(url, series).await).then_some(())).await;
}

async fn until_state(live: &mut Live, state: &str) -> Value {
    live.until_state(JOB, state).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_between_two_runs_rests_and_waits_only_when_no_node_may_take_it() {
    const TROUBLE: &str = "soloist_job_wanted_not_running_seconds{job=\"outbound\"}";
    let ground = Ground::new("sqlite:soloist.db", &witness::job(JOB, "once", "repeat = \"1h\""));
    witness::place(&ground);
    ground.add_user("li", "operator");
    ground.add_user("ada", "admin");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    let mut live = api.live().await;
    api.switch(JOB, true).await;

    let resting = until_state(&mut live, "resting").await;
    assert_eq!((&resting["wanted"], &resting["lease"]), (&true.into(), &Value::Null));
    assert_eq!(resting["next"]["what"], "repeat");
    let why = resting["why"].as_str().expect("a paragraph");
    assert!(why.contains("the last one ended well") && why.contains("wanted by li"), "{why}");
    let state = |state: &str| format!("soloist_job_state{{job=\"outbound\",state=\"{state}\"}}");
    until_metric(&node.url, &state("resting"), |value| value > 0.0).await;
    assert!(metric(&node.url, &state("waiting")).await.abs() < f64::EPSILON);
    assert!(metric(&node.url, TROUBLE).await.abs() < f64::EPSILON, "no trouble");
    let row = ground.must(&["status", JOB]);
    assert!(row.contains(" resting ") && row.contains("repeat at "), "{row}");
    assert!(ground.must(&["why", JOB]).contains("Resting between two runs"));

    ground.must(&["drain", "node-a", "--user", "ada"]);
    let waiting = until_state(&mut live, "waiting").await;
    let why = waiting["why"].as_str().expect("a paragraph");
    assert!(why.contains("every node that may run it is being drained"), "{why}");
    assert_eq!(waiting["version"], resting["version"], "only the nodes have changed");
    until_metric(&node.url, TROUBLE, |seconds| seconds > 0.0).await;
    let row = ground.must(&["status", JOB]);
    assert!(row.contains(" waiting ") && row.contains("when a node may take it"), "{row}");

    ground.must(&["undrain", "node-a", "--user", "ada"]);
    until_state(&mut live, "resting").await;
    until_metric(&node.url, TROUBLE, |seconds| seconds == 0.0).await;
    assert_eq!(api.runs(JOB).await.len(), 1);

    let document = api.get("/api/v1/openapi.json").await;
    let words = &document["components"]["schemas"]["Job"]["properties"]["state"]["enum"];
    let words = words.as_array().expect("the words of a state");
    assert_eq!(words.len(), 13, "{words:?}");
    assert!(words.contains(&"resting".into()), "{words:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_without_output_are_one_entry_of_the_history_on_the_page_too() {
    let job = format!("[[job]]\nname = \"{JOB}\"\ncommand = [\"true\"]\nrepeat = \"5ms\"\n");
    let ground = Ground::new("sqlite:soloist.db", &job);
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    api.switch(JOB, true).await;
    let runs = until_async("runs are folded", async || {
        let runs = api.runs(JOB).await;
        runs.iter().any(|run| run["folded"].as_u64() >= Some(5)).then_some(runs)
    })
    .await;
    assert!(runs.len() <= 2, "one entry, and the run that goes on: {runs:?}");
    let folded = runs.iter().find(|run| !run["folded"].is_null()).expect("it is there");
    assert_eq!((&folded["end"], &folded["exit"]["code"]), (&"exited".into(), &0.into()));
    assert!(folded["ended"].as_str() > folded["started"].as_str(), "{folded}");
    assert!(ground.must(&["runs", JOB]).contains(" alike"));
}
