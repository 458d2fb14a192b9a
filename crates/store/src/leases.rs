//! Leases: who may run a job, until when, under which token.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
pub use soloist_domain::grant::{Acquire, Acquired, Condition, Released, Renewal, Renewed};
use soloist_domain::job::LeaseRecord;
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, Owner};
use soloist_domain::spent::Outcome;
use soloist_domain::time::StoreTime;

/// One job's lease and version, cheaply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// The job's version.
    pub version: u64,
    /// Time left of its lease; `None` when it is free.
    pub lease_left: Option<Duration>,
    /// The store's clock just now, as the answer shows it, and how far it may be off; `None`: not known.
    pub clock: Option<(StoreTime, Duration)>,
}

/// A lease that is held, whatever its name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// Of a job, or what `soloist run --name` was told.
    pub name: JobName,
    /// Who has it under which token, since when by the store's clock, and how much longer.
    pub lease: LeaseRecord,
}

/// Transitions of leases. Every one is atomic; every change of state is published in the same step.
#[async_trait]
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

    /// The same where nobody waits: `None`, and nothing was changed, if anybody stands in the [line](super::line) of that lease.
    ///
    /// # Errors
    /// As [`Leases::acquire`].
    async fn acquire_if_no_line(&self, ask: &Acquire) -> Result<Option<Acquired>>;

    /// Renews many leases at once, one answer each, in order. Publishes nothing.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: unknown for all of them; retry until each deadline.
    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>>;

    /// Gives the lease back without a run having been recorded (never started, or `soloist run`).
    /// Not being the owner any more is not an error: there is nothing to release. The owner alone is compared: it is random
    /// per acquisition, and a caller that lost the answer to its request knows no token.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn release(&self, job: &JobName, owner: &Owner) -> Result<()>;

    /// The same of who knows the token as well: another's lease stays, and the answer says so. `outcome` says the outcome of the tick that
    /// was spent with it ([`super::spent`]), if one was; by [`Leases::release`] nothing was started for it.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn release_under(
        &self,
        job: &JobName,
        owner: &Owner,
        token: Token,
        outcome: Outcome,
    ) -> Result<Released>;

    /// Version and remaining lease of each job, in order, in one round trip per hundred.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<Observed>>;

    /// Every lease that lasts, by name. For people who look: nothing may be decided by it. What ends before it is read is
    /// left out. A lease that is granted meanwhile may be missing. One that the store forgot is missing until its holder
    /// renews it.
    ///
    /// It costs more than other readings. SQLite reads every lease that was not released. Redis goes through all keys, 1,000
    /// at a time (SCAN, <https://redis.io/docs/latest/commands/scan/>), on each master of a cluster, and then reads the
    /// leases, a hundred at a time.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: also when one master of a cluster is out of reach. A list with gaps would pass for
    /// a whole one. [`super::StoreError::Corrupt`].
    async fn held(&self) -> Result<Vec<HeldLease>>;
}
