//! Sources and tasks out of one store and into another (`store/portable.rs`), and a store that is emptied.
//!
//! Every copy of a task has a row with a new number: numbers only say which came first.

use async_trait::async_trait;

use super::super::relay::Relay;
use super::super::row::{count, int, uint};
use super::super::session::{Dialect, Row, Statement, Value};
use super::{Act, BySql, source, task};
use crate::sql::row::corrupt;
use soloist_domain::dispatch::{Source, TaskState};
use soloist_domain::lease::Token;
use soloist_domain::name::{CollectorName, JobName};
use soloist_domain::time::Stamp;
use soloist_store::dispatch::{CollectorView, TaskId};
use soloist_store::portable::{AT_ONCE, Bookmark, Portable, StoredSource, StoredTask};
use soloist_store::{Result, copy};

const WHOLE: &str = "INSERT INTO tasks (n, id, source, state, priority, place, at, attempt, token, accepted, collector, \
     every_us, created, changed, error)";

#[async_trait]
impl Portable for BySql {
    async fn every_job(&self) -> Result<Vec<JobName>> {
        self.inspect(EveryJob).await
    }

    async fn every_source(&self) -> Result<Vec<StoredSource>> {
        self.inspect(EverySource).await
    }

    async fn next_tasks(&self, from: Bookmark) -> Result<(Vec<StoredTask>, Option<Bookmark>)> {
        self.inspect(NextTasks(from)).await
    }

    async fn fill_sources(&self, sources: &[StoredSource]) -> Result<()> {
        self.transact(FillSources(sources.to_vec())).await
    }

    async fn fill_tasks(&self, tasks: &[StoredTask]) -> Result<()> {
        self.transact(FillTasks(tasks.to_vec())).await
    }

    async fn fill_done(&self, _: &[TaskId]) -> Result<()> {
        // The instants of the rows say it.
        Ok(())
    }

    async fn fill_collectors(&self, collectors: &[CollectorView]) -> Result<()> {
        let seen = collectors.iter().map(|one| (one.name.clone(), one.seen)).collect();
        self.transact(FillCollectors(seen)).await
    }

    async fn empty(&self) -> Result<()> {
        self.transact(Empty).await
    }
}

struct EveryJob;

impl Act for EveryJob {
    type Answer = Vec<JobName>;

    async fn run(&self, session: &mut Relay) -> Result<Vec<JobName>> {
        let table = if session.dialect() == Dialect::Sqlite { "records" } else { "jobs" };
        let found = format!("SELECT job FROM {table} WHERE head <> '' ORDER BY job");
        let found = session.query(&found, &[]).await?;
        let name = |row: &Row| {
            JobName::new(row.text(0)?).map_err(|why| corrupt("a job", &why.to_string()))
        };
        found.iter().map(name).collect()
    }
}

struct EverySource;

impl Act for EverySource {
    type Answer = Vec<StoredSource>;

    async fn run(&self, session: &mut Relay) -> Result<Vec<StoredSource>> {
        let book = session.query("SELECT token FROM dispatch", &[]).await?;
        let token = book.first().map(|row| row.int(0)).transpose()?.map_or(0, uint);
        let mut sources = source::all(session).await?;
        sources.sort_by_key(|source| source.seat.turn.unwrap_or(u64::MAX));
        let mut all = Vec::with_capacity(sources.len());
        for source in sources {
            let starts = "SELECT at, n FROM starts WHERE source = ? ORDER BY at, n";
            let rows = session.query(starts, &[source.name.as_str().into()]).await?;
            let starts = starts_of(&source, &rows)?;
            all.push(StoredSource { source, token: Token(token), starts });
        }
        Ok(all)
    }
}

/// A row has the instant and the number of the first of those that started then.
fn starts_of(source: &Source, rows: &[Row]) -> Result<Vec<Stamp>> {
    let mut starts = Vec::new();
    for (nth, row) in rows.iter().enumerate() {
        let next = rows.get(nth + 1).map(|row| row.int(1)).transpose()?.map(uint);
        let many = next.unwrap_or(source.started + 1).saturating_sub(uint(row.int(1)?));
        let many = usize::try_from(many).unwrap_or(usize::MAX);
        starts.extend(std::iter::repeat_n(Stamp(row.int(0)?), many));
    }
    Ok(starts)
}

struct NextTasks(Bookmark);

impl Act for NextTasks {
    type Answer = (Vec<StoredTask>, Option<Bookmark>);

    async fn run(&self, session: &mut Relay) -> Result<Self::Answer> {
        let found = format!("{}t.n > ? ORDER BY t.n LIMIT ?", task::TASKS);
        let params = [self.0.behind.into(), count(AT_ONCE).into()];
        let found = session.query(&found, &params).await?;
        let tasks: Vec<_> = found.into_iter().map(task::read).collect::<Result<_>>()?;
        let rows: Vec<i64> = tasks.iter().map(|(row, _)| *row).collect();
        let next = rows.last().map(|last| Bookmark { behind: *last, ..self.0 });
        let ask = task::texts(rows.clone());
        let mut texts = task::read_texts(session.query(&ask.sql, &ask.params).await?)?;
        let mut histories = task::histories(session, &rows).await?;
        let whole = tasks.into_iter().map(|(row, task)| {
            let (key, payload) =
                texts.remove(&row).ok_or_else(|| corrupt(&task.id.0, "it has no payload"))?;
            let history = histories.remove(&row).unwrap_or_default();
            Ok(StoredTask { task, key, payload, history })
        });
        Ok((whole.collect::<Result<_>>()?, next))
    }
}

struct FillSources(Vec<StoredSource>);

impl Act for FillSources {
    type Answer = ();

    async fn run(&self, session: &mut Relay) -> Result<()> {
        for StoredSource { source: stored, token, starts } in &self.0 {
            let made = source::one(session, &stored.name).await?;
            let made = made.ok_or_else(|| source::unknown(&stored.name))?;
            let Source { rules, seat, .. } = made.clone();
            let (promised, promised_until) = (0, Stamp(0));
            let whole =
                Source { rules, seat, promised, promised_until, in_flight: 0, ..stored.clone() };
            let mut statements = source::save(&whole, Some(&made))?;
            statements.extend(start_rows(stored, starts));
            statements.push(Statement::new(
                "UPDATE dispatch SET token = ? WHERE token < ?",
                vec![int(token.0).into(), int(token.0).into()],
            ));
            session.execute_all(&statements).await?;
        }
        Ok(())
    }
}

/// As [`starts_of`] reads them.
fn start_rows(source: &Source, starts: &[Stamp]) -> Vec<Statement> {
    let first = (source.started + 1).saturating_sub(starts.len() as u64);
    let (mut rows, mut before): (Vec<Vec<Value>>, _) = (Vec::new(), None);
    for (nth, at) in (first..).zip(starts) {
        if before != Some(at) {
            rows.push(vec![source.name.as_str().into(), at.0.into(), int(nth).into()]);
        }
        before = Some(at);
    }
    Statement::insert("INSERT INTO starts (source, at, n)", 3, rows)
}

struct FillTasks(Vec<StoredTask>);

impl Act for FillTasks {
    type Answer = ();

    async fn run(&self, session: &mut Relay) -> Result<()> {
        let newest = session.query("SELECT max(n) FROM tasks", &[]).await?;
        let newest = newest.first().map(|row| row.opt_int(0)).transpose()?.flatten();
        let (mut tasks, mut payloads, mut pasts) = (Vec::new(), Vec::new(), Vec::new());
        let mut done = 0;
        for (n, one) in (newest.unwrap_or_default() + 1..).zip(&self.0) {
            let StoredTask { task, key, payload, history } = one;
            done += i64::from(task.state == TaskState::Done);
            tasks.push(row(n, one));
            payloads.push(vec![n.into(), key.as_str().into(), payload.as_str().into()]);
            for (nth, past) in (1..).zip(history) {
                pasts.push(vec![
                    n.into(),
                    Value::Int(nth),
                    past.at.0.into(),
                    task::event_word(past.event).into(),
                    i64::from(past.attempt).into(),
                    past.collector.as_ref().map(CollectorName::as_str).into(),
                    past.error.as_deref().into(),
                ]);
            }
        }
        let mut statements = Statement::insert(WHOLE, 15, tasks);
        statements.extend(Statement::insert("INSERT INTO payloads", 3, payloads));
        let past = "INSERT INTO pasts (task, n, at, event, attempt, collector, error)";
        statements.extend(Statement::insert(past, 7, pasts));
        statements
            .push(Statement::new("UPDATE dispatch SET done = done + ?", vec![Value::Int(done)]));
        session.execute_all(&statements).await
    }
}

fn row(n: i64, StoredTask { task, .. }: &StoredTask) -> Vec<Value> {
    let every = task.every.map(|every| i64::try_from(every.as_micros()).unwrap_or(i64::MAX));
    vec![
        n.into(),
        task.id.0.as_str().into(),
        task.source.as_str().into(),
        task.state.as_str().into(),
        i64::from(task.priority).into(),
        task.place.map(|place| int(place.0)).into(),
        task.at.map(|at| at.0).into(),
        i64::from(task.attempt).into(),
        int(task.token.0).into(),
        int(task.accepted.0).into(),
        task.collector.as_ref().map(CollectorName::as_str).into(),
        every.into(),
        task.created.0.into(),
        task.changed.0.into(),
        task.error.as_deref().into(),
    ]
}

struct FillCollectors(Vec<(CollectorName, Stamp)>);

impl Act for FillCollectors {
    type Answer = ();

    async fn run(&self, session: &mut Relay) -> Result<()> {
        let rows = self.0.iter().map(|(name, seen)| vec![name.as_str().into(), seen.0.into()]);
        let insert = "INSERT INTO collectors (name, seen)";
        session.execute_all(&Statement::insert(insert, 2, rows.collect())).await
    }
}

struct Empty;

/// Tables of dispatch.
const DISPATCH: [&str; 10] = [
    "sources",
    "starts",
    "tasks",
    "payloads",
    "pasts",
    "claims",
    "grants",
    "waiters",
    "waits",
    "collectors",
];

impl Act for Empty {
    type Answer = ();

    async fn run(&self, session: &mut Relay) -> Result<()> {
        let (tables, cells): (&[&str], _) = match session.dialect() {
            Dialect::Sqlite => (&["records", "leases", "entries", "output"], "rows"),
            Dialect::Postgres | Dialect::Mysql => (&["jobs", "runs", "output", "folds"], "cells"),
        };
        let mut statements: Vec<Statement> = tables
            .iter()
            .chain(&["lists", "logs"])
            .chain(&DISPATCH)
            .map(|table| Statement::new(format!("DELETE FROM {table}"), Vec::new()))
            .collect();
        statements.push(Statement::new(
            format!("DELETE FROM {cells} WHERE kind <> ?"),
            vec![copy::MARKS.into()],
        ));
        // Gates are only locked, and what was told is counted for the followers.
        let counters = match session.dialect() {
            Dialect::Sqlite => "DELETE FROM numbers",
            Dialect::Postgres | Dialect::Mysql => {
                "DELETE FROM numbers WHERE name NOT LIKE 'gate%' AND name NOT LIKE 'told:%'"
            }
        };
        statements.push(Statement::new(counters, Vec::new()));
        let book = "UPDATE dispatch SET token = 0, turn = 0, done = 0";
        statements.push(Statement::new(book, Vec::new()));
        session.execute_all(&statements).await
    }
}
