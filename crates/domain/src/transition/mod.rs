//! Every transition of a job, written once. Records in, records and writes out.
//!
//! A store loads the records that a transition names, calls it, and commits the result in one atomic step, on condition that nothing it read
//! has changed meanwhile. Nothing here reads a clock, does IO or draws a random number: [`Now`], owners and run ids come in. A store that
//! decided for itself would sooner or later decide differently from another; and the model (`tests/model`), which explores these functions,
//! would no longer say anything about it.
//!
//! | file | what |
//! | --- | --- |
//! | `participation` | switches, holds |
//! | `handover` | moves |
//! | `drill` | an order to crash, and what completes it |
//! | `lease` | grants, renewals, releases |
//! | `run` | starts, stops, ends |
//! | `history` | entries of runs: closed, folded, forgotten |
//! | `output` | lines and progress |
//! | `forget` | which records go, and when |
//! | `spend` | leases for one run of a tick that the caller names (the law is in `domain/spent`) |
//! | `tick` | ticks: granted, settled, asked for (the law is in `domain/tick`) |
//!
//! **Time.** [`Now`] is the instant of the commit by the store's clock. Whether a lease lasts comes in as the time that is left
//! of it ([`LeaseRecord::expires_in`]), because each store has a clock of its own for that. A lease that a transition
//! leaves changed ends its `expires_in` after the commit.

pub mod drill;
pub mod forget;
pub mod handover;
pub mod history;
pub mod lease;
pub mod output;
pub mod participation;
pub mod run;
pub mod spend;
pub mod tick;

use super::event::{EventKind, JobEvent};
use super::job::{JobRecord, LeaseRecord};
use super::journal::{LogLine, RunEntry};
use super::lease::{Stale, Token};
use super::log::LogKept;
use super::name::{JobName, RunId};
use super::tick::Entry;
use super::time::{Boot, StoreTime};
use super::timeline::Want;

/// The instant of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// By the store's clock: what is written down, and what is compared with it.
    pub at: StoreTime,
    /// By the clock of the machine that carries the transition out. Only to tell when something began that its holder
    /// remembers ([`super::time::Began`]).
    pub boot: Boot,
}

/// A job as its transitions see it: the record that all readers see, and what only transitions look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its lease is there only while it lasts.
    pub record: JobRecord,
    /// The newest lease when it expired and was neither released nor acquired by another. A store need not keep it.
    pub lapsed: Option<LeaseRecord>,
    /// Highest token whose lease was released. A late renewal under it must not bring the lease back to life.
    pub released: Token,
    /// The bytes of the lines that are kept.
    pub log: LogKept,
}

impl Job {
    /// A job that was never touched.
    #[must_use]
    pub fn untouched(name: JobName) -> Self {
        let record = JobRecord::untouched(name);
        Self { record, lapsed: None, released: Token(0), log: LogKept::default() }
    }

    /// No crash of the past counts any more.
    fn forgive(&mut self) {
        self.record.given_up = false;
        self.record.crashes = 0;
        self.record.next = None;
    }

    /// Refuses a writer that a newer token has replaced. A token above the known one was minted before the store forgot:
    /// it is the newest. None was ever minted above [`Token::LARGEST`].
    fn check(&mut self, sent: Token) -> Result<(), Stale> {
        let current = self.record.token;
        if sent < current || sent > Token::LARGEST {
            return Err(Stale { sent, current });
        }
        self.record.token = sent;
        Ok(())
    }

    /// The lease of `token`, also when it ran out unclaimed.
    fn lease_of(&self, token: Token) -> Option<&LeaseRecord> {
        let both = self.record.lease.iter().chain(&self.lapsed);
        both.into_iter().find(|lease| lease.token == token)
    }

    /// No lease up to `token` is held any more.
    fn give_back(&mut self, token: Token) {
        self.released = self.released.max(token);
        self.record.lease.take_if(|lease| lease.token <= token);
        self.lapsed.take_if(|lease| lease.token <= token);
    }

    /// Grows the version and says why.
    fn publish(&mut self, event: EventKind) -> Write {
        self.record.version += 1;
        let (job, version) = (self.record.name.clone(), self.record.version);
        Write::Publish(JobEvent { job, version, event })
    }
}

/// What is to be written beside the job, in this order, in the same atomic step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// All followers of the job get the change.
    Publish(JobEvent),
    /// Into the history of runs: a new entry, or the newest wording of the one with that id, in its old place.
    KeepRun(RunEntry),
    /// Out of the history.
    DropRun(RunId),
    /// After the newest line of output.
    AppendLine(LogLine),
    /// Lines of output up to this number go.
    DropLines(u64),
    /// Behind the participations and holds that are over.
    KeepWant(Want),
    /// The outcome of a tick, or of several; replaces the earlier entry.
    KeepTick {
        /// The newest wording.
        entry: Box<Entry>,
        /// The one before.
        instead: Option<Box<Entry>>,
    },
}

#[cfg(test)]
mod tests;
