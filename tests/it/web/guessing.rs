//! Attacks with a second token: what one token has in hand, no other touches, be it of another account or of the same. And
//! what a token is bound to, it does not go beyond.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::secrets;
use soloist::store::accounts::Role;
use soloist::store::credentials::{ApiToken, Credentials as _};

use super::dispatch::{claim, define, ok, put, shop_on};
use super::rotations::{SUPPLIER, granted, number_of, pass, supplier, three};
use super::{On, Server};
use crate::support::api::Api;

on_every_store! {
    no_other_token_touches_a_claim_whatever_it_guesses_or_replays
    no_other_token_touches_a_turn_whatever_it_guesses_or_replays
    a_token_that_is_bound_to_names_acts_on_nothing_else
    a_put_that_names_no_rule_does_not_wipe_a_source
}

/// A token of this account that is bound as `more` says.
async fn token(server: &Server, user: &str, more: impl FnOnce(&mut ApiToken)) -> Api {
    let (secret, hash, id) = secrets::new_api_token();
    let mut token = ApiToken { id, ..ApiToken::new(user.parse().unwrap(), String::new()) };
    more(&mut token);
    server.store().add_token(&hash, &token, None).await.unwrap();
    Api::new(&server.url(""), &secret)
}

async fn no_other_token_touches_a_claim_whatever_it_guesses_or_replays(on: On) {
    let (server, olga) = shop_on(on, json!({"lease_ms": 60_000})).await;
    put(&olga, &["a", "b"]).await;
    let mallory = Api::new(&server.url(""), &server.token("mallory", Role::Collector).await);
    let same_account = token(&server, "olga", |_| ()).await;
    let own = claim(&olga, "r1", json!({"max": 2})).await;
    let id = own["claim"].as_str().unwrap();
    assert_eq!(own["tasks"].as_array().unwrap().len(), 2);
    for stranger in [&mallory, &same_account] {
        // Both know the id, the tokens and the request: of the answer, of a log, or by guessing well.
        let again = claim(stranger, "r1", json!({"max": 2})).await;
        assert_eq!((&again["tasks"], &again["reason"]), (&json!([]), &json!("empty")));
        for path in
            [format!("/api/v1/claims/{id}/extend"), format!("/api/v1/claims/{}/extend", &id[32..])]
        {
            let (status, answer) = stranger.call(Method::POST, &path, None).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
        }
        let path = format!("/api/v1/claims/{id}");
        assert_eq!(ok(stranger, Method::DELETE, &path, json!({})).await["returned"], 0);
        for outcome in ["done", "retry", "dead"] {
            let task = &own["tasks"][0];
            let result = json!({"id": task["id"], "token": task["token"], "outcome": outcome});
            let answer =
                ok(stranger, Method::POST, "/api/v1/results", json!({"results": [result]}));
            assert_eq!(answer.await["results"][0]["status"], "stale");
        }
    }
    // What anybody may read says nothing from which it follows.
    for path in ["/api/v1/sources", "/api/v1/collectors"] {
        assert!(!olga.get(path).await.to_string().contains(&id[..32]), "{path}");
    }
    for task in own["tasks"].as_array().unwrap() {
        let shown = olga.get(&format!("/api/v1/tasks/{}", task["id"].as_str().unwrap())).await;
        assert_eq!(shown["state"], "leased", "{shown}");
        assert!(!shown.to_string().contains(&id[..32]), "{shown}");
        let page = format!("/dispatch/tasks/{}", task["id"].as_str().unwrap());
        let secret = server.token(&format!("reader{}", task["token"]), Role::Viewer).await;
        let page = server.get(&page, &secret).await.text().await.unwrap();
        assert!(!page.contains(&id[..32]));
    }
    // All of it works for whoever made the claim.
    assert_eq!(claim(&olga, "r1", json!({"max": 2})).await["tasks"], own["tasks"]);
    let extended = ok(&olga, Method::POST, &format!("/api/v1/claims/{id}/extend"), json!({})).await;
    assert_eq!(extended["kept"].as_array().unwrap().len(), 2);
    let task = &own["tasks"][0];
    let result = json!({"id": task["id"], "token": task["token"], "outcome": "done"});
    let answer = ok(&olga, Method::POST, "/api/v1/results", json!({"results": [result]})).await;
    assert_eq!(answer["results"][0]["status"], "ok");
    let back = ok(&olga, Method::DELETE, &format!("/api/v1/claims/{id}"), json!({})).await;
    assert_eq!(back["returned"], 1);
}

async fn no_other_token_touches_a_turn_whatever_it_guesses_or_replays(on: On) {
    let (server, olga) = supplier(on, three(json!({}))).await;
    let mallory = Api::new(&server.url(""), &server.token("mallory", Role::Collector).await);
    let same_account = token(&server, "olga", |_| ()).await;
    let turn = granted(&olga, "a", "r1", json!({})).await;
    let text = turn["turn"].as_str().unwrap();
    let number = number_of(&turn);
    let held = olga.get(SUPPLIER).await;
    let turns = format!("{SUPPLIER}/turns");
    for stranger in [&mallory, &same_account] {
        let replayed = json!({"type": "a", "worker": "w-a", "request_id": "r1"});
        let told = ok(stranger, Method::POST, &turns, replayed).await;
        assert_eq!(told["reason"], "held", "another token's request is not answered: {told}");
        let number = number.as_str().unwrap();
        for guess in [text.to_owned(), number.to_owned(), format!("{number}.{}", "0".repeat(32))] {
            for (act, body) in [
                ("extend", json!({})),
                ("pass", json!({"token": turn["token"], "outcome": "done"})),
            ] {
                let path = format!("{turns}/{guess}/{act}");
                let (status, answer) = stranger.call(Method::POST, &path, Some(body)).await;
                assert_eq!(status, StatusCode::CONFLICT, "{path}: {answer}");
            }
        }
        let job = json!({"type": "a", "worker": "job/outbound", "request_id": "r9"});
        let (status, answer) = stranger.call(Method::POST, &turns, Some(job)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    }
    let now = olga.get(SUPPLIER).await;
    assert_eq!((&now["holder"], &now["turns"]), (&held["holder"], &held["turns"]));
    assert_eq!(granted(&olga, "a", "r1", json!({})).await["turn"], turn["turn"]);
    pass(&olga, &turn, "done", json!({})).await;
}

async fn a_token_that_is_bound_to_names_acts_on_nothing_else(on: On) {
    let (server, olga) = shop_on(on, json!({})).await;
    define(&olga, "mail", json!({})).await;
    put(&olga, &["a"]).await;
    ok(&olga, Method::PUT, SUPPLIER, three(json!({}))).await;
    let name = |text: &str| text.parse().unwrap();
    let of_source = token(&server, "olga", |token| token.sources = vec![name("shop")]).await;
    let of_rotation =
        token(&server, "olga", |token| token.rotations = vec!["supplier".parse().unwrap()]).await;
    let of_job =
        token(&server, "olga", |token| token.jobs = vec!["outbound".parse().unwrap()]).await;
    let acts: [(&str, Method, &str, Value); 9] = [
        ("shop", Method::PUT, "/api/v1/sources/shop", json!({"paused": false})),
        ("mail", Method::PUT, "/api/v1/sources/mail", json!({"paused": false})),
        ("shop", Method::POST, "/api/v1/tasks", json!({"tasks": [{"key": "x", "source": "shop"}]})),
        ("mail", Method::POST, "/api/v1/tasks", json!({"tasks": [{"key": "x", "source": "mail"}]})),
        ("shop", Method::POST, "/api/v1/claims", json!({"collector": "c", "request_id": "q"})),
        ("supplier", Method::PUT, SUPPLIER, three(json!({}))),
        (
            "supplier",
            Method::POST,
            "/api/v1/rotations/supplier/turns",
            json!({"type": "a", "worker": "w", "request_id": "q"}),
        ),
        ("outbound", Method::PUT, "/api/v1/jobs/outbound/participation", json!({"on": true})),
        ("node", Method::PUT, "/api/v1/nodes/node-a/drain", json!({})),
    ];
    for (bound, own) in [(&of_source, "shop"), (&of_rotation, "supplier"), (&of_job, "outbound")] {
        for (about, method, path, body) in &acts {
            let (status, answer) = bound.call(method.clone(), path, Some(body.clone())).await;
            let expected = if *about == own { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(status, expected, "{own}: {method} {path}: {answer}");
            if *about != own {
                let said = answer["detail"].as_str().unwrap();
                assert!(said.contains(&format!("{own} only, not for ")), "{said}");
            }
        }
    }
}

async fn a_put_that_names_no_rule_does_not_wipe_a_source(on: On) {
    let (server, olga) = shop_on(on, json!({"gap_ms": 5_000, "cap": 3})).await;
    let secret = server.token("wang", Role::Operator).await;
    let before = olga.get("/api/v1/sources/shop").await;
    for body in ["", " ", "{}", "{\"reason\": \"oops\"}"] {
        let request = server.ask("PUT", "/api/v1/sources/shop").bearer_auth(&secret);
        let (status, said) = super::problem(request.body(body).send().await.unwrap()).await;
        assert_eq!(status, 400, "{body:?}: {said}");
        let request = server.ask("PUT", "/api/v1/rotations/new").bearer_auth(&secret);
        assert_eq!(super::problem(request.body(body).send().await.unwrap()).await.0, 400);
    }
    assert_eq!(olga.get("/api/v1/sources/shop").await, before);
    define(&olga, "new", json!({})).await;
}
