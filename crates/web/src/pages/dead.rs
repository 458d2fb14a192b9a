//! `GET /dispatch/dead` and its forms: tasks that were given up, why, and how they come back.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::confirm::Confirm;
use super::{Frame, ask_back, done, html};
use crate::acts::source::named;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::dispatch::short_key;
use crate::{Web, acts};
use soloist_ops::sources::REVIVED_AT_ONCE;
use soloist_store::dispatch::{Dispatch, TaskId, TaskView};
use soloist_view::words::{Arg, Piece, day_clock, grouped, say};

/// Tasks on a page.
const SHOWN: usize = 50;
/// How far back pages go: the store counts what it skips.
const LAST_SKIP: usize = 100_000;

#[derive(Template)]
#[template(path = "pages/dead.html")]
pub(super) struct DeadPage {
    pub(super) frame: Frame,
    /// Only tasks of this source are shown.
    pub(super) source: Option<String>,
    pub(super) none: String,
    pub(super) rows: Vec<DeadRow>,
    /// What the form that led here has done.
    pub(super) said: Option<String>,
    /// Where the next page begins.
    pub(super) older: Option<usize>,
    /// This is not the first page.
    pub(super) paged: bool,
    pub(super) operator: bool,
}

/// One task.
pub(super) struct DeadRow {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) source: String,
    pub(super) error: Option<String>,
    pub(super) attempts: u32,
    pub(super) at: Vec<Piece>,
    /// What the button says to those who hear the page.
    pub(super) label: String,
}

impl DeadPage {
    /// A message about the source.
    fn of(&self, id: &str, source: &str) -> String {
        say(self.frame.lang, id, &[("source", Arg::from(source))])
    }
}

impl DeadRow {
    pub(super) fn of(task: TaskView, lang: soloist_view::words::Language) -> Self {
        let key = short_key(&task.key);
        Self {
            label: say(lang, "revive-label", &[("key", Arg::from(key.as_str()))]),
            id: task.id.0,
            key,
            source: task.source.to_string(),
            error: task.error,
            attempts: task.attempt,
            at: vec![day_clock(task.changed.floor())],
        }
    }
}

/// `?source=&skip=`; `revived` and `more` tell what a form has done.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as said above")]
pub struct Query {
    pub source: Option<String>,
    pub skip: Option<usize>,
    pub revived: Option<u32>,
    pub more: Option<bool>,
}

/// Shows a page of dead tasks.
///
/// # Errors
/// [`WebError::NotFound`] for an unknown source, [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let name = match query.source.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => Some(named(&web, name).await?.name),
        None => None,
    };
    let skip = query.skip.unwrap_or(0).min(LAST_SKIP);
    let mut dead = web.store.dead(name.as_ref(), skip, SHOWN + 1).await?;
    let more = dead.len() > SHOWN;
    dead.truncate(SHOWN);
    let of = |id: &str, id_of: &str| match &name {
        Some(name) => say(lang, id_of, &[("source", Arg::from(name.as_str()))]),
        None => say(lang, id, &[]),
    };
    let path = name.as_ref().map(|name| format!("/dispatch/dead?source={name}"));
    let path = path.unwrap_or_else(|| "/dispatch/dead".to_owned());
    let said = query.revived.map(|n| {
        let mut said = say(lang, "revived-some", &[("n", Arg::from(i64::from(n)))]);
        if query.more == Some(true) {
            said += &say(lang, "sentence-gap", &[]);
            said += &say(lang, "revived-more", &[]);
        }
        said
    });
    Ok(html(&DeadPage {
        frame: Frame::of(&web, &caller, "dispatch", path, of("dead-title", "dead-title-of")),
        none: of("dead-none", "dead-none-of"),
        source: name.map(|name| name.to_string()),
        rows: dead.into_iter().map(|task| DeadRow::of(task, lang)).collect(),
        said,
        older: (more && skip < LAST_SKIP).then_some(skip + SHOWN),
        paged: skip > 0,
        operator: caller.is_operator(),
    }))
}

/// Where to go afterwards.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Back {
    pub back: Option<String>,
}

/// `POST /dispatch/dead/{id}/revive`.
///
/// # Errors
/// As [`acts::source::revive`].
pub async fn revive(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    form: web::Form<Back>,
) -> Result<HttpResponse, WebError> {
    let task = acts::source::revive(&web, &caller, &TaskId(id.into_inner())).await?;
    let back = form.back.clone().unwrap_or_else(|| format!("/dispatch/tasks/{}", task.id.0));
    Ok(done(&request, &back))
}

/// `confirm=yes`, once asked back.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct All {
    pub confirm: Option<String>,
}

/// `POST /dispatch/sources/{source}/revive`: all dead tasks of a source, at most so many in one step.
///
/// # Errors
/// As [`acts::source::revive_all`].
pub async fn revive_all(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    form: web::Form<All>,
) -> Result<HttpResponse, WebError> {
    if form.confirm.as_deref() != Some("yes") {
        let view = named(&web, &path).await?;
        let (lang, name) = (caller.language, view.name);
        let back = format!("/dispatch/dead?source={name}");
        let title = say(lang, "revive-all-title", &[("source", Arg::from(name.as_str()))]);
        let most = grouped(REVIVED_AT_ONCE as u64);
        let numbers = [("n", Arg::from(grouped(view.dead))), ("most", Arg::from(most))];
        let confirm = Confirm {
            frame: Frame::of(&web, &caller, "dispatch", back.clone(), title),
            text: say(lang, "revive-all-text", &numbers),
            action: format!("/dispatch/sources/{name}/revive"),
            fields: vec![],
            asks: false,
            yes: say(lang, "revive-all-yes", &[]),
            no: say(lang, "cancel", &[]),
            back,
        };
        return Ok(ask_back(&request, &confirm));
    }
    let (revived, more) = acts::source::revive_all(&web, &caller, &path).await?;
    let back = format!("/dispatch/dead?source={path}&revived={revived}&more={more}");
    Ok(done(&request, &back))
}
