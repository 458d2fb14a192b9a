//! `GET /people/{user}` and its forms, for admins: where a person is signed in, their tokens, what they have switched on.
//!
//! Acts that the list of people has as well (`people.rs`) are linked from here and carried out there.

use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use askama::Template;
use serde::Deserialize;

use super::account::{SessionRow, TokenRow};
use super::confirm::Confirm;
use super::people::{PersonRow, Sure, about};
use super::{Frame, ask_back, seen_other, whole};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::detail::Detail;
use soloist_domain::name::{JobName, UserName};
use soloist_ops::{accounts, credentials};
use soloist_store::accounts::User;
use soloist_view::words::{Arg, Language, Piece, day_clock, grouped, say};

#[derive(Template)]
#[template(path = "pages/person.html")]
pub(super) struct PersonPage {
    pub(super) frame: Frame,
    pub(super) row: PersonRow,
    pub(super) role: String,
    pub(super) groups: String,
    pub(super) seen: Option<Vec<Piece>>,
    pub(super) said: Option<String>,
    pub(super) error: Option<String>,
    /// What was typed, or what it is.
    pub(super) display_name: String,
    pub(super) sessions: Vec<SessionRow>,
    pub(super) tokens: Vec<TokenRow>,
    /// Name and title of what they have switched on, and whether no other person did.
    pub(super) jobs: Vec<(String, String, bool)>,
}

/// What a form has done.
#[derive(Default)]
struct Done {
    said: Option<&'static str>,
    error: Option<WebError>,
    display_name: Option<String>,
}

/// The page of an account.
pub(super) fn at(name: &UserName) -> String {
    format!("/people/{name}")
}

fn titles(web: &Web, wanted: Vec<(JobName, bool)>, lang: Language) -> Vec<(String, String, bool)> {
    let titled = wanted.into_iter().map(|(job, last)| {
        let known = web.live.job_named(job.as_str());
        let title = known.map_or_else(
            || job.to_string(),
            |known| match lang {
                Language::En => known.title.en.clone(),
                Language::Zh => known.title.zh.clone(),
            },
        );
        (job.to_string(), title, last)
    });
    titled.collect()
}

async fn wants(
    web: &Web,
    caller: &Caller,
    name: &UserName,
) -> Result<Vec<(String, String, bool)>, WebError> {
    let jobs: Vec<JobName> = web.live.jobs().iter().map(|job| job.name.clone()).collect();
    let wanted = accounts::wants(&web.store, &caller.actor(), name, &jobs).await?;
    Ok(titles(web, wanted, caller.language))
}

async fn show(
    web: &Web,
    caller: &Caller,
    user: User,
    done: Done,
) -> Result<HttpResponse, WebError> {
    let (lang, actor, name) = (caller.language, caller.actor(), user.name.clone());
    let sessions = credentials::sessions(&web.store, &actor, Some(&name)).await?;
    let tokens = credentials::tokens(&web.store, &actor, Some(&name)).await?;
    let used = sessions.iter().map(|one| one.used).chain(tokens.iter().filter_map(|t| t.last_used));
    let seen = used.max().map(|at| vec![day_clock(at)]);
    let current = caller.shown.hash();
    let role = super::people::roles(lang).into_iter().find(|(role, _)| *role == user.role.as_str());
    let page = PersonPage {
        frame: Frame::of(web, caller, "people", at(&name), name.to_string()),
        role: role.map(|(_, word)| word).unwrap_or_default(),
        groups: user.groups.join(&say(lang, "list-separator", &[])),
        seen,
        said: done.said.filter(|_| done.error.is_none()).map(|id| say(lang, id, &[])),
        error: done.error.as_ref().map(|error| error.sentence(lang)),
        display_name: done
            .display_name
            .unwrap_or_else(|| user.display_name.clone().unwrap_or_default()),
        sessions: sessions.into_iter().map(|one| SessionRow::of(one, current, lang)).collect(),
        tokens: tokens.into_iter().map(|one| TokenRow::of(one, lang)).collect(),
        jobs: wants(web, caller, &name).await?,
        row: PersonRow::of(user, caller.user.as_str()),
    };
    let mut answer = HttpResponse::Ok();
    if let Some(error) = &done.error {
        answer.status(error.status_code());
    }
    Ok(answer.content_type("text/html; charset=utf-8").body(whole(&page)))
}

/// `?said=`: which form led here.
#[derive(Debug, Deserialize)]
pub struct Query {
    said: Option<String>,
}

/// Shows an account.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    user: web::Path<String>,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let user = accounts::one(&web.store, &caller.actor(), &user).await?;
    let said = match query.said.as_deref() {
        Some("session") => Some("account-session-ended"),
        Some("token") => Some("account-token-revoked"),
        Some("name") => Some("person-name-saved"),
        Some("sessions") => Some("person-signed-out"),
        Some("link") => Some("person-link-withdrawn"),
        _ => None,
    };
    show(&web, &caller, user, Done { said, ..Done::default() }).await
}

/// `display_name=`.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Name {
    #[serde(default)]
    pub display_name: String,
}

/// `POST /people/{user}/name`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`]; others are shown on the page.
pub async fn name(
    web: web::Data<Web>,
    caller: Caller,
    user: web::Path<String>,
    form: web::Form<Name>,
) -> Result<HttpResponse, WebError> {
    let actor = caller.actor();
    let user = accounts::one(&web.store, &actor, &user).await?;
    let done = async {
        let shown = accounts::display_name(&form.display_name)?;
        accounts::change_display_name(&web.store, &actor, &user.name, shown).await
    };
    match done.await {
        Ok(_) => Ok(seen_other(&(at(&user.name) + "?said=name"))),
        Err(error) => {
            let display_name = Some(form.display_name.clone());
            let done = Done { error: Some(error.into()), display_name, ..Done::default() };
            show(&web, &caller, user, done).await
        }
    }
}

/// `POST /people/{user}/sessions/{id}/end`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn end_session(
    web: web::Data<Web>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, WebError> {
    let actor = caller.actor();
    let user = accounts::one(&web.store, &actor, &path.0).await?;
    credentials::end_session(&web.store, &actor, Some(&user.name), &path.1).await?;
    Ok(seen_other(&(at(&user.name) + "?said=session")))
}

/// `POST /people/{user}/sessions/end`: everywhere; asked back for.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn end_sessions(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    user: web::Path<String>,
    form: web::Form<Sure>,
) -> Result<HttpResponse, WebError> {
    let (lang, actor) = (caller.language, caller.actor());
    let user = accounts::one(&web.store, &actor, &user).await?;
    if form.confirm.as_deref() == Some("yes") {
        credentials::end_sessions(&web.store, &actor, &user.name).await?;
        return Ok(seen_other(&(at(&user.name) + "?said=sessions")));
    }
    let open = credentials::sessions(&web.store, &actor, Some(&user.name)).await?.len();
    let n = ("n", Arg::from(i64::try_from(open).unwrap_or(i64::MAX)));
    let title = about(lang, "person-sign-out-title", user.name.as_str());
    let confirm = Confirm {
        frame: Frame::of(&web, &caller, "people", at(&user.name), title),
        text: say(lang, "person-sign-out-text", &[n]),
        action: at(&user.name) + "/sessions/end",
        fields: vec![],
        asks: false,
        yes: say(lang, "person-sign-out", &[]),
        no: say(lang, "cancel", &[]),
        back: at(&user.name),
    };
    Ok(ask_back(&request, &confirm))
}

/// `POST /people/{user}/tokens/{id}/revoke`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn revoke(
    web: web::Data<Web>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, WebError> {
    let actor = caller.actor();
    let user = accounts::one(&web.store, &actor, &path.0).await?;
    let own = credentials::tokens(&web.store, &actor, Some(&user.name)).await?;
    if !own.iter().any(|token| token.id == path.1) {
        let id: String = path.1.chars().take(64).collect();
        let why = Detail::new(format!("{} has no token {id:?}", user.name));
        return Err(WebError::not_found(why.told("refused-no-token", &[])));
    }
    credentials::revoke_token(&web.store, &actor, &path.1).await?;
    Ok(seen_other(&(at(&user.name) + "?said=token")))
}

/// `POST /people/{user}/link/withdraw`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`]; others are shown on the page.
pub async fn withdraw(
    web: web::Data<Web>,
    caller: Caller,
    user: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let actor = caller.actor();
    let user = accounts::one(&web.store, &actor, &user).await?;
    match accounts::withdraw(&web.store, &actor, &user).await {
        Ok(()) => Ok(seen_other(&(at(&user.name) + "?said=link"))),
        Err(error) => {
            show(&web, &caller, user, Done { error: Some(error.into()), ..Done::default() }).await
        }
    }
}

/// What goes with an account: how many sessions and tokens end, and what it has switched on.
///
/// # Errors
/// [`WebError::Unavailable`].
pub(super) async fn losses(web: &Web, caller: &Caller, user: &User) -> Result<String, WebError> {
    let (lang, actor, owner) = (caller.language, caller.actor(), Some(&user.name));
    let sessions = credentials::sessions(&web.store, &actor, owner).await?.len();
    let tokens = credentials::tokens(&web.store, &actor, owner).await?.len();
    let number = |n: usize| Arg::from(grouped(n as u64));
    let ended = [("sessions", number(sessions)), ("tokens", number(tokens))];
    let mut said = vec![say(lang, "person-loses", &ended)];
    let wanted = wants(web, caller, &user.name).await?;
    let gap = say(lang, "list-separator", &[]);
    for (stops, id) in [(true, "person-stops"), (false, "person-leaves")] {
        let these: Vec<&str> = wanted
            .iter()
            .filter(|(_, _, last)| *last == stops)
            .map(|(name, ..)| name.as_str())
            .collect();
        if !these.is_empty() {
            said.push(say(lang, id, &[("jobs", Arg::from(these.join(&gap)))]));
        }
    }
    Ok(said.join(&say(lang, "sentence-gap", &[])))
}
