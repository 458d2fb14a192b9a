//! Leases for one run of a tick that its caller names, and which ticks are spent. The law is in `domain/spent`.

use async_trait::async_trait;

use super::Result;
use super::leases::Acquire;
use soloist_domain::name::{JobName, Owner, TickText};
pub use soloist_domain::spent::{How, Once, Outcome, Spent, SpentEnd, Standing};
pub use soloist_domain::transition::spend::Answer;

/// Transitions and readings of ticks that are spent.
#[async_trait]
pub trait SpentTicks {
    /// As [`super::leases::Leases::acquire`]; a grant spends the tick in the same step. [`Answer::Spent`] comes before all else that may be in
    /// the way; the asker has no lease then.
    ///
    /// # Errors
    /// As there.
    async fn acquire_once(&self, ask: &Acquire, once: &Once) -> Result<Answer>;

    /// The same where nobody waits: `None`, and nothing was changed, if anybody stands in the [line](super::line) of that lease.
    ///
    /// # Errors
    /// As there.
    async fn acquire_once_if_no_line(&self, ask: &Acquire, once: &Once) -> Result<Option<Answer>>;

    /// By whom a tick was spent, and how it stands with that; `None`: it is not spent.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`], [`super::StoreError::Corrupt`].
    async fn spent(&self, name: &JobName, tick: &TickText) -> Result<Option<(Spent, Standing)>>;

    /// Tells of a tick that was spent with the lease which `owner` holds, in case the store forgot it.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`], [`super::StoreError::Stale`].
    async fn tell_spent(&self, name: &JobName, owner: &Owner, spent: &Spent) -> Result<()>;
}
