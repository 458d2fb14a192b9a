//! When a lease expires, on a clock that cannot be set.
//!
//! All processes that share the file run on one kernel, so CLOCK_BOOTTIME is the same for all of them, and its boot id shows a restart. Some
//! containers (systemd-nspawn, LXC) have a boot id of their own, and a time namespace may shift CLOCK_BOOTTIME: a deadline of another boot id is
//! therefore not simply over. It is judged by the wall clock, which all of them share, and cannot last longer than its lease.

use std::time::Duration;

use rusqlite::Row;

use super::row::uint;
use super::step::Moment;
use soloist_domain::time::{Boot, StoreTime};

/// The end of a lease.
#[derive(Clone)]
pub(super) struct Deadline {
    /// Length of the lease that ends here.
    pub(super) ttl: Duration,
    pub(super) boot: Boot,
    /// Whose CLOCK_BOOTTIME.
    pub(super) boot_id: String,
    pub(super) wall: StoreTime,
}

impl Deadline {
    /// `ttl` from now.
    pub(super) fn after(at: &Moment, ttl: Duration) -> Self {
        Self { ttl, boot: at.boot + ttl, boot_id: at.boot_id.clone(), wall: at.wall + ttl }
    }

    /// From four columns of `leases` that begin at `first`: `ttl_ms`, `expires_ns`, `boot`, `expires`.
    pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            ttl: Duration::from_millis(uint(row.get(first)?)),
            boot: Boot(uint(row.get(first + 1)?)),
            boot_id: row.get(first + 2)?,
            wall: StoreTime(row.get(first + 3)?),
        })
    }

    /// What is left; `None` when it is over.
    pub(super) fn left(&self, at: &Moment) -> Option<Duration> {
        let left = if self.boot_id == at.boot_id {
            self.boot.since(at.boot)
        } else {
            // More than the whole lease means that the clock was set back meanwhile: it says nothing then.
            let left = self.wall.since(at.wall);
            if left > self.ttl { Duration::ZERO } else { left }
        };
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn moment(boot_s: u64, boot_id: &str, wall_s: i64) -> Moment {
        Moment {
            boot: Boot(boot_s * 1_000_000_000),
            boot_id: boot_id.to_owned(),
            wall: StoreTime(wall_s * 1_000),
            micros: wall_s * 1_000_000,
            quarantine: Duration::ZERO,
        }
    }

    #[test]
    fn setting_the_clock_moves_no_lease() {
        let deadline = Deadline::after(&moment(100, "a", 5_000), SECOND * 10);
        assert_eq!(deadline.left(&moment(104, "a", 9_000_000)), Some(SECOND * 6));
        assert_eq!(deadline.left(&moment(104, "a", 1)), Some(SECOND * 6));
        assert_eq!(deadline.left(&moment(110, "a", 5_010)), None);
    }

    #[test]
    fn a_lease_of_another_boot_lasts_by_the_wall_clock_and_never_longer_than_itself() {
        let deadline = Deadline::after(&moment(100, "a", 5_000), SECOND * 10);
        assert_eq!(deadline.left(&moment(3, "b", 5_004)), Some(SECOND * 6));
        assert_eq!(deadline.left(&moment(900, "b", 5_004)), Some(SECOND * 6));
        assert_eq!(deadline.left(&moment(3, "b", 5_010)), None);
        assert_eq!(deadline.left(&moment(3, "b", 1)), None);
    }
}
