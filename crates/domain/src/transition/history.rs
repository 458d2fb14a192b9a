//! The history of runs: how an entry is closed, which entries are folded into one, which one is dropped when there are too many.
//!
//! A run is closed by its own node or, as lost, by the next holder; both must leave the same record. A job that looks for work every second
//! must not push its failures out: runs that showed nothing share one entry, and are dropped first.

use super::{Job, Write};
use crate::event::EventKind;
use crate::job::{Exit, JobRecord, LastExit, RunEnd, RunRecord};
use crate::journal::{RUNS_KEPT, RunEntry};
use crate::name::RunId;
use crate::time::StoreTime;

/// What a transition must know of the history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Past {
    /// The entry of the run that the transition is about, if it is listed.
    pub this: Option<RunEntry>,
    /// The newest entry older than that one; the newest of all if that one is not listed.
    pub before: Option<RunEntry>,
    /// How many runs are listed that have ended.
    pub ended: usize,
    /// Of those, `this` and the newest left out, the oldest that stands for idle runs. Needed when [`RUNS_KEPT`] are listed.
    pub oldest_idle: Option<RunId>,
    /// The oldest of any kind, likewise.
    pub oldest: Option<RunId>,
}

/// How a run ended.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    pub(super) exit: Exit,
    pub(super) end: RunEnd,
    pub(super) processes_killed: u32,
    /// It showed nothing.
    pub(super) silent: bool,
    pub(super) at: StoreTime,
}

impl RunEntry {
    /// Of a run under way.
    #[must_use]
    pub fn begun(record: &JobRecord, run: &RunRecord) -> Self {
        Self {
            id: run.id.clone(),
            job: record.name.clone(),
            node: run.node.clone(),
            token: run.token,
            started: run.started,
            ended: None,
            exit: Exit::default(),
            end: None,
            processes_killed: 0,
            folded: 0,
        }
    }
}

/// Closes the entry of a run; the record says how its newest run ended.
pub(super) fn close(
    record: &mut JobRecord,
    past: &Past,
    entry: RunEntry,
    how: Ending,
) -> Vec<Write> {
    let Ending { exit, end, processes_killed, silent, at } = how;
    record.last_exit = Some(LastExit { exit, end, node: entry.node.clone(), at, early: false });
    if end == RunEnd::Exited {
        record.last_success = Some(at);
    }
    let ended = Some(at);
    let mut entry = RunEntry { ended, exit, end: Some(end), processes_killed, ..entry };
    let mut writes = Vec::new();
    let mut count = past.ended + 1;
    if silent && end == RunEnd::Exited && exit.is_success() && processes_killed == 0 {
        entry.folded = 1;
        if let Some(before) = past.before.as_ref().filter(|before| goes_on(before, &entry, record))
        {
            (entry.started, entry.folded) = (before.started, before.folded + 1);
            writes.push(Write::DropRun(before.id.clone()));
            count -= 1;
        }
    }
    writes.push(Write::KeepRun(entry));
    if count > RUNS_KEPT {
        // The newest entry always stays: by it an end that is reported twice is known.
        let goes = past.oldest_idle.as_ref().or(past.oldest.as_ref());
        writes.extend(goes.cloned().map(Write::DropRun));
    }
    writes
}

/// Whether the idle run `entry` only continues `before`: idle too, on the same node, and no user switched in between.
fn goes_on(before: &RunEntry, entry: &RunEntry, record: &JobRecord) -> bool {
    let switched = record.last_switch.as_ref().map(|last| last.at);
    before.folded > 0 && before.node == entry.node && before.ended >= switched
}

/// Closes the run that the record still shows, which no node can report any more, and publishes the loss.
pub(super) fn close_as_lost(job: &mut Job, past: &Past, at: StoreTime) -> Vec<Write> {
    let Some(run) = job.record.run.take() else { return Vec::new() };
    let entry = RunEntry::begun(&job.record, &run);
    let how =
        Ending { exit: Exit::default(), end: RunEnd::Lost, processes_killed: 0, silent: false, at };
    let mut writes = close(&mut job.record, past, entry, how);
    writes.push(job.publish(EventKind::LeaseLost));
    writes
}
