//! Dispatch: an act of `dispatch/` by relay, in a transaction on the connection that is kept for it.
//!
//! An act is a conversation, so the server waits for this process between its statements. A process that is stopped in the middle holds the
//! lock on dispatch until the server ends its connection, after a second: each driver sets that up. Acts that wait at the same time share a
//! transaction (`queue`).

use std::sync::Arc;

use async_trait::async_trait;

use super::dispatch::{AnyAct, DispatchSession, InHand, Opened, Remembered, Transactions};
use super::fault::{Fault, Outcome};
use super::follow::Hint;
use super::link::{Link, Wire};
use super::packet::Packet;
use super::queue::Queue;
use super::relay::Asked;
use super::session::{Dialect, Row, Session, Statement, Value};
use super::{SqlStore, log, relay};
use soloist_domain::time::{Boot, Stamp};
use soloist_process::clock;
use soloist_store::dispatch::Waiter;
use soloist_store::records::Line;
use soloist_store::{Result, StoreError};

/// A transaction of dispatch, and who is notified after its commit.
pub(super) struct Dispatching<'c, W> {
    conn: &'c mut W,
    /// Written with the next question or with the commit: its answers are not waited for.
    pending: Vec<Statement>,
    wakes: Vec<Waiter>,
    /// Who is woken by the commit, where that tells them.
    told: Vec<Waiter>,
    /// The instant of the transaction, once it was asked for.
    at: Option<i64>,
    remembered: Remembered,
    /// Something was written, or will be.
    wrote: bool,
    /// What the first statement that failed ended with, so that the task knows the state of the connection.
    fault: Option<Fault>,
}

#[async_trait]
impl Transactions for SqlStore {
    async fn transact(&self, act: Arc<dyn AnyAct>) -> Result<()> {
        let wakes = self.act(false, &*act).await?;
        if !wakes.is_empty() {
            drop(self.shared.server.ring(Hint { wake: wakes, ..Hint::default() }));
        }
        Ok(())
    }

    async fn inspect(&self, act: Arc<dyn AnyAct>) -> Result<()> {
        self.act(true, &*act).await.map(drop)
    }

    fn in_hand(&self) -> Option<&Arc<InHand>> {
        Some(&self.shared.in_hand)
    }
}

impl SqlStore {
    /// Runs the act in a transaction, from the beginning again if others were in its way. Returns who is woken by it.
    async fn act(&self, looks: bool, act: &dyn AnyAct) -> Result<Vec<Waiter>> {
        let server = &self.shared.server;
        let until = clock::boot() + server.timeout();
        loop {
            let (relay, asked) = relay::pair(server.dialect());
            let acted = async { Ok(act.run(relay).await) };
            // A caller that got a fault waits for no answer any more.
            match tokio::try_join!(server.serve(looks, asked, until), acted) {
                Ok((wakes, done)) => return done.map(|()| wakes),
                Err(Fault::Again(_)) if clock::boot() < until => {}
                Err(fault) => return Err(fault.told(server.name())),
            }
        }
    }
}

/// Serves an act that writes nothing, in a transaction of its own.
pub(super) async fn looked<W: Wire>(
    link: &Link<W>,
    asked: Asked,
    until: Boot,
) -> Outcome<Vec<Waiter>> {
    link.call(until, move |conn: &mut W| {
        Box::pin(async move {
            conn.begin(true).await?;
            let mut session = Dispatching::on(conn);
            let commit = asked.serve(&mut session).await;
            session.end(commit).await.map(|()| Vec::new())
        })
    })
    .await
}

/// Serves an act that writes, and the acts that wait behind it. Returns who is woken by it.
pub(super) async fn carried<W: Wire>(
    link: &Link<W>,
    acts: &Arc<Queue>,
    asked: Asked,
    until: Boot,
) -> Outcome<Vec<Waiter>> {
    let mut place = acts.join(asked);
    let (acts, number) = (Arc::clone(acts), place.number());
    let serving = link
        .call(until, move |conn: &mut W| Box::pin(async move { acts.serve(conn, number).await }));
    tokio::select! {
        biased;
        told = place.told() => told,
        served = serving => match served {
            Ok(()) => place.told().await,
            Err(fault) => Err(fault),
        },
    }
}

impl<'c, W: Wire> Dispatching<'c, W> {
    /// A transaction that was begun on that connection.
    pub(super) fn on(conn: &'c mut W) -> Self {
        let (pending, wakes, told) = (Vec::new(), Vec::new(), Vec::new());
        let remembered = Remembered::default();
        Self { conn, pending, wakes, told, at: None, remembered, wrote: false, fault: None }
    }

    /// Whether something was written since this was asked last.
    pub(super) fn has_written(&mut self) -> bool {
        std::mem::take(&mut self.wrote)
    }

    /// Who is woken by what was done since this was asked last.
    pub(super) fn take_wakes(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.wakes)
    }

    /// Whether a statement has failed, so that nothing of the transaction counts.
    pub(super) fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Ends the transaction.
    pub(super) async fn end(mut self, commit: bool) -> Outcome<()> {
        self.pending.extend(self.remembered.take_unwritten());
        let hint = Hint { wake: std::mem::take(&mut self.told), ..Hint::default() };
        self.pending.extend(W::DIALECT.ring(&hint, "1 = 1")?);
        self.conn.end(if commit { &self.pending[..] } else { &[] }, commit).await?;
        self.fault.map_or(Ok(()), Err)
    }

    /// Notes a fault; returns what the caller gets.
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

    async fn query_all(&mut self, statements: &[Statement]) -> Result<Vec<Vec<Row>>> {
        let known: Vec<_> = statements.iter().map(|one| self.remembered.answer(one)).collect();
        let unknown = statements.iter().zip(&known).filter(|(_, answer)| answer.is_none());
        let asked: Vec<Statement> = unknown.map(|(one, _)| one.clone()).collect();
        self.pending.extend(self.remembered.before(&asked));
        let mut found = Vec::new();
        // What was written is sent with the next question, or when nothing else is asked for.
        if !asked.is_empty() || statements.is_empty() && !self.pending.is_empty() {
            let before = self.pending.len();
            let mut all = std::mem::take(&mut self.pending);
            all.extend_from_slice(&asked);
            let answers = self.conn.ask_all(&all).await;
            found = self.noted(answers)?.split_off(before);
        }
        for (one, rows) in asked.iter().zip(&found) {
            self.remembered.hear(one, rows);
        }
        let mut found = found.into_iter();
        Ok(known
            .into_iter()
            .map(|rows| rows.or_else(|| found.next()).unwrap_or_default())
            .collect())
    }

    async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        self.wrote |= !statements.is_empty();
        self.pending.extend(self.remembered.write(statements));
        Ok(())
    }
}

impl<W: Wire> DispatchSession for Dispatching<'_, W> {
    async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)> {
        let (row, now, _) = self.query_at_and(book, &[]).await?;
        Ok((row, now))
    }

    async fn query_at_and(&mut self, book: &str, more: &[Statement]) -> Result<Opened> {
        // In this order: the clock is read when the lock is there. Acts that share the transaction share its instant.
        let mut all = vec![Statement::new(book.to_owned(), Vec::new())];
        if self.at.is_none() {
            let newest = "(SELECT GREATEST({clock}, newest) FROM dispatch)";
            all.push(Statement::new(W::DIALECT.remember_and_say("at", newest), Vec::new()));
        }
        let first = all.len();
        all.extend_from_slice(more);
        self.remembered.begin(more);
        let mut found = self.query_all(&all).await?;
        let rest = found.split_off(first);
        let mut found = found.into_iter();
        let mut first_of = || found.next().and_then(|rows| rows.into_iter().next());
        let missing = || StoreError::Corrupt("dispatch: its row is missing".to_owned());
        let book = first_of().ok_or_else(missing)?;
        let now = match self.at {
            Some(at) => at,
            None => first_of().ok_or_else(missing)?.int(0)?,
        };
        self.at = Some(now);
        Ok((book, Stamp(now), rest))
    }

    async fn publish_wake(&mut self, waiters: &[Waiter]) -> Result<()> {
        let (now, later) = (&mut self.told, &mut self.wakes);
        let who = if W::DIALECT.rings_in_commits() { now } else { later };
        who.extend(waiters.iter().cloned());
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
