//! An installation in which every page has something to show, and every kind of trouble of a job.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

/// Jobs in every state that stays; `outbound` talks, tells its progress and takes turns.
const JOBS: &str = r#"
[[job]]
name = "outbound"
title = { en = "Outbound shipping", zh = "出库任务" }
group = "Warehouse"
rotation = "api"
command = ["sh", "-c", "i=0; while :; do i=$((i+1)); echo ::progress $i/1000 order $i; printf '\\033[32mshipped\\033[0m order %s\\n' $i; echo careful >&2; sleep 0.5; done"]
[[job]]
name = "stock"
group = "Warehouse"
command = ["sleep", "1000"]
[[job]]
name = "crashed"
command = ["false"]
give_up_after = 1
[[job]]
name = "retries"
command = ["false"]
backoff = { first = "60s", max = "60s" }
[[job]]
name = "rests"
command = ["true"]
repeat = "1h"
[[job]]
name = "held"
command = ["sleep", "1000"]
[[job]]
name = "program"
runner = "external"
[[job]]
name = "stuck"
title = { en = "Parcel tracking", zh = "包裹跟踪" }
command = ["sh", "-c", "echo ::progress 41/120 parcel 41; exec sleep 1000"]
min_uptime = "500ms"
[[job]]
name = "settle"
command = ["false"]
zone = "Asia/Shanghai"
schedule = ["30 2 * * *", "* * * * *"]
params = { day = { type = "date", default = "yesterday" }, mode = { type = "choice", of = ["fast", "full"], default = "fast" }, n = { type = "int", min = 0, max = 9 }, note = { type = "text", pattern = "[a-z ]*", default = "" } }
[[job]]
name = "nowhere-to-run"
command = ["sleep", "1000"]
nodes = ["node-z"]

[[alert]]
when = "given_up"
to = ["ops"]
[[alert]]
when = "stuck"
for = "2s"
jobs = ["stuck"]
to = ["ops"]
[channel.ops]
kind = "webhook"
url = "http://127.0.0.1:1/webhook"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"#;

/// Two nodes on one Redis, with work in all rooms.
pub(crate) struct World {
    pub(crate) redis: RedisServer,
    _ground: Ground,
    pub(crate) a: Node,
    pub(crate) b: Node,
    /// A task that was done.
    pub(crate) task: String,
}

impl World {
    /// Starts it; li and wang are admins.
    pub(crate) async fn start() -> Self {
        let redis = RedisServer::start(&[]);
        let ground = Ground::new(&redis.url(), JOBS);
        ground.add_user("li", "admin");
        ground.add_user("wang", "admin");
        let (a, b) = (ground.start("node-a"), ground.start("node-b"));
        let api = a.api(&ground.token("li"));
        take_turns(&api).await;
        let task = collect(&api).await;
        for job in [
            "outbound",
            "crashed",
            "retries",
            "rests",
            "held",
            "program",
            "stuck",
            "nowhere-to-run",
        ] {
            api.switch(job, true).await;
        }
        ground.must(&["hold", "held", "--user", "li", "--reason", "stocktaking"]);
        let lease = json!({"holder": "shop-7f", "request_id": "1", "ttl_ms": 600_000});
        must(&api, Method::POST, "/api/v1/leases/stock-feed", lease).await;
        for (job, state) in [
            ("outbound", "running"),
            ("crashed", "given_up"),
            ("retries", "backing_off"),
            ("rests", "resting"),
            ("held", "held"),
        ] {
            until_async(&format!("{job} is {state}"), async || {
                let shown = api.get(&format!("/api/v1/jobs/{job}")).await;
                (shown["state"] == state).then_some(())
            })
            .await;
        }
        until_async("a run stands still", async || {
            let why = api.get("/api/v1/jobs/stuck").await["why"].clone();
            why.as_str()?.contains("is stuck").then_some(())
        })
        .await;
        Self { redis, _ground: ground, a, b, task }
    }
}

async fn must(api: &Api, method: Method, path: &str, body: Value) -> Value {
    let (status, said) = api.call(method, path, Some(body)).await;
    assert!(status.is_success(), "{path}: {status} {said}");
    said
}

async fn take_turns(api: &Api) {
    let rules = json!({"types": [{"name": "outbound"}, {"name": "stock"}], "lease_ms": 60_000});
    must(api, Method::PUT, "/api/v1/rotations/api", rules).await;
    let ask = json!({"type": "stock", "worker": "w", "request_id": "one"});
    let turn = must(api, Method::POST, "/api/v1/rotations/api/turns", ask).await;
    let pass =
        format!("/api/v1/rotations/api/turns/{}/pass", turn["turn"].as_str().expect("an id"));
    must(api, Method::POST, &pass, json!({"token": turn["token"], "outcome": "failed"})).await;
}

/// A task is done, one is dead, one is in somebody's hands, some are ready; a source rests. Gives the id of the first.
async fn collect(api: &Api) -> String {
    must(api, Method::PUT, "/api/v1/sources/shop", json!({"cap": 5})).await;
    must(api, Method::PUT, "/api/v1/sources/mail", json!({"paused": true})).await;
    let task = |key: &str| json!({"source": "shop", "key": key, "payload": {"page": key}});
    let tasks: Vec<Value> = ["one", "two", "three", "four", "five"].map(task).into();
    must(api, Method::POST, "/api/v1/tasks", json!({"tasks": tasks})).await;
    let claim = json!({"collector": "c1", "request_id": "1", "max": 3, "sources": ["shop"]});
    let got = must(api, Method::POST, "/api/v1/claims", claim).await;
    let result = |nth: usize, outcome: &str| {
        let task = &got["tasks"][nth];
        json!({"id": task["id"], "token": task["token"], "outcome": outcome, "error": "HTTP 410, gone"})
    };
    let results = json!({"results": [result(0, "done"), result(1, "dead")]});
    must(api, Method::POST, "/api/v1/results", results).await;
    got["tasks"][0]["id"].as_str().expect("an id").to_owned()
}

/// A node with more jobs, people, sources and rotations than a screen shows, all with long names; li and wang are admins.
pub(crate) async fn crowd() -> (Ground, Node) {
    let job = |nth: usize| {
        format!(
            "[[job]]\nname = \"outbound-of-warehouse-number-{nth:03}-in-the-harbour\"\n\
             title = {{ en = \"Outbound shipping of the warehouse number {nth} in the old harbour\", zh = \"旧港区第{nth}号仓库出库任务\" }}\n\
             group = \"Warehouses of region {}\"\ncommand = [\"sleep\", \"1000\"]\n",
            nth / 25
        )
    };
    let ground = Ground::new("sqlite:soloist.db", &(0..120).map(job).collect::<String>());
    for (user, role) in [("li", "admin"), ("wang", "admin")] {
        ground.add_user(user, role);
    }
    for nth in 0..10 {
        ground.add_user(&format!("operator-of-the-late-shift-{nth}"), "operator");
    }
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    for nth in (0..120).step_by(12) {
        api.switch(&format!("outbound-of-warehouse-number-{nth:03}-in-the-harbour"), true).await;
    }
    for nth in 0..30 {
        let source = format!("catalogue-of-supplier-{nth:02}");
        let rules = json!({"cap": 3, "paused": nth % 7 == 0});
        must(&api, Method::PUT, &format!("/api/v1/sources/{source}"), rules).await;
        let task = |page: usize| json!({"source": source, "key": format!("page-{page}-of-{nth}"), "payload": {"page": page}});
        let tasks: Vec<Value> = (0..4).map(task).collect();
        must(&api, Method::POST, "/api/v1/tasks", json!({"tasks": tasks})).await;
    }
    let types = ["outbound", "inbound", "stocktaking", "returns", "prices", "photographs"];
    let types: Vec<Value> = types.map(|name| json!({"name": name})).into();
    for nth in 0..9 {
        let rules = json!({"types": types, "lease_ms": 60_000});
        must(&api, Method::PUT, &format!("/api/v1/rotations/supplier-{nth}"), rules).await;
    }
    (ground, node)
}
