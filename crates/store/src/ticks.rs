//! Ticks of jobs with a schedule: granted, settled, requested, and the outcome of each.
//!
//! The law is in `domain/tick`; the store keeps no schedule of its own. A caller brings that of its file, and the record decides.

use async_trait::async_trait;

use super::Result;
use super::leases::{Acquire, Acquired};
use soloist_domain::name::JobName;
use soloist_domain::tick::{Asked, Entry, Granted, Refused, Schedule, Sight, TickName};

/// Transitions and readings of ticks.
#[async_trait]
pub trait TickBook {
    /// As [`super::leases::Leases::acquire`], for the next tick that is due; with a grant comes which. What has become certain by then
    /// is written, whatever the answer is. `seen` is what the asker saw last: a store that forgot it learns it.
    ///
    /// # Errors
    /// As there.
    async fn acquire_tick(
        &self,
        ask: &Acquire,
        schedule: &Schedule,
        seen: Option<&Sight>,
    ) -> Result<(Acquired, Option<Granted>)>;

    /// Writes what time alone has decided. Publishes `scheduled` if there was something. `seen` as in [`TickBook::acquire_tick`]: a store
    /// that is in doubt takes that in, and decides nothing.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn settle_ticks(
        &self,
        job: &JobName,
        schedule: &Schedule,
        seen: Option<&Sight>,
    ) -> Result<()>;

    /// Takes in a run that somebody asks for; answers the name of its tick. The same request gets the same answer.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn ask_run(
        &self,
        job: &JobName,
        schedule: &Schedule,
        asked: &Asked,
    ) -> Result<std::result::Result<TickName, Refused>>;

    /// Takes back a run that waits. Whether there was one.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn take_back_run(&self, job: &JobName, tick: &TickName) -> Result<bool>;

    /// Forgets a newest tick that lies ahead of the store's clock. Whether it did.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn reset_taken(&self, job: &JobName) -> Result<bool>;

    /// What became of the ticks that are decided, the newest first; not those that are open or wait.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`], [`super::StoreError::Corrupt`].
    async fn ticks(&self, job: &JobName) -> Result<Vec<Entry>>;
}
