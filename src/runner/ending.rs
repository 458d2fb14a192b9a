//! How a run ended, and what follows: from what its guard saw to what the journal is told.

use std::time::Duration;

use super::child::Cause;
use super::run::Gone;
use crate::config::{JobConfig, Repeat};
use crate::domain::backoff::AfterCrash;
use crate::domain::job::RunEnd;
use crate::store::journal::Then;

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
