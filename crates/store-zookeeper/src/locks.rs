//! Leases as nodes: acquired, extended, released, ended; renewed and read.
//!
//! | node | kind | data |
//! | --- | --- | --- |
//! | `leases/JOB` | ephemeral, in the session of the lease's length | the text of the lease |
//! | `terms/JOB` | persistent | nothing; its version is the *term*: how many nodes of that lease were made |
//!
//! A node never changes: a lease with a new length or text gets another one, in one step. The term distinguishes a node from a later one: every
//! change of a node names its term, in the same step. Terms begin anew in an ensemble that was emptied, and for a name that was deleted a month
//! after its last lease; so the change is made in the session in which the node was seen.
//!
//! A grant has two steps: the node first, then the record. An unfinished grant is taken back, whatever happened to its caller.
//!
//! What this process has is still so by the word of the leader: a step that only checks versions is proposed by the leader as any other, so its answer
//! is no word of a server that lags. It changes nothing, so no watch rings. And every request that is answered is a sign of life of its session.
//!
//! Readings are as new as any answer that was given before they were asked for: a sync goes before each, in the same session, which answers
//! in order.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use zookeeper_client::CreateMode::{Ephemeral, Persistent};

use super::Locks;
use super::link::{Op, Session, Written};
use soloist_domain::name::JobName;
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::engine::{Change, Keep};
use soloist_store::{Result, StoreError};

pub(super) const LEASES: &str = "/leases";
pub(super) const TERMS: &str = "/terms";
/// How often a step is tried anew whose term or era was another.
pub(super) const ATTEMPTS: usize = 16;
/// Leases in one renewal; two checks each.
const BATCH: usize = 100;
/// So often a renewal learns a new era.
const ERAS: usize = 4;
/// So many leases are read each by itself; of more, the list of all is read first.
const FEW: usize = 16;
/// Between two attempts to end a node.
const PAUSE: Duration = Duration::from_millis(100);

fn lease_of(job: &JobName) -> String {
    format!("{LEASES}/{job}")
}

fn term_of(job: &JobName) -> String {
    format!("{TERMS}/{job}")
}

/// Which node of a lease: its term and the session that ends it tell it from every other.
#[derive(Clone)]
pub(super) struct Id {
    pub(super) job: JobName,
    pub(super) term: i32,
    owner: i64,
    /// In which session it was made or read, and is asked for again.
    pub(super) session: Arc<Session>,
}

impl Id {
    fn is(&self, other: &Self) -> bool {
        (self.term, self.owner) == (other.term, other.owner)
    }
}

/// A lease as it was read.
pub(super) struct Node {
    id: Id,
    pub(super) text: String,
}

/// A lease that this process has.
#[derive(Clone)]
pub(super) struct Mine {
    pub(super) id: Id,
    /// Empty: it is to be asserted again.
    pub(super) text: String,
    pub(super) ttl: Duration,
    /// It ends then unless it is renewed.
    pub(super) until: Boot,
}

/// How taking ended.
pub(super) enum Taken {
    /// The node is there; the lease is granted when that is finished.
    Half(Half),
    /// There is another node.
    Exists(Node),
    /// Nothing is granted now.
    Nothing,
}

/// A node that was asked for, of a lease that is not granted so far. Dropped, it is taken back.
pub(super) struct Half {
    locks: Arc<Locks>,
    /// So much later, unless it is known by then that it is granted: whoever asks for more of a lease may trust in what it had.
    later: Duration,
    /// What this process has then, unless it was not made.
    asked: Option<Mine>,
}

impl Half {
    /// The record shows it: the lease is granted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: its session may be over, and it is taken back.
    pub(super) async fn finish(mut self) -> Result<()> {
        let Some(mine) = &self.asked else { return Ok(()) };
        // A leader that stood still first answers what waited for it, and then ends the sessions of which it has not heard meanwhile: a node
        // that was just made may end with them. An answer to what is asked later says that this session was none of them.
        mine.id.session.sync().await?;
        let mine = Mine { until: clock::boot() + mine.ttl, ..mine.clone() };
        self.asked = None;
        self.locks.attend(mine.id.clone(), mine.ttl);
        self.locks.mine.lock().insert(mine.id.job.clone(), mine);
        Ok(())
    }

    /// Takes it back. If that fails, it continues by itself.
    pub(super) async fn undo(&mut self) -> Result<()> {
        if let Some(mine) = &self.asked {
            self.locks.end(&mine.id).await?;
            self.asked = None;
        }
        Ok(())
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        if let Some(mine) = self.asked.take() {
            self.locks.attend(mine.id, self.later);
        }
    }
}

impl Locks {
    /// The term of a lease, and its node.
    pub(super) async fn look(
        &self,
        session: &Arc<Session>,
        job: &JobName,
    ) -> Result<(Option<i32>, Option<Node>)> {
        // All three are sent at once, and answered in this order.
        let (synced, term) = (session.sync(), session.read(&term_of(job)));
        let lease = session.read(&lease_of(job));
        synced.await?;
        let term = term.await?.map(|(_, stat)| stat.version);
        let node = lease.await?.map(|(text, stat)| {
            let (owner, session) = (stat.ephemeral_owner, Arc::clone(session));
            let id = Id { job: job.clone(), term: term.unwrap_or_default(), owner, session };
            Node { id, text }
        });
        Ok((term, node))
    }

    /// Makes the node of a lease, in a session of its length, or in the one that looks if it has none; in the place of `before`, if the lease has one.
    pub(super) async fn take(
        self: &Arc<Self>,
        change: &Change<'_>,
        before: Option<&Node>,
        text: &str,
        ttl: Option<Duration>,
    ) -> Result<Taken> {
        let later = before.and(ttl).unwrap_or_default();
        let mut half = Half { locks: Arc::clone(self), later, asked: None };
        let (job, lasting) = (change.job, ttl.unwrap_or_default());
        for _ in 0..ATTEMPTS {
            let session = self.ensemble.session(ttl).await?;
            let era = self.era(&session).await?;
            // What is refused must not make the wait of others longer.
            if change.calm && !self.quiet().is_zero() {
                return Ok(Taken::Nothing);
            }
            let (lease, terms) = (lease_of(job), term_of(job));
            let (Some(term), node) = self.look(&session, job).await? else {
                session.write(&[Op::Create(terms, String::new(), Persistent)]).await?;
                continue;
            };
            let mut ops = Vec::new();
            match (node, before) {
                (Some(node), Some(before)) if node.id.is(&before.id) => {
                    ops.push(Op::Delete(lease.clone()));
                }
                (Some(node), _) => return Ok(Taken::Exists(node)),
                (None, Some(_)) => return Ok(Taken::Nothing),
                (None, None) => {}
            }
            ops.push(Op::Create(lease, text.to_owned(), Ephemeral));
            ops.push(Op::Set(terms, String::new(), Some(term)));
            let owner = session.id;
            let id = Id { job: job.clone(), term: term + 1, owner, session: Arc::clone(&session) };
            let (text, until) = (text.to_owned(), Boot(0));
            half.asked = Some(Mine { id, text, ttl: lasting, until });
            match self.write_in(&era, &session, lasting, ops).await? {
                Written::Refused(_) => half.asked = None,
                Written::Done(zxid) if era.has(zxid) => return Ok(Taken::Half(half)),
                // A leader that may have forgotten something.
                Written::Done(_) => {
                    self.look_at_era(&session, false).await?;
                    if !change.calm {
                        return Ok(Taken::Half(half));
                    }
                    half.undo().await?;
                }
            }
        }
        let why = format!("the lease of {job} is changed too often at this moment");
        Err(StoreError::Unavailable(why))
    }

    /// Deletes that node; also done if it is another one now. If it fails, it continues by itself.
    pub(super) async fn remove(self: &Arc<Self>, node: &Node) -> Result<()> {
        let Node { id, .. } = node;
        if let Some(mine) = self.mine.lock().get_mut(&id.job).filter(|mine| mine.id.is(id)) {
            mine.until = Boot(0);
        }
        let ended = self.end(id).await;
        ended.inspect_err(|_| self.attend(id.clone(), Duration::ZERO))
    }

    /// Removes the term of a name whose record was forgotten and whose lease nobody has. Whoever is about to make its node finds the term gone,
    /// and begins again.
    pub(super) async fn forget(&self, job: &JobName) -> Result<()> {
        let looking = self.ensemble.looking().await?;
        let (Some(term), None) = self.look(&looking, job).await? else { return Ok(()) };
        let (lease, terms) = (lease_of(job), term_of(job));
        let ops = [
            // No step can ask that a node is not there, but it can make it.
            Op::Create(lease.clone(), String::new(), Ephemeral),
            Op::Delete(lease),
            Op::Check(terms.clone(), term),
            Op::Delete(terms),
        ];
        looking.write(&ops).await.map(drop)
    }

    /// Ends a lease after so long, unless this process has it by then and has renewed it: the driver's pings keep its session alive. Tries for as long
    /// as the session lives.
    fn attend(self: &Arc<Self>, id: Id, after: Duration) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (locks, mut wait) = (Arc::downgrade(self), after);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(wait).await;
                let Some(here) = locks.upgrade() else { return };
                wait = here.left(&id);
                if wait.is_zero() {
                    if id.session.is_over() || here.end(&id).await.is_ok() {
                        return;
                    }
                    wait = PAUSE;
                }
            }
        });
    }

    /// What is left of a lease. Once nothing is, it is never more again.
    fn left(&self, id: &Id) -> Duration {
        let all = self.mine.lock();
        let mine = all.get(&id.job).filter(|mine| mine.id.is(id));
        mine.map_or(Duration::ZERO, |mine| mine.until.since(clock::boot()))
    }

    /// Deletes that node, if it is there. What was asked for in its session before is done by then, or never.
    async fn end(&self, id: &Id) -> Result<()> {
        let (_, node) = self.look(&id.session, &id.job).await?;
        if node.is_some_and(|node| node.id.is(id)) {
            // A later one has another term, and may be of another process.
            let ops = [Op::Check(term_of(&id.job), id.term), Op::Delete(lease_of(&id.job))];
            id.session.write(&ops).await?;
        }
        Ok(())
    }

    /// Keeps leases that this process has: for each what was left of it, or `None` when it has no such lease any more.
    pub(super) async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>> {
        let mut held = Vec::new();
        for (nth, lease) in leases.iter().enumerate() {
            let fits = |mine: &&Mine| {
                mine.text.starts_with(&lease.text)
                    && mine.ttl == lease.ttl
                    && !mine.id.session.is_over()
            };
            let all = self.mine.lock();
            held.extend(all.get(lease.job).filter(fits).map(|mine| (nth, mine.clone())));
        }
        held.sort_by_key(|(_, mine)| mine.id.owner);
        let parties = held.chunk_by(|(_, one), (_, other)| one.id.owner == other.id.owner);
        let batches = parties.flat_map(|party| party.chunks(BATCH));
        let checked = try_join_all(batches.map(|batch| self.check(batch.to_vec()))).await?;
        let mut kept = vec![None; leases.len()];
        let mut all = self.mine.lock();
        for (nth, Mine { id, ttl, .. }) in checked.into_iter().flatten() {
            let Some(mine) = all.get_mut(&id.job).filter(|mine| mine.id.is(&id)) else { continue };
            let now = clock::boot();
            // One that is being ended, as it was not renewed, is not kept.
            kept[nth] = Some(mine.until.since(now)).filter(|left| !left.is_zero());
            mine.until = if kept[nth].is_some() { now + ttl } else { mine.until };
        }
        Ok(kept)
    }

    /// Those of the leases of one session that are as this process knows them.
    async fn check(&self, mut batch: Vec<(usize, Mine)>) -> Result<Vec<(usize, Mine)>> {
        // Each time one goes, or the era is learned anew.
        for _ in 0..batch.len() + ERAS {
            let Some((_, Mine { id, ttl, .. })) = batch.first() else { break };
            let (session, ttl) = (Arc::clone(&id.session), *ttl);
            let era = self.era(&session).await?;
            let checks = batch.iter().flat_map(|(_, mine)| {
                let job = &mine.id.job;
                [Op::Check(term_of(job), mine.id.term), Op::Check(lease_of(job), 0)]
            });
            match self.write_in(&era, &session, ttl, checks.collect()).await? {
                Written::Done(_) => return Ok(batch),
                Written::Refused(0) => {}
                Written::Refused(nth) => drop(batch.remove((nth - 1) / 2)),
            }
        }
        Ok(Vec::new())
    }

    /// The texts of those of the leases that are there; `None`: of all.
    pub(crate) async fn lease_texts(
        &self,
        jobs: Option<&[JobName]>,
    ) -> Result<BTreeMap<JobName, String>> {
        let looking = self.ensemble.looking().await?;
        let synced = looking.sync();
        let names: Vec<JobName> = match jobs {
            Some(jobs) if jobs.len() <= FEW => jobs.to_vec(),
            Some(jobs) => {
                let there = names(&looking).await?;
                jobs.iter().filter(|job| there.contains(job)).cloned().collect()
            }
            None => names(&looking).await?.into_iter().collect(),
        };
        let reads: Vec<_> = names.iter().map(|job| looking.read(&lease_of(job))).collect();
        synced.await?;
        let found = names.into_iter().zip(try_join_all(reads).await?);
        Ok(found.filter_map(|(job, node)| Some((job, node?.0))).collect())
    }

    /// The names of those of the leases that are there; more names than were asked for, if these are many.
    pub(super) async fn present(&self, jobs: &[JobName]) -> Result<HashSet<JobName>> {
        if jobs.len() <= FEW {
            return Ok(self.lease_texts(Some(jobs)).await?.into_keys().collect());
        }
        let looking = self.ensemble.looking().await?;
        Ok(tokio::try_join!(looking.sync(), names(&looking))?.1)
    }
}

/// Of all leases that are there.
async fn names(session: &Session) -> Result<HashSet<JobName>> {
    let names = session.children(LEASES).await?;
    Ok(names.iter().filter_map(|name| JobName::new(name).ok()).collect())
}
