//! Why rules were changed stands in the audit, over HTTP as over the command line.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::store::accounts::Role;

use super::dispatch::ok;
use super::{On, Server};
use crate::support::api::Api;

on_every_store! {
    a_change_of_rules_carries_its_reason_into_the_audit
    without_a_reason_the_audit_says_which_rules_hold_now
    a_reason_that_is_too_long_changes_nothing
}

const CASES: [(&str, &str); 2] =
    [("source.put", "/api/v1/sources/shop"), ("rotation.put", "/api/v1/rotations/supplier")];

fn rules(path: &str, reason: Option<&str>) -> Value {
    let mut body = match path.contains("sources") {
        true => json!({"gap_ms": 250}),
        false => json!({"types": [{"name": "a", "gap_ms": 250}]}),
    };
    if let Some(reason) = reason {
        body["reason"] = reason.into();
    }
    body
}

async fn audited(api: &Api) -> Value {
    api.get("/api/v1/audit?limit=1").await["entries"][0].clone()
}

async fn someone(on: On) -> (Server, Api) {
    let server = Server::on(on).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Admin).await);
    (server, api)
}

async fn a_change_of_rules_carries_its_reason_into_the_audit(on: On) {
    let (_server, api) = someone(on).await;
    for (act, path) in CASES {
        ok(&api, Method::PUT, path, rules(path, Some("  they asked for it\n"))).await;
        let entry = audited(&api).await;
        assert_eq!((&entry["act"], &entry["reason"]), (&act.into(), &"they asked for it".into()));
    }
}

async fn without_a_reason_the_audit_says_which_rules_hold_now(on: On) {
    let (_server, api) = someone(on).await;
    for (act, path) in CASES {
        ok(&api, Method::PUT, path, rules(path, None)).await;
        let entry = audited(&api).await;
        assert_eq!(entry["act"], act);
        let noted: Value =
            serde_json::from_str(entry["reason"].as_str().expect("a reason")).expect("JSON");
        let gap = noted["gap_ms"].as_u64().or(noted["types"][0]["gap_ms"].as_u64());
        assert_eq!(gap, Some(250), "{noted}");
    }
}

async fn a_reason_that_is_too_long_changes_nothing(on: On) {
    let (_server, api) = someone(on).await;
    for (_, path) in CASES {
        let body = rules(path, Some(&"x".repeat(501)));
        let (status, _) = api.call(Method::PUT, path, Some(body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let (status, _) = api.call(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path} was made");
    }
}
