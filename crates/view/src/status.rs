//! The rows of `soloist status`: of each job its word, where, since when, wanted by whom, and what comes next. One computation
//! serves the command at a store and at a node.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{DriftView, states, viewpoint};
use crate::words::At;
use soloist_config::JobConfig;
use soloist_domain::job::{NextWhat, RunPhase, State, Viewpoint, state};
use soloist_domain::tick::{Upcoming, next_tick};
use soloist_domain::time::{Boot, StoreTime};
use soloist_store::feed::Seen;
use soloist_store::nodes::NodeRecord;
use soloist_store::rotation::RotationView;

/// The table of all jobs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// One for each job, in the order of the configuration.
    pub rows: Vec<StatusRow>,
    /// The store's clock, as the node knows it; left out while it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<At>,
}

/// A job in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusRow {
    /// Its name.
    pub job: String,
    /// The one word.
    #[schema(schema_with = states, example = "running")]
    pub state: State,
    /// Who has its lease.
    pub node: Option<String>,
    /// Since when it is in this state, as far as is known.
    pub since: Option<At>,
    /// Accounts, in the order in which they switched it on.
    pub wanted_by: Vec<String>,
    /// What comes next, in English; empty: nothing, unless a person acts.
    pub next: String,
    /// When, if that is known.
    pub next_at: Option<At>,
    /// The zone of its schedule, UTC where that has none; left out of a continuous job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The heading under which pages show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Living nodes that define it otherwise than most, or not at all.
    pub drift: Vec<DriftView>,
}

impl StatusRow {
    /// The row of `job` as `seen`, at `now` on this machine's clock; `rotations` as in [`super::JobView::of`].
    #[must_use]
    pub fn of(
        seen: &Seen,
        job: &JobConfig,
        nodes: &[NodeRecord],
        rotations: Option<&[RotationView]>,
        now: Boot,
    ) -> Self {
        let view = viewpoint(seen, job, nodes, rotations, now);
        let record = &seen.record;
        let state = state(record, &view);
        let (next, next_at) = next(seen, job, &view, state);
        Self {
            job: job.name.to_string(),
            state,
            node: record.lease.as_ref().map(|lease| lease.node.to_string()),
            since: since(seen, state).map(At),
            wanted_by: record.participants.iter().map(|p| p.user.to_string()).collect(),
            next,
            next_at: next_at.map(At),
            zone: job
                .schedule
                .as_ref()
                .map(|scheduled| scheduled.plan.zone().unwrap_or("UTC").to_owned()),
            group: job.group.clone(),
            drift: DriftView::of(&job.name, nodes),
        }
    }
}

fn since(seen: &Seen, state: State) -> Option<StoreTime> {
    let record = &seen.record;
    match (&record.lease, &record.run, state) {
        (Some(lease), Some(run), _) if run.token == lease.token => Some(run.started),
        (Some(lease), _, _) => Some(lease.since),
        (None, _, State::Held) => record.hold.as_ref().map(|hold| hold.since),
        (None, _, State::BackingOff | State::GivenUp) => {
            record.last_exit.as_ref().map(|last| last.at)
        }
        (None, _, State::Waiting | State::Resting | State::Scheduled) => record.free_since(),
        _ => record.last_switch.as_ref().map(|last| last.at),
    }
}

fn next(
    seen: &Seen,
    job: &JobConfig,
    view: &Viewpoint,
    state: State,
) -> (String, Option<StoreTime>) {
    let record = &seen.record;
    if let Some(hold) = &record.hold
        && record.lease.is_none()
    {
        return (format!("held by {}: {}", hold.by, hold.reason), None);
    }
    if let Some(run) = record.run.as_ref().filter(|_| record.lease.is_some())
        && let RunPhase::Stopping { kill_at } = run.phase
    {
        let what = if job.is_external() { "told to stop, over" } else { "KILL" };
        return (what.to_owned(), Some(kill_at));
    }
    if let Some(to) = record.moving.as_ref().filter(|_| record.lease.is_some()) {
        let other = if job.is_external() { "another program" } else { "another node" };
        let to = to.to.as_ref().map_or(other, |holder| holder.as_str());
        return (format!("moves to {to}"), None);
    }
    if let (State::Resting | State::Waiting, Some(_), Some(rotation)) =
        (state, &record.lease, &job.rotation)
    {
        return (format!("waits for its turn in {rotation}"), None);
    }
    if let (State::Scheduled | State::Late, Some(scheduled)) = (state, &job.schedule) {
        let tick = next_tick(record, &scheduled.law, view.now);
        let said = match (&tick, state) {
            (None, _) => "no tick comes any more",
            (_, State::Late) => "late",
            _ => "the next tick",
        };
        return (said.to_owned(), tick.map(|tick| tick.starts));
    }
    let said = match (state, record.next) {
        (State::GivenUp, _) => {
            return (format!("{} crashes in a row: switch on again", record.crashes), None);
        }
        (State::Resting | State::BackingOff, Some(next)) => {
            let what = match next.what {
                NextWhat::Repeat => "repeat",
                NextWhat::Retry => "retry",
            };
            return (what.to_owned(), Some(next.at));
        }
        (State::Waiting, _) if view.ticks == Some(Upcoming::Barred) => {
            "the store's clock was set back"
        }
        (State::Waiting, _) if job.is_external() => "starts when a program asks for it",
        (State::FailingOver, _) if job.is_external() => "the next program is granted",
        (State::Waiting, _) if !view.can_run => "starts when a node may take it",
        (State::Waiting, _) => "starts when a node takes it",
        (State::FailingOver, _) => "another node takes over",
        _ => "",
    };
    (said.to_owned(), None)
}
