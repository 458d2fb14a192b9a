//! Rotations at a node: the long poll for a turn, and what must happen without a client acting.
//!
//! The store decides everything in atomic steps, and [`crate::waiting`] knows how clients wait; here is what that means for
//! rotations. `take` is the request for a turn; the pump calls [`Rotations::pump_turns`] in time for turns whose lease runs
//! out and gaps that end.

mod take;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use self::take::Wish;
pub use self::take::{Answer, Hand};
use crate::waiting::{self, Bell, DeskError, Newest, Pump, Round, WaitingRoom};
use soloist_domain::lease::Token;
use soloist_domain::name::{RequestId, RotationName, WorkerName};
use soloist_domain::rotation::{Ending, Turn};
use soloist_domain::time::Stamp;
use soloist_process::telemetry::Metrics;
use soloist_store::rotation::{Kept, PROMISE, Pass, PassedOn, Rotations};
use soloist_store::{Result, Store};

/// So many ask the store for the first time at once. When a node dies, thousands of waiters may come to another in one
/// moment: a worker that passes a turn, extends it or takes the one it was promised must not queue behind them.
const ARRIVALS: usize = 8;

/// Requests that are remembered.
const REQUESTS: usize = 10_000;

/// Where turns are asked for at a node; cheap to clone.
#[derive(Clone)]
pub struct TurnDesk {
    room: WaitingRoom,
    metrics: Arc<Metrics>,
    bell: Arc<Bell>,
    newest: Newest<Wish>,
    /// Held by each request that asks for the first time.
    arrivals: Arc<Semaphore>,
    /// The requests that were answered with a turn here. That of a turn never changes.
    requests: Arc<Mutex<HashMap<(RotationName, Token), RequestId>>>,
}

impl TurnDesk {
    /// Opens a desk in `room` and lets the pump run until that closes.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(room: WaitingRoom, metrics: Arc<Metrics>) -> Self {
        let bell = Arc::<Bell>::default();
        let pump = Turns { metrics: Arc::clone(&metrics) };
        room.spawn(waiting::run(room.clone(), Arc::clone(&bell), pump));
        let arrivals = Arc::new(Semaphore::new(ARRIVALS));
        let requests = Arc::default();
        Self { room, metrics, bell, newest: Newest::default(), arrivals, requests }
    }

    /// The store, to look.
    ///
    /// # Errors
    /// [`DeskError::Refused`].
    pub fn store(&self) -> std::result::Result<&Store, DeskError> {
        self.room.store()
    }

    /// The request that was answered with that turn, if it was answered or [noted](Self::note) here. Only its holder knows it.
    #[must_use]
    pub fn request(&self, rotation: &RotationName, turn: Token) -> Option<RequestId> {
        let requests = self.requests.lock();
        requests.get(&(rotation.clone(), turn)).cloned()
    }

    /// Notes the request of a turn.
    pub fn note(&self, rotation: &RotationName, turn: &Turn) {
        let mut requests = self.requests.lock();
        if requests.len() >= REQUESTS {
            // Each is read again when it is needed.
            requests.clear();
        }
        requests.insert((rotation.clone(), turn.token), turn.request.clone());
    }

    /// A rotation was defined here: something may be due now.
    pub fn look(&self) {
        self.bell.ring_in(Duration::ZERO);
    }

    /// As [`Rotations::extend_turn`].
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn extend(
        &self,
        rotation: &RotationName,
        turn: Token,
        only: Option<&WorkerName>,
    ) -> std::result::Result<Kept, DeskError> {
        let kept = self.store()?.extend_turn(rotation, turn, only).await?;
        if let Kept::Yes(turn) = &kept {
            self.expect(turn.until);
        }
        Ok(kept)
    }

    /// As [`Rotations::pass_turn`].
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn pass(&self, pass: &Pass) -> std::result::Result<Kept, DeskError> {
        let PassedOn { kept, next_in } = self.store()?.pass_on(pass).await?;
        if let Kept::Yes(turn) = &kept {
            self.metrics.turn_ended(&pass.rotation, &turn.kind, pass.outcome.into());
            // When the next can start is known only to the store; what does not say so is asked.
            self.bell.ring_in(next_in.unwrap_or_default());
        }
        Ok(kept)
    }

    /// Something is due at that instant of the store's clock.
    fn expect(&self, at: Stamp) {
        self.bell.ring_in(self.room.until(at).unwrap_or_default());
    }
}

/// Ends turns whose lease runs out, and opens those whose gap is over.
struct Turns {
    metrics: Arc<Metrics>,
}

impl Pump for Turns {
    const WHAT: &'static str = "turn-taking";
    /// Only a turn that is not taken up is due then.
    const AFTER_A_WAKE: Duration = PROMISE;

    async fn in_use(&self, store: &Store) -> Result<bool> {
        Ok(!store.rotations(None, 0).await?.is_empty())
    }

    async fn pump(&mut self, store: &Store, incarnation: &str) -> Result<Round> {
        let pumped = store.pump_turns(incarnation).await?;
        for (rotation, turn) in &pumped.lost {
            tracing::warn!(%rotation, kind = %turn.kind, worker = %turn.worker, turn = %turn.token,
                "a turn's lease ran out: it goes on to the next");
            self.metrics.turn_ended(rotation, &turn.kind, Ending::Lost);
        }
        Ok(Round { now: pumped.now, next: pumped.next, more: pumped.more })
    }
}
