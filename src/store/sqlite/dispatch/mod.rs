//! Dispatch in SQLite: what `domain::dispatch` decides, carried out in one transaction each.
//!
//! `decide` loads what a transition looks at and `commit` writes what it says; `source`, `task` and `claims` are rows,
//! `waiters` is who waits. Whatever a transition looks at is found by an index (`0003_dispatch.sql`): its cost does not grow
//! with tasks, leases or sources.

mod claims;
mod commit;
mod decide;
mod source;
mod task;
mod waiters;

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;

use super::fault::Outcome;
use super::row::find;
use super::step::Step;
use super::{SqliteStore, clock, records};
use crate::domain::dispatch::{self as domain, Answer, Change, Halt, Rules, Sets, TaskState};
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::dispatch::{
    BATCH, ClaimId, ClaimOwner, Claimed, CollectorView, Dispatch, Exchange, Exchanged, Extended,
    Handed, Lost, NewTask, Pumped, RemovedSource, SourceView, Sources, TaskFilter, TaskId,
    TaskView, Waiter,
};
use crate::store::{Result, StoreError};
use decide::Desk;

/// Most tasks that one step of a removal removes.
const REMOVED_AT_ONCE: usize = 500;
/// Most waiters and most claims whose time is over that one pump forgets.
const FORGOTTEN: u32 = 256;

impl Sources for SqliteStore {
    async fn put_source(&self, source: &SourceName, rules: &Rules) -> Result<SourceView> {
        let (name, rules) = (source.clone(), rules.clone());
        self.limit(source, move |sets, now| domain::define(sets, &name, &rules, now)).await
    }

    async fn pause_source(&self, source: &SourceName, paused: bool) -> Result<SourceView> {
        let name = source.clone();
        self.limit(source, move |sets, now| domain::pause(sets, &name, paused, now)).await
    }

    async fn block_source(&self, source: &SourceName, lasting: Duration) -> Result<SourceView> {
        let name = source.clone();
        self.limit(source, move |sets, now| domain::block(sets, &name, lasting, now)).await
    }

    async fn remove_source(&self, source: &SourceName, force: bool) -> Result<RemovedSource> {
        let mut first = None;
        loop {
            let name = source.clone();
            let (gone, now) = self.write(move |step| remove_some(step, &name, force)).await?;
            let lost = *first.get_or_insert(now);
            match gone {
                Gone::No => return Ok(RemovedSource::Kept(lost)),
                Gone::Yes => return Ok(RemovedSource::Done(lost)),
                Gone::InPart => {}
            }
        }
    }

    async fn sources(&self, only: Option<&SourceName>) -> Result<Vec<SourceView>> {
        let only = only.cloned();
        self.read(move |db, at| {
            let now = clock::now(db, at)?;
            let found = match &only {
                Some(name) => {
                    vec![source::one(db, name)?.ok_or_else(|| source::unknown(name))?]
                }
                None => source::all(db)?,
            };
            found.iter().map(|source| source::view(db, source, now)).collect()
        })
        .await
    }

    async fn collectors(&self) -> Result<Vec<CollectorView>> {
        self.read(|db, at| collectors(db, clock::now(db, at)?)).await
    }
}

/// How far the removal of a source has come.
enum Gone {
    No,
    InPart,
    Yes,
}

/// One step of the removal of a source, and what there was of it before the step.
fn remove_some(step: &Step<'_>, name: &SourceName, force: bool) -> Outcome<(Gone, Lost)> {
    let mut desk = Desk::open(step)?;
    let found = source::one(step, name)?.ok_or_else(|| source::unknown(name))?;
    let tasks = found.ready + found.due + found.in_flight + found.dead;
    let lost = Lost { tasks, in_flight: found.in_flight };
    if tasks > 0 && !force {
        return Ok((Gone::No, lost));
    }
    carry_out(&mut desk, |sets, now| domain::pause(sets, name, true, now))?;
    let mut left = REMOVED_AT_ONCE;
    for state in
        [TaskState::Ready, TaskState::Due, TaskState::Leased, TaskState::Dead, TaskState::Done]
    {
        for id in task::some_of(step, name, state, left)? {
            carry_out(&mut Desk::open(step)?, |sets, now| domain::remove(sets, &id, true, now))?;
            left -= 1;
        }
    }
    if left == 0 {
        return Ok((Gone::InPart, lost));
    }
    source::remove(step, name)?;
    let woken = waiters::dismiss(step, name)?;
    if !woken.is_empty() {
        step.publish_wake(&woken)?;
    }
    Ok((Gone::Yes, lost))
}

impl SqliteStore {
    /// Changes what limits a source, and looks at what came of it.
    async fn limit(
        &self,
        source: &SourceName,
        act: impl Fn(&Sets, Stamp) -> std::result::Result<Change<()>, Halt> + Send + 'static,
    ) -> Result<SourceView> {
        let (name, note) = (source.clone(), self.noted()?);
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            carry_out(&mut desk, act)?;
            records::note(step, note.as_ref())?;
            let source = source::one(step, &name)?.ok_or_else(|| source::unknown(&name))?;
            source::view(step, &source, desk.now)
        })
        .await
    }
}

/// Load, decide, write.
fn carry_out<T>(
    desk: &mut Desk<'_>,
    act: impl Fn(&Sets, Stamp) -> std::result::Result<Change<T>, Halt>,
) -> Outcome<T> {
    let change = desk.decide(act)?;
    commit::commit(desk, change, &[])
}

impl Dispatch for SqliteStore {
    async fn put_tasks(&self, tasks: &[NewTask]) -> Result<Vec<bool>> {
        let tasks = tasks.to_vec();
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            let change = desk.decide(|sets, now| domain::put(sets, &tasks, now))?;
            commit::commit(&mut desk, change, &tasks)
        })
        .await
    }

    async fn exchange(&self, ask: &Exchange) -> Result<Exchanged> {
        let ask = ask.clone();
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            let (reports, answer) =
                carry_out(&mut desk, |sets, now| domain::exchange(sets, &ask, now))?;
            let claimed = answer.map(|answer| claimed(&desk, answer)).transpose()?;
            Ok(Exchanged { reports, claimed })
        })
        .await
    }

    async fn extend(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<Extended> {
        let (claim, only) = (claim.clone(), only.cloned());
        self.write(move |step| {
            let act = |sets: &Sets, now| domain::extend(sets, &claim, only.as_ref(), now);
            carry_out(&mut Desk::open(step)?, act)
        })
        .await
    }

    async fn give_back(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<u64> {
        let (claim, only) = (claim.clone(), only.cloned());
        self.write(move |step| {
            let act = |sets: &Sets, now| domain::give_back(sets, &claim, only.as_ref(), false, now);
            carry_out(&mut Desk::open(step)?, act)
        })
        .await
    }

    async fn give_back_unseen_claim(&self, claim: &ClaimId) -> Result<u64> {
        let claim = claim.clone();
        self.write(move |step| {
            let act = |sets: &Sets, now| domain::give_back(sets, &claim, None, true, now);
            carry_out(&mut Desk::open(step)?, act)
        })
        .await
    }

    async fn leave_queues(&self, waiter: &Waiter, _sources: &[SourceName]) -> Result<()> {
        let waiter = waiter.clone();
        self.write(move |step| waiters::leave(step, &waiter)).await
    }

    async fn pump(&self) -> Result<Pumped> {
        self.write(|step| {
            let mut desk = Desk::open(step)?;
            let expired = carry_out(&mut desk, domain::pump)?;
            let now = desk.now;
            waiters::expire(step, now, FORGOTTEN)?;
            claims::forget(step, now, FORGOTTEN)?;
            let next = next(step)?;
            Ok(Pumped { now, next, expired, more: next.is_some_and(|next| next <= now) })
        })
        .await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<TaskView>> {
        let id = id.clone();
        self.read(move |db, _| Ok(task::views(db, "t.id = ?", [&id.0])?.pop())).await
    }

    async fn dead(
        &self,
        source: Option<&SourceName>,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<TaskView>> {
        let source = source.cloned();
        let count = |count| i64::try_from(count).unwrap_or(i64::MAX);
        let (skip, limit) = (count(skip), count(limit));
        self.read(move |db, _| match &source {
            Some(source) => task::views(
                db,
                "t.source = ? AND t.state = 'dead' ORDER BY t.changed DESC, t.n DESC LIMIT ? OFFSET ?",
                (source.as_str(), limit, skip),
            ),
            None => task::views(
                db,
                "t.state = 'dead' ORDER BY t.changed DESC, t.n DESC LIMIT ? OFFSET ?",
                (limit, skip),
            ),
        })
        .await
    }

    async fn tasks(
        &self,
        filter: &TaskFilter,
        before: Option<&(Stamp, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskView>> {
        let (filter, before) = (filter.clone(), before.cloned());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |db, _| {
            let (at, id) = before.unwrap_or((Stamp(i64::MAX), TaskId(String::new())));
            let source = filter.source.as_ref().map(SourceName::as_str);
            let state = filter.state.map(TaskState::as_str);
            task::views(
                db,
                "(?1 IS NULL OR t.source = ?1) AND (?2 IS NULL OR t.state = ?2) \
                 AND (t.changed < ?3 OR t.changed = ?3 AND t.id < ?4) \
                 ORDER BY t.changed DESC, t.id DESC LIMIT ?5",
                (source, state, at.0, id.0, limit),
            )
        })
        .await
    }

    async fn remove_task(&self, id: &TaskId, force: bool) -> Result<bool> {
        let (id, note) = (id.clone(), self.noted()?);
        self.write(move |step| {
            let act = |sets: &Sets, now| domain::remove(sets, &id, force, now);
            let removed = carry_out(&mut Desk::open(step)?, act)?;
            if removed {
                records::note(step, note.as_ref())?;
            }
            Ok(removed)
        })
        .await
    }

    async fn revive(&self, id: &TaskId) -> Result<TaskView> {
        let (id, note) = (id.clone(), self.noted()?);
        self.write(move |step| {
            carry_out(&mut Desk::open(step)?, |sets, now| domain::revive(sets, &id, now))?;
            records::note(step, note.as_ref())?;
            let view = task::views(step, "t.id = ?", [&id.0])?.pop();
            Ok(view.ok_or_else(|| StoreError::NotFound(format!("task {}", id.0)))?)
        })
        .await
    }
}

/// An answer with the keys and payloads of its tasks.
fn claimed(desk: &Desk<'_>, answer: Answer) -> Outcome<Claimed> {
    let (claim, lease_until, tasks) = match answer {
        Answer::Nothing { reason, next_at } => return Ok(Claimed::Nothing { reason, next_at }),
        Answer::Granted { claim, lease_until, tasks } => (claim, lease_until, tasks),
    };
    let mut handed = Vec::with_capacity(tasks.len());
    for task in tasks {
        let row = desk.rows.get(&task.id).copied().unwrap_or_default();
        let (key, payload) = task::texts(desk.step, row)?;
        let domain::Task { id, source, token, attempt, .. } = task;
        handed.push(Handed { id, key, source, payload, token, attempt });
    }
    Ok(Claimed::Granted { claim, lease_until, tasks: handed })
}

/// The next instant at which something happens by itself.
fn next(step: &Step<'_>) -> Outcome<Option<Stamp>> {
    let mut next = None;
    for first in [
        "SELECT until FROM tasks WHERE state = 'leased' ORDER BY until LIMIT 1",
        "SELECT at FROM tasks WHERE state = 'due' ORDER BY at LIMIT 1",
        "SELECT opens FROM sources WHERE opens IS NOT NULL ORDER BY opens LIMIT 1",
        "SELECT promised_until FROM sources WHERE promised > 0 ORDER BY promised_until LIMIT 1",
    ] {
        next = next.into_iter().chain(find::<i64>(step, first, [])?).min();
    }
    Ok(next.map(Stamp))
}

/// Those seen within a day, by name, with what they hold.
fn collectors(db: &Connection, now: Stamp) -> Outcome<Vec<CollectorView>> {
    let mut views = BTreeMap::new();
    let mut found = db.prepare_cached("SELECT name, seen FROM collectors WHERE seen > ?")?;
    let mut rows = found.query([commit::oldest_seen(now)])?;
    while let Some(row) = rows.next()? {
        let name = row.get::<_, String>(0)?;
        let view = CollectorView {
            name: task::collector(&name)?,
            seen: Stamp(row.get(1)?),
            holds: Vec::new(),
            in_flight: 0,
        };
        views.insert(name, view);
    }
    let mut held = db.prepare_cached(
        "SELECT t.collector, t.id, p.key, t.source, t.until FROM tasks t JOIN payloads p ON p.task = t.n \
         WHERE t.state = 'leased' ORDER BY t.until",
    )?;
    let mut rows = held.query([])?;
    while let Some(row) = rows.next()? {
        let Some(view) = views.get_mut(row.get_ref(0)?.as_str().unwrap_or_default()) else {
            continue;
        };
        view.in_flight += 1;
        if view.in_flight <= u64::from(BATCH) {
            let source = source::name(&row.get::<_, String>(3)?)?;
            view.holds.push((TaskId(row.get(1)?), row.get(2)?, source, Stamp(row.get(4)?)));
        }
    }
    Ok(views.into_values().collect())
}
