//! Leases for programs: taken, waited for, kept and given back by the documented calls, on their own names and on external jobs.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::clock;
use soloist::config::{Config, JobConfig, Repeat, Runner};
use soloist::domain::lease::{Timing, Token};
use soloist::domain::name::{JobName, Owner};
use soloist::store::accounts::Role;
use soloist::store::leases::{Acquire, Condition, Leases as _};
use soloist::store::line::Lines as _;
use soloist::web::openapi::describe;
use tokio::task::JoinHandle;

use super::openapi::Answers;
use super::{On, Server, job};
use crate::support::api::Api;
use crate::support::machine::within;
use crate::support::wait::until_async;

/// What the promise allows besides the lease of a silent holder.
const PROMPT: Duration = Duration::from_millis(300);

/// The document, compiled once.
static ANSWERS: OnceLock<Answers> = OnceLock::new();

fn external(name: &str, ttl: Duration) -> JobConfig {
    JobConfig {
        runner: Runner::External,
        command: Vec::new(),
        timing: Timing::from_ttl(ttl).unwrap(),
        stop_grace: Duration::from_secs(2),
        repeat: Repeat::After(Duration::from_secs(3_600)),
        ..job(name)
    }
}

fn jobs(config: &mut Config) {
    config.jobs.push(external("thread", Duration::from_secs(5)));
    config.jobs.push(external("brief", Duration::from_secs(1)));
}

/// A server with external jobs, and an operator.
async fn open(on: On) -> (Server, Api) {
    let server = Server::on_with(on, jobs).await;
    let api = Api::new(&server.url(""), &server.token("li", Role::Operator).await);
    (server, api)
}

/// Another node on the same store, and the same operator there.
async fn beside(server: &Server, api: &Api) -> (Server, Api) {
    let other = server.beside_with(jobs).await;
    let there = api.at(&other.url(""));
    (other, there)
}

fn asking(holder: &str, request: &str, more: &Value) -> Value {
    let mut body = json!({"holder": holder, "request_id": request});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

async fn call(api: &Api, path: &str, body: Value) -> (StatusCode, Value) {
    let (status, answer) =
        api.call(Method::POST, &format!("/api/v1/leases/{path}"), Some(body)).await;
    let pattern = match path.split_once('/') {
        None => "/api/v1/leases/{name}".to_owned(),
        Some((_, act)) => format!("/api/v1/leases/{{name}}/{act}"),
    };
    let answers = ANSWERS.get_or_init(|| Answers::new(&describe()));
    let problem = answers.problem("post", &pattern, status.as_u16(), &answer);
    assert_eq!(problem, None, "{path}: {answer}");
    (status, answer)
}

async fn take(api: &Api, name: &str, holder: &str, request: &str, more: Value) -> Value {
    let (status, answer) = call(api, name, asking(holder, request, &more)).await;
    assert_eq!(status, StatusCode::OK, "{name}, {holder}: {answer}");
    answer
}

async fn granted(api: &Api, name: &str, holder: &str, request: &str) -> Value {
    let lease = take(api, name, holder, request, json!({})).await;
    assert!(lease["secret"].is_string(), "{name}, {holder}: {lease}");
    lease
}

/// Somebody who waits, and what they get.
fn wait(api: &Api, name: &str, holder: &str) -> JoinHandle<Value> {
    let (api, name, holder) = (api.clone(), name.to_owned(), holder.to_owned());
    let request = format!("of-{holder}");
    tokio::spawn(
        async move { take(&api, &name, &holder, &request, json!({"wait_ms": 30_000})).await },
    )
}

async fn renew(api: &Api, lease: &Value, more: Value) -> (StatusCode, Value) {
    let mut body = json!({"secret": lease["secret"]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    call(api, &format!("{}/renew", lease["name"].as_str().unwrap()), body).await
}

async fn kept(api: &Api, lease: &Value, more: Value) -> Value {
    let (status, answer) = renew(api, lease, more).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

async fn release(api: &Api, lease: &Value, more: Value) -> (StatusCode, Value) {
    let mut body = json!({"secret": lease["secret"]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    call(api, &format!("{}/release", lease["name"].as_str().unwrap()), body).await
}

async fn released(api: &Api, lease: &Value, more: Value) {
    let (status, answer) = release(api, lease, more).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

fn token(lease: &Value) -> u64 {
    lease["token"].as_u64().unwrap_or_else(|| panic!("{lease}"))
}

/// Until so many stand in line for `name`, those whose connection is there.
async fn waiting(server: &Server, name: &str, count: usize) {
    let name = JobName::new(name).unwrap();
    until_async("they stand in line", async || {
        let line = server.store().line(&name, 2_000).await.unwrap();
        (line.kept().filter(|place| place.waiter.is_some()).count() == count).then_some(())
    })
    .await;
}

async fn state(api: &Api, job: &str) -> Value {
    api.get(&format!("/api/v1/jobs/{job}")).await["state"].clone()
}

async fn until_state(api: &Api, job: &str, word: &str) -> Value {
    let path = format!("/api/v1/jobs/{job}");
    until_async(word, async || {
        let job = api.get(&path).await;
        (job["state"] == word).then_some(job)
    })
    .await
}

on_every_store! {
    a_name_of_its_own_is_held_by_one_program_at_a_time
    a_secret_is_not_guessed_from_a_token
    who_waits_is_granted_in_order_of_arrival_at_any_node
    a_place_in_the_line_is_kept_across_a_lost_connection
    who_releases_and_asks_again_stands_behind_those_who_wait
    who_waits_hears_of_a_release_at_another_node_and_of_a_commands
    an_external_job_is_granted_while_it_is_wanted_and_each_grant_is_a_run
    a_holder_is_told_to_stop_at_once_and_why
    a_stop_that_is_not_obeyed_ends_with_the_lease
    a_move_keeps_the_job_for_another_program
    a_failure_backs_off_and_success_rests
    a_lease_under_which_nothing_was_begun_is_no_crash_and_no_success
    work_that_its_own_program_stopped_is_lost_and_no_crash
    a_silent_holder_is_passed_over_when_its_lease_is_over
    a_lease_is_renewed_at_any_node
    many_leases_are_renewed_in_one_call_and_each_is_answered_for_itself
    renewals_wait_until_one_of_them_must_end
    a_renewal_extends_by_what_was_granted_whatever_its_node_is_told_by_now
    a_lease_is_for_those_who_may_hold_it
    what_is_wrong_with_a_request_is_named
    a_holder_gains_nothing_by_rewriting_its_secret
    a_crowd_is_served_one_by_one
}

async fn a_name_of_its_own_is_held_by_one_program_at_a_time(on: On) {
    let (_server, api) = open(on).await;
    let lease = granted(&api, "stock", "shop-a", "1").await;
    assert_eq!(lease["name"], "stock");
    assert_eq!(lease["run"], Value::Null);
    for (field, is) in [("ttl_ms", 10_000), ("expires_in_ms", 10_000), ("renew_every_ms", 1_666)] {
        assert_eq!(lease[field], is, "{field}");
    }
    assert_eq!(granted(&api, "stock", "shop-a", "1").await, lease, "a lost answer costs nothing");
    let busy = take(&api, "stock", "shop-b", "2", json!({})).await;
    assert_eq!((&busy["reason"], &busy["holder"]), (&json!("busy"), &json!("shop-a")), "{busy}");
    let retry = busy["retry_in_ms"].as_u64().unwrap();
    assert!((1..=10_000).contains(&retry), "{busy}");
    assert_eq!(kept(&api, &lease, json!({})).await, json!({"expires_in_ms": 10_000, "stop": null}));

    let leases = api.get("/api/v1/leases").await;
    let listed = &leases["leases"][0];
    for (field, is) in [("name", "stock"), ("kind", "program"), ("holder", "shop-a")] {
        assert_eq!(listed[field], is, "{leases}");
    }
    assert!(!leases.to_string().contains(lease["secret"].as_str().unwrap()));
    released(&api, &lease, json!({})).await;
    released(&api, &lease, json!({})).await;
    assert_eq!(renew(&api, &lease, json!({})).await.0, StatusCode::CONFLICT);
    let next = take(&api, "stock", "shop-b", "3", json!({"ttl_ms": 1_000})).await;
    assert!(token(&next) > token(&lease), "{next}");
    assert_eq!(next["ttl_ms"], 1_000);
    assert_eq!(release(&api, &lease, json!({})).await.0, StatusCode::CONFLICT, "another's");
    kept(&api, &next, json!({})).await;
}

async fn a_secret_is_not_guessed_from_a_token(on: On) {
    let (server, api) = open(on).await;
    let lease = granted(&api, "stock", "shop-a", "1").await;
    let secret = lease["secret"].as_str().unwrap();
    let (numbers, seal) = secret.rsplit_once('.').unwrap();
    let mallory = api.at(&server.url(""));
    let other = if seal.starts_with('0') { "1" } else { "0" };
    for guess in [
        token(&lease).to_string(),
        format!("{numbers}.{}", "0".repeat(32)),
        format!("{numbers}.{other}{}", &seal[1..]),
        format!("{}.10000.p.{seal}", token(&lease) + 1),
    ] {
        let guess = json!({"name": "stock", "secret": guess});
        assert_eq!(renew(&mallory, &guess, json!({})).await.0, StatusCode::CONFLICT, "{guess}");
        assert_eq!(release(&mallory, &guess, json!({})).await.0, StatusCode::CONFLICT, "{guess}");
    }
    kept(&api, &lease, json!({})).await;
}

async fn who_waits_is_granted_in_order_of_arrival_at_any_node(on: On) {
    let (server, here) = open(on).await;
    let (_other, there) = beside(&server, &here).await;
    let mut held = granted(&here, "stock", "first", "1").await;
    let mut waiters = Vec::new();
    for (nth, (holder, api)) in
        [("a", &here), ("b", &there), ("c", &here), ("d", &there)].into_iter().enumerate()
    {
        waiters.push((holder, wait(api, "stock", holder)));
        waiting(&server, "stock", nth + 1).await;
    }
    for (holder, waiter) in waiters {
        released(&here, &held, json!({})).await;
        let next = waiter.await.unwrap();
        assert!(token(&next) > token(&held), "{holder}: {next}");
        let leases = here.get("/api/v1/leases").await;
        assert_eq!(leases["leases"][0]["holder"], holder);
        held = next;
    }
    waiting(&server, "stock", 0).await;
}

async fn a_place_in_the_line_is_kept_across_a_lost_connection(on: On) {
    let (server, here) = open(on).await;
    let (_other, there) = beside(&server, &here).await;
    let held = granted(&here, "stock", "first", "1").await;
    let early = wait(&here, "stock", "early");
    waiting(&server, "stock", 1).await;
    let late = wait(&here, "stock", "late");
    waiting(&server, "stock", 2).await;
    early.abort();
    waiting(&server, "stock", 1).await;
    let early = wait(&there, "stock", "early");
    waiting(&server, "stock", 2).await;
    released(&here, &held, json!({})).await;
    let had = early.await.unwrap();
    assert!(had["secret"].is_string(), "{had}");
    released(&there, &had, json!({})).await;
    assert!(token(&late.await.unwrap()) > token(&had));
}

async fn who_releases_and_asks_again_stands_behind_those_who_wait(on: On) {
    let (server, api) = open(on).await;
    let held = granted(&api, "stock", "greedy", "1").await;
    let patient = wait(&api, "stock", "patient");
    waiting(&server, "stock", 1).await;
    released(&api, &held, json!({})).await;
    let again = take(&api, "stock", "greedy", "2", json!({})).await;
    assert_eq!(again["reason"], "busy", "{again}");
    assert!(patient.await.unwrap()["secret"].is_string());
}

/// Nobody waits where it is given back, so that node calls nobody.
async fn who_waits_hears_of_a_release_at_another_node_and_of_a_commands(on: On) {
    let (server, here) = open(on).await;
    let (_other, there) = beside(&server, &here).await;
    let command = Acquire {
        job: JobName::new("stock").unwrap(),
        owner: Owner("a-command".to_owned()),
        node: "cron-1".parse().unwrap(),
        ttl: Duration::from_secs(10),
        condition: Condition::None,
        seen: Token(0),
    };
    for round in 0..3 {
        let held = granted(&here, "stock", "first", &format!("of-{round}")).await;
        let waiter = wait(&there, "stock", &format!("a-{round}"));
        waiting(&server, "stock", 1).await;
        let begun = clock::boot();
        released(&here, &held, json!({})).await;
        let next = waiter.await.unwrap();
        within(clock::boot().since(begun), PROMPT, "the next is granted");
        released(&there, &next, json!({})).await;
        server.store().acquire(&command).await.unwrap();
        let waiter = wait(&there, "stock", &format!("b-{round}"));
        waiting(&server, "stock", 1).await;
        let begun = clock::boot();
        server.store().release(&command.job, &command.owner).await.unwrap();
        let next = waiter.await.unwrap();
        within(clock::boot().since(begun), PROMPT, "the next after a command is granted");
        released(&there, &next, json!({})).await;
    }
}

async fn an_external_job_is_granted_while_it_is_wanted_and_each_grant_is_a_run(on: On) {
    let (server, api) = open(on).await;
    let refused = take(&api, "thread", "shop-a", "1", json!({"ttl_ms": 60_000})).await;
    assert_eq!(refused["reason"], "not_wanted", "{refused}");
    let waiter = wait(&api, "thread", "shop-7f");
    waiting(&server, "thread", 1).await;
    assert_eq!(state(&api, "thread").await, "off");
    api.switch("thread", true).await;
    let lease = waiter.await.unwrap();
    assert_eq!((&lease["ttl_ms"], &lease["renew_every_ms"]), (&json!(5_000), &json!(833)));
    let run = lease["run"].as_str().unwrap().to_owned();
    let shown = until_state(&api, "thread", "running").await;
    assert_eq!(shown["lease"]["token"], lease["token"]);
    assert_eq!((&shown["run"]["id"], &shown["run"]["pid"]), (&json!(run), &Value::Null));
    assert!(shown["why"].as_str().unwrap().contains("shop-7f"), "{shown}");

    let said = json!({"progress": {"done": 3, "total": 9, "note": "order 10248"},
        "lines": ["shipped 10247", "shipped 10248"]});
    kept(&api, &lease, said).await;
    let shown = until_async("its progress is shown", async || {
        let job = api.get("/api/v1/jobs/thread").await;
        job["run"]["progress"].is_object().then_some(job)
    })
    .await;
    assert_eq!(shown["run"]["progress"], json!({"done": 3, "total": 9, "note": "order 10248"}));
    let log = api.get("/api/v1/jobs/thread/log").await;
    let lines: Vec<&Value> = log["lines"].as_array().unwrap().iter().map(|l| &l["text"]).collect();
    assert_eq!(lines, ["shipped 10247", "shipped 10248"]);

    api.switch("thread", false).await;
    let job = until_state(&api, "thread", "stopping").await;
    assert_eq!(job["run"]["id"], run.as_str(), "never off while the program may work");
    released(&api, &lease, json!({"end": "done"})).await;
    let job = until_state(&api, "thread", "off").await;
    assert_eq!(job["lease"], Value::Null);
    let runs = api.get("/api/v1/jobs/thread/runs").await;
    let newest = &runs["runs"][0];
    assert_eq!((&newest["id"], &newest["end"]), (&json!(run), &json!("stopped")), "{runs}");
    assert_eq!(newest["node"], "shop-7f");
    let drained = api.call(Method::PUT, "/api/v1/nodes/node-a/drain", None).await;
    assert!(drained.0.is_success() || drained.0 == StatusCode::NOT_FOUND, "{drained:?}");
}

async fn a_holder_is_told_to_stop_at_once_and_why(on: On) {
    let (server, api) = open(on).await;
    let (_other, there) = beside(&server, &api).await;
    for (nth, (why, path)) in [("off", "participation"), ("held", "hold")].into_iter().enumerate() {
        api.switch("thread", true).await;
        let lease = granted(&api, "thread", "shop-a", &format!("request-{nth}")).await;
        let (waiting_api, renewed) = (there.clone(), lease.clone());
        let renewal = tokio::spawn(async move {
            let begun = clock::boot();
            let kept = kept(&waiting_api, &renewed, json!({"wait_ms": 1_500})).await;
            (kept, clock::boot().since(begun))
        });
        until_state(&api, "thread", "running").await;
        let body =
            if why == "off" { json!({"on": false}) } else { json!({"reason": "stock-taking"}) };
        let address = format!("/api/v1/jobs/thread/{path}");
        let (status, _) = api.call(Method::PUT, &address, Some(body)).await;
        assert_eq!(status, StatusCode::OK);
        let (answer, took) = renewal.await.unwrap();
        assert_eq!(answer["stop"]["why"], why, "{answer}");
        let given = answer["stop"]["within_ms"].as_u64().unwrap();
        assert!((1_000..=2_000).contains(&given), "{answer}");
        within(took, Duration::from_millis(1_400), "the holder is told at once");
        let again = kept(&api, &lease, json!({"wait_ms": 1_500})).await;
        assert_eq!(again["stop"]["why"], why, "said again: {again}");
        released(&api, &lease, json!({})).await;
    }
    let refused = take(&api, "thread", "shop-b", "later", json!({})).await;
    assert_eq!(refused["reason"], "held", "{refused}");
}

async fn a_stop_that_is_not_obeyed_ends_with_the_lease(on: On) {
    let (_server, api) = open(on).await;
    api.switch("thread", true).await;
    let lease = granted(&api, "thread", "deaf", "1").await;
    api.switch("thread", false).await;
    let over = until_async("the lease is extended no more", async || {
        let off = state(&api, "thread").await == "off";
        let (status, answer) = renew(&api, &lease, json!({})).await;
        assert!(!(off && status == StatusCode::OK), "off while it may work: {answer}");
        (status == StatusCode::CONFLICT).then_some(answer)
    })
    .await;
    assert!(over["detail"].as_str().unwrap().contains("is over"), "{over}");
    until_state(&api, "thread", "off").await;
    until_async("its end is written down", async || {
        let runs = api.get("/api/v1/jobs/thread/runs").await;
        (runs["runs"][0]["end"] == "lost").then_some(())
    })
    .await;
}

async fn a_move_keeps_the_job_for_another_program(on: On) {
    let (server, api) = open(on).await;
    api.switch("thread", true).await;
    let lease = granted(&api, "thread", "shop-a", "1").await;
    let other = wait(&api, "thread", "shop-b");
    waiting(&server, "thread", 1).await;
    let (status, answer) =
        api.call(Method::POST, "/api/v1/jobs/thread/move", Some(json!({}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let told = kept(&api, &lease, json!({"wait_ms": 1_500})).await;
    assert_eq!(told["stop"]["why"], "moved", "{told}");
    released(&api, &lease, json!({})).await;
    let back = take(&api, "thread", "shop-a", "2", json!({})).await;
    assert!(["reserved", "busy"].contains(&back["reason"].as_str().unwrap()), "{back}");
    let had = other.await.unwrap();
    assert!(token(&had) > token(&lease), "{had}");

    let order = json!({"to": "shop-c", "reason": "new disk"});
    let (status, answer) = api.call(Method::POST, "/api/v1/jobs/thread/move", Some(order)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let noted = api.get("/api/v1/audit?limit=1&act=job.move").await["entries"][0].clone();
    assert_eq!(noted["reason"], "to shop-c: new disk", "{noted}");
    kept(&api, &had, json!({"wait_ms": 1_500})).await;
    released(&api, &had, json!({})).await;
    let refused = take(&api, "thread", "shop-a", "3", json!({})).await;
    assert_eq!(refused["reason"], "reserved", "{refused}");
    granted(&api, "thread", "shop-c", "4").await;
}

async fn a_lease_under_which_nothing_was_begun_is_no_crash_and_no_success(on: On) {
    let (_server, api) = open(on).await;
    api.switch("thread", true).await;
    let lease = granted(&api, "thread", "shop-a", "1").await;
    released(&api, &lease, json!({"end": "unused"})).await;
    let next = granted(&api, "thread", "shop-b", "2").await;
    assert!(token(&next) > token(&lease), "without a backoff and without a rest: {next}");
    let runs = api.get("/api/v1/jobs/thread/runs").await;
    assert_eq!(runs["runs"][1]["end"], "stopped", "{runs}");
}

async fn work_that_its_own_program_stopped_is_lost_and_no_crash(on: On) {
    let (_server, api) = open(on).await;
    api.switch("thread", true).await;
    let lease = granted(&api, "thread", "shop-a", "1").await;
    released(&api, &lease, json!({"end": "lost"})).await;
    let next = granted(&api, "thread", "shop-b", "2").await;
    assert!(token(&next) > token(&lease), "without a backoff and without a rest: {next}");
    let runs = api.get("/api/v1/jobs/thread/runs").await;
    assert_eq!(runs["runs"][1]["end"], "stopped", "as that of a node that ends: {runs}");
    // Who was told to stop was stopped, whatever it says of itself.
    api.switch("thread", false).await;
    until_state(&api, "thread", "stopping").await;
    released(&api, &next, json!({"end": "lost"})).await;
    until_state(&api, "thread", "off").await;
    let runs = api.get("/api/v1/jobs/thread/runs").await;
    assert_eq!(runs["runs"][0]["end"], "stopped", "{runs}");
}

async fn a_failure_backs_off_and_success_rests(on: On) {
    let (_server, api) = open(on).await;
    api.switch("thread", true).await;
    let lease = granted(&api, "thread", "shop-a", "1").await;
    released(&api, &lease, json!({"end": "failed", "code": 3, "error": "no printer\nat all"}))
        .await;
    let refused = take(&api, "thread", "shop-a", "2", json!({})).await;
    assert_eq!(refused["reason"], "backing_off", "{refused}");
    let job = until_state(&api, "thread", "backing_off").await;
    assert_eq!(job["last_exit"]["code"], 3);
    let log = api.get("/api/v1/jobs/thread/log").await;
    assert!(log.to_string().contains("no printer"), "{log}");
    let next = take(&api, "thread", "shop-a", "3", json!({"wait_ms": 10_000})).await;
    assert!(next["secret"].is_string(), "after its backoff: {next}");
    released(&api, &next, json!({"end": "done"})).await;
    let refused = take(&api, "thread", "shop-a", "4", json!({})).await;
    assert_eq!(refused["reason"], "resting", "{refused}");
    until_state(&api, "thread", "resting").await;
    let runs = api.get("/api/v1/jobs/thread/runs").await;
    let ends: Vec<&Value> =
        runs["runs"].as_array().unwrap().iter().map(|run| &run["end"]).collect();
    assert_eq!(ends, ["exited", "crashed"]);
}

async fn a_silent_holder_is_passed_over_when_its_lease_is_over(on: On) {
    let (server, api) = open(on).await;
    let (_other, there) = beside(&server, &api).await;
    for name in ["brief", "stock"] {
        api.switch("brief", true).await;
        let begun = clock::boot();
        let lease = take(&api, name, "silent", "1", json!({"ttl_ms": 1_000})).await;
        let next = wait(&there, name, "patient").await.unwrap();
        let took = clock::boot().since(begun);
        assert!(token(&next) > token(&lease), "{name}: {next}");
        assert!(took >= Duration::from_millis(990), "{name}: not before its end, {took:?}");
        within(took, Duration::from_secs(1) + PROMPT, &format!("{name}: the next is granted"));
        assert_eq!(renew(&api, &lease, json!({})).await.0, StatusCode::CONFLICT);
        if name == "brief" {
            let runs = api.get("/api/v1/jobs/brief/runs").await;
            assert_eq!(runs["runs"][1]["end"], "lost", "{runs}");
        }
    }
}

async fn a_lease_is_renewed_at_any_node(on: On) {
    let (server, api) = open(on).await;
    let (other, there) = beside(&server, &api).await;
    api.switch("thread", true).await;
    let lease = granted(&api, "thread", "shop-a", "1").await;
    kept(&there, &lease, json!({"lines": ["said at the other node"]})).await;
    assert_eq!(granted(&there, "thread", "shop-a", "1").await["secret"], lease["secret"]);
    released(&there, &lease, json!({})).await;
    until_state(&there, "thread", "resting").await;
    drop(other);
}

/// An answer may be lost, and then its holder trusts what it was told before.
async fn a_renewal_extends_by_what_was_granted_whatever_its_node_is_told_by_now(on: On) {
    let length = |job: Duration, most: Duration| {
        move |config: &mut Config| {
            config.lease_ttl_max = most;
            config.jobs.push(external("thread", job));
        }
    };
    let (long, short) = (Duration::from_secs(60), Duration::from_secs(2));
    let server = Server::on_with(on, length(long, long)).await;
    let api = Api::new(&server.url(""), &server.token("li", Role::Operator).await);
    let other = server.beside_with(length(short, short)).await;
    let there = api.at(&other.url(""));
    api.switch("thread", true).await;
    for name in ["mine", "thread"] {
        let lease = take(&api, name, "shop-a", "1", json!({"ttl_ms": 60_000})).await;
        for _ in 0..2 {
            let answer = kept(&there, &lease, json!({})).await;
            assert_eq!(answer["expires_in_ms"], 60_000, "{name}: {answer}");
        }
        let listed = api.get("/api/v1/leases").await;
        let all = listed["leases"].as_array().unwrap();
        let left = all.iter().find(|one| one["name"] == name).unwrap()["expires_in_ms"].as_u64();
        assert!(left > Some(30_000), "{name}: {listed}");
        released(&there, &lease, json!({})).await;
    }
    // What is granted from now on is as that node is told.
    let (status, answer) =
        call(&there, "mine", asking("shop-b", "2", &json!({"ttl_ms": 60_000}))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    assert_eq!(granted(&there, "mine", "shop-b", "3").await["ttl_ms"], 2_000);
    drop(other);
}

/// Renews all of them in one call; one answer each.
async fn renew_all(api: &Api, leases: &[Value], wait_ms: u64) -> Vec<Value> {
    let one = |lease: &Value| json!({"name": lease["name"], "secret": lease["secret"], "lines": ["a line"]});
    let leases: Vec<Value> = leases.iter().map(one).collect();
    let body = json!({"wait_ms": wait_ms, "leases": leases});
    let (status, answer) = api.call(Method::POST, "/api/v1/renewals", Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let answers = ANSWERS.get_or_init(|| Answers::new(&describe()));
    assert_eq!(answers.problem("post", "/api/v1/renewals", 200, &answer), None, "{answer}");
    answer["leases"].as_array().unwrap().clone()
}

async fn many_leases_are_renewed_in_one_call_and_each_is_answered_for_itself(on: On) {
    let (server, api) = open(on).await;
    let (_other, there) = beside(&server, &api).await;
    api.switch("thread", true).await;
    let mut leases = vec![granted(&api, "thread", "one", "1").await];
    for name in ["a", "b", "c"] {
        leases.push(granted(&api, name, "one", "1").await);
    }
    released(&api, &leases[2], json!({})).await;
    let next = granted(&api, "b", "two", "2").await;
    leases.push(json!({"name": "a", "secret": "nonsense"}));
    leases.push(json!({"name": "no such: name", "secret": leases[1]["secret"]}));
    let begun = clock::boot();
    // At any node, and at once: some of them are over.
    let answers = renew_all(&there, &leases, 10_000).await;
    assert!(clock::boot().since(begun) < Duration::from_secs(5), "nobody waits for what is over");
    let names: Vec<_> = answers.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["thread", "a", "b", "c", "a", "no such: name"]);
    for nth in [0, 1, 3] {
        assert_eq!(answers[nth]["stop"], json!(null), "{}", answers[nth]);
        assert_eq!(answers[nth]["expires_in_ms"], leases[nth]["expires_in_ms"]);
    }
    for (nth, status, detail) in
        [(2, 409, "over or another's"), (4, 409, "not the secret"), (5, 404, "name")]
    {
        assert_eq!(answers[nth]["status"], status, "{}", answers[nth]);
        assert!(answers[nth]["detail"].as_str().unwrap().contains(detail), "{}", answers[nth]);
    }
    assert_eq!(renew(&api, &next, json!({})).await.0, StatusCode::OK, "the next goes on");
    let log = api.get("/api/v1/jobs/thread/log").await.to_string();
    assert!(log.contains("a line"), "{log}");
}

async fn renewals_wait_until_one_of_them_must_end(on: On) {
    let (_server, api) = open(on).await;
    api.switch("thread", true).await;
    let leases = [granted(&api, "thread", "one", "1").await, granted(&api, "a", "one", "1").await];
    let waits = renew_all(&api, &leases, 1_600);
    let off = async {
        api.switch("thread", false).await;
    };
    let (answers, ()) = tokio::join!(waits, off);
    assert_eq!(answers[0]["stop"]["why"], "off", "{answers:?}");
    assert_eq!(answers[1]["stop"], json!(null), "{answers:?}");
    assert_eq!(renew_all(&api, &[], 0).await, Vec::<Value>::new());
    for body in [
        json!({"leases": vec![json!({"name": "a", "secret": "x"}); 1_001]}),
        json!({"leases": [{"name": "a"}]}),
        json!({"leases": [], "wait_ms": 30_001}),
        json!({}),
    ] {
        let (status, answer) = api.call(Method::POST, "/api/v1/renewals", Some(body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    }
    // A thousand at once.
    let many: Vec<Value> = (0..1_000).map(|_| leases[1].clone()).collect();
    let answers = renew_all(&api, &many, 0).await;
    assert!(answers.iter().all(|one| one["expires_in_ms"].is_u64()), "{:?}", answers[0]);
}

async fn a_lease_is_for_those_who_may_hold_it(on: On) {
    let (server, api) = open(on).await;
    let viewer = api_of(&server, "vera", Role::Viewer).await;
    let collector = api_of(&server, "carl", Role::Collector).await;
    let body = asking("shop-a", "1", &json!({}));
    assert_eq!(call(&viewer, "stock", body.clone()).await.0, StatusCode::FORBIDDEN);
    let (status, answer) = call(&api, "outbound", body.clone()).await;
    assert_eq!(status, StatusCode::CONFLICT, "a job with a command: {answer}");
    assert!(answer["detail"].as_str().unwrap().contains("external"), "{answer}");
    let lease = granted(&collector, "stock", "shop-a", "1").await;
    let busy = take(&api, "stock", "shop-a", "1", json!({})).await;
    assert_eq!(busy["reason"], "busy", "the same request of another credential is another");
    released(&collector, &lease, json!({})).await;
}

async fn api_of(server: &Server, name: &str, role: Role) -> Api {
    Api::new(&server.url(""), &server.token(name, role).await)
}

async fn what_is_wrong_with_a_request_is_named(on: On) {
    let (_server, api) = open(on).await;
    for (more, says) in [
        (json!({"ttl_ms": 999}), "ttl_ms: from 1000 to 600000"),
        (json!({"ttl_ms": 600_001}), "ttl_ms: from 1000 to 600000"),
        (json!({"wait_ms": 30_001}), "wait_ms: from 0 to 30000"),
        (json!({"holder": "Shop A"}), "holder: "),
        (json!({"request_id": ""}), "request_id: "),
        (json!({"soon": true}), "unknown field"),
    ] {
        let (status, answer) = call(&api, "stock", asking("shop-a", "1", &more)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{more}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(says), "{more}: {answer}");
    }
    let (status, _) = call(&api, "No.Name", asking("shop-a", "1", &json!({}))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let lease = granted(&api, "stock", "shop-a", "1").await;
    let many: Vec<&str> = vec!["x"; 501];
    let (status, answer) = renew(&api, &lease, json!({ "lines": many })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
}

async fn a_holder_gains_nothing_by_rewriting_its_secret(on: On) {
    let (_server, api) = open(on).await;
    api.switch("thread", true).await;
    let lease = granted(&api, "thread", "sly", "1").await;
    let secret = lease["secret"].as_str().unwrap();
    let long = json!({"name": "thread", "secret": secret.replace(".5000.", ".31536000000.")});
    assert_eq!(renew(&api, &long, json!({})).await.0, StatusCode::CONFLICT, "not a year");
    let left = api.get("/api/v1/leases").await["leases"][0]["expires_in_ms"].as_u64().unwrap();
    assert!(left <= 5_000, "{left}");
    api.switch("thread", false).await;
    let own = json!({"name": "thread", "secret": secret.replace(".j.", ".p.")});
    assert_eq!(renew(&api, &own, json!({})).await.0, StatusCode::CONFLICT);
    assert_eq!(release(&api, &own, json!({})).await.0, StatusCode::CONFLICT);
    assert_eq!(kept(&api, &lease, json!({"wait_ms": 1_500})).await["stop"]["why"], "off");
    released(&api, &lease, json!({})).await;
    until_state(&api, "thread", "off").await;
    let runs = api.get("/api/v1/jobs/thread/runs").await;
    assert_eq!(runs["runs"][0]["end"], "stopped", "{runs}");
}

async fn a_crowd_is_served_one_by_one(on: On) {
    const CROWD: usize = 60;
    let (server, here) = open(on).await;
    let (_other, there) = beside(&server, &here).await;
    let held = granted(&here, "stock", "first", "1").await;
    let (done, mut order) = tokio::sync::mpsc::unbounded_channel();
    for nth in 0..CROWD {
        let api = if nth % 2 == 0 { here.clone() } else { there.clone() };
        let done = done.clone();
        tokio::spawn(async move {
            let holder = format!("shop-{nth}");
            let lease = wait(&api, "stock", &holder).await.unwrap();
            done.send((nth, token(&lease))).unwrap();
            released(&api, &lease, json!({})).await;
        });
        waiting(&server, "stock", nth + 1).await;
    }
    let begun = clock::boot();
    released(&here, &held, json!({})).await;
    let mut last = token(&held);
    for expected in 0..CROWD {
        let (nth, token) = order.recv().await.unwrap();
        assert_eq!(nth, expected, "in order of arrival");
        assert!(token > last);
        last = token;
    }
    let took = clock::boot().since(begun);
    within(took, Duration::from_secs(6), "a crowd is served in turn");
}
