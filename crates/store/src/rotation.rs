//! Rotations: types of work that take turns, and who waits for which. One turn of a rotation is held
//! at a time.
//!
//! What may happen to a rotation, and whose turn it is, is decided by [`soloist_domain::rotation`], whose `round.rs`
//! states the laws; this room makes each decision and its consequences one atomic step, on the store's clock. What
//! happens without a client is [`Rotations::pump_turns`], which any node may call at any time. Waiters stand in the
//! store, in the order in which they came, for one type each.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use super::dispatch::Waiter;
use soloist_domain::lease::Token;
use soloist_domain::name::{NodeName, RotationName, TypeName, WorkerName};
pub use soloist_domain::rotation::{Kept, PROMISE, Pass, PastTurn, TURNS_KEPT, Taken, TurnAsk};
use soloist_domain::rotation::{Ring, Rules, Turn};
use soloist_domain::time::Stamp;

/// Most waiters that a reading names; all are counted.
pub const WAITERS_NAMED: usize = 100;

/// One type as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeView {
    /// As in the rules, in their order.
    pub kind: TypeName,
    /// How many wait for it.
    pub waiting: u64,
    /// How many of its turns ended in which way, since the rotation exists.
    pub done: u64,
    /// See `done`.
    pub empty: u64,
    /// See `done`.
    pub failed: u64,
    /// See `done`.
    pub lost: u64,
}

/// A worker that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct WaiterView {
    pub kind: TypeName,
    pub worker: WorkerName,
    /// At which node.
    pub node: NodeName,
    pub since: Stamp,
}

/// A rotation as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotationView {
    /// Its name.
    pub name: RotationName,
    /// Its rules.
    pub rules: Rules,
    /// How far it has come.
    pub ring: Ring,
    /// In the rules' order.
    pub types: Vec<TypeView>,
    /// In the order in which they came, at most [`WAITERS_NAMED`].
    pub waiters: Vec<WaiterView>,
    /// Newest first, as many as were asked for.
    pub past: Vec<PastTurn>,
    /// The store's clock at this reading.
    pub now: Stamp,
}

/// The answer to [`Rotations::remove_rotation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRotation {
    /// It is gone; otherwise nothing was changed.
    pub done: bool,
    /// Who has, or had, the turn.
    pub turn: Option<Turn>,
    /// How many wait, or did.
    pub waiting: u64,
}

/// The answer to [`Rotations::pump_turns`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PumpedTurns {
    /// The store's clock.
    pub now: Stamp,
    /// When there may be something to do next, as far as is known now; `None`: not before another call changes something.
    pub next: Option<Stamp>,
    /// Turns whose lease ran out, ended by this call or by any other since the last one: each is named once, by whichever
    /// node calls first.
    pub lost: Vec<(RotationName, Turn)>,
    /// More is overdue than one call does: call again at once.
    pub more: bool,
}

/// The answer to [`Rotations::pass_on`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOn {
    /// As [`Rotations::pass_turn`] answers.
    pub kept: Kept,
    /// In how long something may be due in that rotation, at most a second; `None`: nothing was changed.
    pub next_in: Option<Duration>,
}

/// Transitions and readings of rotations.
#[async_trait]
pub trait Rotations: Send + Sync {
    /// Makes a rotation, or changes its rules ([`Ring::adapt`]). The rules were checked. A waiter for a type that is gone is
    /// woken, and finds it gone.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait).
    async fn put_rotation(&self, rotation: &RotationName, rules: &Rules) -> Result<RotationView>;

    /// Removes a rotation with its turn and its past turns. Its waiters are woken, and find it gone. Without `force` only a
    /// rotation that has neither a holder nor waiters.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn remove_rotation(
        &self,
        rotation: &RotationName,
        force: bool,
    ) -> Result<RemovedRotation>;

    /// One rotation, or all by name, each with so many of its past turns (at most [`TURNS_KEPT`]).
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] for the one, [`super::StoreError::Unavailable`].
    async fn rotations(
        &self,
        only: Option<&RotationName>,
        past: usize,
    ) -> Result<Vec<RotationView>>;

    /// Takes a turn, if it is this one's. The token is `max(previous + 1, store_ms * 1024)`. Before that, a turn whose lease
    /// has run out is ended.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] when there is no such rotation, or it has no such type: then nothing was done.
    /// [`super::StoreError::Unavailable`]: unknown; repeat it with the same `request`.
    async fn take_turn(&self, ask: &TurnAsk) -> Result<Taken>;

    /// Extends a turn to a whole lease of its own ([`Turn::lease`]) from now.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] for an unknown rotation, [`super::StoreError::Unavailable`].
    async fn extend_turn(
        &self,
        rotation: &RotationName,
        turn: Token,
        only: Option<&WorkerName>,
    ) -> Result<Kept>;

    /// Ends a turn, and wakes the next worker, if it can start now.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] for an unknown rotation, or a `next` that it does not have: then nothing was done.
    /// [`super::StoreError::Unavailable`]: unknown; repeated it may find the turn ended.
    async fn pass_turn(&self, pass: &Pass) -> Result<Kept> {
        Ok(self.pass_on(pass).await?.kept)
    }

    /// The same, and when something is due next: then nobody need ask.
    ///
    /// # Errors
    /// As [`Rotations::pass_turn`].
    async fn pass_on(&self, pass: &Pass) -> Result<PassedOn>;

    /// Ends a turn whose grant never left the node ([`Ending::Lost`](soloist_domain::rotation::Ending::Lost)), unless
    /// the same request was answered again meanwhile, perhaps by another node, because then a worker knows of it. The
    /// request is forgotten with it: asked again, it may have another turn. Says whether it did.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: its lease ends by itself.
    async fn give_back_unseen_turn(&self, rotation: &RotationName, turn: Token) -> Result<bool>;

    /// A waiter waits no more. One who was promised the turn makes way for the next.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: harmless, it is forgotten when its time is over.
    async fn leave_queue(&self, rotation: &RotationName, waiter: &Waiter) -> Result<()>;

    /// Does what is due, by the store's clock: ends turns whose lease ran out, lets promises lapse, promises turns whose gap is
    /// over, and wakes the waiters to whom they are promised. Calling it twice does no more than once. `incarnation` is what
    /// the waiters of the calling node begin with (`NODE/RANDOM`): this call renews it.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn pump_turns(&self, incarnation: &str) -> Result<PumpedTurns>;
}
