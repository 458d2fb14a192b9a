//! `/metrics`, for Prometheus: with a login or a token, or from this machine itself.
//!
//! "This machine" is the peer of the connection when nothing says that it forwards for another client; see
//! [`Client::is_here`](super::address::Client::is_here). Without a login it gets no series of jobs that only some may see: give Prometheus
//! the token of an account that may.

use std::collections::BTreeSet;

use actix_web::{HttpResponse, web};

use super::Web;
use super::auth::Caller;
use super::hub::Hidden;
use soloist_store::rotation::Rotations as _;

/// The label of what is counted together, beyond the first names.
const TOGETHER: &str = "*";

/// The rotations that may be named; `None`: all. A series does not say which types its rotation has, so the store is asked, but only where
/// something may be hidden. While the store is away none is named.
async fn rotations(web: &Web, hidden: &Hidden<'_>) -> Option<BTreeSet<String>> {
    if !hidden.may_be_by_role() || !web.metrics.counts_turns() {
        return None;
    }
    let views = match web.feed.outage() {
        Some(_) => Vec::new(),
        None => web.store.rotations(None, 0).await.unwrap_or_default(),
    };
    let seen = views.iter().filter(|view| !hidden.has_ring(view));
    Some(seen.map(|view| view.name.to_string()).collect())
}

/// `GET /metrics`.
#[utoipa::path(get, path = "/metrics", tag = "health", operation_id = "metrics",
    responses((status = 200, description = "Metrics in the Prometheus text format.", body = String, content_type = "text/plain")))]
pub async fn metrics(web: web::Data<Web>, caller: Option<Caller>) -> HttpResponse {
    web.live.measure();
    let hidden = web.live.hidden_from(caller.as_ref());
    let rotations = rotations(&web, &hidden).await;
    let is_seen = |name: &str| rotations.as_ref().is_none_or(|seen| seen.contains(name));
    let is_hidden = |label: &str, value: &str| match label {
        "job" => hidden.has_job(value),
        "rotation" => hidden.has_rotation(value) || (value != TOGETHER && !is_seen(value)),
        "type" => hidden.has_type(value),
        "source" => caller.as_ref().is_some_and(|caller| !caller.bound.reads_source(value)),
        _ => false,
    };
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(web.metrics.render(is_hidden))
}
