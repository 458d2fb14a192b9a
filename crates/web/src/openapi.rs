//! `GET /api/v1/openapi.json`: the API described for machines, made from the handlers themselves.
//!
//! Tests compare it with the URL table, both ways, and with the schema of OpenAPI itself.

use std::sync::LazyLock;

use actix_web::{HttpResponse, web};
use serde_json::{Map, Value, json};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::auth;
use super::error::Problem;
use super::{Web, api, asyncapi, health, metrics, refusals, sse};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Soloist",
        description = "Runs a script exactly once in a cluster, for as long as somebody wants it. Errors are application/problem+json (RFC 9457). A request with the session cookie that changes something carries the CSRF secret in X-CSRF-Token; one with a token needs neither that nor an Origin. GET /live is a WebSocket (subprotocol soloist.v1); GET /api/v1/asyncapi.json describes its frames.",
    ),
    paths(
        api::status::get, api::jobs::list, api::jobs::one, api::participation::put, api::hold::put, api::hold::delete,
        api::moves::post, api::drill::post, api::drill::get, api::runs::list, api::log::list, api::log::text, api::timeline::list,
        api::ticks::next, api::ticks::list, api::ticks::post, api::ticks::delete, api::ticks::reset,
        api::nodes::list, api::nodes::drain, api::nodes::undrain, api::nodes::forget, api::leases::list, api::leases::post, api::leases::renew, api::leases::renew_all, api::leases::release,
        api::alerts::list, api::alerts::mute, api::alerts::test, api::audit::list,
        api::users::list, api::users::post, api::users::one, api::users::patch, api::users::delete,
        api::me::get, api::me::password, api::me::sessions, api::me::end_session,
        api::sessions::list, api::sessions::end,
        api::tokens::list, api::tokens::post, api::tokens::delete,
        api::sources::list, api::sources::one, api::sources::put, api::sources::remove, api::sources::block, api::sources::pause, api::sources::resume,
        api::tasks::post, api::tasks::list, api::tasks::one, api::tasks::remove, api::claims::post, api::claims::extend, api::claims::give_back,
        api::results::post, api::dead::list, api::dead::revive, api::collectors::list,
        api::rotations::list, api::rotations::one, api::rotations::put, api::rotations::remove,
        api::turns::take, api::turns::extend, api::turns::pass,
        document, asyncapi::document, sse::connect, health::healthz, health::readyz, metrics::metrics,
    ),
    components(schemas(Problem)),
    tags(
        (name = "jobs", description = "What runs, and switching it."),
        (name = "nodes", description = "Where it runs."),
        (name = "leases", description = "What is held, by whom, under which token."),
        (name = "alerts", description = "What somebody is told of, and by which way."),
        (name = "audit", description = "Who did what."),
        (name = "accounts", description = "Who may do what, where they are signed in, and their API tokens. A token makes no credentials, unless it is an admin's and bound to nothing."),
        (name = "dispatch", description = "Unique tasks for many collectors. The store's clock decides everything; delivery is at least once, and at most one result of a task is accepted."),
        (name = "rotations", description = "Types of work that take turns, one at a time, never sooner than their gaps allow. The store's clock decides everything; a turn that is neither extended nor passed goes on to the next when its lease ends."),
        (name = "live", description = "What happens, as it happens."),
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

/// A name, as `domain::name` checks it.
const NAME: &str = "^[a-z0-9][a-z0-9._-]{0,63}$";
/// What a client calls itself or its request.
const LABEL: &str = "^[!-~]{1,128}$";
/// The largest integer that every reader of JSON reads exactly.
const EXACT: u64 = (1 << 53) - 1;

/// What may stand in an address, by the name of its place there.
fn in_address(name: &str) -> Option<&'static str> {
    Some(match name {
        "job" | "node" | "source" | "rotation" | "user" | "name" | "alert" | "channel" => NAME,
        "id" => "^[0-9A-Za-z_-]{1,64}$",
        "claim" => "^[0-9A-Za-z-]{1,64}$",
        "tick" => r"^[^\x00-\x1f/]{1,300}$",
        "turn" => r"^(0|[1-9][0-9]{0,15})\.[0-9a-f]{32}$",
        _ => return None,
    })
}

/// Says of one schema, and of all that is in it, what the types of Rust do not: the patterns of names, and where
/// integers end.
pub(super) fn complete(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(complete),
        Value::Object(parts) => {
            parts.values_mut().for_each(complete);
            join(parts);
            let format = parts.get("format").and_then(Value::as_str);
            if let Some((pattern, longest)) = match format {
                Some("name") => Some((NAME, 64)),
                Some("label") => Some((LABEL, 128)),
                _ => None,
            } {
                parts.remove("format");
                parts.insert("pattern".to_owned(), pattern.into());
                parts.insert("minLength".to_owned(), 1.into());
                parts.insert("maxLength".to_owned(), longest.into());
            }
            let is_integer = match parts.get("type") {
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
                Some(kind) => kind == "integer",
                None => false,
            };
            if is_integer {
                end_integer(parts);
            }
        }
        _ => {}
    }
}

/// A schema that is made of objects is one object: rules stand among the other members.
fn join(parts: &mut Map<String, Value>) {
    let is_object = |one: &Value| one["properties"].is_object();
    let Some(Value::Array(all)) = parts.get("allOf") else { return };
    if !all.iter().all(is_object) {
        return;
    }
    let Some(Value::Array(all)) = parts.remove("allOf") else { return };
    for (name, more) in all.into_iter().filter_map(|one| one.as_object().cloned()).flatten() {
        match (parts.get_mut(&name), more) {
            (Some(Value::Object(have)), Value::Object(more)) => have.extend(more),
            (Some(Value::Array(have)), Value::Array(more)) => have.extend(more),
            (_, more) => drop(parts.insert(name, more)),
        }
    }
}

fn end_integer(parts: &mut Map<String, Value>) {
    let short = parts.get("format").is_some_and(|format| format == "int32");
    // `int32` has a sign: of those without one, half do not fit.
    let unsigned = parts.contains_key("minimum");
    if !parts.contains_key("maximum") && (unsigned || !short) {
        let most = if short { u64::from(u32::MAX) } else { EXACT };
        parts.insert("maximum".to_owned(), most.into());
    }
    let most = parts.get("maximum").and_then(Value::as_u64).unwrap_or_default();
    if short && most > i32::MAX as u64 {
        parts.insert("format".to_owned(), "int64".into());
    }
}

/// The document.
#[must_use]
pub fn describe() -> Value {
    #[expect(clippy::expect_used, reason = "made of constants; every test of it would fail")]
    let mut document = serde_json::to_value(Description::openapi()).expect("JSON");
    complete(&mut document);
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let operations = paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut);
    for operation in operations.flat_map(Map::values_mut) {
        let refusals = operation["operationId"].as_str().and_then(refusals::of);
        for (status, what) in refusals.into_iter().flatten() {
            let problem = json!({"schema": {"$ref": "#/components/schemas/Problem"}});
            operation["responses"][status] =
                json!({"description": what, "content": {"application/problem+json": problem}});
        }
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten().filter(|one| one["in"] == "path") {
            if let Some(pattern) = parameter["name"].as_str().and_then(in_address) {
                parameter["schema"]["pattern"] = pattern.into();
            }
        }
    }
    // An element of a list cannot be marked where it is declared.
    for body in ["ClaimBody", "NewTokenBody"] {
        let sources = format!("/components/schemas/{body}/properties/sources/items");
        if let Some(source) = document.pointer_mut(&sources) {
            source["pattern"] = NAME.into();
        }
    }
    document
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "health", operation_id = "describe",
    responses((status = 200, description = "The OpenAPI document.", body = serde_json::Value)))]
pub async fn document(web: web::Data<Web>) -> HttpResponse {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(describe);
    if !auth::is_https(&web.config()) {
        return HttpResponse::Ok().json(&*DOCUMENT);
    }
    let mut document = DOCUMENT.clone();
    document["components"]["securitySchemes"]["session"]["name"] = "__Host-soloist".into();
    HttpResponse::Ok().json(document)
}
