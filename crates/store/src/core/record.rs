//! A job as text, and back: the content of a record and of the lease beside it.
//!
//! JSON, because people read it with the store's own tools. What an older program wrote must stay readable: fields are added, with a default, and
//! never change their meaning; anything else is another schema.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::{Stored, StoredLease};
use crate::{Result, StoreError};
use soloist_domain::drill::Drill;
use soloist_domain::job::{
    Hold, JobRecord, LastExit, LastSwitch, LeaseRecord, Move, Next, Participant, RunRecord,
};
use soloist_domain::journal::RunEntry;
use soloist_domain::lease::Token;
use soloist_domain::log::LogKept;
use soloist_domain::name::{JobName, NodeName, Owner, RunId};
use soloist_domain::spent::Newest;
use soloist_domain::tick::Clock;
use soloist_domain::time::{StoreTime, millis};
use soloist_domain::transition::Job;

/// A job as it was read, with what a commit compares.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub head: String,
    pub body: String,
    /// The text of the lease; `None` when it is free.
    pub lease: Option<String>,
    /// The lease would outlive its own length: the store's clock was set back.
    pub overlong: bool,
    pub job: Job,
    pub history: Summary,
}

/// What the record says of the history, so that most transitions need not read that.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The newest run that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<RunEntry>,
    /// How many are listed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended: usize,
}

/// The text of a lease. Its order counts: a lease that is kept is compared up to `since`.
#[derive(Serialize, Deserialize)]
struct LeaseText {
    token: Token,
    /// The run under it that was reported.
    run: Option<RunId>,
    owner: Owner,
    node: NodeName,
    /// Milliseconds.
    ttl: u64,
    since: StoreTime,
}

const SINCE: &str = ",\"since\":";

impl LeaseText {
    fn of(lease: &LeaseRecord, run: Option<&RunId>) -> Self {
        Self {
            token: lease.token,
            run: run.cloned(),
            owner: lease.owner.clone(),
            node: lease.node.clone(),
            ttl: millis(lease.ttl),
            since: lease.since,
        }
    }

    fn lease(self, left: Duration) -> LeaseRecord {
        let ttl = Duration::from_millis(self.ttl);
        LeaseRecord {
            node: self.node,
            owner: self.owner,
            token: self.token,
            since: self.since,
            // More than the whole of it: the clock was set back; a lease never lasts longer than its ttl.
            expires_in: left.min(ttl),
            ttl,
        }
    }
}

/// The body of a record.
#[derive(Serialize, Deserialize)]
struct Body {
    #[serde(default, skip_serializing_if = "is_default")]
    participants: Vec<Participant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold: Option<Hold>,
    /// The newest lease, unless it was released. The lease beside the record says whether it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_exit: Option<LastExit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_success: Option<StoreTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_switch: Option<LastSwitch>,
    #[serde(default, skip_serializing_if = "is_default")]
    crashes: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
    #[serde(default, skip_serializing_if = "is_default")]
    given_up: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving: Option<Move>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drill: Option<Drill>,
    token: Token,
    #[serde(default, skip_serializing_if = "is_default")]
    released: Token,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_line: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    log_seq: u64,
    #[serde(default, skip_serializing_if = "LogKept::is_empty")]
    log_kept: LogKept,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock: Option<Box<Clock>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spent: Option<Box<Newest>>,
    #[serde(flatten)]
    history: Summary,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Case {
    /// Of a job as an engine keeps it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn read(name: &JobName, stored: Stored) -> Result<Self> {
        let corrupt = |what: &str, why: &dyn std::fmt::Display| {
            StoreError::Corrupt(format!("job {name}, {what}: {why}"))
        };
        let Stored { head, body, lease } = stored;
        let mut history = Summary::default();
        let mut job = if head.is_empty() {
            Job::untouched(name.clone())
        } else {
            let version = version(&head).ok_or_else(|| corrupt("first line", &head))?;
            let read: Body =
                serde_json::from_str(&body).map_err(|error| corrupt("record", &error))?;
            history = read.history;
            Job {
                released: read.released,
                log: read.log_kept,
                lapsed: read.lease.map(|lease| lease.lease(Duration::ZERO)),
                record: JobRecord {
                    name: name.clone(),
                    version,
                    participants: read.participants,
                    hold: read.hold,
                    lease: None,
                    run: read.run,
                    last_exit: read.last_exit,
                    last_success: read.last_success,
                    last_switch: read.last_switch,
                    crashes: read.crashes,
                    next: read.next,
                    given_up: read.given_up,
                    moving: read.moving,
                    drill: read.drill,
                    token: read.token,
                    last_line: read.last_line,
                    log_seq: read.log_seq,
                    clock: read.clock,
                    spent: read.spent,
                },
            }
        };
        let mut overlong = false;
        let mut text = None;
        if let Some(StoredLease { text: written, left }) = lease {
            let read: LeaseText =
                serde_json::from_str(&written).map_err(|error| corrupt("lease", &error))?;
            overlong = left > Duration::from_millis(read.ttl);
            job.record.lease = Some(read.lease(left));
            job.lapsed = None;
            text = Some(written);
        }
        Ok(Self { head, body, lease: text, overlong, job, history })
    }

    /// What a commit compares of the lease.
    pub fn lease_begins(&self) -> &str {
        let text = self.lease.as_deref().unwrap_or_default();
        // The token alone tells leases apart.
        text.split_inclusive(',').next().unwrap_or_default()
    }

    /// When it was written, by the store's clock.
    pub fn written(&self) -> Option<StoreTime> {
        written(&self.head)
    }
}

/// When the record under that head was written, by the store's clock.
pub(super) fn written(head: &str) -> Option<StoreTime> {
    let micros: i64 = head.split_once(' ')?.1.parse().ok()?;
    Some(StoreTime(micros.div_euclid(1_000)))
}

/// The version in the head of a record.
pub fn version(head: &str) -> Option<u64> {
    head.split_once(' ')?.0.parse().ok()
}

/// The body of a record.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn body(job: &Job, history: &Summary) -> Result<String> {
    let Job { record, lapsed, released, log } = job;
    let run = record.run.as_ref();
    let lease = record.lease.as_ref().or(lapsed.as_ref());
    let body = Body {
        participants: record.participants.clone(),
        hold: record.hold.clone(),
        lease: lease.map(|lease| LeaseText::of(lease, None)),
        run: run.cloned(),
        last_exit: record.last_exit.clone(),
        last_success: record.last_success,
        last_switch: record.last_switch.clone(),
        crashes: record.crashes,
        next: record.next,
        given_up: record.given_up,
        moving: record.moving.clone(),
        drill: record.drill.clone(),
        token: record.token,
        released: *released,
        last_line: record.last_line.clone(),
        log_seq: record.log_seq,
        log_kept: log.clone(),
        clock: record.clock.clone(),
        spent: record.spent.clone(),
        history: history.clone(),
    };
    text(&record.name, &body)
}

/// The text of the lease of `job`, if it has one: with the run under it.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn lease_text(job: &Job) -> Result<Option<String>> {
    let Some(lease) = &job.record.lease else { return Ok(None) };
    let run = job.record.run.as_ref().filter(|run| run.token == lease.token);
    text(&job.record.name, &LeaseText::of(lease, run.map(|run| &run.id))).map(Some)
}

/// How the text of a lease begins that is kept: all but since when it is.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn kept_text(
    name: &JobName,
    lease: &LeaseRecord,
    run: Option<&RunId>,
) -> Result<String> {
    let mut whole = text(name, &LeaseText::of(lease, run))?;
    whole.truncate(whole.rfind(SINCE).map_or(whole.len(), |at| at + SINCE.len()));
    Ok(whole)
}

/// What the lease under `text` says, with `left` of it.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn lease(name: &JobName, text: &str, left: Duration) -> Result<LeaseRecord> {
    let read: LeaseText = serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt(format!("lease of {name}: {error}")))?;
    Ok(read.lease(left))
}

/// Whose lease the text is of, and how long that is; a text may end behind the word `since`.
pub fn lease_terms(text: &str) -> Option<(Owner, Duration)> {
    let whole = if text.ends_with(SINCE) { format!("{text}0}}") } else { text.to_owned() };
    let read: LeaseText = serde_json::from_str(&whole).ok()?;
    Some((read.owner, Duration::from_millis(read.ttl)))
}

/// The token that the text of a lease, or the body of a record, names; that of nothing is the oldest.
pub fn token_in(text: &str) -> Token {
    #[derive(Deserialize)]
    struct Minted {
        token: Token,
    }
    serde_json::from_str(text).map_or(Token(0), |Minted { token }| token)
}

/// The JSON of `value`.
pub(super) fn text(name: &JobName, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Corrupt(format!("job {name}: {error}")))
}
