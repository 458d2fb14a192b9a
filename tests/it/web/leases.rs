//! `GET /api/v1/leases`: everything that is held, in the form of the Job's `lease`.

use std::time::Duration;

use serde_json::{Value, json};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner};
use soloist::domain::time::StoreTime;
use soloist::store::accounts::Role;
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _};
use soloist::web::openapi::describe;
use soloist::words::iso;

use super::openapi::Answers;
use super::{On, Server, problem};

const TTL: Duration = Duration::from_secs(60);

fn ask(name: &str, node: &str) -> Acquire {
    Acquire {
        job: JobName::new(name).unwrap(),
        owner: Owner(format!("secret-of-{name}")),
        node: NodeName::new(node).unwrap(),
        ttl: TTL,
        condition: Condition::None,
        seen: Token(0),
    }
}

async fn take(server: &Server, ask: &Acquire) -> (Token, StoreTime) {
    match server.store().acquire(ask).await.unwrap() {
        Acquired::Granted { token, since } => (token, since),
        other => panic!("{other:?}"),
    }
}

async fn listed(server: &Server, token: &str) -> Value {
    let response = server.get("/api/v1/leases", token).await;
    assert_eq!(response.status(), 200);
    let answer: Value = response.json().await.unwrap();
    let answers = Answers::new(&describe());
    assert_eq!(answers.problem("get", "/api/v1/leases", 200, &answer), None, "{answer}");
    answer
}

on_every_store! {
    everything_held_is_listed_by_name_to_whoever_may_look
}

async fn everything_held_is_listed_by_name_to_whoever_may_look(on: On) {
    let server = Server::on(on).await;
    let token = server.token("vera", Role::Viewer).await;
    assert_eq!(listed(&server, &token).await, json!({"leases": []}));
    let (job, command) = (ask("outbound", "node-b"), ask("deploy", "cron-1"));
    let of_the_job = take(&server, &job).await;
    let of_the_command = take(&server, &command).await;

    let mut answer = listed(&server, &token).await;
    assert!(!answer.to_string().contains("secret-of"), "who knows the owner can give it back");
    for lease in answer["leases"].as_array_mut().unwrap() {
        let left = lease["expires_in_ms"].take().as_u64().unwrap();
        assert!(left > 30_000 && left <= 60_000, "{left}");
    }
    let expected = [
        ("deploy", "command", "cron-1", of_the_command),
        ("outbound", "job", "node-b", of_the_job),
    ]
    .map(|(name, kind, node, (token, since))| {
        json!({"name": name, "kind": kind, "holder": node, "node": node, "token": token.0,
                "since": iso(since), "expires_in_ms": null, "watched": true})
    });
    assert_eq!(answer["leases"], json!(expected));
    let path = "/api/v1/jobs/outbound/hold";
    let admin = server.token("ada", Role::Admin).await;
    let hold = server.ask("PUT", path).bearer_auth(&admin).body(r#"{"reason":"x"}"#);
    let shown: Value = hold.send().await.unwrap().json().await.unwrap();
    for part in ["node", "token", "since"] {
        assert_eq!(answer["leases"][1][part], shown["lease"][part], "as in the Job: {shown}");
    }

    server.store().release(&job.job, &job.owner).await.unwrap();
    let left = listed(&server, &token).await;
    assert_eq!(left["leases"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(left["leases"][0]["name"], "deploy");
}

#[tokio::test(flavor = "multi_thread")]
async fn collectors_may_not_look_and_a_store_that_is_away_is_said() {
    let mut server = Server::start().await;
    let (vera, carl) =
        (server.token("vera", Role::Viewer).await, server.token("carl", Role::Collector).await);
    assert_eq!(problem(server.get("/api/v1/leases", &carl).await).await.0, 403);
    assert_eq!(listed(&server, &vera).await, json!({"leases": []}));
    server.redis.stop();
    assert_eq!(problem(server.get("/api/v1/leases", &vera).await).await.0, 503);
}
