//! Keeps a feed up to date: receives events, reads what changed, observes leases, and notices when the store is away. `choice` says which jobs it
//! follows.

mod choice;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::{Change, Feed, Followed, HeardOfLease, Pictures, Seen};
use crate::events::{Events, StoreEvent, Told};
use crate::jobs::{Jobs, Snapshot};
use crate::leases::{Leases, Observed};
use crate::nodes::{NodeRecord, Nodes};
use crate::{Result, Store};
use soloist_domain::definition::Definitions;
use soloist_domain::event::{EventKind, JobEvent};
use soloist_domain::job::{JobRecord, State, Viewpoint, state};
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::tick;
use soloist_domain::time::{Began, Boot, StoreTime};
use soloist_process::clock;

/// How often leases that are in use are observed (at most; shorter leases are observed more often).
const OBSERVE_HELD: Duration = Duration::from_millis(500);
/// How often everything is compared, even if all is quiet.
const COMPARE_ALL: Duration = Duration::from_millis(1_500);
/// How long to wait before trying the store again.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Whether the record that is `known` said nothing any more and was forgotten before this one was read, which is a later one although its
/// version is lower.
fn is_forgotten(known: &Seen, record: &JobRecord, at: StoreTime) -> bool {
    known.record.version > record.version && known.record.is_void() && at > known.at
}

/// The one task that reads the store for a feed.
pub(super) struct Follower {
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
    /// Knows nothing yet of `jobs`, those of this node's configuration; `own` tells when they change.
    pub(super) fn new(
        feed: Feed,
        store: Store,
        jobs: Vec<Followed>,
        own: watch::Receiver<Vec<Followed>>,
    ) -> Self {
        Self {
            names: jobs.iter().map(|followed| followed.job.clone()).collect(),
            jobs: jobs.into_iter().map(|followed| (followed.job.clone(), followed)).collect(),
            own,
            told: HashMap::new(),
            choice_is_old: true,
            held_every: OBSERVE_HELD,
            feed,
            store,
            synced: false,
            said: HashMap::new(),
            missing: HashMap::new(),
        }
    }

    /// Subscribes and takes the first snapshot; `None` when the store is away.
    pub(super) async fn subscribe(&mut self) -> Option<mpsc::Receiver<StoreEvent>> {
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

    /// Reads everything once.
    pub(super) async fn look(&mut self) {
        self.read_nodes(false).await;
        self.choose();
        self.fetch(self.names.clone()).await;
    }

    /// Keeps the feed true until the runtime ends.
    pub(super) async fn follow(&mut self, mut events: Option<mpsc::Receiver<StoreEvent>>) {
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
                    // An error: the sender is gone, so no reload will come.
                    reloaded = changed.is_ok();
                    self.choice_is_old = reloaded;
                    // A definition with the same name may mean another state, too.
                    self.feed.tell(Change::Resynced);
                }
            }
        }
    }

    async fn hear(&mut self, batch: Vec<StoreEvent>) {
        let mut changed: HashMap<JobName, u64> = HashMap::new();
        let mut dirty: HashSet<JobName> = HashSet::new();
        let mut nodes = false;
        let mut resync = false;
        for event in batch {
            self.pass_on(&event);
            match event {
                StoreEvent::Job(event) => {
                    if self.jobs.contains_key(&event.job) {
                        changed.insert(event.job, event.version);
                    }
                }
                StoreEvent::Lease(job) => {
                    if self.jobs.contains_key(&job) {
                        dirty.insert(job);
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
        dirty.extend(changed.into_iter().filter_map(is_news));
        if resync {
            self.resync().await;
        } else if !dirty.is_empty() {
            self.fetch(dirty.into_iter().collect()).await;
        }
        if nodes || resync {
            self.read_nodes(true).await;
        }
    }

    /// Says what an event says of the lease of a program.
    fn pass_on(&self, event: &StoreEvent) {
        let heard = match event {
            StoreEvent::Job(JobEvent { job, version, event: EventKind::LeaseReleased }) => {
                HeardOfLease::GivenBack { name: job.clone(), version: *version }
            }
            StoreEvent::Record(Told { record, .. }) => {
                let lease = record.lease.clone();
                let Some(lease) = lease.filter(|lease| lease.owner.is_program()) else { return };
                HeardOfLease::Held { name: record.name.clone(), version: record.version, lease }
            }
            _ => return,
        };
        // Nobody needs to listen.
        drop(self.feed.shared.leases.send(heard));
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
            let (progressed, ended_here) = (None, None);
            pictures.put(Seen { record, at, confirmed, doubted_until, progressed, ended_here });
            true
        });
        if taken {
            self.remember_state(&name);
            self.feed.tell(Change::Job(name));
        }
    }

    /// Reads everything again; on failure the comparison keeps trying.
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
            pictures.clock = Some((at, asked));
            for mut record in jobs {
                let name = record.name.clone();
                pictures.reads(&name, &epoch, at, !quarantine.is_zero());
                let known = pictures.jobs.get(&name).filter(|_| same_epoch);
                let forgotten = known.is_some_and(|known| is_forgotten(known, &record, at));
                if let Some(known) = known.filter(|_| forgotten) {
                    // A token that was seen is no secret: the next one is greater, and nobody calls that a store that forgot.
                    record.token = record.token.max(known.record.token);
                }
                let older = known.is_some_and(|known| known.record.version > record.version);
                if !older || forgotten {
                    let record = Arc::new(record);
                    let confirmed = asked;
                    let (progressed, ended_here) = (None, None);
                    pictures.put(Seen {
                        record,
                        at,
                        confirmed,
                        doubted_until,
                        progressed,
                        ended_here,
                    });
                    told.push(name);
                }
            }
            pictures.epoch = epoch;
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
                let clock_was_set = observed.clock.is_some_and(|(at, slack)| {
                    at.apart(seen.store_now(clock::boot())) > Began::CLOCKS_AGREE + slack
                });
                if clock_was_set
                    || observed.version != seen.record.version
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
            p.forgive(&mut nodes, asked);
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

    /// Reports the jobs whose state changed only because time passed.
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
        let schedule = followed.schedule.as_ref();
        let ticks = schedule.map(|schedule| tick::upcoming(&seen.record, schedule, view.now));
        let word = state(&seen.record, &Viewpoint { ticks, ..view });
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
        let was = self.feed.write(|p| p.trouble(trouble.clone()));
        if was.is_none() != reachable {
            match trouble {
                Some(what) => tracing::warn!(%what, "the store is out of reach; trying again"),
                None => tracing::info!("the store is reachable again"),
            }
            self.feed.tell(Change::Reachable(reachable));
            // While the store is away an end that it was not told is shown.
            let ended = |p: &Pictures| {
                let ended = p.jobs.values().filter(|seen| seen.ended_here.is_some());
                ended.map(|seen| seen.record.name.clone()).collect::<Vec<_>>()
            };
            for job in self.feed.read(ended) {
                self.feed.tell(Change::Job(job));
            }
        }
    }
}
