//! The port of jobs in memory: one map, and what the store says of itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::Connection;

use super::events::{Bell, Happened};
use super::records::MemoryRecords;
use super::{Clock, World, shelf};
use soloist_domain::doubt::{self, Epoch};
#[cfg(test)]
use soloist_domain::event::JobEvent;
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, RunId};
use soloist_domain::rotation::Memory;
use soloist_domain::time::{Boot, Stamp, StoreTime, signed_millis};
use soloist_store::backend::{Backend, Dispatches};
use soloist_store::core::{Known, KnownTurns, version};
use soloist_store::engine::{
    Beside, Change, Commit, Engine, Keep, LeaseWrite, Page, Part, Reading, Stored, StoredLease, Way,
};
use soloist_store::examine::Finding;
use soloist_store::journal::AuditEntry;
use soloist_store::records::{Changed, Look, Looked, Plan, Records, Write};
use soloist_store::{Description, For, Options, Result};
use soloist_store_sql::sql::dispatch::BySql;

/// What all processes share of jobs.
#[derive(Default)]
struct Jobs {
    /// Grows with every commit, so that no head comes twice.
    commits: i64,
    /// What the store says of itself.
    epoch: Option<Epoch>,
    /// How many servers there were before this one.
    server: u64,
    jobs: HashMap<JobName, Row>,
    /// Answers that are lost, although what was asked is done.
    lost: usize,
}

#[derive(Default)]
struct Row {
    head: String,
    body: String,
    /// When the record goes by itself, in milliseconds.
    ends: Option<i64>,
    /// Text and end, in milliseconds.
    lease: Option<(String, i64)>,
    runs: BTreeMap<u64, String>,
    log: Vec<(u64, String)>,
    #[cfg(test)]
    told: Vec<Vec<JobEvent>>,
}

/// One process.
#[derive(Clone)]
pub(crate) struct MemoryStore {
    clock: Clock,
    jobs: Arc<Mutex<Jobs>>,
    known: Arc<Known>,
    /// The epoch and the longest lease that it remembers.
    remembers: Arc<Mutex<(String, i64)>>,
    /// How far its estimate lags behind the clock.
    lag: Duration,
    bounds: LogBounds,
    records: MemoryRecords,
    shelf: Arc<Mutex<Connection>>,
}

impl MemoryStore {
    /// The first process at an empty store.
    #[expect(clippy::expect_used, reason = "only tests come here")]
    pub(super) fn alone(options: &Options, clock: Clock) -> Self {
        let store = Self {
            jobs: Arc::default(),
            known: Arc::default(),
            remembers: Arc::default(),
            lag: Duration::ZERO,
            bounds: options.log,
            records: MemoryRecords::on(clock.clone()),
            shelf: Arc::new(Mutex::new(shelf::empty().expect("a database in memory"))),
            clock,
        };
        let longest = signed_millis(options.longest_lease);
        // Nothing shows that it was ever used: whatever it forgot is over.
        store.jobs.lock().epoch = Some(Epoch::begin(&store.glance("epoch-0", "0", 0), 1, longest));
        store
    }

    /// Another process at the same store.
    pub(super) fn another(&self, options: &Options) -> Self {
        Self { bounds: options.log, ..self.beside() }
    }

    /// The same, which keeps as much output.
    pub(crate) fn beside(&self) -> Self {
        Self {
            known: Arc::default(),
            remembers: Arc::default(),
            records: self.records.another(Duration::ZERO),
            ..self.clone()
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn bell(&self) -> &Bell {
        self.records.bell()
    }

    pub(super) fn remembered(&self) -> &Arc<Known> {
        &self.known
    }

    pub(super) fn shelf(&self) -> &Mutex<Connection> {
        &self.shelf
    }

    /// Writes what goes with a step.
    pub(super) fn write_down(&self, write: &Write) {
        self.records.write(write);
    }

    /// Another server has the store from now on, with nothing of its jobs if it `forgot`.
    pub(super) fn restart(&self, forgot: bool) {
        let mut jobs = self.jobs.lock();
        jobs.server += 1;
        if forgot {
            jobs.jobs.clear();
            jobs.epoch = None;
        }
        let server = jobs.server.to_string();
        self.records.remember_as(Memory { server, forgot: None });
    }

    fn now(&self) -> StoreTime {
        self.clock.now().floor()
    }

    fn glance<'a>(&self, fresh: &'a str, server: &'a str, ttl: i64) -> doubt::Look<'a> {
        let now = self.now().0;
        doubt::Look { known: "", remembered: 0, server, ttl, suspect: false, fresh, now }
    }

    /// Judges what the store says of itself, and writes that; what is left of the quarantine.
    fn trust(&self, jobs: &mut Jobs, ttl: Duration) -> Duration {
        let mut remembers = self.remembers.lock();
        let (known, remembered) = &*remembers;
        let (server, fresh) = (jobs.server.to_string(), format!("epoch-{}", jobs.server));
        let look = self.glance(&fresh, &server, signed_millis(ttl));
        let look = doubt::Look { known, remembered: *remembered, ..look };
        let (judged, _) = doubt::judge(jobs.epoch.as_ref(), &look);
        let left = judged.quarantine(look.now);
        *remembers = (judged.id.clone(), judged.reach());
        jobs.epoch = Some(judged);
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    }
}

/// What unit tests bring about.
#[cfg(test)]
impl MemoryStore {
    pub(crate) fn new() -> Self {
        Self::alone(&Options::default(), Clock::new(0))
    }

    pub(crate) fn bounded(&self, bounds: LogBounds) -> Self {
        Self { bounds, ..self.beside() }
    }

    pub(crate) fn lagging(&self, lag: Duration) -> Self {
        Self { lag, ..self.beside() }
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    pub(crate) fn shows(&self) -> StoreTime {
        self.now()
    }

    pub(crate) fn boots(&self) -> Boot {
        self.clock.boot()
    }

    /// Nothing is granted for so long.
    pub(crate) fn doubt(&self, quarantine: Duration) {
        let now = self.now();
        if let Some(epoch) = &mut self.jobs.lock().epoch {
            epoch.until = (now + quarantine).0;
        }
    }

    pub(crate) fn lose_answers(&self, number: usize) {
        self.jobs.lock().lost = number;
    }

    pub(crate) fn told(&self, job: &JobName) -> Vec<Vec<JobEvent>> {
        self.jobs.lock().jobs.get(job).map(|row| row.told.clone()).unwrap_or_default()
    }
}

impl Jobs {
    fn stored(&self, job: &JobName, now: StoreTime) -> Stored {
        let row = self.jobs.get(job).filter(|row| row.ends.is_none_or(|ends| ends > now.0));
        let Some(row) = row else { return Stored::default() };
        let lease = row.lease.as_ref().filter(|(_, until)| *until > now.0);
        Stored {
            head: row.head.clone(),
            body: row.body.clone(),
            lease: lease.map(|(text, until)| StoredLease {
                text: text.clone(),
                left: StoreTime(*until).since(now),
            }),
        }
    }

    /// `quarantine`: what is left of it.
    fn commit(&mut self, change: &Change<'_>, now: StoreTime, quarantine: Duration) -> Commit {
        let stored = self.stored(change.job, now);
        let lease = stored.lease.as_ref().map_or("", |lease| lease.text.as_str());
        let same = stored.head == change.head
            && lease.starts_with(change.lease)
            && lease.is_empty() == change.lease.is_empty()
            && change.window.contains(&now)
            && !(change.calm && quarantine > Duration::ZERO);
        if !same {
            return Commit::Refused { stored, quarantine };
        }
        self.commits += 1;
        let micros = now.0 * 1_000 + self.commits % 1_000;
        let row = self.jobs.entry(change.job.clone()).or_default();
        row.lease.take_if(|(_, until)| *until <= now.0);
        match &change.lease_write {
            LeaseWrite::None => {}
            LeaseWrite::For(text, ttl) => {
                row.lease = Some((text.clone(), (now + *ttl).0));
            }
            LeaseWrite::Text(text) => {
                if let Some((old, _)) = &mut row.lease {
                    old.clone_from(text);
                }
            }
            LeaseWrite::Drop => row.lease = None,
        }
        if let Some((version, body)) = change.record {
            row.ends = change.expires.map(|expires| (now + expires).0);
            row.head = format!("{version} {micros}");
            body.clone_into(&mut row.body);
        }
        for one in &change.beside {
            match one {
                Beside::Index { number, text } => drop(row.runs.insert(*number, text.clone())),
                Beside::Unindex { number } => drop(row.runs.remove(number)),
                Beside::Append { number, text } => row.log.push((*number, text.clone())),
                Beside::Trim(kept) => drop(row.log.drain(..row.log.len().saturating_sub(*kept))),
            }
        }
        #[cfg(test)]
        if !change.tell.is_empty() {
            row.told.push(change.tell.to_vec());
        }
        Commit::Done { head: row.head.clone(), unsafe_grant: None }
    }
}

#[async_trait]
impl Backend for MemoryStore {
    fn is_a_server(&self) -> bool {
        false
    }

    async fn open(&self, _: &Options) -> Result<()> {
        Ok(())
    }

    async fn be_ready(&self, _: For) -> Result<()> {
        Ok(())
    }

    async fn refuses_login(&self) -> bool {
        false
    }

    async fn describe(&self) -> Result<Description> {
        Ok(Description { what: "memory".to_owned(), shared: false, warnings: Vec::new() })
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    fn noting(&self, entry: AuditEntry) -> Arc<dyn Backend> {
        Arc::new(Self { records: self.records.noting(entry), ..self.clone() })
    }

    fn dispatch(self: Arc<Self>) -> Arc<dyn Dispatches> {
        Arc::new(BySql(self))
    }

    fn in_memory(&self) -> Option<Box<dyn std::any::Any>> {
        Some(Box::new(World(self.clone())))
    }
}

#[async_trait]
impl Records for MemoryStore {
    fn note(&self) -> Option<&AuditEntry> {
        self.records.note()
    }

    fn latest(&self) -> Option<Stamp> {
        self.records.latest()
    }

    async fn look(&self, looks: &[Look]) -> Result<Looked> {
        self.records.look(looks).await
    }

    async fn change_and_look(
        &self,
        plan: &Plan,
        done: &[Look],
        refused: &[Look],
    ) -> Result<(Changed, Looked)> {
        self.records.change_and_look(plan, done, refused).await
    }

    fn turns(&self) -> &KnownTurns {
        self.records.turns()
    }
}

#[async_trait]
impl Engine for MemoryStore {
    fn known(&self) -> &Known {
        &self.known
    }

    fn boot(&self) -> Boot {
        self.clock.boot()
    }

    fn estimate(&self, _: &JobName, _: Boot) -> Option<(StoreTime, Duration)> {
        Some((StoreTime(self.now().0 - signed_millis(self.lag)), Duration::from_millis(250)))
    }

    async fn read(&self, jobs: &[JobName], _: Way) -> Result<Reading> {
        tokio::task::yield_now().await;
        let mut all = self.jobs.lock();
        let quarantine = self.trust(&mut all, Duration::ZERO);
        let at = self.now();
        let records = jobs.iter().map(|job| all.stored(job, at)).collect();
        let epoch = all.epoch.as_ref().map(|epoch| epoch.id.clone()).unwrap_or_default();
        Ok(Reading { epoch, at, quarantine, records })
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let mut all = self.jobs.lock();
        self.trust(&mut all, Duration::ZERO);
        let seen = jobs.iter().map(|job| {
            let stored = all.stored(job, self.now());
            (version(&stored.head).unwrap_or(0), stored.lease.map(|lease| lease.left))
        });
        Ok(seen.collect())
    }

    async fn commit(&self, change: &Change<'_>) -> Result<Commit> {
        tokio::task::yield_now().await;
        let mut all = self.jobs.lock();
        let now = self.clock.change().floor();
        let quarantine =
            change.grant.map_or(Duration::ZERO, |_| self.trust(&mut all, change.reach));
        let first = all.commit(change, now, quarantine);
        if let Commit::Done { .. } = &first {
            change.notes.iter().for_each(|note| self.write_down(note));
            if !change.tell.is_empty() {
                let stored = all.stored(change.job, now);
                let events = change.tell.to_vec();
                self.bell().ring(&Happened::Job { events, stored, at: now });
            }
        }
        if all.lost > 0 && !change.once {
            all.lost -= 1;
            // The connection broke; it is sent again.
            return Ok(all.commit(change, now, quarantine));
        }
        Ok(first)
    }

    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let mut all = self.jobs.lock();
        let now = self.now();
        let longest = leases.iter().map(|keep| keep.reach).max().unwrap_or_default();
        self.trust(&mut all, longest);
        let keep = |all: &mut Jobs, keep: &Keep<'_>| {
            let lease =
                all.stored(keep.job, now).lease.filter(|it| it.text.starts_with(&keep.text))?;
            all.jobs.get_mut(keep.job)?.lease.as_mut()?.1 = (now + keep.ttl).0;
            Some(lease.left)
        };
        Ok(leases.iter().map(|one| keep(&mut all, one)).collect())
    }

    async fn forget(&self, job: &JobName, head: &str) -> Result<bool> {
        let mut all = self.jobs.lock();
        let stored = all.stored(job, self.now());
        let same = stored.head == head && stored.lease.is_none();
        if same {
            all.jobs.remove(job);
        }
        Ok(same)
    }

    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page> {
        let all = self.jobs.lock();
        let mut newest_first: Vec<String> = all
            .jobs
            .get(job)
            .map(|row| row.runs.values().rev().cloned().collect())
            .unwrap_or_default();
        if let Some(before) = before {
            let sought = format!("{before} ");
            let at = newest_first.iter().position(|entry| entry.starts_with(&sought));
            newest_first.drain(..at.map_or(newest_first.len(), |at| at + 1));
        }
        newest_first.truncate(limit);
        Ok(Page { stored: all.stored(job, self.now()), entries: newest_first })
    }

    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]> {
        let all = self.jobs.lock();
        let Some(row) = all.jobs.get(job) else { return Ok([const { None }; 3]) };
        let mut all_but_newest: Vec<&String> = row.runs.values().collect();
        all_but_newest.pop();
        let marked = all_but_newest.iter().find(|entry| entry.contains(mark));
        Ok([
            row.runs.get(&number).cloned(),
            all_but_newest.first().map(|entry| (*entry).clone()),
            marked.map(|entry| (*entry).clone()),
        ])
    }

    async fn every_lease(&self) -> Result<Vec<(JobName, StoredLease)>> {
        let all = self.jobs.lock();
        let each = all.jobs.keys().map(|job| (job.clone(), all.stored(job, self.now()).lease));
        let mut held: Vec<_> = each.filter_map(|(job, lease)| Some((job, lease?))).collect();
        held.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(held)
    }

    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>> {
        let all = self.jobs.lock();
        let Some(row) = all.jobs.get(job) else { return Ok(Vec::new()) };
        let texts = |lines: &[(u64, String)]| lines.iter().map(|(_, text)| text.clone()).collect();
        let below = |seq| row.log.partition_point(|(number, _)| *number < seq);
        let (from, to) = match part {
            Part::Newest => (row.log.len().saturating_sub(limit), row.log.len()),
            Part::After(seq) => {
                let from = below(seq + 1);
                (from, (from + limit).min(row.log.len()))
            }
            Part::Before(seq) => (below(seq).saturating_sub(limit), below(seq)),
        };
        Ok(texts(&row.log[from..to]))
    }

    fn log_bounds(&self) -> LogBounds {
        self.bounds
    }
}
