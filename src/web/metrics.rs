//! `/metrics`, for Prometheus: with a login or a token, or from this machine itself.
//!
//! "This machine" is the peer of the connection when nothing says that it forwards for somebody else; see [`Client::is_here`](super::address::Client::is_here).

use actix_web::{HttpResponse, web};

use super::Web;

/// `GET /metrics`.
#[utoipa::path(get, path = "/metrics", tag = "health", operation_id = "metrics",
    responses((status = 200, description = "Metrics in the Prometheus text format.", body = String, content_type = "text/plain")))]
pub async fn metrics(web: web::Data<Web>) -> HttpResponse {
    web.live.measure();
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(web.metrics.render())
}
