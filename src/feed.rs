//! The feed: follows the store's events, keeps the newest picture of every job, and fans changes out inside the
//! process.
//!
//! Events are hints. Most carry the record, which is taken if it is certainly newer than what is known; else the feed reads the
//! state itself, drops what is older, and takes a whole snapshot after every interruption and on a new epoch. Leases in use are observed several times a lease, everything else every second
//! or two, so that a lost hint or a silent holder is noticed. Jobs that only other nodes define are followed like its own.
//! One subscription per process. Where each job may be out of reach by itself (a cluster), each is read by itself, all at
//! once. It decides nothing.
//!
//! Here stands what is known and who hears of it; `follow` keeps it true.

mod follow;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{broadcast, watch};

use crate::clock;
use crate::domain::job::{JobRecord, Viewpoint};
use crate::domain::lease::Timing;
use crate::domain::limits::progressed;
use crate::domain::name::{JobName, NodeName};
use crate::domain::time::{Boot, StoreTime};
use crate::store::Store;
use crate::store::dispatch::Waiter;
use crate::store::nodes::NodeRecord;
use follow::Follower;

/// How many changes a listener may fall behind before it reads everything again.
const BACKLOG: usize = 4_096;

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
}

impl Seen {
    /// With what was known of its progress `before`.
    #[must_use]
    pub(crate) fn after(mut self, before: Option<&Seen>) -> Self {
        let before = before.map(|seen| (&*seen.record, seen.progressed));
        self.progressed = progressed(&self.record, before, self.at);
        self
    }

    /// The store's clock now, as well as it is known here.
    #[must_use]
    pub fn store_now(&self, now: Boot) -> StoreTime {
        self.at + now.since(self.confirmed)
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
            stale_after: timing.ttl + Duration::from_millis(500),
            min_uptime,
            takes_turns,
            turn_barred: false,
            // No node knows whether a program will ask, and none stands in its way.
            can_run: external || nodes.iter().any(|node| node.may_take(&self.record.name)),
            silent_after: timing.silent_after(),
            quarantine: self.doubted_until.since(now),
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
}

/// What listeners are told; all of it can be read again from [`Feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A job has a newer picture, or the same version now means another state (its holder fell silent).
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

/// A handle; cheap to clone.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    pictures: RwLock<Pictures>,
    changes: broadcast::Sender<Change>,
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
}

impl Pictures {
    fn put(&mut self, seen: Seen) {
        let before = self.jobs.get(&seen.record.name);
        let seen = seen.after(before);
        let now = holder(&seen);
        let old = self.jobs.insert(seen.record.name.clone(), seen);
        self.passed_on(old.as_ref().and_then(holder), now);
    }

    fn drop(&mut self, job: &JobName) {
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
    /// The newest picture of one job; `None` until the first snapshot.
    #[must_use]
    pub fn job(&self, name: &JobName) -> Option<Seen> {
        self.read(|p| p.jobs.get(name).cloned())
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

    /// The store's clock now, by the newest picture of any job; `None` before the first.
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
        let before = i64::try_from(asked.since(boot).as_millis()).unwrap_or(0);
        Some(StoreTime((at + boot.since(asked)).0.saturating_sub(before)))
    }

    /// When `node`, as last read, renewed itself for the last time.
    #[must_use]
    pub fn heard(&self, node: &NodeRecord) -> Option<StoreTime> {
        let read = self.store_time(self.read(|p| p.nodes_at))?;
        Some(StoreTime(read.0.saturating_sub(i64::try_from(node.age_ms).unwrap_or(0))))
    }

    /// Changes from now on. A listener that lags reads everything again.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// A feed that follows nothing yet.
    #[must_use]
    pub fn idle() -> Feed {
        let (changes, _) = broadcast::channel(BACKLOG);
        Feed { shared: Arc::new(Shared { pictures: RwLock::default(), changes }) }
    }

    /// As [`Feed::idle`] and [`Feed::begin`].
    pub async fn start(store: Store, jobs: Vec<Followed>) -> Feed {
        let feed = Self::idle();
        feed.begin(store, watch::channel(jobs).1).await;
        feed
    }

    /// The store could not be opened, and `why`; whether that is news.
    pub fn still_away(&self, why: String) -> bool {
        let before = self.write(|p| {
            let since = p.trouble.as_ref().map_or_else(clock::boot, |known| known.since);
            p.trouble.replace(Outage { detail: why, since })
        });
        if before.is_none() {
            self.tell(Change::Reachable(false));
        }
        before.is_none()
    }

    /// Follows `own`, the jobs of this node's configuration, and those that only other nodes define, until the runtime
    /// ends. Returns after the first snapshot, or at the first sign that the store is away (then it goes on trying).
    pub async fn begin(&self, store: Store, mut own: watch::Receiver<Vec<Followed>>) {
        let jobs = own.borrow_and_update().clone();
        let mut follower = Follower::new(self.clone(), store, jobs, own);
        let events = follower.subscribe().await;
        tokio::spawn(async move { follower.follow(events).await });
    }

    fn read<T>(&self, look: impl FnOnce(&Pictures) -> T) -> T {
        look(&self.shared.pictures.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Pictures) -> T) -> T {
        change(&mut self.shared.pictures.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, change: Change) {
        // No listener is no error: everything can be read again.
        drop(self.shared.changes.send(change));
    }
}
