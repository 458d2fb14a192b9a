//! A task's rows: read, put, written back, shown.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Connection, Row};

use super::super::fault::Outcome;
use super::super::row::{corrupt, int, uint, word as read_word};
use super::super::step::Step;
use super::source;
use crate::domain::dispatch::{Place, Task, TaskState};
use crate::domain::lease::Token;
use crate::domain::name::{CollectorName, SourceName};
use crate::domain::time::Stamp;
use crate::store::dispatch::{ClaimId, HISTORY_KEPT, NewTask, Past, PastEvent, TaskId, TaskView};

/// What `read` reads; the claim is named while it lasts.
const TASKS: &str = "SELECT t.n, t.id, t.source, t.state, t.priority, t.place, t.at, t.until, t.attempt, t.token, t.accepted, \
     t.collector, t.every_us, t.created, t.changed, t.error, c.claim FROM tasks t \
     LEFT JOIN claims c ON c.n = t.claim AND t.state = 'leased'";

/// Those of these ids that exist, with their rows.
pub(super) fn named(db: &Connection, ids: &BTreeSet<TaskId>) -> Outcome<Vec<(i64, Task)>> {
    let mut one = db.prepare_cached(&format!("{TASKS} WHERE t.id = ?"))?;
    let mut tasks = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(row) = one.query([&id.0])?.next()? {
            tasks.push((row.get(0)?, read(row)?));
        }
    }
    Ok(tasks)
}

/// Those that `rest` of a query about `t` finds, with their rows.
pub(super) fn select(
    db: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Outcome<Vec<(i64, Task)>> {
    let mut found = db.prepare_cached(&format!("{TASKS} WHERE {rest}"))?;
    let mut rows = found.query(params)?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next()? {
        tasks.push((row.get(0)?, read(row)?));
    }
    Ok(tasks)
}

fn read(row: &Row<'_>) -> Outcome<Task> {
    let stamp =
        |column| -> Outcome<Option<Stamp>> { Ok(row.get::<_, Option<i64>>(column)?.map(Stamp)) };
    Ok(Task {
        id: TaskId(row.get(1)?),
        source: source::name(row.get_ref(2)?.as_str().unwrap_or_default())?,
        state: state(row.get_ref(3)?.as_str().unwrap_or_default())?,
        priority: row.get(4)?,
        place: row.get::<_, Option<i64>>(5)?.map(|place| Place(uint(place))),
        at: stamp(6)?,
        until: stamp(7)?,
        attempt: row.get(8)?,
        token: Token(uint(row.get(9)?)),
        accepted: Token(uint(row.get(10)?)),
        collector: row.get::<_, Option<String>>(11)?.map(|name| collector(&name)).transpose()?,
        every: row.get::<_, Option<i64>>(12)?.map(every),
        created: Stamp(row.get(13)?),
        changed: Stamp(row.get(14)?),
        error: row.get(15)?,
        claim: row.get::<_, Option<String>>(16)?.map(ClaimId),
    })
}

/// Writes what may change of a task in its row; `claim` is the row of its claim.
pub(super) fn save(step: &Step<'_>, row: i64, task: &Task, claim: Option<i64>) -> Outcome<()> {
    step.prepare_cached(
        "UPDATE tasks SET state = ?, place = ?, at = ?, until = ?, attempt = ?, token = ?, accepted = ?, \
         collector = ?, claim = ?, changed = ?, error = ? WHERE n = ?",
    )?
    .execute((
        task.state.as_str(),
        task.place.map(|place| int(place.0)),
        task.at.map(|at| at.0),
        task.until.map(|until| until.0),
        task.attempt,
        int(task.token.0),
        int(task.accepted.0),
        task.collector.as_ref().map(|name| name.as_str()),
        claim,
        task.changed.0,
        &task.error,
        row,
    ))?;
    Ok(())
}

/// Adds a new task, with its key and payload.
pub(super) fn add(step: &Step<'_>, task: &Task, new: &NewTask) -> Outcome<()> {
    step.prepare_cached(
        "INSERT INTO tasks (id, source, state, priority, place, at, attempt, token, accepted, every_us, created, changed) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?7, ?8, ?8)",
    )?
    .execute((
        &task.id.0,
        task.source.as_str(),
        task.state.as_str(),
        task.priority,
        task.place.map(|place| int(place.0)),
        task.at.map(|at| at.0),
        task.every.map(|every| i64::try_from(every.as_micros()).unwrap_or(i64::MAX)),
        task.created.0,
    ))?;
    step.prepare_cached("INSERT INTO payloads (task, key, payload) VALUES (?, ?, ?)")?
        .execute((step.last_insert_rowid(), &new.key, &new.payload))?;
    Ok(())
}

/// The key and the payload of a task.
pub(super) fn texts(step: &Step<'_>, row: i64) -> Outcome<(String, String)> {
    Ok(step
        .prepare_cached("SELECT key, payload FROM payloads WHERE task = ?")?
        .query_row([row], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// What is remembered is that it was done, not how it looked.
pub(super) fn drop_payload(step: &Step<'_>, row: i64) -> Outcome<()> {
    step.prepare_cached("UPDATE payloads SET payload = 'null' WHERE task = ?")?.execute([row])?;
    Ok(())
}

/// Forgets a task and all about it.
pub(super) fn forget(step: &Step<'_>, row: i64) -> Outcome<()> {
    for forget in [
        "DELETE FROM tasks WHERE n = ?",
        "DELETE FROM payloads WHERE task = ?",
        "DELETE FROM pasts WHERE task = ?",
    ] {
        step.prepare_cached(forget)?.execute([row])?;
    }
    Ok(())
}

/// It is there no more, nor in a claim that it was lost from.
pub(super) fn remove(step: &Step<'_>, row: i64) -> Outcome<()> {
    step.prepare_cached("DELETE FROM grants WHERE task = ?")?.execute([row])?;
    forget(step, row)
}

/// At most so many tasks of a source in this state.
pub(super) fn some_of(
    step: &Step<'_>,
    source: &SourceName,
    state: TaskState,
    most: usize,
) -> Outcome<Vec<TaskId>> {
    // A word and not a parameter, so that the index of that state is used.
    let select =
        format!("SELECT id FROM tasks WHERE state = '{}' AND source = ? LIMIT ?", state.as_str());
    let found = step
        .prepare_cached(&select)?
        .query_map((source.as_str(), i64::try_from(most).unwrap_or(i64::MAX)), |row| {
            Ok(TaskId(row.get(0)?))
        })?
        .collect::<Result<_, _>>()?;
    Ok(found)
}

/// Adds to its history.
pub(super) fn note(step: &Step<'_>, row: i64, past: &Past) -> Outcome<()> {
    let n: i64 = step
        .prepare_cached(
            "INSERT INTO pasts (task, n, at, event, attempt, collector, error) \
             SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM pasts WHERE task = ?1 RETURNING n",
        )?
        .query_row(
            (
                row,
                past.at.0,
                event_word(past.event),
                past.attempt,
                past.collector.as_ref().map(|name| name.as_str()),
                &past.error,
            ),
            |row| row.get(0),
        )?;
    step.prepare_cached("DELETE FROM pasts WHERE task = ? AND n <= ?")?
        .execute((row, n - i64::try_from(HISTORY_KEPT).unwrap_or(i64::MAX)))?;
    Ok(())
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
            source: source::name(&row.get::<_, String>(3)?)?,
            payload: row.get(4)?,
            priority: row.get(5)?,
            state: state(row.get_ref(6)?.as_str().unwrap_or_default())?,
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
        history.push(Past {
            at: Stamp(row.get(0)?),
            event: read_word("pasts.event", &row.get::<_, String>(1)?)?,
            attempt: row.get(2)?,
            collector: row.get::<_, Option<String>>(3)?.map(|name| collector(&name)).transpose()?,
            error: row.get(4)?,
        });
    }
    Ok(history)
}

/// The name in a row.
pub(super) fn collector(text: &str) -> Outcome<CollectorName> {
    CollectorName::new(text).map_err(|why| corrupt("a collector", &why.to_string()))
}

fn every(us: i64) -> Duration {
    Duration::from_micros(uint(us))
}

fn state(word: &str) -> Outcome<TaskState> {
    word.parse().map_err(|_| corrupt("tasks.state", word))
}

fn event_word(event: PastEvent) -> &'static str {
    match event {
        PastEvent::Retried => "retried",
        PastEvent::Expired => "expired",
        PastEvent::Died => "died",
        PastEvent::Revived => "revived",
    }
}
