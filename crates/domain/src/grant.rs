//! Requests for leases and renewals, and their answers.
//!
//! Data only. `transition/lease.rs` decides the answers. If a store and a node had types of their own, they would not agree on who may
//! run.

use std::time::Duration;

use super::lease::Token;
use super::name::{JobName, NodeName, Owner, RunId};
use super::time::{Began, StoreTime};

/// Conditions beside a free lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Wanted (a participant, no hold), not given up, `next.at` reached, not reserved by a move for another node.
    Wanted,
    /// The same, whatever a move says: the asker knows that no node can take the job which the move keeps it for.
    WantedDespiteMove,
    /// Nothing (`soloist run`).
    None,
}

/// A request for a lease.
#[derive(Debug, Clone)]
pub struct Acquire {
    /// Of which job.
    pub job: JobName,
    /// Random per acquisition; asking again with the same owner returns the same token and extends the lease.
    pub owner: Owner,
    /// For whom.
    pub node: NodeName,
    /// How long it lasts unrenewed.
    pub ttl: Duration,
    /// The condition, checked in the same atomic step.
    pub condition: Condition,
    /// Highest token this node has ever seen for the job: the new one exceeds it even if the store forgot.
    pub seen: Token,
}

/// The answer to [`Acquire`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// Yours, under `token`.
    Granted {
        /// The new token (or the same again for the same owner).
        token: Token,
        /// Store's clock at the grant.
        since: StoreTime,
    },
    /// Another owner holds it.
    Busy {
        /// The holder.
        node: NodeName,
        /// Time left at the store.
        remaining: Duration,
    },
    /// No user wants it, it is held, or it has given up.
    NotWanted,
    /// Its newest token is the largest that there is, so no newer one can be made.
    Exhausted,
    /// Its next run is not due before `wait` from now.
    NotYet {
        /// From now.
        wait: Duration,
    },
    /// A move reserves it for another node for `wait` more.
    Reserved {
        /// From now.
        wait: Duration,
    },
    /// The store restarted, was emptied, or its clock jumped: nothing is granted for `wait` more, while
    /// living holders re-assert theirs.
    Quarantined {
        /// From now.
        wait: Duration,
    },
}

/// One lease to renew.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in Acquire")]
pub struct Renewal {
    pub job: JobName,
    pub owner: Owner,
    pub node: NodeName,
    pub token: Token,
    pub ttl: Duration,
    /// When it was granted: a store that forgot it shows that again.
    pub since: Began,
    /// The run that the store has confirmed to know; it says so when it knows it no more.
    pub run: Option<RunId>,
}

/// The answer to one [`Renewal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// Good for another `ttl` from now at least, by the store's clock. `margin` is what was left of it (zero when it
    /// had to be re-asserted because the store had forgotten it and no newer token existed).
    Kept {
        /// Left before this renewal.
        margin: Duration,
        /// The store had forgotten the lease, or the run under it: the holder must report again what it has reported.
        forgot: bool,
    },
    /// Not yours any more: kill now.
    Lost,
}

/// The outcome of a release by a caller that knows its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The lease is free from now on.
    Yes,
    /// Nobody has it, and nothing was changed: it was released before, expired, or was never granted.
    Nothing,
    /// The lease is another's: nothing was changed.
    Another,
}
