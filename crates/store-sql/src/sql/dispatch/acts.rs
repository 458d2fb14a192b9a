//! The acts that are more than one transition, and what is only shown.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;

use super::super::relay::Relay;
use super::super::session::{Statement, Value};
use super::desk::Desk;
use super::in_hand::InHand;
use super::{Act, claims, commit, source, task, unknown_task, waiters};
use soloist_domain::dispatch::{self as domain, Answer, Change, Halt, Sets, TaskState, Write};
use soloist_domain::name::SourceName;
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::dispatch::{
    BATCH, Claimed, CollectorView, Exchange, Exchanged, Handed, Lost, NewTask, Pumped, SourceView,
    TaskId, TaskView, Waiter,
};
use soloist_store::records::Line;

/// Most tasks that one step of a removal removes.
const REMOVED_AT_ONCE: usize = 500;
/// Most waiters and most claims whose time is over that one pump forgets.
const FORGOTTEN: usize = 256;

/// One transition that `domain::dispatch` decides.
pub(super) struct Transition<T, F>(F, PhantomData<fn() -> T>);

/// The transition that `act` decides.
pub(super) fn transition<T, F>(act: F) -> Transition<T, F>
where
    F: Fn(&Sets, Stamp) -> std::result::Result<Change<T>, Halt> + Send + Sync + 'static,
{
    Transition(act, PhantomData)
}

impl<T, F> Act for Transition<T, F>
where
    T: Send + 'static,
    F: Fn(&Sets, Stamp) -> std::result::Result<Change<T>, Halt> + Send + Sync + 'static,
{
    type Answer = T;

    async fn run(&self, session: &mut Relay) -> Result<T> {
        Ok(Desk::open_and_carry_out(session, &self.0, &[]).await?.1)
    }
}

/// Changes what limits a source, and looks at what came of it.
pub(super) struct Limit<A> {
    pub(super) act: A,
    pub(super) name: SourceName,
    pub(super) note: Option<Line>,
}

impl<F> Act for Limit<Transition<(), F>>
where
    F: Fn(&Sets, Stamp) -> std::result::Result<Change<()>, Halt> + Send + Sync + 'static,
{
    type Answer = SourceView;

    async fn run(&self, session: &mut Relay) -> Result<SourceView> {
        let now = Desk::open_and_carry_out(session, &self.act.0, &[]).await?.0.now;
        note(session, self.note.as_ref()).await?;
        let found = source::one(session, &self.name).await?;
        let found = found.ok_or_else(|| source::unknown(&self.name))?;
        let view = source::views(session, &[found], now).await?.pop();
        view.ok_or_else(|| source::unknown(&self.name))
    }
}

async fn note(session: &mut Relay, line: Option<&Line>) -> Result<()> {
    match line {
        Some(line) => session.note(line).await,
        None => Ok(()),
    }
}

/// How far the removal of a source has come.
pub(super) enum Gone {
    No,
    InPart,
    Yes,
}

/// One step of the removal of a source, and what there was of it before the step.
pub(super) struct RemoveSome {
    pub(super) name: SourceName,
    pub(super) force: bool,
}

impl Act for RemoveSome {
    type Answer = (Gone, Lost);

    async fn run(&self, session: &mut Relay) -> Result<(Gone, Lost)> {
        let name = &self.name;
        let mut desk = Desk::open(session).await?;
        let found = source::one(desk.session, name).await?;
        let found = found.ok_or_else(|| source::unknown(name))?;
        let tasks = found.ready + found.due + found.in_flight + found.dead;
        let lost = Lost { tasks, in_flight: found.in_flight };
        if tasks > 0 && !self.force {
            return Ok((Gone::No, lost));
        }
        desk.carry_out(|sets, now| domain::pause(sets, name, true, now), &[]).await?;
        let some = some_tasks(session, name).await?;
        if !some.is_empty() {
            let mut desk = Desk::open(session).await?;
            desk.carry_out(|sets, now| domain::remove_all(sets, &some, now), &[]).await?;
        }
        if some.len() >= REMOVED_AT_ONCE {
            return Ok((Gone::InPart, lost));
        }
        session.execute_all(&source::remove(name)).await?;
        let all = waiters::all_of(name);
        let waiting = session.query(&all.sql, &all.params).await?;
        let waiting = waiting.into_iter().map(|row| Ok(Write::Wake(waiters::known(row)?.0)));
        let writes = waiting.collect::<Result<Vec<_>>>()?;
        write_down(session, writes).await?;
        Ok((Gone::Yes, lost))
    }
}

/// Some tasks of a source, in whatever state.
async fn some_tasks(session: &mut Relay, name: &SourceName) -> Result<BTreeSet<TaskId>> {
    let states =
        [TaskState::Ready, TaskState::Due, TaskState::Leased, TaskState::Dead, TaskState::Done];
    let asks = states.map(|state| task::some_of(name, state, REMOVED_AT_ONCE));
    let found = session.query_all(&asks).await?.into_iter().flatten();
    found.take(REMOVED_AT_ONCE).map(|mut row| Ok(TaskId(row.take(0)?))).collect()
}

/// Writes what is no decision.
async fn write_down(session: &mut Relay, writes: Vec<Write>) -> Result<()> {
    let mut desk = Desk::open(session).await?;
    let (sources, tasks, claims) = (Vec::new(), Vec::new(), Vec::new());
    let change = Change { answer: (), book: desk.sets.book, sources, tasks, claims, writes };
    commit::commit(&mut desk, change, &[]).await
}

/// Puts tasks.
pub(super) struct Put(pub(super) Vec<NewTask>);

impl Act for Put {
    type Answer = Vec<bool>;

    async fn run(&self, session: &mut Relay) -> Result<Vec<bool>> {
        let put = |sets: &Sets, now| domain::put(sets, &self.0, now);
        Ok(Desk::open_and_carry_out(session, put, &self.0).await?.1)
    }
}

/// Takes results, and grants.
pub(super) struct Exchanging {
    pub(super) ask: Exchange,
    pub(super) in_hand: Option<Arc<InHand>>,
}

impl Act for Exchanging {
    type Answer = Exchanged;

    async fn run(&self, session: &mut Relay) -> Result<Exchanged> {
        let Self { ask, in_hand } = self;
        let exchange = |sets: &Sets, now| {
            let mut change = domain::exchange(sets, ask, now)?;
            if let Some(in_hand) = in_hand {
                let known = |one: &_| matches!(one, Write::Seen(by) if in_hand.was_seen(by, now));
                change.writes.retain(|one| !known(one));
            }
            Ok(change)
        };
        let hints = in_hand.as_ref().map(|in_hand| in_hand.look(&ask.reports)).unwrap_or_default();
        let (mut desk, (reports, answer)) =
            Desk::open_knowing(session, &hints, exchange, &[]).await?;
        if let Some(in_hand) = in_hand {
            in_hand.forget(&ask.reports, &reports);
            in_hand.note_seen(std::mem::take(&mut desk.seen), desk.now);
            if let Some(Answer::Granted { claim, tasks, .. }) = &answer {
                in_hand.note(claim, tasks);
            }
        }
        let claimed = match answer {
            Some(answer) => Some(claimed(&mut desk, answer).await?),
            None => None,
        };
        Ok(Exchanged { reports, claimed })
    }
}

/// An answer with the keys and payloads of its tasks.
async fn claimed(desk: &mut Desk<'_>, answer: Answer) -> Result<Claimed> {
    let (claim, lease_until, tasks) = match answer {
        Answer::Nothing { reason, next_at } => return Ok(Claimed::Nothing { reason, next_at }),
        Answer::Granted { claim, lease_until, tasks } => (claim, lease_until, tasks),
    };
    let row_of = |id: &TaskId| desk.rows.get(id).copied().unwrap_or_default();
    let rows: Vec<i64> = tasks.iter().map(|task| row_of(&task.id)).collect();
    let mut texts = std::mem::take(&mut desk.texts);
    // What is handed out was read with the rest; a request that was answered before finds its tasks as they are.
    let missing: Vec<i64> = rows.iter().copied().filter(|row| !texts.contains_key(row)).collect();
    if !missing.is_empty() {
        let ask = task::texts(missing);
        texts.extend(task::read_texts(desk.session.query(&ask.sql, &ask.params).await?)?);
    }
    let mut handed = Vec::with_capacity(tasks.len());
    for (task, row) in tasks.into_iter().zip(rows) {
        let (key, payload) = texts.remove(&row).ok_or_else(|| unknown_task(&task.id))?;
        let domain::Task { id, source, token, attempt, .. } = task;
        handed.push(Handed { id, key, source, payload, token, attempt });
    }
    Ok(Claimed::Granted { claim, lease_until, tasks: handed })
}

/// A waiter waits no more.
pub(super) struct Leave(pub(super) Waiter);

impl Act for Leave {
    type Answer = ();

    async fn run(&self, session: &mut Relay) -> Result<()> {
        write_down(session, domain::leave_queues(&self.0)).await
    }
}

/// Does what is due, and forgets whose time is over.
pub(super) struct Pump;

impl Act for Pump {
    type Answer = Pumped;

    async fn run(&self, session: &mut Relay) -> Result<Pumped> {
        let (desk, expired) = Desk::open_and_carry_out(session, domain::pump, &[]).await?;
        let now = desk.now;
        let asks = [waiters::expired(now, FORGOTTEN), claims::old(now, FORGOTTEN)];
        let mut found = session.query_all(&asks).await?.into_iter();
        let (waiting, old) = (found.next().unwrap_or_default(), found.next().unwrap_or_default());
        let mut forget = Vec::new();
        for row in waiting {
            forget.extend(waiters::known(row)?.1.leave());
        }
        let old: Vec<i64> = old.iter().map(|row| row.int(0)).collect::<Result<_>>()?;
        forget.extend(claims::drop_rows(&old));
        session.execute_all(&forget).await?;
        let next = next(session).await?;
        Ok(Pumped { now, next, expired, more: next.is_some_and(|next| next <= now) })
    }
}

/// The next instant at which something happens by itself.
async fn next(session: &mut Relay) -> Result<Option<Stamp>> {
    let asks = [
        "SELECT until FROM tasks WHERE state = 'leased' ORDER BY {until} LIMIT 1",
        "SELECT at FROM tasks WHERE state = 'due' ORDER BY {due} LIMIT 1",
        "SELECT opens FROM sources WHERE opens IS NOT NULL ORDER BY opens LIMIT 1",
        "SELECT promised_until FROM sources WHERE promised > 0 ORDER BY promised_until LIMIT 1",
    ]
    .map(|first| Statement::new(first, Vec::new()));
    let mut next = None;
    for row in session.query_all(&asks).await?.into_iter().flatten() {
        next = next.into_iter().chain([row.int(0)?]).min();
    }
    Ok(next.map(Stamp))
}

/// Removes a task.
pub(super) struct RemoveTask {
    pub(super) id: TaskId,
    pub(super) force: bool,
    pub(super) note: Option<Line>,
}

impl Act for RemoveTask {
    type Answer = bool;

    async fn run(&self, session: &mut Relay) -> Result<bool> {
        let remove = |sets: &Sets, now| domain::remove(sets, &self.id, self.force, now);
        let (_, removed) = Desk::open_and_carry_out(session, remove, &[]).await?;
        if removed {
            note(session, self.note.as_ref()).await?;
        }
        Ok(removed)
    }
}

/// Makes a dead task ready again.
pub(super) struct Revive {
    pub(super) id: TaskId,
    pub(super) note: Option<Line>,
}

impl Act for Revive {
    type Answer = TaskView;

    async fn run(&self, session: &mut Relay) -> Result<TaskView> {
        let revive = |sets: &Sets, now| domain::revive(sets, &self.id, now);
        Desk::open_and_carry_out(session, revive, &[]).await?;
        note(session, self.note.as_ref()).await?;
        let params = vec![self.id.0.as_str().into()];
        let view = task::views(session, "t.id = ?", params).await?.pop();
        view.ok_or_else(|| unknown_task(&self.id))
    }
}

/// One source, or all by name.
pub(super) struct ReadSources(pub(super) Option<SourceName>);

impl Act for ReadSources {
    type Answer = Vec<SourceView>;

    async fn run(&self, session: &mut Relay) -> Result<Vec<SourceView>> {
        let now = now(session).await?;
        let found = match &self.0 {
            Some(name) => {
                let one = source::one(session, name).await?;
                vec![one.ok_or_else(|| source::unknown(name))?]
            }
            None => source::all(session).await?,
        };
        source::views(session, &found, now).await
    }
}

/// Tasks that `rest` of a query about `t` finds.
pub(super) struct ReadTasks {
    pub(super) rest: String,
    pub(super) params: Vec<Value>,
}

impl Act for ReadTasks {
    type Answer = Vec<TaskView>;

    async fn run(&self, session: &mut Relay) -> Result<Vec<TaskView>> {
        task::views(session, &self.rest, self.params.clone()).await
    }
}

/// Those seen within a day, by name, with what they hold.
pub(super) struct ReadCollectors;

impl Act for ReadCollectors {
    type Answer = Vec<CollectorView>;

    async fn run(&self, session: &mut Relay) -> Result<Vec<CollectorView>> {
        let oldest = commit::oldest_seen(now(session).await?);
        let asks = [
            Statement::new("SELECT name, seen FROM collectors WHERE seen > ?", vec![oldest.into()]),
            Statement::new(
                "SELECT t.collector, t.id, p.key, t.source, t.until FROM tasks t JOIN payloads p ON p.task = t.n \
                 WHERE t.state = 'leased' ORDER BY t.{until}",
                Vec::new(),
            ),
        ];
        let mut found = session.query_all(&asks).await?.into_iter();
        let mut views = BTreeMap::new();
        for mut row in found.next().unwrap_or_default() {
            let (name, seen) = (row.take(0)?, Stamp(row.int(1)?));
            let (holds, in_flight) = (Vec::new(), 0);
            let view = CollectorView { name: task::collector(&name)?, seen, holds, in_flight };
            views.insert(name, view);
        }
        for mut row in found.next().unwrap_or_default() {
            let view = row.opt_text(0)?.and_then(|name| views.get_mut(name));
            let Some(view) = view else { continue };
            view.in_flight += 1;
            if view.in_flight <= u64::from(BATCH) {
                let (source, until) = (source::name(row.text(3)?)?, Stamp(row.int(4)?));
                view.holds.push((TaskId(row.take(1)?), row.take(2)?, source, until));
            }
        }
        Ok(views.into_values().collect())
    }
}

/// The clock, for calls that only look.
async fn now(session: &mut Relay) -> Result<Stamp> {
    Ok(session.query_at("SELECT newest FROM dispatch").await?.1)
}
