//! Dispatch: an act of `../sql/dispatch` by relay, in one transaction on the connection that is kept for it.
//!
//! An act is a conversation, so the server waits for this process between its statements. A process that is stopped in the middle holds
//! the lock on dispatch until `idle_in_transaction_session_timeout`, a second.

use super::PostgresStore;
use super::fault::Fault;
use super::session::Conn;
use crate::clock;
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;
use crate::store::records::Line;
use crate::store::sql::Server as _;
use crate::store::sql::dispatch::{Act, DispatchSession, Transactions};
use crate::store::sql::follow::Hint;
use crate::store::sql::packet::Packet;
use crate::store::sql::session::{Dialect, Row, Session, Statement, Value};
use crate::store::sql::{log, relay};
use crate::store::{Result, StoreError};

const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
const LOOK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A transaction of dispatch, and who is told after its commit.
struct Dispatching<'c> {
    conn: &'c mut Conn,
    wakes: Vec<Waiter>,
}

impl Transactions for PostgresStore {
    async fn transact<A: Act>(&self, act: A) -> Result<A::Answer> {
        let (answer, wakes) = self.act(WRITE, act).await?;
        if !wakes.is_empty() {
            drop(self.shared.server.ring(Hint { wake: wakes, ..Hint::default() }));
        }
        Ok(answer)
    }

    async fn inspect<A: Act>(&self, act: A) -> Result<A::Answer> {
        Ok(self.act(LOOK, act).await?.0)
    }
}

impl PostgresStore {
    /// Runs the act in a transaction, from the beginning again if others were in its way.
    async fn act<A: Act>(&self, begin: &'static str, act: A) -> Result<(A::Answer, Vec<Waiter>)> {
        let server = &self.shared.server;
        let until = clock::boot() + server.timeout;
        loop {
            let (relay, asked) = relay::pair(Dialect::Postgres);
            let served = server.dispatch.call(until, move |conn| {
                Box::pin(async move {
                    conn.client.batch_execute(begin).await?;
                    conn.take_fault();
                    let mut session = Dispatching { conn, wakes: Vec::new() };
                    let commit = asked.serve(&mut session).await;
                    let Dispatching { conn, wakes } = session;
                    conn.client.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
                    conn.take_fault().map_or(Ok(wakes), Err)
                })
            });
            let (served, acted) = tokio::join!(served, relay.run(&act));
            match (served, acted) {
                (Ok(wakes), Ok(answer)) => return Ok((answer, wakes)),
                (Err(Fault::Again(_)), _) if clock::boot() < until => {}
                (Err(fault), _) => return Err(fault.told(server.name())),
                (Ok(_), Err(error)) => return Err(error),
            }
        }
    }
}

impl Session for Dispatching<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        self.conn.query(sql, params).await
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        self.conn.execute(sql, params).await
    }

    async fn query_all(&mut self, statements: &[Statement]) -> Result<Vec<Vec<Row>>> {
        self.conn.query_all(statements).await
    }

    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.conn.execute_all(statements).await
    }
}

impl DispatchSession for Dispatching<'_> {
    async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)> {
        // In this order: the clock is read when the lock is there.
        let both = [book, "SELECT {clock}"].map(|sql| Statement::new(sql.to_owned(), Vec::new()));
        let mut found = self.conn.query_all(&both).await?.into_iter();
        let mut first = || found.next().and_then(|rows| rows.into_iter().next());
        let missing = || StoreError::Corrupt("dispatch: its row is missing".to_owned());
        let book = first().ok_or_else(missing)?;
        let now = first().ok_or_else(missing)?.int(0)?.max(book.int(0)?);
        Ok((book, Stamp(now)))
    }

    async fn publish_wake(&mut self, waiters: &[Waiter]) -> Result<()> {
        self.wakes.extend(waiters.iter().cloned());
        Ok(())
    }

    async fn note(&mut self, line: &Line) -> Result<()> {
        let mut packet = Packet::change(Dialect::Postgres);
        packet.through_the_gate("gate");
        packet.at_this_instant();
        log::add(&mut packet, line)?;
        self.conn.execute_all(&packet.statements).await
    }
}
