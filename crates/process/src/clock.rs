//! Reads CLOCK_BOOTTIME, and nothing else; the one place where this machine's time enters.
//!
//! Not `Instant`: on Linux that is CLOCK_MONOTONIC, which stops in suspend while the store's lease expires.

use nix::time::{ClockId, clock_gettime};

use crate::sabotage::{Bug, planted};
use soloist_domain::time::Boot;

/// Now, on CLOCK_BOOTTIME (clock_gettime(2)).
///
/// # Panics
/// When the kernel does not know CLOCK_BOOTTIME (before Linux 2.6.39).
#[must_use]
pub fn boot() -> Boot {
    #[expect(
        clippy::expect_used,
        reason = "no Linux we run on lacks it, and nothing is safe without"
    )]
    let now = clock_gettime(if planted(Bug::MonotonicClock) {
        ClockId::CLOCK_MONOTONIC
    } else {
        ClockId::CLOCK_BOOTTIME
    })
    .expect("CLOCK_BOOTTIME exists");
    let nanos = i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec());
    Boot(u64::try_from(nanos).unwrap_or(0))
}
