//! Through a node: long polls over kept connections, spoken by hand so that the processor is left to node and Redis.

use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::TYPES;
use super::crowd::{Crowd, Figure};
use super::support::node::Ground;
use super::support::redis::RedisServer;

pub(crate) async fn measure(waiters: usize, turns: usize) -> Figure {
    let server = Arc::new(RedisServer::start(&[]));
    let ground = Ground::new(&server.url(), "");
    ground.add_user("operator", "operator");
    let token = ground.token("operator");
    let node = ground.start("node-a");
    let address = node.url.trim_start_matches("http://").to_owned();
    let rotation = json!({ "types": TYPES.map(|name| json!({ "name": name })) });
    let mut stream = connect(&address).await;
    let put = call(&mut stream, "PUT", "/api/v1/rotations/supplier", &token, &rotation).await;
    assert_eq!(put.0, 200, "{}", put.1);
    let crowd = Arc::new(Crowd::new(turns));
    let workers: Vec<_> = (0..=waiters)
        .map(|nth| {
            let (crowd, server) = (Arc::clone(&crowd), Arc::clone(&server));
            tokio::spawn(work(address.clone(), token.clone(), nth, crowd, server))
        })
        .collect();
    let figure = crowd.figure(&server).await;
    for worker in &workers {
        worker.abort();
    }
    for worker in workers {
        // Aborted, as said.
        drop(worker.await);
    }
    figure
}

async fn work(
    address: String,
    token: String,
    nth: usize,
    crowd: Arc<Crowd>,
    server: Arc<RedisServer>,
) {
    let mut stream = connect(&address).await;
    let mut count = 0;
    while !crowd.is_over() {
        count += 1;
        let take = json!({
            "type": TYPES[nth % TYPES.len()],
            "worker": format!("w{nth}"),
            "request_id": format!("w{nth}-{count}"),
            "wait_ms": 30_000
        });
        let path = "/api/v1/rotations/supplier/turns";
        let (status, answer) = call(&mut stream, "POST", path, &token, &take).await;
        assert_eq!(status, 200, "{answer}");
        let Some(turn) = answer["turn"].as_str() else { continue };
        crowd.granted(&server);
        let pass = json!({ "token": answer["token"], "outcome": "done" });
        let path = format!("/api/v1/rotations/supplier/turns/{turn}/pass");
        crowd.passing();
        let (status, answer) = call(&mut stream, "POST", &path, &token, &pass).await;
        assert_eq!(status, 200, "{answer}");
    }
}

async fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("the node accepts");
    stream.set_nodelay(true).expect("a socket");
    stream
}

async fn call(
    stream: &mut TcpStream,
    method: &str,
    path: &str,
    token: &str,
    body: &Value,
) -> (u16, Value) {
    let body = body.to_string();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.expect("it listens");
    read(stream).await
}

/// One answer with a length.
async fn read(stream: &mut TcpStream) -> (u16, Value) {
    let mut bytes = Vec::with_capacity(1024);
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        assert!(stream.read_buf(&mut bytes).await.expect("an answer") > 0, "the node hung up");
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let status: u16 = text[9..12].parse().expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().expect("a length"));
    while bytes.len() < head + length {
        assert!(stream.read_buf(&mut bytes).await.expect("an answer") > 0, "the node hung up");
    }
    (status, serde_json::from_slice(&bytes[head..]).unwrap_or(Value::Null))
}
