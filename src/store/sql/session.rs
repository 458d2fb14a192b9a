//! A transaction on an SQL store: statements with `?` for parameters, and rows of three kinds of values.
//!
//! All of it sees and makes one state, or nothing; the driver begins and ends it. Whoever gets one never waits for anything but its statements.

use crate::store::{Result, StoreError};

/// A parameter, or a value of a row. Instants are integers, and so are truth values (0, 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) enum Value {
    /// Nothing.
    Null,
    /// A signed integer of 64 bits.
    Int(i64),
    /// A text without NUL.
    Text(String),
}

/// A row, in the order of the columns that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Row(pub(in crate::store) Vec<Value>);

/// Which server it is, where the statements differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Dialect {
    /// SQLite 3.
    Sqlite,
    /// PostgreSQL 13 and later.
    Postgres,
    /// MySQL 8, MariaDB 10.6 and later.
    Mysql,
}

/// A transaction under way.
pub(in crate::store) trait Session {
    /// Which server it is.
    fn dialect(&self) -> Dialect;

    /// The rows that a statement finds.
    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>>;

    /// How many rows a statement changed.
    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64>;
}

impl Row {
    /// An integer. Errors: [`StoreError::Corrupt`] when it is none.
    pub(in crate::store) fn int(&self, column: usize) -> Result<i64> {
        self.opt_int(column)?.ok_or_else(|| unexpected(column, "no number"))
    }

    /// An integer or nothing. Errors: as [`Row::int`].
    pub(in crate::store) fn opt_int(&self, column: usize) -> Result<Option<i64>> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            Some(Value::Text(_)) | None => Err(unexpected(column, "no number")),
        }
    }

    /// A text. Errors: [`StoreError::Corrupt`] when it is none.
    pub(in crate::store) fn text(&self, column: usize) -> Result<&str> {
        self.opt_text(column)?.ok_or_else(|| unexpected(column, "no text"))
    }

    /// A text or nothing. Errors: as [`Row::text`].
    pub(in crate::store) fn opt_text(&self, column: usize) -> Result<Option<&str>> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            Some(Value::Int(_)) | None => Err(unexpected(column, "no text")),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

fn unexpected(column: usize, what: &str) -> StoreError {
    StoreError::Corrupt(format!("column {column}: {what}"))
}
