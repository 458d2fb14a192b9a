//! How long leases are good, on pages of jobs that are open in a browser.
//!
//! A renewal is no change of a job, so nothing else tells it. Rows of the dashboard show no lease and cost nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Hub;
use crate::frames::Protocol;
use soloist_process::clock;

/// How often the page of a job is told how long its lease is good.
const LEASE_EVERY: Duration = Duration::from_secs(1);

impl Hub {
    /// Whether pages of this job have not been told for long enough how long its lease is good; they are then.
    pub(super) fn owes_lease(&self, job: usize) -> bool {
        let slot = self.slot(job);
        if slot.followers.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut watch = slot.watch.lock();
        let now = clock::boot();
        let due = watch.leased.is_none_or(|told| now.since(told) >= LEASE_EVERY);
        if due {
            watch.leased = Some(now);
        }
        due
    }

    /// Pages of `jobs` get their heads once more; those that show only a row get nothing.
    pub(super) fn tell_leases(&self, jobs: &[usize]) {
        let pages = self.everybody().into_iter().filter(|seat| seat.protocol == Protocol::Html);
        for seat in pages.take_while(|_| !jobs.is_empty()) {
            let own: Vec<usize> = {
                let pending = seat.pending.lock();
                let shows = |job: &&usize| !pending.snapshot && pending.follows.contains_key(job);
                jobs.iter().filter(shows).copied().collect()
            };
            if !own.is_empty() {
                seat.mark(|pending| pending.moved.extend(own));
            }
        }
    }
}
