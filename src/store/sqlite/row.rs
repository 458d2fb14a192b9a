//! Columns on their way in and out: numbers, JSON, words. What cannot be read is named.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::{Fault, SqliteResult};
use crate::store::sql::row as shared;
pub(super) use crate::store::sql::row::{int, uint};

/// Milliseconds, as columns keep durations.
pub(super) fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// `what` cannot be read, because of `why`.
pub(super) fn corrupt(what: &str, why: &str) -> Fault {
    shared::corrupt(what, why).into()
}

/// A text column that holds JSON, or nothing.
pub(super) fn json<T: DeserializeOwned>(
    row: &rusqlite::Row<'_>,
    column: &str,
    bad: &dyn Fn(&str, &str) -> Fault,
) -> SqliteResult<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|why| bad(column, &why.to_string()))
}

/// The JSON of `value`.
pub(super) fn text<T: Serialize + ?Sized>(value: &T) -> SqliteResult<String> {
    Ok(shared::text(value)?)
}

/// The variant whose word stands in the column.
pub(super) fn word<T: DeserializeOwned>(what: &str, word: &str) -> SqliteResult<T> {
    Ok(shared::word(what, word)?)
}

/// One value of one row, if there is one.
pub(super) fn find<T: rusqlite::types::FromSql>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> SqliteResult<Option<T>> {
    Ok(db.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
}
