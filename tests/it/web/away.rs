//! The store is out of reach: said at once, never a stale green, and nobody is locked out of looking.

use std::time::Duration;

use serde_json::Value;
use soloist::clock;
use soloist::domain::lease::Timing;
use soloist::store::accounts::Role;

use super::live::{connect, hear_type};
use super::{Server, problem};

#[tokio::test(flavor = "multi_thread")]
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

    let mut unknown = std::collections::HashSet::new();
    while unknown.len() < 2 {
        let frame = hear_type(&mut socket, "job").await;
        if frame["job"]["state"] == "unknown" {
            unknown.insert(frame["job"]["name"].as_str().unwrap().to_owned());
        }
    }
    // Lease + 500 ms, a look every 250 ms, and a machine with other things to do.
    let took = clock::boot().since(gone);
    assert!(took < Duration::from_millis(2_500 + 250 + 500), "{took:?}");

    let answer: Value = server.get("/api/v1/jobs", &token).await.json().await.unwrap();
    assert_eq!(answer["jobs"][0]["state"], "unknown");
    let act = server.ask("PUT", "/api/v1/jobs/outbound/participation").bearer_auth(&token);
    let response = act.body(r#"{"on":true}"#).send().await.unwrap();
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(problem(response).await.0, 503);
    let stranger = server.get("/api/v1/jobs", "sol_unknown").await;
    assert_eq!(problem(stranger).await.0, 503, "nobody knows whether this token is good");
}
