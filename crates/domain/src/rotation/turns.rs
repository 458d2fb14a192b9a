//! Asking for a turn and keeping it: what clients put to the store about turns, and the answers.
//!
//! Data alone. What is answered is decided in `round.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Ending, Reason, Turn, TurnOutcome};
use crate::lease::Token;
use crate::name::{RequestId, RotationName, TypeName, Waiter, WorkerName};
use crate::time::Stamp;

/// How long a turn is kept for the waiter who was woken for it.
pub const PROMISE: Duration = Duration::from_millis(100);
/// A node incarnation that let a promise lapse is passed over for no longer than a waiter may wait.
pub const SILENT_FOR: Duration = Duration::from_secs(35);
/// A request that was answered with a turn is known for so long after that turn's lease.
pub const REQUEST_KEPT: Duration = Duration::from_secs(60);
/// How many turns that ended are remembered of each rotation.
pub const TURNS_KEPT: usize = 200;

/// A request for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnAsk {
    /// Of which rotation.
    pub rotation: RotationName,
    /// For which type.
    pub kind: TypeName,
    /// Which worker asks.
    pub worker: WorkerName,
    /// The same one (of the same type and worker) has the same turn.
    pub request: RequestId,
    /// If the turn is not free now, this waiter waits so long for it. `None`: the answer is final, with no place in the queue.
    pub wait: Option<(Waiter, Duration)>,
}

impl TurnAsk {
    /// The waiter, if the turn is not free now.
    #[must_use]
    pub fn waiter(&self) -> Option<&Waiter> {
        self.wait.as_ref().map(|(waiter, _)| waiter)
    }
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
        /// The holder of the turn may keep it for longer.
        earliest_at: Stamp,
        /// How many waiters have a turn before this one, if all take theirs.
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
    pub outcome: TurnOutcome,
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
