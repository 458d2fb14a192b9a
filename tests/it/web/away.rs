//! The store is out of reach: said at once, never a stale green, and nobody is locked out of looking.

use std::time::Duration;

use serde_json::Value;
use soloist::clock;
use soloist::domain::lease::Timing;
use soloist::store::accounts::Role;

use super::live::{connect, hear_type};
use super::{Server, problem};
use crate::support::machine::{judged, within};

judged! {
    a_store_out_of_reach_is_said_at_once_and_pictures_become_unknown_in_time
}

async fn a_store_out_of_reach_is_said_at_once_and_pictures_become_unknown_in_time() {
    let mut server = Server::with(|config| {
        let short = Timing::from_ttl(Duration::from_secs(2)).unwrap();
        config.timing = short;
        config.jobs.iter_mut().for_each(|job| job.timing = short);
    })
    .await;
    let token = server.token("li", Role::Operator).await;
    assert_eq!(server.get("/api/v1/jobs", &token).await.status(), 200);
    let mut socket = connect(&server, &token).await;
    hear_type(&mut socket, "snapshot").await;
    server.redis.stop();
    let gone = clock::boot();

    let ready = server.ask("GET", "/readyz").send().await.unwrap();
    assert!(ready.headers().contains_key("retry-after"));
    let (status, detail) = problem(ready).await;
    assert_eq!(status, 503, "{detail}");
    assert_eq!(server.ask("GET", "/healthz").send().await.unwrap().status(), 200);

    let reading = server.ask("GET", "/readyz?for=reading").send().await.unwrap();
    assert_eq!(reading.status(), 200, "its pages say what is wrong");
    let other = server.ask("GET", "/readyz?for=fun").send().await.unwrap();
    assert_eq!(problem(other).await.0, 400);

    let mut unknown = std::collections::HashSet::new();
    while unknown.len() < 2 {
        let frame = hear_type(&mut socket, "job").await;
        if frame["job"]["state"] == "unknown" {
            unknown.insert(frame["job"]["name"].as_str().unwrap().to_owned());
        }
    }
    // Lease + 500 ms, a look every 250 ms, and a machine with other things to do.
    let took = clock::boot().since(gone);
    within(took, Duration::from_millis(2_500 + 250 + 500), "every picture is unknown");

    let answer: Value = server.get("/api/v1/jobs", &token).await.json().await.unwrap();
    assert_eq!(answer["jobs"][0]["state"], "unknown");
    let act = server.ask("PUT", "/api/v1/jobs/outbound/participation").bearer_auth(&token);
    let response = act.body(r#"{"on":true}"#).send().await.unwrap();
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(problem(response).await.0, 503);
    let stranger = server.get("/api/v1/jobs", "sol_unknown").await;
    assert_eq!(problem(stranger).await.0, 503, "nobody knows whether this token is good");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_told_that_the_store_is_away_and_nothing_else() {
    let mut server = Server::start().await;
    let user = server.user("li", Role::Viewer).await;
    let (seen, _) = server.session(&user).await;
    let (unseen, _) = server.session(&user).await;
    let page = async |server: &Server, path: &str, cookie: &str, language: &str| {
        let ask = server.ask("GET", path).header("accept-language", language);
        let response = ask.header("cookie", cookie).send().await.unwrap();
        (response.status().as_u16(), response.headers().clone(), response.text().await.unwrap())
    };
    assert_eq!(page(&server, "/", &seen, "en").await.0, 200);
    server.redis.stop();
    for (path, cookie, language, says) in [
        ("/", unseen.as_str(), "en", "The store is out of reach"),
        ("/jobs/outbound", "", "zh", "存储失联"),
        ("/nowhere", "", "en", "The store is out of reach"),
        ("/login", "", "en", "The store is out of reach"),
    ] {
        // Until the first question fails nobody knows.
        let mut tries = 0;
        let (status, headers, html) = loop {
            let answer = page(&server, path, cookie, language).await;
            tries += 1;
            if answer.0 == 503 || tries == 100 {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(status, 503, "{path}");
        assert!(headers.contains_key("retry-after"));
        assert!(html.contains(says) && html.contains("http-equiv=\"refresh\""), "{html}");
        for secret in ["outbound", "Outbound", "127.0.0.1", "node-a"] {
            assert!(!html.contains(secret), "{path} tells {secret}: {html}");
        }
    }
    // Whoever was seen here lately goes on looking.
    let (status, _, html) = page(&server, "/", &seen, "en").await;
    assert_eq!(status, 200);
    assert!(html.contains("data-fact=\"store\""));
}

#[test]
fn the_shipped_balancer_sends_readers_to_nodes_without_a_store() {
    let caddy = include_str!("../../../deploy/Caddyfile");
    let (work, reading) = caddy.split_once("handle_errors").unwrap();
    assert!(work.contains("health_uri /readyz\n"), "nodes that reach the store come first");
    assert!(reading.contains("health_uri \"/readyz?for=reading\""), "{reading}");
}
