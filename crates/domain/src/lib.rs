//! Pure decisions: what a job's state is, who may run it, when to stop and when to try again.
//!
//! Nothing here reads a clock, does IO, spawns a task or draws a random number; time arrives as a
//! value. That is what lets a test walk through every interleaving. Every other crate may
//! use this one; it uses only `std`, `serde`, `thiserror`, and `sha2`, of which ids of tasks are made.

pub mod account;
pub mod alert;
pub mod backoff;
pub mod containment;
pub mod definition;
pub mod detail;
pub mod dispatch;
pub mod doubt;
pub mod drill;
pub mod ensemble;
pub mod event;
pub mod fields;
pub mod grant;
pub mod handover;
pub mod job;
pub mod journal;
pub mod lease;
pub mod lifeline;
pub mod limits;
pub mod line;
pub mod log;
pub mod name;
pub mod placement;
pub mod rotation;
pub mod shebang;
pub mod sign_in;
pub mod spent;
pub mod supervise;
pub mod terminal;
pub mod throughput;
pub mod tick;
pub mod time;
pub mod timeline;
pub mod transition;
