//! Where everything about rotations stands: the names of its tables and lists (`R` a rotation, `T` a type, `INCARNATION` a node incarnation).
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `rotations` | table | R: `SHAPE VERSION INSTANT`, a line end, JSON ([`Body`](super::record::Body)) |
//! | `turns:queue:R:T:INCARNATION` | list | who waits there for T, in the order in which they came to the store |
//! | `turns:waiting:R` | table | waiter: `UNTIL SINCE TYPE WORKER` |
//! | `turns:asked` | table | `R TYPE WORKER REQUEST`: `TOKEN UNTIL`, the turn of that request |
//! | `turns:asked:until` | list | the same requests, by the instant at which they are forgotten |
//! | `turns:ended:R` | list | turns that ended, as JSON, by token |
//! | `turns:due` | list | rotations, by the instant at which the clock alone changes something |
//! | `turns:silent` | list | `INCARNATION R`, by the instant until which that incarnation is silent there |
//! | `turns:incarnations` | list | `INCARNATION R`, by the instant at which those who wait there are looked through |
//! | `turns:lost` | list | JSON of rotation and turn, until a pump has named it |
//!
//! Instants are microseconds since 1970. Names of rotations, types and nodes have neither colons nor spaces; those of workers,
//! waiters and requests have no spaces.

use soloist_domain::name::{RotationName, TypeName};
use soloist_domain::rotation::{Turn, TurnAsk};
use soloist_domain::time::Stamp;

pub(super) const ROTATIONS: &str = "rotations";
pub(super) const ASKED: &str = "turns:asked";
pub(super) const ASKED_UNTIL: &str = "turns:asked:until";
pub(super) const DUE: &str = "turns:due";
pub(super) const SILENT: &str = "turns:silent";
pub(super) const INCARNATIONS: &str = "turns:incarnations";
pub(super) const LOST: &str = "turns:lost";
/// Counts the places of all queues.
pub(super) const PLACES: &str = "turns:places";

pub(super) fn queue(rotation: &RotationName, kind: &TypeName, incarnation: &str) -> String {
    format!("turns:queue:{rotation}:{kind}:{incarnation}")
}

pub(super) fn waiting(rotation: &RotationName) -> String {
    format!("turns:waiting:{rotation}")
}

pub(super) fn ended(rotation: &RotationName) -> String {
    format!("turns:ended:{rotation}")
}

/// An incarnation in a rotation.
pub(super) fn incarnation_in(incarnation: &str, rotation: &RotationName) -> String {
    format!("{incarnation} {rotation}")
}

/// The request of an ask.
pub(super) fn asked(ask: &TurnAsk) -> String {
    format!("{} {} {} {}", ask.rotation, ask.kind, ask.worker, ask.request)
}

/// The request of a turn.
pub(super) fn asked_for(rotation: &RotationName, turn: &Turn) -> String {
    format!("{rotation} {} {} {}", turn.kind, turn.worker, turn.request)
}

/// An instant as the number of an entry.
pub(super) fn number(at: Stamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0)
}

/// The other way round.
pub(super) fn stamp(number: u64) -> Stamp {
    Stamp(i64::try_from(number).unwrap_or(i64::MAX))
}
