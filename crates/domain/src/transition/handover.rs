//! Moves: an operator asks another node to take the job.
//!
//! The current holder is read from the same record that is written; read before, the move could name a node that has lost the job meanwhile
//! and exclude the wrong one. `domain/handover.rs` decides whether a move may be requested at all.

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
