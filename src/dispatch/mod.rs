//! What must happen in dispatch without a client acting, and what a node knows of the clients that wait at it.
//!
//! The store decides everything in atomic steps; here is only who calls it when. `pump` calls [`Dispatch::pump`] in
//! time for leases that run out and gaps that end; `claim` is the long poll; `waiters` hands a wake to the one request
//! it names; `asking` sees to it that a grant nobody received goes back and that a waiter who hung up is forgotten.
//! Nothing is kept here that the store does not have, but for who waits at this node.
//!
//! A store that was set up badly meanwhile (it may evict) is refused: leases that vanish are leases granted twice.
//!
//! [`Dispatch::pump`]: crate::store::dispatch::Dispatch::pump

mod asking;
mod claim;
mod pump;
mod waiters;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

pub use self::asking::Hand;
pub use self::claim::{Answer, word};
use self::pump::{Bell, StoreClock};
use self::waiters::Waiters;
use crate::domain::name::NodeName;
use crate::domain::time::Stamp;
use crate::feed::Feed;
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

/// Why dispatch did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DispatchError {
    /// The store may lose what it is told; says what to change. Dispatch goes on by itself once that is done.
    #[error("dispatch refuses to work on this store: {0}")]
    Refused(String),
    /// The store's own answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where claims are asked for at a node; cheap to clone.
#[derive(Clone)]
pub struct Desk {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    metrics: Arc<Metrics>,
    waiters: Waiters,
    /// The newest request at this node under each name, so that a reply which its client asks for again is not taken back.
    newest: Mutex<asking::Newest>,
    clock: StoreClock,
    bell: Bell,
    /// A source exists; they are never removed.
    in_use: AtomicBool,
    refusal: Mutex<Option<String>>,
    closing: watch::Sender<bool>,
    /// Where the work goes on of requests that are dropped.
    runtime: Handle,
}

impl Desk {
    /// Opens the desk of `node` and lets the pump run, until [`Desk::close`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(store: Store, feed: &Feed, metrics: Arc<Metrics>, node: &NodeName) -> Self {
        let (closing, closed) = watch::channel(false);
        let shared = Arc::new(Shared {
            store,
            metrics,
            waiters: Waiters::new(node),
            newest: Mutex::default(),
            clock: StoreClock::default(),
            bell: Bell::default(),
            in_use: AtomicBool::new(false),
            refusal: Mutex::default(),
            closing,
            runtime: Handle::current(),
        });
        tokio::spawn(waiters::listen(Arc::clone(&shared), feed.subscribe(), closed.clone()));
        tokio::spawn(pump::run(Arc::clone(&shared), closed));
        Self { shared }
    }

    /// The store, for every call of dispatch that is not a claim.
    ///
    /// # Errors
    /// [`DispatchError::Refused`].
    pub fn store(&self) -> Result<&Store, DispatchError> {
        match &*locked(&self.shared.refusal) {
            Some(why) => Err(DispatchError::Refused(why.clone())),
            None => Ok(&self.shared.store),
        }
    }

    /// Something was put or defined here that may be due at `at`; `None`: now.
    pub fn expect(&self, at: Option<Stamp>) {
        let wait = at.and_then(|at| self.shared.clock.until(at)).unwrap_or_default();
        self.shared.bell.ring_in(wait);
    }

    /// Somebody waits: if no source was known here so far, there may be one by now.
    fn look_around(&self) {
        if !self.shared.in_use.load(Ordering::Relaxed) {
            self.shared.bell.ring_in(Duration::ZERO);
        }
    }

    /// Answers everybody who waits, at once and with what is known, and ends the pump.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `span`, made longer by up to a quarter, so that nodes and waiters do not act in step.
fn jittered(span: Duration) -> Duration {
    span + span.mul_f64(rand::random_range(0.0..0.25))
}
