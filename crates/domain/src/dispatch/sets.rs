//! What a transition looks at, as sets of records, and what is missing from them.
//!
//! A store begins with nothing but the [`Book`] and calls the act. As long as that says [`Halt::Need`], the store loads what is
//! needed and calls again: the same act on the same sets gives the same answer, so nothing is done twice. A store may load
//! more and earlier. What is loaded is bounded by what was asked: by tasks that are named, handed out or overdue, never by
//! how many a source has. The commit depends on all that was loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::asks::{ClaimId, TaskId};
use super::record::{Book, Claim, Recent, Source, Task};
use crate::name::{SourceName, Waiter};

/// What is loaded. `None` in a map: there is no such record.
#[derive(Debug, Clone, Default)]
pub struct Sets {
    /// Always loaded.
    pub book: Book,
    /// By name.
    pub sources: BTreeMap<SourceName, Option<Source>>,
    /// By id, also those that indexes below name.
    pub tasks: BTreeMap<TaskId, Option<Task>>,
    /// By id.
    pub claims: BTreeMap<ClaimId, Option<Claim>>,
    /// Starts later than `now - span`, by source and span.
    pub recent: BTreeMap<(SourceName, Duration), Recent>,
    /// What the clock has made due.
    pub overdue: Option<Overdue>,
    /// The first sources of the ring, as it was before the transition: as many as were asked for, if there are so many.
    pub ring: Option<(usize, Vec<SourceName>)>,
    /// The first ready tasks, by source.
    pub heads: BTreeMap<SourceName, Vec<TaskId>>,
    /// Of the sources that have ready tasks and are shut, those that may open first.
    pub shut: Option<Vec<SourceName>>,
    /// The tasks whose leases end first, by source.
    pub ends: BTreeMap<SourceName, Vec<TaskId>>,
    /// The tasks that are due first, by source; `None`: of all sources.
    pub dues: BTreeMap<Option<SourceName>, Vec<TaskId>>,
    /// The longest waiters, by source; `None`: those that wait for any. Without waiters whose time is over.
    pub queues: BTreeMap<Option<SourceName>, Vec<Waiting>>,
}

/// What is due at the instant of the transition, as it was before; the records are loaded with it, and the sources of
/// the tasks.
#[derive(Debug, Clone, Default)]
pub struct Overdue {
    /// Leased tasks whose lease is over: the earliest end first, of one end the smallest token.
    pub leases: Vec<TaskId>,
    /// Due tasks whose instant has come: the earliest first, of one instant the oldest task.
    pub due: Vec<TaskId>,
    /// Sources that open by now, the earliest first.
    pub opens: Vec<SourceName>,
    /// Sources with promises that are over.
    pub lapsed: Vec<SourceName>,
}

/// A waiter in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Lower came earlier, over all queues.
    pub place: u64,
    /// Who.
    pub waiter: Waiter,
}

/// What must be loaded before the transition can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Records by their names.
    Records(Wanted),
    /// Starts of these sources later than `now - span`.
    Recent(BTreeSet<(SourceName, Duration)>),
    /// At most so many of each kind that are due.
    Overdue(u32),
    /// So many sources of the ring, with their records.
    Ring(usize),
    /// So many ready tasks of each source, in the order of their places, with their records.
    Heads(BTreeMap<SourceName, usize>),
    /// Sources that are shut, with their records: so many of those that open by themselves, the earliest first; so many of
    /// those at their cap; one that is paused.
    Shut(usize),
    /// So many leased tasks of each source, the earliest end first; so many due tasks, the earliest first; with their
    /// records.
    Firsts {
        /// Leased.
        ends: BTreeMap<SourceName, usize>,
        /// Due; `None`: over all sources.
        dues: BTreeMap<Option<SourceName>, usize>,
    },
    /// So many of those who wait, the longest first, for each source; `None`: who wait for any.
    Queues(BTreeMap<Option<SourceName>, usize>),
}

/// Records by their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Sources, each with its [recent](Sets::recent) starts if it has a window.
    pub sources: BTreeSet<SourceName>,
    /// Tasks, best with their sources and claims.
    pub tasks: BTreeSet<TaskId>,
    /// Claims, best with their tasks.
    pub claims: BTreeSet<ClaimId>,
}

impl Wanted {
    /// Nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { sources, tasks, claims } = self;
        sources.is_empty() && tasks.is_empty() && claims.is_empty()
    }
}

/// Why a transition has no answer. Nothing is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// That must be loaded first; never empty.
    Need(Vec<Need>),
    /// There is no such source.
    NoSource(SourceName),
    /// There is no such task.
    NoTask(TaskId),
    /// There is no such claim, or it is another's.
    NoClaim(ClaimId),
}

impl From<Need> for Halt {
    fn from(need: Need) -> Self {
        Self::Need(vec![need])
    }
}
