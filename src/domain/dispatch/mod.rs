//! Dispatch: which source may be served now, how many of its tasks at once, and what becomes of a task.
//!
//! Two kinds of decision, each pure. [`Rules::room`] looks at a source (gap, window, cap, block, pause) and says how many
//! starts it allows at this instant or why none and until when; [`Rules::after`] looks at a task that left a collector's
//! hands and says where it goes. Priority is an order of sort keys, fairness a number of tasks per turn. The transitions
//! in `store` carry both out: SQLite by calling them, Redis by Lua scripts that must agree, which the conformance suite
//! checks. Every instant is a [`Stamp`](crate::domain::time::Stamp) of the store's clock; clients' clocks appear nowhere.

mod order;
mod rules;
mod task;
#[cfg(test)]
mod tests;

pub use order::{Place, share};
pub use rules::{Backoff, InvalidRules, LONGEST, Reason, Rules, Shut, Standing, Window};
pub use task::{Departure, Next, Outcome, TaskState};
