//! The runner: carries out what the domain decides.
//!
//! `keeper` renews leases in batches, `rounds` knows whose turn it is, `supervisor` turns facts into steps and steps into
//! acts, `run` is one held run with its output, `child` is the node's end of a guard, `sweep` what it does when a guard is
//! lost, `leftovers` what it does when both were, `beat` reports that this node lives, `once` is `soloist run`, `signals`
//! what may stop it.
//! The runner hears about people's wishes only through the feed; it never meets the web.

pub mod beat;
pub mod child;
mod ending;
mod expected;
pub mod keeper;
pub mod leftovers;
pub mod once;
mod output;
mod rounds;
pub mod run;
mod signals;
pub mod supervisor;
mod sweep;
