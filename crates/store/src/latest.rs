//! An upper bound of the store's clock: its last known instant, set against this machine's CLOCK_BOOTTIME.
//!
//! For decisions that must not come too early. [`memory`](super::memory) has the lower bound, and detects its jumps.

use std::time::Duration;

use soloist_domain::time::{Boot, Stamp};

/// An answer of which more than this is unknown says nothing useful about the clock.
const VAGUE: Duration = Duration::from_millis(5);

/// By how much the clock of the server is ahead of this machine's CLOCK_BOOTTIME.
#[derive(Debug, Clone, Copy)]
pub struct Latest {
    /// Microseconds, at most.
    ahead: i64,
    /// How much less it may be.
    unknown: i64,
    /// When that was found.
    found: Boot,
}

impl Latest {
    /// Of two clocks one is faster by a thousandth at most.
    fn drift(self, now: Boot) -> i64 {
        (micros(now) - micros(self.found)).abs() / 1_000
    }

    /// The clock at `now`, at most; `None` when that says too little.
    pub fn at(self, now: Boot) -> Option<Stamp> {
        let drift = self.drift(now);
        let vague = i64::try_from(VAGUE.as_micros()).unwrap_or(i64::MAX);
        (self.unknown + drift <= vague).then(|| Stamp(micros(now) + self.ahead + drift))
    }

    /// The newest word: the server said `at` between `sent` and `received`. The reading that says most is kept, unless the
    /// clock was set.
    pub fn read(before: Option<Self>, at: Stamp, sent: Boot, received: Boot) -> Self {
        let unknown = micros(received) - micros(sent);
        let now = Self { ahead: at.0 - micros(sent), unknown, found: sent };
        before
            .filter(|before| {
                let most = before.ahead + before.drift(sent);
                most < now.ahead && most >= now.ahead - unknown
            })
            .unwrap_or(now)
    }
}

fn micros(at: Boot) -> i64 {
    i64::try_from(at.0 / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(us: u64) -> Boot {
        Boot(us * 1_000)
    }

    #[test]
    fn the_clock_is_never_taken_for_earlier_than_it_is_and_the_best_reading_counts() {
        let at = |ahead: i64, us: u64| Stamp(ahead + i64::try_from(us).unwrap());
        // Answered after 4 ms, then after 200 us, then after 3 ms.
        let slow = Latest::read(None, at(7_000, 3_000), boot(1_000), boot(5_000));
        assert!(slow.at(boot(5_000)).unwrap() >= at(7_000, 5_000));
        let best = Latest::read(Some(slow), at(7_000, 10_100), boot(10_000), boot(10_200));
        let said = best.at(boot(10_200)).unwrap();
        assert!(said >= at(7_000, 10_200) && said <= at(7_000, 10_301), "{said:?}");
        let kept = Latest::read(Some(best), at(7_000, 21_000), boot(20_000), boot(23_000));
        let said = kept.at(boot(23_000)).unwrap();
        assert!(said >= at(7_000, 23_000) && said <= at(7_000, 23_120), "{said:?}");
        // Set, either way.
        for ahead in [-900_000, 900_000] {
            let set = Latest::read(Some(kept), at(ahead, 31_000), boot(30_000), boot(32_000));
            let said = set.at(boot(32_000)).unwrap();
            assert!(said >= at(ahead, 32_000) && said <= at(ahead, 33_100), "{said:?}");
        }
        assert_eq!(kept.at(boot(9_000_000)), None, "too long ago");
        let vague = Latest::read(None, at(7_000, 1_000), boot(1_000), boot(9_000));
        assert_eq!(vague.at(boot(9_000)), None, "too slow");
    }
}
