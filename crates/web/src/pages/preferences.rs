//! `POST /preferences`: language, theme and display name, and nothing else of the account. The first two are kept with the account, or in cookies before there is one.

use std::time::Duration;

use actix_web::cookie::Cookie;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::local;
use crate::Web;
use crate::auth::{self, Caller};
use crate::error::WebError;
use soloist_domain::detail::Detail;
use soloist_ops::accounts;
use soloist_store::StoreError;
use soloist_store::accounts::{Accounts, Changes};
use soloist_view::words::Language;

/// Holds `en` or `zh`.
pub const LANGUAGE_COOKIE: &str = "soloist-language";
/// Holds `light` or `dark`.
pub const THEME_COOKIE: &str = "soloist-theme";
const KEPT_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

/// What was chosen; what is absent stays.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Choice {
    pub language: Option<String>,
    /// `light`, `dark` or `system`.
    pub theme: Option<String>,
    /// Empty: none.
    pub display_name: Option<String>,
    #[serde(default)]
    pub back: String,
}

/// The language this browser chose before it signed in.
#[must_use]
pub fn language(request: &HttpRequest) -> Option<Language> {
    Language::named(chosen(request, LANGUAGE_COOKIE)?.value())
}

/// The theme this browser chose before it signed in.
#[must_use]
pub fn theme(request: &HttpRequest) -> Option<String> {
    known_theme(chosen(request, THEME_COOKIE)?.value())
}

fn chosen(request: &HttpRequest, name: &str) -> Option<Cookie<'static>> {
    let web = request.app_data::<web::Data<Web>>()?;
    auth::own_cookie(request, &web.config(), name)
}

fn known_theme(text: &str) -> Option<String> {
    ["light", "dark"].contains(&text).then(|| text.to_owned())
}

/// Keeps a choice and goes back.
///
/// # Errors
/// [`WebError::BadRequest`] for an unknown language or theme, [`WebError::Unavailable`].
pub async fn save(
    web: web::Data<Web>,
    caller: Option<Caller>,
    form: web::Form<Choice>,
) -> Result<HttpResponse, WebError> {
    let language = match form.language.as_deref() {
        None => None,
        Some(text) => Some(Language::named(text).ok_or_else(|| {
            WebError::bad(Detail::new("field language: use en or zh").told("refused-form", &[]))
        })?),
    };
    if form.theme.as_deref().is_some_and(|t| t != "system" && known_theme(t).is_none()) {
        return Err(WebError::bad(
            Detail::new("field theme: use light, dark or system").told("refused-form", &[]),
        ));
    }
    if let Some(caller) = caller {
        if let Some(text) = &form.display_name {
            let shown = accounts::display_name(text)?;
            if shown != caller.display_name {
                let (actor, user) = (caller.actor(), &caller.user);
                accounts::change_display_name(&web.store, &actor, user, shown).await?;
            }
        }
        let changes = Changes {
            language: language.map(|language| language.as_str().to_owned()),
            theme: form.theme.as_deref().map(known_theme),
            ..Changes::default()
        };
        if changes != Changes::default() {
            match web.store.change_user(&caller.user, &changes).await {
                // It was removed a moment ago: the cookies are set all the same.
                Err(StoreError::NotFound(_)) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut answer = HttpResponse::SeeOther();
    answer.insert_header((header::LOCATION, local(&form.back)));
    if let Some(language) = language {
        let value = language.as_str().to_owned();
        answer.cookie(auth::cookie(&web.config(), LANGUAGE_COOKIE, value, Some(KEPT_FOR)));
    }
    if let Some(theme) = &form.theme {
        let mut cookie = auth::cookie(&web.config(), THEME_COOKIE, theme.clone(), Some(KEPT_FOR));
        if known_theme(theme).is_none() {
            cookie.make_removal();
        }
        answer.cookie(cookie);
    }
    Ok(answer.finish())
}
