//! A million tasks done, through a node: what Redis and the node keep of them.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::http::read;
use super::support::node::Ground;
use super::support::redis::RedisServer;

const TOTAL: usize = 1_000_000;
/// Put and done before the next are put, so that only what is done grows.
const WAVE: usize = 10_000;
const PUT: usize = 1_000;
const BATCH: usize = 100;
/// Where it is looked at; twice early, because what is remembered of done tasks has to fill up first.
const LOOK_AT: [usize; 6] = [50_000, 100_000, 250_000, 500_000, 750_000, TOTAL];

/// Prints a table.
pub(crate) async fn measure() {
    let server = RedisServer::start(&[]);
    let ground = Ground::new(&server.url(), "");
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    let address = node.url.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("the node accepts");
    stream.set_nodelay(true).expect("a socket");
    let mut call = async |method: &str, path: &str, body: Value| -> Value {
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("the node listens");
        let (status, answer) = read(&mut stream).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    };
    call("PUT", "/api/v1/sources/million", json!({})).await;
    println!("| done | Redis used_memory, KiB | keys | node RSS, KiB |\n| --- | --- | --- | --- |");
    let mut done = 0;
    while done < TOTAL {
        for first in (done..done + WAVE).step_by(PUT) {
            let task = |n: usize| json!({ "key": n.to_string(), "source": "million", "payload": { "n": n } });
            let tasks: Vec<Value> = (first..first + PUT).map(task).collect();
            call("POST", "/api/v1/tasks", json!({ "tasks": tasks })).await;
        }
        let (goal, mut results) = (done + WAVE, Vec::new());
        while done < goal {
            let sent = results.len();
            let claim =
                json!({ "collector": "c1", "request_id": format!("{done}-{sent}"), "max": BATCH });
            let answer =
                call("POST", "/api/v1/results", json!({ "results": results, "claim": claim }))
                    .await;
            done += sent;
            let tasks = answer["claim"]["tasks"].as_array().cloned().unwrap_or_default();
            let result = |task: Value| json!({ "id": task["id"], "token": task["token"], "outcome": "done" });
            results = tasks.into_iter().map(result).collect();
        }
        if LOOK_AT.contains(&done) {
            let info: String = server.run(&["INFO", "memory"]);
            let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
            let used: usize = used.and_then(|text| text.trim().parse().ok()).expect("a figure");
            let keys: usize = server.run(&["DBSIZE"]);
            println!("| {done} | {} | {keys} | {} |", used / 1024, resident(node.pid().as_raw()));
        }
    }
}

/// VmRSS of proc_pid_status(5).
fn resident(pid: i32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
    line.trim().trim_end_matches(" kB").parse().expect("a figure")
}
