//! `GET /dispatch/tasks/{id}`: where a task is, what it carries, what went wrong with it; and finding one by its key.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::source_rules::at;
use super::{Frame, html};
use crate::Web;
use crate::acts::source::named;
use crate::acts::source::no_task;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::dispatch::short_key;
use soloist_domain::dispatch::TaskState;
use soloist_domain::time::StoreTime;
use soloist_store::dispatch::{Dispatch, PastEvent, Sources, TaskId, TaskView};
use soloist_view::words::{
    Arg, Language, Piece, day_clock, exactly, grouped, phrase, say, until, visible,
};

/// Characters of a payload on the page.
const PAYLOAD_SHOWN: usize = 16 * 1024;

#[derive(Template)]
#[template(path = "pages/task.html")]
pub(super) struct TaskPage {
    pub(super) frame: Frame,
    pub(super) task: TaskShown,
    /// The reader may revive it.
    pub(super) revivable: bool,
    /// Whether the reader may remove it.
    pub(super) operator: bool,
    /// The page of its source.
    pub(super) source: String,
}

/// A task in words.
pub(super) struct TaskShown {
    pub(super) id: String,
    /// As in titles.
    pub(super) short: String,
    pub(super) key: String,
    pub(super) state: &'static str,
    pub(super) word: String,
    pub(super) why: Vec<Piece>,
    /// What it is called, and what it is.
    pub(super) facts: Vec<(String, Vec<Piece>)>,
    pub(super) error: Option<String>,
    pub(super) payload: String,
    /// That the payload was cut.
    pub(super) cut: Option<String>,
    pub(super) history: Vec<PastRow>,
    /// What the button says to those who hear the page.
    pub(super) label: String,
}

/// A line of the history.
pub(super) struct PastRow {
    pub(super) at: Vec<Piece>,
    pub(super) kind: &'static str,
    pub(super) word: String,
    pub(super) attempt: u32,
    pub(super) collector: String,
    pub(super) error: String,
}

impl TaskShown {
    pub(super) fn of(
        task: &TaskView,
        max_attempts: Option<u32>,
        now: StoreTime,
        lang: Language,
    ) -> Self {
        let (state, word) = match task.state {
            TaskState::Ready => ("ready", "task-state-ready"),
            TaskState::Due => ("due", "task-state-due"),
            TaskState::Leased => ("leased", "task-state-leased"),
            TaskState::Done => ("done", "task-state-done"),
            TaskState::Dead => ("dead", "task-state-dead"),
        };
        let (payload, all) = payload(&task.payload);
        let cut = (all > PAYLOAD_SHOWN).then(|| {
            let shown = grouped(PAYLOAD_SHOWN as u64);
            let facts = [
                ("shown", Arg::from(shown)),
                ("all", Arg::from(grouped(all as u64))),
                ("id", Arg::from(task.id.0.as_str())),
            ];
            say(lang, "task-payload-cut", &facts)
        });
        Self {
            id: task.id.0.clone(),
            short: short_key(&task.key),
            key: visible(&task.key).into_owned(),
            state,
            word: say(lang, word, &[]),
            why: why(task, now, lang),
            facts: facts(task, max_attempts, lang),
            error: task.error.clone(),
            payload,
            cut,
            history: task.history.iter().rev().map(|past| PastRow::of(past, lang)).collect(),
            label: say(lang, "revive-label", &[("key", Arg::from(short_key(&task.key)))]),
        }
    }
}

impl PastRow {
    fn of(past: &soloist_store::dispatch::Past, lang: Language) -> Self {
        let (kind, word) = match past.event {
            PastEvent::Retried => ("retried", "past-retried"),
            PastEvent::Expired => ("expired", "past-expired"),
            PastEvent::Died => ("died", "past-died"),
            PastEvent::Revived => ("revived", "past-revived"),
        };
        Self {
            at: vec![day_clock(past.at.floor())],
            kind,
            word: say(lang, word, &[]),
            attempt: past.attempt,
            collector: past.collector.as_ref().map_or_else(String::new, ToString::to_string),
            error: past.error.clone().unwrap_or_default(),
        }
    }
}

fn why(task: &TaskView, now: StoreTime, lang: Language) -> Vec<Piece> {
    let at = ("at", day_clock(task.changed.floor()));
    match task.state {
        TaskState::Ready => {
            phrase(lang, "task-why-ready", &[at, ("source", Piece::strong(&task.source))])
        }
        TaskState::Due => {
            let due = task.at.unwrap_or(task.changed).ceil();
            let args = [("left", until(lang, due, now)), ("at", day_clock(due))];
            phrase(lang, "task-why-due", &args)
        }
        TaskState::Leased => {
            let held = task.held.as_ref();
            let who = held.map_or_else(String::new, |(collector, _, _)| collector.to_string());
            let end = held.map_or(task.changed, |(_, _, end)| *end).floor();
            let args = [("collector", Piece::strong(who)), ("left", until(lang, end, now))];
            phrase(lang, "task-why-leased", &args)
        }
        TaskState::Done => phrase(lang, "task-why-done", &[at]),
        TaskState::Dead => phrase(lang, "task-why-dead", &[at]),
    }
}

fn facts(task: &TaskView, max_attempts: Option<u32>, lang: Language) -> Vec<(String, Vec<Piece>)> {
    let name = |id: &str| say(lang, id, &[]);
    let attempts = match max_attempts {
        Some(most) if most > 0 => {
            let n = ("n", Arg::from(i64::from(task.attempt)));
            say(lang, "task-of-attempts", &[n, ("most", Arg::from(i64::from(most)))])
        }
        _ => task.attempt.to_string(),
    };
    let mut facts = vec![
        (name("task-source"), vec![Piece::text(&task.source)]),
        (name("task-attempt"), vec![Piece::Text(attempts)]),
        (name("task-priority"), vec![Piece::text(task.priority)]),
        (name("task-created"), vec![day_clock(task.created.floor())]),
    ];
    if let Some(every) = task.every {
        facts.push((name("task-every"), vec![Piece::Text(exactly(lang, every))]));
    }
    if task.token.0 > 0 {
        facts.push((name("task-token"), vec![Piece::code(task.token)]));
    }
    facts.push((name("task-id"), vec![Piece::code(&task.id.0)]));
    facts
}

/// A payload as people read it, cut, and how long it is uncut.
fn payload(json: &str) -> (String, usize) {
    let value = serde_json::from_str::<serde_json::Value>(json);
    let pretty = value.ok().and_then(|value| serde_json::to_string_pretty(&value).ok());
    let pretty = pretty.unwrap_or_else(|| json.to_owned());
    let all = pretty.chars().count();
    (pretty.chars().take(PAYLOAD_SHOWN).collect(), all)
}

/// Shows a task.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let id = TaskId(id.chars().take(64).collect());
    let task = web.store.task(&id).await?.ok_or_else(|| no_task(&id))?;
    let source = web.store.sources(Some(&task.source)).await?.into_iter().next();
    let lang = caller.language;
    let title = short_key(&task.key);
    let path = format!("/dispatch/tasks/{}", task.id.0);
    let mut frame = Frame::of(&web, &caller, "dispatch", path, title);
    if let Some(source) = &source {
        frame.now = Some(source.now.floor());
    }
    let now = frame.now.unwrap_or_else(|| task.changed.floor());
    let most = source.map(|source| source.rules.max_attempts);
    Ok(html(&TaskPage {
        revivable: caller.is_operator() && task.state == TaskState::Dead,
        operator: caller.is_operator(),
        source: at(&task.source),
        task: TaskShown::of(&task, most, now, lang),
        frame,
    }))
}

/// `?source=&key=`.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct Wanted {
    pub source: String,
    pub key: String,
}

/// `GET /dispatch/tasks?source=&key=`: leads to the task.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn find(
    web: web::Data<Web>,
    wanted: web::Query<Wanted>,
) -> Result<HttpResponse, WebError> {
    let source = named(&web, wanted.source.trim()).await?.name;
    let id = TaskId::of(&source, &wanted.key);
    if web.store.task(&id).await?.is_none() {
        let name = [("source", source.as_str())];
        return Err(WebError::told(StatusCode::NOT_FOUND, "find-none", &name));
    }
    let location = format!("/dispatch/tasks/{}", id.0);
    Ok(HttpResponse::SeeOther().insert_header((header::LOCATION, location)).finish())
}
