//! The feed: follows the store's events, keeps the newest picture of every job, and fans changes out inside the
//! process.
//!
//! Events are hints. Most carry the record, which is taken if it is certainly newer than what is known; else the feed reads the
//! state itself, drops what is older, and takes a whole snapshot after every interruption and on a new epoch. Leases in use are observed several times a lease, everything else every second
//! or two, so that a lost hint or a silent holder is noticed. Jobs that only other nodes define are followed like its own.
//! One subscription per process. Where each job may be out of reach by itself (a cluster), each is read by itself, all at
//! once. It decides nothing.

mod choice;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::clock;
use crate::domain::definition::Definitions;
use crate::domain::job::{JobRecord, State, Viewpoint, state};
use crate::domain::lease::Timing;
use crate::domain::name::{JobName, NodeName};
use crate::domain::time::{Boot, StoreTime};
use crate::store::dispatch::Waiter;
use crate::store::events::{Events, StoreEvent, Told};
use crate::store::jobs::{Jobs, Snapshot};
use crate::store::leases::{Leases, Observed};
use crate::store::nodes::{NodeRecord, Nodes};
use crate::store::{Result, Store};

/// How often leases that are in use are observed (at most; shorter leases are observed more often).
const OBSERVE_HELD: Duration = Duration::from_millis(500);
/// How often everything is compared, even if all is quiet.
const COMPARE_ALL: Duration = Duration::from_millis(1_500);
/// How long to wait before trying the store again.
const TRY_AGAIN: Duration = Duration::from_millis(100);
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
    /// Until when the store may have forgotten a lease that lives; in the past when all is well.
    pub doubted_until: Boot,
}

impl Seen {
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
            // Whether a program will ask, nobody knows; no node stands in its way.
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

    /// When `node`, as last read, was heard of for the last time.
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
        let mut follower = Follower {
            names: jobs.iter().map(|f| f.job.clone()).collect(),
            jobs: jobs.into_iter().map(|f| (f.job.clone(), f)).collect(),
            own,
            told: HashMap::new(),
            choice_is_old: true,
            held_every: OBSERVE_HELD,
            feed: self.clone(),
            store,
            synced: false,
            said: HashMap::new(),
            missing: HashMap::new(),
        };
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

struct Follower {
    store: Store,
    feed: Feed,
    /// The jobs of this node's configuration.
    own: watch::Receiver<Vec<Followed>>,
    /// What nodes define, with the digest under which they told it.
    told: HashMap<NodeName, (String, Arc<Definitions>)>,
    /// Which jobs are followed is to be chosen anew.
    choice_is_old: bool,
    held_every: Duration,
    /// Everything was read since the subscription began: a record that comes with an event belongs to the same epoch.
    synced: bool,
    names: Vec<JobName>,
    jobs: HashMap<JobName, Followed>,
    /// The state last announced, to notice when time alone changes it.
    said: HashMap<JobName, State>,
    /// What could not be read at the last attempt, and why; `None` stands for the nodes.
    missing: HashMap<Option<JobName>, String>,
}

impl Follower {
    /// Subscribes and takes the first snapshot; `None` when the store is away.
    async fn subscribe(&mut self) -> Option<mpsc::Receiver<StoreEvent>> {
        match self.store.subscribe(&self.names).await {
            Ok(mut events) => {
                // The first event confirms the subscription: only a snapshot taken after it has no gap.
                if events.recv().await == Some(StoreEvent::Subscribed) {
                    self.resync().await;
                    return Some(events);
                }
                self.trouble(Some("the store closed the subscription".to_owned()));
                None
            }
            Err(error) => {
                self.trouble(Some(error.to_string()));
                None
            }
        }
    }

    async fn follow(&mut self, mut events: Option<mpsc::Receiver<StoreEvent>>) {
        let mut held_at = Instant::now();
        let mut all_at = Instant::now();
        let mut reloaded = true;
        loop {
            if std::mem::take(&mut self.choice_is_old) && self.choose() {
                events = self.subscribe().await;
            }
            let Some(receiver) = events.as_mut() else {
                sleep_until(Instant::now() + TRY_AGAIN).await;
                self.announce_by_time();
                events = self.subscribe().await;
                continue;
            };
            tokio::select! {
                biased;
                event = receiver.recv() => match event {
                    Some(first) => {
                        let mut batch = vec![first];
                        while let Ok(more) = receiver.try_recv() {
                            batch.push(more);
                        }
                        self.hear(batch).await;
                    }
                    None => events = None,
                },
                () = sleep_until(all_at) => {
                    if self.synced {
                        self.observe(false).await;
                    } else {
                        self.resync().await;
                    }
                    self.read_nodes(false).await;
                    all_at = Instant::now() + COMPARE_ALL;
                    held_at = Instant::now() + self.held_every;
                }
                () = sleep_until(held_at) => {
                    self.observe(true).await;
                    held_at = Instant::now() + self.held_every;
                }
                changed = self.own.changed(), if reloaded => {
                    // An error: nobody reloads any more.
                    reloaded = changed.is_ok();
                    self.choice_is_old = reloaded;
                    // Also a definition with the same name may mean another picture.
                    self.feed.tell(Change::Resynced);
                }
            }
        }
    }

    async fn hear(&mut self, batch: Vec<StoreEvent>) {
        let mut changed: HashMap<JobName, u64> = HashMap::new();
        let mut nodes = false;
        let mut resync = false;
        for event in batch {
            match event {
                StoreEvent::Job(event) => {
                    if self.jobs.contains_key(&event.job) {
                        changed.insert(event.job, event.version);
                    }
                }
                StoreEvent::Record(told) => self.take(told),
                StoreEvent::Nodes => nodes = true,
                StoreEvent::Accounts => self.feed.tell(Change::Accounts),
                StoreEvent::Wake(waiters) => self.feed.tell(Change::Wake(waiters)),
                StoreEvent::Subscribed => (resync, self.synced) = (true, false),
                StoreEvent::Interrupted => {
                    self.synced = false;
                    self.trouble(Some("the store's event connection was interrupted".to_owned()));
                }
            }
        }
        let is_news = |(job, version): (JobName, u64)| {
            let known = self.feed.job(&job).map(|seen| seen.record.version);
            (known != Some(version)).then_some(job)
        };
        let dirty: HashSet<JobName> = changed.into_iter().filter_map(is_news).collect();
        if resync {
            self.resync().await;
        } else if !dirty.is_empty() {
            self.fetch(dirty.into_iter().collect()).await;
        }
        if nodes || resync {
            self.read_nodes(true).await;
        }
    }

    /// A record that came with an event saves the reading, if it is certainly newer than what is known.
    fn take(&mut self, told: Told) {
        let Told { record, at } = told;
        let name = record.name.clone();
        // What it says of a store that was replaced meanwhile is true, but not all: that may have forgotten a run.
        let unread = !self.synced || self.missing.contains_key(&Some(name.clone()));
        if unread || !self.jobs.contains_key(&name) {
            return;
        }
        let taken = self.feed.write(|pictures| {
            let Some(known) = pictures.jobs.get(&name) else { return false };
            // A reading contains all that was published before it. What is older may be of another epoch.
            if known.record.version >= record.version || at < known.at {
                return false;
            }
            let confirmed = (known.confirmed + at.since(known.at)).min(clock::boot());
            let doubted_until = known.doubted_until;
            pictures.put(Seen { record, at, confirmed, doubted_until });
            true
        });
        if taken {
            self.remember_state(&name);
            self.feed.tell(Change::Job(name));
        }
    }

    /// Reads everything again; on failure the comparison goes on trying.
    async fn resync(&mut self) {
        self.synced = self.fetch(self.names.clone()).await;
        if self.synced {
            self.read_nodes(true).await;
            self.feed.tell(Change::Resynced);
        }
    }

    /// Reads `names`; returns whether anything could be read.
    async fn fetch(&mut self, names: Vec<JobName>) -> bool {
        let asked = clock::boot();
        let some = names.len() < self.names.len();
        let mut read = self.read(names).await;
        let known = self.feed.epoch();
        let replaced = !known.is_empty() && read.iter().any(|snapshot| snapshot.epoch != known);
        if replaced && some {
            // Versions of the others do not compare any more either.
            read = self.read(self.names.clone()).await;
        }
        let any = !read.is_empty();
        for snapshot in read {
            self.apply(snapshot, asked);
        }
        if replaced && any {
            self.feed.tell(Change::Resynced);
        }
        any
    }

    /// What could be read of `names`.
    async fn read(&mut self, names: Vec<JobName>) -> Vec<Snapshot> {
        let parts = self.parts(names);
        let answers = join_all(parts.iter().map(|part| self.store.snapshot(part))).await;
        parts.iter().zip(answers).filter_map(|(part, answer)| self.note(part, answer)).collect()
    }

    /// What is read in one call.
    fn parts(&self, names: Vec<JobName>) -> Vec<Vec<JobName>> {
        if self.store.is_sharded() {
            names.into_iter().map(|name| vec![name]).collect()
        } else {
            vec![names]
        }
    }

    fn apply(&mut self, snapshot: Snapshot, asked: Boot) {
        let Snapshot { epoch, at, quarantine, jobs } = snapshot;
        let doubted_until = clock::boot() + quarantine;
        let mut told = Vec::new();
        self.feed.write(|pictures| {
            let same_epoch = pictures.epoch == epoch;
            pictures.epoch = epoch;
            pictures.clock = Some((at, asked));
            for record in jobs {
                let name = record.name.clone();
                let known = pictures.jobs.get(&name);
                let older = known.is_some_and(|k| same_epoch && k.record.version > record.version);
                if !older {
                    let record = Arc::new(record);
                    let seen = Seen { record, at, confirmed: asked, doubted_until };
                    pictures.put(seen);
                    told.push(name);
                }
            }
        });
        for name in told {
            self.remember_state(&name);
            self.feed.tell(Change::Job(name));
        }
    }

    /// Compares versions and leases; `held_only` looks at leases in use alone.
    async fn observe(&mut self, held_only: bool) {
        let names: Vec<JobName> = if held_only {
            self.feed.read(|p| {
                let held = p.jobs.values().filter(|seen| seen.record.lease.is_some());
                held.map(|seen| seen.record.name.clone()).collect()
            })
        } else {
            self.names.clone()
        };
        if !names.is_empty() {
            let asked = clock::boot();
            let parts = self.parts(names);
            let answers = join_all(parts.iter().map(|part| self.store.observe(part))).await;
            let mut changed = Vec::new();
            for (part, answer) in parts.iter().zip(answers) {
                if let Some(observed) = self.note(part, answer) {
                    changed.extend(self.confirm(part, &observed, asked));
                }
            }
            if !changed.is_empty() {
                self.fetch(changed).await;
            }
        }
        self.announce_by_time();
    }

    /// Renews the confirmation of what is unchanged; returns what must be read again.
    fn confirm(&self, names: &[JobName], observed: &[Observed], asked: Boot) -> Vec<JobName> {
        let mut changed = Vec::new();
        self.feed.write(|pictures| {
            for (name, observed) in names.iter().zip(observed) {
                let Some(seen) = pictures.jobs.get_mut(name) else {
                    changed.push(name.clone());
                    continue;
                };
                let leased = seen.record.lease.is_some();
                if observed.version != seen.record.version
                    || observed.lease_left.is_some() != leased
                {
                    changed.push(name.clone());
                    continue;
                }
                seen.at = seen.store_now(asked);
                seen.confirmed = asked;
                if let Some(left) = observed.lease_left
                    && let Some(lease) = &mut Arc::make_mut(&mut seen.record).lease
                {
                    lease.expires_in = left;
                }
            }
        });
        changed
    }

    async fn read_nodes(&mut self, tell: bool) {
        let asked = clock::boot();
        let answer = self.store.nodes().await;
        let Some(mut nodes) = self.note(&[], answer) else { return };
        self.read_definitions(&mut nodes).await;
        let (changed, told) = self.feed.write(|p| {
            let same = |(a, b): (&NodeRecord, &NodeRecord)| {
                a.beat.says_as(&b.beat)
                    && a.draining == b.draining
                    && a.is_alive() == b.is_alive()
                    && a.told == b.told
            };
            let changed = p.nodes.len() != nodes.len() || !p.nodes.iter().zip(&nodes).all(same);
            let told = p.nodes.len() != nodes.len()
                || p.nodes.iter().zip(&nodes).any(|(a, b)| a.told != b.told);
            p.nodes = Arc::new(nodes);
            p.nodes_at = asked;
            (changed, told)
        });
        self.choice_is_old |= told;
        if changed || tell {
            self.feed.tell(Change::Nodes);
        }
    }

    /// Says which pictures mean something else only because time went by.
    fn announce_by_time(&mut self) {
        for name in &self.names.clone() {
            let before = self.said.get(name).copied();
            if self.remember_state(name) != before && before.is_some() {
                self.feed.tell(Change::Job(name.clone()));
            }
        }
    }

    fn remember_state(&mut self, name: &JobName) -> Option<State> {
        let seen = self.feed.job(name)?;
        let followed = self.jobs.get(name)?;
        let Followed { timing, min_uptime, takes_turns, external, .. } = followed;
        let nodes = self.feed.nodes();
        let view =
            seen.viewpoint(clock::boot(), timing, *min_uptime, *takes_turns, *external, &nodes);
        let word = state(&seen.record, &view);
        self.said.insert(name.clone(), word);
        Some(word)
    }

    /// Notes whether the store answered about `names` (about nodes when there are none); hands the answer on.
    fn note<T>(&mut self, names: &[JobName], answer: Result<T>) -> Option<T> {
        let about: Vec<Option<JobName>> = match names {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        };
        let read = match answer {
            Ok(value) => {
                if self.store.is_sharded() {
                    self.missing.retain(|of, _| !about.contains(of));
                } else {
                    // One answer speaks for all that lives in one place.
                    self.missing.clear();
                }
                Some(value)
            }
            Err(error) => {
                self.missing.extend(about.into_iter().map(|of| (of, error.to_string())));
                None
            }
        };
        self.trouble(self.missing.values().min().cloned());
        read
    }

    fn trouble(&self, trouble: Option<String>) {
        let reachable = trouble.is_none();
        let was = self.feed.write(|p| {
            let since = p.trouble.as_ref().map_or_else(clock::boot, |known| known.since);
            let now = trouble.clone().map(|detail| Outage { detail, since });
            std::mem::replace(&mut p.trouble, now)
        });
        if was.is_none() != reachable {
            match trouble {
                Some(what) => tracing::warn!(%what, "the store is out of reach; trying again"),
                None => tracing::info!("the store is reachable again"),
            }
            self.feed.tell(Change::Reachable(reachable));
        }
    }
}
