//! Dispatch in SQLite: every transition is one transaction around the decisions of `domain::dispatch`.
//!
//! `desk` is one transition with the sources it touches, `source` and `task` are rows,
//! `overdue` is what happens without a client, `exchange` takes results and hands out tasks, `claims` remembers what
//! was answered, `waiters` who waits. Whatever a claim looks at is found by an index (`0003_dispatch.sql`): its cost
//! does not grow with tasks, leases or sources.

mod claims;
mod desk;
mod exchange;
mod overdue;
mod source;
mod task;
mod waiters;

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;

use super::fault::Outcome;
use super::{SqliteStore, clock};
use crate::domain::dispatch::Rules;
use crate::domain::name::{CollectorName, SourceName};
use crate::domain::time::Stamp;
use crate::store::Result;
use crate::store::dispatch::{
    BATCH, ClaimId, CollectorView, Dispatch, Exchange, Exchanged, Extended, NewTask, Pumped,
    SourceView, Sources, TaskId, TaskView, Waiter,
};
use desk::Desk;
use source::Source;

impl Sources for SqliteStore {
    async fn put_source(&self, source: &SourceName, rules: &Rules) -> Result<SourceView> {
        let (name, rules) = (source.clone(), rules.clone());
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            let now = desk.now;
            let view = desk.define(&name, &rules)?.view(step, now)?;
            desk.close()?;
            Ok(view)
        })
        .await
    }

    async fn pause_source(&self, source: &SourceName, paused: bool) -> Result<SourceView> {
        self.limit(source, move |source, _| source.rules.paused = paused).await
    }

    async fn block_source(&self, source: &SourceName, lasting: Duration) -> Result<SourceView> {
        self.limit(source, move |source, now| source.blocked_until = now + lasting).await
    }

    async fn sources(&self, only: Option<&SourceName>) -> Result<Vec<SourceView>> {
        let only = only.cloned();
        self.read(move |db, at| {
            let now = clock::now(db, at)?;
            let found = match &only {
                Some(name) => {
                    vec![Source::load(db, name)?.ok_or_else(|| desk::unknown(name))?]
                }
                None => Source::load_all(db)?,
            };
            found.iter().map(|source| source.view(db, now)).collect()
        })
        .await
    }

    async fn collectors(&self) -> Result<Vec<CollectorView>> {
        self.read(|db, at| collectors(db, clock::now(db, at)?)).await
    }
}

impl SqliteStore {
    /// Changes what limits a source, and looks at what came of it.
    async fn limit(
        &self,
        source: &SourceName,
        change: impl FnOnce(&mut Source, Stamp) + Send + 'static,
    ) -> Result<SourceView> {
        let name = source.clone();
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            let now = desk.now;
            let source = desk.source(&name)?;
            change(source, now);
            source.save_rules(step)?;
            let view = source.view(step, now)?;
            desk.close()?;
            Ok(view)
        })
        .await
    }
}

impl Dispatch for SqliteStore {
    async fn put_tasks(&self, tasks: &[NewTask]) -> Result<Vec<bool>> {
        let tasks = tasks.to_vec();
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            // A missing source undoes what was put before it.
            let put = tasks.iter().map(|new| task::put(&mut desk, new)).collect();
            desk.close()?;
            put
        })
        .await
    }

    async fn exchange(&self, ask: &Exchange) -> Result<Exchanged> {
        let ask = ask.clone();
        self.write(move |step| exchange::exchange(step, &ask)).await
    }

    async fn extend(&self, claim: &ClaimId, only: Option<&CollectorName>) -> Result<Extended> {
        let (claim, only) = (claim.clone(), only.cloned());
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            let extended = claims::extend(&mut desk, &claim, only.as_ref())?;
            desk.close()?;
            Ok(extended)
        })
        .await
    }

    async fn give_back(&self, claim: &ClaimId, only: Option<&CollectorName>) -> Result<u64> {
        let (claim, only) = (claim.clone(), only.cloned());
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            let returned = claims::give_back(&mut desk, &claim, only.as_ref())?;
            desk.close()?;
            Ok(returned)
        })
        .await
    }

    async fn give_back_unseen(&self, claim: &ClaimId) -> Result<u64> {
        let claim = claim.clone();
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            if claims::was_repeated(&desk, &claim)? {
                return Ok(0);
            }
            let returned = claims::give_back(&mut desk, &claim, None)?;
            desk.close()?;
            Ok(returned)
        })
        .await
    }

    async fn stop_waiting(&self, waiter: &Waiter, _sources: &[SourceName]) -> Result<()> {
        let waiter = waiter.clone();
        self.write(move |step| waiters::leave(step, &waiter)).await
    }

    async fn pump(&self) -> Result<Pumped> {
        self.write(overdue::pump).await
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

    async fn revive(&self, id: &TaskId) -> Result<TaskView> {
        let id = id.clone();
        self.write(move |step| {
            let mut desk = Desk::open(step)?;
            let view = task::revive(&mut desk, &id)?;
            desk.close()?;
            Ok(view)
        })
        .await
    }
}

/// Those seen within a day, by name, with what they hold.
fn collectors(db: &Connection, now: Stamp) -> Outcome<Vec<CollectorView>> {
    let mut views = BTreeMap::new();
    let mut found = db.prepare_cached("SELECT name, seen FROM collectors WHERE seen > ?")?;
    let mut rows = found.query([claims::oldest_seen(now)])?;
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
            let source = source::source_name(&row.get::<_, String>(3)?)?;
            view.holds.push((TaskId(row.get(1)?), row.get(2)?, source, Stamp(row.get(4)?)));
        }
    }
    Ok(views.into_values().collect())
}
