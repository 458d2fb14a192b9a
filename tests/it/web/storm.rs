//! A store whose connections are cut again and again while people switch: no browser keeps an old picture.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::lifecycle::{JOB, Pair};
use crate::support::api::Api;
use crate::support::wait::until_async;

const TURNS: usize = 60;

/// Switches until the store has said yes: a cut connection leaves the caller with 503, never with a wrong answer. Returns the job then.
async fn insist(api: &Api, on: bool) -> Value {
    let path = format!("/api/v1/jobs/{JOB}/participation");
    until_async("the switch is accepted", async || {
        let (status, said) = api.call(Method::PUT, &path, Some(json!({ "on": on }))).await;
        let known = [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE];
        assert!(known.contains(&status), "{status} {said}");
        (status == StatusCode::OK).then_some(said)
    })
    .await
}

fn people(job: &Value) -> Vec<&str> {
    let people = job["participants"].as_array().expect("participants");
    people.iter().filter_map(|one| one["user"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_whose_connections_are_cut_under_load_leaves_no_browser_with_an_old_picture() {
    let pair = Pair::start("beat", "");
    let (li, wang) = (pair.li(), pair.wang());
    let mut browsers = [li.live().await, wang.live().await];
    let (done, redis) = (Arc::new(AtomicBool::new(false)), Arc::new(pair.redis));
    let cutter = std::thread::spawn({
        let (done, redis) = (Arc::clone(&done), Arc::clone(&redis));
        move || {
            let mut cut = 0;
            while !done.load(Ordering::Acquire) {
                for kind in ["normal", "pubsub"] {
                    cut += redis.run::<u64>(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
                }
                // Between two cuts there is time for a few calls, or nobody could ever switch.
                std::thread::sleep(Duration::from_millis(70));
            }
            cut
        }
    });
    for turn in 0..TURNS {
        insist(&li, turn % 2 == 0).await;
        insist(&wang, turn % 3 == 0).await;
    }
    insist(&li, false).await;
    let newest = insist(&wang, true).await["version"].as_u64();
    assert!(newest.is_some(), "a job has a version");
    done.store(true, Ordering::Release);
    let cut = cutter.join().expect("the cutter");
    assert!(cut > 20, "only {cut} connections were cut");
    let last = until_async("the store answers", async || {
        let (status, job) = li.call(Method::GET, &format!("/api/v1/jobs/{JOB}"), None).await;
        // The other node may not have heard of the last switch yet; wang alone was there before, too.
        let is_newest = status == StatusCode::OK && job["version"].as_u64() >= newest;
        is_newest.then_some(job)
    })
    .await;
    assert_eq!(people(&last), ["wang"]);
    for browser in &mut browsers {
        let seen = browser
            .until(JOB, "the picture is the newest", |job| {
                job["version"].as_u64() >= last["version"].as_u64() && people(job) == ["wang"]
            })
            .await;
        assert_eq!(seen["participants"], last["participants"]);
    }
    pair.witness.check();
}
