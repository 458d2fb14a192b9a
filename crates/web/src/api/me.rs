//! `/api/v1/me`: who asks, their password, and where they are signed in.

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use serde::Deserialize;

use super::{Answer, answer, read};
use crate::Web;
use crate::acts::account;
use crate::auth::{Caller, Shown};
use crate::error::WebError;
use soloist_domain::time::StoreTime;
use soloist_ops::credentials;
use soloist_secrets::session_id;
use soloist_store::credentials::Credentials as _;
use soloist_view::people::{Me, SessionView, Sessions};
use soloist_view::words::At;

/// Who asks.
#[utoipa::path(get, path = "/api/v1/me", tag = "accounts", operation_id = "get_me",
    responses((status = 200, description = "The account, and by what it asks.", body = Me)))]
pub async fn get(web: web::Data<Web>, caller: Caller) -> Answer<Me> {
    let by_session = caller.by_session();
    let token = match &caller.shown {
        Shown::Token { hash, .. } => web.store.token(hash).await?,
        Shown::Session { .. } | Shown::Terminal => None,
    };
    answer(Me {
        name: caller.user.to_string(),
        role: caller.role,
        display_name: caller.display_name,
        by: match &caller.shown {
            Shown::Session { .. } => "session",
            Shown::Token { .. } => "token",
            Shown::Terminal => "terminal",
        }
        .to_owned(),
        session: by_session.then(|| session_id(caller.shown.hash())),
        token: token.map(Into::into),
        node: web.config().node.to_string(),
        now: Some(At(StoreTime(jiff::Timestamp::now().as_millisecond()))),
    })
}

/// Both passwords.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// As it is now.
    pub old: String,
    /// At least 10 characters, at most 1,024 bytes, and not easily guessed.
    #[schema(min_length = 10, max_length = 1_024)]
    pub new: String,
}

/// Changes the password of the person who is signed in. All other sessions end; API tokens live on. Not for tokens.
#[utoipa::path(put, path = "/api/v1/me/password", tag = "accounts", operation_id = "change_my_password",
    request_body = PasswordChange,
    responses((status = 204, description = "It is changed.")))]
pub async fn password(
    web: web::Data<Web>,
    caller: Caller,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let PasswordChange { old, new } = read(&body)?;
    account::change_password(&web, &caller, old, new).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Where the caller's account is signed in.
#[utoipa::path(get, path = "/api/v1/me/sessions", tag = "accounts", operation_id = "list_my_sessions",
    responses((status = 200, description = "The sessions, newest first.", body = Sessions)))]
pub async fn sessions(web: web::Data<Web>, caller: Caller) -> Answer<Sessions> {
    let (actor, user) = (caller.actor(), Some(&caller.user));
    let open = credentials::sessions(&web.store, &actor, user).await?;
    let current = caller.shown.hash();
    let view = |one: soloist_store::credentials::OpenSession| {
        let id = session_id(&one.hash);
        SessionView::of(one, id, current)
    };
    answer(Sessions { sessions: open.into_iter().map(view).collect() })
}

/// Signs the caller's account out there, with all live connections.
#[utoipa::path(delete, path = "/api/v1/me/sessions/{id}", tag = "accounts", operation_id = "end_my_session",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 204, description = "It has ended.")))]
pub async fn end_session(
    web: web::Data<Web>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let (actor, user) = (caller.actor(), Some(&caller.user));
    credentials::end_session(&web.store, &actor, user, &id).await?;
    Ok(HttpResponse::NoContent().finish())
}
