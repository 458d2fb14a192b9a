//! `max_runtime` and `max_silence`: a run that hangs is ended, with its whole tree, and tried again as after a crash.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{Api, Live};
use crate::support::machine::in_time;
use crate::support::node::{Ground, Node};
use crate::support::wait::until_async;

const JOB: &str = "outbound";

/// A job that runs this line of shell, with more keys.
fn job(name: &str, line: &str, more: &str) -> String {
    format!("[[job]]\nname = {name:?}\ncommand = [\"sh\", \"-c\", {line:?}]\n{more}\n")
}

/// A node alone, and an operator who looks.
async fn place(jobs: &str) -> (Ground, Node, Api, Live) {
    let ground = Ground::new("sqlite:soloist.db", jobs);
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    let live = api.live().await;
    (ground, node, api, live)
}

/// The ended runs, newest first, once there are so many.
async fn until_ended(api: &Api, name: &str, count: usize) -> Vec<Value> {
    until_async("runs have ended", async || {
        let mut runs = api.runs(name).await;
        runs.retain(|run| !run["ended"].is_null());
        (runs.len() >= count).then_some(runs)
    })
    .await
}

async fn log(api: &Api, name: &str) -> String {
    api.get(&format!("/api/v1/jobs/{name}/log")).await["lines"].to_string()
}

fn why(job: &Value) -> &str {
    job["why"].as_str().expect("a sentence")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lasts_too_long_is_stopped_tried_again_with_backoff_and_given_up() {
    let keys =
        "max_runtime = \"1s\"\nbackoff = { first = \"1s\", max = \"1s\" }\ngive_up_after = 2";
    let (_ground, node, api, mut live) = place(&job(JOB, "sleep 600 & sleep 600", keys)).await;
    api.switch(JOB, true).await;
    live.until(JOB, "it runs", |job| job["run"]["pid"].is_u64()).await;
    let page = page(&node, &api).await;
    assert!(page.contains("ends at the latest"), "{page}");
    let waits = live.until_state(JOB, "backing_off").await;
    assert!(why(&waits).contains("(timed out after 1 s: max_runtime)"), "{waits}");
    assert_eq!(waits["next"]["what"], "retry");
    live.until_state(JOB, "given_up").await;
    let runs = until_ended(&api, JOB, 2).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    for run in &runs {
        assert_eq!((&run["end"], &run["exit"]["signal"]), (&json!("timed_out"), &json!(15)));
    }
    assert!(log(&api, JOB).await.contains("stopped after 1s: max_runtime"));
    let metrics =
        crate::support::http::get(format!("{}/metrics", node.url)).await.expect("an answer");
    let metrics = metrics.text().await.expect("text");
    for series in ["soloist_run_crashes_total", "soloist_run_timed_out_total"] {
        assert!(metrics.contains(&format!("{series}{{job=\"outbound\"}} 2")), "{metrics}");
    }
}

/// The dashboard, as a browser without scripts has it.
async fn page(node: &Node, api: &Api) -> String {
    let client = crate::support::http::client().build().expect("a client");
    let request = client.get(format!("{}/", node.url)).bearer_auth(api.token());
    request.send().await.expect("an answer").text().await.expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_a_run_and_talk_or_progress_keeps_it() {
    let keys = "max_silence = \"1s\"\nbackoff = { first = \"1ms\", max = \"1ms\" }";
    let line = |text: &str| format!("while :; do echo {text}; sleep 0.2; done");
    let jobs = [
        job("mute", "sleep 600", keys),
        job("talks", &line("here"), keys),
        job("counts", &line("::progress 1/2"), keys),
    ];
    let (_ground, _node, api, _live) = place(&jobs.concat()).await;
    for name in ["talks", "counts", "mute"] {
        api.switch(name, true).await;
    }
    let runs = until_ended(&api, "mute", 3).await;
    assert!(runs.iter().all(|run| run["end"] == "timed_out"), "{runs:?}");
    assert!(log(&api, "mute").await.contains("1s without output or progress: max_silence"));
    for name in ["talks", "counts"] {
        let runs = api.runs(name).await;
        assert_eq!((runs.len(), &runs[0]["end"]), (1, &Value::Null), "{name}: {runs:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_ignores_term_is_killed_with_its_tree_and_says_why_it_stops() {
    let keys =
        "max_runtime = \"1s\"\nstop_grace = \"2s\"\nbackoff = { first = \"1h\", max = \"1h\" }";
    let line = "trap '' TERM; sleep 600 & while :; do sleep 1; done";
    let (_ground, _node, api, mut live) = place(&job(JOB, line, keys)).await;
    api.switch(JOB, true).await;
    let job = live.until(JOB, "it runs", |job| job["run"]["pid"].is_u64()).await;
    let pid = i32::try_from(job["run"]["pid"].as_i64().expect("a number")).expect("a pid");
    let stopping = live.until_state(JOB, "stopping").await;
    assert!(why(&stopping).contains("stopped after 1 s: max_runtime"), "{stopping}");
    live.until_state(JOB, "backing_off").await;
    let runs = until_ended(&api, JOB, 1).await;
    assert_eq!((&runs[0]["end"], &runs[0]["exit"]["signal"]), (&json!("timed_out"), &json!(9)));
    assert!(runs[0]["processes_killed"].as_u64() >= Some(1), "{runs:?}");
    assert_eq!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH), "its first process is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_switched_off_before_the_limit_was_stopped_and_did_not_time_out() {
    let (_ground, _node, api, mut live) =
        place(&job(JOB, "sleep 600", "max_runtime = \"10m\"\nmax_silence = \"9m\"")).await;
    api.switch(JOB, true).await;
    live.until(JOB, "it runs", |job| !job["run"].is_null()).await;
    let path = format!("/api/v1/jobs/{JOB}/participation");
    api.call(Method::PUT, &path, Some(json!({"on": false}))).await;
    live.until_state(JOB, "off").await;
    assert_eq!(until_ended(&api, JOB, 1).await[0]["end"], "stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_without_a_line_end_is_life_and_is_seen() {
    let keys =
        "max_silence = \"1s\"\nrepeat = \"never\"\nbackoff = { first = \"1ms\", max = \"1ms\" }";
    let often = |text: &str| format!("for n in $(seq 30); do printf '{text}' $n; sleep 0.1; done");
    let jobs = [
        job("bar", &format!("{}; echo; echo done", often("\\r%s of 30")), keys),
        job("dots", &format!("{}; echo", often(".%.0s")), keys),
        job("asks", "printf 'sure? [y/N] '; sleep 600", "repeat = \"never\""),
    ];
    let (_ground, _node, api, _live) = place(&jobs.concat()).await;
    let begun = soloist::clock::boot();
    for name in ["asks", "bar", "dots"] {
        api.switch(name, true).await;
    }
    let texts = async |name: &str| -> Vec<String> {
        let lines = api.get(&format!("/api/v1/jobs/{name}/log")).await["lines"].clone();
        let lines = lines.as_array().expect("lines").iter();
        lines.map(|line| line["text"].as_str().expect("a text").to_owned()).collect()
    };
    until_async("the question is seen", async || {
        (texts("asks").await == ["sure? [y/N] "]).then_some(())
    })
    .await;
    let took = soloist::clock::boot().since(begun);
    in_time(took.as_secs() < 4, || format!("the question was seen after {took:?}"));
    for name in ["bar", "dots"] {
        let runs = until_ended(&api, name, 1).await;
        assert_eq!((&runs[0]["end"], runs.len()), (&json!("exited"), 1), "{name}: {runs:?}");
    }
    let bar = texts("bar").await;
    assert_eq!(bar[bar.len() - 2..], ["30 of 30", "done"], "{bar:?}");
    assert!(bar.len() <= 5, "not each of its states: {bar:?}");
    assert_eq!(texts("dots").await.concat(), ".".repeat(30), "each dot once");
}
