//! Rotation: types of work that take turns, one at a time, never sooner than their gaps allow.
//!
//! | file | what |
//! | --- | --- |
//! | `rules` | which types, in which order, how far apart |
//! | `ring` | how far they have come, and whose turn it is at an instant |
//! | `turns` | what clients ask, and the answers |
//! | `record` | a rotation as its transitions see it, and what they write |
//! | `round` | one transition: every rule of rotations, in its order |
//!
//! Records in, records and writes out, as in [`super::transition`]. `store/core/rotation` carries these functions out on every
//! store (ADR 0016). Every instant is a [`Stamp`](crate::time::Stamp) of the store's clock; that of a transition is close
//! to the instant of its commit, and no instant that it compared lies between.

#[cfg(any(test, debug_assertions))]
#[doc(hidden)]
pub mod in_memory;
mod record;
mod ring;
mod round;
mod rules;
#[cfg(test)]
mod tests;
mod turns;

pub use crate::fields::InvalidRules;
pub use record::{Change, Memory, Promise, Queues, Rotation, Write};
pub use ring::{Choice, Ending, Reason, Ring, Starts, Turn, TurnOutcome};
pub use round::{Caller, Round, UnknownType};
pub use rules::{Rules, Skip, TypeRules, Written};
pub use turns::{
    Kept, PROMISE, Pass, PastTurn, REQUEST_KEPT, SILENT_FOR, TURNS_KEPT, Taken, TurnAsk,
};
