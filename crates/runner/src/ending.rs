//! Turns a guard's report into a journal entry and records it.

use std::time::Duration;

use super::child::Cause;
use super::job_run::Gone;
use soloist_config::JobConfig;
use soloist_domain::job::RunEnd;
use soloist_domain::name::{JobName, Owner};
use soloist_store::journal::{Ended, Journal as _, Then};
use soloist_store::leases::Leases as _;
use soloist_store::{Store, StoreError};

/// The first wait before a store that did not answer is asked again. It is short, because another node waits for the lease.
const ASK_AGAIN: Duration = Duration::from_millis(10);
/// Each further wait is twice as long, up to this.
const ASK_AGAIN_MAX: Duration = Duration::from_millis(200);

/// The waits, one after the other.
fn waits() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(ASK_AGAIN), |wait| Some((*wait * 2).min(ASK_AGAIN_MAX)))
}

/// How a run ended and what follows.
pub(super) fn ending(
    config: &JobConfig,
    gone: &Gone,
    stopping: bool,
    lost: bool,
    crashes: u32,
    uptime: Duration,
) -> (RunEnd, Then) {
    let end = match gone.cause {
        _ if lost => RunEnd::Fenced,
        Some(Cause::Deadline) => RunEnd::Fenced,
        // One that ended by itself a moment before did what it did.
        Some(cause) if gone.limit.is_some() && cause != Cause::Itself => RunEnd::TimedOut,
        _ if stopping => RunEnd::Stopped,
        Some(Cause::Itself) if gone.exit.is_success() => RunEnd::Exited,
        // Nobody saw the end: of a tick that is a loss, and `on_loss` says what follows.
        Some(Cause::GuardLost) if config.schedule.is_some() => RunEnd::Died,
        _ => RunEnd::Crashed,
    };
    (end, config.follows(end, crashes, uptime, rand::random::<f64>()))
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
        for wait in waits() {
            let (job, answer) = match self {
                Self::Run(ended) => (&ended.job, store.record_ended(ended).await),
                Self::Nothing(job, owner) => (job, store.release(job, owner).await),
            };
            match answer {
                Ok(()) => return,
                Err(StoreError::Unavailable(why)) => {
                    tracing::warn!(%job, %why, "the end is not recorded yet; trying again");
                    tokio::time::sleep(wait).await;
                }
                Err(error) => {
                    tracing::warn!(%job, %error, "the end was recorded by another");
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_fails_once_delays_the_next_holder_by_milliseconds() {
        let first: Vec<_> = waits().take(7).map(|wait| wait.as_millis()).collect();
        assert_eq!(first, [10, 20, 40, 80, 160, 200, 200]);
    }
}
