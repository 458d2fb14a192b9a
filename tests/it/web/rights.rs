//! Who may not see a job finds it nowhere: not on a page, in the API, on a socket, in metrics or in the audit.

use std::time::Duration;

use serde_json::{Value, json};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RotationName};
use soloist::store::accounts::Role;
use soloist::store::leases::{Acquire, Condition, Leases as _};
use soloist::web::routes::{Access, ROUTES};
use tokio_tungstenite::tungstenite::Message;

use super::live::{connect, hear, of_a_page};
use super::truth::beat_of;
use super::{Server, job, problem};

const HIDDEN: &str = "vault-secret";

/// A server with a job that only li and the members of @staff may see, which is held, has a history and takes turns.
async fn server() -> Server {
    let server = Server::with(|config| {
        let mut hidden = job(HIDDEN);
        hidden.viewers = vec!["li".to_owned(), "@staff".to_owned()];
        hidden.title.en = HIDDEN.to_owned();
        hidden.rotation = Some(RotationName::new("treasury").unwrap());
        config.jobs.push(hidden);
    })
    .await;
    let admin = server.token("ada", Role::Admin).await;
    let put = |path: String, body: Value| server.ask("PUT", &path).bearer_auth(&admin).json(&body);
    let answers = [
        put("/api/v1/rotations/treasury".to_owned(), json!({"types": [{"name": HIDDEN}]})),
        put(format!("/api/v1/jobs/{HIDDEN}/participation"), json!({"on": true})),
        put(format!("/api/v1/jobs/{HIDDEN}/hold"), json!({"reason": "closed"})),
    ];
    for request in answers {
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let lease = Acquire {
        job: JobName::new(HIDDEN).unwrap(),
        owner: Owner("owner".to_owned()),
        node: NodeName::new("node-b").unwrap(),
        ttl: Duration::from_secs(600),
        condition: Condition::None,
        seen: Token(0),
    };
    server.store().acquire(&lease).await.unwrap();
    // What a node may run names the job, too.
    beat_of(&server, "node-b", &[HIDDEN, "outbound"]).await;
    let nodes = server.get("/api/v1/nodes", &admin).await.text().await.unwrap();
    assert!(nodes.contains(HIDDEN), "{nodes}");
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn to_others_it_does_not_exist_at_any_address() {
    let server = server().await;
    let named = server.token("li", Role::Viewer).await;
    let seen = server.get(&format!("/api/v1/jobs/{HIDDEN}"), &named).await;
    assert_eq!(seen.status(), 200, "a viewer that is named sees it");
    for (name, role) in [("vera", Role::Viewer), ("olga", Role::Operator)] {
        let token = server.token(name, role).await;
        // What streams say of it is another law (below, and in `sse.rs`): they have no end.
        let whole = |path: &str| !["/live", "/api/v1/live"].contains(&path);
        for route in ROUTES.iter().filter(|route| whole(route.path)) {
            let of_job = route.path.contains("{job}");
            let path = route
                .path
                .replace("{job}", HIDDEN)
                .replace("{rotation}", "treasury")
                .replace("{node}", "node-b")
                .replace("{hash}", "0")
                .replace("{path:.*}", "none.css");
            if !of_job && route.method != "GET" {
                continue;
            }
            let line = format!("{} {path} as {name}", route.method);
            let request = server.ask(route.method.as_str(), &path).bearer_auth(&token);
            let response = if route.method == "GET" {
                request.send().await.unwrap()
            } else {
                request
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body("on=true&reason=x&confirm=yes")
                    .send()
                    .await
                    .unwrap()
            };
            let status = response.status().as_u16();
            let allowed = match route.access {
                Access::Operator => role == Role::Operator,
                Access::Admin => false,
                _ => true,
            };
            if of_job && allowed {
                // A body that is no JSON is refused before the name is looked at.
                assert!(
                    status == 404 || (status == 400 && route.path.starts_with("/api")),
                    "{line}: {status}"
                );
            }
            let body = response.text().await.unwrap();
            // What they asked for may be repeated, as it would be for a name that nobody ever used.
            if !of_job {
                assert!(!body.contains(HIDDEN), "{line}: {body}");
                assert!(
                    !body.contains("treasury") || route.path.contains("{rotation}"),
                    "{line}: {body}"
                );
            }
        }
        let wrong = server.get("/api/v1/jobs/never-was", &token).await;
        let (_, of_none) = problem(wrong).await;
        let (_, of_it) = problem(server.get(&format!("/api/v1/jobs/{HIDDEN}"), &token).await).await;
        assert_eq!(
            of_it.replace(HIDDEN, "never-was"),
            of_none,
            "nothing tells the one from the other"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_may_not_see_it_cannot_switch_it_by_any_way() {
    let server = server().await;
    let token = server.token("olga", Role::Operator).await;
    let calls = [
        ("PUT", "participation", json!({"on": false})),
        ("PUT", "hold", json!({"reason": "mine"})),
        ("DELETE", "hold", Value::Null),
        ("POST", "move", json!({})),
    ];
    for (method, what, body) in calls {
        let path = format!("/api/v1/jobs/{HIDDEN}/{what}");
        let request = server.ask(method, &path).bearer_auth(&token);
        let request = if body.is_null() { request } else { request.json(&body) };
        assert_eq!(request.send().await.unwrap().status(), 404, "{method} {path}");
    }
    let mut socket = connect(&server, &token).await;
    for frame in [
        json!({"type": "participation", "id": 1, "job": HIDDEN, "on": false}),
        json!({"type": "follow", "id": 2, "job": HIDDEN}),
    ] {
        use futures_util::SinkExt as _;
        socket.send(Message::text(frame.to_string())).await.unwrap();
        let reply = loop {
            let frame: Value =
                serde_json::from_str(hear(&mut socket).await.to_text().unwrap()).unwrap();
            if frame["type"] == "reply" {
                break frame;
            }
        };
        assert_eq!(
            (&reply["ok"], &reply["error"]),
            (&json!(false), &json!("not_found")),
            "{reply}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_never_name_it_to_others_and_do_to_its_viewers() {
    use futures_util::SinkExt as _;
    let server = server().await;
    let admin = server.token("ann", Role::Admin).await;
    let outsider = server.token("vera", Role::Viewer).await;
    let (mut page, ..) = of_a_page(&server, "wang", Role::Operator).await;
    let mut program = connect(&server, &outsider).await;
    let mut viewer = connect(&server, &server.token("li", Role::Viewer).await).await;
    for socket in [&mut page, &mut program] {
        let follow = json!({"type": "follow", "rotations": true});
        socket.send(Message::text(follow.to_string())).await.unwrap();
    }
    // The hidden job changes first, then one that all see: whoever hears of the second was told what there was of the first.
    for name in [HIDDEN, "outbound"] {
        let path = format!("/api/v1/jobs/{name}/participation");
        let request = server.ask("PUT", &path).bearer_auth(&admin).json(&json!({"on": true}));
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    for socket in [&mut page, &mut program] {
        loop {
            let frame = hear(socket).await.to_text().unwrap().to_owned();
            assert!(!frame.contains(HIDDEN) && !frame.contains("treasury"), "{frame}");
            let changed = frame.contains("\"row\"") || frame.contains("\"type\":\"job\"");
            if changed && frame.contains("outbound") && frame.contains("ann") {
                break;
            }
        }
    }
    loop {
        let frame: Value =
            serde_json::from_str(hear(&mut viewer).await.to_text().unwrap()).unwrap();
        if frame["job"]["name"] == HIDDEN {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_name_it_only_to_those_who_may_see_it() {
    let server = server().await;
    let admin = server.token("ann", Role::Admin).await;
    let vera = server.token("vera", Role::Viewer).await;
    let seen = server.get("/metrics", &admin).await.text().await.unwrap();
    assert!(seen.contains(&format!("job=\"{HIDDEN}\"")), "{seen}");
    for (who, response) in [
        ("this machine", server.ask("GET", "/metrics").send().await.unwrap()),
        ("a viewer", server.get("/metrics", &vera).await),
    ] {
        let text = response.text().await.unwrap();
        assert!(text.contains("job=\"outbound\"") && !text.contains(HIDDEN), "{who}: {text}");
    }
}
