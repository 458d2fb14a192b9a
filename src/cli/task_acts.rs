//! Tasks as they are: listed, shown, revived, removed.

use serde::Serialize;

use super::output::{local, print, print_json, rfc3339, table};
use super::removal::sure;
use super::{CommandContext, Failure};
use crate::domain::dispatch::TaskState;
use crate::domain::name::SourceName;
use crate::ops::sources;
use crate::store::dispatch::{Dispatch as _, Past, TaskFilter, TaskId, TaskView};

/// A task as `--json` shows it.
#[derive(Serialize)]
struct TaskLine {
    id: String,
    key: String,
    source: SourceName,
    state: TaskState,
    priority: u8,
    attempt: u32,
    collector: Option<String>,
    created: String,
    changed: String,
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
    history: Vec<Past>,
}

impl TaskLine {
    fn of(view: &TaskView) -> Self {
        Self {
            id: view.id.0.clone(),
            key: view.key.clone(),
            source: view.source.clone(),
            state: view.state,
            priority: view.priority,
            attempt: view.attempt,
            collector: view.held.as_ref().map(|(who, ..)| who.to_string()),
            created: rfc3339(view.created.floor()),
            changed: rfc3339(view.changed.floor()),
            error: view.error.clone(),
        }
    }
}

/// `task list`.
pub(super) async fn list(
    context: &CommandContext,
    filter: &TaskFilter,
    limit: usize,
    as_json: bool,
) -> Result<(), Failure> {
    let views = context.store.tasks(filter, None, limit).await?;
    if as_json {
        return print_json(&TaskLines { tasks: views.iter().map(TaskLine::of).collect() });
    }
    if views.is_empty() {
        return print("No such task.");
    }
    let row = |view: &TaskView| {
        vec![
            view.id.0.clone(),
            view.source.to_string(),
            view.state.as_str().to_owned(),
            view.attempt.to_string(),
            local(view.changed.floor()),
            view.key.clone(),
        ]
    };
    let rows: Vec<_> = views.iter().map(row).collect();
    print(&table(&["ID", "SOURCE", "STATE", "ATTEMPT", "CHANGED", "KEY"], &rows))
}

async fn found(context: &CommandContext, id: &TaskId) -> Result<TaskView, Failure> {
    let missing = || Failure::NotFound(sources::no_task(id));
    context.store.task(id).await?.ok_or_else(missing)
}

/// `task show`.
pub(super) async fn show(
    context: &CommandContext,
    id: &TaskId,
    as_json: bool,
) -> Result<(), Failure> {
    let view = found(context, id).await?;
    let line = TaskLine::of(&view);
    if as_json {
        let payload = serde_json::from_str(&view.payload).unwrap_or_default();
        return print_json(&TaskShown { line, payload, history: view.history });
    }
    let mut said = vec![
        format!("task     {}", line.id),
        format!("key      {}", line.key),
        format!("source   {}", line.source),
        format!("state    {}, attempt {}", view.state.as_str(), line.attempt),
        format!("changed  {}", local(view.changed.floor())),
        format!("payload  {}", view.payload),
    ];
    said.extend(line.collector.map(|who| format!("held by  {who}")));
    said.extend(line.error.map(|error| format!("error    {error}")));
    print(&said.join("\n"))
}

/// `task revive`.
pub(super) async fn revive(
    context: &CommandContext,
    id: &TaskId,
    user: Option<&str>,
) -> Result<(), Failure> {
    let actor = context.operator(user).await?;
    let view = sources::revive(&context.store, &actor, id).await?;
    print(&format!("Task {} is {}.", view.id.0, view.state.as_str()))
}

/// `task remove`.
pub(super) async fn remove(
    context: &CommandContext,
    id: &TaskId,
    yes: bool,
    user: Option<&str>,
) -> Result<(), Failure> {
    let actor = context.operator(user).await?;
    let view = found(context, id).await?;
    let hand = match &view.held {
        Some((who, ..)) => format!(", which {who} has in hand,"),
        None => String::new(),
    };
    let question =
        format!("Task {} of {}{hand} would be lost with its history.", view.key, view.source);
    sure(yes, &question)?;
    sources::remove_task(&context.store, &actor, id, true).await?;
    print(&format!("Task {} is removed.", view.id.0))
}
