//! Nodes upgraded one after the other, as `docs/operations.md` tells it, while a job runs, a program holds a lease, and people read
//! and switch through a balancer.
//!
//! `SOLOIST_OLD=PATH` is the program of the version before, of the same schema. Without it the present one plays both parts: then it
//! is a rolling restart.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::lifecycle::JOB;
use crate::support::machine::{holds, judged};
use crate::support::node::{Ground, Node, SOLOIST};
use crate::support::redis::RedisServer;
use crate::support::wait::{PATIENCE, until_async};
use crate::support::witness::{self, Witness};

judged! {
    two_nodes_are_upgraded_one_after_the_other_and_nobody_behind_the_balancer_notices
    a_node_that_ends_answers_on_open_connections_once_more_and_says_so
}

/// How often each of the clients calls.
const EVERY: Duration = Duration::from_millis(10);

/// How often the balancer looks whether a node is ready.
const HEALTH_EVERY: Duration = Duration::from_millis(50);

/// What stands before the nodes, as `deploy/Caddyfile` says it: it asks each in turn that was ready when it last looked, and the other
/// when one takes no connection. What a node answers, or breaks off, is what the client gets.
struct Balancer {
    nodes: [String; 2],
    ready: Arc<[AtomicBool; 2]>,
    token: String,
    client: Client,
    next: AtomicUsize,
}

impl Balancer {
    fn new(nodes: [String; 2], ready: &Arc<[AtomicBool; 2]>, token: &str) -> Self {
        let client = crate::support::http::client().timeout(PATIENCE).build().expect("a client");
        let (ready, next) = (Arc::clone(ready), AtomicUsize::new(0));
        Self { nodes, ready, token: token.to_owned(), client, next }
    }

    /// Looks again and again whether each node is ready.
    fn look(nodes: [String; 2], ready: &Arc<[AtomicBool; 2]>) -> JoinHandle<()> {
        let ready = Arc::clone(ready);
        tokio::spawn(async move {
            let client =
                crate::support::http::client().timeout(PATIENCE).build().expect("a client");
            let mut every = tokio::time::interval(HEALTH_EVERY);
            loop {
                every.tick().await;
                for (node, ready) in nodes.iter().zip(&*ready) {
                    let answer = client.get(format!("{node}/readyz")).send().await;
                    let is = answer.is_ok_and(|answer| answer.status().is_success());
                    ready.store(is, Ordering::Relaxed);
                }
            }
        })
    }

    /// The answer; what no node answered is 502, as balancers say it.
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut turns = [first % 2, (first + 1) % 2];
        turns.sort_by_key(|at| !self.ready[*at].load(Ordering::Relaxed));
        for at in turns {
            let url = format!("{}{path}", self.nodes[at]);
            let mut request = self.client.request(method.clone(), url).bearer_auth(&self.token);
            if let Some(body) = body {
                request = request.json(body);
            }
            match request.send().await {
                Ok(answer) => {
                    let status = answer.status();
                    return (status, answer.json().await.unwrap_or_default());
                }
                Err(error) if error.is_connect() => {}
                Err(error) => return (StatusCode::BAD_GATEWAY, json!(format!("{error:?}"))),
            }
        }
        (StatusCode::BAD_GATEWAY, json!("no node takes a connection"))
    }
}

/// Calls again and again until the end, at least once; gives how often, and the first bad answer.
fn again_and_again<F, C>(over: &Arc<AtomicBool>, mut call: F) -> JoinHandle<(usize, Option<String>)>
where
    F: FnMut() -> C + Send + 'static,
    C: Future<Output = (StatusCode, Value)> + Send,
{
    let over = Arc::clone(over);
    tokio::spawn(async move {
        let (mut every, mut calls) = (tokio::time::interval(EVERY), 0);
        loop {
            let (status, answer) = call().await;
            if !status.is_success() {
                return (calls, Some(format!("call {calls}: {status} {answer}")));
            }
            calls += 1;
            if over.load(Ordering::Relaxed) {
                return (calls, None);
            }
            every.tick().await;
        }
    })
}

/// The program of the version before.
fn old() -> PathBuf {
    std::env::var_os("SOLOIST_OLD").map_or_else(|| SOLOIST.into(), PathBuf::from)
}

async fn two_nodes_are_upgraded_one_after_the_other_and_nobody_behind_the_balancer_notices() {
    let redis = RedisServer::start(&[]);
    let mut ground = Ground::new(&redis.url(), &witness::job(JOB, "beat", "")).with_program(&old());
    witness::place(&ground);
    ground.add_user("li", "operator");
    ground.add_user("wang", "operator");
    let (li, wang) = (ground.token("li"), ground.token("wang"));
    let mut nodes = [ground.start("node-a"), ground.start("node-b")];
    let urls = [nodes[0].url.clone(), nodes[1].url.clone()];
    let witness = Witness::of(&ground, JOB);
    nodes[0].api(&li).switch(JOB, true).await;
    let mut seen = witness.until_started(1);

    // People who look, one who switches, and a program that renews its lease: at any node.
    let over = Arc::new(AtomicBool::new(false));
    let ready = Arc::new([AtomicBool::new(true), AtomicBool::new(true)]);
    let health = Balancer::look(urls.clone(), &ready);
    let at = |token: &str| Arc::new(Balancer::new(urls.clone(), &ready, token));
    let balancer = at(&li);
    let looks = again_and_again(&over, move || {
        let balancer = Arc::clone(&balancer);
        async move { balancer.call(Method::GET, "/api/v1/jobs", None).await }
    });
    let (balancer, last) = (at(&wang), Arc::new(AtomicBool::new(false)));
    let wants = Arc::clone(&last);
    let switches = again_and_again(&over, move || {
        let (balancer, wants) = (Arc::clone(&balancer), Arc::clone(&wants));
        async move {
            let on = !wants.load(Ordering::Relaxed);
            let path = format!("/api/v1/jobs/{JOB}/participation");
            let answer = balancer.call(Method::PUT, &path, Some(&json!({ "on": on }))).await;
            if answer.0.is_success() {
                wants.store(on, Ordering::Relaxed);
            }
            answer
        }
    });
    let balancer = at(&li);
    let ask = json!({ "holder": "till-1", "ttl_ms": 4_000, "request_id": "till-1-first" });
    let (status, grant) = balancer.call(Method::POST, "/api/v1/leases/till", Some(&ask)).await;
    assert!(status.is_success() && grant["token"].is_u64(), "{status} {grant}");
    let secret = json!({ "secret": grant["secret"] });
    let renewals = again_and_again(&over, move || {
        let (balancer, secret) = (Arc::clone(&balancer), secret.clone());
        async move { balancer.call(Method::POST, "/api/v1/leases/till/renew", Some(&secret)).await }
    });

    ground.change_program(SOLOIST.as_ref());
    for at in 0..2 {
        let name = nodes[at].name.clone();
        let address = nodes[at].url.replacen("http://", "", 1);
        let had = seen.node == name;
        ground.must(&["drain", &name]);
        if had {
            seen = witness.until_started(starts_until(&witness, seen.token) + 1);
            assert_ne!(seen.node, name, "a drained node takes no job");
        }
        assert_eq!(nodes[at].terminate(), Some(0));
        nodes[at] = ground.start_at(&name, &address);
        ground.must(&["undrain", &name]);
        let api = nodes[at].api(&li);
        until_async("both nodes are alive again", async || {
            let list = api.get("/api/v1/nodes").await;
            let alive = |node: &&Value| node["alive"] == true && node["draining"] == false;
            let nodes = list["nodes"].as_array().expect("nodes");
            (nodes.iter().filter(alive).count() == 2).then_some(())
        })
        .await;
        // The other must not go before this one could take its jobs.
        witness.until_more(seen.token, 5);
    }

    over.store(true, Ordering::Relaxed);
    health.abort();
    for (what, client) in [("looks", looks), ("switches", switches), ("renewals", renewals)] {
        let (calls, bad) = client.await.expect("a client");
        assert_eq!(bad, None, "{what}");
        println!("{what}: {calls} calls, none of them failed");
    }
    let job = nodes[1].api(&li).get(&format!("/api/v1/jobs/{JOB}")).await;
    let users: Vec<_> = job["participants"].as_array().expect("users").iter().collect();
    let is_in = |name: &str| users.iter().any(|one| one["user"] == name);
    holds(is_in("li"), || format!("li's switch was lost: {job}"));
    holds(is_in("wang") == last.load(Ordering::Relaxed), || format!("a switch was lost: {job}"));
    let runs = nodes[0].api(&li).runs(JOB).await;
    assert!(runs.iter().all(|run| run["end"] != "lost"), "{runs:?}");
    witness.check();
}

/// A connection that is kept for the next request.
struct Kept(BufReader<TcpStream>);

impl Kept {
    async fn to(node: &Node) -> Self {
        let address = node.url.replacen("http://", "", 1);
        Self(BufReader::new(TcpStream::connect(address).await.expect("a connection")))
    }

    /// The status line of an answer, and whether it is the last one.
    async fn ask(&mut self) -> (String, bool) {
        let request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        self.0.get_mut().write_all(request).await.expect("sent");
        let (mut head, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.expect("a line");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(count) = line.strip_prefix("content-length: ") {
                length = count.parse().expect("a number");
            }
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        self.0.read_exact(&mut vec![0; length]).await.expect("the body");
        (head[0].clone(), head.iter().any(|line| line == "connection: close"))
    }
}

/// What a balancer sends over a connection that is kept would be lost if the node just hung up.
async fn a_node_that_ends_answers_on_open_connections_once_more_and_says_so() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), "");
    let mut node = ground.start("node-a");
    let (mut kept, ok) = (Kept::to(&node).await, "http/1.1 200 ok".to_owned());
    assert_eq!(kept.ask().await, (ok.clone(), false));
    node.signal(Signal::SIGTERM);
    until_async("it says that it ends", async || Kept::to(&node).await.ask().await.1.then_some(()))
        .await;
    assert_eq!(kept.ask().await, (ok, true), "on the connection from before, too");
    let mut rest = Vec::new();
    kept.0.read_to_end(&mut rest).await.expect("the end");
    assert_eq!(rest, b"");
    assert_eq!(node.wait(), Some(0));
}

/// How many runs have started with the one of that token.
fn starts_until(witness: &Witness, token: u64) -> usize {
    witness.acts().iter().filter(|act| act.word == "start" && act.token <= token).count()
}
