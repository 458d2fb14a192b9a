//! The history of a node's jobs: makes spans of the runs that ended, and knows the last hour of every job.
//!
//! A job that changed is looked at once a minute at most, however often it changes, so a thousand jobs cost a few calls to the store a
//! second. In between, [`History::hour`] follows the newest record that the feed knows. For each job one node makes the spans: the one
//! on which it ran last, or, if that is gone, the first of those that live. Should two do so, the store takes it once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;

use soloist_config::Current;
use soloist_domain::job::JobRecord;
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::{Boot, StoreTime};
use soloist_domain::timeline::Timeline;
use soloist_process::clock;
use soloist_store::feed::{Change, Feed};
use soloist_store::timeline::Timelines as _;
use soloist_store::{Result, Store};

/// How often a job that changes is read.
const READ_EVERY: Duration = Duration::from_secs(60);
/// How often it is looked which are due.
const TICK: Duration = Duration::from_secs(1);
/// More are not read in one tick.
const AT_ONCE: usize = 50;
/// Spans of an hour that are kept in memory for a job.
const SPANS: usize = 120;

/// A handle; cheap to clone.
#[derive(Clone)]
pub struct History {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    feed: Feed,
    config: Current,
    jobs: Mutex<HashMap<JobName, Known>>,
}

/// What is known of a job.
#[derive(Default)]
struct Known {
    line: Timeline,
    /// What the record said of runs and people when it was read last.
    print: Option<Print>,
    read: Option<Boot>,
}

/// When this differs, spans or participations changed; progress and output change nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Print {
    token: u64,
    running: bool,
    ended: Option<StoreTime>,
    people: usize,
    switched: Option<StoreTime>,
    hold: Option<StoreTime>,
}

impl Print {
    fn of(record: &JobRecord) -> Self {
        Self {
            token: record.token.0,
            running: record.run.is_some(),
            ended: record.last_exit.as_ref().map(|exit| exit.at),
            people: record.participants.len(),
            switched: record.last_switch.as_ref().map(|last| last.at),
            hold: record.hold.as_ref().map(|hold| hold.since),
        }
    }
}

impl Known {
    /// The record says something that was not read, and the last reading was long enough ago.
    fn is_due(&self, record: &JobRecord, now: Boot) -> bool {
        let rested = self.read.is_none_or(|read| now.since(read) >= READ_EVERY);
        rested && self.print.as_ref() != Some(&Print::of(record))
    }
}

impl History {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(store: Store, feed: Feed, config: Current) -> Self {
        Self { inner: Arc::new(Inner { store, feed, config, jobs: Mutex::default() }) }
    }

    /// The last hour of `job`, and `now` by the store's clock; `None` as long as nothing is known of the job.
    #[must_use]
    pub fn hour(&self, job: &JobName) -> Option<(Timeline, StoreTime)> {
        let seen = self.inner.feed.job(job)?;
        // What began in this millisecond has a length as well: its picture is not drawn again until something changes.
        let now = StoreTime(seen.store_now(clock::boot()).0 + 1);
        let mut jobs = self.inner.jobs.lock();
        let known = jobs.entry(job.clone()).or_default();
        known.line.follow(&seen.record, now);
        let config = self.inner.config.get();
        let own = config.jobs.iter().find(|own| own.name == *job);
        known.line.schedule = own.and_then(|own| Some(own.schedule.as_ref()?.law.clone()));
        let from = StoreTime(now.0 - 3_600_000);
        Some((known.line.within(from, now), now))
    }

    /// Reads and folds until the runtime ends.
    pub async fn run(self) {
        let mut changes = self.inner.feed.subscribe();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.know_own();
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Ok(Change::Job(job)) => {
                        self.inner.jobs.lock().entry(job).or_default();
                    }
                    Ok(Change::Resynced) | Err(RecvError::Lagged(_)) => self.know_own(),
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
                _ = tick.tick() => self.read_due().await,
            }
        }
    }

    fn know_own(&self) {
        let config = self.inner.config.get();
        let mut jobs = self.inner.jobs.lock();
        for job in &config.jobs {
            jobs.entry(job.name.clone()).or_default();
        }
    }

    async fn read_due(&self) {
        if self.inner.feed.trouble().is_some() {
            return;
        }
        let now = clock::boot();
        let names: Vec<JobName> = self.inner.jobs.lock().keys().cloned().collect();
        let records = names.into_iter().filter_map(|name| self.inner.feed.job(&name));
        let due = records.filter(|seen| {
            self.inner
                .jobs
                .lock()
                .get(&seen.record.name)
                .is_some_and(|known| known.is_due(&seen.record, now))
        });
        for seen in due.take(AT_ONCE).collect::<Vec<_>>() {
            if let Err(error) = self.read(&seen.record).await {
                tracing::debug!(%error, job = %seen.record.name, "its history could not be read; it is tried again");
                return;
            }
        }
    }

    async fn read(&self, record: &JobRecord) -> Result<()> {
        let (job, read) = (&record.name, clock::boot());
        if self.folds(record) {
            self.inner.store.fold_runs(job, self.inner.config.get().history).await?;
        }
        let seen = self.inner.store.timeline(job, SPANS).await?;
        let line = seen.line.within(StoreTime(seen.at.0 - 3_600_000), seen.at);
        let known = Known { line, print: Some(Print::of(record)), read: Some(read) };
        self.inner.jobs.lock().insert(job.clone(), known);
        Ok(())
    }

    /// Whether this node makes the spans of the job.
    fn folds(&self, record: &JobRecord) -> bool {
        let nodes = self.inner.feed.nodes();
        let mut alive: Vec<&NodeName> =
            nodes.iter().filter(|node| node.is_alive()).map(|node| &node.beat.node).collect();
        alive.sort_unstable();
        let last = record.last_exit.as_ref().map(|exit| &exit.node);
        let chosen = last.filter(|last| alive.contains(last)).or_else(|| alive.first().copied());
        chosen.is_none_or(|chosen| *chosen == self.inner.config.get().node)
    }
}
