//! Seats: what each connected socket has not been told yet, and how many there may be.
//!
//! A seat knows which jobs are dirty and how to wake its socket. It renders nothing and decides nothing. Who sits down, leaves
//! or is sent away is said here, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::Hub;
use crate::auth::{Caller, Shown};
use crate::error::WebError;
use crate::frames::{Drawn, Protocol};
use crate::sieve::Sieve;
use soloist_domain::time::Boot;

/// Connecting and leaving must not wait for one lock.
pub(super) const SHARDS: u64 = 16;
/// Closing all seats takes at most about this long.
const DRAIN_WITHIN: Duration = Duration::from_secs(4);
const DRAIN_STEP: Duration = Duration::from_millis(20);
const DRAIN_BATCH: usize = 50;
/// This node goes away; another is there.
const RESTART: Goodbye =
    Goodbye { code: 1012, reason: "this node is shutting down: connect again" };

/// Why a socket is closed by us, as RFC 6455 has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Goodbye {
    pub code: u16,
    pub reason: &'static str,
}

/// One piece of work for a socket.
#[derive(Debug)]
#[expect(missing_docs, reason = "what a frame says stands in `web::frames`")]
pub enum Work {
    Close(Goodbye),
    /// A frame, and when the store told its change.
    Frame {
        text: String,
        changed: Option<Boot>,
    },
}

/// What a seat has not been told yet.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) awake: bool,
    pub(super) goodbye: Option<Goodbye>,
    pub(super) snapshot: bool,
    /// The next snapshot is the first: what the page shows already is left out.
    pub(super) first: bool,
    /// Whether the store is reachable.
    pub(super) store: bool,
    /// The line at the top of a page.
    pub(super) truth: bool,
    /// What needs somebody and is no job, and how many alerts are on.
    pub(super) alerts: bool,
    pub(super) nodes: bool,
    pub(super) sources: bool,
    pub(super) rotations: bool,
    pub(super) jobs: BTreeSet<usize>,
    /// Of these only the progress is another.
    pub(super) moved: BTreeSet<usize>,
    /// Jobs that our page shows.
    pub(super) shown: BTreeSet<usize>,
    /// By what its last hour was drawn in the row of each.
    pub(super) drawn: BTreeMap<usize, Drawn>,
    /// Jobs whose last hour is drawn anew.
    pub(super) hours: BTreeSet<usize>,
    /// The line of counters may be another; that it was told last.
    pub(super) summary: bool,
    pub(super) counted: String,
    pub(super) logs: BTreeSet<usize>,
    /// Followed jobs and the newest line each was told; `None` before the first.
    pub(super) follows: BTreeMap<usize, Option<u64>>,
}

impl Pending {
    /// Notes that `jobs` changed; of those in `moved` only the progress, and whether that may be told now. Programs are told
    /// every change.
    pub(super) fn note(&mut self, protocol: Protocol, jobs: &[usize], moved: &[(usize, bool)]) {
        for job in jobs {
            match moved.iter().find(|(one, _)| one == job && protocol == Protocol::Html) {
                None => {
                    self.jobs.insert(*job);
                    self.summary |= protocol == Protocol::Html;
                }
                Some((_, true)) => {
                    self.moved.insert(*job);
                }
                Some((_, false)) => {}
            }
        }
    }
}

/// Where one socket sits.
pub struct Seat {
    pub(super) id: u64,
    pub(super) caller: Caller,
    pub(super) protocol: Protocol,
    /// Which jobs our page shows.
    pub(super) sieve: Sieve,
    /// Wakes the socket; false when it could not be woken now.
    pub(super) wake: Box<dyn Fn() -> bool + Send + Sync>,
    pub(super) pending: Mutex<Pending>,
}

impl Seat {
    pub(super) fn mark(&self, change: impl FnOnce(&mut Pending)) {
        let mut pending = self.pending.lock();
        change(&mut pending);
        // At most one wake-up is under way; a jammed socket costs nothing more.
        if !pending.awake {
            pending.awake = (self.wake)();
        }
    }
}

/// A place among the connections of this node; given back when dropped.
pub struct Admission {
    hub: Arc<Hub>,
    user: String,
    address: String,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut census = self.hub.census.lock();
        census.total = census.total.saturating_sub(1);
        for key in [&self.user, &self.address] {
            if let Some(count) = census.by_key.get_mut(key) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    census.by_key.remove(key);
                }
            }
        }
        self.hub.metrics.live_closed();
    }
}

#[derive(Default)]
pub(super) struct Census {
    pub(super) total: usize,
    pub(super) by_key: HashMap<String, usize>,
}

impl Hub {
    /// Counts a connection in, or says which cap is reached.
    ///
    /// # Errors
    /// [`WebError::Unavailable`] when the node is full or shutting down, [`WebError::TooMany`] for the user or the
    /// address.
    pub fn admit(self: &Arc<Self>, caller: &Caller) -> Result<Admission, WebError> {
        if self.is_draining() {
            return Err(WebError::Unavailable {
                detail: "this node is shutting down: connect again".into(),
                retry_after: 1,
            });
        }
        let limits = self.config.get().live;
        let (user, address) = (format!("user {}", caller.user), format!("address {}", caller.from));
        let mut census = self.census.lock();
        if census.total >= limits.sockets_per_node {
            return Err(WebError::Unavailable {
                detail: "this node has as many live connections as it takes: try again later"
                    .into(),
                retry_after: 5,
            });
        }
        for (key, most) in
            [(&user, limits.sockets_per_user), (&address, limits.sockets_per_address)]
        {
            if census.by_key.get(key).is_some_and(|count| *count >= most) {
                return Err(WebError::TooMany {
                    detail: format!("{key} has {most} live connections already: close some").into(),
                    retry_after: 5,
                });
            }
        }
        census.total += 1;
        for key in [&user, &address] {
            *census.by_key.entry(key.clone()).or_default() += 1;
        }
        drop(census);
        self.metrics.live_opened();
        Ok(Admission { hub: Arc::clone(self), user, address })
    }

    /// Gives a connection its seat; the first work it finds is a snapshot.
    pub fn sit(
        &self,
        caller: Caller,
        protocol: Protocol,
        sieve: Sieve,
        wake: Box<dyn Fn() -> bool + Send + Sync>,
    ) -> Arc<Seat> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let seat = Arc::new(Seat { id, caller, protocol, sieve, wake, pending: Mutex::default() });
        self.shard(id).lock().insert(id, Arc::clone(&seat));
        let away = self.feed.outage().is_some();
        seat.mark(|pending| {
            pending.snapshot = true;
            pending.first = true;
            pending.nodes = true;
            pending.store = away;
            // The page may be older than this connection.
            pending.truth = true;
            pending.alerts = true;
        });
        if self.is_draining() {
            seat.mark(|pending| pending.goodbye = Some(RESTART));
        }
        seat
    }

    /// Takes the seat away.
    pub fn leave(&self, seat: &Seat) {
        self.shard(seat.id).lock().remove(&seat.id);
        self.sources.leave(seat);
        self.cards.leave(seat);
        let follows = std::mem::take(&mut seat.pending.lock().follows);
        for job in follows.into_keys() {
            self.unfollowed(job);
        }
    }

    fn shard(&self, id: u64) -> &Mutex<HashMap<u64, Arc<Seat>>> {
        &self.seats[usize::try_from(id % SHARDS).unwrap_or(0)]
    }

    /// Closes every socket that was opened with this credential.
    pub fn sign_out(&self, shown: &Shown, goodbye: Goodbye) {
        for seat in self.everybody() {
            if seat.caller.shown == *shown {
                seat.mark(|pending| pending.goodbye = Some(goodbye));
            }
        }
    }

    /// Closes one connection.
    pub fn dismiss(&self, seat: &Seat, goodbye: Goodbye) {
        seat.mark(|pending| pending.goodbye = Some(goodbye));
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
        // Their answers to the close; a client that never answers is cut by the server.
        for _ in 0..50 {
            if self.census.lock().total == 0 {
                break;
            }
            tokio::time::sleep(DRAIN_STEP).await;
        }
        self.ended.notify_one();
    }
}
