//! How often a person may try to sign in: pure.
//!
//! Three counts, each of attempts that were admitted in the last [`WINDOW`]:
//!
//! - of one account from one address: strict, because a person mistypes a few times and a guesser does not stop;
//! - of one account from addresses that have not signed in to it yet: this slows a guesser with many addresses down, and does not lock the
//!   owner of the account out where they have signed in before;
//! - of one address, whatever the account: generous, because an office may share it. Attempts on an account that has signed in from there
//!   do not count here and are not refused for it, so a guesser in the same office locks no colleague out.
//!
//! After the free attempts each further one must wait, longer every time up to a bound. A refused attempt does not count, so no person is
//! locked out for ever.

use std::time::Duration;

use super::time::StoreTime;

/// Attempts are remembered for this long.
pub const WINDOW: Duration = Duration::from_secs(15 * 60);

/// How many attempts cost nothing, and how long one may have to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Limit {
    pub free: usize,
    pub longest: Duration,
}

/// One account from one address.
pub const BY_BOTH: Limit = Limit { free: 5, longest: Duration::from_secs(120) };
/// One account from addresses that are new to it: a short wait, so that its owner has a chance beside a guesser.
pub const BY_ACCOUNT: Limit = Limit { free: 20, longest: Duration::from_secs(15) };
/// One address.
pub const BY_ADDRESS: Limit = Limit { free: 50, longest: Duration::from_secs(30) };

impl Limit {
    /// How long the next attempt must wait after `attempts` (oldest first); zero: it may come now.
    #[must_use]
    pub fn wait(self, attempts: &[StoreTime], now: StoreTime) -> Duration {
        let recent = attempts.iter().filter(|at| now.since(**at) < WINDOW).count();
        let (Some(over), Some(last)) = (recent.checked_sub(self.free), attempts.last()) else {
            return Duration::ZERO;
        };
        // 2 s, 4 s, 8 s, ...
        let delay = Duration::from_secs(2 << over.min(8)).min(self.longest);
        delay.saturating_sub(now.since(*last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(attempts: u32) -> u64 {
        let all: Vec<StoreTime> = (0..attempts).map(|_| StoreTime(1_000)).collect();
        BY_BOTH.wait(&all, StoreTime(1_000)).as_secs()
    }

    #[test]
    fn waits_begin_after_the_free_attempts_and_grow_to_two_minutes() {
        let seconds: Vec<u64> = (3..15).map(after).collect();
        assert_eq!(seconds, [0, 0, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120]);
        assert_eq!(after(5_000), 120);
    }

    #[test]
    fn a_wait_passes_and_old_attempts_are_forgotten() {
        let six = [StoreTime(0); 6];
        assert_eq!(BY_BOTH.wait(&six, StoreTime(3_000)), Duration::from_secs(1));
        assert_eq!(BY_BOTH.wait(&six, StoreTime(4_000)), Duration::ZERO);
        let later = StoreTime(i64::try_from(WINDOW.as_millis()).unwrap());
        assert_eq!(BY_BOTH.wait(&[StoreTime(0); 500], later), Duration::ZERO);
    }
}
