//! A session by relay: an act asks, and the owner of the transaction answers. So an act is compiled once, and not for each store.
//!
//! On a server the act runs in the task of its caller, its statements in the task that owns the connection. The caller may give up at any
//! moment. Then the relay ends, and the task that owns the connection rolls back: no future of a driver is dropped half way. A driver uses it
//! so:
//!
//! ```text
//! let (relay, asked) = relay::pair(dialect);
//! served: on the connection: BEGIN; if asked.serve(conn) says so, COMMIT, else ROLLBACK
//! acted:  act.run(relay), beside it
//! the answer is that of `acted`, if `served` did not fail
//! ```
//!
//! Where statements are answered at once, both run in one thread ([`at_once`]).

use std::pin::pin;

use futures_util::FutureExt as _;
use futures_util::future::join;
use tokio::sync::{mpsc, oneshot};

use super::dispatch::{AnyAct, DispatchSession, Opened};
use super::session::{Dialect, Row, Statement, Value};
use soloist_domain::time::Stamp;
use soloist_store::dispatch::Waiter;
use soloist_store::records::Line;
use soloist_store::{Result, StoreError};

type Answer<T> = oneshot::Sender<Result<T>>;

/// What is relayed.
enum Ask {
    Query(Vec<Statement>, Answer<Vec<Vec<Row>>>),
    Execute(Vec<Statement>, Answer<()>),
    At(String, Vec<Statement>, Answer<Opened>),
    Wake(Vec<Waiter>, Answer<()>),
    Note(Box<Line>, Answer<()>),
    Commit,
}

/// The acting end.
pub struct Relay {
    dialect: Dialect,
    asks: mpsc::UnboundedSender<Ask>,
}

/// The end that owns the connection.
pub struct Asked(mpsc::UnboundedReceiver<Ask>);

/// Both ends, for one transaction.
pub fn pair(dialect: Dialect) -> (Relay, Asked) {
    let (asks, asked) = mpsc::unbounded_channel();
    (Relay { dialect, asks }, Asked(asked))
}

/// Carries an act out on a session that answers at once; it must be committed if this succeeds.
///
/// # Errors
/// Those of the act.
pub fn at_once<S: DispatchSession>(act: &dyn AnyAct, session: &mut S) -> Result<()> {
    let (relay, asked) = pair(session.dialect());
    // An act waits for nothing but its statements, and these for nothing: each turn of the loop answers one.
    let both = join(act.run(relay), asked.serve(session));
    let mut both = pin!(tokio::task::unconstrained(both));
    loop {
        if let Some((done, _)) = both.as_mut().now_or_never() {
            return done;
        }
    }
}

/// As [`Session`](super::session::Session) and [`DispatchSession`].
impl Relay {
    /// The act is done: it is to be committed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the connection was given up.
    pub(super) fn commit(self) -> Result<()> {
        self.asks.send(Ask::Commit).map_err(|_| given_up())
    }

    async fn ask<T>(&self, ask: impl FnOnce(Answer<T>) -> Ask) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(ask(answer)).map_err(|_| given_up())?;
        answered.await.map_err(|_| given_up())?
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        let one = vec![Statement::new(sql.to_owned(), params.to_vec())];
        let found = self.ask(|answer| Ask::Query(one, answer)).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    pub(crate) async fn query_all(&mut self, statements: &[Statement]) -> Result<Vec<Vec<Row>>> {
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let all = statements.to_vec();
        self.ask(|answer| Ask::Query(all, answer)).await
    }

    pub(crate) async fn execute_all(&mut self, statements: &[Statement]) -> Result<()> {
        if statements.is_empty() {
            return Ok(());
        }
        let all = statements.to_vec();
        self.ask(|answer| Ask::Execute(all, answer)).await
    }

    pub(crate) async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)> {
        let (row, now, _) = self.query_at_and(book, &[]).await?;
        Ok((row, now))
    }

    pub(crate) async fn query_at_and(&mut self, book: &str, more: &[Statement]) -> Result<Opened> {
        let (book, more) = (book.to_owned(), more.to_vec());
        self.ask(|answer| Ask::At(book, more, answer)).await
    }

    pub(crate) async fn publish_wake(&mut self, waiters: &[Waiter]) -> Result<()> {
        let waiters = waiters.to_vec();
        self.ask(|answer| Ask::Wake(waiters, answer)).await
    }

    pub(crate) async fn note(&mut self, line: &Line) -> Result<()> {
        let line = Box::new(line.clone());
        self.ask(|answer| Ask::Note(line, answer)).await
    }
}

pub(super) fn given_up() -> StoreError {
    StoreError::Unavailable("the connection was given up".to_owned())
}

impl Asked {
    /// Does what is asked, until the act has ended; says whether to commit.
    pub async fn serve<S: DispatchSession>(mut self, session: &mut S) -> bool {
        while let Some(ask) = self.0.recv().await {
            // A caller that gave up meanwhile gets nothing.
            let _gave_up = match ask {
                Ask::Commit => return true,
                Ask::Query(all, answer) => answer.send(session.query_all(&all).await).is_err(),
                Ask::Execute(all, answer) => answer.send(session.execute_all(&all).await).is_err(),
                Ask::At(book, more, answer) => {
                    answer.send(session.query_at_and(&book, &more).await).is_err()
                }
                Ask::Wake(who, answer) => answer.send(session.publish_wake(&who).await).is_err(),
                Ask::Note(line, answer) => answer.send(session.note(&line).await).is_err(),
            };
        }
        false
    }
}
