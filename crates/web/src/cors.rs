//! Front ends of operators on other origins (`allowed_origins`): what browsers are told, so that their pages may use the API.
//!
//! Only the API, and only with a token: credentials are never allowed, a cookie is no login there, and pages and forms know
//! nothing of it. An origin that is not listed gets no header. Who may connect to `/live` is decided in `live`.

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};

use super::csrf;
use soloist_config::Config;

/// Where pages of other origins may ask.
const API: &str = "/api/v1/";
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const REQUEST_HEADERS: &str = "authorization, content-type, last-event-id";
/// What pages may read of an answer besides what browsers always show them.
const EXPOSED: &str = "retry-after, allow, content-disposition, www-authenticate";
/// Seconds for which a browser need not ask again.
const REMEMBERED: &str = "600";

/// The origin of a request, if it is another than ours and allowed.
pub(super) fn front_end<'h>(config: &Config, headers: &'h HeaderMap) -> Option<&'h str> {
    let origin = csrf::origin(headers)?;
    let allowed = config.doors.allowed_origins.iter().any(|allowed| allowed == origin);
    (allowed && !csrf::is_ours(&config.public_url, origin)).then_some(origin)
}

/// Whether a page of an allowed origin asks the API.
pub(super) fn is_from_elsewhere(config: &Config, request: &HttpRequest) -> bool {
    request.path().starts_with(API) && front_end(config, request.headers()).is_some()
}

/// The answer to a browser that asks whether a page may send its request. It says nothing that the configuration does not.
pub(super) fn preflight(config: &Config, request: &HttpRequest) -> Option<HttpResponse> {
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks || !is_from_elsewhere(config, request) {
        return None;
    }
    let mut answer = HttpResponse::NoContent();
    answer
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, REMEMBERED));
    Some(answer.finish())
}

/// What every answer to `request` carries, refusals too.
pub(super) fn headers(config: &Config, request: &HttpRequest) -> Vec<(HeaderName, HeaderValue)> {
    // Without the key nothing depends on the origin.
    if config.doors.allowed_origins.is_empty() || !request.path().starts_with(API) {
        return Vec::new();
    }
    let mut put = vec![(header::VARY, HeaderValue::from_static("Origin"))];
    let origin = front_end(config, request.headers()).map(HeaderValue::from_str);
    if let Some(Ok(origin)) = origin {
        put.push((header::ACCESS_CONTROL_ALLOW_ORIGIN, origin));
        put.push((header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED)));
    }
    put
}
