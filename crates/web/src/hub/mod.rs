//! The hub: one listener to the feed per node, and the seats of all clients that are connected.
//!
//! A change marks its job dirty in every seat and wakes those that are not awake yet; a seat holds *which* jobs are
//! dirty, never a queue of messages, so that a slow reader costs bounded memory and gets the newest state. The
//! hub knows frames as text and how to wake a seat, and nothing of the crate that speaks WebSocket.

mod accounts;
mod alerts;
mod board;
mod follow;
mod jobs;
mod lease_bar;
mod past;
mod roster;
mod rotations;
mod seats;
mod sources;
mod truth;
mod turns;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

pub use self::accounts::{SIGNED_OUT, check};
use self::board::Board;
use self::jobs::ShownJob;
pub use self::roster::Hidden;
use self::roster::Roster;
pub use self::rotations::Look;
use self::rotations::RotationRow;
pub use self::seats::{Admission, Goodbye, Seat, Work};
use self::seats::{Census, SHARDS};
pub use self::sources::LastKnown;
use self::sources::{Rates, SourceRow};
use super::auth::Identities;
use super::csrf;
use super::frames::{self, Protocol};
use super::parts::dispatch::Extent;
use crate::history::History;
use soloist_config::Current;
use soloist_domain::definition::Definitions;
use soloist_domain::name::NodeName;
use soloist_process::telemetry::Metrics;
use soloist_store::Store;
use soloist_store::feed::{Change, Feed};
use soloist_view::NodeView;
use soloist_view::people::DisplayNames;
use soloist_view::words::At;

/// How often it looks whether time alone changed a picture (a run grew old enough); and as soon as one becomes stale.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The hub of one node.
pub struct Hub {
    store: Store,
    feed: Feed,
    config: Current,
    metrics: Arc<Metrics>,
    history: History,
    roster: RwLock<Arc<Roster>>,
    past: past::Past,
    /// The nodes at the last look, whether they were alive, and what they defined.
    told: Mutex<Vec<(NodeName, bool, Arc<Definitions>)>>,
    seats: Vec<Mutex<HashMap<u64, Arc<Seat>>>>,
    next_id: AtomicU64,
    census: Mutex<Census>,
    /// Grows with every change of any job, to know whether a summary is still right and what a page has not seen.
    generation: AtomicU64,
    /// Tells the generations of this process from those of another.
    instance: u64,
    summaries: Mutex<[Option<(u64, String)>; 2]>,
    sources: Board<SourceRow>,
    rates: Mutex<Rates>,
    cards: Board<RotationRow>,
    turns: turns::Turns,
    truth: truth::Truth,
    alarms: alerts::Alarms,
    identities: Identities,
    /// As last read.
    names: Mutex<DisplayNames>,
    /// A caller may be another than when they connected.
    doubted: Notify,
    draining: AtomicBool,
    ended: Notify,
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
        history: History,
    ) -> Self {
        let roster = Roster::default().chosen(&config.get(), &feed.nodes());
        Self {
            roster: RwLock::new(Arc::new(roster)),
            past: past::Past::default(),
            told: Mutex::default(),
            seats: (0..SHARDS).map(|_| Mutex::default()).collect(),
            next_id: AtomicU64::new(0),
            census: Mutex::default(),
            generation: AtomicU64::new(0),
            instance: rand::random(),
            summaries: Mutex::default(),
            sources: Board::default(),
            rates: Mutex::default(),
            cards: Board::default(),
            turns: turns::Turns::default(),
            truth: truth::Truth::default(),
            alarms: alerts::Alarms::default(),
            identities,
            history,
            names: Mutex::default(),
            doubted: Notify::new(),
            draining: AtomicBool::new(false),
            ended: Notify::new(),
            store,
            feed,
            config,
            metrics,
        }
    }

    /// Reads once what [`Hub::run`] keeps true, as far as the API tells it.
    pub async fn read_now(&self) {
        self.choose();
        self.read_names().await;
        self.read_turns().await;
    }

    /// Listens to the feed until [`Hub::drain`] has ended.
    pub async fn run(self: Arc<Self>) {
        tokio::spawn(Board::<SourceRow>::watch(Arc::clone(&self)));
        tokio::spawn(Arc::clone(&self).watch_turns());
        tokio::spawn(Board::<RotationRow>::watch(Arc::clone(&self)));
        tokio::spawn(Arc::clone(&self).watch_accounts());
        tokio::spawn(Arc::clone(&self).watch_alerts());
        tokio::spawn(Arc::clone(&self).watch_hidden());
        let mut changes = self.feed.subscribe();
        let mut look_at = Instant::now();
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
                () = sleep_until(look_at) => {
                    let stale_in = self.look();
                    look_at = Instant::now() + stale_in.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
                }
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
        let mut moved = Vec::new();
        for &job in &jobs {
            let seen = self.seen(job);
            batch.nodes |= self.is_passed_on(job, &seen);
            let confirmed = seen.confirmed;
            if !self.defined(job).is_external() {
                self.note_loss(&seen.record);
            }
            if self.moves_on(job, &seen) {
                moved.push((job, self.may_tell_progress(job)));
            }
            self.replace(job, Some(confirmed));
            self.follow_log(job);
            self.expect_turn(job, &seen);
        }
        if batch.resync {
            // Events may have been missed meanwhile.
            self.doubted.notify_one();
            self.past.doubt();
            self.metrics.live_resynced();
        }
        let truth = self.truth_changed();
        if batch.store {
            self.tell_alerts();
        }
        for seat in self.everybody() {
            seat.mark(|pending| {
                if batch.resync {
                    pending.snapshot = true;
                    pending.jobs.clear();
                } else if !pending.snapshot {
                    pending.note(seat.protocol, &jobs, &moved);
                }
                pending.nodes |= batch.nodes || batch.resync;
                pending.store |= batch.store;
                pending.truth |= truth;
            });
        }
    }

    /// Begins to tell a seat how sources and collectors stand, or ends it.
    pub fn follow_dispatch(&self, seat: &Arc<Seat>, extent: Extent, on: bool) {
        self.sources.follow(seat, extent, on);
    }

    /// Begins to tell a seat how rotations stand, or ends it.
    pub fn follow_rotations(&self, seat: &Arc<Seat>, look: Look, on: bool) {
        self.cards.follow(seat, look, on);
    }

    fn everybody(&self) -> Vec<Arc<Seat>> {
        self.seats
            .iter()
            .flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// Living nodes that browsers reach under another address than this one, and where.
    #[must_use]
    pub fn others(&self) -> Vec<(String, String)> {
        let own = self.config.get();
        let is_address = |url: &str| url.starts_with("https://") || url.starts_with("http://");
        let nodes = self.feed.nodes();
        let others = nodes.iter().filter(|node| {
            let url = node.beat.url.as_str();
            node.is_alive()
                && node.beat.node != own.node
                && url != own.public_url
                && is_address(url)
        });
        others.map(|node| (node.beat.node.to_string(), node.beat.url.clone())).collect()
    }

    /// The frame that comes before all work.
    #[must_use]
    pub fn hello(&self) -> String {
        frames::hello_frame(self.config.get().node.as_str(), self.feed.store_now().map(At))
    }

    /// Grows old when the store began anew: versions and tokens of another epoch compare with none of this one.
    #[must_use]
    pub fn epoch(&self) -> String {
        self.feed.epoch()
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

    /// As [`Self::next`], with [`csrf::mark`] in forms.
    fn next_shared(&self, seat: &Seat) -> Option<Work> {
        loop {
            let mut pending = seat.pending.lock();
            let frame = |text| Some(Work::Frame { text, changed: None });
            if let Some(goodbye) = pending.goodbye.take() {
                return Some(Work::Close(goodbye));
            }
            if pending.snapshot {
                pending.snapshot = false;
                pending.jobs.clear();
                pending.moved.clear();
                pending.hours.clear();
                let first = std::mem::take(&mut pending.first);
                drop(pending);
                return frame(self.snapshot(seat, first));
            }
            if std::mem::take(&mut pending.store) {
                drop(pending);
                return frame(self.store_frame());
            }
            if std::mem::take(&mut pending.truth) && seat.protocol == Protocol::Html {
                drop(pending);
                return frame(self.truth_frame(&seat.caller));
            }
            if std::mem::take(&mut pending.alerts) && seat.protocol == Protocol::Html {
                drop(pending);
                return frame(self.alerts_frame(&seat.caller));
            }
            if let Some(job) = pending.jobs.pop_first() {
                if !seat.caller.sees(&self.defined(job)) {
                    continue;
                }
                let followed = pending.follows.contains_key(&job);
                pending.moved.remove(&job);
                drop(pending);
                match self.job(seat, job, followed) {
                    Some(work) => return Some(work),
                    None => continue,
                }
            }
            if let Some(job) = pending.hours.pop_first() {
                let known = pending.shown.contains(&job);
                drop(pending);
                match self.hour(seat, job).filter(|_| known && seat.caller.sees(&self.defined(job)))
                {
                    Some(work) => return Some(work),
                    None => continue,
                }
            }
            if let Some(job) = pending.moved.pop_first() {
                let known = pending.follows.contains_key(&job) || pending.shown.contains(&job);
                if !known || !seat.caller.sees(&self.defined(job)) {
                    continue;
                }
                let followed = pending.follows.contains_key(&job);
                drop(pending);
                match followed {
                    true => match self.job(seat, job, true) {
                        Some(work) => return Some(work),
                        None => continue,
                    },
                    false => return Some(self.moved(job)),
                }
            }
            if std::mem::take(&mut pending.summary) && !seat.sieve.without_rows {
                drop(pending);
                match self.counted(seat) {
                    Some(text) => return frame(text),
                    None => continue,
                }
            }
            if pending.nodes {
                pending.nodes = false;
                drop(pending);
                // Our page asks for itself what it shows of them.
                if seat.protocol == Protocol::Html {
                    return frame(frames::nodes_changed(&self.others()));
                }
                let feed = &self.feed;
                let views = NodeView::list(&feed.nodes(), &feed.held(), feed.store_now());
                let hidden = self.hidden_from(Some(&seat.caller));
                return frame(frames::nodes_frame(&hidden.strike(views)));
            }
            if std::mem::take(&mut pending.sources) {
                drop(pending);
                match self.sources.frame(self, seat) {
                    Some(text) => return frame(text),
                    None => continue,
                }
            }
            if std::mem::take(&mut pending.rotations) {
                drop(pending);
                match self.cards.frame(self, seat) {
                    Some(text) => return frame(text),
                    None => continue,
                }
            }
            let Some(job) = pending.logs.pop_first() else {
                pending.awake = false;
                return None;
            };
            if !seat.caller.sees(&self.defined(job)) {
                continue;
            }
            let Some(told) = pending.follows.get_mut(&job) else { continue };
            let Some(chunk) = self.slot(job).ring.lock().after(*told, seat.protocol) else {
                continue;
            };
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
}

#[derive(Default)]
struct Batch {
    jobs: BTreeSet<usize>,
    nodes: bool,
    store: bool,
    resync: bool,
}
