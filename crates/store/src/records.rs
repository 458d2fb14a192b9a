//! The port of everything without a job, which a store implements: accounts, credentials, nodes, the audit, rotations.
//!
//! The port beside [`engine`](super::engine), which is that of jobs and their leases. As there, an implementation decides nothing: `core` looks, decides,
//! and changes on condition that nothing it looked at has changed. There are three kinds of things:
//!
//! - a *table* of rows, each a text under a name;
//! - a *list* of texts, each once, in the order of their numbers;
//! - a *log* of JSON objects, which the store numbers and dates itself. Several logs may take their numbers from one counter:
//!   then the numbers of all of them together say in which order they were written.
//!
//! Nothing here ends by itself: what has an end says so in its text, and `core` compares that with the store's clock.
//!
//! # Clock
//!
//! One clock for all of this, in microseconds. `core` decides at the instant of what it looked at, or at [`Records::latest`] if it did
//! not look, so that nothing ends early; and it has the change refused outside of [`Plan::within`] when an instant that it compared
//! lies near.

#![allow(missing_docs, reason = "the words of a plan are explained at its type")]

use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;

use super::core::KnownTurns;
use super::dispatch::Waiter;
use super::journal::AuditEntry;
use super::{Result, StoreError};
use soloist_domain::rotation::Memory;
use soloist_domain::time::{Stamp, StoreTime};

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// One row of a table.
    Row(String, String),
    /// All rows of a table.
    Rows(String),
    /// The first entries of a list, at most so many; at least one, here and below.
    First(String, usize),
    /// The last entries of a list, at most so many.
    Last(String, usize),
    /// The first entries of a list, at most so many, each with the row of a table that has its text as name.
    Described { list: String, table: String, most: usize },
    /// How many entries some lists have together.
    Count(Vec<String>),
    /// How many of them have a number below that of `text` in the list `of`; all of them, if it is not there.
    Ahead { lists: Vec<String>, of: String, text: String },
    /// Whether the store may have forgotten something.
    Memory,
    /// The newest entries of a log, newest first: at most so many, with numbers below that one.
    Log(String, Option<u64>, usize),
    /// The entries of a log with numbers above that one, oldest first: at most so many.
    LogAfter(String, u64, usize),
}

/// What was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The text of a row.
    Row(Option<String>),
    /// Row and text.
    Rows(BTreeMap<String, String>),
    /// Number and text, in their order.
    Entries(Vec<(u64, String)>),
    /// Number, text, and the text of the row, in the order of their numbers.
    Described(Vec<(u64, String, Option<String>)>),
    /// A number of entries.
    Count(u64),
    /// As far as is known now.
    Memory {
        memory: Memory,
        /// Nothing says since when this store exists: it may have been emptied just now.
        emptied: bool,
    },
    /// JSON objects with `id` and `at` (milliseconds).
    Log(Vec<String>),
}

/// Several looks at one instant.
#[derive(Debug)]
pub struct Looked {
    /// The store's clock.
    pub at: Stamp,
    /// In the order in which they were asked for.
    pub found: Vec<Found>,
}

/// A condition of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The row has this text; `None`: there is no such row.
    Row { table: String, row: String, is: Option<String> },
    /// The row is there and begins with this text, which is not empty.
    Begins { table: String, row: String, with: String },
    /// What is known of the store's memory is this still.
    Memory(Memory),
    /// There is no row at all.
    Empty { table: String },
    /// The first entries of a list are these; when they are fewer than `most`, there are no others.
    First { list: String, most: usize, are: Vec<String> },
}

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A row has this text from now on.
    Set { table: String, row: String, text: String },
    /// A row is gone.
    Unset { table: String, row: String },
    /// A text is in the list, at this number; one that is there already moves.
    Add { list: String, number: u64, text: String },
    /// A text is in the list, behind all that joined any list under the same `counter` before; one that is there already stays.
    Join { list: String, counter: String, text: String },
    /// A text is not in the list.
    Strike { list: String, text: String },
    /// The list keeps its last entries only, so many.
    Cut { list: String, kept: usize },
    /// A JSON object is added to a log.
    Log(Line),
    /// An entry of another store is added behind those of a log, unchanged.
    Entry(Entry),
}

/// An entry of a log with the numbers and instants that another store gave it. That number is the last of `counter` from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which log.
    pub log: String,
    /// What numbers it.
    pub counter: String,
    pub id: u64,
    pub at: StoreTime,
    pub count: u64,
    pub until: Option<StoreTime>,
    /// Without the members that are named above, as in [`Line`].
    pub entry: String,
}

impl Entry {
    /// The whole JSON object.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`]: `entry` is no JSON object.
    pub fn text(&self) -> Result<String> {
        let Self { id, at, count, until, .. } = self;
        let until = until.map(|until| format!("\"until\":{},", until.0)).unwrap_or_default();
        Ok(format!("{{\"id\":{id},\"at\":{},\"count\":{count},{until}{}}}", at.0, self.inside()?))
    }

    /// What stands between the braces of `entry`.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn inside(&self) -> Result<&str> {
        let inside = self.entry.strip_prefix('{').and_then(|entry| entry.strip_suffix('}'));
        inside.ok_or_else(|| {
            StoreError::Corrupt(format!("{}: {:?} is no JSON object", self.log, self.entry))
        })
    }
}

/// A JSON object for a log. The store sets `id`, which is one more than the last of `counter`, and `at`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which log.
    pub log: String,
    /// What numbers it.
    pub counter: String,
    /// Without `id`, `at`, `count` and `until`.
    pub entry: String,
    /// How often it happened; the entry says so if it is more than once.
    pub count: u64,
    /// So many of the newest entries are kept, and fewer than [`SPARE`] more.
    pub kept: usize,
    /// It may be counted instead of written.
    pub fold: Option<Fold>,
}

/// What was written under the same key a short time before, and said the same, is written again instead: with its old `id` and `at`, with `count`,
/// how often in all, and `until`, when the last time was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// Of the keys of this log.
    pub key: String,
    /// What it says, without spaces. The newest entry under the key must say so, too.
    pub same: String,
    /// Milliseconds since `at`.
    pub within_ms: u64,
}

/// The table that knows which entry of a log was written under which key.
pub fn folds(log: &str) -> String {
    format!("{log}:folds")
}

/// A log may be cut only at each entry whose number is a multiple of this, of those that were added to it.
pub const SPARE: u64 = 64;

/// More keys than these are not remembered: then nothing is, and folding begins anew.
pub const FOLDS_KEPT: usize = 4_096;

/// The events for listeners, in the same step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tell {
    /// [`StoreEvent::Nodes`](super::events::StoreEvent::Nodes).
    Nodes,
    /// [`StoreEvent::Accounts`](super::events::StoreEvent::Accounts).
    Accounts,
    /// [`StoreEvent::Wake`](super::events::StoreEvent::Wake).
    Wake(Vec<Waiter>),
}

/// A change: done as a whole or not at all.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// All must hold.
    pub checks: Vec<Check>,
    /// The instant of the change must be in it.
    pub within: Option<Range<Stamp>>,
    /// Carried out in this order.
    pub writes: Vec<Write>,
    /// After all of it is written.
    pub tells: Vec<Tell>,
    /// Carrying it out twice would be wrong; never is it sent again when a connection broke. A plan whose conditions its own
    /// success breaks need not say so.
    pub once: bool,
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// All of it is written.
    Done,
    /// Nothing is written: a condition did not hold. Look again.
    Refused,
}

/// The port.
#[async_trait]
pub trait Records: Send + Sync {
    /// The audit entry that is to be written in the same step as what this handle is asked for; see
    /// [`Store::noting`](super::Store::noting).
    fn note(&self) -> Option<&AuditEntry>;

    /// The store's clock is not later than this at this moment, and hardly earlier; `None` as long as that is not known.
    fn latest(&self) -> Option<Stamp>;

    /// Looks at several things at one instant.
    async fn look(&self, looks: &[Look]) -> Result<Looked>;

    /// Carries a change out, if its conditions hold.
    async fn change(&self, plan: &Plan) -> Result<Changed> {
        Ok(self.change_and_look(plan, &[], &[]).await?.0)
    }

    /// The same, and looks at the same instant: at `done` behind the change, or at `refused` if there was none.
    async fn change_and_look(
        &self,
        plan: &Plan,
        done: &[Look],
        refused: &[Look],
    ) -> Result<(Changed, Looked)>;

    /// What this process remembers of rotations.
    fn turns(&self) -> &KnownTurns;
}

/// A store of one kind as one of any: what unit tests ask it for is what `core` does on it.
#[cfg(any(test, debug_assertions))]
#[doc(hidden)]
pub trait OfAnyKind: Records + Sized {
    fn rows(&self) -> &dyn Records {
        self
    }

    fn law(&self) -> &dyn super::engine::Engine
    where
        Self: super::engine::Engine,
    {
        self
    }
}

#[cfg(any(test, debug_assertions))]
impl<T: Records> OfAnyKind for T {}
