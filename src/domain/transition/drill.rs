//! Drills: the holder of a lease is ordered to crash, and the next start completes the drill.
//!
//! The order names a token and is compared with the living lease in the same step; otherwise it could hit a later holder.

use super::{Job, Now, Write};
use crate::domain::drill::Drill;
use crate::domain::event::EventKind;
use crate::domain::job::{JobRecord, RunEnd, RunRecord};
use crate::domain::lease::Token;
use crate::domain::name::UserName;
use crate::domain::time::StoreTime;

/// Orders the holder of the lease `token` to crash. Answers when that was ordered; `None` when the lease is not out any more.
/// An order that is repeated, also after the crash, changes nothing.
pub fn request(
    job: &mut Job,
    token: Token,
    by: &UserName,
    now: Now,
) -> (Option<StoreTime>, Vec<Write>) {
    let record = &mut job.record;
    if let Some(known) = record.drill.as_ref().filter(|drill| drill.token == token) {
        return (Some(known.at), Vec::new());
    }
    if record.lease.as_ref().is_none_or(|lease| lease.token != token) {
        return (None, Vec::new());
    }
    record.drill = Some(Drill { token, by: by.clone(), at: now.at, to: None, started: None });
    (Some(now.at), vec![job.publish(EventKind::DrillRequested)])
}

/// A drill ends with the first run after it; one whose run did not crash measured nothing and is forgotten.
pub(super) fn end_with(record: &mut JobRecord, run: &RunRecord) {
    let Some(drill) = &mut record.drill else { return };
    if drill.started.is_some() || drill.token >= run.token {
        return;
    }
    if record.last_exit.as_ref().is_some_and(|last| last.end == RunEnd::Lost) {
        drill.to = Some(run.node.clone());
        drill.started = Some(run.started);
    } else {
        record.drill = None;
    }
}
