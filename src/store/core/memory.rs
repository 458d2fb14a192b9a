//! An engine in memory with a clock that only the test moves: hours of leases and waits in milliseconds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::memory_records::MemoryRecords;
use super::{Known, KnownTurns};
use crate::domain::event::JobEvent;
use crate::domain::log::LogBounds;
use crate::domain::name::{JobName, RunId};
use crate::domain::time::{Boot, Stamp, StoreTime};
use crate::store::Result;
use crate::store::engine::{
    Beside, Change, Commit, Engine, Keep, LeaseWrite, Page, Part, Reading, Stored, StoredLease, Way,
};
use crate::store::journal::AuditEntry;
use crate::store::records::{Changed, Look, Looked, Plan, Records};

/// What all processes share.
#[derive(Default)]
struct World {
    /// Milliseconds.
    now: i64,
    /// Grows with every commit, so that no head comes twice.
    commits: i64,
    quarantine: Duration,
    jobs: HashMap<JobName, Row>,
    /// Answers that are lost, although what was asked is done.
    lost: usize,
}

#[derive(Default)]
struct Row {
    head: String,
    body: String,
    /// Text and end.
    lease: Option<(String, i64)>,
    runs: BTreeMap<u64, String>,
    log: Vec<(u64, String)>,
    told: Vec<Vec<JobEvent>>,
}

/// One process.
#[derive(Clone)]
pub(super) struct Memory {
    world: Arc<Mutex<World>>,
    known: Arc<Known>,
    /// How far its estimate lags behind the clock.
    lag: Duration,
    bounds: LogBounds,
    /// What belongs to no job.
    records: MemoryRecords,
}

impl Memory {
    pub(super) fn new() -> Self {
        let world = World { now: 1_800_000_000_000, ..World::default() };
        Self {
            world: Arc::new(Mutex::new(world)),
            known: Arc::default(),
            lag: Duration::ZERO,
            bounds: LogBounds::default(),
            records: MemoryRecords::new(),
        }
    }

    /// Another process at the same store.
    pub(super) fn another(&self) -> Self {
        Self { known: Arc::default(), ..self.clone() }
    }

    pub(super) fn bounded(&self, bounds: LogBounds) -> Self {
        Self { bounds, ..self.another() }
    }

    pub(super) fn lagging(&self, lag: Duration) -> Self {
        Self { lag, ..self.another() }
    }

    /// The same process, whose calls write `entry` down.
    pub(super) fn noting(&self, entry: AuditEntry) -> Self {
        Self { records: self.records.noting(entry), ..self.clone() }
    }

    pub(super) fn pass(&self, time: Duration) {
        self.lock().now += i64::try_from(time.as_millis()).expect("a short time");
    }

    pub(super) fn now(&self) -> StoreTime {
        StoreTime(self.lock().now)
    }

    pub(super) fn doubt(&self, quarantine: Duration) {
        self.lock().quarantine = quarantine;
    }

    pub(super) fn lose_answers(&self, number: usize) {
        self.lock().lost = number;
    }

    pub(super) fn told(&self, job: &JobName) -> Vec<Vec<JobEvent>> {
        self.lock().jobs.get(job).map(|row| row.told.clone()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no test panics inside")
    }
}

impl World {
    fn stored(&self, job: &JobName) -> Stored {
        let Some(row) = self.jobs.get(job) else { return Stored::default() };
        let lease = row.lease.as_ref().filter(|(_, until)| *until > self.now);
        Stored {
            head: row.head.clone(),
            body: row.body.clone(),
            lease: lease.map(|(text, until)| StoredLease {
                text: text.clone(),
                left: StoreTime(*until).since(StoreTime(self.now)),
            }),
        }
    }

    fn commit(&mut self, change: &Change<'_>) -> Commit {
        let stored = self.stored(change.job);
        let lease = stored.lease.as_ref().map_or("", |lease| lease.text.as_str());
        let same = stored.head == change.head
            && lease.starts_with(change.lease)
            && lease.is_empty() == change.lease.is_empty()
            && change.window.contains(&StoreTime(self.now))
            && !(change.calm && self.quarantine > Duration::ZERO);
        if !same {
            return Commit::Refused { stored, quarantine: self.quarantine };
        }
        self.commits += 1;
        let (now, micros) = (self.now, self.now * 1_000 + self.commits % 1_000);
        let row = self.jobs.entry(change.job.clone()).or_default();
        row.lease.take_if(|(_, until)| *until <= now);
        match &change.lease_write {
            LeaseWrite::None => {}
            LeaseWrite::For(text, ttl) => {
                row.lease = Some((text.clone(), (StoreTime(now) + *ttl).0));
            }
            LeaseWrite::Text(text) => {
                if let Some((old, _)) = &mut row.lease {
                    old.clone_from(text);
                }
            }
            LeaseWrite::Drop => row.lease = None,
        }
        if let Some((version, body)) = change.record {
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
        if !change.tell.is_empty() {
            row.told.push(change.tell.to_vec());
        }
        Commit::Done { head: row.head.clone(), unsafe_grant: None }
    }
}

impl Records for Memory {
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

impl Engine for Memory {
    fn known(&self) -> &Known {
        &self.known
    }

    fn estimate(&self, _: &JobName, _: Boot) -> Option<(StoreTime, Duration)> {
        let lag = i64::try_from(self.lag.as_millis()).expect("a short time");
        Some((StoreTime(self.lock().now - lag), Duration::from_millis(250)))
    }

    async fn read(&self, jobs: &[JobName], _: Way) -> Result<Reading> {
        tokio::task::yield_now().await;
        let world = self.lock();
        Ok(Reading {
            epoch: "one".to_owned(),
            at: StoreTime(world.now),
            quarantine: world.quarantine,
            records: jobs.iter().map(|job| world.stored(job)).collect(),
        })
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let world = self.lock();
        let seen = jobs.iter().map(|job| {
            let stored = world.stored(job);
            (super::version(&stored.head).unwrap_or(0), stored.lease.map(|lease| lease.left))
        });
        Ok(seen.collect())
    }

    async fn commit(&self, change: &Change<'_>) -> Result<Commit> {
        tokio::task::yield_now().await;
        let mut world = self.lock();
        let mut answer = world.commit(change);
        if world.lost > 0 && !change.once {
            world.lost -= 1;
            // The connection broke; it is sent again.
            answer = world.commit(change);
        }
        if let Commit::Done { .. } = &answer {
            change.notes.iter().for_each(|note| self.records.write(note));
        }
        Ok(answer)
    }

    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let mut world = self.lock();
        let keep = |world: &mut World, keep: &Keep<'_>| {
            let lease =
                world.stored(keep.job).lease.filter(|it| it.text.starts_with(&keep.text))?;
            let until = (StoreTime(world.now) + keep.ttl).0;
            world.jobs.get_mut(keep.job)?.lease.as_mut()?.1 = until;
            Some(lease.left)
        };
        Ok(leases.iter().map(|one| keep(&mut world, one)).collect())
    }

    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page> {
        let world = self.lock();
        let mut newest_first: Vec<String> = world
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
        Ok(Page { stored: world.stored(job), entries: newest_first })
    }

    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]> {
        let world = self.lock();
        let Some(row) = world.jobs.get(job) else { return Ok([const { None }; 3]) };
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
        let world = self.lock();
        let each = world.jobs.keys().map(|job| (job.clone(), world.stored(job).lease));
        Ok(each.filter_map(|(job, lease)| Some((job, lease?))).collect())
    }

    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>> {
        let world = self.lock();
        let Some(row) = world.jobs.get(job) else { return Ok(Vec::new()) };
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
