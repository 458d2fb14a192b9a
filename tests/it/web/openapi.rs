//! The OpenAPI document and the URL table say the same, both ways.

use std::collections::BTreeSet;

use serde_json::Value;
use soloist::store::accounts::Role;
use soloist::web::routes::ROUTES;

use super::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_document_describes_every_call_and_no_other() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let document: Value = server.get("/api/v1/openapi.json", &token).await.json().await.unwrap();
    let machine = |path: &str| {
        path.starts_with("/api/") || ["/healthz", "/readyz", "/metrics"].contains(&path)
    };
    let table: BTreeSet<String> = ROUTES
        .iter()
        .filter(|route| machine(route.path))
        .map(|route| format!("{} {}", route.method.as_str().to_lowercase(), route.path))
        .collect();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, call) in item.as_object().unwrap() {
            described.insert(format!("{method} {path}"));
            let responses = call["responses"].as_object().unwrap();
            for (status, response) in
                responses.iter().filter(|(status, _)| *status >= &"400".to_owned())
            {
                assert!(
                    response["content"]["application/problem+json"].is_object(),
                    "{method} {path} {status}"
                );
            }
        }
    }
    assert_eq!(table, described);
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    assert_eq!(schemes.keys().collect::<Vec<_>>(), ["csrf", "session", "token"]);
    // Every reference leads somewhere.
    let text = document.to_string();
    for reference in text.split(r##""$ref":"#"##).skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}
