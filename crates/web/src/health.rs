//! `/healthz`: the process lives. `/readyz`: it can reach the store, or says at once why not; `/readyz?for=reading`: its pages
//! can be read, whatever the store does.
//!
//! Open to all clients, for load balancers: they say nothing about jobs or people. A balancer that knew only the first two
//! would take out every node of a cluster whose store is away, and with them the pages that say so.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::Web;
use super::auth::{self, Ask, Shown};
use super::error::WebError;
use soloist_domain::time::Boot;
use soloist_process::clock;

/// An answer of the store is good for so long.
const TRUE_FOR: Duration = Duration::from_millis(500);

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
    request: HttpRequest,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let ready = || HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("ready\n");
    let reading = match query.r#for.as_deref() {
        None | Some("work") => false,
        Some("reading") => true,
        Some(_) => return Err(WebError::bad("for: use work or reading")),
    };
    let unavailable =
        |detail: String| WebError::Unavailable { detail: detail.into(), retry_after: 1 };
    if web.live.is_draining() {
        return Err(unavailable("this node is shutting down".to_owned()));
    }
    if reading {
        return Ok(ready());
    }
    match web.readiness.ask(&web).await {
        Ok(()) => Ok(ready()),
        // It may name the store's address.
        Err(why) if may_know(&web, &request).await => Err(unavailable(why)),
        Err(_) => Err(unavailable(
            "the store cannot be used at this moment: this node's log says why, and /readyz to whoever is signed in or on its machine"
                .to_owned(),
        )),
    }
}

/// What the store said last, so that strangers who ask again and again cost it nothing.
#[derive(Default)]
pub(super) struct Readiness(tokio::sync::Mutex<Option<(Boot, Result<(), String>)>>);

impl Readiness {
    /// Whether the store can be used, or why not; not older than [`TRUE_FOR`]. Of many who ask at once one asks the store.
    async fn ask(&self, web: &Web) -> Result<(), String> {
        if let Some(trouble) = web.feed.trouble() {
            return Err(trouble);
        }
        let mut last = self.0.lock().await;
        if let Some((at, said)) = &*last
            && clock::boot().since(*at) < TRUE_FOR
        {
            return said.clone();
        }
        // Also a store that is reachable and was set up badly meanwhile: it must not be sent work.
        let said = web.store.describe().await.map(drop).map_err(|error| error.to_string());
        *last = Some((clock::boot(), said.clone()));
        said
    }
}

/// Whether the client is on this machine, or signed in.
async fn may_know(web: &Web, request: &HttpRequest) -> bool {
    let config = web.config();
    if auth::is_here(request, &config) {
        return true;
    }
    match Shown::in_request(request, &config) {
        Some(shown) => {
            let ask = Ask { looking: true, renews: false };
            matches!(web.identities.identify(&web.store, &shown, ask).await, Ok(Some(_)))
        }
        None => false,
    }
}
