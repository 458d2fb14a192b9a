//! Dispatch at a node: the long poll for work, and what must happen without a client acting.
//!
//! The store decides everything in atomic steps, and [`crate::waiting`] knows how clients wait; here is what that means for
//! dispatch. `claim` is the request for work; the pump calls [`Dispatch::pump`] in time for leases that run out and gaps
//! that end.

mod claim;

use std::sync::Arc;
use std::time::Duration;

use self::claim::Work;
pub use self::claim::{Answer, Hand, word};
use crate::waiting::{self, Bell, DeskError, Newest, Pump, Round, WaitingRoom};
use soloist_domain::time::Stamp;
use soloist_process::telemetry::Metrics;
use soloist_store::dispatch::{Dispatch, Sources as _};
use soloist_store::{Result, Store};

/// Where claims are asked for at a node; cheap to clone.
#[derive(Clone)]
pub struct ClaimDesk {
    room: WaitingRoom,
    metrics: Arc<Metrics>,
    bell: Arc<Bell>,
    newest: Newest<Work>,
}

impl ClaimDesk {
    /// Opens a desk in `room` and lets the pump run until that closes.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(room: WaitingRoom, metrics: Arc<Metrics>) -> Self {
        let bell = Arc::<Bell>::default();
        room.spawn(waiting::run(room.clone(), Arc::clone(&bell), Leases));
        Self { room, metrics, bell, newest: Newest::default() }
    }

    /// The store, for every call of dispatch that is not a claim.
    ///
    /// # Errors
    /// [`DeskError::Refused`].
    pub fn store(&self) -> std::result::Result<&Store, DeskError> {
        self.room.store()
    }

    /// Something was put or defined here that may be due at `at`; `None`: now.
    pub fn expect(&self, at: Option<Stamp>) {
        self.bell.ring_in(at.and_then(|at| self.room.until(at)).unwrap_or_default());
    }
}

/// Acts on leases that run out, and all else that only time brings.
struct Leases;

impl Pump for Leases {
    const WHAT: &'static str = "dispatch";
    /// By then the woken one has claimed, and when the next can be served is known.
    const AFTER_A_WAKE: Duration = Duration::from_millis(3);

    async fn in_use(&self, store: &Store) -> Result<bool> {
        Ok(!store.sources(None).await?.is_empty())
    }

    async fn pump(&mut self, store: &Store, _: &str) -> Result<Round> {
        let pumped = store.pump().await?;
        if pumped.expired > 0 {
            tracing::info!(tasks = pumped.expired, "leases ran out; their tasks go on");
        }
        Ok(Round { now: pumped.now, next: pumped.next, more: pumped.more })
    }
}
