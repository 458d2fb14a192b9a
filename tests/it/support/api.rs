//! A program that talks to a node as any client does: HTTP with a token, and the live socket.

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::wait::PATIENCE;

/// One caller at one node.
#[derive(Clone)]
pub(crate) struct Api {
    url: String,
    token: String,
    client: reqwest::Client,
}

impl Api {
    /// Calls `url` with `token`.
    #[must_use]
    pub(crate) fn new(url: &str, token: &str) -> Self {
        let client = crate::support::http::client().timeout(PATIENCE).build().expect("a client");
        Self { url: url.to_owned(), token: token.to_owned(), client }
    }

    /// The same caller, with the same token, at another node.
    #[must_use]
    pub(crate) fn at(&self, url: &str) -> Self {
        Self { url: url.to_owned(), ..self.clone() }
    }

    /// The secret of the token.
    #[must_use]
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// One call; an empty answer is `null`.
    ///
    /// # Panics
    /// When the node does not answer, or not in JSON.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request =
            self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("the node answers");
        let status = answer.status();
        let text = answer.text().await.expect("a whole answer");
        let value =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect(&text) };
        (status, value)
    }

    /// `GET`, and it must succeed.
    ///
    /// # Panics
    /// When it does not.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, value) = self.call(Method::GET, path, None).await;
        assert!(status.is_success(), "GET {path}: {status} {value}");
        value
    }

    /// Switches the caller's participation; the answer is the Job.
    ///
    /// # Panics
    /// When it is refused.
    pub(crate) async fn switch(&self, job: &str, on: bool) -> Value {
        let path = format!("/api/v1/jobs/{job}/participation");
        let (status, value) = self.call(Method::PUT, &path, Some(json!({ "on": on }))).await;
        assert_eq!(status, StatusCode::OK, "{value}");
        assert_eq!(value["name"], job, "the answer is the Job: {value}");
        value
    }

    /// As [`Self::switch`], at a node whose store may be away; whether it was answered with the Job.
    pub(crate) async fn try_switch(&self, job: &str, on: bool) -> bool {
        let path = format!("/api/v1/jobs/{job}/participation");
        let (status, _) = self.call(Method::PUT, &path, Some(json!({ "on": on }))).await;
        status.is_success()
    }

    /// The ended and present runs, newest first.
    pub(crate) async fn runs(&self, job: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/v1/jobs/{job}/runs")).await;
        answer["runs"].as_array().expect("runs").clone()
    }

    /// Opens the live socket and reads `hello` and the first `snapshot`.
    ///
    /// # Panics
    /// When they do not come.
    pub(crate) async fn live(&self) -> Live {
        let url = format!("{}/live", self.url.replacen("http", "ws", 1));
        let mut request = url.into_client_request().expect("an address");
        let headers = request.headers_mut();
        headers.insert("authorization", format!("Bearer {}", self.token).parse().expect("text"));
        headers.insert("sec-websocket-protocol", "soloist.v1".parse().expect("text"));
        let (socket, _) = connect_async(request).await.expect("the socket opens");
        let mut live = Live { socket, jobs: Vec::new(), seen: Vec::new() };
        let hello = live.frame().await;
        assert_eq!(hello["type"], "hello", "{hello}");
        let snapshot = live.frame().await;
        assert_eq!(snapshot["type"], "snapshot", "{snapshot}");
        live
    }
}

/// An open live socket and the picture that its frames paint.
pub(crate) struct Live {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    jobs: Vec<Value>,
    /// Every state of every job that was shown, in order: `(job, state)`.
    pub seen: Vec<(String, String)>,
}

impl Live {
    /// The next frame, painted.
    ///
    /// # Panics
    /// When none comes in time, or the node closes the socket.
    pub(crate) async fn frame(&mut self) -> Value {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next());
            let message = next.await.expect("a frame in time").expect("the socket is open");
            match message.expect("a frame") {
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(text.as_str()).expect("JSON");
                    self.paint(&frame);
                    return frame;
                }
                Message::Close(reason) => panic!("the node closed the socket: {reason:?}"),
                _ => {}
            }
        }
    }

    fn paint(&mut self, frame: &Value) {
        match frame["type"].as_str() {
            Some("snapshot") => {
                self.jobs = frame["jobs"].as_array().expect("jobs").clone();
                let states: Vec<_> = self.jobs.iter().map(state_of).collect();
                self.seen.extend(states);
            }
            Some("job") => {
                let job = &frame["job"];
                let old = self.jobs.iter_mut().find(|old| old["name"] == job["name"]);
                let old = old.expect("a job of the snapshot");
                assert!(
                    job["version"].as_u64() >= old["version"].as_u64(),
                    "a version went back: {old} then {job}"
                );
                *old = job.clone();
                self.seen.push(state_of(job));
            }
            _ => {}
        }
    }

    /// The newest picture of a job.
    ///
    /// # Panics
    /// When there is no such job.
    #[must_use]
    pub(crate) fn job(&self, name: &str) -> &Value {
        self.jobs.iter().find(|job| job["name"] == name).expect("a known job")
    }

    /// Reads frames until the picture of `job` is as wanted, and gives it.
    ///
    /// # Panics
    /// When that does not happen in time; shows the last picture.
    pub(crate) async fn until(
        &mut self,
        job: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let reading = async {
            while !wanted(self.job(job)) {
                self.frame().await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, reading).await;
        assert!(in_time.is_ok(), "waited in vain until {what}: {:#}", self.job(job));
        self.job(job).clone()
    }

    /// As [`Self::until`], for a state.
    pub(crate) async fn until_state(&mut self, job: &str, state: &str) -> Value {
        self.until(job, state, |job| job["state"] == state).await
    }
}

fn state_of(job: &Value) -> (String, String) {
    let text = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
    (text("name"), text("state"))
}
