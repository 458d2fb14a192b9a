//! The calls of dispatch: their shapes, who may make them, and what is said when something is wrong.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::store::accounts::Role;

use super::{On, Server, problem};
use crate::support::api::Api;
use crate::support::machine::{judged, within};
use crate::support::wait::until_async;

judged! {
    a_revoked_token_claims_for_a_second_at_most
}

/// A server with one source, and somebody who may do everything with it.
pub(super) async fn shop(rules: Value) -> (Server, Api) {
    shop_on(On::Redis, rules).await
}

/// The same on a store of this kind.
pub(super) async fn shop_on(on: On, rules: Value) -> (Server, Api) {
    let server = Server::on(on).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    define(&api, "shop", rules).await;
    (server, api)
}

pub(super) async fn define(api: &Api, source: &str, rules: Value) -> Value {
    ok(api, Method::PUT, &format!("/api/v1/sources/{source}"), rules).await
}

pub(super) async fn ok(api: &Api, method: Method, path: &str, body: Value) -> Value {
    let line = format!("{method} {path} {body}");
    let (status, answer) = api.call(method, path, Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{line}: {answer}");
    answer
}

pub(super) async fn put(api: &Api, keys: &[&str]) -> Value {
    let tasks: Vec<Value> = keys
        .iter()
        .map(|key| json!({"key": key, "source": "shop", "payload": {"key": key}}))
        .collect();
    ok(api, Method::POST, "/api/v1/tasks", json!({ "tasks": tasks })).await
}

pub(super) async fn claim(api: &Api, request: &str, more: Value) -> Value {
    let mut body = json!({"collector": "c1", "request_id": request, "max": 1});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    ok(api, Method::POST, "/api/v1/claims", body).await
}

fn is_instant(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == "2026-05-04T01:02:03.004Z".len() && text.ends_with('Z')
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_from_put_to_done_by_the_documented_calls() {
    let (server, api) = shop(json!({"gap_ms": 0, "cap": 5, "lease_ms": 20_000})).await;
    let payload = json!({"url": "https://example.org/ä", "深": [1, 2.5, null]});
    let task = json!({"key": "k1", "source": "shop", "payload": payload, "priority": 9});
    let body = json!({"tasks": [task, {"key": "k2", "source": "shop"}]});
    let first = ok(&api, Method::POST, "/api/v1/tasks", body.clone()).await;
    assert_eq!(first["tasks"][0]["status"], "created");
    assert_eq!(first["tasks"][1]["key"], "k2");
    let again = ok(&api, Method::POST, "/api/v1/tasks", body).await;
    assert_eq!(again["tasks"][0]["status"], "exists");
    assert_eq!(again["tasks"][0]["id"], first["tasks"][0]["id"]);

    let granted = claim(&api, "r1", json!({"max": 10, "sources": ["shop"]})).await;
    assert!(is_instant(&granted["lease_until"]), "{granted}");
    let tasks = granted["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 2, "{granted}");
    assert_eq!((&tasks[0]["key"], &tasks[0]["payload"]), (&json!("k1"), &payload));
    assert_eq!((&tasks[0]["attempt"], &tasks[1]["payload"]), (&json!(1), &Value::Null));
    assert!(tasks[0]["token"].as_u64().unwrap() < tasks[1]["token"].as_u64().unwrap());

    let path = format!("/api/v1/claims/{}/extend", granted["claim"].as_str().unwrap());
    let extended = ok(&api, Method::POST, &path, json!({})).await;
    assert_eq!(extended["kept"].as_array().unwrap().len(), 2, "{extended}");
    assert_eq!(extended["lost"], json!([]));

    let result = |nth: usize, outcome: &str| {
        json!({"id": tasks[nth]["id"], "token": tasks[nth]["token"], "outcome": outcome,
            "error": "no\nluck"})
    };
    let stranger = json!({"id": "0".repeat(32), "token": 1, "outcome": "done"});
    let mut old = result(1, "done");
    old["token"] = json!(1);
    let next = json!({"collector": "c1", "request_id": "r2", "max": 1});
    let body =
        json!({"results": [result(0, "done"), result(1, "dead"), stranger, old], "claim": next});
    let done = ok(&api, Method::POST, "/api/v1/results", body.clone()).await;
    let statuses: Vec<&Value> =
        done["results"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["ok", "ok", "unknown", "stale"]);
    assert_eq!(done["claim"], json!({"tasks": [], "reason": "empty", "next_at": null}));
    let repeated = ok(&api, Method::POST, "/api/v1/results", body).await;
    assert_eq!(repeated["results"][0]["status"], "ok", "its answer may have been lost");

    let source = api.get("/api/v1/sources/shop").await;
    let expected = json!({"name": "shop", "gap_ms": 0, "window": null, "cap": 5, "lease_ms": 20_000,
        "max_attempts": 5, "backoff": {"first_ms": 1_000, "max_ms": 300_000}, "paused": false,
        "blocked_until": null, "ready": 0, "due": 0, "in_flight": 0, "dead": 1, "done": 1,
        "started": 2, "finished": 1, "retried": 0, "expired": 0});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&source[field], value, "{field} of {source}");
    }
    assert_eq!(api.get("/api/v1/sources").await["sources"][0], source);
    let dead = api.get("/api/v1/dead?source=shop&skip=0&limit=10").await;
    let dead = &dead["tasks"][0];
    assert_eq!((&dead["key"], &dead["state"]), (&json!("k2"), &json!("dead")));
    assert_eq!((&dead["error"], &dead["history"][0]["event"]), (&json!("no luck"), &json!("died")));
    let path = format!("/api/v1/dead/{}/revive", dead["id"].as_str().unwrap());
    assert_eq!(ok(&api, Method::POST, &path, json!({})).await["state"], "ready");
    let path = format!("/api/v1/tasks/{}", dead["id"].as_str().unwrap());
    let task = api.get(&path).await;
    assert_eq!(
        (&task["state"], &task["history"][1]["event"]),
        (&json!("ready"), &json!("revived"))
    );
    assert!(is_instant(&task["created"]) && is_instant(&task["changed"]), "{task}");

    let held = claim(&api, "r3", json!({"collector": "host/7"})).await;
    assert!(is_instant(&api.get(&path).await["held"]["lease_until"]));
    let collectors = api.get("/api/v1/collectors").await;
    let holder =
        collectors["collectors"].as_array().unwrap().iter().find(|one| one["name"] == "host/7");
    assert_eq!(holder.unwrap()["holds"][0]["key"], "k2");
    let path = format!("/api/v1/claims/{}", held["claim"].as_str().unwrap());
    assert_eq!(ok(&api, Method::DELETE, &path, json!({})).await["returned"], 1);
    assert_eq!(ok(&api, Method::DELETE, &path, json!({})).await["returned"], 0);
    assert_eq!(claim(&api, "r4", json!({})).await["tasks"][0]["attempt"], 1, "it did not count");

    let metrics = server.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    for (labels, count) in
        [("result=\"granted\",source=\"shop\"", 3), ("result=\"empty\",source=\"*\"", 2)]
    {
        let line = format!("soloist_dispatch_claims_total{{{labels}}} {count}");
        assert!(metrics.contains(&line), "{line} in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_gets_the_same_answer_at_any_node() {
    let (server, api) = shop(json!({})).await;
    let other = server.beside().await;
    let there = api.at(&other.url(""));
    put(&api, &["a", "b", "c"]).await;
    let first = claim(&api, "lost", json!({"max": 2})).await;
    let again = claim(&there, "lost", json!({"max": 2})).await;
    assert_eq!(first, again);
    assert_eq!(first["tasks"].as_array().unwrap().len(), 2);
    let third = claim(&there, "next", json!({"max": 2})).await;
    assert_eq!(third["tasks"].as_array().unwrap().len(), 1, "nothing was claimed twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gets_nothing_is_told_why_and_when() {
    let (_server, api) = shop(json!({"gap_ms": 60_000})).await;
    let told = async |request: &str, reason: &str| -> Value {
        let answer = claim(&api, request, json!({})).await;
        assert_eq!((&answer["tasks"], &answer["reason"]), (&json!([]), &json!(reason)), "{answer}");
        assert!(answer.get("claim").is_none() && answer.get("lease_until").is_none(), "{answer}");
        answer["next_at"].clone()
    };
    assert_eq!(told("r1", "empty").await, Value::Null);
    put(&api, &["a", "b"]).await;
    assert_eq!(claim(&api, "r2", json!({})).await["tasks"].as_array().unwrap().len(), 1);
    assert!(is_instant(&told("r3", "gap").await));
    let source = define(&api, "shop", json!({"cap": 1})).await;
    assert_eq!((&source["reason"], &source["gap_ms"]), (&json!("cap"), &json!(0)), "{source}");
    assert!(is_instant(&told("r4", "cap").await));
    let blocked =
        ok(&api, Method::POST, "/api/v1/sources/shop/block", json!({"for_ms": 60_000})).await;
    assert!(is_instant(&blocked["blocked_until"]) && blocked["reason"] == "blocked", "{blocked}");
    assert_eq!(told("r5", "blocked").await, blocked["next_at"]);
    define(&api, "shop", json!({"paused": true})).await;
    assert_eq!(told("r6", "paused").await, Value::Null);
    define(&api, "shop", json!({"paused": false})).await;
    ok(&api, Method::POST, "/api/v1/sources/shop/block", json!({"for_ms": 0})).await;
    assert_eq!(claim(&api, "r7", json!({})).await["tasks"].as_array().unwrap().len(), 1);

    let audit = api.get("/api/v1/audit?target=shop").await;
    let acts: Vec<&Value> =
        audit["entries"].as_array().unwrap().iter().map(|entry| &entry["act"]).collect();
    assert_eq!(
        acts,
        [
            "source.unblock",
            "source.resume",
            "source.pause",
            "source.block",
            "source.put",
            "source.put"
        ]
    );
    assert_eq!(audit["entries"][3]["reason"], "for 60000 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named_with_its_place_and_remedy() {
    let (server, api) = shop(json!({})).await;
    let token = server.token("ada", Role::Admin).await;
    let tasks = |field: &str, value: Value| {
        let mut task = json!({"key": "k", "source": "shop"});
        task[field] = value;
        json!({"tasks": [{"key": "good", "source": "shop"}, task]})
    };
    let claims = |field: &str, value: Value| {
        let mut body = json!({"collector": "c1", "request_id": "r", "max": 1});
        body[field] = value;
        body
    };
    let result = |field: &str, value: Value| {
        let mut result = json!({"id": "x", "token": 1, "outcome": "done"});
        result[field] = value;
        json!({"results": [result]})
    };
    let many = json!({"tasks": vec![json!({"key": "k", "source": "shop"}); 1_001]});
    let reports = json!({"results": vec![json!({"id": "x", "token": 1, "outcome": "done"}); 101]});
    for (method, path, body, status, says) in [
        ("POST", "tasks", tasks("priority", json!(12)), 400, "tasks[1].priority: from 0 to 9"),
        ("POST", "tasks", tasks("priority", json!(-1)), 400, "tasks[1].priority: from 0 to 9"),
        ("POST", "tasks", tasks("priority", json!("high")), 400, "field priority"),
        ("POST", "tasks", tasks("key", json!("")), 400, "tasks[1].key: from 1 to 2048 bytes"),
        ("POST", "tasks", tasks("key", json!("a\nb")), 400, "tasks[1].key: no control"),
        ("POST", "tasks", tasks("source", json!("Shop")), 400, "tasks[1].source: \"Shop\" is not"),
        (
            "POST",
            "tasks",
            tasks("at", json!("tomorrow")),
            400,
            "tasks[1].at: \"tomorrow\" is no instant",
        ),
        (
            "POST",
            "tasks",
            tasks("at", json!("9999-01-01T00:00:00Z")),
            400,
            "tasks[1].at: from 1970",
        ),
        ("POST", "tasks", tasks("every_ms", json!(0)), 400, "tasks[1].every_ms: from 1"),
        (
            "POST",
            "tasks",
            tasks("payload", json!("x".repeat(65_536))),
            400,
            "tasks[1].payload: at most",
        ),
        ("POST", "tasks", tasks("colour", json!("red")), 400, "unknown field `colour`"),
        (
            "POST",
            "tasks",
            tasks("source", json!("mail")),
            404,
            "define it first with PUT /api/v1/sources/mail",
        ),
        ("POST", "tasks", many, 400, "tasks: at most 1000 at a time, not 1001"),
        ("POST", "claims", claims("max", json!(0)), 400, "max: from 1 to 100"),
        ("POST", "claims", claims("max", json!(101)), 400, "max: from 1 to 100"),
        ("POST", "claims", claims("wait_ms", json!(30_001)), 400, "wait_ms: from 0 to 30000"),
        (
            "POST",
            "claims",
            claims("collector", json!("a b")),
            400,
            "collector: \"a b\" is not valid",
        ),
        ("POST", "claims", claims("request_id", json!("")), 400, "request_id: "),
        ("POST", "claims", claims("sources", json!(["shop", "Mail"])), 400, "sources[1]: \"Mail\""),
        (
            "POST",
            "claims",
            claims("sources", json!(["mail"])),
            404,
            "define it first with PUT /api/v1/sources/mail",
        ),
        ("POST", "claims", claims("sorces", json!(["mail"])), 400, "unknown field `sorces`"),
        ("POST", "claims", json!({"collector": "c1"}), 400, "missing field `request_id`"),
        ("POST", "claims/none/extend", json!({}), 404, "stop working on its tasks"),
        ("POST", "results", result("token", json!(u64::MAX)), 400, "results[0].token: at most"),
        ("POST", "results", result("outcome", json!("maybe")), 400, "expected one of"),
        (
            "POST",
            "results",
            result("delay_ms", json!(u64::MAX)),
            400,
            "results[0].delay_ms: at most a year",
        ),
        ("POST", "results", reports, 400, "results: at most 100 at a time, not 101"),
        (
            "POST",
            "results",
            json!({"results": [], "claim": claims("max", json!(0))}),
            400,
            "claim.max: from 1 to 100",
        ),
        ("PUT", "sources/shop", json!({"lease_ms": 5}), 400, "lease_ms: from 100 to 86400000"),
        (
            "PUT",
            "sources/shop",
            json!({"window": {"count": 0, "ms": 1}}),
            400,
            "window.count: from 1",
        ),
        ("PUT", "sources/shop", json!({"window": {"count": 1}}), 400, "missing field `ms`"),
        ("PUT", "sources/shop", json!({"gap": 5}), 400, "unknown field `gap`"),
        ("PUT", "sources/Shop", json!({}), 400, "not a valid name"),
        ("GET", "sources/mail", json!({}), 404, "define it first with PUT /api/v1/sources/mail"),
        ("POST", "sources/mail/block", json!({"for_ms": 1}), 404, "define it first"),
        (
            "POST",
            "sources/shop/block",
            json!({"for_ms": u64::MAX}),
            400,
            "for_ms: at most 86400000, a day",
        ),
        ("GET", "tasks/nothing", json!({}), 404, "there is no task \"nothing\""),
        ("GET", "dead?source=Shop", json!({}), 400, "parameter source"),
        ("POST", "dead/nothing/revive", json!({}), 404, "there is no task"),
    ] {
        let request = server.ask(method, &format!("/api/v1/{path}")).bearer_auth(&token);
        let (got, detail) = problem(request.body(body.to_string()).send().await.unwrap()).await;
        assert_eq!(got, status, "{method} {path}: {detail}");
        assert!(detail.contains(says), "{method} {path}: {detail}");
    }
    assert_eq!(api.get("/api/v1/sources/shop").await["ready"], 0, "all or none was put");
    let fits = json!({"tasks": [{"key": "k", "source": "shop", "payload": "x".repeat(60_000)},
        {"key": "l", "source": "shop", "payload": "x".repeat(60_000)}]});
    ok(&api, Method::POST, "/api/v1/tasks", fits).await;
    for (path, size) in [("tasks", 1_100_000), ("results", 1_100_000), ("claims", 70_000)] {
        let request = server.ask("POST", &format!("/api/v1/{path}")).bearer_auth(&token);
        let answer = request.body(" ".repeat(size)).send().await.unwrap();
        assert_eq!(problem(answer).await.0, 413, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_acts_for_its_collector_and_on_its_sources_only() {
    let (server, olga) = shop(json!({})).await;
    define(&olga, "mail", json!({})).await;
    let mail = json!({"tasks": [{"key": "m", "source": "mail"}, {"key": "n", "source": "mail"}]});
    ok(&olga, Method::POST, "/api/v1/tasks", mail).await;
    put(&olga, &["a", "b"]).await;
    let bound = server.bound_token("carl", Role::Collector, Some("c1"), &["shop"]).await;
    let carl = Api::new(&server.url(""), &bound);
    let refused = async |method: Method, path: &str, body: Value, says: &str| {
        let (status, answer) = carl.call(method, path, Some(body)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(says), "{path}: {answer}");
    };
    let body = |collector: &str, sources: &[&str]| json!({"collector": collector, "request_id": "r1", "max": 9, "sources": sources});
    let claims = "/api/v1/claims";
    refused(Method::POST, claims, body("c2", &[]), "only, not for the collector c2").await;
    refused(
        Method::POST,
        claims,
        body("c1", &["mail"]),
        "the source shop only, not for the source mail",
    )
    .await;
    let results = json!({"results": [], "claim": body("c2", &[])});
    refused(
        Method::POST,
        "/api/v1/results",
        results,
        "for the collector c1 and the source shop only",
    )
    .await;
    let block = "/api/v1/sources/mail/block";
    refused(Method::POST, block, json!({"for_ms": 1}), "the source shop only").await;
    refused(Method::PUT, "/api/v1/sources/shop", json!({}), "collector").await;
    ok(&carl, Method::POST, "/api/v1/sources/shop/block", json!({"for_ms": 0})).await;

    let own = claim(&carl, "r2", json!({"max": 9})).await;
    let sources: Vec<&Value> =
        own["tasks"].as_array().unwrap().iter().map(|t| &t["source"]).collect();
    assert_eq!(sources, ["shop", "shop"], "what was not asked for is not handed out either");
    let others = claim(&olga, "r3", json!({"collector": "c2", "max": 9})).await;
    let path = format!("/api/v1/claims/{}", others["claim"].as_str().unwrap());
    let (status, _) = carl.call(Method::POST, &format!("{path}/extend"), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(ok(&carl, Method::DELETE, &path, json!({})).await["returned"], 0);
    let theirs = &others["tasks"][0];
    let result =
        json!({"results": [{"id": theirs["id"], "token": theirs["token"], "outcome": "done"}]});
    let answer = ok(&carl, Method::POST, "/api/v1/results", result.clone()).await;
    assert_ne!(answer["results"][0]["status"], "ok", "{answer}");
    let answer = ok(&olga, Method::POST, "/api/v1/results", result).await;
    assert_eq!(answer["results"][0]["status"], "ok");
}

async fn a_revoked_token_claims_for_a_second_at_most() {
    let (server, _olga) = shop(json!({})).await;
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    claim(&carl, "r1", json!({})).await;
    let tokens = soloist::store::credentials::Credentials::tokens(server.store()).await.unwrap();
    let own = tokens.iter().find(|token| token.user.as_str() == "carl").unwrap();
    soloist::store::credentials::Credentials::revoke_token(server.store(), &own.id).await.unwrap();
    let revoked = soloist::clock::boot();
    let body = json!({"collector": "c1", "request_id": "r2"});
    until_async("the token is refused", async || {
        let (status, _) = carl.call(Method::POST, "/api/v1/claims", Some(body.clone())).await;
        (status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    let took = soloist::clock::boot().since(revoked);
    within(took, std::time::Duration::from_secs(3), "the token is refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_may_evict_is_refused_until_it_may_not() {
    let (server, api) = shop(json!({})).await;
    put(&api, &["a"]).await;
    server.redis.run(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let readyz = server.ask("GET", "/readyz").send().await.unwrap();
    let (status, detail) = problem(readyz).await;
    assert_eq!(status, 503);
    assert!(detail.contains("maxmemory-policy noeviction"), "{detail}");
    let body = json!({"collector": "c1", "request_id": "r1"});
    let answer = until_async("claims are refused", async || {
        let body = Some(json!({"tasks": []}));
        let (status, answer) = api.call(Method::POST, "/api/v1/tasks", body).await;
        (status == StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
    })
    .await;
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("refuse to work on this store"), "{detail}");
    assert!(detail.contains("CONFIG SET maxmemory-policy noeviction"), "{detail}");
    let (status, _) = api.call(Method::POST, "/api/v1/claims", Some(body)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    server.redis.run(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    until_async("dispatch goes on", async || {
        let body = json!({"collector": "c1", "request_id": "r2"});
        let (status, answer) = api.call(Method::POST, "/api/v1/claims", Some(body)).await;
        (status == StatusCode::OK).then(|| assert_eq!(answer["tasks"][0]["key"], "a"))
    })
    .await;
}
