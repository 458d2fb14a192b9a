//! Leases: who may run a job, until when, under which token.

use std::time::Duration;

use super::Result;
use crate::domain::job::LeaseRecord;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, Owner, RunId};
use crate::domain::time::{Began, StoreTime};

/// What must hold besides the lease being free.
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
    /// Nobody wants it, it is held, or it has given up.
    NotWanted,
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
    /// Good for another `ttl` from now, by the store's clock. `margin` is what was left of it (zero when it
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

/// One job's lease and version, cheaply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// The job's version.
    pub version: u64,
    /// Time left of its lease; `None` when it is free.
    pub lease_left: Option<Duration>,
}

/// A lease that somebody has, whatever its name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// Of a job, or what `soloist run --name` was told.
    pub name: JobName,
    /// Who has it under which token, since when by the store's clock, and how much longer.
    pub lease: LeaseRecord,
}

/// Transitions of leases. Every one is atomic; every change of state is published in the same step.
#[expect(async_fn_in_trait, reason = "never used as a trait object; the enum Store forwards")]
pub trait Leases {
    /// Takes the lease if it is free and the condition holds.
    ///
    /// Mints `max(previous + 1, store_ms * 1024, seen + 1)`. Publishes `lease_acquired`. Clears `next` and
    /// `moving`. If the record still shows a run of an
    /// earlier token, that run is closed as `lost` in the history and `lease_lost` is published first.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: unknown; ask again with the same owner.
    async fn acquire(&self, ask: &Acquire) -> Result<Acquired>;

    /// Renews many leases at once, one answer each, in order. Publishes nothing.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: unknown for all of them; retry until each deadline.
    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>>;

    /// Gives the lease back without a run having been recorded (never started, or `soloist run`).
    /// Not being the owner any more is not an error: there is nothing to give back. The owner alone is compared: it is
    /// random per acquisition, and whoever lost the answer to its request knows no token.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn release(&self, job: &JobName, owner: &Owner) -> Result<()>;

    /// Version and remaining lease of each job, in order, in one round trip per hundred.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<Observed>>;

    /// Every lease that lasts, by name. For people who look: nothing may be decided by it. What ends before it is read is
    /// left out. A lease that is granted meanwhile may be missing. One that the store forgot is missing until its holder
    /// renews it.
    ///
    /// It costs more than other readings. SQLite looks at every job that was ever touched. Redis goes through all keys, 1,000
    /// at a time (SCAN, <https://redis.io/docs/latest/commands/scan/>), on each master of a cluster, and then reads the
    /// leases, a hundred at a time.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: also when one master of a cluster is out of reach. A list with gaps would pass for
    /// a whole one. [`super::StoreError::Corrupt`].
    async fn held(&self) -> Result<Vec<HeldLease>>;
}
