//! A transaction on SQLite as a session of `store-sql/sql`: its statements are answered at once, on the thread of the connection.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::fault::{Fault, SqliteResult};
use super::file::Place;
use super::step::{Moment, Step};
use super::{SqliteStore, clock, records};
use crate::sql::dispatch::{AnyAct, DispatchSession, Transactions};
use crate::sql::relay::at_once;
use crate::sql::row::corrupt;
use crate::sql::session::{Dialect, Row, Session, Statement, Value};
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::dispatch::Waiter;
use soloist_store::records::Line;

/// See the head of this file.
struct SqliteSession<'s> {
    place: &'s Place,
    db: &'s Connection,
    at: &'s Moment,
    /// Set only in a write transaction.
    step: Option<&'s Step<'s>>,
}

#[async_trait]
impl Transactions for SqliteStore {
    async fn transact(&self, act: Arc<dyn AnyAct>) -> Result<()> {
        let place = Arc::clone(&self.inner.place);
        self.write(move |step| {
            let (place, db, at) = (&*place, &**step, &step.at);
            Ok(at_once(&*act, &mut SqliteSession { place, db, at, step: Some(step) })?)
        })
        .await
    }

    async fn inspect(&self, act: Arc<dyn AnyAct>) -> Result<()> {
        let place = Arc::clone(&self.inner.place);
        self.read(move |db, at| {
            Ok(at_once(&*act, &mut SqliteSession { place: &place, db, at, step: None })?)
        })
        .await
    }
}

impl SqliteSession<'_> {
    fn fail(&self, fault: impl Into<Fault>) -> soloist_store::StoreError {
        fault.into().at(&self.place.to_string())
    }

    /// Who writes.
    fn writing(&self) -> Result<&Step<'_>> {
        self.step.ok_or_else(|| corrupt("a transaction that only looks", "it was to write"))
    }
}

impl Session for SqliteSession<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        find(self.db, sql, params).map_err(|fault| self.fail(fault))
    }

    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        let execute = |one: &Statement| -> rusqlite::Result<usize> {
            let sql = Dialect::Sqlite.said(&one.sql);
            self.db.prepare_cached(&sql)?.execute(params_from_iter(&one.params))
        };
        statements.iter().try_for_each(|one| execute(one).map(drop)).map_err(|why| self.fail(why))
    }
}

impl DispatchSession for SqliteSession<'_> {
    async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)> {
        let found = self.query(book, &[]).await?.into_iter().next();
        let row = found.ok_or_else(|| corrupt("dispatch", "its row is missing"))?;
        let now = match self.step {
            Some(step) => clock::take(step, row.int(0)?),
            None => clock::now(self.db, self.at),
        };
        Ok((row, now.map_err(|fault| self.fail(fault))?))
    }

    async fn publish_wake(&mut self, waiters: &[Waiter]) -> Result<()> {
        self.writing()?.publish_wake(waiters).map_err(|fault| self.fail(fault))
    }

    async fn note(&mut self, line: &Line) -> Result<()> {
        records::note(self.writing()?, line).map_err(|fault| self.fail(fault))
    }
}

/// The same on any connection.
///
/// # Errors
/// Those of SQLite.
pub fn query(db: &Connection, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
    find(db, sql, params).map_err(|fault| fault.at("memory"))
}

fn find(db: &Connection, sql: &str, params: &[Value]) -> SqliteResult<Vec<Row>> {
    let mut statement = db.prepare_cached(&Dialect::Sqlite.said(sql))?;
    let columns = statement.column_count();
    let mut found = statement.query(params_from_iter(params))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(value(row.get_ref(column)?, sql)?);
        }
        rows.push(Row(values));
    }
    Ok(rows)
}

fn value(value: ValueRef<'_>, sql: &str) -> SqliteResult<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|why| corrupt(sql, &why.to_string()))?;
            Value::Text(text.to_owned())
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => {
            return Err(corrupt(sql, "neither a number nor a text").into());
        }
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}
