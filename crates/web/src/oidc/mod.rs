//! Single sign-on by OpenID Connect: the code flow with PKCE, from the button to the session, and the way out.
//!
//! | file | what it does |
//! | --- | --- |
//! | `flow.rs` | what the browser keeps on the way |
//! | `provider.rs` | what is said to the provider |
//!
//! `ops::external` decides whose account a person gets. A provider that is away costs the button, nothing else: the form for
//! names and passwords needs no provider.

mod flow;
mod provider;

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use serde::Deserialize;
use url::form_urlencoded;

pub use self::provider::SingleSignOn;

use self::flow::Flow;
use self::provider::Trouble;
use super::Web;
use super::auth::{self, Browser, Caller, Shown};
use super::error::WebError;
use super::login::{close, safe_next, show};
use super::pages::away;
use super::refused::Refused;
use super::throttle::Attempt;
use soloist_config::{Config, Oidc};
use soloist_domain::detail::Detail;
use soloist_domain::time::StoreTime;
use soloist_ops::external::{Admission, Refusal, admit};
use soloist_ops::{self as ops, Act, Signature};
use soloist_secrets as secrets;
use soloist_store::accounts::User;
use soloist_store::credentials::Credentials as _;
use soloist_store::journal::Kind;
use soloist_view::words::{Language, visible};

const CALLBACK: &str = "/login/oidc/callback";
/// Longest text of the provider that is shown, in characters.
const TEXT_MAX: usize = 200;
/// The name of the cookie of a browser by which a person has signed in.
const KNOWN: &str = "soloist-known";
/// How long a browser is known by which a person has signed in, as the longest that browsers keep a cookie.
const KNOWN_FOR: Duration = Duration::from_secs(400 * 24 * 3_600);
/// A person who signs out waits no longer than this for the way to the provider.
const EXIT_MAX: Duration = Duration::from_secs(2);

/// `?next=`.
#[derive(Debug, Default, Deserialize)]
#[expect(missing_docs, reason = "as in the address")]
pub struct Query {
    #[serde(default)]
    pub next: String,
}

/// What the provider sends the browser back with (RFC 6749, section 4.1.2; RFC 9207).
#[derive(Debug, Default, Deserialize)]
#[expect(missing_docs, reason = "as in the address")]
pub struct Answer {
    pub code: Option<String>,
    pub state: Option<String>,
    pub iss: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

/// What the sign-in page offers: the words of the button and where it leads.
#[must_use]
pub fn button(config: &Config, language: Language, next: &str) -> Option<(String, String)> {
    let button = &config.oidc.as_ref()?.button;
    let words = match language {
        Language::En => &button.en,
        Language::Zh => &button.zh,
    };
    let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    Some((words.clone(), format!("/login/oidc?next={next}")))
}

/// `GET /login/oidc`: on to the provider.
///
/// # Errors
/// 404 while single sign-on is not set up; all else is shown with the sign-in form.
pub async fn start(
    web: web::Data<Web>,
    request: HttpRequest,
    caller: Option<Caller>,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let config = web.config();
    let rules = config.oidc.as_ref().ok_or_else(off)?;
    let next = safe_next(&query.next);
    if caller.is_some() {
        return Ok(HttpResponse::SeeOther().insert_header((header::LOCATION, next)).finish());
    }
    let Some(now) = store_now(&web) else { return Ok(away::answer(&web, &request)) };
    let flow = Flow::begin(now, &next);
    let entrance = async {
        let provider = web.sso.provider(rules).await?;
        provider.entrance(&redirect(&config), &flow)
    };
    match entrance.await {
        Ok(entrance) => Ok(HttpResponse::SeeOther()
            .insert_header((header::LOCATION, entrance))
            .cookie(flow.cookie(&config))
            .finish()),
        Err(trouble) => {
            let error = told(&trouble);
            Ok(show(&web, &request, "", &next, None, Some(&error)).await)
        }
    }
}

/// `GET /login/oidc/callback`: back from the provider.
///
/// # Errors
/// As [`start`].
pub async fn callback(
    web: web::Data<Web>,
    request: HttpRequest,
    answer: web::Query<Answer>,
) -> Result<HttpResponse, WebError> {
    let config = web.config();
    let rules = config.oidc.as_ref().ok_or_else(off)?;
    let Some(now) = store_now(&web) else { return Ok(away::answer(&web, &request)) };
    let flow = Flow::of(&request, &config, now);
    let next = flow.as_ref().map_or_else(|| "/".to_owned(), |flow| safe_next(&flow.next));
    let answer = answer.into_inner();
    let entered = match flow.filter(|flow| is_answer_to(&answer, flow)) {
        Some(flow) => enter(&web, &request, rules, &flow, answer).await,
        // Begun by another person, elsewhere or long ago: the provider is not even asked.
        None => {
            let from = auth::peer(&request);
            tracing::info!(from, "single sign-on: an answer that this browser did not ask for");
            Err(WebError::told(StatusCode::FORBIDDEN, "sso-old", &[]))
        }
    };
    let mut response = match entered {
        Ok(user) => signed_in(&web, &request, &user, &next).await?,
        Err(error) => show(&web, &request, "", &next, None, Some(&error)).await,
    };
    if let Err(error) = response.add_cookie(&flow::over(&config)) {
        tracing::debug!(%error, "the cookie of the sign-in stays until it is old");
    }
    Ok(response)
}

/// Where to send a browser that signs out, when the provider is to end its session, too: only for a person who came by it.
pub async fn exit(web: &Web, request: &HttpRequest, shown: &Shown) -> Option<String> {
    let config = web.config();
    let rules = config.oidc.as_ref()?;
    let came = request.cookie(mark_name(&config))?;
    if came.value() != mark(shown.hash()) {
        return None;
    }
    let provider = tokio::time::timeout(EXIT_MAX, web.sso.provider(rules)).await.ok()?.ok()?;
    provider.exit(&format!("{}/login", config.public_url))
}

async fn enter(
    web: &Web,
    request: &HttpRequest,
    rules: &std::sync::Arc<Oidc>,
    flow: &Flow,
    answer: Answer,
) -> Result<User, WebError> {
    let from = auth::peer(request);
    // Each refused answer costs a call to the provider and an entry in the audit. Attempts are judged as those with a password are: who has
    // signed in from here by this browser is judged alone, all others of this address together, because nobody knows yet who they are.
    let known = auth::own_cookie(request, &web.config(), KNOWN);
    let account = known.map_or_else(secrets::random_secret, |known| known.value().to_owned());
    let attempt = Attempt::new(&web.store, &account, &from);
    attempt.admit().await?;
    let Some(place) = web.sso.place() else {
        attempt.withdrawn().await?;
        return Err(too_many());
    };
    let proved = prove(web, rules, flow, answer).await;
    drop(place);
    let (who, error) = match proved {
        Ok(person) => match admit(&web.store, rules, &person, &from).await? {
            Admission::In(user) => {
                attempt.withdrawn().await?;
                Attempt::new(&web.store, &known_by(&user), &from).succeeded().await?;
                return Ok(user);
            }
            Admission::Refused(refusal) => {
                let (name, error) = refused(&refusal);
                (name, error)
            }
        },
        Err(trouble) => {
            // Quoted: it may hold line breaks of a stranger.
            tracing::warn!(from, why = ?trouble.to_string(), "single sign-on: nobody was signed in");
            if let Trouble::Away(_) = trouble {
                attempt.withdrawn().await?;
            }
            ("unknown".to_owned(), told(&trouble))
        }
    };
    let who = format!("oidc:{who}");
    // The door writes it down.
    request.extensions_mut().insert(Refused { act: Act::LoginFailed, who: Some(who) });
    Err(error)
}

async fn prove(
    web: &Web,
    rules: &std::sync::Arc<Oidc>,
    flow: &Flow,
    answer: Answer,
) -> Result<ops::external::Identity, Trouble> {
    if answer.iss.is_some_and(|issuer| issuer != rules.issuer) {
        return Err(Trouble::Unproved("another issuer answered".to_owned()));
    }
    if let Some(error) = answer.error {
        let more = answer.error_description.filter(|text| !text.trim().is_empty());
        return Err(Trouble::Said(more.map_or(error.clone(), |more| format!("{error}: {more}"))));
    }
    let code = answer.code.filter(|code| !code.is_empty());
    let code = code.ok_or_else(|| Trouble::Unproved("there is no code".to_owned()))?;
    web.sso.redeem(rules, &redirect(&web.config()), flow, code).await
}

async fn signed_in(
    web: &Web,
    request: &HttpRequest,
    user: &User,
    next: &str,
) -> Result<HttpResponse, WebError> {
    let config = web.config();
    // What was known before is worth nothing, whichever person's session it was.
    if let Some(shown @ Shown::Session { .. }) = Shown::in_request(request, &config)
        && let Some(before) = web.store.peek_session(shown.hash(), auth::SESSION_IDLE).await?
    {
        close(web, &before.user, &shown).await?;
    }
    let cookie = auth::open_session(&web.store, &config, &user.name, &Browser::of(request)).await?;
    let name = user.name.to_string();
    let by = Signature { who: name.clone(), from: auth::peer(request), kind: Kind::Person };
    ops::note(&web.store, &by, Act::Login, &name, Some("by single sign-on")).await?;
    let mark = mark(&secrets::sha256_hex(cookie.value()));
    let mark = auth::cookie(&config, mark_name(&config), mark, Some(auth::SESSION_LIFETIME));
    let known = auth::cookie(&config, KNOWN, known_by(user), Some(KNOWN_FOR));
    Ok(HttpResponse::SeeOther()
        .insert_header((header::LOCATION, next))
        .cookie(cookie)
        .cookie(mark)
        .cookie(known)
        .finish())
}

fn is_answer_to(answer: &Answer, flow: &Flow) -> bool {
    answer.state.as_ref().is_some_and(|state| secrets::equal(state, &flow.state()))
}

/// Says of a browser's session that it came by the provider. It allows nothing.
fn mark(session: &str) -> String {
    secrets::sha256_hex(&format!("by single sign-on: {session}"))
}

fn mark_name(config: &Config) -> &'static str {
    if auth::is_https(config) { "__Host-soloist-sso" } else { "soloist-sso" }
}

/// What a browser keeps by which a person has signed in: a name for counting, made of the account's. It allows nothing.
fn known_by(user: &User) -> String {
    secrets::sha256_hex(&format!("known by single sign-on: {}", user.name))
}

fn too_many() -> WebError {
    WebError::TooMany {
        detail: Detail::new("too many sign in at once: wait 2 s and try again")
            .told("refused-sign-ins", &[("s", &2)]),
        retry_after: 2,
    }
}

/// The address that is registered at the provider.
fn redirect(config: &Config) -> String {
    format!("{}{CALLBACK}", config.public_url)
}

/// The store's clock, which all nodes share; `None` while the store is away: then no person can be signed in.
fn store_now(web: &Web) -> Option<StoreTime> {
    web.feed.store_now().filter(|_| web.feed.outage().is_none())
}

fn off() -> WebError {
    WebError::told(StatusCode::NOT_FOUND, "sso-off", &[])
}

fn told(trouble: &Trouble) -> WebError {
    match trouble {
        Trouble::Away(_) => WebError::told(StatusCode::SERVICE_UNAVAILABLE, "sso-away", &[]),
        Trouble::Said(text) => {
            // One line, nothing invisible; it is a stranger's text.
            let line = visible(&text.replace(char::is_control, " ")).into_owned();
            let mut cut: String = line.chars().take(TEXT_MAX).collect();
            if line.chars().count() > TEXT_MAX {
                cut.push('…');
            }
            WebError::told(StatusCode::FORBIDDEN, "sso-said", &[("text", &cut)])
        }
        Trouble::Unproved(_) => WebError::told(StatusCode::FORBIDDEN, "sso-unproved", &[]),
    }
}

fn refused(refusal: &Refusal) -> (String, WebError) {
    let told = |id, args: &[(&'static str, &str)]| WebError::told(StatusCode::FORBIDDEN, id, args);
    let (name, error) = match refusal {
        Refusal::NoRole { name } => (Some(name), told("sso-no-role", &[("user", name.as_str())])),
        Refusal::NoAccount { name, subject } => {
            (Some(name), told("sso-no-account", &[("user", name.as_str()), ("subject", subject)]))
        }
        Refusal::NameTaken { name, subject } => {
            (Some(name), told("sso-taken", &[("user", name.as_str()), ("subject", subject)]))
        }
        Refusal::Collector { name } => {
            (Some(name), told("login-collector", &[("user", name.as_str())]))
        }
        Refusal::NoLocalAdmin => (None, told("sso-first", &[])),
        Refusal::NoSubject => (None, told("sso-unproved", &[])),
    };
    (name.map_or_else(|| "unknown".to_owned(), ToString::to_string), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_provider_says_is_short_and_in_one_line() {
        let long = format!("access_denied: a\nb\u{202e}c {}", "x".repeat(500));
        let WebError::Told { args, .. } = told(&Trouble::Said(long)) else { panic!("told") };
        let text = format!("{:?}", args[0].1);
        assert!(text.contains("access_denied: a b<U+202E>c x"), "{text}");
        assert!(text.len() < 250 && text.contains('…'), "{text}");
    }
}
