//! Kinds of instant that must never be mixed.
//!
//! [`Boot`] is this machine's CLOCK_BOOTTIME: it cannot be set and runs in suspend; every deadline of a script is one. [`StoreTime`] is the
//! store's wall clock: the only clock that is stored, compared between nodes and shown to people. Other rooms read the clocks.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Lengths of time as people write and read them: in a file, on the command line, in a form.
pub use humantime::{format_duration, parse_duration};
use serde::{Deserialize, Serialize};

/// An instant on this machine's CLOCK_BOOTTIME, in nanoseconds since boot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct Boot(pub u64);

impl Boot {
    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub fn since(self, earlier: Boot) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Boot {
    type Output = Boot;
    fn add(self, by: Duration) -> Boot {
        Boot(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Boot {
    type Output = Boot;
    fn sub(self, by: Duration) -> Boot {
        Boot(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// An instant on the store's wall clock, in milliseconds since 1970-01-01 UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct StoreTime(pub i64);

impl StoreTime {
    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub fn since(self, earlier: StoreTime) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for StoreTime {
    type Output = StoreTime;
    fn add(self, by: Duration) -> StoreTime {
        StoreTime(self.0.saturating_add(signed_millis(by)))
    }
}

impl Sub<Duration> for StoreTime {
    type Output = StoreTime;
    fn sub(self, by: Duration) -> StoreTime {
        StoreTime(self.0.saturating_sub(signed_millis(by)))
    }
}

impl StoreTime {
    /// How far apart the two are.
    #[must_use]
    pub fn apart(self, other: StoreTime) -> Duration {
        Duration::from_millis(self.0.abs_diff(other.0))
    }
}

/// When something began, as the process that did it remembers: on its machine's clock, and on the store's once that answered.
///
/// A store that forgot gets it again, and shows the same instant as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Began {
    /// On this machine's clock.
    pub boot: Boot,
    /// As the store said; `None` until it has.
    pub at: Option<StoreTime>,
}

impl Began {
    /// The store's clock and this machine's may tell intervals that differ by so much; more than that, and the store's
    /// clock was set, or it is another store's.
    pub const CLOCKS_AGREE: Duration = Duration::from_secs(2);

    /// Of this instant the store has said nothing yet.
    #[must_use]
    pub fn at_boot(boot: Boot) -> Self {
        Self { boot, at: None }
    }

    /// The same instant on the clock of a store that shows `now` when this machine shows `boot`: what the store said, as
    /// long as its clock is the same; else counted back, so that what lasts is never shown as younger or older than it is.
    #[must_use]
    pub fn on(self, now: StoreTime, boot: Boot) -> StoreTime {
        let counted = now - boot.since(self.boot);
        self.at.filter(|at| at.apart(counted) <= Self::CLOCKS_AGREE).unwrap_or(counted)
    }
}

/// An instant on the store's clock in microseconds since 1970-01-01 UTC: dispatch and rotations promise gaps that are
/// exact, and milliseconds tie.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct Stamp(pub i64);

impl Stamp {
    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub fn since(self, earlier: Stamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The last whole millisecond at or before this: how long something lasts is never said too long.
    #[must_use]
    pub fn floor(self) -> StoreTime {
        StoreTime(self.0.div_euclid(1_000))
    }

    /// The first whole millisecond at or after this: a client that comes then does not come too soon.
    #[must_use]
    pub fn ceil(self) -> StoreTime {
        StoreTime(self.0.saturating_add(999).div_euclid(1_000))
    }
}

impl Add<Duration> for Stamp {
    type Output = Stamp;
    fn add(self, by: Duration) -> Stamp {
        Stamp(self.0.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl From<StoreTime> for Stamp {
    fn from(at: StoreTime) -> Stamp {
        Stamp(at.0.saturating_mul(1_000))
    }
}

/// Whole milliseconds.
#[must_use]
pub fn signed_millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// The same, where none is below zero.
#[must_use]
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_forgot_shows_the_instant_that_it_said_unless_its_clock_was_set() {
        let second = 1_000_000_000;
        let began = Began { boot: Boot(5 * second), at: Some(StoreTime(100_000)) };
        let now = Boot(65 * second);
        assert_eq!(began.on(StoreTime(160_000), now), StoreTime(100_000));
        assert_eq!(began.on(StoreTime(161_900), now), StoreTime(100_000), "a slow answer");
        assert_eq!(began.on(StoreTime(3_760_000), now), StoreTime(3_700_000), "an hour ahead");
        assert_eq!(began.on(StoreTime(60_000), now), StoreTime(0), "set back");
        let unsaid = Began::at_boot(began.boot);
        assert_eq!(unsaid.on(StoreTime(160_007), now), StoreTime(100_007));
    }
}
