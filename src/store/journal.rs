//! The journal: what runs did and said, and who did what to Soloist.
//!
//! Writes about a run carry its token and are refused when a newer one exists.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Result;
pub use crate::domain::journal::{
    Ended, LOG_LINES, LogLine, NewLine, Output, RUNS_KEPT, RunEntry, Started, Stream, Then,
};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, RunId};
use crate::domain::time::StoreTime;

/// How many audit entries are kept.
pub const AUDIT_KEPT: usize = 100_000;

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
