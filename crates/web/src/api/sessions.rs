//! `/api/v1/sessions`: where accounts are signed in, for admins. One's own are under `/api/v1/me/sessions`.

use actix_web::web;
use actix_web::{HttpRequest, HttpResponse};

use super::tokens::Whose;
use super::{Answer, answer, query};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_ops::{accounts, credentials};
use soloist_secrets::session_id;
use soloist_view::people::{SessionView, Sessions};

/// Where all accounts are signed in, or one of them.
#[utoipa::path(get, path = "/api/v1/sessions", tag = "accounts", operation_id = "list_sessions",
    params(Whose),
    responses((status = 200, description = "The sessions, newest first.", body = Sessions)))]
pub async fn list(web: web::Data<Web>, caller: Caller, request: HttpRequest) -> Answer<Sessions> {
    let Whose { user } = query(&request)?;
    let actor = caller.actor();
    if let Some(name) = &user {
        accounts::one(&web.store, &actor, name.as_str()).await?;
    }
    let open = credentials::sessions(&web.store, &actor, user.as_ref()).await?;
    let current = caller.shown.hash();
    let sessions = open.into_iter().map(|one| {
        let id = session_id(&one.hash);
        SessionView::of(one, id, current)
    });
    answer(Sessions { sessions: sessions.collect() })
}

/// Signs an account out there, with all live connections.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}", tag = "accounts", operation_id = "end_session",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 204, description = "It has ended.")))]
pub async fn end(
    web: web::Data<Web>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    credentials::end_session(&web.store, &caller.actor(), None, &id).await?;
    Ok(HttpResponse::NoContent().finish())
}
