//! What is said of nodes: who holds what by the leases, who is silent, and how a dead one leaves the list.

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::lifecycle::{JOB, Pair};
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

/// The nodes of a listing that are said to hold the job.
fn holders(listing: &Value) -> Vec<String> {
    let nodes = listing["nodes"].as_array().expect("nodes");
    let holds = |node: &&Value| node["holds"].as_array().expect("jobs").contains(&JOB.into());
    nodes.iter().filter(holds).map(|node| node["name"].as_str().expect("a name").into()).collect()
}

fn named<'a>(listing: &'a Value, name: &str) -> Option<&'a Value> {
    listing["nodes"].as_array()?.iter().find(|node| node["name"] == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_drained_by_who_may_not_stop_its_jobs() {
    let redis = RedisServer::start(&[]);
    let jobs = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"600\"]\noperators = [\"li\"]\n\
                [[job]]\nname = \"labels\"\ncommand = [\"sleep\", \"600\"]\n";
    let ground = Ground::new(&redis.url(), jobs);
    for (name, role) in [("li", "operator"), ("wang", "operator"), ("root", "admin")] {
        ground.add_user(name, role);
    }
    let (li, wang, root) = (ground.token("li"), ground.token("wang"), ground.token("root"));
    let a = ground.start("node-a");
    let drain = "/api/v1/nodes/node-a/drain";
    let refused = async |said: &str| {
        let (status, body) = a.api(&wang).call(Method::PUT, drain, None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{said}: {body}");
        let detail = body["detail"].as_str().expect("a sentence").to_owned();
        assert!(detail.contains("outbound") && !detail.contains("labels"), "{detail}");
        let nodes = a.api(&li).get("/api/v1/nodes").await;
        assert_eq!(named(&nodes, "node-a").expect("it lives")["draining"], false);
    };
    refused("nobody else could run it").await;
    let output = ground.run(&["drain", "node-a", "--user", "wang"]);
    assert_eq!(output.status.code(), Some(4), "the command line agrees");

    let b = ground.start("node-b");
    until_async("both may run it", async || {
        let nodes = a.api(&li).get("/api/v1/nodes").await;
        named(&nodes, "node-b").filter(|node| node["alive"] == true).map(drop)
    })
    .await;
    let (status, body) = b.api(&wang).call(Method::PUT, drain, None).await;
    assert_eq!(status, StatusCode::OK, "it holds nothing, and another may run all: {body}");
    let (status, _) = b.api(&wang).call(Method::DELETE, drain, None).await;
    assert_eq!(status, StatusCode::OK);

    b.api(&root).call(Method::PUT, "/api/v1/nodes/node-b/drain", None).await;
    a.api(&li).switch("outbound", true).await;
    let mut live = a.api(&li).live().await;
    live.until("outbound", "node-a holds it", |job| job["lease"]["node"] == "node-a").await;
    b.api(&root).call(Method::DELETE, "/api/v1/nodes/node-b/drain", None).await;
    refused("it holds the job").await;
    let (status, body) = a.api(&li).call(Method::PUT, drain, None).await;
    assert_eq!(status, StatusCode::OK, "an operator of the job may: {body}");
    a.api(&li).call(Method::DELETE, drain, None).await;
    let (status, _) = a.api(&root).call(Method::PUT, drain, None).await;
    assert_eq!(status, StatusCode::OK, "and an admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_node_holds_nothing_and_can_be_forgotten() {
    let mut pair = Pair::start("beat", "");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let (token, ground) = (pair.li.clone(), &pair.ground);
    let (dying, living) = match pair.a.name == first.node {
        true => (&mut pair.a, &mut pair.b),
        false => (&mut pair.b, &mut pair.a),
    };
    let (dead, survivor) = (dying.name.clone(), living.api(&token));
    until_async("the holder is listed", async || {
        (holders(&survivor.get("/api/v1/nodes").await) == [dead.as_str()]).then_some(())
    })
    .await;
    let refused = survivor.call(Method::DELETE, &format!("/api/v1/nodes/{dead}"), None).await;
    assert_eq!(refused.0, StatusCode::CONFLICT, "{}", refused.1);
    assert!(refused.1["detail"].as_str().expect("a sentence").contains("alive"), "{}", refused.1);

    dying.kill();
    let second = pair.witness.until_started(2);
    assert_eq!(second.node, living.name);
    // Its last report is still fresh, and yet nothing says that two nodes hold the job.
    until_async("the other is listed", async || {
        let held = holders(&survivor.get("/api/v1/nodes").await);
        assert!(held.len() <= 1, "the job is shown on two nodes: {held:?}");
        (held == [second.node.as_str()]).then_some(())
    })
    .await;
    let listed: Value = serde_json::from_str(&ground.must(&["nodes", "--json"])).expect("JSON");
    assert_eq!(holders(&listed), [second.node.as_str()], "the command line agrees: {listed}");

    let silent = until_async("the dead node is silent", async || {
        let listing = survivor.get("/api/v1/nodes").await;
        named(&listing, &dead).filter(|node| node["alive"] == false).cloned()
    })
    .await;
    assert_eq!(silent["holds"], serde_json::json!([]), "{silent}");
    assert!(silent["silent_since"].is_string(), "{silent}");
    let listing = survivor.get("/api/v1/nodes").await;
    let alive = named(&listing, &living.name).expect("it lives");
    assert!(alive["url"].as_str().is_some_and(|url| url.starts_with("http://")), "{alive}");
    let ahead = alive["vitals"]["clock_ahead_ms"].as_i64().expect("a clock");
    assert!(ahead.abs() < 60_000, "one machine: {alive}");
    assert!(alive["vitals"]["free_mb"].as_u64() <= alive["vitals"]["memory_mb"].as_u64());
    let free = alive["vitals"]["disk_free_mb"].as_u64().expect("a disk");
    assert!(Some(free) <= alive["vitals"]["disk_mb"].as_u64(), "{alive}");
    let path = format!("/api/v1/nodes/{dead}?reason=scrapped");
    let (status, left) = survivor.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::OK, "{left}");
    assert!(named(&left, &dead).is_none(), "{left}");
    let (status, _) = survivor.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let audit = survivor.get("/api/v1/audit?limit=1").await;
    let entry = &audit["entries"][0];
    assert_eq!((&entry["act"], &entry["reason"]), (&"node.forget".into(), &"scrapped".into()));
    pair.witness.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_forgotten_from_the_command_line_when_it_is_silent() {
    let mut pair = Pair::start("beat", "");
    let refused = pair.ground.run(&["forget", "node-b"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    pair.b.kill();
    until("node-b is forgotten", || {
        pair.ground.run(&["forget", "node-b"]).status.success().then_some(())
    });
    let nodes = pair.ground.must(&["nodes"]);
    assert!(!nodes.contains("node-b"), "{nodes}");
    assert_eq!(pair.ground.run(&["forget", "node-b"]).status.code(), Some(3));
}
