//! What sources did in the last day, the same for all nodes ([`soloist_domain::throughput`]).
//!
//! Sources themselves, and their current counters, are in [`super::dispatch`].

use async_trait::async_trait;

use super::Result;
pub use soloist_domain::throughput::{Counts, Past};

/// The memory of the last day.
#[async_trait]
pub trait Throughput {
    /// All that is kept; `None` as long as nothing was ever noted.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait), [`super::StoreError::Corrupt`].
    async fn throughput(&self) -> Result<Option<Past>>;

    /// Writes down what was done until now, while `step` is under way, unless that was written already. Of several nodes that do so
    /// at once, one writes.
    ///
    /// # Errors
    /// As [`Throughput::throughput`].
    async fn note_throughput(&self, step: i64, counted: &Counts) -> Result<()>;
}
