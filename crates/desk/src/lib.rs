//! Requests that wait at a node until it is their turn: claims of collectors, turns of workers, leases of programs.
//!
//! The law of each is in `domain` and is carried out in the store; here is who waits, who is woken, and who gave up.

pub mod dispatch;
pub mod leases;
pub mod rotation;
pub mod waiting;
