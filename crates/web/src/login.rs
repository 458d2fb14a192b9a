//! Signing in and out: by password, or once by a link.
//!
//! No default password exists: the first admin is made through a one-time link that `serve` or `soloist link`
//! prints. Showing the form does not use the link up; sending the form does, for one of all who try.

use actix_web::cookie::Cookie;
use actix_web::http::{StatusCode, header};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, ResponseError as _, web};
use serde::Deserialize;

use super::Web;
use super::acts::account;
use super::auth::{self, Browser, Caller, Shown};
use super::csrf;
use super::error::WebError;
use super::hub::SIGNED_OUT;
use super::oidc;
use super::pages::away;
use super::pages::login::{self as page, LinkFor, LoginForm};
use super::refused::Refused;
use super::throttle::Attempt;

use soloist_domain::name::UserName;
use soloist_ops::{self as ops, Act, OpsError, Signature};
use soloist_secrets as secrets;
use soloist_store::StoreError;
use soloist_store::accounts::{Accounts, Role, User};
use soloist_store::credentials::{Credentials, Link};
use soloist_store::journal::Kind;
use soloist_view::words::Language;

/// Carries the secret that the sign-in form repeats; there is no session yet to keep it in.
const FORM_COOKIE: &str = "soloist-login";

/// `?next=&link=`.
#[derive(Debug, Default, Deserialize)]
#[expect(missing_docs, reason = "as in the address")]
pub struct Query {
    #[serde(default)]
    pub next: String,
    pub link: Option<String>,
}

/// What the form sends.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Fields {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub password: String,
    /// A new password once more.
    pub again: Option<String>,
    #[serde(default)]
    pub csrf: String,
    #[serde(default)]
    pub next: String,
    pub link: Option<String>,
}

/// `GET /login`.
///
/// # Errors
/// [`WebError::Unavailable`].
pub async fn form(
    web: web::Data<Web>,
    request: HttpRequest,
    caller: Option<Caller>,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    if caller.is_some() && query.link.is_none() {
        return Ok(see(&safe_next(&query.next), None));
    }
    if web.feed.outage().is_some() {
        // A form that cannot be answered is none.
        return Ok(away::answer(&web, &request));
    }
    Ok(show(&web, &request, "", &query.next, query.link.as_deref(), None).await)
}

/// `POST /login`.
///
/// # Errors
/// None that is not shown in the form.
pub async fn sign_in(
    web: web::Data<Web>,
    request: HttpRequest,
    fields: web::Form<Fields>,
) -> Result<HttpResponse, WebError> {
    let fields = fields.into_inner();
    let link = fields.link.as_deref().filter(|link| !link.is_empty());
    let entered = match check_form(&web, &request, &fields) {
        Ok(()) => match link {
            Some(link) => by_link(&web, &request, link, &fields).await,
            None => by_password(&web, &request, &fields).await,
        },
        Err(error) => Err(error),
    };
    match entered {
        Ok(user) => {
            // A new secret at every sign-in; an attacker who planted or knew the old one has nothing.
            if let Some(shown @ Shown::Session { .. }) = Shown::in_request(&request, &web.config())
                && let Some(before) =
                    web.store.peek_session(shown.hash(), auth::SESSION_IDLE).await?
            {
                // Whichever account it was of: the same browser is another account now.
                close(&web, &before.user, &shown).await?;
            }
            let cookie =
                auth::open_session(&web.store, &web.config(), &user, &Browser::of(&request))
                    .await?;
            Ok(see(&safe_next(&fields.next), Some(cookie)))
        }
        Err(error) => {
            refused(&web, &request, &fields, &error).await;
            Ok(show(&web, &request, &fields.name, &fields.next, link, Some(&error)).await)
        }
    }
}

/// Tells the door what it is to note. Who has no account is not named: what was typed may be a password.
async fn refused(web: &Web, request: &HttpRequest, fields: &Fields, error: &WebError) {
    let act = match error.status_code() {
        StatusCode::UNAUTHORIZED => Act::LoginFailed,
        StatusCode::TOO_MANY_REQUESTS => Act::LoginThrottled,
        StatusCode::FORBIDDEN if check_form(web, request, fields).is_err() => Act::RefusedForgery,
        StatusCode::FORBIDDEN => Act::LoginFailed,
        _ => return,
    };
    let account = match UserName::new(&fields.name) {
        Ok(name) => web.store.user(&name).await.ok().flatten(),
        Err(_) => None,
    };
    let who = account.map(|user| user.name.to_string());
    request.extensions_mut().insert(Refused { act, who });
}

/// `POST /logout`.
///
/// # Errors
/// [`WebError::Unavailable`].
pub async fn sign_out(
    web: web::Data<Web>,
    request: HttpRequest,
    caller: Option<Caller>,
) -> Result<HttpResponse, WebError> {
    let mut exit = None;
    if let Some(caller) = caller.filter(Caller::by_session) {
        close(&web, &caller.user, &caller.shown).await?;
        let user = caller.user.as_str();
        ops::note(&web.store, &caller.signature(), Act::Logout, user, None).await?;
        exit = oidc::exit(&web, &request, &caller.shown).await;
    }
    let mut gone =
        auth::cookie(&web.config(), auth::cookie_name(&web.config()), String::new(), None);
    gone.make_removal();
    let mut response = see(exit.as_deref().unwrap_or("/login"), Some(gone));
    // What pages keep in the browser goes with the session.
    let (name, value) = ("clear-site-data", r#""storage""#);
    response
        .headers_mut()
        .insert(header::HeaderName::from_static(name), header::HeaderValue::from_static(value));
    Ok(response)
}

pub(super) async fn close(web: &Web, user: &UserName, shown: &Shown) -> Result<(), WebError> {
    web.store.close_sessions(user, Some(shown.hash())).await?;
    web.identities.forget(shown);
    web.live.sign_out(shown, SIGNED_OUT);
    Ok(())
}

/// The form must be ours: by its secret, or by an origin that the browser vouches for.
fn check_form(web: &Web, request: &HttpRequest, fields: &Fields) -> Result<(), WebError> {
    let vouched = csrf::origin(request.headers())
        .is_some_and(|origin| csrf::is_ours(&web.config().public_url, origin));
    if vouched {
        return Ok(());
    }
    match auth::own_cookie(request, &web.config(), FORM_COOKIE) {
        Some(cookie)
            if !cookie.value().is_empty() && secrets::equal(cookie.value(), &fields.csrf) =>
        {
            Ok(())
        }
        _ => Err(WebError::told(StatusCode::FORBIDDEN, "login-form-old", &[])),
    }
}

async fn by_password(
    web: &Web,
    request: &HttpRequest,
    fields: &Fields,
) -> Result<UserName, WebError> {
    let from = auth::peer(request);
    let attempt = Attempt::new(&web.store, &fields.name, &from);
    attempt.admit().await?;
    let user = match UserName::new(&fields.name) {
        Ok(name) => web.store.user(&name).await?,
        Err(_) => None,
    };
    // An account without a password costs the same work as a wrong one.
    let phc = user.as_ref().and_then(|user| user.password_hash()).map(str::to_owned);
    let right = match web.passwords.check(phc, fields.password.clone()).await {
        Ok(right) => right,
        Err(busy) => {
            attempt.withdrawn().await?;
            return Err(busy.into());
        }
    };
    match user.filter(|_| right) {
        Some(user) if user.role == Role::Collector => {
            let who = [("user", user.name.as_str())];
            Err(WebError::told(StatusCode::FORBIDDEN, "login-collector", &who))
        }
        Some(user) => {
            attempt.succeeded().await?;
            note(web, user.name.as_str(), &from, Act::Login, None).await?;
            Ok(user.name)
        }
        None => Err(WebError::Unauthorized),
    }
}

async fn by_link(
    web: &Web,
    request: &HttpRequest,
    link: &str,
    fields: &Fields,
) -> Result<UserName, WebError> {
    let hash = secrets::sha256_hex(link);
    let from = auth::peer(request);
    let Some(found) = web.store.link(&hash, false).await? else { return Err(used_up()) };
    let user = match found.user {
        Some(name) if found.sets_password => {
            let user = web.store.user(&name).await?.ok_or_else(used_up)?;
            if user.role == Role::Collector {
                let who = [("user", name.as_str())];
                return Err(WebError::told(StatusCode::FORBIDDEN, "login-collector", &who));
            }
            let password = chosen(fields)?;
            let password = account::hash(web, &name, user.display_name, password).await?;
            take(web, &hash).await?;
            let by = Signature { who: name.to_string(), from: from.clone(), kind: Kind::Person };
            ops::accounts::set_by_link(&web.store, &by, &name, password).await?.name
        }
        Some(name) => {
            take(web, &hash).await?;
            let user = web.store.user(&name).await?.filter(|user| user.role == Role::Admin);
            user.map(|user| user.name).ok_or_else(|| {
                let who = [("user", name.as_str())];
                WebError::told(StatusCode::FORBIDDEN, "login-no-admin", &who)
            })?
        }
        None => {
            // Everything is checked before the link is used up.
            let users = web.store.users().await?;
            if has_admin(&users) {
                return Err(too_late());
            }
            let name = UserName::new(&fields.name)?;
            if users.iter().any(|user| user.name == name) {
                let taken = [("user", name.as_str())];
                return Err(WebError::told(StatusCode::CONFLICT, "refused-account-taken", &taken));
            }
            let password = account::hash(web, &name, None, chosen(fields)?).await?;
            take(web, &hash).await?;
            let user = User::new(name, Role::Admin, password);
            let by = Signature { who: "link".to_owned(), from: from.clone(), kind: Kind::Person };
            match ops::accounts::add_first(&web.store, &by, &user).await {
                Err(OpsError::Store(StoreError::Exists(_))) => Err(too_late()),
                other => Ok(other?),
            }?;
            user.name
        }
    };
    note(web, user.as_str(), &from, Act::Login, Some("by one-time link")).await?;
    Ok(user)
}

/// A new password, entered the same twice.
fn chosen(fields: &Fields) -> Result<String, WebError> {
    if fields.again.as_ref().is_some_and(|again| *again != fields.password) {
        return Err(WebError::told(StatusCode::BAD_REQUEST, "login-differ", &[]));
    }
    Ok(fields.password.clone())
}

/// Notes an act of `who` on their own account.
async fn note(
    web: &Web,
    who: &str,
    from: &str,
    act: Act,
    reason: Option<&str>,
) -> Result<(), WebError> {
    let by = Signature { who: who.to_owned(), from: from.to_owned(), kind: Kind::Person };
    Ok(ops::note(&web.store, &by, act, who, reason).await?)
}

async fn take(web: &Web, hash: &str) -> Result<Link, WebError> {
    web.store.link(hash, true).await?.ok_or_else(used_up)
}

fn used_up() -> WebError {
    WebError::told(StatusCode::FORBIDDEN, "login-link-used", &[])
}

fn has_admin(users: &[User]) -> bool {
    users.iter().any(|user| user.role == Role::Admin)
}

/// The link is good, but it makes the first admin, and there is one.
fn too_late() -> WebError {
    WebError::told(StatusCode::CONFLICT, "login-link-late", &[])
}

/// Only a path on this server: a sign-in must not send people elsewhere.
pub(super) fn safe_next(next: &str) -> String {
    let local = next.starts_with('/') && !next.starts_with("//") && !next.contains('\\');
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic());
    if local && plain && !next.starts_with("/log") { next.to_owned() } else { "/".to_owned() }
}

fn see(location: &str, cookie: Option<Cookie<'static>>) -> HttpResponse {
    let mut answer = HttpResponse::SeeOther();
    answer.insert_header((header::LOCATION, location));
    if let Some(cookie) = cookie {
        answer.cookie(cookie);
    }
    answer.finish()
}

/// The sign-in form, with what went wrong before.
pub(super) async fn show(
    web: &Web,
    request: &HttpRequest,
    name: &str,
    next: &str,
    link: Option<&str>,
    error: Option<&WebError>,
) -> HttpResponse {
    let language: Language = auth::preferred_language(request);
    let known = auth::own_cookie(request, &web.config(), FORM_COOKIE);
    let known = known.map(|cookie| cookie.value().to_owned());
    let csrf = known.filter(|value| value.len() == 64).unwrap_or_else(secrets::random_secret);
    let mut failure = error.cloned();
    let users = web.store.users().await;
    // Without an answer it is not known that there is no account.
    let nobody = users.as_ref().is_ok_and(Vec::is_empty);
    let no_admin = users.is_ok_and(|users| !has_admin(&users));
    let link_for = match link {
        None => None,
        Some(secret) => match web.store.link(&secrets::sha256_hex(secret), false).await {
            Ok(Some(Link { user: None, .. })) if no_admin => Some(LinkFor::FirstAdmin),
            Ok(Some(Link { user: None, .. })) => {
                failure = failure.or_else(|| Some(too_late()));
                None
            }
            Ok(Some(Link { user: Some(user), sets_password: true })) => {
                Some(LinkFor::Password(user.to_string()))
            }
            Ok(Some(Link { user: Some(user), .. })) => Some(LinkFor::User(user.to_string())),
            Ok(None) => {
                failure = failure.or_else(|| Some(used_up()));
                None
            }
            Err(error) => {
                failure = Some(error.into());
                None
            }
        },
    };
    let form = LoginForm {
        language,
        csrf: csrf.clone(),
        next: safe_next(next),
        name: name.chars().take(64).collect(),
        link: link_for.is_some().then(|| link.unwrap_or_default().to_owned()),
        link_for,
        nobody,
        sso: oidc::button(&web.config(), language, &safe_next(next)),
        error: failure.clone(),
    };
    let status = failure.as_ref().map_or(StatusCode::OK, |e| e.status_code());
    let mut answer = HttpResponse::build(status)
        .content_type("text/html; charset=utf-8")
        .cookie(auth::cookie(&web.config(), FORM_COOKIE, csrf, None))
        .body(page::render(request, &form));
    if let Some(error) = &failure {
        error.dress(&mut answer);
    }
    answer
}
