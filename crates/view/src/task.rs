//! A task as the API answers it and `--json` prints it, defined once.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json::{not_after, not_before};
use super::millis;
use crate::words::At;
use soloist_domain::dispatch::TaskState;
use soloist_store::StoreError;
use soloist_store::dispatch::{Past, PastEvent, TaskView};

/// In whose hands a task is.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HeldBy {
    /// Who.
    pub collector: String,
    /// Until when, unless it is extended.
    pub lease_until: At,
}

/// Something that went wrong with a task, or brought it back.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Event {
    /// When.
    pub at: At,
    /// `retried`, `expired`, `died` or `revived`.
    #[schema(value_type = String, example = "retried")]
    pub event: PastEvent,
    /// In which attempt.
    pub attempt: u32,
    /// In whose hands.
    pub collector: Option<String>,
    /// As reported.
    pub error: Option<String>,
}

/// A task.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Task {
    /// Made of source and key.
    pub id: String,
    /// As put.
    pub key: String,
    /// As put.
    pub source: String,
    /// As put.
    #[schema(value_type = serde_json::Value)]
    pub payload: Box<RawValue>,
    /// As put.
    pub priority: u8,
    /// `ready`, `due`, `leased`, `done` or `dead`.
    #[schema(value_type = String, example = "ready")]
    pub state: TaskState,
    /// Tries so far, the present one counted.
    pub attempt: u32,
    /// The token of the newest lease; 0 before the first.
    pub token: u64,
    /// As put.
    pub every_ms: Option<u64>,
    /// When it was put.
    pub created: At,
    /// When its state changed last.
    pub changed: At,
    /// When it becomes ready, if it is due.
    pub at: Option<At>,
    /// If it is leased.
    pub held: Option<HeldBy>,
    /// The newest error that was reported.
    pub error: Option<String>,
    /// The newest 20 events, oldest first.
    pub history: Vec<Event>,
}

impl TryFrom<TaskView> for Task {
    type Error = StoreError;

    fn try_from(view: TaskView) -> Result<Self, StoreError> {
        Ok(Self {
            id: view.id.0,
            key: view.key,
            source: view.source.to_string(),
            payload: RawValue::from_string(view.payload).map_err(|error| {
                StoreError::Corrupt(format!("it holds a payload that is not JSON: {error}"))
            })?,
            priority: view.priority,
            state: view.state,
            attempt: view.attempt,
            token: view.token.0,
            every_ms: view.every.map(millis),
            created: not_after(view.created),
            changed: not_after(view.changed),
            at: view.at.map(not_before),
            // Not under which claim: only the caller that made it knows that.
            held: view.held.map(|(collector, _, until)| HeldBy {
                collector: collector.to_string(),
                lease_until: not_after(until),
            }),
            error: view.error,
            history: view.history.into_iter().map(Event::from).collect(),
        })
    }
}

impl From<Past> for Event {
    fn from(past: Past) -> Self {
        Self {
            at: not_after(past.at),
            event: past.event,
            attempt: past.attempt,
            collector: past.collector.map(|name| name.to_string()),
            error: past.error,
        }
    }
}

/// Tasks of a page.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// `before` of the next page; null when there is none.
    pub next: Option<String>,
}
