//! How long to wait after a crash, and when to stop trying.
//!
//! Exponential with jitter. The random part arrives as a number from 0 to 1: this room draws none.

use std::time::Duration;

/// `backoff`, `give_up_after` and `min_uptime` of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// Wait after the first crash in a row.
    pub first: Duration,
    /// Longest wait.
    pub max: Duration,
    /// After so many crashes in a row no node tries again; 0: nodes always try again.
    pub give_up_after: u32,
    /// A run shorter than this continues the row; a longer one begins a new row.
    pub min_uptime: Duration,
}

/// What follows a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AfterCrash {
    /// Try again after `wait`.
    Retry {
        /// Crashes in a row, this one counted.
        crashes: u32,
        /// From the end of the run, on the store's clock.
        wait: Duration,
    },
    /// The attempts are used up.
    GiveUp {
        /// Crashes in a row, this one counted.
        crashes: u32,
    },
}

impl Backoff {
    /// Decides after a crash that ended a run of length `uptime`, with `crashes` before it in a row.
    ///
    /// `jitter` from 0 to 1 shortens the wait by up to a fifth, so that jobs which died together do not
    /// return together; the configured `max` is never exceeded.
    #[must_use]
    pub fn after_crash(&self, crashes: u32, uptime: Duration, jitter: f64) -> AfterCrash {
        let crashes = if uptime < self.min_uptime { crashes.saturating_add(1) } else { 1 };
        if self.give_up_after > 0 && crashes >= self.give_up_after {
            return AfterCrash::GiveUp { crashes };
        }
        let doubled = self.first.saturating_mul(1 << (crashes - 1).min(20));
        let whole = doubled.min(self.max);
        AfterCrash::Retry { crashes, wait: whole.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn backoff(give_up_after: u32) -> Backoff {
        Backoff { first: SECOND, max: SECOND * 60, give_up_after, min_uptime: SECOND * 5 }
    }

    #[test]
    fn waits_double_up_to_the_maximum() {
        let mut waits = Vec::new();
        for crashes in 0..9 {
            if let AfterCrash::Retry { wait, .. } = backoff(0).after_crash(crashes, SECOND, 0.0) {
                waits.push(wait.as_secs());
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert!(matches!(backoff(0).after_crash(u32::MAX, SECOND, 0.0), AfterCrash::Retry { .. }));
    }

    #[test]
    fn a_long_run_begins_a_new_row_and_a_full_row_gives_up() {
        assert_eq!(
            backoff(3).after_crash(2, SECOND * 5, 0.0),
            AfterCrash::Retry { crashes: 1, wait: SECOND }
        );
        assert_eq!(backoff(3).after_crash(2, SECOND, 0.0), AfterCrash::GiveUp { crashes: 3 });
    }

    #[test]
    fn jitter_only_ever_shortens_the_wait_by_a_fifth() {
        assert_eq!(
            backoff(0).after_crash(0, SECOND, 1.0),
            AfterCrash::Retry { crashes: 1, wait: Duration::from_millis(800) }
        );
    }
}
