//! What people may do to jobs, nodes, sources, tasks, rotations and accounts: once, for page, API and command line.
//!
//! An operation checks who may do it and what must be true before, calls the store, and adds one entry to the audit. No other
//! room writes to the audit. This room prints nothing and knows neither HTTP nor exit codes: `web` and `cli` find out who acts
//! ([`Actor`]) and turn an [`OpsError`] into their answer.

pub mod accounts;
mod act;
mod actor;
pub mod alerts;
pub mod audit;
mod bound;
pub mod chain;
pub mod copy;
pub mod credentials;
pub mod drill;
mod error;
pub mod external;
pub mod jobs;
pub mod leases;
pub mod nodes;
pub mod quota;
pub mod rotations;
pub mod sources;
pub mod ticks;

pub use act::Act;
pub use actor::{Actor, Signature, operates, sees};
pub use bound::Bound;
pub use error::OpsError;

use serde::Serialize;

use soloist_domain::line::clean_line;
use soloist_domain::time::StoreTime;
use soloist_store::Store;
use soloist_store::journal::{AuditEntry, Journal as _, Kind};

/// What came of an operation.
pub type Result<T> = std::result::Result<T, OpsError>;

/// Longest reason that is kept, in characters.
const REASON_MAX: usize = 500;

/// Adds an act to the audit that changes nothing in the store by itself, or was done there before.
///
/// # Errors
/// [`OpsError::Unnoted`].
pub async fn note(
    store: &Store,
    by: &Signature,
    act: Act,
    target: &str,
    reason: Option<&str>,
) -> Result<()> {
    store.audit(&entry(by, act, target, reason)).await.map_err(OpsError::Unnoted)
}

/// Adds what was refused to the audit, `count` times. The caller is named as far as that is known: `unknown` else.
///
/// # Errors
/// [`OpsError::Unnoted`].
pub async fn note_refusal(
    store: &Store,
    by: (&str, &str),
    act: Act,
    target: &str,
    reason: Option<&str>,
    count: u64,
) -> Result<()> {
    let (who, from) = (by.0.to_owned(), by.1.to_owned());
    let (act, target) = (act.code().to_owned(), target.to_owned());
    let reason = reason.map(str::to_owned);
    let kind = Kind::Refusal;
    let (id, at, until) = (0, StoreTime(0), None);
    let entry = AuditEntry { id, at, who, from, act, target, reason, kind, count, until };
    store.audit(&entry).await.map_err(OpsError::Unnoted)
}

/// The store, whose next call is the act: its entry in the audit is written in the same atomic step.
fn noting(store: &Store, by: &Signature, act: Act, target: &str, reason: Option<&str>) -> Store {
    store.noting(entry(by, act, target, reason))
}

fn entry(by: &Signature, act: Act, target: &str, reason: Option<&str>) -> AuditEntry {
    let Signature { who, from, kind } = by.clone();
    tracing::info!(target: "audit", who, from, act = act.code(), kind = kind.as_str(), target, "act");
    let (act, target) = (act.code().to_owned(), target.to_owned());
    let reason = reason.map(str::to_owned);
    AuditEntry {
        id: 0,
        at: StoreTime(0),
        who,
        from,
        act,
        target,
        reason,
        kind,
        count: 1,
        until: None,
    }
}

/// Trims a reason; an empty one is none. Several lines become one.
fn reason(given: Option<&str>) -> Result<Option<String>> {
    let given = given.map(|text| text.replace(|c: char| c.is_control(), " "));
    let given = given.filter(|text| !text.trim().is_empty());
    given.map(|text| line("reason", &text, REASON_MAX)).transpose()
}

/// What people write for others to read, on one line.
///
/// # Errors
/// [`OpsError::Field`].
pub fn line(field: &'static str, text: &str, most: usize) -> Result<String> {
    clean_line(text, most).map_err(|error| OpsError::Field { field, what: error.detail() })
}

/// What the audit says of rules when no reason was given: what they are now, and under `was` what they were.
fn changed<S: Serialize>(now: S, was: Option<S>) -> String {
    #[derive(Serialize)]
    struct Changed<S> {
        #[serde(flatten)]
        now: S,
        #[serde(skip_serializing_if = "Option::is_none")]
        was: Option<S>,
    }
    // Numbers, names and words: nothing that JSON cannot hold.
    serde_json::to_string(&Changed { now, was }).unwrap_or_default()
}
