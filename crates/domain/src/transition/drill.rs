//! Drills: the holder of a lease is ordered to crash, and the next start completes the drill.
//!
//! The order names a token and is compared with the current lease in the same step; otherwise it could hit a later holder.

use super::{Job, Now, Write};
use crate::drill::Drill;
use crate::event::EventKind;
use crate::job::{JobRecord, LeaseRecord, RunEnd, RunRecord};
use crate::lease::Token;
use crate::name::{Owner, UserName};
use crate::time::StoreTime;

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

/// Whether the process that holds the lease as `owner` under `held` must crash now.
///
/// The lease must still be its own: an order that arrives late, when another has taken over, asks for nothing.
#[must_use]
pub fn must_crash(record: &JobRecord, owner: &Owner, held: Token) -> bool {
    let ordered = record.drill.as_ref().is_some_and(|drill| drill.token == held);
    let mine = |lease: &LeaseRecord| &lease.owner == owner && lease.token == held;
    ordered && record.lease.as_ref().is_some_and(mine)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::name::{JobName, NodeName};

    fn leased(owner: &str, token: u64) -> JobRecord {
        let mut record = JobRecord::untouched(JobName::new("outbound").expect("a valid name"));
        record.lease = Some(LeaseRecord {
            node: NodeName::new("node-a").expect("a valid name"),
            owner: Owner(owner.to_owned()),
            token: Token(token),
            since: StoreTime(0),
            expires_in: Duration::from_secs(4),
            ttl: Duration::from_secs(4),
        });
        record.drill = Some(Drill {
            token: Token(7),
            by: UserName::new("ada").expect("a valid name"),
            at: StoreTime(1_000),
            to: None,
            started: None,
        });
        record
    }

    #[test]
    fn only_the_process_that_holds_the_ordered_token_crashes() {
        let (me, mine) = (Owner("me".to_owned()), Token(7));
        assert!(must_crash(&leased("me", 7), &me, mine));
        assert!(!must_crash(&leased("me", 8), &me, Token(8)), "a later run");
        assert!(!must_crash(&leased("other", 8), &me, mine), "taken over meanwhile");
        assert!(!must_crash(&leased("me", 7), &Owner(String::new()), Token(0)), "a new process");
        let mut released = leased("me", 7);
        released.lease = None;
        assert!(!must_crash(&released, &me, mine));
        let mut calm = leased("me", 7);
        calm.drill = None;
        assert!(!must_crash(&calm, &me, mine));
    }
}
