//! Dispatch on SQL: what `domain::dispatch` decides, carried out in one transaction each, with the same statements on every store.
//!
//! | file | what |
//! | --- | --- |
//! | `desk` | load, decide, write: one transition |
//! | `errand` | what a transition looks at, as statements |
//! | `ink` | what must be known before anything is written, and the statements that write it |
//! | `commit` | from what was decided to those statements |
//! | `source`, `task`, `claims`, `waiters` | rows |
//! | `in_hand` | what this process handed out, so that it is found by its name |
//! | `remembered`, `known_sources` | what acts that share a transaction need not ask again |
//! | `acts` | the acts that are more than one transition, and what is only shown |
//! | `carry` | sources and tasks out of one store and into another |
//!
//! Every transition takes the lock on the one row of `dispatch` first, so they happen one after the other. Whatever a transition
//! looks at is found by an index: its cost does not grow with tasks, leases or sources. What needs no answer of
//! another statement is asked in one go, and everything is written with the commit: five round trips or so, if nothing waits.
//! The tables are the same everywhere: the last part of each `schema.sql`.

mod acts;
mod carry;
mod claims;
mod commit;
mod desk;
mod errand;
mod in_hand;
mod ink;
mod known_sources;
mod remembered;
mod source;
mod task;
#[cfg(test)]
mod tests;
mod waiters;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::relay::{Relay, given_up};
use super::row::count;
use super::session::{Row, Session, Statement, Value};
use acts::{
    Exchanging, Gone, Leave, Limit, Pump, Put, ReadSources, RemoveSome, RemoveTask, Revive,
};
use acts::{ReadCollectors, ReadTasks, transition};
use soloist_domain::dispatch::{self as domain, Rules, TaskState};
use soloist_domain::name::SourceName;
use soloist_domain::time::Stamp;
use soloist_store::core::noted;
use soloist_store::dispatch::{
    ClaimId, ClaimOwner, CollectorView, Dispatch, Exchange, Exchanged, Extended, NewTask, Pumped,
    RemovedSource, SourceView, Sources, TaskFilter, TaskId, TaskView, Waiter,
};
use soloist_store::records::{Line, Records};
use soloist_store::{Result, StoreError};

pub use in_hand::InHand;
pub use remembered::Remembered;

/// The row of the book, now, and what was asked besides.
pub type Opened = (Row, Stamp, Vec<Vec<Row>>);

/// A transaction in which dispatch is written or looked at.
#[expect(
    async_fn_in_trait,
    reason = "one thread or task runs each session; the acts reach it by a relay"
)]
pub trait DispatchSession: Session {
    /// What `book` finds: one row, whose first column is the newest instant that was written down. And now, read after that,
    /// and never before it.
    async fn query_at(&mut self, book: &str) -> Result<(Row, Stamp)>;

    /// The same, and what `more` finds after it: a driver may send all of it together. None of `more` has that instant as a
    /// parameter; `{at}` stands for it on a server.
    async fn query_at_and(&mut self, book: &str, more: &[Statement]) -> Result<Opened> {
        let (row, now) = self.query_at(book).await?;
        Ok((row, now, self.query_all(more).await?))
    }

    /// Publishes with the commit that it is their turn.
    async fn publish_wake(&mut self, waiters: &[Waiter]) -> Result<()>;

    /// Writes into a log what goes with an act.
    async fn note(&mut self, line: &Line) -> Result<()>;
}

/// What is done within one transaction; a store may do it again from the beginning when the server asks for that.
pub trait Act: Send + Sync + 'static {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Does it. It waits for nothing but its statements.
    fn run(&self, session: &mut Relay) -> impl Future<Output = Result<Self::Answer>> + Send;
}

/// An act whose answer stays with who asked for it: a store does not know its type.
#[async_trait]
pub trait AnyAct: Send + Sync {
    /// Does it, and has it committed if it succeeds.
    ///
    /// # Errors
    /// Those of the act; [`StoreError::Unavailable`]: the connection was given up.
    async fn run(&self, relay: Relay) -> Result<()>;
}

/// An act, and its answer once it is done.
pub(super) struct Answered<A: Act>(A, Mutex<Option<A::Answer>>);

impl<A: Act> Answered<A> {
    pub(super) fn new(act: A) -> Arc<Self> {
        Arc::new(Self(act, Mutex::new(None)))
    }

    pub(super) fn take(&self) -> Option<A::Answer> {
        self.1.lock().take()
    }
}

#[async_trait]
impl<A: Act> AnyAct for Answered<A> {
    async fn run(&self, mut relay: Relay) -> Result<()> {
        let answer = self.0.run(&mut relay).await?;
        *self.1.lock() = Some(answer);
        relay.commit()
    }
}

/// A store that carries acts out. [`BySql`] makes [`Sources`] and [`Dispatch`] of that.
#[async_trait]
pub trait Transactions: Records {
    /// All of it or nothing.
    async fn transact(&self, act: Arc<dyn AnyAct>) -> Result<()>;

    /// On one consistent picture; it writes nothing.
    async fn inspect(&self, act: Arc<dyn AnyAct>) -> Result<()>;

    /// What it handed out, if looking for that by its name saves anything.
    fn in_hand(&self) -> Option<&Arc<InHand>> {
        None
    }
}

/// Sources and tasks by the acts of this room.
pub struct BySql(pub Arc<dyn Transactions>);

impl BySql {
    async fn transact<A: Act>(&self, act: A) -> Result<A::Answer> {
        let act = Answered::new(act);
        self.0.transact(act.clone()).await?;
        act.take().ok_or_else(given_up)
    }

    async fn inspect<A: Act>(&self, act: A) -> Result<A::Answer> {
        let act = Answered::new(act);
        self.0.inspect(act.clone()).await?;
        act.take().ok_or_else(given_up)
    }

    /// What is to be written down with an act.
    fn line(&self) -> Result<Option<Line>> {
        self.0.note().map(noted).transpose()
    }
}

#[async_trait]
impl Sources for BySql {
    async fn put_source(&self, source: &SourceName, rules: &Rules) -> Result<SourceView> {
        let (name, note) = (source.clone(), self.line()?);
        let (of, rules) = (name.clone(), rules.clone());
        let act = transition(move |sets, now| domain::define(sets, &of, &rules, now));
        self.transact(Limit { act, name, note }).await
    }

    async fn pause_source(&self, source: &SourceName, paused: bool) -> Result<SourceView> {
        let (name, note) = (source.clone(), self.line()?);
        let of = name.clone();
        let act = transition(move |sets, now| domain::pause(sets, &of, paused, now));
        self.transact(Limit { act, name, note }).await
    }

    async fn block_source(&self, source: &SourceName, lasting: Duration) -> Result<SourceView> {
        let (name, note) = (source.clone(), self.line()?);
        let of = name.clone();
        let act = transition(move |sets, now| domain::block(sets, &of, lasting, now));
        self.transact(Limit { act, name, note }).await
    }

    async fn remove_source(&self, source: &SourceName, force: bool) -> Result<RemovedSource> {
        let mut first = None;
        loop {
            let name = source.clone();
            let (gone, now) = self.transact(RemoveSome { name, force }).await?;
            let lost = *first.get_or_insert(now);
            match gone {
                Gone::No => return Ok(RemovedSource::Kept(lost)),
                Gone::Yes => return Ok(RemovedSource::Done(lost)),
                Gone::InPart => {}
            }
        }
    }

    async fn sources(&self, only: Option<&SourceName>) -> Result<Vec<SourceView>> {
        self.inspect(ReadSources(only.cloned())).await
    }

    async fn collectors(&self) -> Result<Vec<CollectorView>> {
        self.inspect(ReadCollectors).await
    }
}

#[async_trait]
impl Dispatch for BySql {
    async fn put_tasks(&self, tasks: &[NewTask]) -> Result<Vec<bool>> {
        self.transact(Put(tasks.to_vec())).await
    }

    async fn exchange(&self, ask: &Exchange) -> Result<Exchanged> {
        self.transact(Exchanging { ask: ask.clone(), in_hand: self.0.in_hand().cloned() }).await
    }

    async fn extend(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<Extended> {
        let (claim, only) = (claim.clone(), only.cloned());
        let act = move |sets: &_, now| domain::extend(sets, &claim, only.as_ref(), now);
        self.transact(transition(act)).await
    }

    async fn give_back(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<u64> {
        let (claim, only) = (claim.clone(), only.cloned());
        let act = move |sets: &_, now| domain::give_back(sets, &claim, only.as_ref(), false, now);
        self.transact(transition(act)).await
    }

    async fn give_back_unseen_claim(&self, claim: &ClaimId) -> Result<u64> {
        let claim = claim.clone();
        let act = move |sets: &_, now| domain::give_back(sets, &claim, None, true, now);
        self.transact(transition(act)).await
    }

    async fn leave_queues(&self, waiter: &Waiter, _sources: &[SourceName]) -> Result<()> {
        self.transact(Leave(waiter.clone())).await
    }

    async fn pump(&self) -> Result<Pumped> {
        self.transact(Pump).await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<TaskView>> {
        let (rest, params) = ("t.id = ?".to_owned(), vec![id.0.as_str().into()]);
        Ok(self.inspect(ReadTasks { rest, params }).await?.pop())
    }

    async fn dead(
        &self,
        source: Option<&SourceName>,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<TaskView>> {
        let mut params: Vec<Value> = source.iter().map(|source| source.as_str().into()).collect();
        params.extend([count(limit).into(), count(skip).into()]);
        let of = if source.is_some() { "t.source = ? AND " } else { "" };
        let rest =
            format!("{of}t.state = 'dead' ORDER BY t.{{changed}} DESC, t.n DESC LIMIT ? OFFSET ?");
        self.inspect(ReadTasks { rest, params }).await
    }

    async fn tasks(
        &self,
        filter: &TaskFilter,
        before: Option<&(Stamp, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskView>> {
        let (mut terms, mut params) = (Vec::new(), Vec::<Value>::new());
        if let Some(source) = &filter.source {
            terms.push("t.source = ?");
            params.push(source.as_str().into());
        }
        if let Some(state) = filter.state.map(TaskState::as_str) {
            terms.push("t.state = ?");
            params.push(state.into());
        }
        if let Some((at, id)) = before {
            terms.push("(t.changed < ? OR t.changed = ? AND t.id < ?)");
            params.extend([at.0.into(), at.0.into(), id.0.as_str().into()]);
        }
        let all = if terms.is_empty() { "1 = 1".to_owned() } else { terms.join(" AND ") };
        let rest = format!("{all} ORDER BY t.changed DESC, t.id DESC LIMIT ?");
        params.push(count(limit).into());
        self.inspect(ReadTasks { rest, params }).await
    }

    async fn remove_task(&self, id: &TaskId, force: bool) -> Result<bool> {
        self.transact(RemoveTask { id: id.clone(), force, note: self.line()? }).await
    }

    async fn revive(&self, id: &TaskId) -> Result<TaskView> {
        self.transact(Revive { id: id.clone(), note: self.line()? }).await
    }
}

/// No such task.
fn unknown_task(id: &TaskId) -> StoreError {
    StoreError::NotFound(format!("task {}", id.0))
}
