//! A drill: an operator has the holder of a job crash on purpose, and the take-over is measured.
//!
//! The order is bound to one token, which is one grant of the lease: no later run, no other node and no restarted
//! process can take it for its own. It stays in the job's record with its result until the next one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::JobRecord;
use super::lease::Token;
use super::name::{NodeName, Owner, UserName};
use super::time::StoreTime;

/// The newest drill of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Drill {
    /// Of the lease whose holder must crash.
    pub token: Token,
    /// Who ordered it.
    pub by: UserName,
    /// When the order was written. The crash itself is later by the time that the order took to arrive, so whatever
    /// is measured from here is rather too long than too short.
    pub at: StoreTime,
    /// The node that started the next run; `None` until then.
    pub to: Option<NodeName>,
    /// When that run started.
    pub started: Option<StoreTime>,
}

impl Drill {
    /// From the order to the start of the next run, by the store's clock; `None` until somebody took over.
    #[must_use]
    pub fn takeover(&self) -> Option<Duration> {
        Some(self.started?.since(self.at))
    }
}

/// Whether the process that holds the lease as `owner` under `held` must crash now.
///
/// The lease must still be its own: an order that arrives late, when another has taken over, asks for nothing.
#[must_use]
pub fn must_crash(record: &JobRecord, owner: &Owner, held: Token) -> bool {
    let ordered = record.drill.as_ref().is_some_and(|drill| drill.token == held);
    let mine = |lease: &super::job::LeaseRecord| &lease.owner == owner && lease.token == held;
    ordered && record.lease.as_ref().is_some_and(mine)
}

#[cfg(test)]
mod tests {
    use super::super::job::LeaseRecord;
    use super::super::name::JobName;
    use super::*;

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

    #[test]
    fn the_takeover_counts_from_the_order() {
        let mut drill = leased("me", 7).drill.expect("a drill");
        assert_eq!(drill.takeover(), None);
        drill.started = Some(StoreTime(1_042));
        assert_eq!(drill.takeover(), Some(Duration::from_millis(42)));
    }
}
