//! Live sockets: what is said, to whom, and how little a bad client can do.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use soloist::clock;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::time::Began;
use soloist::store::accounts::{Accounts as _, Changes, Role};
use soloist::store::credentials::Credentials;
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Journal, NewLine, Output, Started, Stream};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::Server;
use crate::support::machine::{in_time, judged, within};

judged! {
    a_node_that_goes_says_1012_and_takes_nobody_any_more
    clients_that_never_read_cost_little_slow_nobody_and_are_gone_within_20_s
}

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(crate) async fn try_connect(
    server: &Server,
    headers: &[(&'static str, &str)],
) -> Result<Socket, Error> {
    try_connect_to(server, "/live", headers).await
}

async fn try_connect_to(
    server: &Server,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<Socket, Error> {
    let url = format!("ws://{}{path}", server.address);
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    connect_async(request).await.map(|(socket, _)| socket)
}

pub(crate) async fn connect(server: &Server, token: &str) -> Socket {
    let bearer = format!("Bearer {token}");
    try_connect(server, &[("authorization", &bearer)]).await.unwrap()
}

pub(super) async fn refusal(
    server: &Server,
    headers: &[(&'static str, &str)],
) -> (u16, Option<String>) {
    match try_connect(server, headers).await {
        Err(Error::Http(response)) => {
            let retry = response.headers().get("retry-after");
            (response.status().as_u16(), retry.map(|value| value.to_str().unwrap().to_owned()))
        }
        other => panic!("expected a refusal, got {:?}", other.map(|_| ())),
    }
}

/// The next frame of the server; pings are answered on the way.
pub(crate) async fn hear(socket: &mut Socket) -> Message {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), socket.next()).await;
        match next.expect("a frame in time").expect("an open socket").expect("a good frame") {
            Message::Ping(_) | Message::Pong(_) => {}
            other => return other,
        }
    }
}

/// Opens the socket of a page for somebody new; returns their cookie and CSRF token, too.
pub(super) async fn of_a_page(server: &Server, user: &str, role: Role) -> (Socket, String, String) {
    let user = server.user(user, role).await;
    let (cookie, csrf) = server.session(&user).await;
    (socket_of_a_page(server, "/live", &cookie).await, cookie, csrf)
}

/// Opens the socket that a page names, for whoever has that cookie.
pub(super) async fn socket_of_a_page(server: &Server, path: &str, cookie: &str) -> Socket {
    let origin = server.url("");
    let headers = [
        ("cookie", cookie),
        ("origin", origin.as_str()),
        ("sec-websocket-protocol", "soloist.html.v1"),
    ];
    try_connect_to(server, path, &headers).await.unwrap()
}

/// Holds that no frame of that type was sent up to now.
pub(super) async fn heard_nothing(socket: &mut Socket, kind: &str) {
    say(socket, json!({"type": "unfollow", "id": 7, "job": "outbound"})).await;
    loop {
        let Message::Text(text) = hear(socket).await else { panic!("no text") };
        let frame: Value = serde_json::from_str(&text).unwrap();
        assert_ne!(frame["type"], kind);
        if frame["type"] == "reply" {
            return;
        }
    }
}

/// The next frame of that type; others are passed over.
pub(crate) async fn hear_type(socket: &mut Socket, kind: &str) -> Value {
    loop {
        match hear(socket).await {
            Message::Text(text) => {
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["type"] == kind {
                    return value;
                }
            }
            other => panic!("expected {kind}, got {other:?}"),
        }
    }
}

async fn hear_close(socket: &mut Socket) -> (u16, String) {
    loop {
        if let Message::Close(frame) = hear(socket).await {
            let frame = frame.expect("a close code");
            return (u16::from(frame.code), frame.reason.to_string());
        }
    }
}

pub(crate) async fn say(socket: &mut Socket, value: Value) {
    socket.send(Message::text(value.to_string())).await.unwrap();
}

/// Polls until `condition` holds; the longest wait is `seconds`.
pub(super) async fn until(seconds: u64, what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..seconds * 50 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} did not happen within {seconds} s");
}

pub(super) fn connections(server: &Server) -> String {
    let text = server.web.metrics.render(|_, _| false);
    let line = text.lines().find(|line| line.starts_with("soloist_live_connections ")).unwrap();
    line.rsplit(' ').next().unwrap().to_owned()
}

pub(super) fn outbound() -> JobName {
    JobName::new("outbound").unwrap()
}

/// Under which token a run goes on, its id, and where.
pub(super) type Going = (Token, RunId, NodeName);

/// Begins a run in the store, as a node would.
pub(super) async fn run(server: &Server, user: &UserName) -> Going {
    begin(server, &outbound(), user).await
}

/// The same with another job.
pub(super) async fn begin(server: &Server, job: &JobName, user: &UserName) -> Going {
    let store = server.store();
    store.participate(job, user, true, None).await.unwrap();
    let node = NodeName::new("node-a").unwrap();
    let ask = Acquire {
        job: job.clone(),
        owner: Owner("owner".to_owned()),
        node: node.clone(),
        ttl: Duration::from_secs(60),
        condition: Condition::Wanted,
        seen: Token(0),
    };
    // A fresh store may be in quarantine.
    let token = loop {
        match store.acquire(&ask).await.unwrap() {
            Acquired::Granted { token, .. } => break token,
            Acquired::Quarantined { wait } => tokio::time::sleep(wait).await,
            other => panic!("{other:?}"),
        }
    };
    let run = RunId("01JTEST".to_owned());
    let began = Began::at_boot(clock::boot());
    let started =
        Started { job: job.clone(), token, run: run.clone(), node: node.clone(), pid: 1, began };
    store.record_started(&started).await.unwrap();
    (token, run, node)
}

pub(super) async fn print(
    server: &Server,
    (token, run, node): &(Token, RunId, NodeName),
    texts: Vec<String>,
) {
    let lines = texts.into_iter().map(|text| NewLine { stream: Stream::Stdout, text }).collect();
    let output = Output {
        job: outbound(),
        token: *token,
        run: run.clone(),
        node: node.clone(),
        lines,
        progress: None,
        heard: false,
    };
    server.store().record_output(&output).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hello_then_a_snapshot_then_every_change() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let mut socket = connect(&server, &token).await;
    let Message::Text(first) = hear(&mut socket).await else { panic!("no text") };
    let hello: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&hello["type"], &hello["node"]), (&json!("hello"), &json!("node-a")));
    assert!(hello["server"].as_str().unwrap().starts_with("soloist "));
    let Message::Text(second) = hear(&mut socket).await else { panic!("no text") };
    let snapshot: Value = serde_json::from_str(&second).unwrap();
    assert_eq!(snapshot["type"], "snapshot");
    assert!(snapshot["epoch"].is_string());
    assert_eq!(snapshot["jobs"].as_array().unwrap().len(), 2);
    let asked: Value = server.get("/api/v1/jobs/outbound", &token).await.json().await.unwrap();
    assert_eq!(snapshot["jobs"][0]["state"], asked["state"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&snapshot["jobs"][0]), keys(&asked), "both doors show the same Job");

    let mut version = 0;
    for on in [true, false, true] {
        say(&mut socket, json!({"type": "participation", "id": 7, "job": "outbound", "on": on}))
            .await;
        let (mut replied, mut told) = (false, false);
        while !(replied && told) {
            let Message::Text(text) = hear(&mut socket).await else { panic!("no text") };
            let frame: Value = serde_json::from_str(&text).unwrap();
            match frame["type"].as_str().unwrap() {
                "reply" => {
                    assert_eq!((&frame["id"], &frame["ok"]), (&json!(7), &json!(true)));
                    replied = true;
                }
                "job" => {
                    let now = frame["job"]["version"].as_u64().unwrap();
                    assert!(now >= version, "versions only grow");
                    version = now;
                    told |= frame["job"]["wanted"] == on;
                }
                _ => {}
            }
        }
    }
    let audits = server.store().audits(Some("outbound"), None, 10).await.unwrap();
    assert_eq!(audits.len(), 3);
    assert_eq!(audits[0].from, "127.0.0.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_gets_fragments_with_its_own_secret() {
    let server = Server::start().await;
    let (mut socket, _, csrf) = of_a_page(&server, "li", Role::Operator).await;
    let user = UserName::new("li").unwrap();
    let hello = hear_type(&mut socket, "hello").await;
    assert!(hello["at"].is_string());
    let snapshot = hear_type(&mut socket, "snapshot").await;
    let row = &snapshot["rows"][0];
    assert_eq!((&row["job"], &row["version"]), (&json!("outbound"), &json!(0)));
    let html = row["html"].as_str().unwrap();
    assert!(
        html.contains(&csrf) && html.matches("<form").count() == 1,
        "rows share a form, but for reasons: {html}"
    );
    assert!(snapshot["summary"].is_string());
    server.store().participate(&outbound(), &user, true, None).await.unwrap();
    let row = hear_type(&mut socket, "row").await;
    assert_eq!(row["job"], "outbound");
    assert!(row["now"].is_string() && row["html"].is_null() && row["head"].is_null());
    assert!(hear_type(&mut socket, "summary").await["html"].is_string());
    say(&mut socket, json!({"type": "follow", "job": "outbound"})).await;
    assert!(hear_type(&mut socket, "row").await["head"].as_str().unwrap().contains(&csrf));
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_hear_the_output_in_order() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let going = run(&server, &UserName::new("li").unwrap()).await;
    print(&server, &going, vec!["one".to_owned(), "two".to_owned()]).await;
    let mut socket = connect(&server, &token).await;
    say(&mut socket, json!({"type": "follow", "id": 1, "job": "outbound"})).await;
    let mut heard: Vec<String> = Vec::new();
    let mut printed = false;
    while heard.len() < 103 {
        let frame = hear_type(&mut socket, "log").await;
        assert_eq!(frame["job"], "outbound");
        let texts = frame["lines"].as_array().unwrap().iter();
        heard.extend(texts.map(|line| line["text"].as_str().unwrap().to_owned()));
        if !printed {
            printed = true;
            print(&server, &going, vec!["three".to_owned()]).await;
            print(&server, &going, (4..104).map(|n| format!("line {n}")).collect()).await;
        }
    }
    assert_eq!(heard[..3], ["one", "two", "three"]);
    assert_eq!(heard[102], "line 103");
    say(&mut socket, json!({"type": "unfollow", "id": 2, "job": "outbound"})).await;
    while hear_type(&mut socket, "reply").await["id"] != 2 {}
    print(&server, &going, vec!["unheard".to_owned()]).await;
    let followed = hear_type(&mut socket, "job").await;
    assert_eq!(followed["job"]["name"], "outbound");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_acts_are_answered_and_the_socket_lives_on() {
    let server = Server::start().await;
    let token = server.token("wang", Role::Operator).await;
    let mut socket = connect(&server, &token).await;
    for (said, error) in [
        (json!({"type": "participation", "id": 1, "job": "inbound", "on": true}), "forbidden"),
        (json!({"type": "participation", "id": 1, "job": "nowhere", "on": true}), "not_found"),
        (json!({"type": "participation", "id": 1, "job": "outbound"}), "bad_request"),
        (json!({"type": "participation", "id": 1, "job": "outbound", "on": "on"}), "bad_request"),
        (json!({"type": "follow", "id": 1}), "bad_request"),
        (json!({"type": "follow", "id": 1, "job": "nowhere"}), "not_found"),
    ] {
        say(&mut socket, said.clone()).await;
        let reply = hear_type(&mut socket, "reply").await;
        assert_eq!((&reply["id"], &reply["ok"]), (&json!(1), &json!(false)), "{said}");
        assert_eq!(reply["error"], error, "{said}: {reply}");
        assert!(reply["detail"].is_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_one_who_may_not_stands_in_the_audit_as_any_refusal() {
    let server = Server::start().await;
    let ann = server.token("ann", Role::Admin).await;
    let refusals = async || {
        let audit = server.get("/api/v1/audit?act=refused.right", &ann).await;
        audit.json::<Value>().await.unwrap()["entries"].as_array().unwrap().clone()
    };
    for (name, role, job) in
        [("wang", Role::Operator, "inbound"), ("vera", Role::Viewer, "outbound")]
    {
        let mut socket = connect(&server, &server.token(name, role).await).await;
        let said = json!({"type": "participation", "id": 1, "job": job, "on": true});
        say(&mut socket, said).await;
        let reply = hear_type(&mut socket, "reply").await;
        assert_eq!(reply["error"], "forbidden", "{reply}");
        let newest = refusals().await[0].clone();
        let target = format!("/live participation {job}");
        assert_eq!((&newest["who"], &newest["target"]), (&json!(name), &json!(target)));
        assert_eq!((&newest["from"], &newest["reason"]), (&json!("127.0.0.1"), &reply["detail"]));
        // What is not there, or is malformed, is nobody's attempt at more than they may.
        say(&mut socket, json!({"type": "participation", "id": 2, "job": "nowhere", "on": true}))
            .await;
        assert_eq!(hear_type(&mut socket, "reply").await["error"], "not_found");
    }
    assert_eq!(refusals().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_frames_end_in_a_close_code_with_a_reason() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    let other = connect(&server, &token).await;
    for (message, code) in [
        (Message::text("not json"), 1007),
        (Message::text("[1]"), 1007),
        (Message::text(r#"{"type":"dance"}"#), 1003),
        (Message::text("{}"), 1003),
        (Message::binary(vec![1, 2, 3]), 1003),
        (Message::text("x".repeat(4_097)), 1009),
        (Message::text("x".repeat(3_000_000)), 1009),
    ] {
        let mut socket = connect(&server, &token).await;
        hear_type(&mut socket, "snapshot").await;
        socket.send(message.clone()).await.ok();
        let (got, reason) = hear_close(&mut socket).await;
        assert_eq!(got, code, "{:.40}: {reason}", format!("{message:?}"));
        assert!(!reason.is_empty());
    }
    let mut socket = connect(&server, &token).await;
    for _ in 0..60 {
        socket.send(Message::text(r#"{"type":"unfollow","job":"outbound"}"#)).await.ok();
    }
    assert_eq!(hear_close(&mut socket).await.0, 1008);
    until(30, "only the good socket is left", || connections(&server) == "1").await;
    drop(other);
    until(30, "nobody is left", || connections(&server) == "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_our_own_pages_and_tokens_connect() {
    let server = Server::start().await;
    let token = format!("Bearer {}", server.token("li", Role::Viewer).await);
    let collector = format!("Bearer {}", server.token("carl", Role::Collector).await);
    let user = UserName::new("li").unwrap();
    let (cookie, _) = server.session(&user).await;
    let own = server.url("");
    let alias = format!("http://localhost:{}", server.address.port());
    for good in [own.as_str(), alias.as_str()] {
        try_connect(&server, &[("cookie", &cookie), ("origin", good)]).await.unwrap();
        try_connect(&server, &[("authorization", &token), ("origin", good)]).await.unwrap();
    }
    for foreign in ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"] {
        for (name, value) in [("cookie", &cookie), ("authorization", &token)] {
            assert_eq!(refusal(&server, &[(name, value), ("origin", foreign)]).await.0, 403);
        }
    }
    assert_eq!(refusal(&server, &[("cookie", &cookie)]).await.0, 403, "browsers send an origin");
    assert_eq!(refusal(&server, &[("authorization", &collector)]).await.0, 403);
    assert_eq!(refusal(&server, &[("origin", &own)]).await.0, 401);
    let plain = server.ask("GET", "/live").header("authorization", &token).send().await.unwrap();
    assert_eq!(plain.status(), 400);
    until(30, "refused connections are not counted", || connections(&server) == "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn caps_refuse_and_free_places_are_given_again() {
    let server = Server::with(|config| {
        config.live.sockets_per_user = 2;
        config.live.sockets_per_node = 3;
    })
    .await;
    let li = server.token("li", Role::Viewer).await;
    let wang = server.token("wang", Role::Viewer).await;
    let bearer = |token: &str| format!("Bearer {token}");
    let first = connect(&server, &li).await;
    let _second = connect(&server, &li).await;
    let (status, retry) = refusal(&server, &[("authorization", &bearer(&li))]).await;
    assert_eq!((status, retry.is_some()), (429, true));
    let _third = connect(&server, &wang).await;
    let (status, retry) = refusal(&server, &[("authorization", &bearer(&wang))]).await;
    assert_eq!((status, retry.is_some()), (503, true));
    drop(first);
    until(30, "a place is free", || connections(&server) == "2").await;
    connect(&server, &wang).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_closes_the_sockets_of_that_session() {
    let server = Server::start().await;
    let user = server.user("li", Role::Operator).await;
    let (cookie, csrf) = server.session(&user).await;
    let origin = server.url("");
    let mut socket =
        try_connect(&server, &[("cookie", &cookie), ("origin", &origin)]).await.unwrap();
    hear_type(&mut socket, "snapshot").await;
    let out = server.ask("POST", "/logout").header("cookie", &cookie).header("x-csrf-token", &csrf);
    assert_eq!(out.send().await.unwrap().status(), 303);
    assert_eq!(hear_close(&mut socket).await.0, 1008);
    // Elsewhere signed out: at the next act at the latest.
    let (cookie, _) = server.session(&user).await;
    let mut socket =
        try_connect(&server, &[("cookie", &cookie), ("origin", &origin)]).await.unwrap();
    server.store().close_sessions(&user, None).await.unwrap();
    say(&mut socket, json!({"type": "participation", "id": 1, "job": "outbound", "on": true}))
        .await;
    assert_eq!(hear_close(&mut socket).await.0, 1008);
}

async fn a_node_that_goes_says_1012_and_takes_nobody_any_more() {
    let mut server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    let mut sockets = Vec::new();
    for _ in 0..70 {
        sockets.push(connect(&server, &token).await);
    }
    let drain = server.drain.take().unwrap();
    let begun = clock::boot();
    let drained = tokio::spawn(drain.run());
    for socket in &mut sockets {
        assert_eq!(hear_close(socket).await.0, 1012);
    }
    drop(sockets);
    drained.await.unwrap();
    within(clock::boot().since(begun), Duration::from_secs(7), "the node has gone");
    assert!(server.ask("GET", "/healthz").send().await.is_err(), "the port is closed");
}

/// A client that shakes hands and then reads nothing more.
fn jammed_client(server: &Server, token: &str) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::RcvBuf, &4_096).unwrap();
    let request = format!(
        "GET /live HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer {token}\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    let follow = br#"{"type":"follow","job":"outbound"}"#;
    let mut frame = vec![0x81, 0x80 | u8::try_from(follow.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(follow);
    stream.write_all(&frame).unwrap();
    stream
}

/// How many connections the kernel has open on the server's side.
fn established(server: &Server) -> usize {
    let local = format!("0100007F:{:04X}", server.address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[1] == local && row[3] == "01").count()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn clients_that_never_read_cost_little_slow_nobody_and_are_gone_within_20_s() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let going = run(&server, &UserName::new("li").unwrap()).await;
    print(&server, &going, vec!["first".to_owned()]).await;
    let mut healthy = connect(&server, &token).await;
    say(&mut healthy, json!({"type": "follow", "job": "outbound"})).await;
    hear_type(&mut healthy, "log").await;
    let jammed: Vec<_> = (0..20).map(|_| jammed_client(&server, &token)).collect();
    assert_eq!(connections(&server), "21");
    let begun = clock::boot();
    let before = resident_kib();
    let mut worst = Duration::ZERO;
    // About 240 MiB in all, had it been queued for everybody.
    for round in 0..150 {
        let sent = clock::boot();
        let mark = format!("round {round}");
        let mut texts = vec!["x".repeat(4_000); 20];
        texts.push(mark.clone());
        print(&server, &going, texts).await;
        loop {
            let frame = hear_type(&mut healthy, "log").await;
            let lines = frame["lines"].as_array().unwrap();
            if lines.iter().any(|line| line["text"] == mark.as_str()) {
                break;
            }
        }
        worst = worst.max(clock::boot().since(sent));
    }
    let grown = resident_kib().saturating_sub(before);
    // Other tests of this process hash passwords meanwhile, 19 MiB each; on a busy machine many of them at once.
    in_time(grown < 120 * 1_024, || format!("{grown} KiB more than before"));
    within(worst, Duration::from_secs(2), "a healthy client hears");
    // The healthy one has to answer pings meanwhile.
    let reading = tokio::spawn(async move { while let Some(Ok(_)) = healthy.next().await {} });
    until(60, "the jammed clients are gone", || connections(&server) == "1").await;
    // Gone from the kernel too, not only from our books; nobody has read a byte.
    until(60, "their connections are closed", || established(&server) <= 1).await;
    let took = clock::boot().since(begun);
    within(took, Duration::from_secs(20), "whoever never reads is gone");
    drop(jammed);
    reading.abort();
}

/// What ends a session or a token, and which of the two.
enum End {
    Role,
    Password,
    Removed,
    SignedOut,
    Revoked,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_ends_at_once_with_its_account_session_or_token() {
    for end in [End::Role, End::Password, End::Removed, End::SignedOut, End::Revoked] {
        for on in [super::On::Redis, super::On::Sqlite] {
            let server = Server::on(on).await;
            // What ends it happens elsewhere: at another node, or on the command line.
            let elsewhere = server.beside().await;
            let (mut page, cookie, _) = of_a_page(&server, "li", Role::Operator).await;
            let (mut other, _, _) = of_a_page(&server, "wang", Role::Operator).await;
            let token = server.token("program", Role::Operator).await;
            let mut program = connect(&server, &token).await;
            for socket in [&mut page, &mut other, &mut program] {
                hear_type(socket, "snapshot").await;
            }
            let (store, li) = (elsewhere.store(), UserName::new("li").unwrap());
            let begun = clock::boot();
            let (socket, reason) = match end {
                End::Role => {
                    let role = Some(Role::Viewer);
                    let changes = Changes { role, ..Changes::default() };
                    store.change_user(&li, &changes).await.unwrap();
                    (&mut page, "signed out")
                }
                End::Password => {
                    let password = Some("another".to_owned());
                    let changes = Changes { password, ..Changes::default() };
                    store.change_user(&li, &changes).await.unwrap();
                    (&mut page, "signed out")
                }
                End::Removed => {
                    store.remove_user(&li).await.unwrap();
                    (&mut page, "signed out")
                }
                End::SignedOut => {
                    let secret = cookie.split_once('=').unwrap().1;
                    let hash = soloist::secrets::sha256_hex(secret);
                    store.close_sessions(&li, Some(&hash)).await.unwrap();
                    (&mut page, "signed out")
                }
                End::Revoked => {
                    let token = store.tokens().await.unwrap().pop().unwrap();
                    store.revoke_token(&token.id).await.unwrap();
                    (&mut program, "signed out")
                }
            };
            let (code, said) = hear_close(socket).await;
            // `hear` waits for ten seconds; without the event it would be half a minute.
            assert_eq!(code, 1008, "{said} {:?}", clock::boot().since(begun));
            assert!(said.starts_with(reason), "{said}");
            heard_nothing(&mut other, "store").await;
        }
    }
}
