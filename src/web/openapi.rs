//! `GET /api/v1/openapi.json`: the API described for machines, made from the handlers themselves.
//!
//! A test compares it with the URL table, both ways.

use actix_web::{HttpResponse, web};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::auth;
use super::error::Problem;
use super::{Web, api, health, metrics};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Soloist",
        description = "Runs a script exactly once in a cluster, for as long as somebody wants it. Errors are application/problem+json (RFC 9457). A request with the session cookie that changes something carries the CSRF secret in X-CSRF-Token; one with a token needs neither that nor an Origin. GET /live is a WebSocket (subprotocol soloist.v1).",
    ),
    paths(
        api::jobs::list, api::jobs::one, api::participation::put, api::hold::put, api::hold::delete,
        api::moves::post, api::drill::post, api::drill::get, api::runs::list, api::log::list, api::timeline::list,
        api::nodes::list, api::nodes::drain, api::nodes::undrain, api::audit::list,
        api::sources::list, api::sources::one, api::sources::put, api::sources::block,
        api::tasks::post, api::tasks::one, api::claims::post, api::claims::extend, api::claims::give_back,
        api::results::post, api::dead::list, api::dead::revive, api::collectors::list,
        api::rotations::list, api::rotations::one, api::rotations::put,
        api::turns::take, api::turns::extend, api::turns::pass,
        document, health::healthz, health::readyz, metrics::metrics,
    ),
    components(schemas(Problem)),
    tags(
        (name = "jobs", description = "What runs, and switching it."),
        (name = "nodes", description = "Where it runs."),
        (name = "audit", description = "Who did what."),
        (name = "dispatch", description = "Unique tasks for many collectors. The store's clock decides everything; delivery is at least once, and at most one result of a task is accepted."),
        (name = "rotations", description = "Types of work that take turns, one at a time, never sooner than their gaps allow. The store's clock decides everything; a turn that is neither extended nor passed goes on to the next when its lease ends."),
        (name = "health", description = "For load balancers and monitoring."),
    ),
    security(("token" = []), ("session" = [], "csrf" = [])),
    modifiers(&Doors),
)]
struct Description;

struct Doors;

impl Modify for Doors {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("sol_...")
            .description(Some("An API token (`soloist token new`)."))
            .build();
        components.add_security_scheme("token", SecurityScheme::Http(token));
        let session =
            ApiKeyValue::with_description("soloist", "The cookie of a signed-in browser.");
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
        let csrf = ApiKeyValue::with_description(
            "X-CSRF-Token",
            "The secret of the session, for requests that change something.",
        );
        components.add_security_scheme("csrf", SecurityScheme::ApiKey(ApiKey::Header(csrf)));
    }
}

/// The document.
#[must_use]
pub fn describe() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "health",
    responses(
        (status = 200, description = "The OpenAPI document.", body = serde_json::Value),
        (status = 401, description = "No login.", body = Problem, content_type = "application/problem+json")))]
pub async fn document(web: web::Data<Web>) -> HttpResponse {
    let mut document = describe();
    if auth::is_https(&web.config)
        && let Some(components) = &mut document.components
    {
        let session =
            ApiKeyValue::with_description("__Host-soloist", "The cookie of a signed-in browser.");
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
    }
    HttpResponse::Ok().json(document)
}
