//! The feed: follows the store's events, keeps the newest view of every job, and fans changes out inside the process.
//!
//! Events only save time. Most carry the record, which is taken if it is certainly newer than the known one; otherwise the feed reads the state
//! itself, drops what is older, and takes a whole snapshot after every interruption and on a new epoch. Leases in use are observed several times a
//! lease, everything else every second or two, so that a lost hint or a silent holder is noticed. Jobs that only other nodes define are followed like
//! its own. One subscription for each process. Where each job may be unreachable by itself (a cluster), each is read by itself, all at once. It decides
//! nothing.
//!
//! This file has the state and its subscribers; `follow` keeps it up to date.

mod follow;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::{broadcast, watch};

use crate::Store;
use crate::dispatch::Waiter;
use crate::nodes::{ALIVE_FOR, NodeRecord};
use follow::Follower;
use soloist_domain::job::{JobRecord, LeaseRecord, Untold, Viewpoint};
use soloist_domain::lease::{Timing, Token};
use soloist_domain::limits::progressed;
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::tick::Sight;
use soloist_domain::time::{Boot, StoreTime, millis};
use soloist_process::clock;

/// How many changes a listener may fall behind before it reads everything again.
const BACKLOG: usize = 4_096;
/// A state that the store has not confirmed for a lease and this is unknown: half a second after the lease every reader has been
/// told, and that takes a moment.
const STALE_AFTER: Duration = Duration::from_millis(400);

/// A job as last read.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What the store said.
    pub record: Arc<JobRecord>,
    /// The store's clock at that moment.
    pub at: StoreTime,
    /// This machine's clock *before* that reading was asked for; observations of an unchanged version renew it.
    pub confirmed: Boot,
    /// Until when the store may have forgotten a lease that lasts; in the past when all is well.
    pub doubted_until: Boot,
    /// When the progress of its run was seen to become what it is, by the store's clock; `None` when it has none, or to who does not
    /// follow the job.
    pub progressed: Option<StoreTime>,
    /// The run under the lease of `record` has ended at this node, as far as the store has not been told.
    pub ended_here: Option<EndedHere>,
}

/// The end of a run that its own node knows before the store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in LeaseRecord")]
pub struct EndedHere {
    pub token: Token,
    /// When its whole tree was proved gone.
    pub at: Boot,
    /// It was killed, because its lease could not be renewed.
    pub fenced: bool,
}

impl Seen {
    /// With what was known `before` of its progress, and of an end.
    #[must_use]
    pub fn after(mut self, before: Option<&Seen>) -> Self {
        let known = before.and_then(|seen| seen.ended_here);
        let before = before.map(|seen| (&*seen.record, seen.progressed));
        self.progressed = progressed(&self.record, before, self.at);
        self.ended_here = known.filter(|ended| self.is_under(ended.token));
        self
    }

    fn is_under(&self, token: Token) -> bool {
        self.record.lease.as_ref().is_some_and(|lease| lease.token == token)
    }

    /// The store's clock now, as well as it is known here.
    #[must_use]
    pub fn store_now(&self, now: Boot) -> StoreTime {
        self.at + now.since(self.confirmed)
    }

    /// From when on the job is unknown, unless the store confirms this state.
    #[must_use]
    pub fn stale_at(&self, timing: &Timing) -> Boot {
        self.confirmed + timing.ttl + STALE_AFTER
    }

    /// The record of a job from where this node stands, among `nodes`. What bars a turn is not known here.
    #[must_use]
    pub fn viewpoint(
        &self,
        now: Boot,
        timing: &Timing,
        min_uptime: Duration,
        takes_turns: bool,
        external: bool,
        nodes: &[NodeRecord],
    ) -> Viewpoint {
        Viewpoint {
            now: self.store_now(now),
            age: now.since(self.confirmed),
            stale_after: timing.ttl + STALE_AFTER,
            min_uptime,
            takes_turns,
            turn_barred: false,
            // No node knows whether a program will ask, and none competes with it.
            can_run: external || nodes.iter().any(|node| node.may_take(&self.record.name)),
            silent_after: timing.silent_after(),
            quarantine: self.doubted_until.since(now),
            ended_here: self.ended_here.map(|ended| Untold {
                at: self.store_now(now) - now.since(ended.at),
                fenced: ended.fenced,
            }),
            ticks: None,
        }
    }
}

/// A job to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in the job's configuration")]
pub struct Followed {
    pub job: JobName,
    pub timing: Timing,
    pub min_uptime: Duration,
    /// It is a member of a rotation.
    pub takes_turns: bool,
    /// A program takes its lease, and no node.
    pub external: bool,
    /// Its ticks.
    pub schedule: Option<soloist_domain::tick::Schedule>,
}

/// The events for listeners; all of it can be read again from [`Feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A job has a newer record, or the same version now means another state (its holder fell silent).
    Job(JobName),
    /// Nodes came, went or changed.
    Nodes,
    /// Accounts, sessions or tokens changed or ended.
    Accounts,
    /// The store became reachable or unreachable.
    Reachable(bool),
    /// A new epoch or an interruption: everything was read again.
    Resynced,
    /// It is the turn of these waiters, here or elsewhere: said once and kept nowhere.
    Wake(Vec<Waiter>),
}

/// An event of a program's lease, under any name: own names have no other follower.
#[derive(Debug, Clone)]
pub enum HeardOfLease {
    /// A program has it.
    Held {
        /// Of the lease.
        name: JobName,
        /// Of its record.
        version: u64,
        /// With what was left of it then.
        lease: LeaseRecord,
    },
    /// It was released.
    GivenBack {
        /// Of the lease.
        name: JobName,
        /// Of its record since then.
        version: u64,
    },
}

/// A handle; cheap to clone.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    pictures: RwLock<Pictures>,
    changes: broadcast::Sender<Change>,
    leases: broadcast::Sender<HeardOfLease>,
}

/// The store is out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// What is wrong.
    pub detail: String,
    /// Since when, by this machine's clock.
    pub since: Boot,
}

#[derive(Default)]
struct Pictures {
    jobs: HashMap<JobName, Seen>,
    nodes: Arc<Vec<NodeRecord>>,
    /// How many jobs each node holds, by the leases in `jobs`.
    loads: Arc<HashMap<NodeName, usize>>,
    /// When the nodes were asked for.
    nodes_at: Boot,
    /// A reading of the store's clock, and when it was asked for.
    clock: Option<(StoreTime, Boot)>,
    epoch: String,
    trouble: Option<Outage>,
    /// When the store became reachable for the last time; `None` when it always was.
    back: Option<Boot>,
    /// The nodes that were silent when it was lost.
    silent_before: BTreeSet<NodeName>,
    /// This node, if the process is one.
    own: Option<NodeName>,
    /// The epoch in which each job was read: on a cluster each has its own.
    epochs: HashMap<JobName, String>,
    /// What was seen of the ticks of jobs before the store changed, until it was told.
    before: HashMap<JobName, Sight>,
    /// The grants to this node, until a record has them.
    granted: HashMap<JobName, Sight>,
}

impl Pictures {
    /// Counts only that silence of `nodes` which says something: none of this node, which speaks here, and of another none that
    /// the store could not have heard. A node that was silent before stays so.
    fn forgive(&self, nodes: &mut [NodeRecord], now: Boot) {
        let just_alive = millis(ALIVE_FOR) - 1;
        for node in nodes {
            let name = &node.beat.node;
            if self.own.as_ref() == Some(name) {
                node.age_ms = node.age_ms.min(just_alive);
                continue;
            }
            if self.silent_before.contains(name) {
                continue;
            }
            if self.trouble.is_some() {
                node.age_ms = node.age_ms.min(just_alive);
            } else if let Some(back) = self.back {
                node.age_ms = node.age_ms.min(millis(now.since(back)));
            }
        }
    }

    /// Notes whether the store is away, and why; answers what was known before.
    fn trouble(&mut self, why: Option<String>) -> Option<Outage> {
        let since = self.trouble.as_ref().map_or_else(clock::boot, |known| known.since);
        let before =
            std::mem::replace(&mut self.trouble, why.map(|detail| Outage { detail, since }));
        match (&before, &self.trouble) {
            (None, Some(_)) => {
                let silent = self.nodes.iter().filter(|node| !node.is_alive());
                self.silent_before = silent.map(|node| node.beat.node.clone()).collect();
            }
            (Some(_), None) => self.back = Some(clock::boot()),
            _ => {}
        }
        before
    }

    fn put(&mut self, seen: Seen) {
        let (job, version) = (&seen.record.name, seen.record.version);
        if self.granted.get(job).is_some_and(|sight| sight.version <= version) {
            self.granted.remove(job);
        }
        let before = self.jobs.get(&seen.record.name);
        let seen = seen.after(before);
        let now = holder(&seen);
        let old = self.jobs.insert(seen.record.name.clone(), seen);
        self.passed_on(old.as_ref().and_then(holder), now);
    }

    /// What is seen of the ticks of `job` now.
    fn sight(&self, job: &JobName) -> Option<Sight> {
        let seen = self.jobs.get(job)?;
        let version = seen.record.version;
        if let Some(newer) = self.granted.get(job).filter(|sight| sight.version > version) {
            return Some(newer.clone());
        }
        let clock = seen.record.clock.clone()?;
        Some(Sight { clock, version, at: seen.at, changed: None })
    }

    /// A job is read in `epoch`. In another one the store may have forgotten: what was seen before must not be forgotten with it.
    fn reads(&mut self, job: &JobName, epoch: &str, at: StoreTime, doubted: bool) {
        let before = self.epochs.insert(job.clone(), epoch.to_owned());
        if before.is_none_or(|before| before == epoch) {
            return;
        }
        let changed = doubted.then_some(at);
        if let Some(before) = self.before.get_mut(job) {
            before.changed = changed.or(before.changed);
        } else if let Some(sight) = self.sight(job) {
            self.before.insert(job.clone(), Sight { changed, ..sight });
        }
        self.granted.remove(job);
    }

    fn drop(&mut self, job: &JobName) {
        self.before.remove(job);
        self.granted.remove(job);
        self.epochs.remove(job);
        let old = self.jobs.remove(job);
        self.passed_on(old.as_ref().and_then(holder), None);
    }

    fn passed_on(&mut self, before: Option<NodeName>, now: Option<NodeName>) {
        if before != now {
            let loads = Arc::make_mut(&mut self.loads);
            if let Some(load) = before.and_then(|node| loads.get_mut(&node)) {
                *load = load.saturating_sub(1);
            }
            if let Some(node) = now {
                *loads.entry(node).or_default() += 1;
            }
        }
    }
}

fn holder(seen: &Seen) -> Option<NodeName> {
    seen.record.lease.as_ref().map(|lease| lease.node.clone())
}

impl Feed {
    /// The newest record of one job; `None` until the first snapshot.
    #[must_use]
    pub fn job(&self, name: &JobName) -> Option<Seen> {
        self.read(|p| {
            let mut seen = p.jobs.get(name)?.clone();
            // Otherwise the store learns it within a moment.
            seen.ended_here = seen.ended_here.filter(|ended| ended.fenced || p.trouble.is_some());
            Some(seen)
        })
    }

    /// What this node saw last of the ticks of a job: before the store changed, if that was not told to it yet.
    #[must_use]
    pub fn sight(&self, job: &JobName) -> Option<Sight> {
        self.read(|p| p.before.get(job).cloned().or_else(|| p.sight(job)))
    }

    /// This node, or a program that asked here, was granted a tick of `job`, and what the store knew with that.
    pub fn granted(&self, job: &JobName, sight: Sight) {
        self.write(|p| p.granted.insert(job.clone(), sight));
    }

    /// What the store is to be told, because it may have forgotten it.
    #[must_use]
    pub fn sight_before(&self, job: &JobName) -> Option<Sight> {
        self.read(|p| p.before.get(job).cloned())
    }

    /// The store was told that.
    pub fn told_of_sight(&self, job: &JobName, told: &Sight) {
        self.write(|p| {
            if p.before.get(job).is_some_and(|before| before == told) {
                p.before.remove(job);
            }
        });
    }

    /// The run of `job` under `token` has ended at this node, and the store is about to be told.
    pub fn ended_here(&self, job: &JobName, token: Token, fenced: bool) {
        let shown = self.write(|p| {
            let away = p.trouble.is_some();
            let Some(seen) = p.jobs.get_mut(job).filter(|seen| seen.is_under(token)) else {
                return false;
            };
            seen.ended_here = Some(EndedHere { token, at: clock::boot(), fenced });
            fenced || away
        });
        if shown {
            self.tell(Change::Job(job.clone()));
        }
    }

    /// Says which node this process is.
    pub fn own(&self, node: NodeName) {
        self.write(|p| p.own = Some(node));
    }

    /// Whether this process is that node.
    #[must_use]
    pub fn is_own(&self, node: &NodeName) -> bool {
        self.read(|p| p.own.as_ref() == Some(node))
    }

    /// Nodes that were just read, with the silence that counts: pages, the API and alerts call a node lost by this alone. After an
    /// outage of the store every node gets as long as a node may be silent at any time.
    #[must_use]
    pub fn forgiving(&self, mut nodes: Vec<NodeRecord>) -> Vec<NodeRecord> {
        self.read(|p| p.forgive(&mut nodes, clock::boot()));
        nodes
    }

    /// Nodes as last read.
    #[must_use]
    pub fn nodes(&self) -> Arc<Vec<NodeRecord>> {
        self.read(|p| Arc::clone(&p.nodes))
    }

    /// Who holds which job, by the leases as last read; a lease that has run out unseen holds nothing.
    #[must_use]
    pub fn held(&self) -> Vec<(JobName, NodeName)> {
        let now = clock::boot();
        self.read(|p| {
            let lease = |seen: &Seen| {
                let lease = seen.record.lease.as_ref()?;
                let lives = seen.confirmed + lease.expires_in > now;
                lives.then(|| (seen.record.name.clone(), lease.node.clone()))
            };
            p.jobs.values().filter_map(lease).collect()
        })
    }

    /// How many jobs each node holds, by the leases as last read.
    #[must_use]
    pub fn loads(&self) -> Arc<HashMap<NodeName, usize>> {
        self.read(|p| Arc::clone(&p.loads))
    }

    /// The store's clock now, by the newest record of any job; `None` before the first.
    #[must_use]
    pub fn store_now(&self) -> Option<StoreTime> {
        let newest = self.read(|p| p.jobs.values().max_by_key(|seen| seen.confirmed).cloned());
        newest.map(|seen| seen.store_now(clock::boot()))
    }

    /// The epoch that versions belong to.
    #[must_use]
    pub fn epoch(&self) -> String {
        self.read(|p| p.epoch.clone())
    }

    /// `None` while the store is reachable, else what is wrong (at once, not after the lease).
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.outage().map(|outage| outage.detail)
    }

    /// As [`Feed::trouble`], with since when.
    #[must_use]
    pub fn outage(&self) -> Option<Outage> {
        self.read(|p| p.trouble.clone())
    }

    /// The store's clock at `boot` on this machine's, as well as it is known here; `None` before the first reading.
    #[must_use]
    pub fn store_time(&self, boot: Boot) -> Option<StoreTime> {
        let (at, asked) = self.read(|p| p.clock)?;
        Some(at + boot.since(asked) - asked.since(boot))
    }

    /// When `node`, as last read, renewed itself for the last time.
    #[must_use]
    pub fn heard(&self, node: &NodeRecord) -> Option<StoreTime> {
        let read = self.store_time(self.read(|p| p.nodes_at))?;
        Some(read - Duration::from_millis(node.age_ms))
    }

    /// Changes from now on. A listener that lags reads everything again.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// Events of programs' leases from now on.
    pub fn leases(&self) -> broadcast::Receiver<HeardOfLease> {
        self.shared.leases.subscribe()
    }

    /// A feed that follows nothing yet.
    #[must_use]
    pub fn idle() -> Feed {
        let (changes, _) = broadcast::channel(BACKLOG);
        let (leases, _) = broadcast::channel(BACKLOG);
        Feed { shared: Arc::new(Shared { pictures: RwLock::default(), changes, leases }) }
    }

    /// As [`Feed::idle`] and [`Feed::begin`].
    pub async fn start(store: Store, jobs: Vec<Followed>) -> Feed {
        let feed = Self::idle();
        feed.begin(store, watch::channel(jobs).1).await;
        feed
    }

    /// The store could not be opened, and `why`; whether that is news.
    pub fn still_away(&self, why: String) -> bool {
        let before = self.write(|p| p.trouble(Some(why)));
        if before.is_none() {
            self.tell(Change::Reachable(false));
        }
        before.is_none()
    }

    /// Follows `own`, the jobs of this node's configuration, and those that only other nodes define, until the runtime
    /// ends. Returns after the first snapshot, or at the first sign that the store is away (then it keeps trying).
    pub async fn begin(&self, store: Store, mut own: watch::Receiver<Vec<Followed>>) {
        let jobs = own.borrow_and_update().clone();
        let mut follower = Follower::new(self.clone(), store, jobs, own);
        let events = follower.subscribe().await;
        tokio::spawn(async move { follower.follow(events).await });
    }

    /// For a process that asks something and ends: it reads `jobs` when it is told to, and hears nothing in between.
    #[must_use]
    pub fn looks(&self, store: Store, jobs: Vec<Followed>) -> Looks {
        let own = watch::channel(jobs.clone()).1;
        Looks(Follower::new(self.clone(), store, jobs, own))
    }

    fn read<T>(&self, look: impl FnOnce(&Pictures) -> T) -> T {
        look(&self.shared.pictures.read())
    }

    fn write<T>(&self, change: impl FnOnce(&mut Pictures) -> T) -> T {
        change(&mut self.shared.pictures.write())
    }

    fn tell(&self, change: Change) {
        // No listener is no error: everything can be read again.
        drop(self.shared.changes.send(change));
    }
}

/// See [`Feed::looks`].
pub struct Looks(Follower);

impl Looks {
    /// Reads the nodes, and all jobs that there are now.
    pub async fn look(&mut self) {
        self.0.look().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Beat;

    fn node(name: &str, age_ms: u64) -> NodeRecord {
        let beat = Beat {
            node: NodeName::new(name).unwrap(),
            boot: String::new(),
            version: String::new(),
            started: StoreTime(0),
            containment: String::new(),
            url: String::new(),
            jobs: BTreeSet::new(),
            digest: String::new(),
            holds: Vec::new(),
            unfit: Default::default(),
            vitals: None,
            watched: None,
        };
        NodeRecord { beat, age_ms, draining: false, told: Arc::default() }
    }

    #[test]
    fn after_an_outage_nobody_is_lost_who_is_not_and_who_is_lost_is_found_in_the_usual_time() {
        let mut pictures = Pictures { own: NodeName::new("own").ok(), ..Pictures::default() };
        pictures.nodes = Arc::new(vec![node("own", 100), node("other", 900), node("dead", 60_000)]);
        pictures.trouble(Some("away".to_owned()));
        pictures.trouble(Some("away still".to_owned()));
        pictures.trouble(None);
        let back = pictures.back.unwrap();
        let alive = |after_ms: u64| {
            let silent = 10_000 + after_ms;
            let mut read =
                vec![node("own", silent), node("other", silent), node("dead", 60_000 + silent)];
            pictures.forgive(&mut read, back + Duration::from_millis(after_ms));
            read.iter().map(NodeRecord::is_alive).collect::<Vec<_>>()
        };
        for after_ms in [0, 800, 3_999] {
            assert_eq!(alive(after_ms), [true, true, false], "{after_ms} ms after it is back");
        }
        assert_eq!(alive(4_000), [true, false, false], "it would have said something by now");
        let calm = Pictures { own: NodeName::new("own").ok(), ..Pictures::default() };
        let mut read = vec![node("own", 9_000), node("other", 4_000), node("new", 3_999)];
        calm.forgive(&mut read, back);
        let alive: Vec<_> = read.iter().map(NodeRecord::is_alive).collect();
        assert_eq!(alive, [true, false, true], "no outage, no excuse");
    }
}
