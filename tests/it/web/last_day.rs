//! The last day of a source: one memory for all nodes.

use serde_json::json;
use soloist::store::accounts::Role;

use super::dispatch::{claim, ok, put, shop_on};
use super::{On, Server};
use crate::support::wait::until_async;

on_every_store! {
    the_last_day_of_a_source_is_the_same_on_a_node_that_starts_later
}

/// Waits until the page of the source says that of its last day.
async fn says(server: &Server, token: &str, language: &str, part: &str) {
    until_async(&format!("the page says {part:?}"), async || {
        let page = server.page("/dispatch/sources/shop", token, language).await;
        page.contains(part).then_some(())
    })
    .await;
}

async fn the_last_day_of_a_source_is_the_same_on_a_node_that_starts_later(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let token = server.token("vera", Role::Viewer).await;
    says(
        &server,
        &token,
        "en",
        "<strong>0</strong> done and <strong>0</strong> tries failed since",
    )
    .await;
    put(&api, &["one", "two", "three"]).await;
    let got = claim(&api, "a", json!({"max": 3})).await;
    let result = |nth: usize, outcome: &str| json!({"id": got["tasks"][nth]["id"], "token": got["tasks"][nth]["token"], "outcome": outcome});
    let results = json!({"results": [result(0, "done"), result(1, "done"), result(2, "retry")]});
    ok(&api, reqwest::Method::POST, "/api/v1/results", results).await;
    let said = "<strong>2</strong> done and <strong>1</strong> tries failed since";
    says(&server, &token, "en", said).await;
    // It comes when all is done, and counts what was done before it.
    let beside = server.beside().await;
    says(&beside, &token, "en", said).await;
    says(&beside, &token, "zh", "完成 <strong>2</strong> 项，失败 <strong>1</strong> 次。").await;
}
