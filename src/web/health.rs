//! `/healthz`: the process lives. `/readyz`: it can reach the store, or says at once why not.
//!
//! Open to everybody, for load balancers: they say nothing about jobs or people.

use actix_web::{HttpResponse, web};

use super::Web;
use super::error::WebError;

/// `GET /healthz`.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "The process is alive.", body = String, content_type = "text/plain")))]
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("alive\n")
}

/// `GET /readyz`.
///
/// # Errors
/// [`WebError::Unavailable`] with the reason.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses(
        (status = 200, description = "The store is reachable.", body = String, content_type = "text/plain"),
        (status = 503, description = "The store is not reachable, or this node is shutting down.",
         body = super::error::Problem, content_type = "application/problem+json")))]
pub async fn readyz(web: web::Data<Web>) -> Result<HttpResponse, WebError> {
    let unavailable = |detail: String| WebError::Unavailable { detail, retry_after: 1 };
    if web.live.is_draining() {
        return Err(unavailable("this node is shutting down".to_owned()));
    }
    if let Some(trouble) = web.feed.trouble() {
        return Err(unavailable(trouble));
    }
    // Also a store that is reachable and was set up badly meanwhile: it must not be sent work.
    web.store.describe().await.map_err(|error| unavailable(error.to_string()))?;
    Ok(HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("ready\n"))
}
