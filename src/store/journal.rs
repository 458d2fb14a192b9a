//! The journal: what runs did and said, and who did what to Soloist.
//!
//! Writes about a run carry its token and are refused when a newer one exists.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Result;
use crate::domain::job::{Exit, Progress, RunEnd};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, Owner, RunId};
use crate::domain::time::{Began, StoreTime};

/// How many lines of output are kept for a job.
pub const LOG_LINES: usize = 2_000;
/// How many ended runs are kept for a job.
pub const RUNS_KEPT: usize = 1_000;
/// How many audit entries are kept.
pub const AUDIT_KEPT: usize = 100_000;

/// A run that began.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in RunRecord")]
pub struct Started {
    pub job: JobName,
    pub token: Token,
    pub run: RunId,
    pub node: NodeName,
    pub pid: u32,
    pub began: Began,
}

/// What follows a run, decided by the domain; instants are made by the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Stopped, lost or fenced: whoever may try does so at once. `crashes` and `next` are cleared.
    Nothing,
    /// Exit 0: again after this long.
    Repeat(Duration),
    /// Exit 0 and `repeat = "never"`: every participation is cleared, the job is off.
    Done,
    /// Crashed: again after `wait`.
    Retry {
        /// In a row, this one counted.
        crashes: u32,
        /// From now.
        wait: Duration,
    },
    /// Crashed, attempts used up.
    GiveUp {
        /// In a row, this one counted.
        crashes: u32,
    },
}

/// A run whose whole process tree is proved gone. Recording it releases the lease in the same step.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in RunRecord")]
pub struct Ended {
    pub job: JobName,
    pub owner: Owner,
    pub token: Token,
    pub run: RunId,
    pub exit: Exit,
    pub end: RunEnd,
    /// Processes that had to be killed besides the script's first one.
    pub processes_killed: u32,
    pub then: Then,
    /// When it started, for a store that does not know (any more); `None` when that is not known here either.
    pub began: Option<Began>,
}

/// A run in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the API shows them under the same names")]
pub struct RunEntry {
    pub id: RunId,
    pub job: JobName,
    pub node: NodeName,
    pub token: Token,
    pub started: StoreTime,
    /// `None`: it is going on.
    pub ended: Option<StoreTime>,
    pub exit: Exit,
    pub end: Option<RunEnd>,
    pub processes_killed: u32,
    /// How many runs alike this stands for: one after the other on one node, each with exit code 0, without output and
    /// without progress. It begins with the first and ends with the last of them, and has the id and token of the last.
    /// 0: one run of which more was seen.
    #[serde(default)]
    pub folded: u32,
}

/// One line of a script's output, before the store has numbered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// `stdout`, `stderr`, or `soloist` for remarks of the node itself.
    pub stream: Stream,
    /// At most 4,096 bytes, valid UTF-8, without the line end.
    pub text: String,
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stream {
    Stdout,
    Stderr,
    Soloist,
}

impl Stream {
    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Soloist => "soloist",
        }
    }
}

/// A kept line of output. `seq` grows by one a line, per job, across runs and nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the API shows them under the same names")]
pub struct LogLine {
    pub seq: u64,
    pub at: StoreTime,
    pub run: RunId,
    pub node: NodeName,
    pub stream: Stream,
    pub text: String,
}

/// Output and progress of a run since the last report.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in RunRecord")]
pub struct Output {
    pub job: JobName,
    pub token: Token,
    pub run: RunId,
    pub node: NodeName,
    pub lines: Vec<NewLine>,
    /// Newest progress, if it changed.
    pub progress: Option<Progress>,
}

/// One act of a person or program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Grows; 0 before the store has numbered it.
    pub id: u64,
    /// Store's clock; set by the store.
    pub at: StoreTime,
    /// Account name, or what stands for it (`link`, `cli:root`).
    pub who: String,
    /// Address or terminal it came from.
    pub from: String,
    /// `participation.on`, `job.hold`, `login`, `login.failed`, `user.add`, ...
    pub act: String,
    /// Job, node or account it was done to.
    pub target: String,
    /// Why, as the actor said.
    pub reason: Option<String>,
}

/// Transitions and readings of the journal.
#[expect(async_fn_in_trait, reason = "never used as a trait object; the enum Store forwards")]
pub trait Journal {
    /// Records that a run began; returns when, by the store's clock. Publishes `run_started`.
    ///
    /// Recording the same start again changes nothing, unless the store has forgotten it: then the run is shown as before.
    /// A run of an older token that the record still shows is closed as lost, and `lease_lost` is published first.
    ///
    /// # Errors
    /// [`super::StoreError::Stale`], [`super::StoreError::Unavailable`].
    async fn record_started(&self, started: &Started) -> Result<StoreTime>;

    /// Records that a run was told to stop and is killed after `grace`. Publishes `run_progressed`.
    ///
    /// # Errors
    /// [`super::StoreError::Stale`], [`super::StoreError::Unavailable`].
    async fn record_stopping(&self, job: &JobName, token: Token, grace: Duration) -> Result<()>;

    /// Appends lines (numbering them) and sets progress, in one step. Keeps the newest [`LOG_LINES`] lines.
    /// Sets `last_line`, `last_output`, `log_seq`. Publishes `run_progressed`.
    ///
    /// # Errors
    /// [`super::StoreError::Stale`], [`super::StoreError::Unavailable`].
    async fn record_output(&self, output: &Output) -> Result<()>;

    /// Records the end of a run *and releases its lease*. Folds runs alike ([`RunEntry::folded`]). Keeps [`RUNS_KEPT`]
    /// entries: the oldest that stands for idle runs goes first, then the oldest. Recording the same end again is harmless. Works
    /// without a `record_started` (spawn failed, or the report of the start was lost) and when the lease has
    /// run out unclaimed. Publishes `run_ended`, then `lease_released`; `participation_changed` on [`Then::Done`].
    ///
    /// # Errors
    /// [`super::StoreError::Stale`] (a newer holder has closed this run as lost), [`super::StoreError::Unavailable`].
    async fn record_ended(&self, ended: &Ended) -> Result<()>;

    /// Runs, newest first, the present one included, at most `limit`, older than run id `before` if given (none, when
    /// that one is not kept). Newest is what the store saw last: the ids carry the clocks of nodes.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn runs(
        &self,
        job: &JobName,
        before: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<RunEntry>>;

    /// Lines with `seq` greater than `after`, oldest first, at most `limit`. With `after` `None`: the newest `limit`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn log(&self, job: &JobName, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>>;

    /// Appends an act; `id` and `at` are set by the store.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn audit(&self, entry: &AuditEntry) -> Result<()>;

    /// Acts, newest first, with an id below `before` if given; only those on `target` if given.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn audits(
        &self,
        target: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>>;
}
