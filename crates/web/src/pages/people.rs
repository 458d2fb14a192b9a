//! `GET /people` and its forms, for admins: who has an account, and what they may do.
//!
//! A link is shown in the answer to the form that made it, and nowhere again.

use std::collections::HashMap;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::person::losses;
use super::{Frame, ask_back, whole};
use crate::Web;
use crate::api::users::{self, NewUserBody};
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::detail::Detail;
use soloist_domain::name::UserName;
use soloist_domain::time::StoreTime;
use soloist_ops::{accounts, credentials};
use soloist_store::accounts::{NO_PASSWORD, Role, User};
use soloist_view::words::{Arg, Language, Piece, day_clock, say};

#[derive(Template)]
#[template(path = "pages/people.html")]
pub(super) struct PeoplePage {
    pub(super) frame: Frame,
    pub(super) people: Vec<PersonRow>,
    pub(super) roles: Vec<(&'static str, String)>,
    pub(super) said: Option<String>,
    pub(super) error: Option<String>,
    /// Whom a link is for, and the link, this once.
    pub(super) link: Option<(String, String)>,
    /// What was typed before.
    pub(super) typed: Typed,
}

impl PeoplePage {
    /// A message about an account.
    fn about(&self, id: &str, user: &str) -> String {
        about(self.frame.lang, id, user)
    }
}

/// What the form for a new account had in it.
#[derive(Default)]
pub(super) struct Typed {
    pub(super) name: String,
    pub(super) display_name: String,
    pub(super) role: String,
}

/// One account.
pub(super) struct PersonRow {
    pub(super) name: String,
    pub(super) display_name: Option<String>,
    pub(super) role: &'static str,
    pub(super) created: Vec<Piece>,
    /// The newest sign of them: an act in a session, or a use of a token.
    pub(super) seen: Vec<Piece>,
    /// It waits for its person to set a password.
    pub(super) invited: bool,
    /// Has no password and needs none.
    pub(super) collector: bool,
    /// The reader's own.
    pub(super) own: bool,
}

impl PersonRow {
    pub(super) fn of(user: User, reader: &str) -> Self {
        let collector = user.role == Role::Collector;
        Self {
            own: user.name.as_str() == reader,
            name: user.name.to_string(),
            display_name: user.display_name,
            role: user.role.as_str(),
            created: vec![day_clock(user.created)],
            seen: Vec::new(),
            invited: user.password == NO_PASSWORD && !collector,
            collector,
        }
    }
}

pub(super) fn roles(lang: Language) -> Vec<(&'static str, String)> {
    let roles = [
        (Role::Viewer, "role-viewer"),
        (Role::Operator, "role-operator"),
        (Role::Admin, "role-admin"),
        (Role::Collector, "role-collector"),
    ];
    roles.map(|(role, id)| (role.as_str(), say(lang, id, &[]))).into()
}

/// What a form has done.
#[derive(Default)]
struct Done {
    said: Option<String>,
    link: Option<(String, String)>,
    error: Option<WebError>,
    typed: Typed,
}

async fn show(web: &Web, caller: &Caller, done: Done) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let actor = caller.actor();
    let people = accounts::list(&web.store, &actor).await?;
    let mut seen: HashMap<UserName, StoreTime> = HashMap::new();
    let sessions = credentials::sessions(&web.store, &actor, None).await?.into_iter();
    let tokens = credentials::tokens(&web.store, &actor, None).await?.into_iter();
    let used = sessions.map(|one| (one.session.user, one.used));
    for (name, at) in used.chain(tokens.filter_map(|one| Some((one.user, one.last_used?)))) {
        let newest = seen.entry(name).or_insert(at);
        *newest = at.max(*newest);
    }
    let row = |user: User| {
        let seen = seen.get(&user.name).map(|at| vec![day_clock(*at)]).unwrap_or_default();
        PersonRow { seen, ..PersonRow::of(user, caller.user.as_str()) }
    };
    let title = say(lang, "people-title", &[]);
    let page = PeoplePage {
        frame: Frame::of(web, caller, "people", "/people".to_owned(), title),
        people: people.into_iter().map(row).collect(),
        roles: roles(lang),
        said: done.said,
        error: done.error.as_ref().map(|error| error.sentence(lang)),
        link: done.link,
        typed: done.typed,
    };
    let mut answer = HttpResponse::Ok();
    if let Some(error) = &done.error {
        answer.status(error.status_code());
    }
    Ok(answer.content_type("text/html; charset=utf-8").body(whole(&page)))
}

/// Shows who has an account.
///
/// # Errors
/// [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn page(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    show(&web, &caller, Done::default()).await
}

fn back() -> HttpResponse {
    HttpResponse::SeeOther().insert_header((header::LOCATION, "/people")).finish()
}

pub(super) fn about(lang: Language, id: &str, user: &str) -> String {
    say(lang, id, &[("user", Arg::from(user))])
}

/// A person to be invited.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct New {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub role: String,
}

/// `POST /people`: an account, and the link for its person.
///
/// # Errors
/// None that is not shown on the page, but [`WebError::Unavailable`].
pub async fn add(
    web: web::Data<Web>,
    caller: Caller,
    form: web::Form<New>,
) -> Result<HttpResponse, WebError> {
    let New { name, display_name, role } = form.into_inner();
    let typed = Typed { name, display_name, role };
    let done = match add_typed(&web, &caller, &typed).await {
        Ok(done) => done,
        Err(error) => Done { error: Some(error), typed, ..Done::default() },
    };
    show(&web, &caller, done).await
}

async fn add_typed(web: &Web, caller: &Caller, typed: &Typed) -> Result<Done, WebError> {
    let body = NewUserBody {
        name: UserName::new(typed.name.trim())?,
        role: typed.role.parse().map_err(no_role)?,
        password: None,
        display_name: Some(typed.display_name.clone()),
        language: None,
    };
    let made = users::add(web, caller, body).await?;
    let name = made.user.name;
    let said = Some(about(caller.language, "people-added", &name));
    Ok(Done { said, link: made.link.map(|link| (name, link)), ..Done::default() })
}

/// `role=`.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Changed {
    pub role: String,
}

fn no_role(text: String) -> WebError {
    WebError::bad(Detail::new(text).told("refused-form", &[]))
}

/// `POST /people/{user}/role`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`]; others are shown on the page.
pub async fn role(
    web: web::Data<Web>,
    caller: Caller,
    user: web::Path<String>,
    form: web::Form<Changed>,
) -> Result<HttpResponse, WebError> {
    let role: Role = form.role.parse().map_err(no_role)?;
    let actor = caller.actor();
    let user = accounts::one(&web.store, &actor, &user).await?;
    if user.role == role {
        return Ok(back());
    }
    match accounts::change_role(&web.store, &actor, &user.name, role).await {
        // A person who demoted themselves is signed out with it.
        Ok(_) => Ok(back()),
        Err(error) => {
            show(&web, &caller, Done { error: Some(error.into()), ..Done::default() }).await
        }
    }
}

/// `confirm=yes`, once asked back.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Sure {
    pub confirm: Option<String>,
}

/// `POST /people/{user}/link`: takes the password away, and makes the link for another one.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`]; others are shown on the page.
pub async fn link(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    user: web::Path<String>,
    form: web::Form<Sure>,
) -> Result<HttpResponse, WebError> {
    let (lang, actor) = (caller.language, caller.actor());
    let user = accounts::one(&web.store, &actor, &user).await?;
    let name = user.name.as_str();
    let invited = user.password == NO_PASSWORD;
    if !invited && form.confirm.as_deref() != Some("yes") {
        let frame = Frame::of(
            &web,
            &caller,
            "people",
            "/people".to_owned(),
            about(lang, "people-reset-title", name),
        );
        let confirm = Confirm {
            frame,
            text: say(lang, "people-reset-text", &[]),
            action: format!("/people/{name}/link"),
            fields: vec![],
            asks: false,
            yes: say(lang, "people-reset-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: "/people".to_owned(),
        };
        return Ok(ask_back(&request, &confirm));
    }
    let url = &web.config().public_url;
    let done = match accounts::reset(&web.store, &actor, &user, url).await {
        Ok(link) => Done { link: Some((name.to_owned(), link)), ..Done::default() },
        Err(error) => Done { error: Some(error.into()), ..Done::default() },
    };
    show(&web, &caller, done).await
}

/// `POST /people/{user}/remove`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`]; others are shown on the page.
pub async fn remove(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    user: web::Path<String>,
    form: web::Form<Sure>,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let user = accounts::one(&web.store, &caller.actor(), &user).await?;
    let name = user.name.as_str();
    if form.confirm.as_deref() != Some("yes") {
        let title = about(lang, "people-remove-title", name);
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "people", "/people".to_owned(), title),
            text: losses(&web, &caller, &user).await?,
            action: format!("/people/{name}/remove"),
            fields: vec![],
            asks: false,
            yes: say(lang, "people-remove-yes", &[]),
            no: say(lang, "cancel", &[]),
            back: "/people".to_owned(),
        };
        return Ok(ask_back(&request, &confirm));
    }
    match users::remove(&web, &caller, name).await {
        Ok(()) => Ok(back()),
        Err(error) => show(&web, &caller, Done { error: Some(error), ..Done::default() }).await,
    }
}
