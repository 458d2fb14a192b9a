//! Jobs that somebody's own program runs: no node ever takes their lease, and whoever looks or acts is told of a program.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::domain::lease::Token;
use soloist::domain::name::{Owner, RunId};
use soloist::domain::time::Began;
use soloist::store::journal::{Journal as _, Started};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _};
use soloist::store::{Options, Store};

use crate::support::node::Ground;
use crate::support::redis::RedisServer;

const JOBS: &str = "[[job]]\nname = \"settlement\"\nrunner = \"external\"\ngroup = \"Books\"\nlease_ttl = \"60s\"\n\
                    [[job]]\nname = \"labels\"\ncommand = [\"sleep\", \"600\"]\n";
const JOB: &str = "settlement";

/// A program that asks the store as a node's room for programs does.
async fn take(store: &Store, holder: &str) -> Acquired {
    let ask = Acquire {
        job: JOB.parse().expect("a name"),
        owner: Owner(format!("{holder}/1")),
        node: holder.parse().expect("a name"),
        ttl: Duration::from_secs(60),
        condition: Condition::Wanted,
        seen: Token(0),
    };
    let answer = store.acquire(&ask).await.expect("answered");
    if let Acquired::Granted { token, .. } = answer {
        let run = Started {
            job: ask.job,
            token,
            run: RunId(format!("run-of-{holder}")),
            node: ask.node,
            pid: 0,
            began: Began::at_boot(soloist::clock::boot()),
        };
        store.record_started(&run).await.expect("recorded");
    }
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_program_is_taken_by_no_node_and_shown_moved_and_left_alone_as_a_programs() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOBS);
    ground.add_user("ada", "admin");
    let token = ground.token("ada");
    let node = ground.start("node-a");
    let api = node.api(&token);
    let mut live = api.live().await;

    // Both are wanted; the node heard of the first before it started the second.
    api.switch(JOB, true).await;
    api.switch("labels", true).await;
    live.until("labels", "the node runs its own", |job| !job["run"].is_null()).await;
    let job = api.get("/api/v1/jobs/settlement").await;
    assert_eq!((&job["state"], &job["lease"]), (&json!("waiting"), &Value::Null), "{job}");
    assert_eq!((&job["runner"], &job["group"]), (&json!("external"), &json!("Books")));
    let why = job["why"].as_str().expect("a sentence");
    assert_eq!(why, "Waiting: wanted by ada, and no program has asked for it.");
    let (nodes, labels) = (api.get("/api/v1/nodes").await, api.get("/api/v1/jobs/labels").await);
    assert!(nodes["nodes"][0]["jobs"][JOB].is_string(), "its definition is told: {nodes}");
    assert_eq!((&labels["runner"], &labels["group"]), (&json!("soloist"), &Value::Null));
    assert!(labels["run"]["pid"].is_u64(), "{labels}");

    let store =
        soloist::stores::connect(&redis.url(), &Options::default()).await.expect("the store");
    assert!(matches!(take(&store, "shop-7f").await, Acquired::Granted { .. }));
    live.until(JOB, "the program has it", |job| job["lease"]["node"] == "shop-7f").await;
    let job = api.get("/api/v1/jobs/settlement").await;
    assert_eq!(job["run"]["pid"], Value::Null, "{job}");
    assert!(job["why"].as_str().expect("a sentence").contains(" in shop-7f since"), "{job}");

    let drill = "/api/v1/jobs/settlement/drill";
    let (status, body) = api.call(Method::POST, drill, Some(json!({"force": true}))).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    assert!(body["detail"].as_str().expect("a sentence").contains("cannot crash"), "{body}");
    let output = ground.run(&["drill", JOB, "--user", "ada"]);
    assert_eq!(output.status.code(), Some(4), "the command line agrees");

    // Emptying the node stops what the node runs, and nothing else.
    let (status, body) = api.call(Method::PUT, "/api/v1/nodes/node-a/drain", None).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    live.until("labels", "the node is empty", |job| job["lease"].is_null()).await;
    let job = api.get("/api/v1/jobs/settlement").await;
    assert_eq!(job["lease"]["node"], "shop-7f", "{job}");

    // It moves to whatever name is given, and the program that has it is told to go.
    let r#move = "/api/v1/jobs/settlement/move";
    let (status, body) = api.call(Method::POST, r#move, Some(json!({"to": "shop-7f"}))).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    let (status, body) = api.call(Method::POST, r#move, Some(json!({"to": "shop-9c"}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    let owner = Owner("shop-7f/1".to_owned());
    store.release(&JOB.parse().expect("a name"), &owner).await.expect("given back");
    let refused = take(&store, "shop-1a").await;
    assert!(matches!(refused, Acquired::Reserved { .. }), "{refused:?}");
    let job = live.until(JOB, "it is kept for the other", |job| job["lease"].is_null()).await;
    assert!(job["why"].as_str().expect("a sentence").contains("moved to shop-9c"), "{job}");
    assert!(matches!(take(&store, "shop-9c").await, Acquired::Granted { .. }));

    let status = ground.must(&["status"]);
    assert!(status.contains("settlement") && status.contains("shop-9c"), "{status}");
}
