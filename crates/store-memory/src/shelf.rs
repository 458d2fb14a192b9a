//! Dispatch: the statements that all SQL stores share, on a SQLite database in memory and by the clock of the world.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, params_from_iter};

use super::engine::MemoryStore;
use super::events::Happened;
use soloist_domain::time::Stamp;
use soloist_store::dispatch::Waiter;
use soloist_store::records::{Line, Tell, Write};
use soloist_store::{Result, StoreError};
use soloist_store_sql::sql::dispatch::{AnyAct, DispatchSession, Transactions};
use soloist_store_sql::sql::relay::at_once;
use soloist_store_sql::sql::row::corrupt;
use soloist_store_sql::sql::session::{Dialect, Row, Session, Statement, Value};
use soloist_store_sql::sqlite::{STEPS, query};

/// An empty database.
///
/// # Errors
/// When SQLite cannot make one.
pub(super) fn empty() -> rusqlite::Result<Connection> {
    let db = Connection::open_in_memory()?;
    db.set_prepared_statement_cache_capacity(256);
    STEPS.iter().try_for_each(|step| db.execute_batch(step))?;
    Ok(db)
}

/// A transaction under way.
struct Visit<'s> {
    db: &'s Connection,
    now: Stamp,
    /// What follows the commit.
    notes: Vec<Line>,
    woken: Vec<Waiter>,
}

#[async_trait]
impl Transactions for MemoryStore {
    async fn transact(&self, act: Arc<dyn AnyAct>) -> Result<()> {
        tokio::task::yield_now().await;
        let mut db = self.shelf().lock();
        let tx = db.transaction().map_err(|error| fail(&error))?;
        let (notes, woken) = run(&*act, &tx, self.clock().change())?;
        tx.commit().map_err(|error| fail(&error))?;
        // Under the lock: no process sees one without the other, and wakes are told in the order of the commits.
        notes.into_iter().for_each(|line| self.write_down(&Write::Log(line)));
        if !woken.is_empty() {
            self.bell().ring(&Happened::Told(Tell::Wake(woken)));
        }
        Ok(())
    }

    async fn inspect(&self, act: Arc<dyn AnyAct>) -> Result<()> {
        tokio::task::yield_now().await;
        let mut db = self.shelf().lock();
        // Rolled back when it is dropped.
        let tx = db.transaction().map_err(|error| fail(&error))?;
        run(&*act, &tx, self.clock().now()).map(drop)
    }
}

fn run(act: &dyn AnyAct, db: &Connection, now: Stamp) -> Result<(Vec<Line>, Vec<Waiter>)> {
    let mut visit = Visit { db, now, notes: Vec::new(), woken: Vec::new() };
    at_once(act, &mut visit)?;
    Ok((visit.notes, visit.woken))
}

impl Session for Visit<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        query(self.db, sql, params)
    }

    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        let execute = |one: &Statement| -> rusqlite::Result<usize> {
            self.db.prepare_cached(&one.sql)?.execute(params_from_iter(&one.params))
        };
        statements.iter().try_for_each(|one| execute(one).map(drop)).map_err(|error| fail(&error))
    }
}

impl DispatchSession for Visit<'_> {
    async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)> {
        let row = self.query(book, &[]).await?.into_iter().next();
        Ok((row.ok_or_else(|| corrupt("dispatch", "its row is missing"))?, self.now))
    }

    async fn publish_wake(&mut self, waiters: &[Waiter]) -> Result<()> {
        self.woken.extend_from_slice(waiters);
        Ok(())
    }

    async fn note(&mut self, line: &Line) -> Result<()> {
        self.notes.push(line.clone());
        Ok(())
    }
}

fn fail(error: &rusqlite::Error) -> StoreError {
    StoreError::Corrupt(format!("the store in memory: {error}"))
}
