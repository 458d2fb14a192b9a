//! What a token that is bound to names reads: those, in lists and on live connections, and nothing else by any address.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RotationName};
use soloist::store::accounts::Role;
use soloist::store::leases::{Acquire, Condition, Leases as _};
use soloist::web::routes::ROUTES;

use super::access::{KINDS, concrete};
use super::live::{connect, hear_type, say};
use super::sse::Events;
use super::truth::beat_of;
use super::{Server, job, problem};
use crate::support::api::Api;

/// A server with two names of each kind: `its-own` and one that begins with `foreign-`.
async fn server() -> (Server, Api) {
    let server = Server::with(|config| {
        config.jobs.clear();
        for (name, rotation) in [("its-own", "its-own"), ("foreign-job", "foreign-rotation")] {
            let mut job = job(name);
            job.rotation = Some(RotationName::new(rotation).unwrap());
            config.jobs.push(job);
        }
    })
    .await;
    let admin = Api::new(&server.url(""), &server.token("ann", Role::Admin).await);
    let put = async |path: &str, body: Value| {
        let (status, answer) = admin.call(Method::PUT, path, Some(body)).await;
        assert_eq!(status, 200, "{path}: {answer}");
    };
    for (source, rotation, key) in
        [("its-own", "its-own", "key"), ("foreign-source", "foreign-rotation", "foreign-key")]
    {
        put(&format!("/api/v1/sources/{source}"), json!({"max_attempts": 1})).await;
        put(&format!("/api/v1/rotations/{rotation}"), json!({"types": [{"name": "a"}]})).await;
        let tasks = ["1", "2"]
            .map(|n| json!({"source": source, "key": format!("{key}-{n}"), "payload": null}));
        let put = admin.call(Method::POST, "/api/v1/tasks", Some(json!({"tasks": tasks}))).await;
        assert_eq!(put.0, 200, "{}", put.1);
        let ask = json!({"collector": format!("{key}-hands"), "request_id": key, "max": 2, "sources": [source]});
        let (_, claim) = admin.call(Method::POST, "/api/v1/claims", Some(ask)).await;
        let task = &claim["tasks"][0];
        let dead =
            json!({"results": [{"id": task["id"], "token": task["token"], "outcome": "dead"}]});
        assert_eq!(admin.call(Method::POST, "/api/v1/results", Some(dead)).await.0, 200, "{claim}");
    }
    for name in ["its-own", "foreign-job"] {
        put(&format!("/api/v1/jobs/{name}/participation"), json!({"on": true})).await;
        let lease = Acquire {
            job: JobName::new(name).unwrap(),
            owner: Owner("owner".to_owned()),
            node: NodeName::new("node-b").unwrap(),
            ttl: Duration::from_secs(600),
            condition: Condition::None,
            seen: Token(0),
        };
        server.store().acquire(&lease).await.unwrap();
    }
    beat_of(&server, "node-b", &["its-own", "foreign-job"]).await;
    (server, admin)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_address_tells_a_bound_token_of_another_name() {
    let (server, admin) = server().await;
    // It would notice.
    let seen = [
        "/api/v1/jobs",
        "/api/v1/nodes",
        "/api/v1/sources",
        "/api/v1/collectors",
        "/api/v1/rotations",
        "/api/v1/leases",
    ];
    for path in seen {
        assert!(admin.get(path).await.to_string().contains("foreign-"), "{path}");
    }
    for (nth, bind) in KINDS.iter().enumerate() {
        for role in [Role::Viewer, Role::Operator, Role::Admin] {
            let name = format!("{}-{nth}", role.as_str());
            let token = server.token_that(&name, role, bind).await;
            let readable = ROUTES.iter().filter(|route| route.method == "GET");
            for route in readable.filter(|route| !["/live", "/api/v1/live"].contains(&route.path)) {
                let path = route
                    .path
                    .replace("{job}", "foreign-job")
                    .replace("{source}", "foreign-source")
                    .replace("{rotation}", "foreign-rotation");
                let of_name = path.contains("foreign-");
                let path = concrete(&path);
                let response = server.get(&path, &token).await;
                let status = response.status().as_u16();
                let body = response.text().await.unwrap();
                let line = format!("kind {nth}: GET {path} as {name}: {status} {body}");
                if of_name {
                    // What was asked for may be repeated, as it would be for a name that nobody ever used.
                    assert_eq!(status, 403, "{line}");
                    assert!(
                        path.starts_with("/jobs/") || body.contains("its-own only, not for"),
                        "{line}"
                    );
                } else {
                    assert!(!body.contains("foreign-"), "{line}");
                }
            }
            for query in ["tasks?source=foreign-source", "dead?source=foreign-source", "audit"] {
                let refused = server.get(&format!("/api/v1/{query}"), &token).await;
                assert_eq!(problem(refused).await.0, 403, "{query}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_reads_what_it_is_for() {
    let (server, _) = server().await;
    let [source, rotation, job, lease] = KINDS;
    let mut tokens = Vec::new();
    for (name, bind) in [("sue", source), ("rob", rotation), ("joe", job), ("lea", lease)] {
        let token = server.token_that(name, Role::Viewer, bind).await;
        tokens.push(Api::new(&server.url(""), &token));
    }
    // Which of them find their own name there; the others find nothing.
    for (path, list, readers) in [
        ("/api/v1/sources", "sources", [true, false, false, false]),
        ("/api/v1/tasks", "tasks", [true, false, false, false]),
        ("/api/v1/dead", "tasks", [true, false, false, false]),
        ("/api/v1/rotations", "rotations", [false, true, false, false]),
        ("/api/v1/jobs", "jobs", [false, false, true, true]),
        ("/api/v1/leases", "leases", [false, false, true, true]),
    ] {
        for (nth, (token, reads)) in tokens.iter().zip(readers).enumerate() {
            let answer = token.get(path).await;
            let found = answer[list].as_array().unwrap();
            assert_eq!(!found.is_empty(), reads, "{nth}: {path}: {answer}");
            assert!(found.iter().all(|one| one.to_string().contains("its-own")), "{answer}");
        }
    }
    for (path, reader) in [
        ("/api/v1/sources/its-own", 0),
        ("/api/v1/rotations/its-own", 1),
        ("/api/v1/jobs/its-own", 2),
        ("/api/v1/jobs/its-own/runs", 3),
    ] {
        tokens[reader].get(path).await;
    }
    // A task is no name: of another source it is as one that there is not.
    let theirs =
        tokens[0].get("/api/v1/tasks").await["tasks"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/tasks/{theirs}");
    tokens[0].get(&path).await;
    assert_eq!(tokens[2].call(Method::GET, &path, None).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_connections_of_a_bound_token_tell_of_its_names_only() {
    let (server, admin) = server().await;
    let [source, _, job, _] = KINDS;
    let token = server.token_that("joe", Role::Operator, job).await;
    let mut events = Events::open(&server, "?follow=its-own", &token).await;
    let refused = server.get("/api/v1/live?follow=foreign-job", &token).await;
    let (status, said) = problem(refused).await;
    assert!(status == 403 && said.contains("the job its-own only"), "{said}");
    let mut socket = connect(&server, &token).await;
    for frame in [
        json!({"type": "follow", "id": 1, "job": "foreign-job"}),
        json!({"type": "participation", "id": 2, "job": "foreign-job", "on": true}),
    ] {
        say(&mut socket, frame.clone()).await;
        let reply = hear_type(&mut socket, "reply").await;
        assert_eq!((&reply["id"], &reply["error"]), (&frame["id"], &json!("forbidden")), "{reply}");
    }
    // The other job changes first: whoever hears of the second was told what there was of the first.
    for name in ["foreign-job", "its-own"] {
        admin.switch(name, false).await;
    }
    loop {
        let event = events.next().await.unwrap();
        assert!(!event.data.to_string().contains("foreign-job"), "{event:?}");
        if event.data["type"] == "job" && event.data["job"]["wanted"] == false {
            break;
        }
    }
    loop {
        let frame = hear_type(&mut socket, "job").await;
        assert_eq!(frame["job"]["name"], "its-own");
        if frame["job"]["wanted"] == false {
            break;
        }
    }
    let token = server.token_that("sue", Role::Viewer, source).await;
    let mut socket = connect(&server, &token).await;
    say(&mut socket, json!({"type": "follow", "dispatch": true})).await;
    let told = hear_type(&mut socket, "dispatch").await.to_string();
    assert!(told.contains("its-own") && !told.contains("foreign-"), "{told}");
}
