//! A build without single sign-on: a node does not start with `[oidc]` in its configuration (`build.rs`), so nobody is offered it.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;

use super::Web;
use super::auth::Shown;
use super::error::WebError;
use soloist_config::Config;
use soloist_view::words::Language;

/// Nothing is known of any provider.
#[derive(Clone, Default)]
pub struct SingleSignOn(());

impl SingleSignOn {
    /// `None`: the usual one.
    #[must_use]
    pub fn policy(&self, _config: &Config) -> Option<HeaderValue> {
        None
    }
}

/// No button.
#[must_use]
pub fn button(_config: &Config, _language: Language, _next: &str) -> Option<(String, String)> {
    None
}

/// No session of a provider is to end.
pub(super) async fn exit(_web: &Web, _request: &HttpRequest, _shown: &Shown) -> Option<String> {
    None
}

/// `GET /login/oidc` and what comes back from there.
///
/// # Errors
/// 404.
pub async fn start() -> Result<String, WebError> {
    Err(WebError::told(StatusCode::NOT_FOUND, "sso-off", &[]))
}

pub use start as callback;
