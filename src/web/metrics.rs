//! `/metrics`, for Prometheus: with a login or a token, or from this machine itself.
//!
//! "This machine" is the peer of the connection when nothing says that it forwards for another client; see
//! [`Client::is_here`](super::address::Client::is_here). Without a login it gets no series of jobs that only some may see: give Prometheus
//! the token of an account that may.

use actix_web::{HttpResponse, web};

use super::Web;
use super::auth::Caller;

/// `GET /metrics`.
#[utoipa::path(get, path = "/metrics", tag = "health", operation_id = "metrics",
    responses((status = 200, description = "Metrics in the Prometheus text format.", body = String, content_type = "text/plain")))]
pub async fn metrics(web: web::Data<Web>, caller: Option<Caller>) -> HttpResponse {
    web.live.measure();
    let hidden = web.live.hidden_from(caller.as_ref());
    let is_hidden = |label: &str, value: &str| match label {
        "job" => hidden.has_job(value),
        "rotation" => hidden.has_rotation(value),
        "type" => hidden.has_type(value),
        "source" => caller.as_ref().is_some_and(|caller| !caller.bound.reads_source(value)),
        _ => false,
    };
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(web.metrics.render(is_hidden))
}
