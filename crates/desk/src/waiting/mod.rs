//! What dispatch and rotations have in common: clients that wait at a node, and what must happen without a client.
//!
//! The store decides everything in atomic steps; this room decides only when it is called. `waiters` hands a wake to the one
//! request that it names; `asking` gives back a grant that no client received, and forgets a waiter whose client hung up;
//! `pump` calls the store in time for all that the clock alone makes due. This room keeps nothing that the store does not
//! have, except the waiters of this node.
//!
//! A store that was set up badly meanwhile (it may evict) is refused: leases that vanish are leases granted twice.

mod asking;
mod pump;
mod waiters;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

pub use self::asking::{Asking, Errand, Hand, Newest};
use self::pump::StoreClock;
pub use self::pump::{Bell, Pump, Round, run};
use self::waiters::Waiters;
use soloist_domain::name::{NodeName, Waiter};
use soloist_domain::time::Stamp;
use soloist_process::clock;
use soloist_store::feed::Feed;
use soloist_store::{Store, StoreError};

/// A wait that would be shorter is none.
pub const SHORTEST_WAIT: Duration = Duration::from_millis(5);
/// How long after the moment that the store named a waiter asks unasked.
const GRACE: Duration = Duration::from_millis(100);
/// How often a waiter asks in any case.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// With many waiters, each asks less often: so much for each of them.
const ASK_AGAIN_EACH: Duration = Duration::from_millis(5);
/// How often the set-up of the store is looked at.
const EXAMINE: Duration = Duration::from_secs(3);

/// Why nothing was done of what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DeskError {
    /// The store may lose what it is told; says what to change. Work goes on by itself once that is done.
    #[error("dispatch and rotations refuse to work on this store: {0}")]
    Refused(String),
    /// The store's own answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where clients wait at a node; cheap to clone.
#[derive(Clone)]
pub struct WaitingRoom {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    waiters: Waiters,
    clock: StoreClock,
    refusal: Mutex<Option<String>>,
    /// A waiter was woken, at this node or another.
    woken: watch::Sender<()>,
    closing: watch::Sender<bool>,
    /// How many dropped requests are being cleared away.
    clearing: watch::Sender<usize>,
    /// Where the work goes on of requests that are dropped.
    runtime: Handle,
}

impl WaitingRoom {
    /// Opens the room of `node`, until [`WaitingRoom::close`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn open(store: Store, feed: &Feed, node: &NodeName) -> Self {
        let room = Self::new(store, node, false);
        room.spawn(waiters::listen(room.clone(), feed.subscribe(), room.closing()));
        room.spawn(examine(room.clone(), room.closing()));
        room
    }

    /// A room that was never opened: nobody can wait in it, and none of its pumps begins. For a process that asks something and
    /// ends.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn shut(store: Store, node: &NodeName) -> Self {
        Self::new(store, node, true)
    }

    fn new(store: Store, node: &NodeName, is_closed: bool) -> Self {
        let shared = Arc::new(Shared {
            store,
            waiters: Waiters::new(node),
            clock: StoreClock::default(),
            refusal: Mutex::default(),
            woken: watch::channel(()).0,
            closing: watch::Sender::new(is_closed),
            clearing: watch::Sender::default(),
            runtime: Handle::current(),
        });
        Self { shared }
    }

    /// Has `task` done beside, which ends when the room closes; in one that is closed already nothing is done.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if !*self.shared.closing.borrow() {
            self.shared.runtime.spawn(task);
        }
    }

    /// The store, for every call that counts on it to lose nothing.
    ///
    /// # Errors
    /// [`DeskError::Refused`].
    pub fn store(&self) -> Result<&Store, DeskError> {
        match &*self.shared.refusal.lock() {
            Some(why) => Err(DeskError::Refused(why.clone())),
            None => Ok(&self.shared.store),
        }
    }

    /// How many wait here.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiters.len()
    }

    /// Wakes one waiter, if it waits here; whether it does.
    #[must_use]
    pub fn calls(&self, waiter: &Waiter) -> bool {
        self.shared.waiters.call(waiter)
    }

    /// What the names of all who wait here begin with: `NODE/RANDOM`.
    #[must_use]
    pub fn incarnation(&self) -> &str {
        self.shared.waiters.incarnation()
    }

    /// How long until the store's clock shows `at`; `None` before the store's first answer.
    #[must_use]
    pub fn until(&self, at: Stamp) -> Option<Duration> {
        self.shared.clock.until(at)
    }

    /// How long a waiter sleeps before it asks unasked, when the store said that `next_at` may help.
    #[must_use]
    pub fn patience(&self, next_at: Option<Stamp>) -> Duration {
        let here = u32::try_from(self.waiting()).unwrap_or(u32::MAX);
        let again = jittered(ASK_AGAIN.max(ASK_AGAIN_EACH.saturating_mul(here)));
        let next = next_at.and_then(|at| self.until(at));
        next.map_or(again, |next| again.min(next.saturating_add(jittered(GRACE))))
    }

    /// Whether the room is closing, and from when on.
    #[must_use]
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.shared.closing.subscribe()
    }

    /// Returns when of the requests that were dropped before nothing is left in the store: for a process that is about to
    /// end.
    pub async fn cleared(&self) {
        let mut clearing = self.shared.clearing.subscribe();
        // This room owns the sender.
        clearing.wait_for(|clearing| *clearing == 0).await.ok();
    }

    /// Answers all waiters, at once and with what is known, and ends the pumps.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }
}

/// Looks now and then whether the store can still keep the promise; more often while it cannot.
async fn examine(room: WaitingRoom, mut closing: watch::Receiver<bool>) {
    loop {
        let refusal = match room.shared.store.describe().await {
            Err(StoreError::Unsupported(why)) => Some(why),
            // Out of reach is another matter.
            Err(_) => room.shared.refusal.lock().clone(),
            Ok(_) => None,
        };
        let pause = jittered(if refusal.is_some() { EXAMINE / 3 } else { EXAMINE });
        {
            let mut known = room.shared.refusal.lock();
            match (&*known, &refusal) {
                (None, Some(why)) => {
                    tracing::error!("dispatch and rotations refuse to work on this store: {why}");
                }
                (Some(_), None) => tracing::info!("the store is set up well again: work goes on"),
                _ => {}
            }
            *known = refusal;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

/// `span`, made longer by up to a quarter, so that nodes and waiters do not act in step.
fn jittered(span: Duration) -> Duration {
    span + span.mul_f64(rand::random_range(0.0..0.25))
}

/// How long is left until `deadline` on this machine's clock.
#[must_use]
pub fn left(deadline: soloist_domain::time::Boot) -> Duration {
    deadline.since(clock::boot())
}
