//! `/healthz`: the process lives. `/readyz`: it can reach the store, or says at once why not; `/readyz?for=reading`: its pages
//! can be read, whatever the store does.
//!
//! Open to everybody, for load balancers: they say nothing about jobs or people. A balancer that knew only the first two
//! would take out every node of a cluster whose store is away, and with them the pages that say so.

use actix_web::{HttpResponse, web};
use serde::Deserialize;

use super::Web;
use super::error::WebError;

/// `GET /healthz`.
#[utoipa::path(get, path = "/healthz", tag = "health", operation_id = "healthz", security(()),
    responses((status = 200, description = "The process is alive.", body = String, content_type = "text/plain")))]
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("alive\n")
}

/// `?for=reading`.
#[derive(Debug, Deserialize)]
pub struct Query {
    /// For what the node must be ready: `work` (when absent) or `reading`.
    pub r#for: Option<String>,
}

/// `GET /readyz`.
///
/// # Errors
/// [`WebError::Unavailable`] with the reason, [`WebError::BadRequest`] for another word.
#[utoipa::path(get, path = "/readyz", tag = "health", operation_id = "readyz", security(()),
    params(("for" = Option<String>, Query, description = "`work`, which needs the store, or `reading`: pages are served, and say when what they show is old.", example = "reading")),
    responses((status = 200, description = "The store is reachable; for reading: this node is not shutting down.", body = String, content_type = "text/plain")))]
pub async fn readyz(
    web: web::Data<Web>,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let ready = || HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("ready\n");
    let reading = match query.r#for.as_deref() {
        None | Some("work") => false,
        Some("reading") => true,
        Some(_) => return Err(WebError::bad("for: use work or reading")),
    };
    let unavailable = |detail: String| WebError::Unavailable { detail, retry_after: 1 };
    if web.live.is_draining() {
        return Err(unavailable("this node is shutting down".to_owned()));
    }
    if reading {
        return Ok(ready());
    }
    if let Some(trouble) = web.feed.trouble() {
        return Err(unavailable(trouble));
    }
    // Also a store that is reachable and was set up badly meanwhile: it must not be sent work.
    web.store.describe().await.map_err(|error| unavailable(error.to_string()))?;
    Ok(ready())
}
