//! Strangers at the door: bodies that do not come, addresses and names that are claimed, readiness, and guesses.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::json;
use soloist::config::Doors;
use soloist::secrets;
use soloist::store::accounts::Role;
use soloist::store::journal::Journal;
use soloist::web::throttle::Attempt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{On, PASSWORD, Server, problem};
use crate::support::wait::{PATIENCE, until_async};

on_every_store! {
    of_parallel_guesses_only_the_free_ones_are_checked
    an_owner_signs_in_where_they_have_before_whatever_guessers_do
}

/// What a server answers to `text` on a connection of its own, until it closes that.
pub(super) async fn raw(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.expect("the connection is closed").ok();
    String::from_utf8_lossy(&answer).into_owned()
}

fn short(doors: &mut Doors) {
    doors.body_idle = Duration::from_millis(300);
    doors.body_total = Duration::from_millis(1_500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_told_so_and_the_connection_closes() {
    let server = Server::with(|config| short(&mut config.doors)).await;
    let token = server.token("olga", Role::Operator).await;
    let form =
        "content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n\r\nname=";
    let page = raw(server.address, &format!("POST /login HTTP/1.1\r\nhost: a\r\n{form}")).await;
    assert!(page.starts_with("HTTP/1.1 421"), "a foreign name needs no body: {page}");
    let page = format!("POST /login HTTP/1.1\r\nhost: 127.0.0.1\r\n{form}");
    let page = raw(server.address, &page).await.to_lowercase();
    assert!(page.starts_with("http/1.1 408") && page.contains("connection: close"), "{page}");
    assert!(page.contains("content-security-policy") && page.contains("<html"), "{page}");
    for how in ["content-length: 100\r\n\r\n{", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"] {
        let call = format!(
            "POST /api/v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n{how}"
        );
        let answer = raw(server.address, &call).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 408"), "{answer}");
        assert!(answer.contains("application/problem+json") && answer.contains("too slowly"));
    }
}

/// Before any service of ours sees a request, the framework answers by itself when it cannot read it.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_answered_as_everything_else_is() {
    let server = Server::with(|config| {
        config.public_url = "https://jobs.example.org".to_owned();
    })
    .await;
    let long = "b".repeat(200_000);
    let fine = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    for (sent, status, says) in [
        ("GET / HTTP/1.1\r\nno header\r\n\r\n".to_owned(), 400, "no request that can be read"),
        ("\u{16}\u{3}\u{1} a handshake\r\n\r\n".to_owned(), 400, "no request that can be read"),
        ("GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n".to_owned(), 400, "length of its body"),
        (format!("{fine}{fine}GET / HTTP/9\r\n\r\n"), 400, "no request that can be read"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}"), 431, "too large"),
        ("GET / HTTP/1.1\r\nhost: a\r\n".to_owned(), 408, "five seconds"),
    ] {
        let text = raw(server.address, &sent).await;
        let answers: Vec<&str> = text.split_inclusive("HTTP/1.1 ").collect();
        assert_eq!(answers.len() - 1, sent.matches("healthz").count() + 1, "{text}");
        let sent = &sent[..sent.len().min(60)];
        let (head, body) = answers.last().unwrap().split_once("\r\n\r\n").expect(&text);
        assert!(head.starts_with(&status.to_string()), "{sent:?}: {text}");
        for line in [
            "content-type: application/problem+json",
            "x-content-type-options: nosniff",
            "referrer-policy: same-origin",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
            "strict-transport-security: max-age=31536000; includeSubDomains",
            "connection: close",
            &format!("content-length: {}", body.len()),
        ] {
            assert!(head.lines().any(|one| one == line), "{line} of {sent:?}: {text}");
        }
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_has_an_end_and_one_that_nobody_reads_holds_no_connection() {
    let server = Server::with(|config| short(&mut config.doors)).await;
    let token = server.token("olga", Role::Operator).await;
    let trickle = async |authorization: String| {
        let (mut reader, mut writer) =
            TcpStream::connect(server.address).await.unwrap().into_split();
        let head = format!(
            "POST /api/v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\n{authorization}transfer-encoding: chunked\r\n\r\n"
        );
        writer.write_all(head.as_bytes()).await.unwrap();
        let writing = tokio::spawn(async move {
            // Until the server has closed: every pause is shorter than what is allowed.
            let mut often = tokio::time::interval(Duration::from_millis(50));
            while writer.write_all(b"1\r\n \r\n").await.is_ok() {
                often.tick().await;
            }
        });
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, reader.read_to_end(&mut answer)).await;
        read.expect("the connection is closed").ok();
        drop(reader);
        tokio::time::timeout(PATIENCE, writing).await.expect("writing fails").unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let known = trickle(format!("authorization: Bearer {token}\r\n")).await;
    assert!(known.starts_with("HTTP/1.1 408"), "{known}");
    let stranger = trickle(String::new()).await;
    assert!(stranger.starts_with("HTTP/1.1 401"), "{stranger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_has_its_share_of_connections() {
    let server = Server::with(|config| config.doors.connections_per_address = Some(3)).await;
    let ask = async || {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await.ok()?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.ok()?;
        (&answer == b"HTTP/1.1 200").then_some(stream)
    };
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(ask().await.expect("an answer"));
    }
    assert!(ask().await.is_none(), "the fourth is hung up on");
    open.pop();
    until_async("a place is free again", async || ask().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_not_ours_is_refused_except_with_a_token_or_for_health() {
    let server = Server::with(|config| {
        config.public_url = "http://jobs.example.org".to_owned();
        config.doors.allowed_hosts = vec!["soloist".to_owned()];
    })
    .await;
    let token = server.token("vera", Role::Viewer).await;
    let get = |path: &str, host: &str| server.ask("GET", path).header("host", host);
    let foreign = get("/api/v1/jobs", "evil.example").send().await.unwrap();
    let (status, detail) = problem(foreign).await;
    assert_eq!(status, 421);
    assert!(detail.contains("jobs.example.org") && detail.contains("allowed_hosts"), "{detail}");
    let page = get("/login", "evil.example").header("accept-language", "zh").send().await.unwrap();
    assert_eq!(page.status(), 421);
    assert!(page.text().await.unwrap().contains("主机名不对"));
    for (path, host, status) in [
        ("/login", "jobs.example.org", 200),
        ("/login", "soloist:8080", 200),
        ("/login", "10.1.2.3", 200),
        ("/healthz", "evil.example", 200),
        ("/readyz", "evil.example", 200),
        ("/metrics", "127.0.0.1", 200),
        ("/metrics", "evil.example", 421),
    ] {
        assert_eq!(get(path, host).send().await.unwrap().status(), status, "{path} as {host}");
    }
    let program = get("/api/v1/jobs", "node-a.internal").bearer_auth(&token);
    assert_eq!(program.send().await.unwrap().status(), 200, "who has a token was led nowhere");
    let bogus = get("/metrics", "evil.example").bearer_auth("sol_bogus");
    assert_eq!(bogus.send().await.unwrap().status(), 401, "loopback counts for our names only");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_open_on_this_machine_and_not_through_a_proxy_on_it() {
    let server = Server::start().await;
    let ask = |header: Option<(&'static str, &'static str)>| {
        let ask = server.ask("GET", "/metrics");
        header.into_iter().fold(ask, |ask, (name, value)| ask.header(name, value)).send()
    };
    assert_eq!(ask(None).await.unwrap().status(), 200);
    for header in [
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
        ("via", "1.1 caddy"),
        ("x-forwarded-proto", "https"),
    ] {
        assert_eq!(ask(Some(header)).await.unwrap().status(), 401, "{header:?}");
    }
}

fn behind_a_proxy(config: &mut soloist::config::Config) {
    config.doors.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
}

fn sign_in(server: &Server, name: &str, password: &str, from: Option<&str>) -> RequestBuilder {
    let request = server
        .ask("POST", "/login")
        .header("origin", server.web.config().public_url.clone())
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("name={name}&password={}", password.replace(' ', "+")));
    from.into_iter().fold(request, |request, from| request.header("x-forwarded-for", from))
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_names_the_client_that_a_trusted_proxy_names_and_no_other() {
    let proxied = Server::with(behind_a_proxy).await;
    let alone = Server::start().await;
    for (server, expected) in [(&proxied, "203.0.113.7"), (&alone, "127.0.0.1")] {
        assert_eq!(status(sign_in(server, "li", "wrong", Some("1.1.1.1, 203.0.113.7"))).await, 401);
        let entry = &server.store().audits(None, None, 1).await.unwrap()[0];
        assert_eq!(entry.from, expected);
    }
}

async fn of_parallel_guesses_only_the_free_ones_are_checked(on: On) {
    let server = Server::on(on).await;
    let other = server.beside().await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    server.account("li", Role::Operator, phc).await;
    let guesses = (0..300).map(|nth| {
        let node = if nth % 2 == 0 { &server } else { &other };
        sign_in(node, "li", "wrong password", None).send()
    });
    let answers: Vec<Response> = futures_util::future::try_join_all(guesses).await.unwrap();
    let mut checked = 0;
    for answer in &answers {
        match answer.status().as_u16() {
            401 => checked += 1,
            429 => assert!(answer.headers().contains_key("retry-after")),
            other => panic!("{other}"),
        }
    }
    // The sixth waits 2 s, the seventh 4 s after it: a slow machine lets one or two more through.
    assert!((5..=7).contains(&checked), "{checked} of 300 guesses were checked");
}

async fn an_owner_signs_in_where_they_have_before_whatever_guessers_do(on: On) {
    let server = Server::on(on).await;
    let (home, office) = ("198.51.100.1", "198.51.100.2");
    let attempt = |account: &str, from: &str| {
        let (account, from) = (account.to_owned(), from.to_owned());
        let store = server.store();
        async move { Attempt::new(store, &account, &from).admit().await.is_ok() }
    };
    for place in [home, office] {
        assert!(attempt("li", place).await);
        Attempt::new(server.store(), "li", place).succeeded().await.unwrap();
    }
    // From everywhere, on this account.
    let mut free = 0;
    for nth in 0..40 {
        free += u32::from(attempt("li", &format!("203.0.113.{nth}")).await);
    }
    assert!((20..=22).contains(&free), "{free} guesses from new addresses");
    assert!(attempt("li", home).await && attempt("li", office).await);
    // From the office, on every account that there may be.
    let mut free = 0;
    for nth in 0..80 {
        free += u32::from(attempt(&format!("nobody-{nth}"), office).await);
    }
    assert!((50..=53).contains(&free), "{free} guesses from one address");
    assert!(attempt("li", office).await, "somebody else's guesses hold up nobody");
    // A guesser beside li counts for this account and address only.
    let mut free = 0;
    for _ in 0..10 {
        free += u32::from(attempt("li", office).await);
    }
    assert!((3..=4).contains(&free), "two were counted before: {free}");
    assert!(attempt("li", home).await);
    // What nobody looked at counts nothing.
    for _ in 0..20 {
        assert!(attempt("wang", "198.51.100.3").await);
        Attempt::new(server.store(), "wang", "198.51.100.3").withdrawn().await.unwrap();
    }
    // In IPv6 whoever has one address has its /64.
    let mut free = 0;
    for nth in 0..10 {
        free += u32::from(attempt("zhao", &format!("2001:db8::{nth:x}")).await);
    }
    assert_eq!(free, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_in_as_somebody_else_ends_the_session_before() {
    let server = Server::start().await;
    let li = server.user("li", Role::Operator).await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    server.account("wang", Role::Operator, phc).await;
    let (before, _) = server.session(&li).await;
    let signed = sign_in(&server, "wang", PASSWORD, None).header("cookie", &before);
    assert_eq!(status(signed).await, 303);
    let look = server.ask("GET", "/api/v1/jobs").header("cookie", before);
    assert_eq!(status(look).await, 401, "it was li's, in the same browser");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_ask_for_readiness_cost_the_store_little_and_learn_no_address() {
    let mut server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let calls = |server: &Server| {
        let redis = server.redis.server.as_ref().unwrap();
        let stats: String = redis.run(&["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with("cmdstat_info:"));
        let count = line.and_then(|line| line.split_once("calls=")?.1.split(',').next());
        count.map_or(0, |count| count.parse::<u32>().unwrap())
    };
    assert_eq!(server.ask("GET", "/readyz").send().await.unwrap().status(), 200);
    let before = calls(&server);
    let many = (0..200).map(|_| server.ask("GET", "/readyz").send());
    futures_util::future::try_join_all(many).await.unwrap();
    assert!(calls(&server) - before < 60, "{} for 200", calls(&server) - before);
    let port = server.web.config().store.rsplit_once(':').unwrap().1.to_owned();
    let port = port.split('/').next().unwrap().to_owned();
    // Its picture of the reader is from before.
    server.get("/api/v1/jobs", &token).await;
    server.redis.stop();
    let ask = async |change: fn(RequestBuilder, &str) -> RequestBuilder| {
        let answer = change(server.ask("GET", "/readyz"), &token).send().await.unwrap();
        if answer.status() == 503 { Some(problem(answer).await.1) } else { None }
    };
    let stranger = until_async("the node notices", async || {
        ask(|ask, _| ask.header("x-forwarded-for", "203.0.113.7")).await
    })
    .await;
    assert!(!stranger.contains(&port) && !stranger.contains("127.0.0.1"), "{stranger}");
    let here = ask(|ask, _| ask).await.expect("still away");
    assert_ne!(here, stranger);
    let known = ask(|ask, token| ask.header("via", "a proxy").bearer_auth(token)).await;
    assert_eq!(known.expect("still away"), here, "whoever is signed in is told as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn under_tls_every_cookie_has_the_prefix_and_subdomains_are_covered() {
    let server =
        Server::with(|config| config.public_url = "https://soloist.example".to_owned()).await;
    let shown = server.ask("GET", "/login").send().await.unwrap();
    let headers = shown.headers().clone();
    assert!(headers["strict-transport-security"].to_str().unwrap().contains("includeSubDomains"));
    let form = headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(form.starts_with("__Host-soloist-login="), "{form}");
    let secret = form.split_once('=').unwrap().1.to_owned();
    let chosen = server
        .ask("POST", "/preferences")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("language=zh&theme=dark&csrf={secret}"))
        .send()
        .await
        .unwrap();
    let cookies: Vec<String> = chosen
        .headers()
        .get_all("set-cookie")
        .iter()
        .map(|value| value.to_str().unwrap().split(';').next().unwrap().to_owned())
        .collect();
    assert_eq!(cookies, ["__Host-soloist-language=zh", "__Host-soloist-theme=dark"]);
    let page = server.ask("GET", "/login").header("cookie", cookies.join("; "));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("lang=\"zh") && page.contains("dark"), "{page}");
    let plain = server.ask("GET", "/login").header("cookie", "soloist-language=zh");
    let plain = plain.send().await.unwrap().text().await.unwrap();
    assert!(plain.contains("lang=\"en"), "one that another host may have set is not read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_before_an_act_leads_back_to_our_pages_only() {
    let server = Server::start().await;
    let token = server.token("olga", Role::Operator).await;
    let path = "/api/v1/jobs/outbound/participation";
    let on = server.ask("PUT", path).bearer_auth(&token).json(&json!({"on": true}));
    assert_eq!(status(on).await, 200);
    for back in ["https://evil.example/", "//evil.example", "javascript:alert(1)"] {
        let off = server
            .ask("POST", "/jobs/outbound/participation")
            .bearer_auth(&token)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("on=false&back={back}"));
        let asked = off.send().await.unwrap();
        assert_eq!(asked.status(), 200, "it asks back");
        let page = asked.text().await.unwrap();
        assert!(page.contains("class=\"button\" href=\"/\""), "{page}");
        assert!(!page.contains(&format!("href=\"{back}")), "{page}");
    }
}
