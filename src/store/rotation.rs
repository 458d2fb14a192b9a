//! Rotations: types of work that take turns, and who waits for which. One turn of a rotation is held
//! at a time.
//!
//! Whose turn it is, is decided by [`crate::domain::rotation`]; this room makes each decision and its consequences one
//! atomic step, on the store's clock. At most one turn of a rotation is had at a time, and only the present one can be
//! extended or passed: whoever lost it changes nothing. What happens without a client is [`Rotations::pump_turns`], which any
//! node may call at any time.
//!
//! Waiters stand in the store, in the order in which they came, for one type each. When it is a type's turn, its first
//! waiter is promised the turn and woken, in the same step; nobody else gets it meanwhile. A promise that is not taken up
//! within [`PROMISE`] lapses as soon as anybody else asks or a pump comes by. Its waiter loses the place, and all others of
//! the same life of that node are passed over in this rotation, because it may have died with a thousand waiters; they stand
//! where they stood once that life is heard of again, by a request there or by its pump. New rules end a promise, too.

use std::time::Duration;

use super::Result;
use super::dispatch::Waiter;
use crate::domain::lease::Token;
use crate::domain::name::{NodeName, RequestId, RotationName, TypeName, WorkerName};
use crate::domain::rotation::{Ending, Outcome, Reason, Ring, Rules, Turn};
use crate::domain::time::Stamp;

/// How long a turn is kept for the waiter who was woken for it.
pub const PROMISE: Duration = Duration::from_millis(100);
/// How many turns that ended are remembered of each rotation.
pub const TURNS_KEPT: usize = 200;
/// Most waiters that a reading names; all are counted.
pub const WAITERS_NAMED: usize = 100;
/// A request that was answered with a turn is known for so long after that turn's lease.
pub const REQUEST_KEPT: Duration = Duration::from_secs(60);

/// A request for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnAsk {
    /// Of which rotation.
    pub rotation: RotationName,
    /// For which type.
    pub kind: TypeName,
    /// For whom.
    pub worker: WorkerName,
    /// The same one (of the same type and worker) has the same turn.
    pub request: RequestId,
    /// Should the turn not be had now, this one waits so long for it. `None`: a final answer, and no place in the queue.
    pub wait: Option<(Waiter, Duration)>,
}

/// The answer to a [`TurnAsk`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Yours.
    Granted(Turn),
    /// This request had that turn, which has ended: ask with a new one.
    Over(Token),
    /// Not now.
    Waiting {
        /// Who has it.
        holder: Option<Turn>,
        /// The first instant at which this type could start, as far as is known: not before the gaps and the quota are over.
        /// Whoever has the turn may keep it for longer.
        earliest_at: Stamp,
        /// How many of those who wait have a turn before this one, if all take theirs.
        ahead: u64,
        /// What this one waits for. Never [`Reason::Idle`].
        reason: Reason,
    },
}

/// What ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Of which rotation.
    pub rotation: RotationName,
    /// Which turn, by its token.
    pub turn: Token,
    /// Only if it is this worker's.
    pub only: Option<WorkerName>,
    /// How it went.
    pub outcome: Outcome,
    /// Who comes next.
    pub next: Option<TypeName>,
    /// No turn starts before this.
    pub not_before: Option<Stamp>,
}

/// Whether an extension or a pass counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It did; the turn as it is now, or as it was.
    Yes(Turn),
    /// The turn has ended before, or it is another worker's: nothing was changed.
    Stale {
        /// How it ended, while that is remembered.
        past: Option<PastTurn>,
        /// Who has the turn now.
        holder: Option<Turn>,
    },
}

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PastTurn {
    pub token: Token,
    pub kind: TypeName,
    pub worker: WorkerName,
    pub since: Stamp,
    /// When it was passed, or its lease ran out.
    pub ended: Stamp,
    pub ending: Ending,
}

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

/// Somebody who waits.
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

/// The answer to [`Rotations::pump_turns`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PumpedTurns {
    /// The store's clock.
    pub now: Stamp,
    /// When there may be something to do next, as far as is known now; `None`: not before somebody does something.
    pub next: Option<Stamp>,
    /// Turns whose lease ran out, ended by this call or by any other since the last one: each is named once, by whichever
    /// node calls first.
    pub lost: Vec<(RotationName, Turn)>,
    /// More is overdue than one call does: call again at once.
    pub more: bool,
}

/// Transitions and readings of rotations.
#[expect(async_fn_in_trait, reason = "never used as a trait object; the enum Store forwards")]
pub trait Rotations {
    /// Makes a rotation, or changes its rules ([`Ring::adapt`]). The rules were checked. Whoever waits for a type that is gone
    /// is woken, and finds it gone.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait).
    async fn put_rotation(&self, rotation: &RotationName, rules: &Rules) -> Result<RotationView>;

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

    /// Ends a turn, and wakes the one who comes next, if that one can start now.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] for an unknown rotation, or a `next` that it does not have: then nothing was done.
    /// [`super::StoreError::Unavailable`]: unknown; repeated it may find the turn ended.
    async fn pass_turn(&self, pass: &Pass) -> Result<Kept>;

    /// Ends a turn whose grant never left the node ([`Ending::Lost`]), unless the same request was answered again
    /// meanwhile, perhaps by another node, because then a worker knows of it. The request is forgotten with it: asked again,
    /// it may have another turn. Says whether it did.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: its lease ends by itself.
    async fn give_turn_back(&self, rotation: &RotationName, turn: Token) -> Result<bool>;

    /// A waiter waits no more. One who was promised the turn makes way for the next.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: harmless, it is forgotten when its time is over.
    async fn leave_queue(&self, rotation: &RotationName, waiter: &Waiter) -> Result<()>;

    /// Does what is due, by the store's clock: ends turns whose lease ran out, lets promises lapse, promises turns whose gap
    /// is over, and wakes those to whom they are promised. Calling it twice does no more than once. `life` is what the
    /// waiters of the calling node begin with (`NODE/RANDOM`): it is heard of by this.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn pump_turns(&self, life: &str) -> Result<PumpedTurns>;
}
