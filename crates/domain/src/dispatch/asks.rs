//! What clients put to dispatch, and the answers: tasks, results, requests for work.
//!
//! Data alone. What is answered is decided in `exchange.rs` and `acts.rs`; keys, payloads and views are the store's.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::task::TaskOutcome;
use crate::lease::Token;
use crate::name::{CollectorName, RequestId, SourceName, Waiter};
use crate::time::Stamp;

/// How many finished tasks are remembered, over all sources: so long the same key is still the same task. A store may forget those beyond
/// it [together](DONE_BEYOND).
pub const DONE_KEPT: u64 = 10_000;
/// Fewer finished tasks than this are remembered beyond [`DONE_KEPT`].
pub const DONE_BEYOND: u64 = 100;
/// Most tasks in one claim, and most results in one report.
pub const BATCH: u32 = 100;
/// Longest key of a task, in bytes.
pub const LONGEST_KEY: usize = 2_048;
/// Longest payload, in bytes of JSON.
pub const LONGEST_PAYLOAD: usize = 64 * 1024;
/// Longest error that is kept, in bytes.
pub const LONGEST_ERROR: usize = 1_000;
/// How many of a task's failures are kept.
pub const HISTORY_KEPT: usize = 20;

/// The id of a task: made of its source and key, so the same key is the same task on every node and in every store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub String);

impl TaskId {
    /// Of `key` in `source`: 32 hexadecimal digits.
    #[must_use]
    pub fn of(source: &SourceName, key: &str) -> Self {
        Self(digest(&format!("{source}\n{key}")))
    }
}

/// The owner of a claim: 32 hexadecimal digits made of the credential that its maker showed. So no other client can guess it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimOwner(String);

impl ClaimOwner {
    /// Of the client that has this secret: the hash of a credential, or a random text of the process's own.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        Self(digest(&format!("claims of {secret}")))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of a claim: its owner, then a digest of its collector and request. The same request of the same owner is the
/// same claim, that of another owner is another claim. The id shows the owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimId(pub String);

impl ClaimId {
    /// Of this request: 64 hexadecimal digits.
    #[must_use]
    pub fn of(owner: &ClaimOwner, collector: &CollectorName, request: &RequestId) -> Self {
        Self(format!("{}{}", owner.0, digest(&format!("{collector} {request}"))))
    }

    /// Whether it is a claim of this owner.
    #[must_use]
    pub fn is_of(&self, owner: &ClaimOwner) -> bool {
        // How much of it is right is not told by the time that this takes: what is compared is a digest of both.
        let own = self.0.get(..owner.0.len()).unwrap_or_default();
        digest(own) == digest(&owner.0)
    }

    /// The part that names the owner.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.0.get(..32).unwrap_or_default()
    }
}

fn digest(text: &str) -> String {
    use sha2::Digest as _;
    let mut digits = String::with_capacity(32);
    for byte in sha2::Sha256::digest(text).iter().take(16) {
        let halves = [byte >> 4, byte & 0xf];
        digits.extend(halves.iter().filter_map(|half| char::from_digit(u32::from(*half), 16)));
    }
    digits
}

/// A task to be put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Unique within its source: 1 to [`LONGEST_KEY`] bytes, no control characters.
    pub key: String,
    /// Which must exist.
    pub source: SourceName,
    /// JSON text, at most [`LONGEST_PAYLOAD`] bytes.
    pub payload: String,
    /// 0 to 9; 9 is the most urgent.
    pub priority: u8,
    /// Not before this.
    pub at: Option<Stamp>,
    /// Again, this long after each `done`.
    pub every: Option<Duration>,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Of which task.
    pub id: TaskId,
    /// Under which lease.
    pub token: Token,
    /// How it ended.
    pub outcome: TaskOutcome,
    /// For [`TaskOutcome::Retry`]: instead of the backoff.
    pub delay: Option<Duration>,
    /// What went wrong: one line, at most [`LONGEST_ERROR`] bytes.
    pub error: Option<String>,
}

/// What came of a [`Report`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reported {
    /// Accepted; a report repeated because its answer was lost is accepted again and changes nothing.
    Ok,
    /// The lease had ended, or a newer one exists: nothing was changed.
    Stale,
    /// No such task (or one that was done so long ago that it was forgotten).
    Unknown,
}

/// A request for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimAsk {
    /// Who asks, and alone may extend, give back and report what is granted.
    pub owner: ClaimOwner,
    /// For which collector.
    pub collector: CollectorName,
    /// The same one gets the same answer, for as long as the claim's lease (a minute, for nothing).
    pub request: RequestId,
    /// At most so many tasks, 1 to [`BATCH`].
    pub max: u32,
    /// From these sources only; empty: from all.
    pub sources: Vec<SourceName>,
    /// Should nothing be granted, this one waits until then: it is woken once, when it is its turn, by
    /// [`Write::Wake`](super::Write::Wake). `None`: a final answer, which is remembered under `request`.
    pub wait: Option<(Waiter, Duration)>,
}

impl ClaimAsk {
    /// Of the claim that this is, should anything be granted.
    #[must_use]
    pub fn id(&self) -> ClaimId {
        ClaimId::of(&self.owner, &self.collector, &self.request)
    }
}

/// Results, and the next request, in one step and one round trip.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// In order; at most [`BATCH`].
    pub reports: Vec<Report>,
    /// Accept only results of tasks in claims of this owner; others are stale. `None`: of all, for a guard, which has the
    /// store's own credentials.
    pub only: Option<ClaimOwner>,
    /// After the results.
    pub claim: Option<ClaimAsk>,
}

/// The answer to [`extend`](super::extend).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extended {
    /// Still held, for another lease from now, as long as each was granted for.
    pub kept: Vec<TaskId>,
    /// Not any more: stop working on them. Finished ones are in neither.
    pub lost: Vec<TaskId>,
    /// The earliest end of those kept.
    pub lease_until: Option<Stamp>,
}

/// Something that went wrong with a task, or brought it back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Past {
    /// When.
    pub at: Stamp,
    /// What.
    pub event: PastEvent,
    /// In which attempt.
    pub attempt: u32,
    /// Which collector holds it.
    pub collector: Option<CollectorName>,
    /// As reported.
    pub error: Option<String>,
}

/// See [`Past`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PastEvent {
    Retried,
    Expired,
    Died,
    Revived,
}
