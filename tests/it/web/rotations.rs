//! The calls of rotations: their shapes, who may make them, and what is said when something is wrong.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::store::accounts::Role;

use super::dispatch::ok;
use super::{On, Server, problem};
use crate::support::api::Api;
use crate::support::wait::until_async;

pub(super) const SUPPLIER: &str = "/api/v1/rotations/supplier";
const TURNS: &str = "/api/v1/rotations/supplier/turns";

/// Three types, and whatever rules besides.
pub(super) fn three(more: Value) -> Value {
    let mut rules = json!({"types": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    for (name, value) in more.as_object().unwrap() {
        rules[name] = value.clone();
    }
    rules
}

/// A server with one rotation, and somebody who may do everything with it.
pub(super) async fn supplier(on: On, rules: Value) -> (Server, Api) {
    let server = Server::on(on).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    ok(&api, Method::PUT, SUPPLIER, rules).await;
    (server, api)
}

fn ask(kind: &str, request: &str, more: &Value) -> Value {
    let mut body = json!({"type": kind, "worker": format!("w-{kind}"), "request_id": request});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Asks for a turn, and is not refused.
pub(super) async fn take(api: &Api, kind: &str, request: &str, more: Value) -> Value {
    ok(api, Method::POST, TURNS, ask(kind, request, &more)).await
}

/// As [`take`], and it is had.
pub(super) async fn granted(api: &Api, kind: &str, request: &str, more: Value) -> Value {
    let turn = take(api, kind, request, more).await;
    assert!(turn["token"].is_u64(), "{kind}, {request}: {turn}");
    turn
}

/// A turn as everybody may know it.
pub(super) fn number_of(turn: &Value) -> Value {
    json!(turn["token"].to_string())
}

/// The address of a turn.
fn of(turn: &Value, act: &str) -> String {
    format!("{TURNS}/{}/{act}", turn["turn"].as_str().unwrap())
}

fn end(turn: &Value, outcome: &str, more: &Value) -> Value {
    let mut body = json!({"token": turn["token"], "outcome": outcome});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Passes a turn, and it counts.
pub(super) async fn pass(api: &Api, turn: &Value, outcome: &str, more: Value) -> Value {
    ok(api, Method::POST, &of(turn, "pass"), end(turn, outcome, &more)).await
}

async fn refused(api: &Api, path: &str, body: Value, status: u16, says: &str) {
    let (got, answer) = api.call(Method::POST, path, Some(body)).await;
    assert_eq!(got.as_u16(), status, "{path}: {answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains(says), "{path}: {detail}");
}

fn names(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn instant(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_default();
    assert!(text.len() == "2026-05-04T01:02:03.004Z".len() && text.ends_with('Z'), "{value}");
    text.parse().unwrap()
}

fn after(earlier: &Value, later: &Value) -> Duration {
    Duration::try_from(instant(later).duration_since(instant(earlier))).unwrap()
}

on_every_store! {
    turns_go_round_by_the_documented_calls
    the_same_request_has_the_same_turn_at_any_node_until_it_ends
    whoever_does_not_get_a_turn_is_told_why_and_when
    what_is_wrong_is_named_with_its_place_and_remedy
    a_stale_pass_or_extension_changes_nothing_and_says_what_happened
    a_turn_outlives_its_type_and_nobody_else_gets_one_of_that
    a_bound_token_takes_turns_as_its_worker_only
    the_word_of_a_clients_clock_counts_only_as_its_own_not_before
    turns_are_counted_by_how_they_ended
}

async fn turns_go_round_by_the_documented_calls(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    let new = api.get(SUPPLIER).await;
    let count = |name: &str, gap_ms: u64, quota: Value| {
        json!({"name": name, "gap_ms": gap_ms, "quota": quota,
        "waiting": 0, "done": 0, "empty": 0, "failed": 0, "lost": 0})
    };
    let expected = json!({"name": "supplier", "min_gap_ms": 0, "lease_ms": 30_000, "skip": "absent",
        "types": [count("a", 0, Value::Null), count("b", 0, Value::Null), count("c", 0, Value::Null)],
        "holder": null, "order": ["a", "b", "c"],
        "next": {"type": null, "at": null, "reason": "idle"}, "waiters": [], "turns": []});
    assert_eq!(new, expected);

    let first = granted(&carl, "a", "r1", json!({})).await;
    assert_eq!(names(&first), ["lease_until", "token", "turn"]);
    let (number, seal) = first["turn"].as_str().unwrap().split_once('.').unwrap();
    assert_eq!((number, seal.len()), (first["token"].to_string().as_str(), 32));
    let told = take(&api, "b", "r2", json!({})).await;
    assert_eq!(names(&told), ["ahead", "earliest_at", "holder", "reason"]);
    assert_eq!((&told["reason"], &told["ahead"]), (&json!("held"), &json!(0)));
    let holder = &told["holder"];
    assert_eq!(names(holder), ["lease_until", "since", "turn", "type", "worker"]);
    assert_eq!(holder["lease_until"], first["lease_until"]);
    assert_eq!(after(&holder["since"], &holder["lease_until"]), Duration::from_secs(30));
    let strangers = take(&carl, "b", "r3", json!({})).await;
    assert_eq!(names(&strangers["holder"]), ["lease_until", "since", "type", "worker"]);
    assert!(
        !api.get(SUPPLIER).await.to_string().contains(seal),
        "nobody is told what cannot be guessed"
    );

    let longer = ok(&carl, Method::POST, &of(&first, "extend"), json!({})).await;
    assert_eq!((&longer["turn"], &longer["token"]), (&first["turn"], &first["token"]));
    assert!(instant(&longer["lease_until"]) >= instant(&first["lease_until"]));
    let token = json!({"token": first["token"]});
    ok(&carl, Method::POST, &of(&first, "extend"), token).await;
    let held = api.get(SUPPLIER).await;
    assert_eq!(
        (&held["holder"]["turn"], &held["holder"]["worker"]),
        (&number_of(&first), &json!("w-a"))
    );
    assert_eq!(held["order"], json!(["b", "c", "a"]));
    let passed = pass(&carl, &first, "done", json!({})).await;
    assert_eq!(passed, json!({"turn": first["turn"], "outcome": "done"}));

    let second = granted(&carl, "c", "r4", json!({})).await;
    assert!(second["token"].as_u64() > first["token"].as_u64());
    pass(&carl, &second, "empty", json!({"next": "b"})).await;
    assert_eq!(api.get(SUPPLIER).await["order"], json!(["b", "c", "a"]));
    let third = granted(&carl, "b", "r5", json!({})).await;
    pass(&carl, &third, "failed", json!({"next": null, "not_before": null})).await;
    let view = api.get(SUPPLIER).await;
    let turns = view["turns"].as_array().unwrap();
    let past: Vec<[&Value; 3]> =
        turns.iter().map(|one| [&one["turn"], &one["type"], &one["outcome"]]).collect();
    assert_eq!(
        past,
        [
            [&number_of(&third), &json!("b"), &json!("failed")],
            [&number_of(&second), &json!("c"), &json!("empty")],
            [&number_of(&first), &json!("a"), &json!("done")],
        ]
    );
    assert!(instant(&turns[0]["since"]) <= instant(&turns[0]["ended"]));
    assert_eq!((&view["holder"], &view["types"][1]["failed"]), (&Value::Null, &json!(1)));
    assert_eq!(api.get(&format!("{SUPPLIER}?limit=1")).await["turns"], json!([turns[0]]));
    let mut listed = api.get("/api/v1/rotations").await;
    instant(&listed["now"].take());
    assert_eq!(listed, json!({"rotations": [view], "now": null}));

    let rules = json!({"types": [{"name": "b", "gap_ms": 5, "quota": {"count": 7, "ms": 9}}],
        "min_gap_ms": 1, "lease_ms": 500, "skip": "never"});
    let changed = ok(&api, Method::PUT, SUPPLIER, rules).await;
    let mut only = count("b", 5, json!({"count": 7, "ms": 9}));
    only["failed"] = json!(1);
    let mut types = changed["types"].clone();
    // What its next start waits for is said while it does.
    types[0].as_object_mut().unwrap().retain(|name, _| name != "reason" && name != "earliest_at");
    assert_eq!(types, json!([only]));
    assert_eq!((&changed["min_gap_ms"], &changed["lease_ms"]), (&json!(1), &json!(500)));
    assert_eq!(changed["next"], json!({"type": "b", "at": null, "reason": "absent"}));
    let audit = api.get("/api/v1/audit?target=supplier").await;
    let acts: Vec<[&Value; 2]> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| [&entry["act"], &entry["who"]])
        .collect();
    assert_eq!(
        acts,
        [[&json!("rotation.put"), &json!("olga")], [&json!("rotation.put"), &json!("olga")]]
    );
}

async fn the_same_request_has_the_same_turn_at_any_node_until_it_ends(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    let first = granted(&api, "a", "lost", json!({})).await;
    assert_eq!(granted(&there, "a", "lost", json!({})).await, first);
    for (kind, request, more) in [
        ("a", "other", json!({})),
        ("b", "lost", json!({})),
        ("a", "lost", json!({"worker": "somebody-else"})),
    ] {
        let told = take(&there, kind, request, more).await;
        assert_eq!(told["reason"], "held", "{kind}, {request} is another request: {told}");
    }
    pass(&there, &first, "done", json!({})).await;
    let says = "which has ended: ask for another with a new request_id";
    for at in [&api, &there] {
        refused(at, TURNS, ask("a", "lost", &json!({"wait_ms": 20_000})), 409, says).await;
    }
    let second = granted(&there, "a", "found", json!({})).await;
    assert!(second["token"].as_u64() > first["token"].as_u64());
}

async fn whoever_does_not_get_a_turn_is_told_why_and_when(on: On) {
    let (_server, api) = supplier(on, three(json!({"min_gap_ms": 60_000}))).await;
    let told = async |kind: &str, request: &str, reason: &str| -> Value {
        let answer = take(&api, kind, request, json!({})).await;
        let shown = (&answer["holder"], &answer["reason"]);
        assert_eq!(shown, (&Value::Null, &json!(reason)), "{request}: {answer}");
        answer["earliest_at"].clone()
    };
    let rules = async |rules: Value| ok(&api, Method::PUT, SUPPLIER, rules).await;
    pass(&api, &granted(&api, "a", "r1", json!({})).await, "done", json!({})).await;
    let at = told("b", "r2", "gap").await;
    let since = api.get(SUPPLIER).await["turns"][0]["since"].clone();
    let gap = after(&since, &at);
    // The start is rounded down, the instant up.
    assert!((60_000..=60_001).contains(&gap.as_millis()), "{gap:?}");

    rules(json!({"types": [{"name": "a", "gap_ms": 60_000},
        {"name": "b", "quota": {"count": 1, "ms": 60_000}}, {"name": "c"}]}))
    .await;
    assert_eq!(told("a", "r3", "gap").await, at, "the start of before counts");
    let turn = granted(&api, "b", "r4", json!({})).await;
    let hour = instant(&turn["lease_until"]) + SignedDuration::from_hours(1);
    pass(&api, &turn, "done", json!({"not_before": hour.to_string()})).await;
    assert_eq!(instant(&told("c", "r5", "not_before").await), hour);
    assert_eq!(instant(&told("b", "r6", "not_before").await), hour);

    // Free again by new rules, but not by forgetting what was said and what has started.
    rules(json!({"types": [{"name": "a", "gap_ms": 60_000}, {"name": "b"}, {"name": "c"}]})).await;
    assert_eq!(instant(&told("c", "r7", "not_before").await), hour);
}

async fn what_is_wrong_is_named_with_its_place_and_remedy(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let token = api.token().to_owned();
    let turn = granted(&api, "a", "r1", json!({})).await;
    let takes = |field: &str, value: Value| ask("a", "r2", &json!({ field: value }));
    let passes = |field: &str, value: Value| end(&turn, "done", &json!({ field: value }));
    let rules = |field: &str, value: Value| three(json!({ field: value }));
    let kinds = |value: Value| json!({"types": [{"name": "a"}, value]});
    let own = |act: &str| of(&turn, act)["/api/v1/".len()..].to_owned();
    let (own_pass, own_extend) = (own("pass"), own("extend"));
    let far = Timestamp::now() + SignedDuration::from_hours(25);
    let many: Vec<Value> = (0..51).map(|nth| json!({"name": format!("t{nth}")})).collect();
    let (put, take) = ("rotations/supplier", "rotations/supplier/turns");
    let before = api.get(SUPPLIER).await;
    let define = "define it first with PUT /api/v1/rotations/mail";
    for (method, path, body, status, says) in [
        ("PUT", put, json!({}), 400, "missing field `types`"),
        ("PUT", put, json!({"types": []}), 400, "types: from 1 to 50"),
        ("PUT", put, json!({"types": many}), 400, "types: from 1 to 50"),
        ("PUT", put, json!({"types": ["a"]}), 400, "line 1, column"),
        ("PUT", put, kinds(json!({"name": "B"})), 400, "types[1].name: \"B\" is not a valid name"),
        ("PUT", put, kinds(json!({"name": "a"})), 400, "types[1].name: each type once"),
        (
            "PUT",
            put,
            kinds(json!({"name": "b", "gap_ms": u64::MAX})),
            400,
            "types[1].gap_ms: at most a year",
        ),
        ("PUT", put, kinds(json!({"name": "b", "gap_ms": -1})), 400, "field gap_ms"),
        ("PUT", put, kinds(json!({"name": "b", "quota": {"count": 1}})), 400, "missing field `ms`"),
        (
            "PUT",
            put,
            kinds(json!({"name": "b", "quota": {"count": 0, "ms": 1}})),
            400,
            "types[1].quota.count: from 1 to 1000",
        ),
        (
            "PUT",
            put,
            kinds(json!({"name": "b", "quota": {"count": 1, "ms": 0}})),
            400,
            "types[1].quota.ms: from 1",
        ),
        ("PUT", put, kinds(json!({"name": "b", "gap": 1})), 400, "unknown field `gap`"),
        ("PUT", put, rules("min_gap_ms", json!(u64::MAX)), 400, "min_gap_ms: at most a year"),
        ("PUT", put, rules("lease_ms", json!(5)), 400, "lease_ms: from 100 to 86400000"),
        ("PUT", put, rules("skip", json!("maybe")), 400, "expected `absent` or `never`"),
        ("PUT", put, rules("gap_ms", json!(1)), 400, "unknown field `gap_ms`"),
        ("PUT", "rotations/Supplier", three(json!({})), 400, "not a valid name"),
        ("GET", "rotations/mail", json!({}), 404, define),
        ("GET", "rotations/Mail", json!({}), 404, "there is no rotation \"Mail\""),
        ("GET", "rotations/supplier?limit=x", json!({}), 400, "the query is not as expected"),
        ("POST", take, takes("type", json!("A")), 400, "type: \"A\" is not a valid name"),
        ("POST", take, takes("type", json!("d")), 404, "no type d, only a, b, c"),
        ("POST", take, takes("worker", json!("a b")), 400, "worker: \"a b\" is not valid here"),
        ("POST", take, takes("request_id", json!("")), 400, "request_id: \"\" is not valid here"),
        ("POST", take, takes("wait_ms", json!(30_001)), 400, "wait_ms: from 0 to 30000"),
        ("POST", take, takes("max", json!(1)), 400, "unknown field `max`"),
        ("POST", take, json!({"type": "a", "worker": "w"}), 400, "missing field `request_id`"),
        ("POST", "rotations/mail/turns", takes("wait_ms", json!(9_000)), 404, define),
        (
            "POST",
            &own_pass,
            passes("token", json!(u64::MAX)),
            400,
            "token: at most 9007199254740991",
        ),
        ("POST", &own_pass, passes("token", json!(1)), 409, "1 is not that of the turn"),
        ("POST", &own_pass, passes("token", json!("1")), 400, "field token"),
        (
            "POST",
            &own_pass,
            passes("outcome", json!("lost")),
            400,
            "expected one of `done`, `empty`, `failed`",
        ),
        ("POST", &own_pass, json!({"token": turn["token"]}), 400, "missing field `outcome`"),
        ("POST", &own_pass, passes("next", json!("d")), 404, "no type d, only a, b, c"),
        ("POST", &own_pass, passes("next", json!("D")), 400, "next: \"D\" is not a valid name"),
        (
            "POST",
            &own_pass,
            passes("not_before", json!("tomorrow")),
            400,
            "not_before: \"tomorrow\" is no instant",
        ),
        (
            "POST",
            &own_pass,
            passes("not_before", json!(far.to_string())),
            400,
            "not_before: at most a day ahead",
        ),
        (
            "POST",
            "rotations/supplier/turns/1/pass",
            json!({"token": 1, "outcome": "done"}),
            409,
            "the turn 1 is unknown",
        ),
        (
            "POST",
            "rotations/supplier/turns/none/pass",
            passes("next", json!("b")),
            404,
            "there is no turn \"none\"",
        ),
        (
            "POST",
            "rotations/mail/turns/1/pass",
            json!({"token": 1, "outcome": "done"}),
            404,
            define,
        ),
        (
            "POST",
            "rotations/mail/turns/1/pass",
            json!({"token": 2, "outcome": "done"}),
            404,
            define,
        ),
        ("POST", &own_extend, json!({"token": 1}), 409, "1 is not that of the turn"),
        ("POST", &own_extend, json!({"lease_ms": 1}), 400, "unknown field `lease_ms`"),
        ("POST", "rotations/supplier/turns/1/extend", json!({}), 409, "the turn 1 is unknown"),
        ("POST", "rotations/supplier/turns/+1/extend", json!({}), 404, "there is no turn \"+1\""),
        (
            "POST",
            "rotations/supplier/turns/9007199254740992/extend",
            json!({}),
            404,
            "there is no turn",
        ),
        ("POST", "rotations/mail/turns/1/extend", json!({}), 404, define),
    ] {
        let request = server.ask(method, &format!("/api/v1/{path}")).bearer_auth(&token);
        let (got, detail) = problem(request.body(body.to_string()).send().await.unwrap()).await;
        assert_eq!(got, status, "{method} {path} {body}: {detail}");
        assert!(detail.contains(says), "{method} {path} {body}: {detail}");
    }
    assert_eq!(api.get(SUPPLIER).await, before, "nothing was changed");
    let request = server.ask("POST", TURNS).bearer_auth(&token);
    let answer = request.body(" ".repeat(70_000)).send().await.unwrap();
    assert_eq!(problem(answer).await.0, 413);
    pass(&api, &turn, "done", json!({})).await;
}

async fn a_stale_pass_or_extension_changes_nothing_and_says_what_happened(on: On) {
    let (_server, api) = supplier(on, three(json!({}))).await;
    let first = granted(&api, "a", "r1", json!({})).await;
    pass(&api, &first, "done", json!({})).await;
    let quiet = api.get(SUPPLIER).await;
    let ended = quiet["turns"][0]["ended"].as_str().unwrap();
    let says =
        format!("was passed as done at {ended}; nothing was changed, and nobody has the turn");
    refused(&api, &of(&first, "pass"), end(&first, "failed", &json!({})), 409, &says).await;
    refused(&api, &of(&first, "extend"), json!({}), 409, &says).await;
    assert_eq!(api.get(SUPPLIER).await, quiet);

    let second = granted(&api, "b", "r2", json!({})).await;
    let held = api.get(SUPPLIER).await;
    let until = second["lease_until"].as_str().unwrap();
    let says = format!("w-b has the turn now, for b, until {until}. Stop what goes on under it");
    let meddling = json!({"next": "a", "not_before": until});
    refused(&api, &of(&first, "pass"), end(&first, "done", &meddling), 409, &says).await;
    refused(&api, &of(&first, "extend"), json!({}), 409, &says).await;
    assert_eq!(api.get(SUPPLIER).await, held);
    pass(&api, &second, "done", json!({})).await;

    ok(&api, Method::PUT, SUPPLIER, three(json!({"lease_ms": 100}))).await;
    let third = granted(&api, "c", "r3", json!({})).await;
    until_async("the lease is over", async || {
        (api.get(SUPPLIER).await["turns"][0]["turn"] == number_of(&third)).then_some(())
    })
    .await;
    let lost = api.get(SUPPLIER).await;
    assert_eq!(lost["turns"][0]["outcome"], "lost");
    let says = format!(
        "was lost at {}, when its lease ended",
        lost["turns"][0]["ended"].as_str().unwrap()
    );
    refused(&api, &of(&third, "pass"), end(&third, "done", &json!({})), 409, &says).await;
    refused(&api, &of(&third, "extend"), json!({}), 409, &says).await;
    assert_eq!(api.get(SUPPLIER).await, lost);
}

async fn a_turn_outlives_its_type_and_nobody_else_gets_one_of_that(on: On) {
    let (_server, api) = supplier(on, three(json!({}))).await;
    let turn = granted(&api, "b", "r1", json!({})).await;
    let waiting = {
        let api = api.clone();
        let body = ask("b", "r2", &json!({"worker": "next", "wait_ms": 25_000}));
        tokio::spawn(async move { api.call(Method::POST, TURNS, Some(body)).await })
    };
    until_async("somebody waits", async || {
        (api.get(SUPPLIER).await["waiters"][0]["worker"] == "next").then_some(())
    })
    .await;
    let changed =
        ok(&api, Method::PUT, SUPPLIER, json!({"types": [{"name": "a"}, {"name": "d"}]})).await;
    assert_eq!((&changed["holder"]["type"], &changed["waiters"]), (&json!("b"), &json!([])));
    let begun = soloist::clock::boot();
    let (status, answer) = waiting.await.unwrap();
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("no type b, only a, d"), "{answer}");
    let took = soloist::clock::boot().since(begun);
    crate::support::machine::within(took, Duration::from_secs(10), "who waits is told");
    refused(&api, TURNS, ask("b", "r3", &json!({})), 404, "no type b").await;
    assert_eq!(take(&api, "d", "r4", json!({})).await["reason"], "held");
    ok(&api, Method::POST, &of(&turn, "extend"), json!({})).await;
    refused(&api, &of(&turn, "pass"), end(&turn, "done", &json!({"next": "b"})), 404, "no type b")
        .await;
    pass(&api, &turn, "done", json!({"next": "d"})).await;
    granted(&api, "d", "r5", json!({})).await;
}

async fn a_bound_token_takes_turns_as_its_worker_only(on: On) {
    let (server, olga) = supplier(on, three(json!({}))).await;
    let bound = server.bound_token("carl", Role::Collector, Some("host/1"), &[]).await;
    let carl = Api::new(&server.url(""), &bound);
    let says = "the collector host/1 only, not for the worker w-a";
    refused(&carl, TURNS, ask("a", "r1", &json!({})), 403, says).await;
    let others = granted(&olga, "a", "r2", json!({})).await;
    let says = "is not one that this token or session took; nothing was changed";
    refused(&carl, &of(&others, "extend"), json!({}), 409, says).await;
    refused(&carl, &of(&others, "pass"), end(&others, "done", &json!({})), 409, says).await;
    pass(&olga, &others, "done", json!({})).await;
    let own = granted(&carl, "a", "r3", json!({"worker": "host/1"})).await;
    ok(&carl, Method::POST, &of(&own, "extend"), json!({})).await;
    pass(&carl, &own, "done", json!({})).await;
    for (method, path) in [(Method::GET, SUPPLIER), (Method::PUT, SUPPLIER)] {
        let (status, answer) = carl.call(method, path, Some(three(json!({})))).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    }

    let bound = server.bound_token("shopper", Role::Operator, None, &["shop"]).await;
    let shopper = Api::new(&server.url(""), &bound);
    let turn = granted(&olga, "b", "r4", json!({})).await;
    let says = "for the source shop only, not for the rotation supplier";
    refused(&shopper, TURNS, ask("a", "r5", &json!({})), 403, says).await;
    refused(&shopper, &of(&turn, "extend"), json!({}), 403, says).await;
    refused(&shopper, &of(&turn, "pass"), end(&turn, "done", &json!({})), 403, says).await;
    let (status, answer) = shopper.call(Method::PUT, SUPPLIER, Some(three(json!({})))).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    pass(&olga, &turn, "done", json!({})).await;
}

async fn the_word_of_a_clients_clock_counts_only_as_its_own_not_before(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let token = api.token().to_owned();
    // The header by which a client says what time it believes it is.
    let body = ask("a", "r1", &json!({})).to_string();
    let request = server.ask("POST", TURNS).bearer_auth(&token).body(body);
    let turn: Value = request
        .header("date", "Thu, 01 Jan 1998 00:00:00 GMT")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let left = Duration::try_from(instant(&turn["lease_until"]).duration_since(Timestamp::now()));
    assert!(left.unwrap() > Duration::from_secs(10), "{turn}");
    pass(&api, &turn, "done", json!({"not_before": "2001-01-01T00:00:00Z"})).await;
    let turn = granted(&api, "b", "r2", json!({})).await;
    let far = Timestamp::now() + SignedDuration::from_hours(48);
    let body = end(&turn, "done", &json!({"not_before": far.to_string()}));
    refused(&api, &of(&turn, "pass"), body, 400, "at most a day ahead; it is 20").await;
    assert_eq!(api.get(SUPPLIER).await["holder"]["turn"], number_of(&turn), "it was not passed");
    let hour = instant(&turn["lease_until"]) + SignedDuration::from_hours(1);
    pass(&api, &turn, "done", json!({"not_before": hour.to_string()})).await;
    let told = take(&api, "c", "r3", json!({"wait_ms": 10})).await;
    assert_eq!((instant(&told["earliest_at"]), &told["reason"]), (hour, &json!("not_before")));
}

async fn turns_are_counted_by_how_they_ended(on: On) {
    let (server, api) = supplier(on, three(json!({"lease_ms": 30_000}))).await;
    for (nth, outcome) in ["done", "done", "empty", "failed"].iter().enumerate() {
        let turn = granted(&api, "a", &format!("r{nth}"), json!({})).await;
        pass(&api, &turn, outcome, json!({})).await;
        let again = end(&turn, outcome, &json!({}));
        refused(&api, &of(&turn, "pass"), again, 409, "nothing was changed").await;
    }
    ok(&api, Method::PUT, SUPPLIER, three(json!({"lease_ms": 150}))).await;
    granted(&api, "b", "gone", json!({})).await;
    let metrics =
        async || server.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    let line = |kind: &str, outcome: &str, count: u32| {
        format!(
            "soloist_rotation_turns_total{{outcome=\"{outcome}\",rotation=\"supplier\",type=\"{kind}\"}} {count}\n"
        )
    };
    until_async("the lost turn is counted", async || {
        metrics().await.contains(&line("b", "lost", 1)).then_some(())
    })
    .await;
    let text = metrics().await;
    for expected in [line("a", "done", 2), line("a", "empty", 1), line("a", "failed", 1)] {
        assert!(text.contains(&expected), "{expected} in\n{text}");
    }
    let shown = &api.get(SUPPLIER).await["types"];
    assert_eq!((&shown[0]["done"], &shown[1]["lost"]), (&json!(2), &json!(1)));
}
