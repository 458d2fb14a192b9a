//! How a run ended, and what follows: from what its guard saw to what the journal is told; and the telling.

use std::time::Duration;

use super::child::Cause;
use super::job_run::Gone;
use crate::config::{JobConfig, Repeat};
use crate::domain::backoff::AfterCrash;
use crate::domain::job::RunEnd;
use crate::domain::name::{JobName, Owner};
use crate::store::journal::{Ended, Journal as _, Then};
use crate::store::leases::Leases as _;
use crate::store::{Store, StoreError};

/// A store that is away is asked again this often.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// How a run ended and what follows.
pub(super) fn ending(
    config: &JobConfig,
    gone: &Gone,
    stopping: bool,
    lost: bool,
    crashes: u32,
    uptime: Duration,
) -> (RunEnd, Then) {
    if lost || gone.cause == Some(Cause::Deadline) {
        return (RunEnd::Fenced, Then::Nothing);
    }
    if stopping {
        return (RunEnd::Stopped, Then::Nothing);
    }
    if gone.cause == Some(Cause::Itself) && gone.exit.is_success() {
        let then = match config.repeat {
            Repeat::After(wait) => Then::Repeat(wait),
            Repeat::Never => Then::Done,
        };
        return (RunEnd::Exited, then);
    }
    let then = match config.backoff.after_crash(crashes, uptime, rand::random::<f64>()) {
        AfterCrash::Retry { crashes, wait } => Then::Retry { crashes, wait },
        AfterCrash::GiveUp { crashes } => Then::GiveUp { crashes },
    };
    (RunEnd::Crashed, then)
}

/// What ends the time under a lease.
pub(super) enum Last {
    /// A run.
    Run(Ended),
    /// Nothing was started.
    Nothing(JobName, Owner),
}

impl Last {
    /// Writes it, which gives the lease back; tries until the store has answered.
    pub(super) async fn write(&self, store: &Store) {
        loop {
            let (job, answer) = match self {
                Self::Run(ended) => (&ended.job, store.record_ended(ended).await),
                Self::Nothing(job, owner) => (job, store.release(job, owner).await),
            };
            match answer {
                Ok(()) => return,
                Err(StoreError::Unavailable(why)) => {
                    tracing::warn!(%job, %why, "the end is not recorded yet; trying again");
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                Err(error) => {
                    tracing::warn!(%job, %error, "the end was recorded by another");
                    return;
                }
            }
        }
    }
}
