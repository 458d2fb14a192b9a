//! A request for a turn: one call, or as many as it takes until the turn is had or the time is over.
//!
//! Whoever waits sleeps until the store names them. Should that word be lost, they ask again by themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Desk;
use crate::clock;
use crate::domain::lease::Token;
use crate::domain::name::{RequestId, RotationName, TypeName, WorkerName};
use crate::domain::rotation::Ending;
use crate::domain::time::Boot;
use crate::store::dispatch::Waiter;
use crate::store::rotation::{Rotations as _, Taken, TurnAsk};
use crate::store::{Result as Stored, Store};
use crate::telemetry::Metrics;
use crate::waiting::{Asking, DeskError, Errand, SHORTEST_WAIT, left};

/// A waiter is remembered by the store for no longer than this after it was heard of last; it keeps its place, because it
/// asks again long before. So the place of one who died is soon given up, however long it meant to wait.
const REMEMBERED: Duration = Duration::from_secs(30);

/// Whoever comes with many others is let in after so long at the latest.
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

/// What [`Desk::take`] answers.
pub struct Answer {
    /// The newest word of the store.
    pub taken: Taken,
    /// A grant, until it is delivered.
    pub hand: Option<Hand>,
    /// When the call was sent that was answered with this: trust in a turn counts from here.
    pub sent: Boot,
}

impl Desk {
    /// Asks for a turn, waiting for it up to `wait`. Dropped before its end, it leaves neither a waiter nor a turn behind;
    /// `ask.wait` is set here.
    ///
    /// # Errors
    /// [`DeskError`]; of the store [`crate::store::StoreError::NotFound`] for a rotation or type that is not defined.
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
        // With a store that hangs nobody is let in any more; then it is not the crowd that is in the way.
        let mut arrival = timeout(LET_IN_AFTER.min(wait), self.arrivals.acquire()).await.ok();
        loop {
            self.store()?;
            let patience = left(deadline);
            let waits = patience >= SHORTEST_WAIT && !*closing.borrow();
            // Whoever was promised the turn has it at the last moment, too.
            let waiter = if waits { Some(asking.waiter()) } else { asking.sitting() };
            ask.wait = waiter.map(|waiter| (waiter, patience.min(REMEMBERED)));
            let sent = clock::boot();
            let taken = asking.call(ask.clone()).await?;
            drop(arrival.take());
            let earliest = match &taken {
                Taken::Granted(turn) => {
                    self.expect(turn.until);
                    return Ok(Answer { taken, hand: Some(asking.into_hand()), sent });
                }
                Taken::Over(_) => return Ok(Answer { taken, hand: None, sent }),
                Taken::Waiting { holder: None, earliest_at, .. } => Some(*earliest_at),
                Taken::Waiting { .. } => None,
            };
            if !waits {
                // The place in the queue is left by dropping the request, as by a client that hangs up.
                return Ok(Answer { taken, hand: None, sent });
            }
            self.bell.look_around();
            if let Some(earliest) = earliest {
                self.expect(earliest);
            }
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
