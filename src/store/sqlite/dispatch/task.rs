//! A task's rows: put, read, taken out of a collector's hands, shown.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};

use super::super::fault::Outcome;
use super::super::row::{corrupt, int, uint};
use super::desk::Desk;
use super::source::source_name;
use crate::domain::dispatch::{Departure, Next, Outcome as Said, Place, TaskState};
use crate::domain::lease::Token;
use crate::domain::name::{CollectorName, SourceName};
use crate::domain::time::Stamp;
use crate::store::StoreError;
use crate::store::dispatch::{ClaimId, HISTORY_KEPT, NewTask, Past, PastEvent, TaskId, TaskView};

/// What decides about a task.
pub(super) struct Task {
    pub(super) n: i64,
    pub(super) source: SourceName,
    pub(super) state: TaskState,
    pub(super) priority: u8,
    pub(super) until: Stamp,
    pub(super) attempt: u32,
    pub(super) token: Token,
    /// Of the newest accepted result.
    pub(super) accepted: Token,
    /// The newest to hold it.
    pub(super) collector: Option<CollectorName>,
    /// The newest claim it was in.
    pub(super) claim: i64,
    pub(super) every: Option<Duration>,
}

const COLUMNS: &str =
    "n, source, state, priority, until, attempt, token, accepted, collector, claim, every_us";

impl Task {
    pub(super) fn find(db: &Connection, id: &TaskId) -> Outcome<Option<Self>> {
        let mut found = db.prepare_cached(&format!("SELECT {COLUMNS} FROM tasks WHERE id = ?"))?;
        let mut rows = found.query([&id.0])?;
        rows.next()?.map(Self::read).transpose()
    }

    /// Those that `rest` of a query finds.
    pub(super) fn select(
        db: &Connection,
        rest: &str,
        params: impl rusqlite::Params,
    ) -> Outcome<Vec<Self>> {
        let mut found = db.prepare_cached(&format!("SELECT {COLUMNS} FROM tasks WHERE {rest}"))?;
        let mut rows = found.query(params)?;
        let mut tasks = Vec::new();
        while let Some(row) = rows.next()? {
            tasks.push(Self::read(row)?);
        }
        Ok(tasks)
    }

    fn read(row: &Row<'_>) -> Outcome<Self> {
        Ok(Self {
            n: row.get(0)?,
            source: source_name(&row.get::<_, String>(1)?)?,
            state: state(row.get(2)?)?,
            priority: row.get(3)?,
            until: Stamp(row.get::<_, Option<i64>>(4)?.unwrap_or_default()),
            attempt: row.get(5)?,
            token: Token(uint(row.get(6)?)),
            accepted: Token(uint(row.get(7)?)),
            collector: row.get::<_, Option<String>>(8)?.map(|name| collector(&name)).transpose()?,
            claim: row.get::<_, Option<i64>>(9)?.unwrap_or_default(),
            every: row.get::<_, Option<i64>>(10)?.map(every),
        })
    }

    /// Takes it out of its collector's hands.
    pub(super) fn leave(
        &self,
        desk: &mut Desk<'_>,
        how: Departure,
        error: Option<&str>,
    ) -> Outcome<()> {
        let now = desk.now;
        let source = desk.source(&self.source)?;
        let next = source.rules.after(how, self.attempt, self.every, now);
        source.in_flight = source.in_flight.saturating_sub(1);
        let said = match how {
            Departure::Reported { outcome, .. } => Some(outcome),
            Departure::Expired | Departure::Returned => None,
        };
        source.finished += u64::from(said == Some(Said::Done));
        source.retried += u64::from(said == Some(Said::Retry));
        source.expired += u64::from(how == Departure::Expired);
        let (mut place, mut at) = (None, None);
        let mut attempt = self.attempt;
        let state = match next {
            Next::Ready => {
                source.ready += 1;
                source.nth += 1;
                place = Some(Place::before(self.priority, source.nth));
                attempt -= u32::from(how == Departure::Returned && attempt > 0);
                TaskState::Ready
            }
            Next::Due { at: due, again } => {
                source.due += 1;
                at = Some(due.0);
                attempt = if again { 0 } else { attempt };
                TaskState::Due
            }
            Next::Done => {
                source.done += 1;
                TaskState::Done
            }
            Next::Dead => {
                source.dead += 1;
                TaskState::Dead
            }
        };
        let accepted = if said.is_some() { self.token } else { self.accepted };
        desk.step
            .prepare_cached(
                "UPDATE tasks SET state = ?, place = ?, at = ?, until = NULL, attempt = ?, accepted = ?, changed = ?, \
                 error = coalesce(?, error) WHERE n = ?",
            )?
            .execute((
                word(state),
                place.map(|place| int(place.0)),
                at,
                attempt,
                int(accepted.0),
                now.0,
                error,
                self.n,
            ))?;
        let event = match (how, state) {
            (_, TaskState::Dead) => Some(PastEvent::Died),
            (Departure::Expired, _) => Some(PastEvent::Expired),
            (Departure::Reported { outcome: Said::Retry, .. }, _) => Some(PastEvent::Retried),
            _ => None,
        };
        if let Some(event) = event {
            self.note(desk, event, error)?;
        }
        if state == TaskState::Done { desk.remember_done() } else { Ok(()) }
    }

    /// Adds to its history.
    fn note(&self, desk: &Desk<'_>, event: PastEvent, error: Option<&str>) -> Outcome<()> {
        let n: i64 = desk
            .step
            .prepare_cached(
                "INSERT INTO pasts (task, n, at, event, attempt, collector, error) \
                 SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM pasts WHERE task = ?1 RETURNING n",
            )?
            .query_row(
                (
                    self.n,
                    desk.now.0,
                    event_word(event),
                    self.attempt,
                    self.collector.as_ref().filter(|_| event != PastEvent::Revived).map(|name| name.as_str()),
                    error,
                ),
                |row| row.get(0),
            )?;
        desk.step
            .prepare_cached("DELETE FROM pasts WHERE task = ? AND n <= ?")?
            .execute((self.n, n - i64::try_from(HISTORY_KEPT).unwrap_or(i64::MAX)))?;
        Ok(())
    }

    /// Makes it ready behind all of its priority.
    fn make_ready(&self, desk: &mut Desk<'_>, attempt: u32) -> Outcome<()> {
        let now = desk.now;
        let source = desk.source(&self.source)?;
        source.ready += 1;
        source.nth += 1;
        let place = Place::behind(self.priority, source.nth);
        desk.step
            .prepare_cached(
                "UPDATE tasks SET state = 'ready', place = ?, at = NULL, attempt = ?, changed = ? WHERE n = ?",
            )?
            .execute((int(place.0), attempt, now.0, self.n))?;
        Ok(())
    }

    /// Its time has come.
    pub(super) fn promote(&self, desk: &mut Desk<'_>) -> Outcome<()> {
        desk.source(&self.source)?.due -= 1;
        self.make_ready(desk, self.attempt)
    }
}

/// Puts a task; `false` when it exists.
pub(super) fn put(desk: &mut Desk<'_>, new: &NewTask) -> Outcome<bool> {
    let now = desk.now;
    let step = desk.step;
    let source = desk.source(&new.source)?;
    let due = new.at.filter(|at| *at > now);
    let place = Place::behind(new.priority, source.nth + 1);
    let added = step
        .prepare_cached(
            "INSERT OR IGNORE INTO tasks (id, source, state, priority, place, at, attempt, token, accepted, every_us, \
             created, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?7, ?8, ?8)",
        )?
        .execute((
            TaskId::of(&new.source, &new.key).0,
            new.source.as_str(),
            word(if due.is_some() { TaskState::Due } else { TaskState::Ready }),
            new.priority,
            due.is_none().then_some(int(place.0)),
            due.map(|at| at.0),
            new.every.map(|every| i64::try_from(every.as_micros()).unwrap_or(i64::MAX)),
            now.0,
        ))?;
    if added == 0 {
        return Ok(false);
    }
    source.nth += 1;
    if due.is_some() {
        source.due += 1;
    } else {
        source.ready += 1;
    }
    step.prepare_cached("INSERT INTO payloads (task, key, payload) VALUES (?, ?, ?)")?
        .execute((step.last_insert_rowid(), &new.key, &new.payload))?;
    Ok(true)
}

/// Makes a dead task ready again; any other is left as it is.
pub(super) fn revive(desk: &mut Desk<'_>, id: &TaskId) -> Outcome<TaskView> {
    let missing = || StoreError::NotFound(format!("task {}", id.0));
    let task = Task::find(desk.step, id)?.ok_or_else(missing)?;
    if task.state == TaskState::Dead {
        desk.source(&task.source)?.dead -= 1;
        task.make_ready(desk, 0)?;
        task.note(desk, PastEvent::Revived, None)?;
    }
    Ok(views(desk.step, "t.id = ?", [&id.0])?.pop().ok_or_else(missing)?)
}

/// Tasks as callers see them; `rest` of a query about `t`.
pub(super) fn views(
    db: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Outcome<Vec<TaskView>> {
    let mut found = db.prepare_cached(&format!(
        "SELECT t.n, t.id, p.key, t.source, p.payload, t.priority, t.state, t.attempt, t.token, t.every_us, t.created, \
         t.changed, t.at, t.collector, c.claim, t.until, t.error FROM tasks t JOIN payloads p ON p.task = t.n \
         LEFT JOIN claims c ON c.n = t.claim AND t.state = 'leased' WHERE {rest}"
    ))?;
    let mut rows = found.query(params)?;
    let mut views = Vec::new();
    while let Some(row) = rows.next()? {
        let holder: Option<String> = row.get(13)?;
        let held = match (holder, row.get(14)?, row.get(15)?) {
            (Some(name), Some(claim), Some(until)) => {
                Some((collector(&name)?, ClaimId(claim), Stamp(until)))
            }
            _ => None,
        };
        views.push(TaskView {
            id: TaskId(row.get(1)?),
            key: row.get(2)?,
            source: source_name(&row.get::<_, String>(3)?)?,
            payload: row.get(4)?,
            priority: row.get(5)?,
            state: state(row.get(6)?)?,
            attempt: row.get(7)?,
            token: Token(uint(row.get(8)?)),
            every: row.get::<_, Option<i64>>(9)?.map(every),
            created: Stamp(row.get(10)?),
            changed: Stamp(row.get(11)?),
            at: row.get::<_, Option<i64>>(12)?.map(Stamp),
            held,
            error: row.get(16)?,
            history: history(db, row.get(0)?)?,
        });
    }
    Ok(views)
}

fn history(db: &Connection, task: i64) -> Outcome<Vec<Past>> {
    let mut found = db.prepare_cached(
        "SELECT at, event, attempt, collector, error FROM pasts WHERE task = ? ORDER BY n",
    )?;
    let mut rows = found.query([task])?;
    let mut history = Vec::new();
    while let Some(row) = rows.next()? {
        let event = serde_json::Value::String(row.get(1)?);
        history.push(Past {
            at: Stamp(row.get(0)?),
            event: serde_json::from_value(event)
                .map_err(|why| corrupt("pasts.event", &why.to_string()))?,
            attempt: row.get(2)?,
            collector: row.get::<_, Option<String>>(3)?.map(|name| collector(&name)).transpose()?,
            error: row.get(4)?,
        });
    }
    Ok(history)
}

/// Whether `collector` ever held the task, as far as is remembered.
pub(super) fn ever_held(db: &Connection, task: &Task, by: &CollectorName) -> Outcome<bool> {
    if task.collector.as_ref() == Some(by) {
        return Ok(true);
    }
    let found = db
        .prepare_cached("SELECT 1 FROM pasts WHERE task = ? AND collector = ? LIMIT 1")?
        .query_row((task.n, by.as_str()), |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

/// The name in a row.
pub(super) fn collector(text: &str) -> Outcome<CollectorName> {
    CollectorName::new(text).map_err(|why| corrupt("a collector", &why.to_string()))
}

fn every(us: i64) -> Duration {
    Duration::from_micros(uint(us))
}

fn word(state: TaskState) -> &'static str {
    match state {
        TaskState::Ready => "ready",
        TaskState::Due => "due",
        TaskState::Leased => "leased",
        TaskState::Done => "done",
        TaskState::Dead => "dead",
    }
}

fn state(word: String) -> Outcome<TaskState> {
    serde_json::from_value(serde_json::Value::String(word))
        .map_err(|why| corrupt("tasks.state", &why.to_string()))
}

fn event_word(event: PastEvent) -> &'static str {
    match event {
        PastEvent::Retried => "retried",
        PastEvent::Expired => "expired",
        PastEvent::Died => "died",
        PastEvent::Revived => "revived",
    }
}
