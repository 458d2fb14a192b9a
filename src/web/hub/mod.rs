//! The hub: one listener to the feed per node, and the seats of everybody who is connected.
//!
//! A change marks its job dirty in every seat and wakes those that are not awake yet; a seat holds *which* jobs are
//! dirty, never a queue of messages, so that a slow reader costs bounded memory and gets the newest state. Knows
//! frames as text and how to wake a seat, and nothing of the crate that speaks WebSocket.

mod accounts;
mod dispatch;
mod follow;
mod roster;
mod rotations;
mod seats;
mod truth;
mod turns;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

pub use self::accounts::{SIGNED_OUT, check};
pub use self::dispatch::LastKnown;
use self::roster::Roster;
pub use self::rotations::Look;
use self::seats::Census;
pub use self::seats::{Admission, Goodbye, Seat, Work};
use super::auth::{Caller, Identities, Shown};
use super::frames::{self, JobFrames, Protocol};
use super::loglines::LogRing;
use super::{csrf, parts};
use crate::clock;
use crate::config::{Current, JobConfig};
use crate::domain::definition::Definitions;
use crate::domain::job::{JobRecord, State, state};
use crate::domain::name::{JobName, NodeName};
use crate::domain::time::{Boot, StoreTime};
use crate::feed::{Change, Feed, Seen};
use crate::picture::{JobView, NodeView, viewpoint};
use crate::store::Store;
use crate::telemetry::Metrics;
use crate::words::Language;

/// How often it looks whether time alone changed a picture (a run grew old enough, a picture became stale).
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Sentences older than this are made anew for whoever asks.
const SENTENCES_LAST: Duration = Duration::from_secs(1);
/// Connecting and leaving must not wait for one lock.
const SHARDS: u64 = 16;
/// Closing everybody takes at most about this long.
const DRAIN_WITHIN: Duration = Duration::from_secs(4);
const DRAIN_STEP: Duration = Duration::from_millis(20);
const DRAIN_BATCH: usize = 50;

/// What the hub keeps for one job.
#[derive(Default)]
struct Slot {
    frames: Mutex<Option<Arc<JobFrames>>>,
    watch: Mutex<Watch>,
    followers: AtomicUsize,
    fetching: AtomicBool,
    ring: Mutex<LogRing>,
}

#[derive(Default)]
struct Watch {
    said: Option<State>,
    /// Who had the lease in the newest picture.
    holder: Option<NodeName>,
    wanted_since: Option<Boot>,
}

/// The hub of one node.
pub struct Hub {
    store: Store,
    feed: Feed,
    config: Current,
    metrics: Arc<Metrics>,
    roster: RwLock<Arc<Roster>>,
    /// The nodes at the last look, whether they were alive, and what they defined.
    told: Mutex<Vec<(NodeName, bool, Arc<Definitions>)>>,
    seats: Vec<Mutex<HashMap<u64, Arc<Seat>>>>,
    next_id: AtomicU64,
    census: Mutex<Census>,
    /// Grows with every change of any job, to know whether a summary is still right.
    generation: AtomicU64,
    summaries: Mutex<[Option<(u64, String)>; 2]>,
    board: dispatch::Board,
    turns: turns::Turns,
    rings: rotations::Board,
    truth: truth::Truth,
    identities: Identities,
    /// Somebody may be another than when they connected.
    doubted: Notify,
    draining: AtomicBool,
    ended: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// A hub with no seats; [`Hub::run`] makes it listen.
    #[must_use]
    pub fn new(
        store: Store,
        feed: Feed,
        config: Current,
        metrics: Arc<Metrics>,
        identities: Identities,
    ) -> Self {
        let roster = Roster::default().chosen(&config.get(), &feed.nodes());
        Self {
            roster: RwLock::new(Arc::new(roster)),
            told: Mutex::default(),
            seats: (0..SHARDS).map(|_| Mutex::default()).collect(),
            next_id: AtomicU64::new(0),
            census: Mutex::default(),
            generation: AtomicU64::new(0),
            summaries: Mutex::default(),
            board: dispatch::Board::default(),
            turns: turns::Turns::default(),
            rings: rotations::Board::default(),
            truth: truth::Truth::default(),
            identities,
            doubted: Notify::new(),
            draining: AtomicBool::new(false),
            ended: Notify::new(),
            store,
            feed,
            config,
            metrics,
        }
    }

    /// Listens to the feed until [`Hub::drain`] has ended.
    pub async fn run(self: Arc<Self>) {
        tokio::spawn(Arc::clone(&self).watch_dispatch());
        tokio::spawn(Arc::clone(&self).watch_turns());
        tokio::spawn(Arc::clone(&self).watch_rotations());
        tokio::spawn(Arc::clone(&self).watch_accounts());
        let mut changes = self.feed.subscribe();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                change = changes.recv() => {
                    let mut batch = Batch::default();
                    match change {
                        Ok(change) => self.gather(&mut batch, change),
                        Err(RecvError::Lagged(_)) => batch.resync = true,
                        Err(RecvError::Closed) => return,
                    }
                    while let Ok(change) = changes.try_recv() {
                        self.gather(&mut batch, change);
                    }
                    self.apply(batch);
                }
                _ = look.tick() => self.look(),
                () = self.ended.notified() => return,
            }
        }
    }

    /// The jobs that there are.
    fn numbers(&self) -> Vec<usize> {
        self.roster().shown().map(|(nth, _)| nth).collect()
    }

    fn gather(&self, batch: &mut Batch, change: Change) {
        match change {
            Change::Job(name) => batch.jobs.extend(self.roster().number_of(&name)),
            Change::Nodes => batch.nodes = true,
            Change::Accounts => self.doubted.notify_one(),
            Change::Resynced => batch.resync = true,
            // What it means for each job is seen by `look`.
            Change::Reachable(reachable) => {
                self.note_reachable(reachable);
                batch.store = true;
            }
            // Waiters are of no job.
            Change::Wake(_) => {}
        }
    }

    fn apply(self: &Arc<Self>, mut batch: Batch) {
        let told = batch.nodes && self.others_tell();
        batch.resync |= (told || batch.resync) && self.choose();
        if told && !batch.resync {
            self.refresh(self.numbers());
        }
        let jobs: Vec<usize> = if batch.resync {
            self.numbers()
        } else {
            std::mem::take(&mut batch.jobs).into_iter().collect()
        };
        for &job in &jobs {
            let seen = self.seen(job);
            batch.nodes |= self.is_passed_on(job, &seen);
            let confirmed = seen.confirmed;
            self.note_loss(&seen.record);
            self.say(job, &seen);
            self.replace(job, Some(confirmed));
            self.follow_log(job);
            self.expect_turn(job, &seen);
        }
        if !jobs.is_empty() {
            self.generation.fetch_add(1, Ordering::Release);
        }
        if batch.resync {
            // What was said meanwhile was not heard.
            self.doubted.notify_one();
            self.metrics.live_resynced();
        }
        let truth = self.truth_changed();
        for seat in self.everybody() {
            seat.mark(|pending| {
                if batch.resync {
                    pending.snapshot = true;
                    pending.jobs.clear();
                } else if !pending.snapshot {
                    pending.jobs.extend(&jobs);
                }
                pending.nodes |= batch.nodes || batch.resync;
                pending.store |= batch.store;
                pending.truth |= truth;
            });
        }
    }

    /// Finds jobs whose picture means something else only because time went by.
    fn look(self: &Arc<Self>) {
        let mut jobs = Vec::new();
        for job in self.numbers() {
            let seen = self.seen(job);
            if self.say(job, &seen) {
                jobs.push(job);
            }
        }
        self.refresh(jobs);
        if self.truth_changed() {
            for seat in self.everybody() {
                seat.mark(|pending| pending.truth = true);
            }
        }
    }

    /// Makes new pictures of `jobs`, of which there is no newer record, and tells everybody.
    fn refresh(&self, jobs: Vec<usize>) {
        if jobs.is_empty() {
            return;
        }
        for &job in &jobs {
            self.replace(job, None);
        }
        self.generation.fetch_add(1, Ordering::Release);
        for seat in self.everybody() {
            seat.mark(|pending| {
                if !pending.snapshot {
                    pending.jobs.extend(&jobs);
                }
            });
        }
    }

    /// Whether somebody else holds the job than before: the list of nodes says something else then.
    fn is_passed_on(&self, job: usize, seen: &Seen) -> bool {
        let holder = seen.record.lease.as_ref().map(|lease| &lease.node);
        let slot = self.slot(job);
        let mut watch = lock(&slot.watch);
        let passed_on = watch.holder.as_ref() != holder;
        if passed_on {
            watch.holder = holder.cloned();
        }
        passed_on
    }

    /// Notes the state of a job now; whether it is another than before.
    fn say(&self, job: usize, seen: &Seen) -> bool {
        let word = self.word(job, seen);
        let now = clock::boot();
        let slot = self.slot(job);
        let mut watch = lock(&slot.watch);
        let well = matches!(word, State::Running | State::Starting | State::Resting);
        if seen.record.wanted() && !well {
            watch.wanted_since.get_or_insert(now);
        } else {
            watch.wanted_since = None;
        }
        watch.said.replace(word) != Some(word)
    }

    fn word(&self, job: usize, seen: &Seen) -> State {
        let config = self.defined(job);
        let rotations = self.rotations();
        let rotations = rotations.as_ref().map(|views| &views[..]);
        state(&seen.record, &viewpoint(seen, &config, &self.feed.nodes(), rotations, clock::boot()))
    }

    /// Brings the metrics of jobs up to date, before they are read.
    pub fn measure(&self) {
        let now = clock::boot();
        let roster = self.roster();
        roster.gone().for_each(|job| self.metrics.forget(job));
        for (nth, job) in roster.shown() {
            let seen = self.seen(nth);
            self.say(nth, &seen);
            self.metrics.job_state(&job.name, self.word(nth, &seen));
            let since = lock(&self.slot(nth).watch).wanted_since;
            let waited = since.map_or(Duration::ZERO, |since| now.since(since));
            self.metrics.wanted_not_running(&job.name, waited);
        }
    }

    /// The newest picture of a job; before the first, one so old that nothing is known.
    fn seen(&self, job: usize) -> Seen {
        let config = self.defined(job);
        self.feed.job(&config.name).unwrap_or_else(|| never_seen(&config.name))
    }

    fn replace(&self, job: usize, changed: Option<Boot>) {
        let slot = self.slot(job);
        let mut frames = lock(&slot.frames);
        *frames = Some(self.make(job, changed));
    }

    fn make(&self, job: usize, changed: Option<Boot>) -> Arc<JobFrames> {
        Arc::new(JobFrames::new(self.seen(job), self.feed.nodes(), self.rotations(), changed))
    }

    /// The frames of a job, not older than [`SENTENCES_LAST`]. Made under the lock, so that no older picture ever
    /// replaces a newer one.
    fn frames(&self, job: usize) -> Arc<JobFrames> {
        let slot = self.slot(job);
        let mut frames = lock(&slot.frames);
        match &*frames {
            Some(known) if clock::boot().since(known.made) < SENTENCES_LAST => Arc::clone(known),
            _ => {
                let made = self.make(job, None);
                *frames = Some(Arc::clone(&made));
                made
            }
        }
    }

    fn summary(&self, language: Language) -> String {
        let generation = self.generation.load(Ordering::Acquire);
        let which = usize::from(language == Language::Zh);
        if let Some((known, text)) = &lock(&self.summaries)[which]
            && *known == generation
        {
            return text.clone();
        }
        let views: Vec<JobView> = self
            .roster()
            .shown()
            .map(|(nth, job)| self.frames(nth).view(job, language).clone())
            .collect();
        let text = parts::summary(&views, language);
        lock(&self.summaries)[which] = Some((generation, text.clone()));
        text
    }

    /// Gives a connection its seat; the first work it finds is a snapshot.
    pub fn sit(
        &self,
        caller: Caller,
        protocol: Protocol,
        wake: Box<dyn Fn() -> bool + Send + Sync>,
    ) -> Arc<Seat> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let seat = Arc::new(Seat { id, caller, protocol, wake, pending: Mutex::default() });
        lock(self.shard(id)).insert(id, Arc::clone(&seat));
        let away = self.feed.outage().is_some();
        seat.mark(|pending| {
            pending.snapshot = true;
            pending.nodes = true;
            pending.store = away;
            // The page may be older than this connection.
            pending.truth = true;
        });
        if self.is_draining() {
            seat.mark(|pending| pending.goodbye = Some(RESTART));
        }
        seat
    }

    /// Takes the seat away.
    pub fn leave(&self, seat: &Seat) {
        lock(self.shard(seat.id)).remove(&seat.id);
        self.unfollow_dispatch(seat);
        self.unfollow_rotations(seat);
        let follows = std::mem::take(&mut lock(&seat.pending).follows);
        for job in follows.into_keys() {
            self.unfollowed(job);
        }
    }

    fn shard(&self, id: u64) -> &Mutex<HashMap<u64, Arc<Seat>>> {
        &self.seats[usize::try_from(id % SHARDS).unwrap_or(0)]
    }

    fn everybody(&self) -> Vec<Arc<Seat>> {
        self.seats
            .iter()
            .flat_map(|shard| lock(shard).values().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// The frame that comes before all work.
    #[must_use]
    pub fn hello(&self) -> String {
        let now = self.feed.store_now();
        let at = now.and_then(|now| jiff::Timestamp::from_millisecond(now.0).ok());
        frames::hello_frame(self.config.get().node.as_str(), at.map(|at| format!("{at:.3}")))
    }

    /// The next thing to tell a seat, made from the newest state; `None`: all is told, sleep until woken.
    pub fn next(&self, seat: &Seat) -> Option<Work> {
        Some(match (self.next_shared(seat)?, seat.protocol) {
            (Work::Frame { text, changed }, Protocol::Html) => {
                Work::Frame { text: csrf::personal(text, &seat.caller.csrf), changed }
            }
            (work, _) => work,
        })
    }

    /// As [`Self::next`], with [`csrf::MARK`] in forms.
    fn next_shared(&self, seat: &Seat) -> Option<Work> {
        loop {
            let mut pending = lock(&seat.pending);
            let frame = |text| Some(Work::Frame { text, changed: None });
            if let Some(goodbye) = pending.goodbye.take() {
                return Some(Work::Close(goodbye));
            }
            if pending.snapshot {
                pending.snapshot = false;
                pending.jobs.clear();
                drop(pending);
                return frame(self.snapshot(seat));
            }
            if std::mem::take(&mut pending.store) {
                drop(pending);
                return frame(self.store_frame());
            }
            if std::mem::take(&mut pending.truth) && seat.protocol == Protocol::Html {
                drop(pending);
                return frame(self.truth_frame(seat.caller.language));
            }
            if let Some(job) = pending.jobs.pop_first() {
                let followed = pending.follows.contains_key(&job);
                drop(pending);
                return Some(self.job(seat, job, followed));
            }
            if pending.nodes {
                pending.nodes = false;
                drop(pending);
                let feed = &self.feed;
                let views = NodeView::list(&feed.nodes(), &feed.held(), feed.store_now());
                return frame(frames::nodes_frame(&views));
            }
            if std::mem::take(&mut pending.dispatch) {
                drop(pending);
                match self.dispatch_frame(seat) {
                    Some(text) => return frame(text),
                    None => continue,
                }
            }
            if std::mem::take(&mut pending.rotations) {
                drop(pending);
                match self.rotations_frame(seat) {
                    Some(text) => return frame(text),
                    None => continue,
                }
            }
            let Some(job) = pending.logs.pop_first() else {
                pending.awake = false;
                return None;
            };
            let Some(told) = pending.follows.get_mut(&job) else { continue };
            let Some(chunk) = lock(&self.slot(job).ring).after(*told) else { continue };
            *told = Some(chunk.newest);
            if chunk.more {
                pending.logs.insert(job);
            }
            drop(pending);
            let name = &self.defined(job).name;
            let lines = chunk.lines.iter().map(|line| &**line);
            return frame(frames::log_frame(name.as_str(), lines, chunk.skipped));
        }
    }

    fn snapshot(&self, seat: &Seat) -> String {
        let epoch = self.feed.epoch();
        let language = seat.caller.language;
        let roster = self.roster();
        let all: Vec<(usize, &JobConfig, Arc<JobFrames>)> =
            roster.shown().map(|(nth, job)| (nth, &**job, self.frames(nth))).collect();
        match seat.protocol {
            Protocol::Json => frames::snapshot_frame(
                &epoch,
                all.iter().map(|(_, job, frames)| frames.json(job, language)),
            ),
            Protocol::Html => {
                let follows: Vec<usize> = lock(&seat.pending).follows.keys().copied().collect();
                let rows = all
                    .iter()
                    .map(|(nth, job, frames)| frames.row(job, &seat.caller, follows.contains(nth)));
                frames::rows_frame(&epoch, rows, &self.summary(language))
            }
        }
    }

    fn job(&self, seat: &Seat, job: usize, followed: bool) -> Work {
        let frames = self.frames(job);
        let config = &*self.defined(job);
        let language = seat.caller.language;
        let text = match seat.protocol {
            Protocol::Json => frames.job_frame(config, language),
            Protocol::Html => frames::row_frame(
                &frames.row(config, &seat.caller, followed),
                &self.summary(language),
            ),
        };
        Work::Frame { text, changed: frames.changed }
    }

    /// Closes every socket that was opened with this credential.
    pub fn sign_out(&self, shown: &Shown, goodbye: Goodbye) {
        for seat in self.everybody() {
            if seat.caller.shown == *shown {
                seat.mark(|pending| pending.goodbye = Some(goodbye));
            }
        }
    }

    /// Whether [`Hub::drain`] has begun.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Closes all sockets with 1012, a few at a time, so that their clients do not all come back at once.
    pub async fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        let seats = self.everybody();
        let steps = usize::try_from(DRAIN_WITHIN.as_millis() / DRAIN_STEP.as_millis()).unwrap_or(1);
        let batch = DRAIN_BATCH.max(seats.len().div_ceil(steps));
        for some in seats.chunks(batch) {
            for seat in some {
                seat.mark(|pending| pending.goodbye = Some(RESTART));
            }
            tokio::time::sleep(DRAIN_STEP).await;
        }
        // Their answers to the close; whoever never answers is cut by the server.
        for _ in 0..50 {
            if lock(&self.census).total == 0 {
                break;
            }
            tokio::time::sleep(DRAIN_STEP).await;
        }
        self.ended.notify_one();
    }
}

/// This node goes away; another is there.
const RESTART: Goodbye =
    Goodbye { code: 1012, reason: "this node is shutting down: connect again" };

#[derive(Default)]
struct Batch {
    jobs: BTreeSet<usize>,
    nodes: bool,
    store: bool,
    resync: bool,
}

/// A job that was never read: so old that its state is `unknown`.
#[must_use]
pub fn never_seen(name: &JobName) -> Seen {
    let record = Arc::new(JobRecord::untouched(name.clone()));
    Seen { record, at: StoreTime(0), confirmed: Boot(0), doubted_until: Boot(0) }
}
