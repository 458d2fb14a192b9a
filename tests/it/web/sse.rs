//! `/api/v1/live`: what a socket is told, as Server-Sent Events, to whom, and how little a bad reader can do.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use soloist::clock;
use soloist::domain::name::UserName;
use soloist::store::accounts::{Accounts as _, Changes, Role};
use soloist::store::credentials::Credentials as _;

use super::live::{connect, connections, hear_type, print, refusal, run, until};
use super::{On, Server, job, problem};
use crate::support::machine::{judged, within};

judged! {
    a_node_that_goes_ends_its_streams_and_says_when_to_come_back
    a_stream_that_nobody_reads_costs_little_and_then_tells_the_newest
}

/// A stream and what was read of it.
pub(super) struct Events {
    response: Response,
    read: String,
}

/// One block of a stream.
#[derive(Debug, Default)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) retry: Option<u64>,
    pub(super) comment: Option<String>,
    /// JSON.
    pub(super) data: Value,
}

impl Events {
    pub(super) async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, read: String::new() }
    }

    pub(super) async fn open(server: &Server, query: &str, token: &str) -> Self {
        Self::of(server.ask("GET", &format!("/api/v1/live{query}")).bearer_auth(token)).await
    }

    /// The next block; `None` when the stream ended as it should.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let end = loop {
            if let Some(end) = self.read.find("\n\n") {
                break end;
            }
            let chunk = tokio::time::timeout(Duration::from_secs(30), self.response.chunk());
            let chunk = chunk.await.expect("something in time").expect("a whole stream");
            let Some(chunk) = chunk else {
                assert_eq!(self.read, "", "it ends after a whole event");
                return None;
            };
            self.read.push_str(std::str::from_utf8(&chunk).expect("chunks end with characters"));
        };
        let block: String = self.read.drain(..end + 2).collect();
        let mut event = Event::default();
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?}"));
            match field {
                "" => event.comment = Some(value.to_owned()),
                "id" => event.id = Some(value.to_owned()),
                "retry" => event.retry = Some(value.parse().unwrap()),
                "data" => {
                    assert!(event.data.is_null(), "one line of data: {block}");
                    event.data = serde_json::from_str(value).unwrap();
                }
                _ => panic!("{line:?}"),
            }
        }
        Some(event)
    }

    /// The next frame of that type; others are passed over.
    pub(super) async fn hear_type(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no {kind}"));
            if event.data["type"] == kind {
                return event.data;
            }
        }
    }

    /// Everything up to the end.
    async fn rest(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_what_a_socket_tells() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let ask = server.ask("GET", "/api/v1/live").bearer_auth(&token);
    let mut events = Events::of(ask.header("last-event-id", "before:99")).await;
    let headers = events.response.headers().clone();
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    assert!(headers.contains_key("content-security-policy"));
    let hello = events.next().await.unwrap();
    assert!((1_000..=5_000).contains(&hello.retry.unwrap()), "{hello:?}");
    assert_eq!((&hello.data["type"], &hello.data["node"]), (&json!("hello"), &json!("node-a")));
    let snapshot = events.next().await.unwrap();
    assert_eq!(snapshot.data["type"], "snapshot");
    let epoch = snapshot.data["epoch"].as_str().unwrap();
    let ids = [hello.id.unwrap(), snapshot.id.unwrap()];
    assert_eq!(ids, [format!("{epoch}:1"), format!("{epoch}:2")]);

    let mut socket = connect(&server, &token).await;
    let said = hear_type(&mut socket, "snapshot").await;
    assert_eq!(said["epoch"], snapshot.data["epoch"]);
    let names = |snapshot: &Value| {
        let jobs = snapshot["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&said), names(&snapshot.data));
    for on in [true, false] {
        let path = "/api/v1/jobs/outbound/participation";
        let put = server.ask("PUT", path).bearer_auth(&token).json(&json!({"on": on}));
        let version = put.send().await.unwrap().json::<Value>().await.unwrap()["version"].clone();
        let reached = |frame: &Value| frame["job"]["version"].as_u64() >= version.as_u64();
        while !reached(&events.hear_type("job").await) {}
        while !reached(&hear_type(&mut socket, "job").await) {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_output_comes_in_order_of_every_job_that_is_named() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let going = run(&server, &UserName::new("li").unwrap()).await;
    print(&server, &going, vec!["one\nstill one".to_owned(), "two".to_owned()]).await;
    for query in ["?follow=outbound", "?follow=inbound&follow=outbound", "?follow=inbound,outbound"]
    {
        let mut events = Events::open(&server, query, &token).await;
        let log = events.hear_type("log").await;
        assert_eq!(log["job"], "outbound");
        assert_eq!(log["lines"][0]["text"], "one\nstill one", "{query}: on one line of data");
    }
    let mut events = Events::open(&server, "?follow=outbound", &token).await;
    events.hear_type("log").await;
    print(&server, &going, vec!["three".to_owned()]).await;
    let log = events.hear_type("log").await;
    assert_eq!(log["lines"][0]["text"], "three");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_of_a_job_that_is_not_theirs_to_see() {
    let server = Server::with(|config| {
        let mut hidden = job("vault-secret");
        hidden.viewers = vec!["li".to_owned()];
        config.jobs.push(hidden);
        config.jobs.extend((0..20).map(|nth| job(&format!("job-{nth}"))));
    })
    .await;
    let (li, vera) =
        (server.token("li", Role::Viewer).await, server.token("vera", Role::Viewer).await);
    let ask =
        async |query: &str, token: &str| server.get(&format!("/api/v1/live?{query}"), token).await;
    let (status, hidden) = problem(ask("follow=vault-secret", &vera).await).await;
    let (_, unknown) = problem(ask("follow=never-was", &vera).await).await;
    assert_eq!((status, hidden.replace("vault-secret", "never-was")), (404, unknown));
    let mut theirs = Events::open(&server, "?follow=vault-secret", &li).await;
    assert!(theirs.hear_type("snapshot").await.to_string().contains("vault-secret"));
    let mut others = Events::open(&server, "", &vera).await;
    // The hidden job changes first: whoever hears of the second was told what there was of the first.
    let admin = server.token("ann", Role::Admin).await;
    for name in ["vault-secret", "outbound"] {
        let path = format!("/api/v1/jobs/{name}/participation");
        let put = server.ask("PUT", &path).bearer_auth(&admin).json(&json!({"on": true}));
        assert_eq!(put.send().await.unwrap().status(), 200);
    }
    loop {
        let event = others.next().await.unwrap();
        assert!(!event.data.to_string().contains("vault-secret"), "{event:?}");
        if event.data["job"]["name"] == "outbound" && event.data["job"]["wanted"] == true {
            break;
        }
    }
    let many: Vec<String> = (0..17).map(|nth| format!("job-{nth}")).collect();
    assert_eq!(ask(&format!("follow={}", many.join(",")), &vera).await.status(), 429);
    for wrong in ["follw=outbound", "after=1"] {
        let (status, detail) = problem(ask(wrong, &vera).await).await;
        assert!(status == 400 && detail.contains("follow=JOB"), "{detail}");
    }
    drop((theirs, others));
    until(30, "refused streams hold no place", || connections(&server) == "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_sockets_share_one_cap_and_a_place_is_given_back() {
    let server = Server::with(|config| {
        config.live.sockets_per_user = 2;
        config.live.sockets_per_node = 3;
    })
    .await;
    let (li, wang) =
        (server.token("li", Role::Viewer).await, server.token("wang", Role::Viewer).await);
    let _socket = connect(&server, &li).await;
    let stream = Events::open(&server, "", &li).await;
    let refused = server.get("/api/v1/live", &li).await;
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(problem(refused).await.0, 429);
    let bearer = format!("Bearer {li}");
    assert_eq!(refusal(&server, &[("authorization", &bearer)]).await.0, 429);
    let head = server.ask("HEAD", "/api/v1/live").bearer_auth(&li).send().await.unwrap();
    assert_eq!((head.status().as_u16(), connections(&server).as_str()), (200, "2"));
    let _third = Events::open(&server, "", &wang).await;
    assert_eq!(server.get("/api/v1/live", &wang).await.status(), 503);
    drop(stream);
    until(30, "a place is free", || connections(&server) == "2").await;
    Events::open(&server, "", &wang).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_logins_of_our_own_pages_and_tokens_get_a_stream() {
    let server = Server::start().await;
    let user = server.user("li", Role::Viewer).await;
    let (cookie, _) = server.session(&user).await;
    let ask = |headers: &[(&str, &str)]| {
        let request = server.ask("GET", "/api/v1/live").header("cookie", &cookie);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    let own = server.url("");
    for good in [&[][..], &[("origin", own.as_str())], &[("sec-fetch-site", "same-origin")]] {
        Events::of(ask(good)).await.hear_type("snapshot").await;
    }
    for foreign in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        assert_eq!(problem(ask(&[foreign]).send().await.unwrap()).await.0, 403, "{foreign:?}");
    }
    assert_eq!(server.ask("GET", "/api/v1/live").send().await.unwrap().status(), 401);
    let carl = server.token("carl", Role::Collector).await;
    assert_eq!(server.get("/api/v1/live", &carl).await.status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_at_once_with_its_account_session_or_token() {
    for on in [On::Redis, On::Sqlite] {
        let server = Server::on(on).await;
        // What ends it happens elsewhere: at another node, or on the command line.
        let elsewhere = server.beside().await;
        let store = elsewhere.store();
        let (li, wang) =
            (server.user("li", Role::Operator).await, server.user("wang", Role::Operator).await);
        let token = server.token("program", Role::Operator).await;
        let mut streams = Vec::new();
        for user in [&li, &wang] {
            let (cookie, _) = server.session(user).await;
            streams
                .push(Events::of(server.ask("GET", "/api/v1/live").header("cookie", cookie)).await);
        }
        streams.push(Events::open(&server, "", &token).await);
        for stream in &mut streams {
            stream.hear_type("snapshot").await;
        }
        let changes = Changes { role: Some(Role::Viewer), ..Changes::default() };
        store.change_user(&li, &changes).await.unwrap();
        store.close_sessions(&wang, None).await.unwrap();
        let token = store.tokens().await.unwrap().pop().unwrap();
        store.revoke_token(&token.id).await.unwrap();
        for stream in &mut streams {
            let last = stream.rest().await.pop().expect("it says why");
            let why = last.comment.clone().unwrap_or_default();
            assert!(why.starts_with("signed out") || why.starts_with("the account"), "{last:?}");
        }
        until(30, "no place is taken", || connections(&server) == "0").await;
    }
}

async fn a_node_that_goes_ends_its_streams_and_says_when_to_come_back() {
    let mut server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    let mut streams = Vec::new();
    for _ in 0..70 {
        streams.push(Events::open(&server, "", &token).await);
    }
    let drain = server.drain.take().unwrap();
    let begun = clock::boot();
    let drained = tokio::spawn(drain.run());
    let mut waits = std::collections::BTreeSet::new();
    for stream in &mut streams {
        let last = stream.rest().await.pop().unwrap();
        assert!(last.comment.as_deref().unwrap_or_default().contains("shutting down"), "{last:?}");
        waits.insert(last.retry.expect("when to come back"));
    }
    assert!(waits.len() > 20, "they do not come back at once: {waits:?}");
    drop(streams);
    drained.await.unwrap();
    within(clock::boot().since(begun), Duration::from_secs(7), "the node is gone");
}

/// It reads nothing while 40 MB are said, and then everything that is left for it.
async fn a_stream_that_nobody_reads_costs_little_and_then_tells_the_newest() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let going = run(&server, &UserName::new("li").unwrap()).await;
    let mut lazy = std::net::TcpStream::connect(server.address).unwrap();
    let path = "/api/v1/live?follow=outbound";
    write!(lazy, "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
        .unwrap();
    let mut healthy = Events::open(&server, "?follow=outbound", &token).await;
    for round in 0..500 {
        let mark = format!("round {round}");
        let mut texts = vec!["x".repeat(4_000); 20];
        texts.push(mark.clone());
        print(&server, &going, texts).await;
        if round % 50 == 49 {
            while !healthy.hear_type("log").await.to_string().contains(&mark) {}
        }
    }
    let reading = tokio::task::spawn_blocking(move || {
        lazy.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut all, mut some) = (Vec::new(), [0; 65_536]);
        loop {
            let got = lazy.read(&mut some).expect("the newest comes");
            assert!(got > 0, "the stream goes on");
            let from = all.len().saturating_sub(9);
            all.extend_from_slice(&some[..got]);
            if all[from..].windows(9).any(|text| text == b"round 499") {
                break;
            }
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    let text = reading.await.unwrap();
    assert!(text.len() < 4_000_000, "{} of 40,000,000 bytes were kept for it", text.len());
    assert!(text.contains("\"skipped\":"), "it is told that it missed something");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_says_every_15_s_that_it_is_there() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    let mut events = Events::open(&server, "", &token).await;
    let begun = clock::boot();
    loop {
        let event = events.next().await.unwrap();
        if event.comment.is_some() {
            assert!(event.data.is_null() && event.id.is_none(), "{event:?}");
            break;
        }
    }
    let took = clock::boot().since(begun);
    assert!(took >= Duration::from_secs(14), "{took:?}");
}
