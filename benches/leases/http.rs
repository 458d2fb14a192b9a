//! A program that holds and waits for leases: one kept connection to one node, HTTP by hand.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest that a request may wait, in milliseconds.
const LONGEST_WAIT: u64 = 30_000;
/// The status of a node whose store does not answer: on a machine that is too busy for a measurement.
const AWAY: u16 = 503;
const AGAIN: Duration = Duration::from_millis(20);

/// Where a node listens, and the token that opens it.
#[derive(Clone)]
pub(crate) struct Door {
    pub address: String,
    pub token: Arc<str>,
}

/// A program at one node.
pub(crate) struct Program {
    stream: TcpStream,
    token: Arc<str>,
    holder: String,
    requests: u64,
    bytes: Vec<u8>,
}

impl Program {
    /// Opens its connection.
    pub(crate) async fn at(door: &Door, holder: &str) -> Self {
        let stream = TcpStream::connect(&door.address).await.expect("the node accepts");
        stream.set_nodelay(true).expect("a socket");
        let (token, holder) = (Arc::clone(&door.token), holder.to_owned());
        Self { stream, token, holder, requests: 0, bytes: Vec::with_capacity(4_096) }
    }

    /// Takes a lease as a new request, waiting for it as long as it takes; a name of its own gets `ttl_ms`.
    pub(crate) async fn take(&mut self, name: &str, ttl_ms: u64) -> Value {
        self.requests += 1;
        let ask = json!({
            "holder": self.holder,
            "request_id": format!("{}-{}", self.holder, self.requests),
            "ttl_ms": ttl_ms,
            "wait_ms": LONGEST_WAIT,
        });
        loop {
            let (status, answer) = self.call("POST", &format!("/api/v1/leases/{name}"), &ask).await;
            assert_eq!(status, 200, "{name}: {answer}");
            if answer["secret"].is_string() {
                return answer;
            }
        }
    }

    /// Renews it, and waits so long for a reason to stop; whether it is still held, and the answer.
    pub(crate) async fn renew(&mut self, lease: &Value, wait_ms: u64) -> (bool, Value) {
        let body = json!({ "secret": lease["secret"], "wait_ms": wait_ms });
        let name = lease["name"].as_str().expect("a lease");
        let path = format!("/api/v1/leases/{name}/renew");
        let (status, answer) = self.call("POST", &path, &body).await;
        (status == 200, answer)
    }

    /// Gives it back.
    pub(crate) async fn release(&mut self, lease: &Value) {
        let body = json!({ "secret": lease["secret"] });
        let name = lease["name"].as_str().expect("a lease");
        let path = format!("/api/v1/leases/{name}/release");
        let (status, answer) = self.call("POST", &path, &body).await;
        assert_eq!(status, 200, "{name}: {answer}");
    }

    /// Any call, made again while the node says that its store is away; its status, and its answer (null when it is not JSON).
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        loop {
            let answer = self.once(method, path, body).await;
            if answer.0 != AWAY {
                return answer;
            }
            eprintln!("{path}: {}", answer.1["detail"]);
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn once(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.expect("the node listens");
        self.bytes.clear();
        loop {
            if let Some((status, head, length)) = header(&self.bytes)
                && self.bytes.len() >= head + length
            {
                return (
                    status,
                    serde_json::from_slice(&self.bytes[head..]).unwrap_or(Value::Null),
                );
            }
            let count = self.stream.read_buf(&mut self.bytes).await.expect("an answer");
            assert!(count > 0, "the node hung up: {path}");
        }
    }
}

/// Status, where the body begins, and its length, of an answer whose head is whole.
fn header(bytes: &[u8]) -> Option<(u16, usize, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = text[9..12].parse().expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    Some((status, end, length.map_or(0, |length| length.trim().parse().expect("a length"))))
}
