//! `/api/v1/tokens`: people list, make and revoke their own; admins those of all accounts.

use std::time::Duration;

use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Deserializer};

use super::{Answer, answer, query, read};
use crate::Web;
use crate::acts::account;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::name::{CollectorName, JobName, RotationName, SourceName, UserName};
use soloist_ops::credentials::{self, Expiry};
use soloist_store::credentials::ApiToken;
use soloist_view::people::{NewToken, TokenView, Tokens};
use soloist_view::whole;

/// Whose.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Whose {
    /// Of this account only; for admins. Left out: the caller's own, and for admins those of all accounts.
    #[param(value_type = Option<String>, format = "name")]
    pub user: Option<UserName>,
}

/// Living API tokens.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "accounts", operation_id = "list_tokens",
    params(Whose),
    responses((status = 200, description = "The tokens, oldest first.", body = Tokens)))]
pub async fn list(web: web::Data<Web>, caller: Caller, request: HttpRequest) -> Answer<Tokens> {
    let Whose { user } = query(&request)?;
    let actor = caller.actor();
    let owner = match user {
        None if !actor.administers() => Some(caller.user.clone()),
        user => user,
    };
    let tokens = credentials::tokens(&web.store, &actor, owner.as_ref()).await?;
    answer(Tokens { tokens: tokens.into_iter().map(TokenView::from).collect() })
}

/// A token to be made.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTokenBody {
    /// What it is for; one line.
    #[serde(default)]
    #[schema(max_length = 100)]
    pub name: String,
    /// Whose role it has; another than the caller's for admins only.
    #[schema(value_type = Option<String>, format = "name")]
    pub user: Option<UserName>,
    /// How long it lives; 90 days when left out, at most 5 years. Null, for admins only: until it is revoked.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 157_766_400_000_u64)]
    pub expires_in_ms: Option<Option<u64>>,
    /// For dispatch and rotations only, in the name of this collector or worker.
    #[schema(value_type = Option<String>, format = "label")]
    pub collector: Option<CollectorName>,
    /// For these sources. A token with any name here or below is for nothing else.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub sources: Vec<SourceName>,
    /// For these rotations.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub rotations: Vec<RotationName>,
    /// For these leases of programs.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub leases: Vec<JobName>,
    /// For these jobs.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub jobs: Vec<JobName>,
    /// May put tasks for its sources, of which there must be one, though its account is a collector.
    #[serde(default)]
    pub put: bool,
}

/// Tells a null from what was left out.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    whole::optional(deserializer).map(Some)
}

/// Makes an API token. The secret is in the answer, once. A token makes no tokens, unless it is an admin's and bound to nothing.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "accounts", operation_id = "make_token",
    request_body = NewTokenBody,
    responses((status = 201, description = "The token with its secret.", body = NewToken)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let body: NewTokenBody = read(&body)?;
    let NewTokenBody { name, user, expires_in_ms, collector, put, .. } = body;
    let NewTokenBody { sources, rotations, leases, jobs, .. } = body;
    let unbound = ApiToken::new(user.unwrap_or_else(|| caller.user.clone()), name);
    let token = ApiToken { collector, sources, rotations, leases, jobs, put, ..unbound };
    let expiry = match expires_in_ms {
        None => Expiry::Usual,
        Some(None) => Expiry::Never,
        Some(Some(ms)) => Expiry::After(Duration::from_millis(ms)),
    };
    let (token, secret) = account::new_token(&web, &caller, token, expiry).await?;
    Ok(HttpResponse::Created().json(NewToken { token: token.into(), secret }))
}

/// Revokes an API token: it is worth nothing at once, in dispatch and rotations after a second.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", tag = "accounts", operation_id = "revoke_token",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 204, description = "It is revoked.")))]
pub async fn delete(
    web: web::Data<Web>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    credentials::revoke_token(&web.store, &caller.actor(), &id).await?;
    Ok(HttpResponse::NoContent().finish())
}
