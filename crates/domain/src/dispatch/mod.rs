//! Dispatch: which source may be served now, how many of its tasks at once, and what becomes of a task.
//!
//! | file | what |
//! | --- | --- |
//! | `rules` | gap, window, cap, block and pause: how many may start at an instant, or why none and until when |
//! | `task` | where a task goes that leaves a collector's hands |
//! | `order` | who is next: tasks within a source, and how a claim is divided among sources |
//! | `asks` | what clients ask, and the answers |
//! | `record` | what is kept, and what a transition writes |
//! | `sets` | what a transition looks at, and what is missing from it |
//! | `round` | one transition under way: counts, and the ring of sources |
//! | `wakes` | its end: who is woken |
//! | `exchange` | results taken, then tasks handed out |
//! | `refuse` | a claim that gets nothing |
//! | `acts` | everything else that may happen |
//!
//! Sets of records in, changed records and writes out (ADR 0014). SQLite carries these functions out; Redis has Lua scripts
//! that must agree, which random timed histories check (`tests/it/histories/dispatch.rs`). Every instant is a
//! [`Stamp`](crate::time::Stamp) of the store's clock, that of a transition is the instant of its commit; clients' clocks
//! appear nowhere.

mod acts;
mod asks;
mod exchange;
#[cfg(any(test, debug_assertions))]
#[doc(hidden)]
pub mod in_memory;
mod order;
mod record;
mod refuse;
mod round;
mod rules;
mod sets;
mod task;
#[cfg(test)]
mod tests;
mod wakes;

pub use crate::fields::{InvalidRules, LONGEST};
pub use acts::{
    block, define, extend, give_back, leave_queues, pause, pump, put, remove, remove_all, revive,
};
pub use asks::{
    BATCH, ClaimAsk, ClaimId, ClaimOwner, DONE_BEYOND, DONE_KEPT, Exchange, Extended, HISTORY_KEPT,
    LONGEST_ERROR, LONGEST_KEY, LONGEST_PAYLOAD, NewTask, Past, PastEvent, Report, Reported,
    TaskId,
};
pub use exchange::{Exchanged, exchange};
pub use order::{Place, share};
pub use record::{
    Answer, Book, Change, Claim, Kept, PROMISE, REMEMBERED, Recent, SEEN_EVERY, Seat, Source, Task,
    Write,
};
pub(crate) use rules::LEASES;
pub use rules::{Backoff, Reason, Rules, Shut, Standing, Window};
pub use sets::{Halt, Need, Overdue, Sets, Waiting, Wanted};
pub use task::{Departure, Next, TaskOutcome, TaskState};
