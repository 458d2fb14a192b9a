//! The runner: carries out what the domain decides.
//!
//! `hold` is something held by renewing it, `keeper` renews leases in batches, `rounds` knows whose turn it is, `supervisor` turns facts into steps and steps into
//! acts, `here` remembers a job, `expected` says which other nodes it lets go first and `ending` what follows a run, `run` is one held run with its output, `program` is what is run, `child` is the node's end of a guard, `nursery` has guards ready, `sweep` what it does when a guard is
//! lost, `leftovers` what it does when both were, `beat` reports that this node lives, `once` is `soloist run`, `collect`
//! is `soloist collect` (`slot` is one of its hands, `in_hand` a task in it, `relay` the output), `one_turn` is `soloist turn`
//! (`turn_in_hand` a turn that is had), `signals` what may stop them, `turn` the turn of a job's run in a rotation.
//! The runner hears about people's wishes only through the feed; it never meets the web.

mod asking;
pub mod attend;
pub mod beat;
pub mod child;
pub mod collect;
mod command;
mod crew;
mod ending;
pub mod event;
mod expected;
mod guard_process;
mod here;
pub mod hold;
mod in_hand;
pub mod keeper;
pub mod leftovers;
mod line;
pub mod nursery;
pub mod once;
pub mod one_turn;
mod outlook;
mod output;
pub mod program;
mod readers;
mod relay;
mod report;
mod rounds;
pub mod run;
pub mod signals;
mod slot;
pub mod spec;
pub mod supervisor;
pub mod surroundings;
mod sweep;
pub mod turn;
mod turn_ask;
mod turn_in_hand;
