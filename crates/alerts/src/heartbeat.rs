//! Outgoing heartbeats: calls the address of a job after each success, and that of the cluster every minute. A monitor outside notices
//! when the calls stop; Soloist cannot report its own end.
//!
//! Only the node with the sender's seat calls, and only while it sees the store. A call is bounded and blocks nothing. A failed call is
//! a warning in the log, without the address, which is a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::task::JoinSet;

use super::channel;
use soloist_config::{Config, Secret};
use soloist_domain::name::JobName;
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::feed::Feed;

/// How often the cluster's is called.
const EVERY: Duration = Duration::from_secs(60);
/// An older success is not told: who had the seat then told it, or it is no news.
const NEWS: Duration = Duration::from_secs(30);
/// Pauses before the further attempts after a success.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Whose; `None`: the cluster's.
type Of = Option<JobName>;

/// What a node knows of heartbeats.
#[derive(Default)]
pub(super) struct Heartbeats {
    /// The newest success of each job that was told.
    told: BTreeMap<JobName, StoreTime>,
    /// Those that had a success since their last call began.
    owed: BTreeSet<JobName>,
    /// When the cluster's was called last.
    called: Option<Boot>,
    /// Those that are under way: the next call waits for its end.
    busy: BTreeSet<Of>,
    calls: JoinSet<(Of, channel::Result<String>)>,
}

/// Whether the configuration has one.
pub(super) fn any(config: &Config) -> bool {
    config.heartbeat_url.is_some() || config.jobs.iter().any(|job| job.heartbeat_url.is_some())
}

/// Whether a success at `at` is to be told at `now`, if one at `told` was the last.
fn is_news(at: StoreTime, told: Option<StoreTime>, now: StoreTime) -> bool {
    told.is_none_or(|told| told < at) && now.since(at) <= NEWS
}

impl Heartbeats {
    /// Begins the calls that are due; the caller has the seat.
    pub(super) fn beat(&mut self, config: &Config, feed: &Feed) {
        while let Some(done) = self.calls.try_join_next() {
            match done {
                Ok((of, result)) => self.settle(of, result),
                // It can only have been ended with everything else.
                Err(error) => {
                    tracing::error!(%error, "a heartbeat was not called to its end");
                    self.busy.clear();
                }
            }
        }
        let now = clock::boot();
        let has_one =
            |job: &JobName| config.job(job.as_str()).is_some_and(|job| job.heartbeat_url.is_some());
        self.told.retain(|job, _| has_one(job));
        self.owed.retain(has_one);
        for job in &config.jobs {
            let Some(url) = &job.heartbeat_url else { continue };
            let Some(seen) = feed.job(&job.name) else { continue };
            let Some(at) = seen.record.success() else { continue };
            let of = Some(job.name.clone());
            let known = self.told.get(&job.name).copied();
            if is_news(at, known, seen.store_now(now)) {
                self.told.insert(job.name.clone(), at);
                self.owed.insert(job.name.clone());
            }
            if self.owed.contains(&job.name) && self.busy.insert(of.clone()) {
                self.owed.remove(&job.name);
                self.call(of, url.clone(), &AGAIN);
            }
        }
        if let Some(url) = &config.heartbeat_url
            && self.called.is_none_or(|called| now.since(called) >= EVERY)
            && self.busy.insert(None)
        {
            self.called = Some(now);
            self.call(None, url.clone(), &[]);
        }
    }

    fn call(&mut self, of: Of, url: Secret, pauses: &'static [Duration]) {
        self.calls.spawn(async move {
            let mut result = channel::call(&url).await;
            for pause in pauses {
                if result.is_ok() {
                    break;
                }
                tokio::time::sleep(*pause).await;
                result = channel::call(&url).await;
            }
            (of, result)
        });
    }

    fn settle(&mut self, of: Of, result: channel::Result<String>) {
        self.busy.remove(&of);
        match (result, &of) {
            (Ok(said), _) => tracing::debug!(said, "a heartbeat was taken"),
            (Err(error), Some(job)) => {
                tracing::warn!(%job, %error, "the heartbeat of a job was not taken: look at its heartbeat_url");
            }
            (Err(error), None) => {
                tracing::warn!(%error, "the heartbeat of the cluster was not taken: look at heartbeat_url");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_is_told_once_and_an_old_one_never() {
        let at = StoreTime(100_000);
        assert!(is_news(at, None, StoreTime(101_000)));
        assert!(!is_news(at, Some(at), StoreTime(101_000)), "told already");
        assert!(is_news(at, Some(StoreTime(99_000)), StoreTime(130_000)), "another had the seat");
        let night = StoreTime(100_000 + 8 * 3_600_000);
        assert!(!is_news(at, None, night), "a node that starts says nothing of yesterday");
    }
}
