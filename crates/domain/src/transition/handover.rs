//! Moves: an operator asks that another node takes the job.
//!
//! Who must let go is read from the same record that is written; asked before, the move could name a node that has lost the job
//! meanwhile and keep it from the wrong one. Whether a move may be asked for at all is `domain/handover.rs`.

use std::time::Duration;

use super::{Job, Now, Write};
use crate::event::EventKind;
use crate::handover::place;
use crate::job::Move;
use crate::name::{NodeName, UserName};

/// Asks for a hand-over to `to`, or to any other node. It is valid for `lasts`, counted from when the next run is due if
/// the job rests.
pub fn request(
    job: &mut Job,
    to: Option<&NodeName>,
    by: &UserName,
    lasts: Duration,
    now: Now,
) -> Vec<Write> {
    let from = place(&job.record).cloned();
    let due = job.record.next.map_or(now.at, |next| next.at.max(now.at));
    job.record.moving = Some(Move { from, to: to.cloned(), by: by.clone(), until: due + lasts });
    vec![job.publish(EventKind::MoveRequested)]
}
