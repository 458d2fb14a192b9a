//! Look, decide, change: how every transition without a job is carried out on any [`Records`].
//!
//! A transition decides on one look, at one instant. It names what must not have changed since then. If that has changed, the look and the decision
//! are repeated.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::journal::{AuditEntry, FOLDED_WITHIN, Kind};
use crate::records::{Changed, Check, Fold, Found, Line, Look, Looked, Plan, Records, Write};
use crate::{Result, StoreError};
use soloist_domain::time::millis;

/// How often a transition is decided anew. One of those who write at once always succeeds.
const ATTEMPTS: usize = 256;

/// The log of what people did, and what numbers the entries of all kinds.
pub(super) const AUDIT: &str = "audit";

/// Reads `looks`, lets `transition` decide, and writes the result; returns its answer.
///
/// The transition is called again with what is newest when its plan was refused. Without a plan nothing is written. The audit entry
/// that goes with the call ([`Records::note`]) is written in the same step as the plan.
///
/// # Errors
/// Those of the transition, and [`StoreError::Unavailable`].
pub(super) async fn decide<T: Send>(
    records: &dyn Records,
    looks: &[Look],
    transition: impl Fn(&Looked) -> Result<(T, Option<Plan>)> + Sync,
) -> Result<T> {
    let mut answer = None;
    carry_out(records, looks, &mut |looked| {
        let (said, plan) = transition(looked)?;
        answer = Some(said);
        Ok(plan)
    })
    .await?;
    answer.ok_or_else(|| too_often(looks))
}

/// As [`decide`], which keeps the answer: what is decided last counts.
async fn carry_out(
    records: &dyn Records,
    looks: &[Look],
    transition: &mut (dyn FnMut(&Looked) -> Result<Option<Plan>> + Send),
) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let looked = records.look(looks).await?;
        let Some(mut plan) = transition(&looked)? else { return Ok(()) };
        if let Some(entry) = records.note() {
            plan.writes.push(Write::Log(noted(entry)?));
            plan.once = true;
        }
        match records.change(&plan).await? {
            Changed::Done => return Ok(()),
            Changed::Refused => {}
        }
    }
    Err(too_often(looks))
}

fn too_often(looks: &[Look]) -> StoreError {
    let what = looks.first().map(|look| format!("{look:?}")).unwrap_or_default();
    StoreError::Unavailable(format!("{what} is changed too often at this moment: try again"))
}

/// What writes `entry` down.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn noted(entry: &AuditEntry) -> Result<Line> {
    let within_ms = millis(FOLDED_WITHIN);
    Ok(Line {
        log: ring(entry).to_owned(),
        counter: AUDIT.to_owned(),
        entry: without(AUDIT, entry, &["id", "at", "count", "until"])?,
        count: entry.count,
        kept: entry.kind.kept(),
        fold: entry.alike().map(|[key, same]| Fold { key, same, within_ms }),
    })
}

/// The logs of the acts of that kind. That of people is the one which older versions wrote everything to.
pub(super) fn rings(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Person => &[AUDIT],
        Kind::Program => &["audit:programs"],
        Kind::Refusal => &[REFUSALS, STRANGERS],
    }
}

const REFUSALS: &str = "audit:refusals";
/// What strangers are refused, who can do that as often as they like: it pushes nothing of an account out.
const STRANGERS: &str = "audit:strangers";

fn ring(entry: &AuditEntry) -> &'static str {
    match entry.kind {
        Kind::Person => AUDIT,
        Kind::Program => "audit:programs",
        Kind::Refusal if entry.is_of_strangers() => STRANGERS,
        Kind::Refusal => REFUSALS,
    }
}

/// The row of `table` at `nth` of the results.
pub(super) fn row(looked: &Looked, nth: usize) -> Option<&str> {
    match looked.found.get(nth) {
        Some(Found::Row(text)) => text.as_deref(),
        _ => None,
    }
}

/// The rows of the table at `nth` of the results.
pub(super) fn rows(looked: &Looked, nth: usize) -> impl Iterator<Item = (&str, &str)> {
    let found = match looked.found.get(nth) {
        Some(Found::Rows(rows)) => Some(rows),
        _ => None,
    };
    found.into_iter().flatten().map(|(row, text)| (row.as_str(), text.as_str()))
}

/// That a row is as it was found: `is`.
pub(super) fn still(table: &str, row: &str, is: Option<&str>) -> Check {
    Check::Row { table: table.to_owned(), row: row.to_owned(), is: is.map(str::to_owned) }
}

pub(super) fn set(table: &str, row: &str, text: String) -> Write {
    Write::Set { table: table.to_owned(), row: row.to_owned(), text }
}

pub(super) fn unset(table: &str, row: &str) -> Write {
    Write::Unset { table: table.to_owned(), row: row.to_owned() }
}

pub(super) fn look_at(table: &str, row: &str) -> Look {
    Look::Row(table.to_owned(), row.to_owned())
}

/// What removes the rows of the table at `nth` that `goes` says of.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn of<T: DeserializeOwned>(
    looked: &Looked,
    nth: usize,
    table: &str,
    goes: impl Fn(T) -> bool,
) -> Result<Vec<Write>> {
    let mut gone = Vec::new();
    for (row, text) in rows(looked, nth) {
        if goes(parsed(table, text)?) {
            gone.push(unset(table, row));
        }
    }
    Ok(gone)
}

/// The value whose JSON is in `table`.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn parsed<T: DeserializeOwned>(table: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{table}: {error}")))
}

/// The JSON of `value` for `table`.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn json(table: &str, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(format!("{table}: {error}")))
}

/// The JSON of `value` without those members.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn without(table: &str, value: &impl Serialize, members: &[&str]) -> Result<String> {
    let corrupt = |error| StoreError::Corrupt(format!("{table}: {error}"));
    let mut value = serde_json::to_value(value).map_err(corrupt)?;
    if let Some(object) = value.as_object_mut() {
        for member in members {
            object.remove(*member);
        }
    }
    serde_json::to_string(&value).map_err(corrupt)
}
