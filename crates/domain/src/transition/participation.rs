//! What people want: switches and holds.
//!
//! With switching on and resuming a person says "try now", so both clear earlier crashes and waits. If that were decided elsewhere, a job
//! that was given up would stay down although a person has just asked for it.

use super::{Job, Now, Write};
use crate::event::EventKind;
use crate::job::{Hold, LastSwitch, Participant};
use crate::name::UserName;
use crate::tick::shifted;
use crate::timeline::{Want, WantKind};

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
    let mut writes = Vec::new();
    let blamed = record.given_up || record.crashes > 0 || record.next.is_some();
    if changed {
        if on {
            record.participants.push(Participant { user: user.clone(), since: now.at });
        } else {
            let gone = record.participants.extract_if(.., |one| &one.user == user);
            writes.extend(gone.map(|one| over(one, now)));
        }
        let (user, reason) = (user.clone(), reason.map(str::to_owned));
        record.last_switch = Some(LastSwitch { user, on, at: now.at, reason });
        shifted(record, now.at);
    }
    if on {
        job.forgive();
    }
    let told = changed || (on && blamed);
    writes.extend(told.then(|| job.publish(EventKind::ParticipationChanged)));
    (changed, writes)
}

/// A participation that ends now.
pub(super) fn over(one: Participant, now: Now) -> Write {
    let Participant { user: who, since: from } = one;
    Write::KeepWant(Want { kind: WantKind::Participation, who, from, to: now.at })
}

/// The hold that ends now, if there is one.
fn hold_over(job: &mut Job, now: Now) -> Option<Write> {
    let Hold { by: who, since: from, .. } = job.record.hold.take()?;
    Some(Write::KeepWant(Want { kind: WantKind::Hold, who, from, to: now.at }))
}

/// Forbids the job whatever the switches say. They stay, so resuming restores what people wanted.
pub fn hold(job: &mut Job, by: &UserName, reason: &str, now: Now) -> Vec<Write> {
    let over = hold_over(job, now);
    job.record.hold = Some(Hold { by: by.clone(), reason: reason.to_owned(), since: now.at });
    shifted(&mut job.record, now.at);
    over.into_iter().chain([job.publish(EventKind::Held)]).collect()
}

/// Allows it again.
pub fn resume(job: &mut Job, now: Now) -> Vec<Write> {
    let over = hold_over(job, now);
    shifted(&mut job.record, now.at);
    job.forgive();
    over.into_iter().chain([job.publish(EventKind::Resumed)]).collect()
}
