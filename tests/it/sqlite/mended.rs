//! A machine that starts with a wrong clock, which is put right while nodes run: dispatch, the audit and what is told follow at once, and
//! nothing that is held ends by that.

use std::fs::{Permissions, write};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use crate::doctor::{examined, found};
use crate::support::node::{Ground, SOLOIST};
use crate::support::service::give_a_clock;
use crate::support::wait::until_async;
use crate::support::witness::{Witness, job, place};

const JOB: &str = "beat";

/// Everything that is started in it has the clock that the file says.
fn ground(clock: &str) -> Ground {
    let ground = Ground::new("sqlite:soloist.db", &job(JOB, "beat", "lease_ttl = \"2s\""));
    place(&ground);
    write(ground.path("clock"), clock).expect("written");
    let mut command = Command::new(SOLOIST);
    give_a_clock(&mut command, &ground.path("clock"));
    let env = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}='{}'", name.to_str()?, value?.to_str()?)));
    let env: Vec<String> = env.collect();
    let program = ground.path("soloist-with-a-clock");
    write(&program, format!("#!/bin/sh\nexec env {} {SOLOIST} \"$@\"\n", env.join(" ")))
        .expect("written");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("ours");
    ground.with_program(&program)
}

fn seconds(instant: &Value) -> i64 {
    let instant = instant.as_str().unwrap_or_else(|| panic!("no instant: {instant}"));
    instant.parse::<jiff::Timestamp>().expect("an instant").as_second()
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_put_right_is_followed_at_once_and_ends_nothing_that_is_held() {
    // A week behind, as a machine without a battery starts.
    let ground = ground("-604800");
    ground.add_user("li", "admin");
    let witness = Witness::of(&ground, JOB);
    let mut node = ground.start("node-a");
    let li = node.api(&ground.token("li"));
    li.switch(JOB, true).await;
    let first = witness.until_started(1);
    let call = async |method: Method, path: &str, body: Value| {
        let (status, answer) = li.call(method, path, Some(body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    };
    call(Method::PUT, "/api/v1/sources/shop", json!({"lease_ms": 60_000})).await;
    let held = json!({"tasks": [{"source": "shop", "key": "held"}]});
    call(Method::POST, "/api/v1/tasks", held).await;
    let claim = async |request: u32| {
        let body = json!({"collector": "c", "request_id": request.to_string(), "max": 1, "sources": ["shop"], "wait_ms": 0});
        call(Method::POST, "/api/v1/claims", body).await
    };
    let held = claim(1).await;
    assert_eq!(held["tasks"][0]["key"], "held", "{held}");
    let turn = json!({"types": [{"name": "a"}, {"name": "b"}], "lease_ms": 3_000});
    call(Method::PUT, "/api/v1/rotations/api", turn).await;
    let take = async |kind: &str| {
        let body = json!({"type": kind, "worker": kind, "request_id": kind, "wait_ms": 0});
        call(Method::POST, "/api/v1/rotations/api/turns", body).await
    };
    let turn = take("a").await;
    assert!(turn["token"].is_u64(), "{turn}");

    let set_at = soloist::clock::boot();
    write(ground.path("clock"), "+0").expect("written");
    let soon = jiff::Timestamp::from_second(now() + 2).expect("in range").to_string();
    let due = json!({"tasks": [{"source": "shop", "key": "due", "at": soon}]});
    call(Method::POST, "/api/v1/tasks", due).await;
    let mut request = 2;
    let came = until_async("the task is due when this clock says so", async || {
        request += 1;
        let answer = claim(request).await;
        answer["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()).then_some(answer)
    })
    .await;
    assert_eq!(came["tasks"][0]["key"], "due", "what is held is not given out again: {came}");
    let id = held["claim"].as_str().expect("a claim");
    let kept = call(Method::POST, &format!("/api/v1/claims/{id}/extend"), json!({})).await;
    assert_eq!(kept["kept"].as_array().map(Vec::len), Some(1), "{kept}");

    // A jump may end a turn; another one begins only when a holder that heard nothing has stopped.
    until_async("the next turn begins", async || take("b").await["token"].is_u64().then_some(()))
        .await;
    let waited = soloist::clock::boot().since(set_at);
    assert!(waited.as_millis() >= 2_900, "the turn of another lasted: {waited:?}");

    ground.add_user("wang", "viewer");
    let audit = li.get("/api/v1/audit?limit=1").await;
    let at = seconds(&audit["entries"][0]["at"]);
    assert!((now() - at).abs() < 60, "{audit}");
    let (_, findings) = examined(&ground, &[]);
    found(&findings, "dispatch clock", "ok");
    witness.until_more(first.token, 3);
    assert_eq!(witness.starts(), 1, "the lease of the job does not hang on this clock");

    // Set back it stays, and doctor says so.
    write(ground.path("clock"), "-3600").expect("written");
    let (_, findings) = examined(&ground, &[]);
    assert!(found(&findings, "dispatch clock", "warn").starts_with("+3"), "{findings:?}");
    witness.until_more(first.token, 3);
    assert_eq!(witness.starts(), 1);
    assert_eq!(node.terminate(), Some(0));
    witness.check();
}
