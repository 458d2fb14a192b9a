//! The journal: what runs did and said, and who did what to Soloist.
//!
//! Writes about a run carry its token and are refused when a newer one exists.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Result;
pub use soloist_domain::journal::{
    Ended, LOG_LINES, LogLine, NewLine, Output, RUNS_KEPT, RunEntry, Started, Stream, Then,
};
use soloist_domain::lease::Token;
pub use soloist_domain::log::{LogBounds, LogFilter, LogFrom, LogPage};
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::StoreTime;

/// So long an act that is done again in the same way is counted in its first entry ([`AuditEntry::count`]).
pub const FOLDED_WITHIN: Duration = Duration::from_secs(60);

/// Who is behind an entry of the audit. Each kind is kept by itself, so that no program and no stranger can push out what people did.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A person at a page or a terminal.
    #[default]
    Person,
    /// A program with an API token.
    Program,
    /// A person or a program that was not let in, or not allowed.
    Refusal,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Person, Self::Program, Self::Refusal];

    /// As in the audit.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Program => "program",
            Self::Refusal => "refusal",
        }
    }

    /// How many entries are kept; of refusals so many of accounts and so many of strangers.
    #[must_use]
    pub fn kept(self) -> usize {
        match self {
            Self::Person | Self::Program => 100_000,
            Self::Refusal => 20_000,
        }
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| "use person, program or refusal".to_owned())
    }
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
    /// An entry that does not say is of a person.
    #[serde(default)]
    pub kind: Kind,
    /// How often it was done within [`FOLDED_WITHIN`] of `at`, or how many refusals it stands for.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub count: u64,
    /// When it was done last; `None`: once only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<StoreTime>,
}

fn once() -> u64 {
    1
}

fn is_once(count: &u64) -> bool {
    *count == 1
}

impl AuditEntry {
    /// A refusal of somebody who showed nothing that was good here: any number of them can be brought about from outside.
    #[must_use]
    pub fn is_of_strangers(&self) -> bool {
        let acts = ["login.failed", "login.throttled", "refused.token", "refused.more"];
        self.kind == Kind::Refusal && (self.who == "unknown" || acts.contains(&self.act.as_str()))
    }

    /// Of whom on what, and what was done: an entry is counted in the newest of the first if the second is the same there. Acts of people
    /// are never. So what was done last is always the newest entry.
    ///
    /// The reason is part of it (other rules are another act), but for refusals, and for blocks, which differ in milliseconds.
    #[must_use]
    pub fn alike(&self) -> Option<[String; 2]> {
        let varies = self.kind == Kind::Refusal || self.act == "source.block";
        let reason = self.reason.as_deref().filter(|_| !varies).unwrap_or_default();
        if self.kind == Kind::Person {
            return None;
        }
        Some([digest(&[&self.who, &self.from, &self.target]), digest(&[&self.act, reason])])
    }
}

/// 128 bits of it, in hexadecimal digits.
fn digest(parts: &[&str]) -> String {
    let mut sum = Sha256::new();
    for part in parts {
        sum.update(part.len().to_be_bytes());
        sum.update(part);
    }
    sum.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Which entries of the audit are asked for: those that everything here admits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of these kinds; empty: of all.
    pub kinds: Vec<Kind>,
    /// By this account.
    pub who: Option<String>,
    /// This act, or, with `*` at the end, every act that begins so.
    pub act: Option<String>,
    /// On this.
    pub target: Option<String>,
    /// Not before this.
    pub from: Option<StoreTime>,
    /// Before this.
    pub to: Option<StoreTime>,
    /// Each of them holds for the acts that begin so, and for no others.
    pub within: Vec<Within>,
}

/// Acts that begin so, only on these.
pub type Within = (&'static str, BTreeSet<String>);

impl AuditFilter {
    /// Whether it asks for this kind.
    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Whether it asks for this entry.
    #[must_use]
    pub fn admits(&self, entry: &AuditEntry) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|it| it == text);
        let act = match self.act.as_deref().map(|act| (act, act.strip_suffix('*'))) {
            None => true,
            Some((_, Some(begins))) => entry.act.starts_with(begins),
            Some((act, None)) => entry.act == act,
        };
        let last = entry.until.unwrap_or(entry.at);
        act && self.has(entry.kind)
            && is(&self.who, &entry.who)
            && is(&self.target, &entry.target)
            && self.from.is_none_or(|from| last >= from)
            && self.to.is_none_or(|to| entry.at < to)
            && self
                .within
                .iter()
                .all(|(begins, on)| !entry.act.starts_with(begins) || on.contains(&entry.target))
    }
}

/// Some entries of the audit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// In the order that was asked for.
    pub entries: Vec<AuditEntry>,
    /// Where to continue: the id of the last entry that was examined. `None`: there is nothing else.
    pub next: Option<u64>,
}

/// Transitions and readings of the journal.
#[async_trait]
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

    /// Appends lines (numbering them) and sets progress, in one step. Lets the oldest lines go that are
    /// over [`LogBounds`].
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

    /// Lines with `seq` greater than `after`, oldest first, at most `limit` and [`LOG_LINES`]. With `after` `None`: the newest `limit`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn log(&self, job: &JobName, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>>;

    /// Lines that `filter` admits, at most `limit` and [`LOG_LINES`]. A page may have fewer, even none, and still a next one: only so
    /// many lines are examined for it.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn log_page(
        &self,
        job: &JobName,
        filter: &LogFilter,
        from: LogFrom,
        limit: usize,
    ) -> Result<LogPage>;

    /// Appends an act; `id` and `at` are set by the store.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn audit(&self, entry: &AuditEntry) -> Result<()>;

    /// Entries, newest first, with an id below `before` if given, at most `limit`. A page may have fewer, even none, and still a next
    /// one: only so many entries are examined for it.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<AuditPage>;

    /// The same, oldest first, with an id above `after`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn audit_after(
        &self,
        filter: &AuditFilter,
        after: u64,
        limit: usize,
    ) -> Result<AuditPage>;

    /// Entries of all kinds, newest first, with an id below `before` if given; only those on `target` if given.
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
