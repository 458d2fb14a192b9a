//! Removing sources, tasks and rotations: what is asked before, who is told, what the audit says; and how much there may be.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::ops::quota;
use soloist::store::accounts::Role;
use soloist::store::dispatch::Sources as _;

use super::dispatch::{claim, define, ok, put, shop, shop_on};
use super::rotations::{SUPPLIER, granted, supplier, three};
use super::{On, problem};
use crate::support::api::Api;
use crate::support::machine::within;
use crate::support::wait::until_async;

on_every_store! {
    a_source_is_removed_when_what_is_lost_was_said
    a_rotation_is_removed_when_who_holds_it_was_said
    who_waits_for_what_is_removed_is_told_at_once
    the_page_asks_before_it_removes
}

const SHOP: &str = "/api/v1/sources/shop";

async fn refused(api: &Api, path: &str, status: StatusCode, says: &str) {
    let (got, answer) = api.call(Method::DELETE, path, None).await;
    assert_eq!(got, status, "{path}: {answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains(says), "{path}: {detail}");
}

async fn newest_act(api: &Api) -> (Value, Value) {
    let audit = api.get("/api/v1/audit?limit=1").await;
    (audit["entries"][0]["act"].clone(), audit["entries"][0]["target"].clone())
}

async fn a_source_is_removed_when_what_is_lost_was_said(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let ids = put(&api, &["a", "b", "c"]).await["tasks"].clone();
    let held = claim(&api, "r1", json!({})).await["tasks"][0].clone();
    refused(
        &api,
        SHOP,
        StatusCode::CONFLICT,
        "3 tasks of shop, 1 of them in flight, would be lost: repeat it with ?force=true",
    )
    .await;
    let task = format!("/api/v1/tasks/{}", held["id"].as_str().unwrap());
    refused(&api, &task, StatusCode::CONFLICT, "c1 is working on this task").await;
    assert_eq!(api.get(SHOP).await["ready"], 2, "nothing was changed");

    let free = ids.as_array().unwrap().iter().find(|one| one["id"] != held["id"]).unwrap();
    let free = format!("/api/v1/tasks/{}", free["id"].as_str().unwrap());
    assert_eq!(ok(&api, Method::DELETE, &free, json!({})).await["state"], "ready");
    assert_eq!(newest_act(&api).await.0, "task.remove");
    refused(&api, &free, StatusCode::NOT_FOUND, "there is no task").await;
    ok(&api, Method::DELETE, &format!("{task}?force=true"), json!({})).await;
    let result = json!({"id": held["id"], "token": held["token"], "outcome": "done"});
    let told = ok(&api, Method::POST, "/api/v1/results", json!({"results": [result]})).await;
    assert_eq!(told["results"][0]["status"], "unknown");

    let listed = api.get("/api/v1/tasks?source=shop&state=ready").await;
    assert_eq!((listed["tasks"].as_array().unwrap().len(), &listed["next"]), (1, &Value::Null));
    let gone = ok(&api, Method::DELETE, &format!("{SHOP}?force=true"), json!({})).await;
    assert_eq!(gone, json!({"source": "shop", "tasks": 1, "in_flight": 0}));
    assert_eq!(newest_act(&api).await, (json!("source.remove"), json!("shop")));
    refused(&api, SHOP, StatusCode::NOT_FOUND, "shop does not exist").await;
    let viewer = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    refused(&viewer, SHOP, StatusCode::FORBIDDEN, "carl").await;
}

async fn a_rotation_is_removed_when_who_holds_it_was_said(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let admin = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    let turn = granted(&api, "a", "r1", json!({})).await;
    refused(
        &api,
        SUPPLIER,
        StatusCode::CONFLICT,
        "w-a has the turn of supplier, and 0 wait for it",
    )
    .await;
    let gone = ok(&api, Method::DELETE, &format!("{SUPPLIER}?force=true"), json!({})).await;
    assert_eq!((&gone["holder"]["worker"], &gone["waiting"]), (&json!("w-a"), &json!(0)));
    // What was done to what is no more is for admins: it may have been hidden.
    assert_eq!(newest_act(&admin).await, (json!("rotation.remove"), json!("supplier")));
    let path = format!("{SUPPLIER}/turns/{}/extend", turn["turn"].as_str().unwrap());
    let (status, answer) = api.call(Method::POST, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
    ok(&api, Method::PUT, SUPPLIER, three(json!({}))).await;
    let next = granted(&api, "b", "r2", json!({})).await;
    assert!(next["token"].as_u64() > turn["token"].as_u64());
}

async fn who_waits_for_what_is_removed_is_told_at_once(on: On) {
    let (_server, api) = shop_on(on, json!({})).await;
    ok(&api, Method::PUT, SUPPLIER, three(json!({}))).await;
    granted(&api, "a", "r1", json!({})).await;
    let asks = [
        (
            SHOP,
            "/api/v1/claims",
            json!({"collector": "c1", "request_id": "r2", "sources": ["shop"], "wait_ms": 25_000}),
        ),
        (
            SUPPLIER,
            "/api/v1/rotations/supplier/turns",
            json!({"type": "b", "worker": "w", "request_id": "r2", "wait_ms": 25_000}),
        ),
    ];
    let waiting = asks.map(|(path, ask, body)| {
        let api = api.clone();
        (path, tokio::spawn(async move { api.call(Method::POST, ask, Some(body)).await }))
    });
    until_async("both wait", async || {
        let waits = &api.get(SUPPLIER).await["waiters"];
        (waits.as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    for (path, waits) in waiting {
        let begun = soloist::clock::boot();
        ok(&api, Method::DELETE, &format!("{path}?force=true"), json!({})).await;
        let (status, answer) = waits.await.unwrap();
        assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
        within(soloist::clock::boot().since(begun), Duration::from_secs(10), "who waits is told");
    }
}

async fn the_page_asks_before_it_removes(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    put(&api, &["a"]).await;
    ok(&api, Method::PUT, SUPPLIER, three(json!({}))).await;
    let (cookie, csrf) = server.session(&"olga".parse().unwrap()).await;
    for (path, name, says) in [
        ("/dispatch/remove", "shop", "1 that are not done"),
        ("/rotations/remove", "supplier", "No worker has the turn"),
    ] {
        let send = async |confirm: &str| {
            let form = format!("name={name}&confirm={confirm}&csrf={csrf}");
            let request = server.ask("POST", path).header("cookie", &cookie);
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            request.body(form).send().await.unwrap()
        };
        let asked = send("").await;
        assert_eq!(asked.status(), 200, "{path}");
        let asked = asked.text().await.unwrap();
        assert!(asked.contains(says) && asked.contains(&format!("Remove {name}?")), "{asked}");
        assert_eq!(send("yes").await.status(), 303, "{path}");
    }
    assert_eq!(api.get("/api/v1/sources").await, json!({"sources": []}));
    assert_eq!(api.get("/api/v1/rotations").await, json!({"rotations": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_more_sources_and_tokens_than_allowed() {
    let (server, api) = shop(json!({})).await;
    let rules = soloist::domain::dispatch::Rules::default();
    for n in 1..quota::SOURCES {
        server.store().put_source(&format!("s-{n}").parse().unwrap(), &rules).await.unwrap();
    }
    let request = server.ask("PUT", "/api/v1/sources/one-more").bearer_auth(api.token());
    let (status, said) = problem(request.body("{}").send().await.unwrap()).await;
    assert_eq!(status, 409, "{said}");
    assert!(said.contains("there are 1000 sources already") && said.contains("DELETE"), "{said}");
    define(&api, "s-7", json!({"cap": 1})).await;
    ok(&api, Method::DELETE, "/api/v1/sources/s-7", json!({})).await;
    define(&api, "one-more", json!({})).await;

    let admin = Api::new(&server.url(""), &server.token("root", Role::Admin).await);
    let mut said = String::new();
    for _ in 0..quota::TOKENS {
        let body = json!({"user": "olga"});
        let request = server.ask("POST", "/api/v1/tokens").bearer_auth(admin.token()).json(&body);
        let response = request.send().await.unwrap();
        if response.status() != 201 {
            said = problem(response).await.1;
        }
    }
    assert!(said.contains("there are 100 API tokens of olga already"), "{said}");
}
