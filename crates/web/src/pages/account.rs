//! `GET /account` and its forms: how I am called, my time zone, my password, where I am signed in, my API tokens.
//!
//! A secret is shown in the answer to the form that made it, and nowhere again.

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::{Frame, whole, zone};
use crate::Web;
use crate::acts::account;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_ops::credentials::{self, Expiry};
use soloist_secrets::{PASSWORD_MIN, session_id};
use soloist_store::credentials::{ApiToken, OpenSession};
use soloist_view::words::{Arg, Language, Piece, day_clock, say};

#[derive(Template)]
#[template(path = "pages/account.html")]
pub(super) struct AccountPage {
    pub(super) frame: Frame,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) display_name: String,
    /// Every time zone, and whether it is the chosen one.
    pub(super) zones: Vec<(String, bool)>,
    pub(super) zone_rule: String,
    /// What the form that led here has done.
    pub(super) said: Option<String>,
    /// What was wrong with it.
    pub(super) error: Option<String>,
    /// A new token, this once.
    pub(super) secret: Option<String>,
    pub(super) minimum: usize,
    pub(super) rule: String,
    pub(super) sessions: Vec<SessionRow>,
    pub(super) tokens: Vec<TokenRow>,
    /// Days and what they are called; none: never.
    pub(super) lifetimes: Vec<(String, String, bool)>,
}

/// One session.
pub(super) struct SessionRow {
    pub(super) id: String,
    pub(super) browser: String,
    pub(super) from: String,
    pub(super) created: Vec<Piece>,
    pub(super) seen: Vec<Piece>,
    pub(super) current: bool,
}

impl SessionRow {
    pub(super) fn of(open: OpenSession, current: &str, lang: Language) -> Self {
        let unknown = || say(lang, "session-browser-unknown", &[]);
        Self {
            id: session_id(&open.hash),
            browser: open.session.user_agent.as_deref().map_or_else(unknown, browser),
            from: open.session.from,
            created: vec![day_clock(open.session.created)],
            seen: vec![day_clock(open.used)],
            current: open.hash == current,
        }
    }
}

/// The browser and the system that it names, as people call them; what is not known, as it says itself.
fn browser(agent: &str) -> String {
    let named = |known: &[(&str, &'static str)]| {
        known.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name)
    };
    // In this order: each of them also says that it is the one after it.
    let browser = named(&[
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("MicroMessenger", "WeChat"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = named(&[
        ("Windows", "Windows"),
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} · {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => agent.chars().filter(|c| !c.is_control()).take(60).collect(),
    }
}

/// One token.
pub(super) struct TokenRow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created: Vec<Piece>,
    pub(super) expires: Vec<Piece>,
    pub(super) used: Vec<Piece>,
}

impl TokenRow {
    pub(super) fn of(token: ApiToken, lang: Language) -> Self {
        let or =
            |at: Option<_>, id| vec![at.map_or_else(|| Piece::text(say(lang, id, &[])), day_clock)];
        Self {
            created: vec![day_clock(token.created)],
            expires: or(token.expires, "token-never"),
            used: or(token.last_used, "token-unused"),
            name: token.name,
            id: token.id,
        }
    }
}

/// What a form has done.
#[derive(Default)]
struct Done {
    said: Option<&'static str>,
    secret: Option<String>,
    error: Option<WebError>,
}

async fn show(web: &Web, caller: &Caller, done: Done) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let (actor, user) = (caller.actor(), Some(&caller.user));
    let sessions = credentials::sessions(&web.store, &actor, user).await?;
    let tokens = credentials::tokens(&web.store, &actor, user).await?;
    let title = say(lang, "account-title", &[]);
    let rule = [("n", Arg::from(i64::try_from(PASSWORD_MIN).unwrap_or(0)))];
    let current = caller.shown.hash();
    let frame = Frame::of(web, caller, "account", "/account".to_owned(), title);
    let page = AccountPage {
        name: caller.user.to_string(),
        role: frame.person.as_ref().map(|person| frame.say(person.role)).unwrap_or_default(),
        display_name: caller.display_name.clone().unwrap_or_default(),
        zones: zone::choices(caller.time_zone.as_deref()),
        zone_rule: zone::rule(&frame),
        said: done.said.map(|id| say(lang, id, &[])),
        error: done.error.as_ref().map(|error| error.sentence(lang)),
        secret: done.secret,
        minimum: PASSWORD_MIN,
        rule: say(lang, "password-rule", &rule),
        sessions: sessions.into_iter().map(|one| SessionRow::of(one, current, lang)).collect(),
        tokens: tokens.into_iter().map(|one| TokenRow::of(one, lang)).collect(),
        lifetimes: lifetimes(lang, actor.administers()),
        frame,
    };
    let mut answer = HttpResponse::Ok();
    if let Some(error) = &done.error {
        answer.status(error.status_code());
    }
    let mut answer = answer.content_type("text/html; charset=utf-8").body(whole(&page));
    if let Some(error) = &done.error {
        error.dress(&mut answer);
    }
    Ok(answer)
}

pub(super) fn lifetimes(lang: Language, never: bool) -> Vec<(String, String, bool)> {
    let mut choices: Vec<_> = [7_i64, 30, 90, 365]
        .into_iter()
        .map(|days| {
            (days.to_string(), say(lang, "token-days", &[("n", Arg::from(days))]), days == 90)
        })
        .collect();
    if never {
        choices.push(("never".to_owned(), say(lang, "token-never", &[]), false));
    }
    choices
}

/// `?said=`: which form led here.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as said above")]
pub struct Query {
    pub said: Option<String>,
}

/// Shows the account.
///
/// # Errors
/// [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let said = match query.said.as_deref() {
        Some("zone") => Some("account-zone-set"),
        Some("password") => Some("account-password-changed"),
        Some("session") => Some("account-session-ended"),
        Some("token") => Some("account-token-revoked"),
        Some("tokens") => Some("account-tokens-revoked"),
        _ => None,
    };
    show(&web, &caller, Done { said, ..Done::default() }).await
}

fn back(said: &str) -> HttpResponse {
    let location = format!("/account?said={said}");
    HttpResponse::SeeOther().insert_header((header::LOCATION, location)).finish()
}

/// After a form: the page again, with what was wrong.
pub(super) async fn or_again(
    web: &Web,
    caller: &Caller,
    done: Result<&'static str, WebError>,
) -> Result<HttpResponse, WebError> {
    match done {
        Ok(said) => Ok(back(said)),
        Err(error) => show(web, caller, Done { error: Some(error), ..Done::default() }).await,
    }
}

/// The three fields of a new password.
#[derive(Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Password {
    #[serde(default)]
    pub old: String,
    #[serde(default)]
    pub password: String,
    pub again: Option<String>,
}

/// `POST /account/password`.
///
/// # Errors
/// None that is not shown on the page, but [`WebError::Unavailable`].
pub async fn password(
    web: web::Data<Web>,
    caller: Caller,
    form: web::Form<Password>,
) -> Result<HttpResponse, WebError> {
    let Password { old, password, again } = form.into_inner();
    let done = match again.is_some_and(|again| again != password) {
        true => Err(WebError::told(StatusCode::BAD_REQUEST, "login-differ", &[])),
        false => account::change_password(&web, &caller, old, password).await,
    };
    or_again(&web, &caller, done.map(|()| "password")).await
}

/// `POST /account/sessions/{id}/end`.
///
/// # Errors
/// As [`credentials::end_session`].
pub async fn end_session(
    web: web::Data<Web>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let (actor, user) = (caller.actor(), Some(&caller.user));
    credentials::end_session(&web.store, &actor, user, &id).await?;
    Ok(back("session"))
}

/// A token to be made.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct NewToken {
    #[serde(default)]
    pub name: String,
    /// Days, or `never`.
    #[serde(default)]
    pub expires: String,
}

/// `POST /account/tokens`.
///
/// # Errors
/// None that is not shown on the page, but [`WebError::Unavailable`].
pub async fn new_token(
    web: web::Data<Web>,
    caller: Caller,
    form: web::Form<NewToken>,
) -> Result<HttpResponse, WebError> {
    let expiry = match (form.expires.as_str(), form.expires.parse::<u32>()) {
        ("never", _) => Expiry::Never,
        (_, Ok(days)) => Expiry::After(Duration::from_secs(u64::from(days) * 24 * 3_600)),
        _ => Expiry::Usual,
    };
    let (name, user) = (form.name.clone(), caller.user.clone());
    let token = ApiToken::new(user, name);
    let done = match account::new_token(&web, &caller, token, expiry).await {
        Ok((_, secret)) => {
            Done { said: Some("account-token-made"), secret: Some(secret), error: None }
        }
        Err(error) => Done { error: Some(error), ..Done::default() },
    };
    show(&web, &caller, done).await
}

/// `POST /account/tokens/{id}/revoke`.
///
/// # Errors
/// As [`credentials::revoke_token`].
pub async fn revoke_token(
    web: web::Data<Web>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    credentials::revoke_token(&web.store, &caller.actor(), &id).await?;
    Ok(back("token"))
}

/// `confirm=yes`, once asked back.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct All {
    pub confirm: Option<String>,
}

/// `POST /account/tokens/revoke`: all of the caller's.
///
/// # Errors
/// As [`credentials::revoke_token`].
pub async fn revoke_all(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    form: web::Form<All>,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    if form.confirm.as_deref() != Some("yes") {
        let title = say(lang, "tokens-revoke-all-title", &[]);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "account", "/account".to_owned(), title),
            text: say(lang, "tokens-revoke-all-text", &[]),
            action: "/account/tokens/revoke".to_owned(),
            fields: vec![],
            asks: false,
            yes: say(lang, "tokens-revoke-all", &[]),
            no: say(lang, "cancel", &[]),
            back: "/account".to_owned(),
        };
        return Ok(super::ask_back(&request, &confirm));
    }
    let actor = caller.actor();
    for token in credentials::tokens(&web.store, &actor, Some(&caller.user)).await? {
        credentials::revoke_token(&web.store, &actor, &token.id).await?;
    }
    Ok(back("tokens"))
}

#[cfg(test)]
mod tests {
    use super::browser;

    #[test]
    fn browsers_are_called_as_people_call_them() {
        for (agent, named) in [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
                "Edge · Windows",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox · Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
                "Safari · iPhone",
            ),
            ("curl/8.5.0", "curl/8.5.0"),
        ] {
            assert_eq!(browser(agent), named);
        }
    }
}
