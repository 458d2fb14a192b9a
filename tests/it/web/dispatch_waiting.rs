//! Waiting for work: who is woken, when, and what becomes of those who vanish.

use std::time::Duration;

use reqwest::Method;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use soloist::clock;
use soloist::store::dispatch::{ClaimAsk, ClaimOwner, Exchange};
use tokio::task::JoinHandle;

use super::dispatch::{claim, define, ok, put, shop_on};
use super::{On, Server};
use crate::support::api::Api;
use crate::support::machine::{holds, judged, within};
use crate::support::node::Ground;
use crate::support::redis::{self, RedisServer};
use crate::support::wait::until_async;

judged! {
    a_killed_node_leaves_its_clients_tasks_to_the_other_one
}

/// How late a promised wake-up may be on a busy machine.
const PROMPT: Duration = Duration::from_millis(300);
const LEASE: Duration = Duration::from_millis(1_000);

/// Somebody who waits for work, and what they get.
fn wait(api: &Api, request: &str) -> JoinHandle<Value> {
    let (api, request) = (api.clone(), request.to_owned());
    tokio::spawn(async move { claim(&api, &request, json!({"wait_ms": 25_000})).await })
}

/// Until `count` wait, as the store knows: nobody else could tell.
async fn until_waiting(server: &Server, count: u64) {
    until_async("all are waiting", async || {
        let store = &server.web.config().store;
        let waiting = match store.strip_prefix("sqlite:") {
            Some(file) => in_file(file),
            None => in_redis(store),
        };
        (waiting == count).then_some(())
    })
    .await;
}

fn in_redis(store: &str) -> u64 {
    let keys: Vec<String> = redis::ask(store, &["KEYS", "*dispatch:waits"]).unwrap();
    keys.first().map_or(0, |key| redis::ask(store, &["HLEN", key]).unwrap())
}

fn in_file(file: &str) -> u64 {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let waiting: i64 = db.query_row("SELECT count(*) FROM waiters", [], |row| row.get(0)).unwrap();
    waiting.try_into().unwrap()
}

on_every_store! {
    who_waits_is_answered_at_once_when_a_task_is_put_at_another_node
    one_task_wakes_one_of_twenty_and_the_others_go_on_waiting
    a_vanished_collectors_tasks_go_to_whoever_waits_when_the_lease_ends
    a_gap_lets_waiting_collectors_through_one_by_one_and_on_time
    who_hangs_up_while_waiting_receives_nothing_and_the_next_one_does
    who_hung_up_and_asks_again_has_the_task_at_once_whatever_the_moment
    a_request_that_is_dropped_at_any_point_leaves_no_grant_behind
    a_node_that_shuts_down_answers_those_who_wait
}

async fn who_waits_is_answered_at_once_when_a_task_is_put_at_another_node(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    for nth in 0..5 {
        let waiting = wait(&there, &format!("r{nth}"));
        until_waiting(&server, 1).await;
        let begun = clock::boot();
        put(&api, &[&format!("k{nth}")]).await;
        let answer = waiting.await.unwrap();
        let took = clock::boot().since(begun);
        assert_eq!(answer["tasks"][0]["key"], format!("k{nth}"));
        within(took, PROMPT, "who waits is answered");
    }
}

async fn one_task_wakes_one_of_twenty_and_the_others_go_on_waiting(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    let mut waiting: Vec<_> = (0..20)
        .map(|nth| wait(if nth % 2 == 0 { &api } else { &there }, &format!("r{nth}")))
        .collect();
    until_waiting(&server, 20).await;
    let mut got = std::collections::BTreeSet::new();
    for left in (0..20).rev() {
        put(&api, &[&format!("k{left}")]).await;
        let (answer, nth, rest) = futures_util::future::select_all(waiting).await;
        let answer = answer.unwrap();
        assert_eq!(answer["tasks"].as_array().unwrap().len(), 1, "waiter {nth}: {answer}");
        got.insert(answer["tasks"][0]["key"].to_string());
        waiting = rest;
        let answered = waiting.iter().filter(|one| one.is_finished()).count();
        assert_eq!((answered, waiting.len()), (0, left), "one task answers one of them");
    }
    assert_eq!(got.len(), 20, "every task went to somebody else");
}

async fn a_vanished_collectors_tasks_go_to_whoever_waits_when_the_lease_ends(on: On) {
    let lease = u64::try_from(LEASE.as_millis()).unwrap();
    let (server, api) = shop_on(on, json!({"lease_ms": lease})).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    put(&api, &["a"]).await;
    let begun = clock::boot();
    let gone = claim(&api, "gone", json!({"collector": "vanished"})).await;
    assert_eq!(gone["tasks"][0]["attempt"], 1);
    let next = claim(&there, "waits", json!({"wait_ms": 25_000, "collector": "c2"})).await;
    let took = clock::boot().since(begun);
    assert_eq!(next["tasks"][0]["attempt"], 2);
    assert!(next["tasks"][0]["token"].as_u64() > gone["tasks"][0]["token"].as_u64());
    holds(took >= LEASE, || format!("handed out again after {took:?}"));
    within(took, LEASE + PROMPT, "who waits is answered");
    let late = json!({"results": [{"id": gone["tasks"][0]["id"], "token": gone["tasks"][0]["token"],
        "outcome": "done"}]});
    let late = ok(&api, Method::POST, "/api/v1/results", late).await;
    assert_eq!(late["results"][0]["status"], "stale");
}

async fn a_gap_lets_waiting_collectors_through_one_by_one_and_on_time(on: On) {
    let gap = Duration::from_millis(150);
    let (server, api) = shop_on(on, json!({"gap_ms": 150})).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    let mut waiting: Vec<_> = (0..6)
        .map(|nth| wait(if nth % 2 == 0 { &api } else { &there }, &format!("r{nth}")))
        .collect();
    until_waiting(&server, 6).await;
    put(&api, &["a", "b", "c", "d", "e", "f"]).await;
    let begun = clock::boot();
    for _ in 0..6 {
        let (answer, _, rest) = futures_util::future::select_all(waiting).await;
        assert_eq!(answer.unwrap()["tasks"].as_array().unwrap().len(), 1);
        waiting = rest;
    }
    let took = clock::boot().since(begun);
    // Each had to be woken at the end of its gap: found by chance a second later, five would take far longer.
    holds(took >= gap * 5 - Duration::from_millis(20), || format!("the gap was broken: {took:?}"));
    within(took, gap * 5 + PROMPT * 3, "six starts");
}

async fn who_hangs_up_while_waiting_receives_nothing_and_the_next_one_does(on: On) {
    let (server, api) = shop_on(on, json!({"lease_ms": 60_000})).await;
    let first = wait(&api, "r1");
    until_waiting(&server, 1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    until_waiting(&server, 0).await;
    let second = wait(&api, "r2");
    until_waiting(&server, 1).await;
    let begun = clock::boot();
    put(&api, &["a"]).await;
    let answer = second.await.unwrap();
    assert_eq!(
        (&answer["tasks"][0]["key"], &answer["tasks"][0]["attempt"]),
        (&json!("a"), &json!(1))
    );
    within(clock::boot().since(begun), PROMPT, "the next one is answered");
}

async fn who_hung_up_and_asks_again_has_the_task_at_once_whatever_the_moment(on: On) {
    let (server, api) = shop_on(on, json!({"lease_ms": 60_000})).await;
    for nth in 0..30 {
        let request = format!("h{nth}");
        let hanging = wait(&api, &request);
        if nth % 2 == 0 {
            until_waiting(&server, 1).await;
        }
        let key = format!("k{nth}");
        put(&api, &[&key]).await;
        for _ in 0..nth % 7 {
            tokio::task::yield_now().await;
        }
        hanging.abort();
        // Its end, whichever.
        drop(hanging.await);
        let again = claim(&api, &request, json!({"wait_ms": 5_000})).await;
        assert_eq!(again["tasks"][0]["key"], key, "{nth}: {again}");
    }
}

async fn a_request_that_is_dropped_at_any_point_leaves_no_grant_behind(on: On) {
    let (server, api) = shop_on(on, json!({"lease_ms": 60_000})).await;
    let desk = &server.web.desk;
    for polls in 1..60 {
        let key = format!("k{polls}");
        put(&api, &[&key]).await;
        let ask = ClaimAsk {
            owner: ClaimOwner::of("test"),
            collector: "gone".parse().unwrap(),
            request: key.parse().unwrap(),
            max: 1,
            sources: Vec::new(),
            wait: None,
        };
        let ask = Exchange { claim: Some(ask), ..Exchange::default() };
        let mut asking = Box::pin(desk.exchange(ask, Duration::from_secs(20)));
        for _ in 0..polls {
            if futures_util::poll!(asking.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(asking);
        let next = claim(&api, &format!("n{polls}"), json!({"wait_ms": 20_000})).await;
        assert_eq!(next["tasks"][0]["key"], key, "dropped after {polls} polls");
        assert_eq!(next["tasks"][0]["attempt"], 1, "and it does not count");
        let done = json!({"results": [{"id": next["tasks"][0]["id"],
            "token": next["tasks"][0]["token"], "outcome": "done"}]});
        ok(&api, Method::POST, "/api/v1/results", done).await;
    }
}

async fn a_node_that_shuts_down_answers_those_who_wait(on: On) {
    let (mut server, api) = shop_on(on, json!({})).await;
    let waiting = wait(&api, "r1");
    until_waiting(&server, 1).await;
    let begun = clock::boot();
    server.drain.take().unwrap().run().await;
    let answer = waiting.await.unwrap();
    assert_eq!(answer, json!({"tasks": [], "reason": "empty", "next_at": null}));
    within(clock::boot().since(begun), Duration::from_secs(5), "who waits is answered");
}

async fn a_killed_node_leaves_its_clients_tasks_to_the_other_one() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), "");
    ground.add_user("olga", "operator");
    let token = ground.token("olga");
    let (mut first, second) = (ground.start("node-a"), ground.start("node-b"));
    let (here, there) = (first.api(&token), second.api(&token));
    define(&here, "shop", json!({"lease_ms": 1_500})).await;
    put(&here, &["a"]).await;
    let begun = clock::boot();
    let claimed = claim(&here, "r1", json!({})).await;
    assert_eq!(claimed["tasks"][0]["key"], "a");
    first.kill();
    let next = claim(&there, "r2", json!({"collector": "c2", "wait_ms": 25_000})).await;
    let took = clock::boot().since(begun);
    assert_eq!((&next["tasks"][0]["key"], &next["tasks"][0]["attempt"]), (&json!("a"), &json!(2)));
    within(took, Duration::from_millis(1_500) + PROMPT, "who waits is answered");
    // The same request, asked again elsewhere, is still the same.
    let again = claim(&there, "r2", json!({"collector": "c2", "wait_ms": 25_000})).await;
    assert_eq!(again, next);
}
