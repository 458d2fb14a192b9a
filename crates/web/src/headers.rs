//! The headers that every answer carries, whichever code gives it.

use actix_web::http::header::{self, HeaderName, HeaderValue};

use super::auth;
use soloist_config::Config;

/// Nothing from elsewhere, nothing inline, never in a frame.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
    (header::CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
];
const HSTS: (HeaderName, &str) =
    (header::STRICT_TRANSPORT_SECURITY, "max-age=31536000; includeSubDomains");

/// The headers of a server with this configuration.
pub fn always(config: &Config) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let hsts = auth::is_https(config).then_some(HSTS);
    ALWAYS.into_iter().chain(hsts).map(|(name, value)| (name, HeaderValue::from_static(value)))
}

/// The same as lines of an answer, with the one that forbids to keep it.
pub fn lines(config: &Config) -> String {
    let uncached = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let all = always(config).chain([uncached]);
    all.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap_or_default())).collect()
}
