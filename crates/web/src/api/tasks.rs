//! `/api/v1/tasks`: put tasks, look at them, remove one.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::web::{self, Bytes};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Answer, Forced, answer, clamp, query, read};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::dispatch::{LONGEST, TaskState};
use soloist_domain::name::SourceName;
use soloist_domain::time::{Stamp, StoreTime};
use soloist_store::StoreError;
use soloist_store::dispatch::{
    Dispatch as _, LONGEST_KEY, LONGEST_PAYLOAD, NewTask, TASKS_AT_ONCE, TaskFilter, TaskId,
    TaskView,
};
use soloist_view::lists::{PutTask, PutTasks};
use soloist_view::task::{Task, TaskList};
use soloist_view::whole;

/// The first instant of 2200: exact in every store, and later than any caller means.
const LATEST: StoreTime = StoreTime(7_258_118_400_000);

/// A task to be put.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    /// Unique within its source: the same key is the same task. 1 to 2048 bytes, no control characters.
    #[schema(min_length = 1, max_length = 2048, example = "https://example.org/1")]
    pub key: String,
    /// Where it comes from; defined before.
    #[schema(example = "example.org", format = "name")]
    pub source: String,
    /// Any JSON of at most 64 KiB, handed out as it came.
    #[schema(value_type = serde_json::Value)]
    pub payload: Option<Box<RawValue>>,
    /// 9 is the most urgent.
    #[schema(default = 0, minimum = 0, maximum = 9)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub priority: Option<i64>,
    /// Not before this (RFC 3339); now when left out.
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// Again, this long after each `done`.
    #[schema(minimum = 1, maximum = 31_622_400_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub every_ms: Option<u64>,
}

/// Tasks to be put.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TasksBody {
    /// At most 1000.
    #[schema(max_items = 1000)]
    pub tasks: Vec<TaskBody>,
}

/// Puts tasks. All or none; putting the same again is harmless.
#[utoipa::path(post, path = "/api/v1/tasks", tag = "dispatch", operation_id = "put_tasks",
    request_body = TasksBody,
    responses((status = 200, description = "What came of each.", body = PutTasks)))]
pub async fn post(web: web::Data<Web>, caller: Caller, body: Bytes) -> Answer<PutTasks> {
    let TasksBody { tasks } = read(&body)?;
    if tasks.len() > TASKS_AT_ONCE {
        return Err(WebError::bad(format!(
            "tasks: at most {TASKS_AT_ONCE} at a time, not {}: send them in several calls",
            tasks.len()
        )));
    }
    let tasks = tasks.into_iter().enumerate().map(|(nth, task)| {
        checked(task)
            .map_err(|(field, problem)| WebError::bad(format!("tasks[{nth}].{field}: {problem}")))
    });
    let tasks: Vec<NewTask> = tasks.collect::<Result<_, _>>()?;
    let new = acts::source::put_tasks(&web, &caller, &tasks).await?;
    if let Some(first) = tasks.iter().filter_map(|task| task.at).min() {
        web.desk.expect(Some(first));
    }
    let tasks = tasks.into_iter().zip(new).map(|(task, new)| PutTask {
        id: TaskId::of(&task.source, &task.key).0,
        key: task.key,
        status: if new { "created" } else { "exists" }.to_owned(),
    });
    answer(PutTasks { tasks: tasks.collect() })
}

/// The field that is wrong, and how it should be.
pub(crate) type Wrong = (&'static str, String);

/// A task as the store takes it.
///
/// # Errors
/// The field that is wrong, and how it should be.
pub(crate) fn checked(task: TaskBody) -> Result<NewTask, Wrong> {
    let wrong = |field, problem: &str| Err((field, problem.to_owned()));
    if task.key.is_empty() || task.key.len() > LONGEST_KEY {
        return wrong("key", "from 1 to 2048 bytes");
    }
    if task.key.contains(char::is_control) {
        return wrong("key", "no control characters");
    }
    let source = SourceName::new(&task.source).map_err(|error| ("source", error.to_string()))?;
    let payload = task.payload.map_or_else(|| "null".to_owned(), |raw| raw.get().to_owned());
    if payload.len() > LONGEST_PAYLOAD {
        return wrong(
            "payload",
            "at most 65536 bytes of JSON: put what is larger elsewhere and its address here",
        );
    }
    // Every later reader must be able to read it: no endless nesting, no half characters, no endless numbers.
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&payload) {
        return wrong("payload", &format!("not JSON that everybody can read: {error}"));
    }
    let Some(priority) = task.priority.map_or(Some(0), |given| u8::try_from(given).ok()) else {
        return wrong("priority", "from 0 to 9");
    };
    if priority > 9 {
        return wrong("priority", "from 0 to 9");
    }
    let at = task.at.map(|text| instant(&text)).transpose().map_err(|problem| ("at", problem))?;
    let every = task.every_ms.map(Duration::from_millis);
    if every.is_some_and(|every| every.is_zero() || every > LONGEST) {
        return wrong("every_ms", "from 1 to a year; leave it out for once");
    }
    Ok(NewTask { key: task.key, source, payload, priority, at, every })
}

/// An instant as clients write it.
pub(super) fn instant(text: &str) -> Result<Stamp, String> {
    let at = text.parse::<jiff::Timestamp>().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        format!("{shown:?} is no instant: use RFC 3339, as in 2026-05-04T01:02:03Z")
    })?;
    let at = Stamp(at.as_microsecond());
    if at < Stamp(0) || at >= Stamp::from(LATEST) {
        return Err("from 1970 to 2199".to_owned());
    }
    Ok(at)
}

/// JSON as it was put.
pub(super) fn raw(payload: String) -> Result<Box<RawValue>, WebError> {
    RawValue::from_string(payload).map_err(|error| WebError::Internal {
        detail: format!("the store holds a payload that is not JSON: {error}"),
    })
}

/// One task.
#[utoipa::path(get, path = "/api/v1/tasks/{id}", tag = "dispatch", operation_id = "get_task",
    params(("id" = String, Path, description = "As POST /api/v1/tasks answered.")),
    responses((status = 200, description = "The task.", body = Task)))]
pub async fn one(web: web::Data<Web>, caller: Caller, id: web::Path<String>) -> Answer<Task> {
    let id = known(id.into_inner())?;
    let found = web.desk.store()?.task(&id).await.map_err(acts::source::trouble)?;
    // Ids are made of source and key: who guesses both must not learn whether there is such a task.
    let found = found.filter(|task| caller.bound.reads_source(task.source.as_str()));
    answer(found.ok_or_else(|| acts::source::no_task(&id))?.try_into()?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    source: Option<String>,
    state: Option<TaskState>,
    before: Option<String>,
    limit: Option<u64>,
}

/// Tasks by their last change, newest first. On Redis the last 10,000 of all queues are looked at: name a source and a state when
/// there are more.
#[utoipa::path(get, path = "/api/v1/tasks", tag = "dispatch", operation_id = "list_tasks",
    params(
        ("source" = Option<String>, Query, description = "Only of this source."),
        ("state" = Option<String>, Query, description = "Only those that are `ready`, `due`, `leased`, `done` or `dead`."),
        ("before" = Option<String>, Query, description = "The next page: `next` of the page before."),
        ("limit" = Option<u64>, Query, description = "How many: 1 to 100, 50 when absent; what is outside is moved inside.")),
    responses((status = 200, description = "The tasks.", body = TaskList)))]
pub async fn list(web: web::Data<Web>, caller: Caller, request: HttpRequest) -> Answer<TaskList> {
    let page: Page = query(&request)?;
    let bad = |field: &str, problem: String| WebError::bad(format!("parameter {field}: {problem}"));
    let source = page.source.as_deref().map(SourceName::new).transpose();
    let source = source.map_err(|error| bad("source", error.to_string()))?;
    let before = page.before.as_deref().map(place).transpose()?;
    let limit = clamp(page.limit, 50, 100);
    let source = only_source(&caller, source)?;
    let filter = TaskFilter { source, state: page.state };
    let store = web.desk.store()?;
    let views = store.tasks(&filter, before.as_ref(), limit).await;
    let views = views.map_err(acts::source::trouble)?;
    let last = views.last().filter(|_| views.len() >= limit);
    let next = last.map(place_of);
    let views = views.into_iter().filter(|task| caller.bound.reads_source(task.source.as_str()));
    let tasks = views.map(Task::try_from).collect::<Result<_, StoreError>>()?;
    answer(TaskList { tasks, next })
}

/// Where a page of tasks ends, as the address of the next one has it.
pub(crate) fn place_of(last: &TaskView) -> String {
    format!("{}-{}", last.changed.0, last.id.0)
}

/// The same, read.
///
/// # Errors
/// [`WebError::BadRequest`].
pub(crate) fn place(text: &str) -> Result<(Stamp, TaskId), WebError> {
    let read = || {
        let (at, id) = text.split_once('-')?;
        Some((Stamp(at.parse().ok().filter(|at| *at > 0)?), known(id.to_owned()).ok()?))
    };
    let wrong = || WebError::bad("parameter before: send `next` of the page before, as it was");
    read().ok_or_else(wrong)
}

/// The source that is asked for: that of the token where it has one and none is said.
pub(super) fn only_source(
    caller: &Caller,
    asked: Option<SourceName>,
) -> Result<Option<SourceName>, WebError> {
    match (asked, caller.bound.sources.as_slice()) {
        (Some(asked), _) => {
            caller.bound.check_source(&asked)?;
            Ok(Some(asked))
        }
        (None, [own]) => Ok(Some(own.clone())),
        (None, _) => Ok(None),
    }
}

/// Removes a task with its history; its key may be put again. One that a collector has in hand is removed with `force=true`
/// only; a collector that reports it then is told `unknown`.
#[utoipa::path(delete, path = "/api/v1/tasks/{id}", tag = "dispatch", operation_id = "remove_task",
    params(
        ("id" = String, Path, description = "As POST /api/v1/tasks answered."),
        ("force" = Option<bool>, Query, description = "Also while a collector has it in hand.")),
    responses((status = 200, description = "The task as it was.", body = Task)))]
pub async fn remove(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
) -> Answer<Task> {
    let (id, Forced { force }) = (known(id.into_inner())?, query(&request)?);
    let gone = acts::source::remove_task(&web, &caller, &id, force.unwrap_or(false)).await?;
    answer(gone.try_into()?)
}

/// An id of the only shape that ids have.
pub(super) fn known(text: String) -> Result<TaskId, WebError> {
    let shape = text.len() == 32
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let id = TaskId(text);
    if shape { Ok(id) } else { Err(acts::source::no_task(&id)) }
}
