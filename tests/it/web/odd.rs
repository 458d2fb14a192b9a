//! Requests that are odd and legal, and some that are not: each gets the answer that it should, and opens nothing.

use soloist::store::accounts::Role;
use soloist::web::routes::{Access, ROUTES};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::strangers::raw;
use super::{Server, job};
use crate::support::wait::PATIENCE;

const HOST: &str = "host: 127.0.0.1\r\nconnection: close\r\n";

/// Status, head in small letters, and body of an answer.
async fn answer(server: &Server, request: &str) -> (u16, String, String) {
    let text = raw(server.address, request).await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.unwrap_or_else(|| panic!("{request:?}: {text:?}"));
    (status, head.to_lowercase(), body.to_owned())
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A path of the table with a name in each of its places.
fn filled(pattern: &str) -> String {
    let mut parts = pattern.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| format!("{path}x1{}", part.split_once('}').unwrap().1))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_too_many_at_the_end_leads_to_the_address_without_it_and_to_nothing_else() {
    let server = Server::start().await;
    let mut led = 0;
    // A tail takes every slash there is; it is no address too many.
    for route in ROUTES.iter().filter(|route| route.path != "/" && !route.path.contains(':')) {
        let path = filled(route.path);
        for slashes in ["/", "//"] {
            let ask = format!("{} {path}{slashes}?a=b%2F HTTP/1.1\r\n{HOST}\r\n", route.method);
            let (status, head, body) = answer(&server, &ask).await;
            assert_eq!(status, 308, "{ask}: {head}");
            let to = format!("{path}?a=b%2f");
            assert_eq!(header(&head, "location"), Some(to.to_lowercase().as_str()), "{head}");
            assert!(body.is_empty() && header(&head, "set-cookie").is_none(), "{head} {body}");
            led += 1;
        }
    }
    assert!(led > 100, "{led} addresses");
    for other in ["/nothing/", "//", "//evil.example/", "/jobs//", "/jobs/a/b/", "/%2fevil/", "/."]
    {
        let (status, head, _) =
            answer(&server, &format!("GET {other} HTTP/1.1\r\n{HOST}\r\n")).await;
        assert!(
            status == 303 && header(&head, "location").unwrap().starts_with("/login"),
            "{head}"
        );
    }
    let (status, ..) = answer(&server, &format!("POST /healthz/ HTTP/1.1\r\n{HOST}\r\n")).await;
    assert_eq!(status, 401, "the table has no such line");
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{HOST}\r\n");
    assert_eq!(answer(&server, &get("/jobs/outbound")).await.0, 303, "and there is the login");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_refused_at_every_address_and_none_is_taken_for_bad_json() {
    let server = Server::start().await;
    let token = server.token("ada", Role::Admin).await;
    let bearer = format!("authorization: Bearer {token}\r\n");
    let coded = |how: &str, ask: &str| {
        format!("{ask} HTTP/1.1\r\n{HOST}{bearer}{how}content-length: 3\r\n\r\n\u{1f}\u{8b}")
    };
    let changes = ROUTES.iter().filter(|route| {
        !matches!(route.method.as_str(), "GET" | "HEAD") && route.access != Access::Open
    });
    for route in changes {
        let ask = coded(
            "content-encoding: gzip\r\n",
            &format!("{} {}", route.method, filled(route.path)),
        );
        let (status, head, body) = answer(&server, &ask).await;
        assert_eq!(status, 415, "{ask:?}: {body}");
        assert_eq!(header(&head, "accept-encoding"), Some("identity"), "{head}");
        assert!(body.contains("gzip") && body.contains("Content-Encoding"), "{body}");
    }
    let put = "PUT /api/v1/jobs/outbound/participation";
    for how in [
        "content-encoding: GZIP\r\n",
        "content-encoding: br\r\n",
        "content-encoding: identity, deflate\r\n",
        "content-encoding: identity\r\ncontent-encoding: zstd\r\n",
    ] {
        assert_eq!(answer(&server, &coded(how, put)).await.0, 415, "{how}");
    }
    for (how, body) in [
        ("content-encoding: identity\r\n", "{\"on\":true}"),
        ("content-encoding: \r\n", "{\"on\":true}"),
        ("", "\u{feff}{\"on\":false}"),
        ("content-type: text/plain\r\n", "{\"on\":true}"),
    ] {
        let length = body.len();
        let ask =
            format!("{put} HTTP/1.1\r\n{HOST}{bearer}{how}content-length: {length}\r\n\r\n{body}");
        let (status, _, said) = answer(&server, &ask).await;
        assert_eq!(status, 200, "{ask:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_http_allows_is_understood() {
    let server = Server::start().await;
    let token = server.token("ada", Role::Admin).await;
    let all = format!("{HOST}authorization: Bearer {token}\r\n");
    let job = job("outbound").name;
    let put = format!("PUT /api/v1/jobs/{job}/participation HTTP/1.1\r\n{all}");
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{all}\r\n");
    for (ask, status) in [
        (get("http://127.0.0.1/healthz"), 200),
        (get("http://evil.example/healthz"), 200),
        (format!("GET http://evil.example/login HTTP/1.1\r\n{HOST}\r\n"), 421),
        (get("/api/v1/jobs/%6Futbound"), 200),
        (get("/api/v1/jobs/outbound?"), 200),
        (get("/api/v1/jobs/outbound%2Fruns"), 404),
        (get("/api/v1/jobs/OUTBOUND"), 404),
        (get("/api/v1/jobs/%zz"), 404),
        (
            format!("{put}transfer-encoding: chunked\r\n\r\nb;a=b\r\n{{\"on\":true}}\r\n0\r\n\r\n"),
            200,
        ),
        (
            format!(
                "{put}transfer-encoding: Chunked\r\ntrailer: x\r\n\r\nB\r\n{{\"on\":true}}\r\n0\r\nx: y\r\n\r\n"
            ),
            200,
        ),
        (format!("{put}expect: 100-continue\r\ncontent-length: 11\r\n\r\n{{\"on\":true}}"), 100),
        // Two lengths, or a length beside chunks, are how requests are smuggled.
        (format!("{put}content-length: 11\r\ncontent-length: 5\r\n\r\n{{\"on\":true}}"), 400),
        (format!("{put}content-length: 11\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("get /healthz HTTP/1.1\r\n{all}\r\n"), 405),
        (format!("GET /api/v1/jobs HTTP/1.1\r\n{HOST}authorization: bearer  {token}\r\n\r\n"), 200),
        (
            "GET /login HTTP/1.1\r\nhost: [fe80::1%eth0]:8080\r\nconnection: close\r\n\r\n"
                .to_owned(),
            200,
        ),
        ("GET /login HTTP/1.1\r\nhost: evil%eth0\r\nconnection: close\r\n\r\n".to_owned(), 421),
        ("GET /login HTTP/1.0\r\n\r\n".to_owned(), 200),
    ] {
        let (found, head, body) = answer(&server, &ask).await;
        assert_eq!(found, status, "{ask:?}: {head}\n{body}");
        assert!(status != 100 || body.starts_with("HTTP/1.1 200 OK"), "{head}\n{body}");
    }
    for (accept, kind) in [
        ("accept: TEXT/CSV\r\n", "text/csv"),
        ("accept: text/html\r\naccept: application/x-ndjson\r\n", "application/x-ndjson"),
        ("accept: */*\r\n", "application/json"),
    ] {
        let ask = format!("GET /api/v1/audit HTTP/1.1\r\n{all}{accept}\r\n");
        let (_, head, _) = answer(&server, &ask).await;
        assert!(header(&head, "content-type").unwrap().starts_with(kind), "{accept}: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_begins_by_the_one_version_that_there_is_and_by_no_half_handshake() {
    let server = Server::start().await;
    let token = server.token("ada", Role::Admin).await;
    let ask = |version: &str, http: &str, upgrade: &str, key: &str, more: &str| {
        format!(
            "GET /live HTTP/{http}\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\nconnection: Upgrade\r\nupgrade: {upgrade}\r\nsec-websocket-version: {version}\r\nsec-websocket-key: {key}\r\n{more}\r\n"
        )
    };
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    for version in ["8", "7", "12", "13, 8", "", "14"] {
        let (status, head, body) =
            opened(&server, &ask(version, "1.1", "websocket", key, "")).await;
        assert_eq!(status, 426, "{version:?}: {head}");
        assert_eq!(header(&head, "sec-websocket-version"), Some("13"), "{head}");
        assert!(body.contains("version 13"), "{body}");
    }
    for (http, upgrade, key, says) in [
        ("1.0", "websocket", key, "proxy_http_version 1.1"),
        ("1.1", "other, websocket", key, "Upgrade"),
        ("1.1", "websocket", "abc", "Sec-WebSocket-Key"),
        ("1.1", "websocket", "", "Sec-WebSocket-Key"),
        ("1.1", "websocket", "dGhlIHNhbXBsZSBub25jZSBub25jZQ==", "Sec-WebSocket-Key"),
    ] {
        let (status, _, body) = opened(&server, &ask("13", http, upgrade, key, "")).await;
        assert!(status == 400 && body.contains(says), "{http} {upgrade} {key}: {status} {body}");
    }
    let lines =
        "sec-websocket-protocol: chat, bearer.x\r\nsec-websocket-protocol: soloist.html.v1\r\n";
    for (more, protocol) in [
        ("", None),
        ("sec-websocket-protocol: chat\r\n", None),
        ("sec-websocket-protocol: soloist.v1\r\n", Some("soloist.v1")),
        (
            "sec-websocket-protocol: chat\r\nsec-websocket-protocol: soloist.v1\r\n",
            Some("soloist.v1"),
        ),
        (lines, Some("soloist.html.v1")),
    ] {
        let (status, head, _) = opened(&server, &ask("13", "1.1", "WebSocket", key, more)).await;
        assert_eq!(status, 101, "{more}: {head}");
        assert_eq!(header(&head, "sec-websocket-protocol"), protocol, "{more}: {head}");
    }
}

/// The answer on a connection that may go on after it.
async fn opened(server: &Server, ask: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(ask.as_bytes()).await.unwrap();
    let reading = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a whole head"));
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("a whole body");
        (head, String::from_utf8_lossy(&body).into_owned())
    };
    let (head, body) = tokio::time::timeout(PATIENCE, reading).await.expect("an answer in time");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head, body)
}
