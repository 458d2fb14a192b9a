//! Dispatch: an act of `dispatch/` by relay, in one transaction on the connection that is kept for it.
//!
//! An act is a conversation, so the server waits for this process between its statements. A process that is stopped in the middle holds
//! the lock on dispatch until the server ends its connection, after a second: each driver sees to that.

use super::dispatch::{Act, DispatchSession, Transactions};
use super::fault::{Fault, Outcome};
use super::follow::Hint;
use super::link::{Link, Wire};
use super::packet::Packet;
use super::session::{Dialect, Row, Session, Statement, Value};
use super::{Server, SqlStore, log, relay};
use crate::clock;
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;
use crate::store::records::Line;
use crate::store::{Result, StoreError};

/// A server with a connection for dispatch.
pub(in crate::store) trait Converses: Server {
    /// Its connections.
    type Wire: Wire;

    /// That one.
    fn dispatch(&self) -> &Link<Self::Wire>;
}

/// A transaction of dispatch, and who is told after its commit.
struct Dispatching<'c, W> {
    conn: &'c mut W,
    /// Written with the next question or with the commit: its answers are not waited for.
    pending: Vec<Statement>,
    wakes: Vec<Waiter>,
    /// What the first statement that failed ended with, so that the task knows what became of the connection.
    fault: Option<Fault>,
}

impl<S: Converses> Transactions for SqlStore<S> {
    async fn transact<A: Act>(&self, act: A) -> Result<A::Answer> {
        let (answer, wakes) = self.act(false, act).await?;
        if !wakes.is_empty() {
            drop(self.shared.server.ring(Hint { wake: wakes, ..Hint::default() }));
        }
        Ok(answer)
    }

    async fn inspect<A: Act>(&self, act: A) -> Result<A::Answer> {
        Ok(self.act(true, act).await?.0)
    }
}

impl<S: Converses> SqlStore<S> {
    /// Runs the act in a transaction, from the beginning again if others were in its way.
    async fn act<A: Act>(&self, looks: bool, act: A) -> Result<(A::Answer, Vec<Waiter>)> {
        let server = &self.shared.server;
        let until = clock::boot() + server.timeout();
        loop {
            let (relay, asked) = relay::pair(server.dialect());
            let served = server.dispatch().call(until, move |conn: &mut S::Wire| {
                Box::pin(async move {
                    conn.begin(looks).await?;
                    let (pending, wakes) = (Vec::new(), Vec::new());
                    let mut session = Dispatching { conn, pending, wakes, fault: None };
                    let commit = asked.serve(&mut session).await;
                    let Dispatching { conn, pending, wakes, fault } = session;
                    conn.end(if commit { &pending[..] } else { &[] }, commit).await?;
                    fault.map_or(Ok(wakes), Err)
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

impl<W: Wire> Dispatching<'_, W> {
    /// Notes a fault; what the caller hears of it.
    fn noted<T>(&mut self, outcome: Outcome<T>) -> Result<T> {
        outcome.map_err(|fault| {
            let told = fault.clone().told(W::KIND);
            self.fault.get_or_insert(fault);
            told
        })
    }
}

impl<W: Wire> Session for Dispatching<'_, W> {
    fn dialect(&self) -> Dialect {
        W::DIALECT
    }

    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        let found = self.query_all(&[Statement::new(sql.to_owned(), params.to_vec())]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        self.query_all(&[]).await?;
        let statement = Statement::new(sql.to_owned(), params.to_vec());
        let changed = self.conn.change(&statement).await;
        self.noted(changed)
    }

    async fn query_all(&mut self, statements: &[Statement]) -> Result<Vec<Vec<Row>>> {
        if self.pending.is_empty() && statements.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.pending.len();
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(statements);
        let found = self.conn.ask_all(&all).await;
        Ok(self.noted(found)?.split_off(before))
    }

    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.pending.extend_from_slice(statements);
        Ok(())
    }
}

impl<W: Wire> DispatchSession for Dispatching<'_, W> {
    async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)> {
        // In this order: the clock is read when the lock is there.
        let both = [book, "SELECT {clock}"].map(|sql| Statement::new(sql.to_owned(), Vec::new()));
        let mut found = self.query_all(&both).await?.into_iter();
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
        let mut packet = Packet::change(W::DIALECT);
        packet.through_the_gate("gate");
        packet.at_this_instant();
        log::add(&mut packet, line)?;
        self.execute_all(&packet.statements).await
    }
}
