//! Columns on their way in and out: numbers, JSON, words. What cannot be read is named.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::{Fault, Outcome};
use crate::store::StoreError;

/// SQLite's integers are signed; ours never come near the difference.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The way back.
pub(super) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Milliseconds, as columns keep durations.
pub(super) fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// `what` cannot be read, because of `why`.
pub(super) fn corrupt(what: &str, why: &str) -> Fault {
    StoreError::Corrupt(format!("{what}: {why}")).into()
}

/// A text column that holds JSON, or nothing.
pub(super) fn json<T: DeserializeOwned>(
    row: &rusqlite::Row<'_>,
    column: &str,
    bad: &dyn Fn(&str, &str) -> Fault,
) -> Outcome<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|why| bad(column, &why.to_string()))
}

/// The JSON of `value`.
pub(super) fn text<T: Serialize>(value: &T) -> Outcome<String> {
    serde_json::to_string(value).map_err(|why| corrupt("a value to be kept", &why.to_string()))
}

/// The variant whose word stands in the column.
pub(super) fn word<T: DeserializeOwned>(what: &str, word: &str) -> Outcome<T> {
    let value = serde_json::Value::String(word.to_owned());
    serde_json::from_value(value).map_err(|why| corrupt(what, &why.to_string()))
}

/// One value of one row, if there is one.
pub(super) fn find<T: rusqlite::types::FromSql>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Outcome<Option<T>> {
    Ok(db.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
}
