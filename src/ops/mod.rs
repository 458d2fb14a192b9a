//! What people may do to jobs, nodes, sources, tasks, rotations and accounts: once, for page, API and command line.
//!
//! An operation checks who may do it and what must be true before, calls the store, and adds one entry to the audit. No other
//! room writes to the audit. This room prints nothing and knows neither HTTP nor exit codes: `web` and `cli` find out who acts
//! ([`Actor`]) and turn an [`OpsError`] into their answer.

pub mod accounts;
mod act;
mod actor;
mod error;
pub mod external;
pub mod jobs;
pub mod nodes;
pub mod rotations;
pub mod sources;

pub use act::Act;
pub use actor::{Actor, Bound, Signature, operates};
pub use error::OpsError;

use crate::domain::time::StoreTime;
use crate::store::Store;
use crate::store::journal::{AuditEntry, Journal as _};

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

/// The store, whose next call is the act: its entry in the audit is written in the same atomic step.
fn noting(store: &Store, by: &Signature, act: Act, target: &str, reason: Option<&str>) -> Store {
    store.noting(entry(by, act, target, reason))
}

fn entry(by: &Signature, act: Act, target: &str, reason: Option<&str>) -> AuditEntry {
    let Signature { who, from } = by.clone();
    tracing::info!(who, from, act = act.code(), target, "act");
    let (act, target) = (act.code().to_owned(), target.to_owned());
    let reason = reason.map(str::to_owned);
    AuditEntry { id: 0, at: StoreTime(0), who, from, act, target, reason }
}

/// Trims a reason; an empty one is none.
fn reason(given: Option<&str>) -> Result<Option<String>> {
    let given = given.map(str::trim).filter(|text| !text.is_empty());
    if given.is_some_and(|text| text.chars().count() > REASON_MAX) {
        let what = format!("is too long: use at most {REASON_MAX} characters");
        return Err(OpsError::Field { field: "reason", what });
    }
    // One line, nothing invisible: it is shown to others and written to logs.
    Ok(given.map(|text| text.replace(|c: char| c.is_control(), " ")))
}
