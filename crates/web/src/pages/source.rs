//! `GET /dispatch/sources/{source}`: one source with its rules, its day, its tasks by state and who holds them; and the form that
//! puts a task. Its rules are changed in `source_rules`, several of its tasks in `tasks`.

use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::form::{Field, Refused, Typed, Wrong, answer, sentence};
use super::source_rules::at;
use super::{Frame, seen_other, whole};
use crate::Web;
use crate::acts::source::{self, seen};
use crate::api::tasks::{self as api, TaskBody};
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::day::Day;
use crate::parts::dispatch::{Collectors, Extent, SourceRow, short_key};
use soloist_domain::detail::Detail;
use soloist_domain::dispatch::TaskState;
use soloist_domain::name::SourceName;
use soloist_domain::time::{StoreTime, millis};
use soloist_store::dispatch::{
    CollectorView, Dispatch as _, SourceView, Sources as _, TaskFilter, TaskId, TaskView,
};
use soloist_view::words::{Arg, Language, Piece, clock, grouped, iso, say};

/// Tasks on a page.
const SHOWN: usize = 50;
/// Fields of the form that puts a task.
const PUT: &[&str] = &["key", "payload", "priority", "at", "every"];

#[derive(Template)]
#[template(path = "pages/source.html")]
pub(super) struct SourcePage<'a> {
    pub(super) frame: Frame,
    pub(super) name: String,
    pub(super) said: Option<String>,
    pub(super) error: Option<String>,
    pub(super) row: SourceRow<'a>,
    pub(super) day: Option<Day>,
    pub(super) tabs: Vec<Tab>,
    pub(super) tasks: Vec<TaskRow>,
    pub(super) older: Option<String>,
    /// This is not the first page.
    pub(super) newest: Option<String>,
    pub(super) collectors: Collectors,
    /// No collector holds a task of it.
    pub(super) idle: bool,
    pub(super) operator: bool,
    pub(super) paused: bool,
    pub(super) blocked: bool,
    pub(super) put: Vec<Field>,
    /// The form was refused, and stays open.
    pub(super) open: bool,
    /// It has never had a task.
    pub(super) begin: bool,
    pub(super) url: String,
    pub(super) user: String,
}

impl SourcePage<'_> {
    fn about(&self, id: &str) -> String {
        say(self.frame.lang, id, &[("source", Arg::from(self.name.as_str()))])
    }

    fn tick(&self, key: &str) -> String {
        say(self.frame.lang, "tasks-choose", &[("key", Arg::from(key))])
    }
}

/// A filter of the list.
pub(super) struct Tab {
    pub(super) text: String,
    pub(super) n: Option<String>,
    pub(super) href: String,
    pub(super) here: bool,
}

/// A task in a list.
pub(super) struct TaskRow {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) state: &'static str,
    pub(super) word: String,
    pub(super) attempts: u32,
    pub(super) changed: Vec<Piece>,
    /// Who holds it, when it is due, or what went wrong with it.
    pub(super) more: Vec<Piece>,
    pub(super) is_error: bool,
}

/// The word of a state in addresses, and the message that says it.
pub(super) fn word(state: TaskState) -> (&'static str, &'static str) {
    match state {
        TaskState::Ready => ("ready", "task-state-ready"),
        TaskState::Due => ("due", "task-state-due"),
        TaskState::Leased => ("leased", "task-state-leased"),
        TaskState::Done => ("done", "task-state-done"),
        TaskState::Dead => ("dead", "task-state-dead"),
    }
}

const STATES: [TaskState; 5] =
    [TaskState::Ready, TaskState::Due, TaskState::Leased, TaskState::Dead, TaskState::Done];

impl TaskRow {
    pub(super) fn of(task: TaskView, now: StoreTime, lang: Language) -> Self {
        let (state, id) = word(task.state);
        let held = task.held.as_ref().map(|(who, _, _)| vec![Piece::text(who)]);
        let due = task.at.filter(|_| task.state == TaskState::Due);
        let error = task.error.as_ref().map(|error| vec![Piece::text(short_key(error))]);
        let is_error = held.is_none() && due.is_none() && error.is_some();
        Self {
            key: short_key(&task.key),
            state,
            word: say(lang, id, &[]),
            attempts: task.attempt,
            changed: vec![clock(lang, task.changed.floor(), now)],
            more: held
                .or_else(|| due.map(|due| vec![clock(lang, due.ceil(), now)]))
                .or(error)
                .unwrap_or_default(),
            is_error,
            id: task.id.0,
        }
    }
}

/// `?state=&before=`; `said` tells what a form has done.
#[derive(Debug, Default, Deserialize)]
pub struct Query {
    state: Option<String>,
    before: Option<String>,
    said: Option<String>,
}

impl Query {
    fn state(&self) -> Result<Option<TaskState>, WebError> {
        let Some(text) = self.state.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let state = STATES.into_iter().find(|state| word(*state).0 == text);
        let unknown = || {
            let text = "parameter state: use ready, due, leased, dead or done";
            WebError::bad(Detail::new(text).told("refused-address", &[]))
        };
        Ok(Some(state.ok_or_else(unknown)?))
    }
}

pub(super) fn tabs(view: &SourceView, here: Option<TaskState>, lang: Language) -> Vec<Tab> {
    let address = at(&view.name);
    let tab = |state: TaskState| {
        let (name, id) = word(state);
        let n = match state {
            TaskState::Ready => view.ready,
            TaskState::Due => view.due,
            TaskState::Leased => view.in_flight,
            TaskState::Dead => view.dead,
            TaskState::Done => view.done,
        };
        Tab {
            text: say(lang, id, &[]),
            n: Some(grouped(n)),
            href: format!("{address}?state={name}#tasks"),
            here: here == Some(state),
        }
    };
    let all = Tab {
        text: say(lang, "tasks-all", &[]),
        n: None,
        href: format!("{address}#tasks"),
        here: here.is_none(),
    };
    std::iter::once(all).chain(STATES.map(tab)).collect()
}

/// Those who hold tasks of `source`, with these alone.
fn holding(all: Vec<CollectorView>, source: &SourceName) -> Vec<CollectorView> {
    let own = all.into_iter().map(|mut one| {
        one.holds.retain(|(_, _, held, _)| held == source);
        one.in_flight = one.holds.len() as u64;
        one
    });
    own.filter(|one| one.in_flight > 0).collect()
}

/// What the form that led here has done, and had in it.
#[derive(Default)]
struct Done {
    refused: Option<Refused>,
    typed: Typed,
}

async fn show(
    web: &Web,
    caller: &Caller,
    view: &SourceView,
    query: &Query,
    done: Done,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let (name, state) = (&view.name, query.state()?);
    let before = query.before.as_deref().map(api::place).transpose()?;
    let filter = TaskFilter { source: Some(name.clone()), state };
    let mut tasks = web.store.tasks(&filter, before.as_ref(), SHOWN + 1).await?;
    let more = tasks.len() > SHOWN;
    tasks.truncate(SHOWN);
    let address = at(name);
    let words = state.map_or_else(String::new, |state| format!("state={}&", word(state).0));
    let last = tasks.last().filter(|_| more).map(api::place_of);
    let held = holding(web.store.collectors().await?, name);
    let pace = web.live.paces(std::slice::from_ref(view)).pop().flatten();
    let mut frame = Frame::of(web, caller, "dispatch", address.clone(), name.to_string());
    frame.now = Some(view.now.floor());
    let wrong = done.refused.as_ref().and_then(Refused::field);
    let put = put_fields(&done.typed, wrong, &frame);
    let error = done.refused.as_ref().and_then(|refused| match refused {
        Refused::Field(_) => sentence(&put.iter().collect::<Vec<_>>(), lang),
        Refused::Other(error) => Some(error.sentence(lang)),
    });
    let said = match query.said.as_deref() {
        Some("rules") => Some("rules-saved"),
        Some("put") => Some("task-put"),
        Some("there") => Some("task-there"),
        _ => None,
    };
    let page = SourcePage {
        said: said.filter(|_| error.is_none()).map(|id| say(lang, id, &[])),
        row: SourceRow::new(view, pace.as_ref(), lang, false),
        day: Day::of(&web.live.day(name), view.now.floor(), lang),
        tabs: tabs(view, state, lang),
        begin: tasks.is_empty() && state.is_none() && before.is_none() && view.started == 0,
        tasks: tasks.into_iter().map(|task| TaskRow::of(task, view.now.floor(), lang)).collect(),
        older: last.map(|last| format!("{address}?{words}before={last}#tasks")),
        newest: before.map(|_| format!("{address}?{words}#tasks").replace("&#", "#")),
        idle: held.is_empty(),
        collectors: Collectors::new(&held, view.now, lang, Extent::Some),
        operator: caller.is_operator(),
        paused: view.rules.paused,
        blocked: view.blocked_until > view.now,
        open: error.is_some(),
        error,
        put,
        url: web.config().public_url.clone(),
        user: caller.user.to_string(),
        name: name.to_string(),
        frame,
    };
    Ok(answer(whole(&page), done.refused.as_ref()))
}

/// Shows a source.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::BadRequest`] for a state that there is not, [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let view = seen(&web, &caller, &name).await?;
    show(&web, &caller, &view, &query, Done::default()).await
}

/// `POST /dispatch/sources/{source}/tasks`: puts a task.
///
/// # Errors
/// As [`page`]; others are shown on the page.
pub async fn put(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    form: web::Form<Vec<(String, String)>>,
) -> Result<HttpResponse, WebError> {
    let view = seen(&web, &caller, &name).await?;
    let typed = Typed::from(form.into_inner());
    match put_typed(&web, &caller, &view.name, &typed).await {
        Ok(new) => {
            let said = if new { "put" } else { "there" };
            Ok(seen_other(&format!("{}?said={said}#tasks", at(&view.name))))
        }
        Err(refused) => {
            let done = Done { refused: Some(refused), typed };
            show(&web, &caller, &view, &Query::default(), done).await
        }
    }
}

/// The form for a task.
pub(super) fn put_fields(typed: &Typed, wrong: Option<&Wrong>, frame: &Frame) -> Vec<Field> {
    let fields = Field::all(PUT, typed, wrong, frame.lang).into_iter();
    let fields = fields.map(|field| match field.name.as_str() {
        "payload" => field.long(),
        "at" => {
            let zone = [("zone", Arg::from(frame.offset()))];
            Field {
                means: say(frame.lang, "means-at", &zone),
                zoned: Some(frame.offset()),
                ..field
            }
        }
        _ => field,
    });
    fields.collect()
}

/// Whether it is new.
async fn put_typed(
    web: &Web,
    caller: &Caller,
    source: &SourceName,
    typed: &Typed,
) -> Result<bool, Refused> {
    let body = TaskBody {
        key: typed.get("key").to_owned(),
        source: source.to_string(),
        payload: typed.read("payload", |text| RawValue::from_string(text.to_owned()).ok())?,
        priority: typed.number("priority")?,
        // A form sends what a clock on the wall shows; an instant may be typed as well.
        at: typed
            .some("at")
            .map(|text| caller.zone().typed(text).map_or_else(|| text.to_owned(), iso)),
        every_ms: typed.length("every")?.map(millis),
    };
    let task = api::checked(body).map_err(|(field, _)| {
        Wrong(if field == "every_ms" { "every" } else { field }.to_owned())
    })?;
    let at = task.at;
    let new = source::put_tasks(web, caller, &[task]).await?;
    if at.is_some() {
        web.desk.expect(at);
    }
    Ok(new.first() == Some(&true))
}

/// A task that a form names.
pub(super) fn id(text: &str) -> TaskId {
    TaskId(text.chars().take(64).collect())
}
