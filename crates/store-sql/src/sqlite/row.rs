//! Values of columns: numbers, JSON. A value that cannot be read is named.

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;

use super::fault::{Fault, SqliteResult};
use crate::sql::row as shared;
pub(super) use crate::sql::row::{int, uint};

/// `what` cannot be read, because of `why`.
pub(super) fn corrupt(what: &str, why: &str) -> Fault {
    shared::corrupt(what, why).into()
}

/// The JSON of `value`.
pub(super) fn text<T: Serialize + ?Sized>(value: &T) -> SqliteResult<String> {
    Ok(shared::text(value)?)
}

/// One value of one row, if there is one.
pub(super) fn find<T: rusqlite::types::FromSql>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> SqliteResult<Option<T>> {
    Ok(db.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
}
