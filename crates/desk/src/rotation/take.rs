//! A request for a turn: one call, or as many as it takes until the turn is granted or the time is over.
//!
//! A waiter sleeps until the store names it. If that wake is lost, the waiter asks again by itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::TurnDesk;
use crate::waiting::{Asking, DeskError, Errand, SHORTEST_WAIT, left};
use soloist_domain::lease::Token;
use soloist_domain::name::{RequestId, RotationName, TypeName, WorkerName};
use soloist_domain::rotation::{Ending, PROMISE, Reason};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_process::telemetry::Metrics;
use soloist_store::dispatch::Waiter;
use soloist_store::rotation::{Rotations as _, Taken, TurnAsk};
use soloist_store::{Result as Stored, Store};

/// The store remembers a waiter for no longer than this after it last asked; a living waiter keeps its place, because it
/// asks again long before. So a waiter that died soon loses its place, however long it meant to wait.
const REMEMBERED: Duration = Duration::from_secs(30);

/// A request that comes with many others is let in after so long at the latest.
const LET_IN_AFTER: Duration = Duration::from_secs(3);

/// A turn, until it is delivered.
pub type Hand = crate::waiting::Hand<Wish>;

/// A request for a turn.
#[derive(Clone)]
pub struct Wish {
    metrics: Arc<Metrics>,
    rotation: RotationName,
    kind: TypeName,
    worker: WorkerName,
    request: RequestId,
}

impl Errand for Wish {
    type Name = (RotationName, TypeName, WorkerName, RequestId);
    type Call = TurnAsk;
    type Answer = Taken;
    type Grant = Token;

    fn name(&self) -> Self::Name {
        let Self { rotation, kind, worker, request, .. } = self.clone();
        (rotation, kind, worker, request)
    }

    async fn call(store: Store, call: TurnAsk) -> Stored<Taken> {
        store.take_turn(&call).await
    }

    fn granted(answer: &Taken) -> Option<Token> {
        if let Taken::Granted(turn) = answer { Some(turn.token) } else { None }
    }

    async fn give_back(&self, store: &Store, grant: &Token) -> Stored<()> {
        if store.give_back_unseen_turn(&self.rotation, *grant).await? {
            self.metrics.turn_ended(&self.rotation, &self.kind, Ending::Lost);
        }
        Ok(())
    }

    async fn leave_queues(&self, store: &Store, waiter: &Waiter) -> Stored<()> {
        store.leave_queue(&self.rotation, waiter).await
    }
}

/// What [`TurnDesk::take`] answers.
pub struct Answer {
    /// The newest word of the store.
    pub taken: Taken,
    /// A grant, until it is delivered.
    pub hand: Option<Hand>,
    /// When the call was sent that was answered with this: trust in a turn counts from here.
    pub sent: Boot,
}

impl TurnDesk {
    /// Asks for a turn, waiting for it up to `wait`. Dropped before its end, it leaves neither a waiter nor a turn behind;
    /// `ask.wait` is set here.
    ///
    /// # Errors
    /// [`DeskError`]; of the store [`soloist_store::StoreError::NotFound`] for a rotation or type that is not defined.
    pub async fn take(&self, mut ask: TurnAsk, wait: Duration) -> Result<Answer, DeskError> {
        let mut closing = self.room.closing();
        let deadline = clock::boot() + wait;
        let wish = Wish {
            metrics: Arc::clone(&self.metrics),
            rotation: ask.rotation.clone(),
            kind: ask.kind.clone(),
            worker: ask.worker.clone(),
            request: ask.request.clone(),
        };
        let mut asking = Asking::new(&self.room, &self.newest, wish);
        // With a store that hangs no request is let in any more; then the crowd is not the obstacle.
        let mut arrival = timeout(LET_IN_AFTER.min(wait), self.arrivals.acquire()).await.ok();
        loop {
            self.store()?;
            let patience = left(deadline);
            let waits = patience >= SHORTEST_WAIT && !*closing.borrow();
            // A waiter that was promised the turn gets it at the last moment, too.
            let waiter = if waits { Some(asking.waiter()) } else { asking.sitting() };
            ask.wait = waiter.map(|waiter| (waiter, patience.min(REMEMBERED)));
            let sent = clock::boot();
            let taken = asking.call(ask.clone()).await?;
            drop(arrival.take());
            let earliest = match &taken {
                Taken::Granted(turn) => {
                    self.expect(turn.until);
                    self.note(&ask.rotation, turn);
                    return Ok(Answer { taken, hand: Some(asking.into_hand()), sent });
                }
                Taken::Over(_) => return Ok(Answer { taken, hand: None, sent }),
                Taken::Waiting { holder: None, earliest_at, reason, .. } => {
                    // Whose turn it is was promised it in the same step: until that lapses nothing is due.
                    match reason {
                        Reason::Order => self.bell.ring_in(PROMISE),
                        _ => self.expect(*earliest_at),
                    }
                    Some(*earliest_at)
                }
                Taken::Waiting { .. } => None,
            };
            if !waits {
                // The place in the queue is left by dropping the request, as by a client that hangs up.
                return Ok(Answer { taken, hand: None, sent });
            }
            self.bell.look_around();
            tokio::select! {
                () = asking.woken() => {}
                () = sleep(self.room.patience(earliest).min(left(deadline))) => {}
                _ = closing.wait_for(|closing| *closing) => {
                    return Ok(Answer { taken, hand: None, sent });
                }
            }
        }
    }
}
