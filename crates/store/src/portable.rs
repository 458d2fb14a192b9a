//! The port that `copy/` needs to copy a store.
//!
//! Jobs and records are copied through the ports of [`engine`](super::engine) and [`records`](super::records). Sources and tasks have tables of their
//! own in SQL and scripts in Redis, so they have a plain form here: the content of a store without its indexes. A rotation is copied as everybody sees
//! it (`core/rotation/fill.rs`).
//!
//! No other process uses either store meanwhile (`copy/check.rs`), so nothing here is one step with anything else, and nothing is decided. A target was
//! empty, and is filled once: a process without an answer empties the target and begins again.

#![allow(missing_docs, reason = "rows as they are kept")]

use async_trait::async_trait;

use super::Result;
use super::dispatch::{CollectorView, Past, TaskId};
use soloist_domain::dispatch::{Source, Task};
use soloist_domain::lease::Token;
use soloist_domain::name::JobName;
use soloist_domain::time::Stamp;

/// Tasks, entries, lines or rows that are read or written at once.
pub const AT_ONCE: usize = 200;

/// A source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSource {
    pub source: Source,
    /// Not smaller than any token of its tasks.
    pub token: Token,
    /// The starts that its window may count, oldest first: one for each task.
    pub starts: Vec<Stamp>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    pub task: Task,
    pub key: String,
    pub payload: String,
    /// Oldest first.
    pub history: Vec<Past>,
}

impl StoredTask {
    /// How many bytes people wrote.
    pub fn size(&self) -> usize {
        let errors = self.history.iter().filter_map(|past| past.error.as_ref()).map(String::len);
        self.key.len() + self.payload.len() + errors.sum::<usize>()
    }
}

/// Where a reader of tasks is. What the numbers mean is the store's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bookmark {
    pub queue: usize,
    pub behind: i64,
}

/// The port.
#[async_trait]
pub trait Portable: Send + Sync {
    /// Every job that has a record, by name; leases of programs and commands, too.
    async fn every_job(&self) -> Result<Vec<JobName>>;

    /// Every source: those that can be served first, in the order of their turns.
    async fn every_source(&self) -> Result<Vec<StoredSource>>;

    /// The next tasks, about [`AT_ONCE`], and where to continue; `None`: there are no others.
    async fn next_tasks(&self, from: Bookmark) -> Result<(Vec<StoredTask>, Option<Bookmark>)>;

    /// Writes how far sources have come, which were made with their rules just now.
    async fn fill_sources(&self, sources: &[StoredSource]) -> Result<()>;

    /// Writes tasks, none of which is in hand. Their sources count them already.
    async fn fill_tasks(&self, tasks: &[StoredTask]) -> Result<()>;

    /// Says of tasks that are there in which order they were done, the first one first.
    async fn fill_done(&self, done: &[TaskId]) -> Result<()>;

    /// Writes when collectors were seen.
    async fn fill_collectors(&self, collectors: &[CollectorView]) -> Result<()>;

    /// Forgets everything but what the store says of itself, and the mark of the copy.
    async fn empty(&self) -> Result<()>;
}
