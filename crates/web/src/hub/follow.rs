//! Following the output of a job: fetched once for all followers, told to each as fast as it reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::seats::Seat;
use super::{Hub, LOOK_EVERY};
use crate::error::WebError;
use crate::frames::Protocol;
use crate::loglines::LogRing;
use soloist_domain::name::JobName;
use soloist_store::journal::Journal;

/// How many jobs one socket may follow.
pub(super) const FOLLOWS_MAX: usize = 16;

impl Hub {
    /// Begins to tell a seat the output of a job: lines after `after`, else the newest kept.
    ///
    /// # Errors
    /// [`WebError::NotFound`], [`WebError::Forbidden`] for a token that is bound to others, [`WebError::TooMany`].
    pub fn follow(
        self: &Arc<Self>,
        seat: &Seat,
        job: &str,
        after: Option<u64>,
    ) -> Result<(), WebError> {
        let nth = self.named(seat, job)?;
        {
            let mut pending = seat.pending.lock();
            if pending.follows.len() >= FOLLOWS_MAX && !pending.follows.contains_key(&nth) {
                return Err(WebError::TooMany {
                    detail: format!(
                        "a connection follows at most {FOLLOWS_MAX} jobs: unfollow one"
                    )
                    .into(),
                    retry_after: 0,
                });
            }
            if pending.follows.insert(nth, after).is_none() {
                self.slot(nth).followers.fetch_add(1, Ordering::AcqRel);
            }
        }
        // The same picture once more is no change: it must not count as a slow push.
        self.replace(nth, None);
        seat.mark(|pending| {
            pending.logs.insert(nth);
            // Our page shows more of a job that it follows.
            if seat.protocol == Protocol::Html && !pending.snapshot {
                pending.jobs.insert(nth);
            }
        });
        self.follow_log(nth);
        Ok(())
    }

    /// Tells a seat no more output of a job.
    ///
    /// # Errors
    /// [`WebError::NotFound`], [`WebError::Forbidden`].
    pub fn unfollow(&self, seat: &Seat, job: &str) -> Result<(), WebError> {
        let nth = self.named(seat, job)?;
        if seat.pending.lock().follows.remove(&nth).is_some() {
            self.unfollowed(nth);
        }
        Ok(())
    }

    pub(super) fn unfollowed(&self, job: usize) {
        let slot = self.slot(job);
        if slot.followers.fetch_sub(1, Ordering::AcqRel) == 1 {
            *slot.ring.lock() = LogRing::default();
        }
    }

    fn named(&self, seat: &Seat, job: &str) -> Result<usize, WebError> {
        if let Ok(name) = JobName::new(job) {
            seat.caller.bound.check_reads_job(&name)?;
        }
        self.roster()
            .number(job)
            .filter(|&nth| seat.caller.sees(&self.defined(nth)))
            .ok_or_else(|| WebError::not_found("there is no such job on this node"))
    }

    /// Fetches new lines of a followed job, once for all followers.
    pub(super) fn follow_log(self: &Arc<Self>, job: usize) {
        let slot = self.slot(job);
        if slot.followers.load(Ordering::Acquire) == 0
            || !slot.ring.lock().lacks(self.seen(job).record.log_seq)
            || slot.fetching.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let hub = Arc::clone(self);
        tokio::spawn(async move {
            hub.fetch_log(job).await;
            hub.slot(job).fetching.store(false, Ordering::Release);
            // A line may have come between the last look and the flag.
            hub.follow_log(job);
        });
    }

    async fn fetch_log(&self, job: usize) {
        let name = &self.defined(job).name;
        let slot = self.slot(job);
        while slot.followers.load(Ordering::Acquire) > 0 {
            let wanted = self.seen(job).record.log_seq;
            let after = {
                let mut ring = slot.ring.lock();
                ring.forget_if_newer_than(wanted);
                if !ring.lacks(wanted) {
                    return;
                }
                ring.newest()
            };
            match self.store.log(name, after, LogRing::KEPT).await {
                Ok(lines) => slot.ring.lock().add(lines, wanted),
                Err(error) => {
                    tracing::debug!(%error, job = %name, "output could not be read; the next change tries again");
                    // Not at once: the store is away, and the feed tells when it is back.
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
            }
            for seat in self.everybody() {
                if seat.pending.lock().follows.contains_key(&job) {
                    seat.mark(|pending| {
                        pending.logs.insert(job);
                    });
                }
            }
        }
    }
}
