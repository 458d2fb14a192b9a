//! Dispatch: the statements that all SQL stores share, on a SQLite database in memory and by the clock of the world.

use futures_util::FutureExt as _;
use rusqlite::{Connection, params_from_iter};

use super::engine::MemoryStore;
use super::events::Happened;
use super::locked;
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;
use crate::store::records::{Line, Tell, Write};
use crate::store::sql::dispatch::{Act, DispatchSession, Transactions};
use crate::store::sql::row::corrupt;
use crate::store::sql::session::{Dialect, Row, Session, Value};
use crate::store::sqlite::{MIGRATIONS, query};
use crate::store::{Result, StoreError};

/// An empty database.
///
/// # Errors
/// When SQLite cannot make one.
pub(super) fn empty() -> rusqlite::Result<Connection> {
    let db = Connection::open_in_memory()?;
    db.set_prepared_statement_cache_capacity(256);
    MIGRATIONS.iter().try_for_each(|step| db.execute_batch(step))?;
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

impl Transactions for MemoryStore {
    async fn transact<A: Act>(&self, act: A) -> Result<A::Answer> {
        tokio::task::yield_now().await;
        let mut db = locked(self.shelf());
        let tx = db.transaction().map_err(|error| fail(&error))?;
        let (answer, notes, woken) = run(&act, &tx, self.clock().change())?;
        tx.commit().map_err(|error| fail(&error))?;
        // Under the lock: no process sees one without the other, and wakes are told in the order of the commits.
        notes.into_iter().for_each(|line| self.write_down(&Write::Log(line)));
        if !woken.is_empty() {
            self.bell().ring(&Happened::Told(Tell::Wake(woken)));
        }
        Ok(answer)
    }

    async fn inspect<A: Act>(&self, act: A) -> Result<A::Answer> {
        tokio::task::yield_now().await;
        let mut db = locked(self.shelf());
        // Rolled back when it is dropped.
        let tx = db.transaction().map_err(|error| fail(&error))?;
        Ok(run(&act, &tx, self.clock().now())?.0)
    }
}

fn run<A: Act>(
    act: &A,
    db: &Connection,
    now: Stamp,
) -> Result<(A::Answer, Vec<Line>, Vec<Waiter>)> {
    let mut visit = Visit { db, now, notes: Vec::new(), woken: Vec::new() };
    let done = act.run(&mut visit).now_or_never();
    let answer = done.ok_or_else(|| corrupt("an act", "it waits in memory"))??;
    Ok((answer, visit.notes, visit.woken))
}

impl Session for Visit<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        query(self.db, sql, params)
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let execute = || self.db.prepare_cached(sql)?.execute(params_from_iter(params));
        Ok(execute().map_err(|error| fail(&error))? as u64)
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
