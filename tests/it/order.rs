//! Turns of several types at two nodes, on every kind of server: a type whose waiter had asked in time is never passed over.
//!
//! Workers speak HTTP, as `tests/turns` has them; here nobody dies, so every turn must be in cyclic order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use soloist::clock::boot;
use soloist::domain::ensemble::joined;
use soloist::domain::time::Boot;

use crate::support::api::Api;
use crate::support::machine::{in_time, judged};
use crate::support::mariadb::MariaServer;
use crate::support::node::Ground;
use crate::support::postgres::PostgresServer;
use crate::support::redis::RedisServer;
use crate::support::relay::Relay;
use crate::support::wait::until_async;
use crate::support::zookeeper::ZooKeeper;

judged! {
    nobody_who_waits_is_passed_over_on_redis
    nobody_who_waits_is_passed_over_on_postgresql
    nobody_who_waits_is_passed_over_on_mariadb
    nobody_who_waits_is_passed_over_beside_zookeeper
    nobody_who_waits_is_passed_over_beside_a_zookeeper_that_is_slow
}

const TYPES: [&str; 3] = ["invoice", "order", "stock"];
const TURNS: usize = 65;
/// Who asked so long before a turn began was noted by the store by then.
const NOTED: Duration = Duration::from_millis(150);
/// What a worker does with its turn.
const WORK: Duration = Duration::from_millis(20);

async fn nobody_who_waits_is_passed_over_on_redis() {
    let server = RedisServer::start(&[]);
    in_order(&server.url(), || ()).await;
}

async fn nobody_who_waits_is_passed_over_on_postgresql() {
    in_order(&PostgresServer::shared().database(), || ()).await;
}

async fn nobody_who_waits_is_passed_over_on_mariadb() {
    in_order(&MariaServer::shared().database(), || ()).await;
}

async fn nobody_who_waits_is_passed_over_beside_zookeeper() {
    let (store, ensemble) = (PostgresServer::shared().database(), ZooKeeper::shared().chroot());
    in_order(&joined(&store, Some(&ensemble)), || ()).await;
}

/// Its answers, and what its watches say, take longer than a promise lasts.
async fn nobody_who_waits_is_passed_over_beside_a_zookeeper_that_is_slow() {
    let ensemble = ZooKeeper::shared();
    let relay = Relay::before(ensemble.addresses()[0].port());
    let url = joined(&PostgresServer::shared().database(), Some(&relay.url_of(&ensemble.chroot())));
    in_order(&url, || relay.slow(Duration::from_millis(150))).await;
}

/// What all workers know.
#[derive(Default)]
struct Field {
    /// Type and instant of each request that is not answered.
    asked: BTreeMap<String, (usize, Boot)>,
    /// By its token: the type of a turn, and the types of which somebody else waited.
    turns: BTreeMap<u64, (usize, BTreeSet<usize>)>,
}

/// Two workers of each type take turns, one at each node; `begin` is done when the nodes are there.
async fn in_order(url: &str, begin: impl FnOnce()) {
    let ground = Ground::new(url, "");
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let nodes = ["node-a", "node-b"].map(|name| ground.start(name));
    let types = TYPES.map(|name| json!({ "name": name }));
    let rules = json!({ "types": types, "min_gap_ms": 10, "lease_ms": 10_000 });
    let first = nodes[0].api(&token);
    let put = first.call(Method::PUT, "/api/v1/rotations/supplier", Some(rules)).await;
    assert!(put.0.is_success(), "{put:?}");
    begin();
    let field = Arc::new(Mutex::new(Field::default()));
    let workers: Vec<_> = (0..TYPES.len())
        .flat_map(|kind| nodes.iter().map(move |node| (kind, node)))
        .map(|(kind, node)| {
            tokio::spawn(work(node.api(&token), kind, node.name.clone(), Arc::clone(&field)))
        })
        .collect();
    let done = || workers.iter().any(|worker| worker.is_finished());
    until_async("enough turns are over", async || {
        let turns = field.lock().expect("whole").turns.len();
        (turns >= TURNS || done()).then_some(())
    })
    .await;
    workers.iter().for_each(|worker| worker.abort());
    for worker in workers {
        if let Err(error) = worker.await {
            assert!(error.is_cancelled(), "{error}");
        }
    }
    let turns = std::mem::take(&mut field.lock().expect("whole").turns);
    let order: Vec<usize> = turns.values().map(|(kind, _)| *kind).collect();
    let passed_over =
        order.iter().zip(turns.values().skip(1)).filter(|(before, (kind, waited))| {
            let next = |kind: usize| (kind + 1) % TYPES.len();
            let between = std::iter::successors(Some(next(**before)), |kind| Some(next(*kind)));
            between.take_while(|other| other != kind).any(|other| waited.contains(&other))
        });
    let count = passed_over.count();
    in_time(count == 0, || format!("somebody was passed over {count} times: {order:?}"));
}

async fn work(api: Api, kind: usize, node: String, field: Arc<Mutex<Field>>) {
    let worker = format!("{}-{node}", TYPES[kind]);
    let turns = "/api/v1/rotations/supplier/turns";
    for nth in 0.. {
        field.lock().expect("whole").asked.insert(worker.clone(), (kind, boot()));
        let ask = json!({
            "type": TYPES[kind], "worker": worker, "request_id": format!("{worker}-{nth}"), "wait_ms": 20_000
        });
        let (status, answer) = api.call(Method::POST, turns, Some(ask)).await;
        assert!(status.is_success(), "{status} {answer}");
        let Some(turn) = answer["turn"].as_str() else { continue };
        {
            let mut field = field.lock().expect("whole");
            field.asked.remove(&worker);
            let now = boot();
            let waited = field.asked.values().filter(|(_, at)| now.since(*at) > NOTED);
            let waited = waited.map(|(kind, _)| *kind).collect();
            field.turns.insert(answer["token"].as_u64().expect("a token"), (kind, waited));
        }
        tokio::time::sleep(WORK).await;
        let pass = json!({ "token": answer["token"], "outcome": "done" });
        let passed = api.call(Method::POST, &format!("{turns}/{turn}/pass"), Some(pass)).await;
        assert!(passed.0.is_success(), "{passed:?}");
    }
}
