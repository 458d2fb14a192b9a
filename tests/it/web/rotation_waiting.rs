//! Waiting for a turn: who is answered, when, and what becomes of those who vanish.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use actix_web::App;
use actix_web::body::MessageBody as _;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::web::Data;
use reqwest::Method;
use serde_json::{Value, json};
use soloist::clock;
use soloist::store::accounts::Role;
use soloist::store::rotation::TurnAsk;
use soloist::web::{door, routes};
use tokio::task::JoinHandle;

use super::On;
use super::dispatch::ok;
use super::rotations::{SUPPLIER, granted, number_of, pass, supplier, take, three};
use crate::support::api::Api;
use crate::support::machine::{holds, judged, within};
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

judged! {
    a_killed_node_leaves_its_clients_turn_to_the_other_one
}

/// What the promise for a dead holder allows besides its lease.
const PROMPT: Duration = Duration::from_millis(300);
const LEASE: Duration = Duration::from_millis(1_000);

/// Somebody who waits for a turn, and what they get.
fn wait(api: &Api, kind: &str, request: &str) -> JoinHandle<Value> {
    let (api, kind, request) = (api.clone(), kind.to_owned(), request.to_owned());
    tokio::spawn(async move { take(&api, &kind, &request, json!({"wait_ms": 25_000})).await })
}

/// Until `count` wait, as the store knows.
async fn until_waiting(api: &Api, count: usize) -> Value {
    until_async("all are waiting", async || {
        let view = api.get(SUPPLIER).await;
        (view["waiters"].as_array().unwrap().len() == count).then_some(view)
    })
    .await
}

on_every_store! {
    a_pass_answers_at_once_the_one_who_waits_at_another_node
    one_pass_answers_one_of_eighteen_and_the_types_go_round
    starts_are_never_closer_than_the_gap_however_many_wait
    a_dead_holders_turn_goes_to_whoever_waits_when_its_lease_ends
    who_hangs_up_while_waiting_leaves_no_waiter_and_the_next_one_is_served
    who_hung_up_and_asks_again_has_a_turn_at_once_whatever_the_moment
    a_turn_whose_answer_did_not_leave_the_node_goes_to_another
    a_request_that_is_dropped_at_any_point_leaves_no_turn_behind
    a_node_that_shuts_down_answers_those_who_wait
    whoever_waits_is_told_what_for_when_the_time_is_over
}

async fn a_pass_answers_at_once_the_one_who_waits_at_another_node(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    let mut turn = granted(&api, "a", "r0", json!({})).await;
    let mut waited = Duration::ZERO;
    for nth in 1..=10 {
        let (from, to) = if nth % 2 == 0 { (&there, &api) } else { (&api, &there) };
        let waiting = wait(to, "b", &format!("r{nth}"));
        until_waiting(&api, 1).await;
        let begun = clock::boot();
        pass(from, &turn, "done", json!({})).await;
        turn = waiting.await.unwrap();
        waited += clock::boot().since(begun);
        assert!(turn["token"].is_u64(), "{turn}");
    }
    // Found by chance, when they ask again after a second, they would take twice that together.
    within(waited, PROMPT * 10, "ten turns");
}

async fn one_pass_answers_one_of_eighteen_and_the_types_go_round(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    let mut turn = granted(&api, "c", "r", json!({})).await;
    // Of c there are fewer: when nobody waits for it, it is passed over.
    let kinds =
        ["a", "a", "b", "b", "a", "a", "b", "b", "c", "c", "a", "a", "b", "b", "c", "a", "b", "a"];
    let mut waiting = Vec::new();
    for (nth, kind) in kinds.iter().enumerate() {
        let at = if nth % 2 == 0 { &api } else { &there };
        waiting.push(wait(at, kind, &format!("r{nth}")));
    }
    let view = until_waiting(&api, kinds.len()).await;
    let counts: Vec<&Value> =
        view["types"].as_array().unwrap().iter().map(|kind| &kind["waiting"]).collect();
    assert_eq!(counts, [8, 7, 3]);
    assert_eq!(view["next"], json!({"type": "a", "at": null, "reason": "held"}));
    let mut served = String::new();
    for left in (0..kinds.len()).rev() {
        pass(&api, &turn, "done", json!({})).await;
        let (answer, _, rest) = futures_util::future::select_all(waiting).await;
        turn = answer.unwrap();
        assert!(turn["token"].is_u64(), "{turn}");
        waiting = rest;
        let view = api.get(SUPPLIER).await;
        assert_eq!(view["holder"]["turn"], number_of(&turn));
        assert_eq!(view["waiters"].as_array().unwrap().len(), left, "the others wait on: {view}");
        served.push_str(view["holder"]["type"].as_str().unwrap());
        let answered = waiting.iter().filter(|one| one.is_finished()).count();
        assert_eq!((answered, waiting.len()), (0, left), "one pass answers one of them");
    }
    assert_eq!(served, "abcabcabcababababa", "in cyclic order");
}

async fn starts_are_never_closer_than_the_gap_however_many_wait(on: On) {
    let gap = Duration::from_millis(150);
    let (server, api) = supplier(on, three(json!({"min_gap_ms": 150, "lease_ms": 60_000}))).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    let turn = granted(&api, "a", "r", json!({})).await;
    let mut waiting: Vec<_> = (0..6)
        .map(|nth| {
            wait(if nth % 2 == 0 { &api } else { &there }, ["a", "b"][nth % 2], &format!("r{nth}"))
        })
        .collect();
    until_waiting(&api, 6).await;
    let begun = clock::boot();
    pass(&api, &turn, "done", json!({})).await;
    for _ in 0..6 {
        let (answer, _, rest) = futures_util::future::select_all(waiting).await;
        pass(&api, &answer.unwrap(), "done", json!({})).await;
        waiting = rest;
    }
    let took = clock::boot().since(begun);
    // Each had to be woken at the end of the gap: found by chance a second later, six would take far longer.
    within(took, gap * 6 + PROMPT * 3, "six turns");
    let view = api.get(SUPPLIER).await;
    let starts: Vec<jiff::Timestamp> = view["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| turn["since"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(starts.len(), 7);
    for pair in starts.windows(2) {
        let apart = pair[0].duration_since(pair[1]).as_millis();
        holds(apart >= 150, || format!("two starts are {apart} ms apart: {view}"));
    }
}

async fn a_dead_holders_turn_goes_to_whoever_waits_when_its_lease_ends(on: On) {
    let lease = u64::try_from(LEASE.as_millis()).unwrap();
    let (server, api) = supplier(on, three(json!({ "lease_ms": lease }))).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    let begun = clock::boot();
    let gone = granted(&api, "a", "gone", json!({})).await;
    let next = granted(&there, "a", "next", json!({"worker": "heir", "wait_ms": 25_000})).await;
    let took = clock::boot().since(begun);
    assert!(next["token"].as_u64() > gone["token"].as_u64());
    holds(took >= LEASE, || format!("the turn went on after {took:?}"));
    within(took, LEASE + PROMPT, "the turn goes on");
    let view = api.get(SUPPLIER).await;
    assert_eq!(
        (&view["turns"][0]["turn"], &view["turns"][0]["outcome"]),
        (&number_of(&gone), &json!("lost"))
    );
    assert_eq!(view["holder"]["worker"], "heir");
}

async fn who_hangs_up_while_waiting_leaves_no_waiter_and_the_next_one_is_served(on: On) {
    let (_server, api) = supplier(on, three(json!({"lease_ms": 60_000}))).await;
    let turn = granted(&api, "a", "r0", json!({})).await;
    let first = wait(&api, "b", "r1");
    until_waiting(&api, 1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    until_waiting(&api, 0).await;
    let second = wait(&api, "c", "r2");
    until_waiting(&api, 1).await;
    pass(&api, &turn, "done", json!({})).await;
    let answer = second.await.unwrap();
    assert!(answer["token"].is_u64(), "{answer}");
    let view = api.get(SUPPLIER).await;
    assert_eq!(
        (&view["holder"]["type"], &view["turns"].as_array().unwrap().len()),
        (&json!("c"), &1)
    );
}

async fn who_hung_up_and_asks_again_has_a_turn_at_once_whatever_the_moment(on: On) {
    let (_server, api) = supplier(on, three(json!({"lease_ms": 60_000}))).await;
    let mut turn = granted(&api, "a", "r", json!({})).await;
    for nth in 0..30 {
        let request = format!("h{nth}");
        let hanging = wait(&api, "b", &request);
        if nth % 2 == 0 {
            until_waiting(&api, 1).await;
        }
        pass(&api, &turn, "done", json!({})).await;
        for _ in 0..nth % 7 {
            tokio::task::yield_now().await;
        }
        hanging.abort();
        // Its end, whichever.
        drop(hanging.await);
        turn = granted(&api, "b", &request, json!({"wait_ms": 5_000})).await;
    }
}

async fn a_turn_whose_answer_did_not_leave_the_node_goes_to_another(on: On) {
    let (server, api) = supplier(on, three(json!({"lease_ms": 60_000}))).await;
    let token = server.token("carl", Role::Collector).await;
    let app = App::new()
        .app_data(Data::new(server.web.clone()))
        .wrap(from_fn(door::door))
        .configure(routes::mount);
    let app = init_service(app).await;
    let ask = async |request: &str| {
        let body = json!({"type": "a", "worker": "gone", "request_id": request});
        let call = TestRequest::post().uri(&format!("{SUPPLIER}/turns")).set_json(body);
        let call = call.insert_header(("authorization", format!("Bearer {token}")));
        let answer = call_service(&app, call.to_request()).await;
        assert!(answer.status().is_success());
        Box::pin(answer.into_body())
    };
    // The connection asks for the bytes, writes them, and asks again until there is no more.
    for read in 0..3 {
        let mut body = ask(&format!("g{read}")).await;
        for _ in 0..read {
            let part = futures_util::poll!(poll_fn(|context| body.as_mut().poll_next(context)));
            assert!(!matches!(part, Poll::Ready(None)), "it ends too soon");
        }
        drop(body);
        let turn = granted(&api, "b", &format!("n{read}"), json!({"wait_ms": 20_000})).await;
        pass(&api, &turn, "done", json!({})).await;
    }
    let mut body = ask("kept").await;
    while poll_fn(|context| body.as_mut().poll_next(context)).await.is_some() {}
    drop(body);
    let told = take(&api, "b", "next", json!({"wait_ms": 500})).await;
    assert_eq!((&told["reason"], &told["holder"]["worker"]), (&json!("held"), &json!("gone")));
}

async fn a_request_that_is_dropped_at_any_point_leaves_no_turn_behind(on: On) {
    let (server, api) = supplier(on, three(json!({"lease_ms": 60_000}))).await;
    let desk = &server.web.turns;
    for polls in 1..60 {
        let ask = TurnAsk {
            rotation: "supplier".parse().unwrap(),
            kind: "a".parse().unwrap(),
            worker: "gone".parse().unwrap(),
            request: format!("g{polls}").parse().unwrap(),
            wait: None,
        };
        let mut asking = Box::pin(desk.take(ask, Duration::from_secs(20)));
        for _ in 0..polls {
            if futures_util::poll!(asking.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(asking);
        let next = granted(&api, "b", &format!("n{polls}"), json!({"wait_ms": 20_000})).await;
        pass(&api, &next, "done", json!({})).await;
    }
    assert_eq!(api.get(SUPPLIER).await["waiters"], json!([]));
}

async fn a_node_that_shuts_down_answers_those_who_wait(on: On) {
    let (mut server, api) = supplier(on, three(json!({}))).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    granted(&api, "a", "r1", json!({})).await;
    let waiting = wait(&api, "b", "r2");
    until_waiting(&there, 1).await;
    let begun = clock::boot();
    server.drain.take().unwrap().run().await;
    let answer = waiting.await.unwrap();
    assert_eq!((&answer["reason"], &answer["holder"]["worker"]), (&json!("held"), &json!("w-a")));
    within(clock::boot().since(begun), Duration::from_secs(10), "who waits is answered");
    until_waiting(&there, 0).await;
}

async fn whoever_waits_is_told_what_for_when_the_time_is_over(on: On) {
    let rules = json!({"skip": "never", "types": [{"name": "a", "gap_ms": 60_000}, {"name": "b"}]});
    let (_server, api) = supplier(on, rules).await;
    let told = async |kind: &str, request: &str| {
        let answer = take(&api, kind, request, json!({"wait_ms": 20})).await;
        (answer["reason"].clone(), answer["ahead"].clone(), answer["holder"].clone())
    };
    // Nobody waits for a, and it is not skipped.
    assert_eq!(told("b", "r1").await, (json!("absent"), json!(0), Value::Null));
    pass(&api, &granted(&api, "a", "r2", json!({})).await, "done", json!({"next": "a"})).await;
    let first = wait(&api, "a", "r3");
    let view = until_waiting(&api, 1).await;
    assert_eq!((&view["next"]["type"], &view["next"]["reason"]), (&json!("a"), &json!("gap")));
    assert_eq!(told("b", "r4").await, (json!("order"), json!(1), Value::Null));
    assert_eq!(told("a", "r5").await, (json!("gap"), json!(1), Value::Null));
    // By new rules b comes first, and both have their turns.
    let rules = json!({"types": [{"name": "a", "gap_ms": 0}, {"name": "b"}]});
    ok(&api, Method::PUT, SUPPLIER, rules).await;
    let answer = first.await.unwrap();
    assert!(answer["token"].is_u64(), "new rules count at once: {answer}");
}

async fn a_killed_node_leaves_its_clients_turn_to_the_other_one() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), "");
    ground.add_user("olga", "operator");
    let token = ground.token("olga");
    let (mut first, second) = (ground.start("node-a"), ground.start("node-b"));
    let (here, there) = (first.api(&token), second.api(&token));
    ok(&there, Method::PUT, SUPPLIER, three(json!({"lease_ms": 1_500}))).await;
    let begun = clock::boot();
    granted(&here, "a", "r1", json!({})).await;
    // It comes first, but dies with its node.
    let dead = wait(&here, "b", "r2");
    until_waiting(&there, 1).await;
    let heir = wait(&there, "c", "r3");
    until_waiting(&there, 2).await;
    first.kill();
    let turn = heir.await.unwrap();
    let took = clock::boot().since(begun);
    assert!(turn["token"].is_u64(), "{turn}");
    within(took, Duration::from_millis(1_500) + PROMPT * 2, "the turn goes on");
    assert!(dead.await.is_err(), "nobody answered it");
    // The same request, asked again elsewhere, is still the same.
    let again = granted(&there, "c", "r3", json!({"wait_ms": 25_000})).await;
    assert_eq!(again["turn"], turn["turn"]);
}
