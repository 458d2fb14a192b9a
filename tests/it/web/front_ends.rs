//! Front ends on other origins: none by default, those of `allowed_origins` with a token and never with a cookie.

use reqwest::Response;
use serde_json::{Value, json};
use soloist::store::accounts::Role;
use tokio_tungstenite::tungstenite::Error;

use super::live::{Socket, hear_type, refusal, say};
use super::{Server, problem};

const FRONT_END: &str = "https://wall.example.org";
const ALLOW_ORIGIN: &str = "access-control-allow-origin";

async fn server() -> Server {
    Server::with(|config| config.doors.allowed_origins = vec![FRONT_END.to_owned()]).await
}

fn cors_of(response: &Response) -> Vec<String> {
    let names = response.headers().keys().map(|name| name.as_str().to_owned());
    names.filter(|name| name.starts_with("access-control-")).collect()
}

fn preflight(server: &Server, path: &str, origin: &str) -> reqwest::RequestBuilder {
    let ask = server.ask("OPTIONS", path).header("origin", origin);
    ask.header("access-control-request-method", "PUT")
        .header("access-control-request-headers", "authorization,content-type")
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_no_other_origin_gets_anything() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let asked = preflight(&server, "/api/v1/jobs", FRONT_END).send().await.unwrap();
    assert_eq!((asked.status().as_u16(), cors_of(&asked)), (401, vec![]));
    let ask = server.ask("GET", "/api/v1/jobs").bearer_auth(&token).header("origin", FRONT_END);
    let answer = ask.send().await.unwrap();
    assert_eq!((answer.status().as_u16(), cors_of(&answer)), (200, vec![]));
    // It may be compressed, and is the same for every origin.
    assert_eq!(answer.headers()["vary"], "accept-encoding");
    let offered = format!("soloist.v1, bearer.{token}");
    let headers = [("origin", FRONT_END), ("sec-websocket-protocol", offered.as_str())];
    assert_eq!(refusal(&server, &headers).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_told_what_a_page_of_an_allowed_origin_may_send() {
    let server = server().await;
    for path in ["/api/v1/jobs/outbound/participation", "/api/v1/live", "/api/v1/nowhere"] {
        let asked = preflight(&server, path, FRONT_END).send().await.unwrap();
        assert_eq!(asked.status(), 204, "{path}");
        let header = |name: &str| asked.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header(ALLOW_ORIGIN), FRONT_END);
        assert!(header("access-control-allow-methods").contains("PUT"));
        let allowed = header("access-control-allow-headers");
        assert!(allowed.contains("authorization") && allowed.contains("content-type"), "{allowed}");
        assert_eq!(header("vary"), "Origin");
        assert!(asked.headers().contains_key("x-content-type-options"));
        assert!(!asked.headers().contains_key("access-control-allow-credentials"));
    }
    // Neither another origin, nor pages, nor a request that asks for nothing.
    for (path, origin) in [
        ("/api/v1/jobs", "https://evil.example"),
        ("/api/v1/jobs", "https://wall.example.org.evil.example"),
        ("/api/v1/jobs", "http://wall.example.org"),
        ("/api/v1/jobs", "https://wall.example.org:444"),
        ("/api/v1/jobs", "null"),
        ("/jobs/outbound/participation", FRONT_END),
        ("/login", FRONT_END),
        ("/metrics", FRONT_END),
    ] {
        let asked = preflight(&server, path, origin).send().await.unwrap();
        assert!(asked.status() != 204 && cors_of(&asked).is_empty(), "{path} {origin}: {asked:?}");
    }
    let bare = server.ask("OPTIONS", "/api/v1/jobs").header("origin", FRONT_END);
    assert_eq!(bare.send().await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_an_allowed_origin_uses_the_api_with_a_token() {
    let server = server().await;
    let token = server.token("li", Role::Operator).await;
    let path = "/api/v1/jobs/outbound/participation";
    let from = |origin: &str| {
        let put = server.ask("PUT", path).bearer_auth(&token).header("origin", origin);
        put.header("sec-fetch-site", "cross-site").json(&json!({"on": true}))
    };
    let done = from(FRONT_END).send().await.unwrap();
    assert_eq!(
        (done.status().as_u16(), &done.headers()[ALLOW_ORIGIN]),
        (200, &FRONT_END.parse().unwrap())
    );
    let exposed = done.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("retry-after"), "{exposed}");
    assert_eq!(done.headers()["vary"], "Origin");
    assert!(!done.headers().contains_key("access-control-allow-credentials"));
    // Of a refusal it reads the reason.
    for (path, token, status) in [
        ("/api/v1/nowhere", token.as_str(), 404),
        ("/api/v1/jobs", "sol_wrong", 401),
        ("/api/v1/users", &token, 403),
    ] {
        let ask = server.ask("GET", path).bearer_auth(token).header("origin", FRONT_END);
        let refused = ask.send().await.unwrap();
        assert_eq!(refused.headers()[ALLOW_ORIGIN], FRONT_END, "{path}");
        assert_eq!(problem(refused).await.0, status, "{path}");
    }
    let stream = server.ask("GET", "/api/v1/live").bearer_auth(&token).header("origin", FRONT_END);
    assert_eq!(stream.send().await.unwrap().headers()[ALLOW_ORIGIN], FRONT_END);
    let other = from("https://evil.example").send().await.unwrap();
    assert_eq!((other.status().as_u16(), cors_of(&other)), (200, vec![]), "as ever with a token");
    // Pages and machines' other addresses know nothing of it.
    for path in ["/", "/login", "/metrics", "/healthz"] {
        let ask = server.ask("GET", path).bearer_auth(&token).header("origin", FRONT_END);
        assert!(cors_of(&ask.send().await.unwrap()).is_empty(), "{path}");
    }
    // What it may not do stands in the audit as that, not as a forged page.
    let audit = server.token("ann", Role::Admin).await;
    let entries: Value = server.get("/api/v1/audit", &audit).await.json().await.unwrap();
    let acts: Vec<_> = entries["entries"].as_array().unwrap().iter().map(|e| &e["act"]).collect();
    assert!(acts.contains(&&json!("refused.right")), "{entries}");
    assert!(!acts.contains(&&json!("refused.forgery")), "{entries}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_from_an_allowed_origin_is_no_login() {
    let server = server().await;
    let user = server.user("li", Role::Operator).await;
    let (cookie, csrf) = server.session(&user).await;
    let ask = |method: &str, path: &str| {
        let ask = server.ask(method, path).header("cookie", &cookie).header("origin", FRONT_END);
        ask.header("x-csrf-token", &csrf)
    };
    let put = ask("PUT", "/api/v1/jobs/outbound/participation").json(&json!({"on": true}));
    assert_eq!(problem(put.send().await.unwrap()).await.0, 401);
    for path in ["/api/v1/jobs", "/api/v1/me", "/api/v1/live"] {
        assert_eq!(problem(ask("GET", path).send().await.unwrap()).await.0, 401, "{path}");
    }
    // Forms are as closed as ever.
    let form = ask("POST", "/jobs/outbound/participation")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("on=true&csrf={csrf}"));
    assert_eq!(form.send().await.unwrap().status(), 403);
    let job: Value = server
        .ask("GET", "/api/v1/jobs/outbound")
        .header("cookie", &cookie)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(job["wanted"], false, "and the session is good at home");
    let headers = [("cookie", cookie.as_str()), ("origin", FRONT_END)];
    assert_eq!(refusal(&server, &headers).await.0, 403);
}

/// Connects as a browser does; also what was chosen of the subprotocols.
async fn offer(
    server: &Server,
    origin: &str,
    offered: &str,
) -> Result<(Socket, Option<String>), Error> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
    let mut request = format!("ws://{}/live", server.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", origin.parse().unwrap());
    request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
    let (socket, response) = tokio_tungstenite::connect_async(request).await?;
    let chosen = response.headers().get("sec-websocket-protocol");
    Ok((socket, chosen.map(|value| value.to_str().unwrap().to_owned())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_an_allowed_origin_connects_with_a_token_among_its_subprotocols() {
    let server = server().await;
    let token = server.token("li", Role::Operator).await;
    for offered in [
        format!("soloist.v1, bearer.{token}"),
        format!("bearer.{token},soloist.v1"),
        // The fragments of our own page are not for others.
        format!("soloist.html.v1, soloist.v1, bearer.{token}"),
    ] {
        let (mut socket, chosen) = offer(&server, FRONT_END, &offered).await.unwrap();
        assert_eq!(chosen.as_deref(), Some("soloist.v1"), "{offered}");
        assert!(hear_type(&mut socket, "snapshot").await["jobs"].is_array());
        say(&mut socket, json!({"type": "participation", "id": 1, "job": "outbound", "on": true}))
            .await;
        assert_eq!(hear_type(&mut socket, "reply").await["ok"], true);
    }
    let offered = format!("soloist.v1, bearer.{token}");
    for (origin, offered, status) in [
        ("https://evil.example", offered.as_str(), 403),
        ("null", &offered, 403),
        (FRONT_END, "soloist.v1, bearer.sol_wrong", 401),
        (FRONT_END, "soloist.v1", 401),
    ] {
        let headers = [("origin", origin), ("sec-websocket-protocol", offered)];
        assert_eq!(refusal(&server, &headers).await.0, status, "{origin} {offered}");
    }
    // A token is one only there: nowhere else is a subprotocol read.
    let ask = server.ask("GET", "/api/v1/jobs").header("sec-websocket-protocol", &offered);
    assert_eq!(ask.send().await.unwrap().status(), 401);
}
