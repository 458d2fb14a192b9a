//! The port of jobs on a record store and an ensemble: reads join the two, and a commit has two steps.
//!
//! | the lease | first | then |
//! | --- | --- | --- |
//! | is granted, or asserted again | the node is made | the record is committed, on condition that it has not changed |
//! | is extended, or has another text | the record is committed | another node replaces its node |
//! | is released | the record is committed | the node is deleted |
//!
//! So a lease is granted only if both agree, and its node is deleted only after the record says why. Nothing runs between the steps: a guard
//! starts after both. Between them a grant is *half*: its token is newer than that of its record. It is not shown, because the law answers "the
//! same owner asks again" with the lease that it sees; only a request for the lease itself learns its future holder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Locks;
use super::locks::{Node, Taken};
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, Owner, RunId};
use soloist_domain::time::{Boot, Stamp, StoreTime};
use soloist_store::Result;
use soloist_store::core::{Known, KnownTurns, lease_terms, token_in};
use soloist_store::engine::{
    Change, Commit, Engine, Keep, LeaseWrite, Page, Part, Reading, StoredLease, Way,
};
use soloist_store::journal::AuditEntry;
use soloist_store::records::{Changed, Look, Looked, Plan, Records, Tell};

/// What is left of a lease is not known: its session lives, or it would not be there. One millisecond less than the whole of it, so
/// that its holder has something to write when it extends it.
const LESS: Duration = Duration::from_millis(1);
/// Who knows a lease knows its length; this is more.
const WHOLE: Duration = Duration::from_secs(3_600);
/// A record is committed so much later than its change was decided, at most, or it is decided anew.
const BETWEEN: Duration = Duration::from_secs(1);
/// So long a renewal may wait for the record store, beside the ensemble.
const AT_ONCE: Duration = Duration::from_millis(30);

/// A record store with its leases in an ensemble.
pub(crate) struct Coordinated {
    pub(super) records: Arc<dyn Engine>,
    pub(super) locks: Arc<Locks>,
}

#[async_trait]
impl Records for Coordinated {
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
        let changed = self.records.change_and_look(plan, done, refused).await?;
        let is_wake = |tell: &&Tell| matches!(tell, Tell::Wake(_));
        let wakes: Vec<Tell> = plan.tells.iter().filter(is_wake).cloned().collect();
        if changed.0 == Changed::Done && !wakes.is_empty() {
            // Nobody waits for it: an ensemble that is slow to write would outlast the promise to who is woken.
            let locks = Arc::clone(&self.locks);
            tokio::spawn(async move { locks.wake(&wakes).await });
        }
        Ok(changed)
    }

    fn turns(&self) -> &KnownTurns {
        self.records.turns()
    }
}

/// A lease as `core` reads it.
fn stored(text: String) -> StoredLease {
    let left = lease_terms(&text).map_or(LESS, |(_, ttl)| ttl.saturating_sub(LESS));
    StoredLease { text, left }
}

fn owner(text: &str) -> Option<Owner> {
    lease_terms(text).map(|(owner, _)| owner)
}

/// Its lease is in the record store; a node only keeps others out while it is granted.
fn is_of_a_program(text: &str) -> bool {
    owner(text).is_some_and(|owner| owner.is_program())
}

/// Whether the lease is here, and granted as far as this record says it.
fn counts(text: &str, body: &str) -> bool {
    !is_of_a_program(text) && token_in(text) <= token_in(body)
}

#[async_trait]
impl Engine for Coordinated {
    fn known(&self) -> &Known {
        &self.locks.known
    }

    fn estimate(&self, job: &JobName, now: Boot) -> Option<(StoreTime, Duration)> {
        // A grant reaches the record by its second step. No lease there ends by this clock.
        let (at, slack) = self.records.estimate(job, now)?;
        Some((at, slack + BETWEEN))
    }

    async fn read(&self, jobs: &[JobName], way: Way) -> Result<Reading> {
        let reading = self.read_records(jobs, way);
        let (mut reading, mut texts) =
            tokio::try_join!(reading, self.locks.lease_texts(Some(jobs)))?;
        for (job, record) in jobs.iter().zip(&mut reading.records) {
            let text = texts.remove(job).filter(|text| counts(text, &record.body));
            record.lease = record.lease.take().or(text.map(stored));
        }
        reading.quarantine = reading.quarantine.max(self.locks.quiet_for().await?);
        Ok(reading)
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let observed = Engine::observe(&*self.records, jobs);
        let (mut observed, present) = tokio::try_join!(observed, self.locks.present(jobs))?;
        for (job, (_, left)) in jobs.iter().zip(&mut observed) {
            *left = left.or(present.contains(job).then_some(WHOLE));
        }
        Ok(observed)
    }

    async fn commit(&self, change: &Change<'_>) -> Result<Commit> {
        // What is here of the name goes with the record: by `forget`, and not without it.
        let change = &Change { expires: None, ..change.clone() };
        if let (LeaseWrite::For(text, ttl), "") = (&change.lease_write, change.lease) {
            return self.grant(change, text, *ttl).await;
        }
        let looking = self.locks.ensemble.looking().await?;
        let node = self.locks.look(&looking, change.job).await?.1;
        let counts = |node: &Node| change.record.is_none_or(|(_, body)| counts(&node.text, body));
        match node.filter(counts) {
            Some(node) if !change.lease.is_empty() && node.text.starts_with(change.lease) => {
                self.commit_on(change, &node).await
            }
            Some(_) => self.refused(change).await,
            None => self.records.commit(change).await,
        }
    }

    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let Some(first) = leases.first() else { return Ok(Vec::new()) };
        // A program's is renewed by itself. Among others it is not kept here, and asserted again.
        if is_of_a_program(&first.text) {
            return self.records.keep(leases).await;
        }
        // Whether the record store forgot something. It is not waited for if it does not answer at once.
        let read = self.read_records(std::slice::from_ref(first.job), Way::Lease);
        tokio::time::timeout(AT_ONCE, read).await.ok();
        self.locks.keep(leases).await
    }

    async fn forget(&self, job: &JobName, head: &str) -> Result<bool> {
        // Whoever is granted it meanwhile finds another record, and decides anew.
        if !self.locks.present(std::slice::from_ref(job)).await?.is_empty() {
            return Ok(false);
        }
        let forgotten = self.records.forget(job, head).await?;
        if forgotten {
            self.locks.forget(job).await?;
        }
        Ok(forgotten)
    }

    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page> {
        self.records.history(job, before, limit).await
    }

    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]> {
        self.records.oldest(job, number, mark).await
    }

    async fn every_lease(&self) -> Result<Vec<(JobName, StoredLease)>> {
        let here =
            self.locks.lease_texts(None).await?.into_iter().map(|(job, text)| (job, stored(text)));
        let mut all: BTreeMap<_, _> = here.collect();
        all.extend(self.records.every_lease().await?);
        Ok(all.into_iter().collect())
    }

    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>> {
        self.records.lines(job, part, limit).await
    }

    fn log_bounds(&self) -> LogBounds {
        self.records.log_bounds()
    }
}

impl Coordinated {
    /// Reads the records. In a store that was emptied or replaced it is said again that its leases are here; and these are asserted again, so that
    /// all is reported that was forgotten there.
    async fn read_records(&self, jobs: &[JobName], way: Way) -> Result<Reading> {
        let reading = self.records.read(jobs, way).await?;
        let (locks, epoch) = (&self.locks, &reading.epoch);
        let of = jobs.first().filter(|_| locks.sharded).cloned();
        let before = locks.epochs.lock().entry(of.clone()).or_insert_with(|| epoch.clone()).clone();
        // Should that fail, the next reading does it.
        if before != *epoch && soloist_store::coordination::set(&*self.records).await.is_ok() {
            locks.epochs.lock().insert(of, epoch.clone());
            locks.mine.lock().values_mut().for_each(|mine| mine.text.clear());
        }
        Ok(reading)
    }

    async fn grant(&self, change: &Change<'_>, text: &str, ttl: Duration) -> Result<Commit> {
        let program = is_of_a_program(text);
        let lasting = (!program).then_some(ttl);
        let taken = self.locks.take(change, None, text, lasting).await?;
        let mut half = match taken {
            Taken::Half(half) => half,
            Taken::Nothing => return self.refused(change).await,
            Taken::Exists(node) => {
                let same = owner(&node.text) == owner(text);
                if same && token_in(&node.text) == token_in(text) {
                    // The record store forgot it.
                    return self.commit_on(change, &node).await;
                }
                let mut refused = self.refused(change).await?;
                if let Commit::Refused { stored, .. } = &mut refused
                    && !same
                {
                    stored.lease.get_or_insert_with(|| self::stored(node.text));
                }
                return Ok(refused);
            }
        };
        let lease_write = if program { change.lease_write.clone() } else { LeaseWrite::None };
        let change = Change { lease: "", lease_write, ..change.clone() };
        // What became of it is not known when that fails; the node is taken back in any case.
        let committed = self.records.commit(&change).await?;
        match committed {
            Commit::Done { .. } if !program => half.finish().await?,
            Commit::Done { .. } | Commit::Refused { .. } | Commit::Listed => half.undo().await?,
        }
        Ok(committed)
    }

    /// A change of a job whose lease is that node.
    async fn commit_on(&self, change: &Change<'_>, node: &Node) -> Result<Commit> {
        let silent = Change { lease: "", lease_write: LeaseWrite::None, ..change.clone() };
        let mut committed = self.records.commit(&silent).await?;
        if let Commit::Refused { stored, .. } = &mut committed {
            stored.lease = Some(self::stored(node.text.clone()));
            return Ok(committed);
        }
        match &change.lease_write {
            LeaseWrite::None => {}
            LeaseWrite::For(text, _) | LeaseWrite::Text(text) => {
                let ttl = lease_terms(text).map(|(_, ttl)| ttl);
                let taken = self.locks.take(change, Some(node), text, ttl).await?;
                let Taken::Half(half) = taken else { return self.refused(change).await };
                half.finish().await?;
            }
            LeaseWrite::Drop => self.locks.remove(node).await?,
        }
        Ok(committed)
    }

    /// Nothing was written; what is newest.
    async fn refused(&self, change: &Change<'_>) -> Result<Commit> {
        let mut reading = self.read(std::slice::from_ref(change.job), change.way).await?;
        let stored = reading.records.pop().unwrap_or_default();
        Ok(Commit::Refused { stored, quarantine: reading.quarantine })
    }
}
