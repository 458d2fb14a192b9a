//! Jobs: participations, holds, moves, and the snapshot everything else is computed from.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use soloist_domain::job::JobRecord;
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, UserName};
use soloist_domain::time::StoreTime;

/// The state of some jobs at one instant of the store.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Changes when the store was emptied or replaced: versions of different epochs do not compare.
    pub epoch: String,
    /// The store's clock when it was taken.
    pub at: StoreTime,
    /// How much longer leases that the store has forgotten may be living: it was emptied or replaced, or its clock
    /// jumped. Zero when all is well.
    pub quarantine: Duration,
    /// The records, in the order they were asked for; untouched jobs have version 0.
    pub jobs: Vec<JobRecord>,
}

/// Transitions of what people want. Every one is atomic, grows the version and publishes its event.
#[async_trait]
pub trait Jobs {
    /// Reads the records of `jobs`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn snapshot(&self, jobs: &[JobName]) -> Result<Snapshot>;

    /// Switches `user`'s participation. Switching on (even when already on) clears `given_up`, `crashes` and
    /// `next`. Returns whether the participation changed. Publishes `participation_changed` when anything did.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn participate(
        &self,
        job: &JobName,
        user: &UserName,
        on: bool,
        reason: Option<&str>,
    ) -> Result<bool>;

    /// Forbids the job whatever the switches say. Publishes `held`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn hold(&self, job: &JobName, by: &UserName, reason: &str) -> Result<()>;

    /// Allows it again; also clears `given_up`, `crashes` and `next`. Publishes `resumed`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn resume(&self, job: &JobName) -> Result<()>;

    /// Asks for a hand-over, valid for `lasts` by the store's clock, counted from when the next run is due if the job
    /// rests. The present holder, else the node of the newest run, becomes `moving.from`. Publishes `move_requested`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn request_move(
        &self,
        job: &JobName,
        to: Option<&NodeName>,
        by: &UserName,
        lasts: Duration,
    ) -> Result<()>;

    /// Orders the process that holds the lease under `token` to crash, and gives the instant of the order; `None`
    /// when that lease is not out any more. Asking again for the same token changes nothing. The first run that
    /// starts under a later token, after that one was lost, completes `drill`; if the run ended in any other way, the
    /// order lapses then. Publishes `drill_requested`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn request_drill(
        &self,
        job: &JobName,
        token: Token,
        by: &UserName,
    ) -> Result<Option<StoreTime>>;
}
