//! Which nodes held a job, and which people wanted it, for longer than the history of runs goes back.
//!
//! Ended runs become spans some time after they ended; a reader has both, so it need not wait for that. Participations and holds that are over are
//! written in the step that ends them.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;
pub use soloist_domain::timeline::{SPANS_KEPT, Timeline, WANTS_KEPT};

/// A timeline as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The store's clock.
    pub at: StoreTime,
    /// The timeline.
    pub line: Timeline,
}

/// Transitions and readings of timelines.
#[async_trait]
pub trait Timelines {
    /// The newest `most` spans, the run under way, and participations and holds.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait), [`super::StoreError::Corrupt`].
    async fn timeline(&self, job: &JobName, most: usize) -> Result<Seen>;

    /// Makes spans of the runs that ended since the last time, and forgets what was over longer than `kept` ago, and what is too much
    /// ([`SPANS_KEPT`], [`WANTS_KEPT`]). Two who do so at once do it once.
    ///
    /// # Errors
    /// As [`Timelines::timeline`].
    async fn fold_runs(&self, job: &JobName, kept: Duration) -> Result<()>;
}
