//! The port of jobs, which a store implements: read records, commit a change, keep leases.
//!
//! An engine decides nothing. `core` loads, lets `domain::transition` decide, and commits the result on condition that nothing it read has changed.
//! An engine compares texts and instants, and writes texts: it never looks inside a record.
//!
//! # Records
//!
//! A record is one text under a *head* `VERSION INSTANT`: the version that people see, and the instant of the commit by the
//! store's clock in microseconds. A condition names the whole head: after a restore from an older copy a version comes a second
//! time with other content, an instant does not.
//!
//! # The lease beside it
//!
//! A lease is a text of its own that is gone when its time is over, by the store's clock and without a writer. Whether it lasts
//! is only ever a condition of a commit; no process compares its end with a clock.
//!
//! # Clocks
//!
//! A transition is decided at an instant that `core` estimates from the newest answer. The commit is refused outside the
//! *window* around it: no instant that the decision compared lies between the estimate and the commit, and the store's clock did
//! not jump since it was read.
//!
//! # Answers
//!
//! A refused commit wrote nothing, and says what is newest, so that the next attempt needs no reading. A commit whose answer was lost may
//! have been done: sent again it is refused by its own success, and the newest record shows the caller's own owner or run.

#![allow(missing_docs, reason = "the words of a plan are explained at its type")]

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use super::events::Events;
use super::records::{self, Records};
use soloist_domain::event::JobEvent;
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;

/// A record and the lease beside it, as an engine keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored {
    /// `VERSION INSTANT`; empty when there is no record.
    pub head: String,
    /// Empty when there is no record.
    pub body: String,
    /// While it lasts.
    pub lease: Option<StoredLease>,
}

/// A lease that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLease {
    pub text: String,
    /// Time left. More than the lease is long when the store's clock was set back.
    pub left: Duration,
}

/// Several records at one instant.
#[derive(Debug)]
pub struct Reading {
    /// As in [`super::jobs::Snapshot`].
    pub epoch: String,
    /// The store's clock.
    pub at: StoreTime,
    /// As in [`super::jobs::Snapshot`].
    pub quarantine: Duration,
    /// In the order in which they were asked for.
    pub records: Vec<Stored>,
}

/// What becomes of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseWrite {
    /// Nothing.
    None,
    /// This text, for so long from the commit.
    For(String, Duration),
    /// This text, for as long as the present one lasts.
    Text(String),
    /// It is released.
    Drop,
}

/// What is written beside the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beside {
    /// Into the history, ordered by number.
    Index { number: u64, text: String },
    /// The entry of the history under that number.
    Unindex { number: u64 },
    /// After the newest line of output, whose number is one less.
    Append { number: u64, text: String },
    /// Only so many of the newest lines stay.
    Trim(usize),
}

/// How urgent a call is. Calls of one kind do not wait for those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A lease is asked for.
    Grant,
    /// A lease is kept or released.
    Lease,
    /// All else.
    Rest,
}

/// One change of one record, its lease and the rows beside it: done as a whole or not at all.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    pub job: &'a JobName,
    pub way: Way,
    /// The head of the record that was read; empty: there must be none.
    pub head: &'a str,
    /// The beginning of the lease's text that was read; empty: there must be none.
    pub lease: &'a str,
    /// The commit's instant must be in it, by the store's clock.
    pub window: Range<StoreTime>,
    /// A lease is asked for, of this length: it is as safe as the store can make it, or `unsafe_grant` says why not.
    pub grant: Option<Duration>,
    /// For so long its holder may assert that lease again in a store that forgot it; zero for a program, whose word makes no lease.
    pub reach: Duration,
    /// Refused while the store may have forgotten leases.
    pub calm: bool,
    /// [`Commit::Listed`] while anything is in this list of [`Records`]; only where [`Engine::sees_lists`].
    pub unlisted: Option<&'a str>,
    /// The version and the body of the record as it shall be; `None`: it stays as it is.
    pub record: Option<(u64, &'a str)>,
    /// The record says nothing any more: a store that can end it by itself does so, this long after the commit, unless it is written
    /// again. Elsewhere it is found ([`Engine::forget`]).
    pub expires: Option<Duration>,
    pub lease_write: LeaseWrite,
    pub beside: Vec<Beside>,
    /// The event for the followers of the job; it carries the record. Empty: nothing.
    pub tell: &'a [JobEvent],
    /// Carrying it out twice would be wrong, so it is never sent again when a connection broke.
    pub once: bool,
    /// What is added to the audit and to other lists. On a cluster these lie with another master, so it is a second call there, after
    /// this one.
    pub notes: Vec<records::Write>,
}

/// How a commit ended.
#[derive(Debug)]
pub enum Commit {
    /// All of it is written, under this head.
    Done {
        head: String,
        /// Why a granted lease must be released at once: nothing may run under it.
        unsafe_grant: Option<Unsafe>,
    },
    /// Nothing is written; this is what is newest.
    Refused {
        stored: Stored,
        /// As in [`super::jobs::Snapshot`].
        quarantine: Duration,
    },
    /// Nothing is written, and that alone is why: [`Change::unlisted`] is not empty.
    Listed,
}

/// Why a lease that was granted cannot be relied on.
#[derive(Debug)]
pub enum Unsafe {
    /// The store's clock jumped: the lease before it may have ended by that alone.
    Jumped,
    /// Too few copies of it exist.
    Unconfirmed(super::StoreError),
}

/// One lease to be kept for `ttl` more.
#[derive(Debug, Clone)]
pub struct Keep<'a> {
    pub job: &'a JobName,
    /// How its text must begin.
    pub text: String,
    pub ttl: Duration,
    /// As in [`Change`].
    pub reach: Duration,
}

/// A page of the history.
#[derive(Debug)]
pub struct Page {
    /// The record at the same instant.
    pub stored: Stored,
    /// Texts, newest first.
    pub entries: Vec<String>,
}

/// Which lines of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The last ones.
    Newest,
    /// The first ones with a greater number.
    After(u64),
    /// The last ones with a smaller number.
    Before(u64),
}

/// The port.
#[async_trait]
pub trait Engine: Records + Events {
    /// What this process remembers of jobs.
    fn known(&self) -> &super::core::Known;

    /// This machine's clock.
    fn boot(&self) -> Boot {
        clock::boot()
    }

    /// The store's clock now, as well as it is known here without asking: never later than it is. And how far it may be off
    /// from what an answer would say, unless the clock was set. `None` before the first answer.
    fn estimate(&self, job: &JobName, now: Boot) -> Option<(StoreTime, Duration)>;

    /// Reads records, and whether the store may be believed.
    async fn read(&self, jobs: &[JobName], way: Way) -> Result<Reading>;

    /// Version and time left of the lease, of each.
    async fn observe(&self, jobs: &[JobName]) -> Result<Vec<(u64, Option<Duration>)>>;

    /// Carries a change out, if its conditions hold.
    async fn commit(&self, change: &Change<'_>) -> Result<Commit>;

    /// Whether one commit sees leases and lists alike. Not on a cluster, where they lie with different masters. Not on a server that speaks SQL: a
    /// grant would lock the list against those who join it.
    fn sees_lists(&self) -> bool {
        false
    }

    /// Keeps leases, each by itself; for each what was left of it, or `None` when its text begins otherwise, or when there is
    /// no record beside it.
    async fn keep(&self, leases: &[Keep<'_>]) -> Result<Vec<Option<Duration>>>;

    /// Removes a record if its head is this one and no lease lasts beside it; whether it did. It has no history and no output. No event is sent.
    async fn forget(&self, job: &JobName, head: &str) -> Result<bool>;

    /// At most `limit` entries of the history, newest first: older than the entry of `before`, if that is given.
    async fn history(&self, job: &JobName, before: Option<&RunId>, limit: usize) -> Result<Page>;

    /// The entry under `number`, the oldest entry, and the oldest in which `mark` stands; the newest entry of all left out.
    async fn oldest(&self, job: &JobName, number: u64, mark: &str) -> Result<[Option<String>; 3]>;

    /// Every lease that lasts, by name, whatever its name stands for. For people who look: nothing is decided by it.
    async fn every_lease(&self) -> Result<Vec<(JobName, StoredLease)>>;

    /// At most `limit` lines of output, oldest first.
    async fn lines(&self, job: &JobName, part: Part, limit: usize) -> Result<Vec<String>>;

    /// How much output of a job is kept, as [`super::Options::log`] says.
    fn log_bounds(&self) -> LogBounds;
}
