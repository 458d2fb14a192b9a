//! Tasks as they are: listed, shown, revived, removed.

use serde::Serialize;

use super::Failure;
use super::office::Office;
use super::output::{local, print, print_json, table, visible};
use super::removal::sure;
use soloist_domain::dispatch::TaskState;
use soloist_remote::{Call, address, part};
use soloist_store::dispatch::{TaskFilter, TaskId};
use soloist_view::task::{Event, Task, TaskList};
use soloist_view::words::At;

/// The most tasks of one page.
const PAGE: usize = 100;

fn at(id: &TaskId) -> String {
    format!("/api/v1/tasks/{}", part(&id.0))
}

/// A task as `--json` shows it.
#[derive(Serialize)]
struct TaskLine {
    id: String,
    key: String,
    source: String,
    state: TaskState,
    priority: u8,
    attempt: u32,
    collector: Option<String>,
    created: At,
    changed: At,
    error: Option<String>,
}

#[derive(Serialize)]
struct TaskLines {
    tasks: Vec<TaskLine>,
}

#[derive(Serialize)]
struct TaskShown {
    #[serde(flatten)]
    line: TaskLine,
    payload: serde_json::Value,
    history: Vec<Event>,
}

impl TaskLine {
    fn of(task: &Task) -> Self {
        Self {
            id: task.id.clone(),
            key: task.key.clone(),
            source: task.source.clone(),
            state: task.state,
            priority: task.priority,
            attempt: task.attempt,
            collector: task.held.as_ref().map(|held| held.collector.clone()),
            created: task.created,
            changed: task.changed,
            error: task.error.clone(),
        }
    }
}

/// Tasks by their last change, newest first.
async fn tasks(office: &Office, filter: &TaskFilter, limit: usize) -> Result<Vec<Task>, Failure> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let query = [
            ("source", filter.source.as_ref().map(ToString::to_string)),
            ("state", filter.state.map(|state| state.as_str().to_owned())),
            ("before", before),
            ("limit", Some((limit - all.len()).min(PAGE).to_string())),
        ];
        let TaskList { tasks, next } = office.get(address("/api/v1/tasks", &query)).await?;
        all.extend(tasks);
        before = next;
        if before.is_none() || all.len() >= limit {
            return Ok(all);
        }
    }
}

/// `task list`.
pub(super) async fn list(
    office: &Office,
    filter: &TaskFilter,
    limit: usize,
    as_json: bool,
) -> Result<(), Failure> {
    let tasks = tasks(office, filter, limit).await?;
    if as_json {
        return print_json(&TaskLines { tasks: tasks.iter().map(TaskLine::of).collect() });
    }
    if tasks.is_empty() {
        return print("No such task.");
    }
    let row = |task: &Task| {
        vec![
            task.id.clone(),
            task.source.clone(),
            task.state.as_str().to_owned(),
            task.attempt.to_string(),
            local(task.changed),
            task.key.clone(),
        ]
    };
    let rows: Vec<_> = tasks.iter().map(row).collect();
    print(&table(&["ID", "SOURCE", "STATE", "ATTEMPT", "CHANGED", "KEY"], &rows))
}

/// `task show`.
pub(super) async fn show(office: &Office, id: &TaskId, as_json: bool) -> Result<(), Failure> {
    let task: Task = office.get(at(id)).await?;
    let line = TaskLine::of(&task);
    if as_json {
        let payload = serde_json::from_str(task.payload.get()).unwrap_or_default();
        return print_json(&TaskShown { line, payload, history: task.history });
    }
    let mut said = vec![
        format!("task     {}", visible(&line.id)),
        format!("key      {}", visible(&line.key)),
        format!("source   {}", visible(&line.source)),
        format!("state    {}, attempt {}", task.state.as_str(), line.attempt),
        format!("changed  {}", local(task.changed)),
        format!("payload  {}", visible(task.payload.get())),
    ];
    said.extend(line.collector.map(|who| format!("held by  {}", visible(&who))));
    said.extend(line.error.map(|error| format!("error    {}", visible(&error))));
    print(&said.join("\n"))
}

/// `task revive`.
pub(super) async fn revive(
    office: &Office,
    id: &TaskId,
    user: Option<&str>,
) -> Result<(), Failure> {
    let call = Call::post(format!("/api/v1/dead/{}/revive", part(&id.0))).repeatable();
    let task: Task = office.acting(user).await?.ask(call).await?;
    print(&format!("Task {} is {}.", visible(&task.id), task.state.as_str()))
}

/// `task remove`.
pub(super) async fn remove(
    office: &Office,
    id: &TaskId,
    yes: bool,
    user: Option<&str>,
) -> Result<(), Failure> {
    let task: Task = office.get(at(id)).await?;
    let hand = match &task.held {
        Some(held) => format!(", which {} has in hand,", visible(&held.collector)),
        None => String::new(),
    };
    let (key, source) = (visible(&task.key), visible(&task.source));
    sure(yes, &format!("Task {key} of {source}{hand} would be lost with its history."))?;
    let call = Call::delete(format!("{}?force=true", at(id)));
    office.acting(user).await?.tell(call).await?;
    print(&format!("Task {} is removed.", visible(&task.id)))
}
