//! What people want: switches and holds.
//!
//! Switching on and resuming are how a person says "try now", so both forgive crashes and waits of before. Were that decided
//! elsewhere, a job that gave up would stay down although somebody has just asked for it.

use super::{Job, Now, Write};
use crate::domain::event::EventKind;
use crate::domain::job::{Hold, LastSwitch, Participant};
use crate::domain::name::UserName;

/// Switches `user`'s participation. Tells whether it changed.
pub fn switch(
    job: &mut Job,
    user: &UserName,
    on: bool,
    reason: Option<&str>,
    now: Now,
) -> (bool, Vec<Write>) {
    let record = &mut job.record;
    let changed = record.participates(user) != on;
    let blamed = record.given_up || record.crashes > 0 || record.next.is_some();
    if changed {
        if on {
            record.participants.push(Participant { user: user.clone(), since: now.at });
        } else {
            record.participants.retain(|participant| &participant.user != user);
        }
        let (user, reason) = (user.clone(), reason.map(str::to_owned));
        record.last_switch = Some(LastSwitch { user, on, at: now.at, reason });
    }
    if on {
        job.forgive();
    }
    let told = changed || (on && blamed);
    (changed, told.then(|| job.publish(EventKind::ParticipationChanged)).into_iter().collect())
}

/// Forbids the job whatever the switches say. They stay, so resuming restores what people wanted.
pub fn hold(job: &mut Job, by: &UserName, reason: &str, now: Now) -> Vec<Write> {
    job.record.hold = Some(Hold { by: by.clone(), reason: reason.to_owned(), since: now.at });
    vec![job.publish(EventKind::Held)]
}

/// Allows it again.
pub fn resume(job: &mut Job) -> Vec<Write> {
    job.record.hold = None;
    job.forgive();
    vec![job.publish(EventKind::Resumed)]
}
