//! Rotation: types of work that take turns, one at a time, never sooner than their gaps allow.
//!
//! [`Rules`] say which types, in which order, and how long apart; a [`Ring`] is how far they have come. [`Ring::choose`]
//! decides whose turn it is at an instant, given who waits. Every other change is a method of the ring: a start, an
//! extension, a pass, an end by time, new rules. Nothing here knows who waits in which order, or how they are woken: that is
//! the business of `store`, where SQLite calls these functions and Redis has Lua scripts that must agree, which the
//! conformance suite checks. Every instant is a [`Stamp`](crate::domain::time::Stamp) of the store's clock.

mod ring;
mod rules;
#[cfg(test)]
mod tests;

pub use ring::{Choice, Ending, Outcome, Reason, Ring, Starts, Turn};
pub use rules::{InvalidRules, Rules, Skip, TypeRules};
