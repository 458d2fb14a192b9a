//! The port of jobs on a record store and an ensemble: reads join the two, and a commit is done in two steps.
//!
//! | the lease | first | then |
//! | --- | --- | --- |
//! | is granted, or asserted again | the node is made | the record is committed, on condition that it is the one that was looked at |
//! | is extended, or has another text | the record is committed | the node is changed |
//! | is given back | the record is committed | the node is deleted |
//!
//! So a lease is granted only to whom both agree, and its node goes only after the record says why. Nothing runs between the steps: a
//! guard starts after both.

use std::sync::Arc;
use std::time::Duration;

use super::Locks;
use super::keep::Kept;
use super::locks::{Node, Taken};
use crate::domain::log::LogBounds;
use crate::domain::name::{JobName, RunId, Waiter};
use crate::domain::time::{Boot, Stamp, StoreTime};
use crate::store::core::{Known, KnownTurns, lease_terms};
use crate::store::engine::{
    Change, Commit, Engine, Keep, LeaseWrite, Page, Part, Reading, StoredLease, Way,
};
use crate::store::journal::AuditEntry;
use crate::store::records::{Changed, Look, Looked, Plan, Records, Tell};
use crate::store::{Result, StoreError};

/// What is left of a lease is not known: its session lives, or it would not be there. One millisecond less than the whole of it, so
/// that its holder has something to write when it extends it.
const LESS: Duration = Duration::from_millis(1);

/// A record is committed so much later than its change was decided, at most, or it is decided anew.
const BETWEEN: Duration = Duration::from_secs(1);
/// So long a renewal may wait for the record store, beside the ensemble.
const AT_ONCE: Duration = Duration::from_millis(30);

/// A record store with its leases in an ensemble.
pub(in crate::store) struct Coordinated<E> {
    pub(super) records: E,
    pub(super) locks: Arc<Locks>,
}

impl<E: Clone> Coordinated<E> {
    pub(in crate::store) fn new(records: &E, locks: &Arc<Locks>) -> Self {
        Self { records: records.clone(), locks: Arc::clone(locks) }
    }
}

impl<E: Records> Records for Coordinated<E> {
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
        let is_wake = |tell: &&Tell| matches!(tell, Tell::Wake(_));
        let (wakes, others): (Vec<&Tell>, Vec<&Tell>) = plan.tells.iter().partition(is_wake);
        if wakes.is_empty() {
            return self.records.change_and_look(plan, done, refused).await;
        }
        let silent = Plan {
            checks: plan.checks.clone(),
            within: plan.within.clone(),
            writes: plan.writes.clone(),
            tells: others.into_iter().cloned().collect(),
            once: plan.once,
        };
        let changed = self.records.change_and_look(&silent, done, refused).await?;
        if changed.0 == Changed::Done {
            let wakes: Vec<Tell> = wakes.into_iter().cloned().collect();
            self.wake(wakes).await;
        }
        Ok(changed)
    }

    fn turns(&self) -> &KnownTurns {
        self.records.turns()
    }
}

impl<E: Records> Coordinated<E> {
    /// By a node; by the bell of the store if that fails.
    async fn wake(&self, wakes: Vec<Tell>) {
        let waiters: Vec<Waiter> = wakes
            .iter()
            .flat_map(|tell| match tell {
                Tell::Wake(waiters) => waiters.clone(),
                Tell::Nodes | Tell::Accounts => Vec::new(),
            })
            .collect();
        if !self.locks.wake(&waiters).await {
            let plan = Plan { tells: wakes, ..Plan::default() };
            if let Err(error) = Box::pin(self.records.change(&plan)).await {
                tracing::debug!(%error, "waiters are not woken");
            }
        }
    }
}

/// A lease as `core` reads it.
pub(super) fn stored(text: String) -> StoredLease {
    let left = lease_terms(&text).map_or(LESS, |(_, ttl)| ttl.saturating_sub(LESS));
    StoredLease { text, left }
}

fn is_of_a_program(text: &str) -> bool {
    lease_terms(text).is_some_and(|(owner, _)| owner.is_program())
}

/// The change with another part for the record store.
fn of_record<'a>(change: &Change<'a>, lease_write: LeaseWrite) -> Change<'a> {
    Change {
        job: change.job,
        way: change.way,
        head: change.head,
        lease: "",
        window: change.window.clone(),
        grant: change.grant,
        calm: change.calm,
        record: change.record,
        lease_write,
        beside: change.beside.clone(),
        tell: change.tell,
        once: change.once,
        notes: change.notes.clone(),
    }
}

impl<E: Engine + Clone + Send + Sync + 'static> Engine for Coordinated<E> {
    fn known(&self) -> &Known {
        &self.locks.known
    }

    fn estimate(&self, job: &JobName, now: Boot) -> Option<(StoreTime, Duration)> {
        // A grant reaches the record by its second step. No lease there ends by this clock.
        let (at, slack) = self.records.estimate(job, now)?;
        Some((at, slack + BETWEEN))
    }

    async fn read(&self, jobs: &[JobName], way: Way) -> Result<Reading> {
        let reading = Box::pin(self.records.read(jobs, way));
        let (reading, texts) = tokio::join!(reading, self.locks.texts(Some(jobs)));
        let (mut reading, mut texts) = (reading?, texts?);
        if self.locks.is_another(&reading.epoch) {
            super::mark::again(&self.records).await;
        }
        for (job, record) in jobs.iter().zip(&mut reading.records) {
            if let Some(text) = texts.remove(job.as_str()) {
                record.lease = Some(stored(text));
            }
        }
        let quiet = self.locks.era().await?.quiet();
        reading.quarantine = reading.quarantine.max(quiet);
        Ok(reading)
    }

    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>> {
        let observed = Box::pin(self.records.observe(jobs));
        let (observed, present) = tokio::join!(observed, self.locks.present(jobs));
        let (mut observed, present) = (observed?, present?);
        for (job, (_, left)) in jobs.iter().zip(&mut observed) {
            if present.contains(job.as_str()) {
                // Who knows the lease knows its length.
                *left = Some(Duration::from_secs(3_600));
            }
        }
        Ok(observed)
    }

    async fn commit(&self, change: &Change<'_>) -> Result<Commit> {
        let _turn = match change.lease_write {
            LeaseWrite::None => None,
            _ => Some(self.locks.turn(change.job).await),
        };
        if let (LeaseWrite::For(text, ttl), "") = (&change.lease_write, change.lease) {
            return self.grant(change, text, *ttl).await;
        }
        let node = self.locks.node(change.job).await?;
        let node = node.filter(|node| !self.locks.is_half(change.job.as_str(), &node.text));
        match node {
            Some(node) if !change.lease.is_empty() && node.text.starts_with(change.lease) => {
                self.commit_on(change, &node).await
            }
            Some(_) => self.refused(change).await,
            // It is a program's, or there is none.
            None => Box::pin(self.records.commit(change)).await,
        }
    }

    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for (nth, keep) in leases.iter().enumerate() {
            let Keep { job, text, ttl } = keep;
            match is_of_a_program(text) {
                true => there.push((nth, Keep { job, text: text.clone(), ttl: *ttl })),
                false => here.push((nth, Kept { job, text, ttl: *ttl })),
            }
        }
        let mut kept = vec![None; leases.len()];
        if !here.is_empty() {
            let (places, here): (Vec<usize>, Vec<_>) = here.into_iter().unzip();
            let read = self.read_epoch(here[0].job);
            let (epoch, left) = tokio::join!(read, self.locks.keep(&here));
            let mut left = left?;
            if let Some(epoch) = epoch {
                self.locks.drop_those_before(&epoch, &here, &mut left);
            }
            for (place, left) in places.into_iter().zip(left) {
                kept[place] = left;
            }
        }
        if !there.is_empty() {
            let (places, there): (Vec<usize>, Vec<_>) = there.into_iter().unzip();
            let left = Box::pin(self.records.keep(&there)).await?;
            for (place, left) in places.into_iter().zip(left) {
                kept[place] = left;
            }
        }
        Ok(kept)
    }

    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page> {
        self.records.history(job, before, limit).await
    }

    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]> {
        self.records.oldest(job, number, mark).await
    }

    async fn every_lease(&self) -> Result<Vec<(JobName, StoredLease)>> {
        let mut all = self.records.every_lease().await?;
        for (name, text) in self.locks.texts(None).await? {
            if let Ok(job) = JobName::new(&name) {
                all.push((job, stored(text)));
            }
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }

    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>> {
        self.records.lines(job, part, limit).await
    }

    fn log_bounds(&self) -> LogBounds {
        self.records.log_bounds()
    }
}

impl<E: Engine + Clone + Send + Sync + 'static> Coordinated<E> {
    /// A lease of a program is in the record store; its node only keeps others out between the two steps.
    async fn grant(&self, change: &Change<'_>, text: &str, ttl: Duration) -> Result<Commit> {
        let program = is_of_a_program(text);
        let lasting = (!program).then_some(ttl);
        let step = match self.locks.take(change.job, text, lasting, change.calm).await? {
            Taken::Had(step) => step,
            Taken::Exists => return self.refused(change).await,
            Taken::Quiet(wait) => {
                return match self.refused(change).await? {
                    Commit::Refused { stored, quarantine } => {
                        Ok(Commit::Refused { stored, quarantine: quarantine.max(wait) })
                    }
                    done @ Commit::Done { .. } => Ok(done),
                };
            }
        };
        let write = if program { change.lease_write.clone() } else { LeaseWrite::None };
        let committed = Box::pin(self.records.commit(&of_record(change, write))).await;
        match committed {
            Ok(Commit::Done { .. }) if program => step.undo().await.unwrap_or_else(|error| {
                tracing::debug!(%error, "a node that kept others out is removed later");
            }),
            Ok(Commit::Done { .. }) => {
                step.confirm().await?;
                step.finish(text, ttl);
            }
            Ok(Commit::Refused { .. }) => step.undo().await?,
            // What became of it is not known; the node is taken back in any case.
            Err(_) => drop(step),
        }
        committed
    }

    /// A change of a job whose lease is that node.
    async fn commit_on(&self, change: &Change<'_>, node: &Node) -> Result<Commit> {
        let idle = change.record.is_none() && change.beside.is_empty() && change.notes.is_empty();
        let committed = if idle && change.tell.is_empty() {
            Commit::Done { head: change.head.to_owned(), unsafe_grant: None }
        } else {
            Box::pin(self.records.commit(&of_record(change, LeaseWrite::None))).await?
        };
        let Commit::Done { head, .. } = committed else { return Ok(with_node(committed, node)) };
        match &change.lease_write {
            LeaseWrite::None => {}
            LeaseWrite::For(text, ttl) => {
                if !self.locks.extend(change.job, node, text, *ttl).await? {
                    return self.refused(change).await;
                }
            }
            // Should it fail, the holder's next renewal finds the old text, and writes the new one.
            LeaseWrite::Text(text) => {
                if let Err(error) = self.locks.retext(change.job, node, text).await {
                    tracing::debug!(job = %change.job, %error, "a lease keeps its old text");
                }
            }
            LeaseWrite::Drop => {
                if let Err(error) = self.locks.remove(change.job, node).await {
                    self.locks.go_on_removing(change.job.clone(), node.text.clone());
                    return Err(error);
                }
            }
        }
        Ok(Commit::Done { head, unsafe_grant: None })
    }

    /// Nothing was written; what is newest.
    async fn refused(&self, change: &Change<'_>) -> Result<Commit> {
        let mut reading = self.read(std::slice::from_ref(change.job), change.way).await?;
        let stored = reading.records.pop().unwrap_or_default();
        if stored.lease.is_none()
            && let Some(node) = self.locks.node(change.job).await?
            && self.locks.is_half(change.job.as_str(), &node.text)
        {
            return Err(StoreError::Unavailable(format!(
                "a grant of {} that was not finished is being taken back",
                change.job
            )));
        }
        Ok(Commit::Refused { stored, quarantine: reading.quarantine })
    }

    /// The epoch of the record store, for this job; `None` when it does not answer at once: it is not waited for.
    async fn read_epoch(&self, job: &JobName) -> Option<String> {
        let read = Box::pin(self.records.read(std::slice::from_ref(job), Way::Lease));
        Some(tokio::time::timeout(AT_ONCE, read).await.ok()?.ok()?.epoch)
    }
}

/// A refusal of the record store, with the lease that stands here.
fn with_node(committed: Commit, node: &Node) -> Commit {
    match committed {
        Commit::Refused { mut stored, quarantine } => {
            stored.lease = Some(self::stored(node.text.clone()));
            Commit::Refused { stored, quarantine }
        }
        done @ Commit::Done { .. } => done,
    }
}
