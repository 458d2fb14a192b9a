//! A node's HTTP API as a program on another machine calls it: `--server`. `http` makes the clients, also those of other rooms.
//!
//! It knows addresses, the token and what an answer means; it knows no command and no record. Redirects are not followed: a
//! token goes to the addresses that were named, and nowhere else. It stands in no argument and in no error.
//!
//! Several addresses are nodes of one cluster. The one that answered last is asked first. The next one is asked when a request
//! was certainly not sent, or when sending it twice does no harm ([`Call::repeatable`]). When a caller stops waiting
//! for an answer, its next call goes to the next address.
//!
//! A process that has the handlers of a node in itself asks them instead ([`Client::here`]): the same calls, without a network
//! and without a token.

mod access;
mod error;
mod here;
pub mod http;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{Certificate, Method, Response, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use access::{Access, CA, SERVER, TOKEN};
pub use error::RemoteError;
pub use here::{Answered, Answering};

/// How long one address may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long a connection is kept for the next call.
const IDLE_MAX: Duration = Duration::from_secs(3);
/// How long one address may take to answer, unless the call says otherwise.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// No address is given less time than this to answer.
const SHORTEST_ANSWER: Duration = Duration::from_millis(100);
/// The largest answer that is read, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;
/// The largest `detail` that is shown, in characters.
const LONGEST_DETAIL: usize = 2_000;

/// A client of the nodes behind one [`Access`], or of handlers in this process; cheap to clone.
#[derive(Debug, Clone)]
pub struct Client(Way);

#[derive(Debug, Clone)]
enum Way {
    Nodes(Arc<Inner>),
    Here(Answering),
}

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    access: Access,
    /// The address that is asked first.
    first: AtomicUsize,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Call {
    method: Method,
    path: String,
    body: Option<Vec<u8>>,
    accept: &'static str,
    answer_max: Duration,
    repeatable: bool,
}

impl Call {
    fn new(method: Method, path: impl Into<String>) -> Self {
        let repeatable = method == Method::GET || method == Method::PUT;
        let (body, accept, answer_max) = (None, "application/json", ANSWER_MAX);
        Self { method, path: path.into(), body, accept, answer_max, repeatable }
    }

    /// Asks for what is at `path`, which begins with `/`.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Has something made or done.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// Replaces something: doing it twice is as doing it once.
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path)
    }

    /// Changes a part of something.
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path)
    }

    /// Removes something.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// With `body` as JSON.
    #[must_use]
    pub fn with(mut self, body: &impl Serialize) -> Self {
        #[expect(clippy::expect_used, reason = "bodies are made of names, texts and numbers")]
        let text = serde_json::to_vec(body).expect("a body that JSON can hold");
        self.body = Some(text);
        self
    }

    /// Sending it twice does no harm.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// One address may take so long to answer.
    #[must_use]
    pub fn within(mut self, answer_max: Duration) -> Self {
        self.answer_max = answer_max;
        self
    }

    /// One address may take so long that the next ones are asked within `all` as well.
    #[must_use]
    pub fn shared_within(self, all: Duration, client: &Client) -> Self {
        let addresses = u32::try_from(client.addresses()).unwrap_or(1).max(1);
        self.within((all * 9 / 10 / addresses).max(SHORTEST_ANSWER))
    }

    /// Asks for another form of the answer.
    #[must_use]
    pub fn accepting(mut self, kind: &'static str) -> Self {
        self.accept = kind;
        self
    }

    /// Its method, its path with the query, and the form of the answer that it asks for.
    #[must_use]
    pub fn head(&self) -> (&str, &str, &'static str) {
        (self.method.as_str(), &self.path, self.accept)
    }

    /// Its body, JSON, if it has one.
    #[must_use]
    pub fn into_body(self) -> Option<Vec<u8>> {
        self.body
    }
}

/// `text` as one part of a path or as the value of a parameter: all but unreserved characters (RFC 3986) escaped.
#[must_use]
pub fn part(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// `path` with a query of those parameters that have a value.
#[must_use]
pub fn address(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let given: Vec<String> = given.map(|(name, value)| format!("{name}={}", part(value))).collect();
    if given.is_empty() { path.to_owned() } else { format!("{path}?{}", given.join("&")) }
}

/// What is read of `application/problem+json`.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

impl Client {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// [`RemoteError::Setup`]: the file of certificates, or the token.
    pub fn new(access: Access) -> Result<Self, RemoteError> {
        let setup = RemoteError::Setup;
        let plain = access.servers().iter().all(|server| server.starts_with("http:"));
        // A node closes a connection that was idle for five seconds.
        let mut client = http::client().connect_timeout(CONNECT_MAX).pool_idle_timeout(IDLE_MAX);
        if plain {
            // Nodes are next door: a proxy for the rest of the world would be given the token.
            client = client.no_proxy().tls_certs_only([]);
        }
        if let Some(file) = access.ca() {
            let shown = file.display();
            let bad = |why: String| setup(format!("${CA} ({shown}): {why}"));
            let pem =
                std::fs::read(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
            let roots = Certificate::from_pem_bundle(&pem)
                .map_err(|error| bad(format!("is no PEM file of certificates: {error}")))?;
            if roots.is_empty() {
                return Err(bad("has no certificate in it".to_owned()));
            }
            client = client.tls_certs_merge(roots);
        }
        let http = client.build().map_err(|error| setup(error::said(&error)))?;
        let inner = Inner { http, access, first: AtomicUsize::new(0) };
        Ok(Self(Way::Nodes(Arc::new(inner))))
    }

    /// A client of handlers in this process.
    #[must_use]
    pub fn here(answering: Answering) -> Self {
        Self(Way::Here(answering))
    }

    /// How many addresses it may have to ask.
    fn addresses(&self) -> usize {
        match &self.0 {
            Way::Nodes(inner) => inner.access.servers().len(),
            Way::Here(_) => 1,
        }
    }

    /// Makes one call and reads its answer.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, RemoteError> {
        let (server, body) = self.read(&call).await?;
        serde_json::from_slice(&body).map_err(|error| RemoteError::Strange {
            server,
            why: format!("its answer to {} {} is not understood: {error}", call.method, call.path),
        })
    }

    /// Makes one call whose answer does not matter.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn tell(&self, call: Call) -> Result<(), RemoteError> {
        self.read(&call).await.map(drop)
    }

    /// Makes one call; the answer is read by the caller, piece by piece.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn stream(&self, call: Call) -> Result<Stream, RemoteError> {
        let (server, answer) = match &self.0 {
            Way::Nodes(inner) => inner.send(&call).await?,
            Way::Here(answering) => here::send(answering, call).await?,
        };
        Ok(Stream { server, answer })
    }

    async fn read(&self, call: &Call) -> Result<(String, Vec<u8>), RemoteError> {
        let inner = match &self.0 {
            Way::Nodes(inner) => inner,
            Way::Here(answering) => {
                let (here, answer) = here::send(answering, call.clone()).await?;
                let body = all_of(answer).await.map_err(RemoteError::Unreachable)?;
                return Ok((here, body));
            }
        };
        let count = self.addresses();
        let mut tried = 0;
        loop {
            tried += 1;
            let (server, answer) = inner.send(call).await?;
            let attempt = Attempt::at(inner);
            match all_of(answer).await {
                Ok(body) => {
                    attempt.answered();
                    return Ok((server, body));
                }
                // The answer broke off.
                Err(_) if call.repeatable && tried < count => {}
                Err(why) => return Err(RemoteError::Unreachable(format!("{server}: {why}"))),
            }
        }
    }
}

impl Inner {
    /// An answer whose status is a success.
    async fn send(&self, call: &Call) -> Result<(String, Answer), RemoteError> {
        let servers = self.access.servers();
        let mut failures: Vec<String> = Vec::new();
        let mut refused = None;
        for _ in 0..servers.len() {
            let attempt = Attempt::at(self);
            let server = attempt.server().to_owned();
            match self.request(&server, call).send().await {
                Ok(response) if response.status().is_success() => {
                    attempt.answered();
                    return Ok((server, Answer::Node(response)));
                }
                Ok(response) => {
                    let status = response.status().as_u16();
                    let error = refusal(&server, response, self.access.token_from()).await;
                    // It has no store, or is shutting down; another one may do better.
                    if status == 503 {
                        refused = Some(error);
                        continue;
                    }
                    attempt.answered();
                    return Err(error);
                }
                Err(error) => {
                    let is_unsent = error.is_connect();
                    let why = match error.is_timeout() && !is_unsent {
                        true => format!("no answer within {:?}", call.answer_max),
                        // The address stands before it already.
                        false => error::said(&error.without_url()),
                    };
                    if let Some(why) = error::certificate(&why) {
                        // Nothing was sent; another address may have a better one.
                        refused = Some(RemoteError::Strange { server, why });
                        continue;
                    }
                    failures.push(format!("{server}: {why}"));
                    // Without a connection nothing was sent.
                    if !(call.repeatable || is_unsent) {
                        break;
                    }
                }
            }
        }
        Err(refused.unwrap_or_else(|| RemoteError::Unreachable(failures.join("; "))))
    }

    fn request(&self, server: &str, call: &Call) -> reqwest::RequestBuilder {
        let url = format!("{server}{}", call.path);
        let request = self.http.request(call.method.clone(), url).timeout(call.answer_max);
        let request = request.header(header::ACCEPT, call.accept);
        let request = request.header(header::AUTHORIZATION, self.access.bearer());
        match &call.body {
            Some(body) => {
                request.header(header::CONTENT_TYPE, "application/json").body(body.clone())
            }
            None => request,
        }
    }
}

/// A call to one address. Dropped unanswered, it leaves the next call to the next address.
struct Attempt<'a> {
    inner: &'a Inner,
    nth: usize,
    answered: bool,
}

impl<'a> Attempt<'a> {
    fn at(inner: &'a Inner) -> Self {
        Self { inner, nth: inner.first.load(Ordering::Acquire), answered: false }
    }

    fn server(&self) -> &'a str {
        let servers = self.inner.access.servers();
        &servers[self.nth % servers.len()]
    }

    fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.answered {
            // Unless another call has moved on from it already.
            let next = self.nth.wrapping_add(1);
            let (set, read) = (Ordering::AcqRel, Ordering::Acquire);
            self.inner.first.compare_exchange(self.nth, next, set, read).ok();
        }
    }
}

/// An answer, before it is read.
#[derive(Debug)]
enum Answer {
    Node(Response),
    Here(Answered),
}

impl Answer {
    /// The next piece of its body; `None` at the end.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Node(response) => {
                let piece = response.chunk().await.map_err(|error| error::said(&error))?;
                Ok(piece.map(|piece| piece.to_vec()))
            }
            Self::Here(answered) => answered.body.recv().await.transpose(),
        }
    }
}

async fn all_of(mut answer: Answer) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = answer.piece().await? {
        if body.len() + piece.len() > LARGEST {
            return Err(format!("the answer is larger than {LARGEST} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

async fn refusal(server: &str, response: Response, token_from: &str) -> RemoteError {
    let status = response.status();
    let server = server.to_owned();
    if status.is_redirection() {
        let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
        let to = to.map(|to| format!(" to {}", plain(to))).unwrap_or_default();
        let why = format!("it redirects{to}, which is not followed: name the node itself");
        return RemoteError::Strange { server, why };
    }
    let Some(detail) = detail_of(Answer::Node(response)).await else {
        let why = format!("it answers {status} and no problem+json: is it a node of Soloist?");
        return RemoteError::Strange { server, why };
    };
    if status.as_u16() == 401 {
        return RemoteError::Token(format!(
            "{server} does not accept the token from {token_from}: it is wrong, has ended or was revoked; an admin makes another with soloist token new"
        ));
    }
    RemoteError::Refused { status: status.as_u16(), detail }
}

/// What an answer that is no success says.
async fn detail_of(answer: Answer) -> Option<String> {
    let body = all_of(answer).await.ok()?;
    serde_json::from_slice(&body).ok().map(|problem: Problem| plain(&problem.detail))
}

/// What others wrote, for a terminal.
fn plain(text: &str) -> String {
    let kept = text.chars().take(LONGEST_DETAIL);
    kept.map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// An answer that is read as it comes.
#[derive(Debug)]
pub struct Stream {
    server: String,
    answer: Answer,
}

impl Stream {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// [`RemoteError::Unreachable`].
    pub async fn piece(&mut self) -> Result<Option<Vec<u8>>, RemoteError> {
        let piece = self.answer.piece().await;
        piece.map_err(|why| RemoteError::Unreachable(format!("{}: {why}", self.server)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_part_of_an_address_cannot_leave_its_place() {
        assert_eq!(part("node-a_1.~"), "node-a_1.~");
        assert_eq!(part("../a?b#c d&e=ö"), "..%2Fa%3Fb%23c%20d%26e%3D%C3%B6");
        let none = ("before", None);
        assert_eq!(address("/x", std::slice::from_ref(&none)), "/x");
        let to = address("/x", &[("a", Some("1 2".to_owned())), none, ("c", Some("3".to_owned()))]);
        assert_eq!(to, "/x?a=1%202&c=3");
    }
}
