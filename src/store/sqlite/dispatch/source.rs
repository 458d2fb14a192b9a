//! A source's row: read, written back, shown.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::super::fault::Outcome;
use super::super::row::{corrupt, find, int, text, uint, word as reason};
use crate::domain::dispatch::{Reason, Recent, Seat, Source};
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::StoreError;
use crate::store::dispatch::SourceView;

const COLUMNS: &str = "name, rules, blocked_until, last_start, nth, ready, due, in_flight, dead, done, started, \
    finished, retried, expired, promised, promised_until, turn, shut, opens";

/// One; `None` when there is no such.
pub(super) fn one(db: &Connection, name: &SourceName) -> Outcome<Option<Source>> {
    let mut found = db.prepare_cached(&format!("SELECT {COLUMNS} FROM sources WHERE name = ?"))?;
    let mut rows = found.query([name.as_str()])?;
    rows.next()?.map(read).transpose()
}

/// All, by name.
pub(super) fn all(db: &Connection) -> Outcome<Vec<Source>> {
    let mut found = db.prepare_cached(&format!("SELECT {COLUMNS} FROM sources ORDER BY name"))?;
    let mut rows = found.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

fn read(row: &Row<'_>) -> Outcome<Source> {
    let count = |column| -> Outcome<u64> { Ok(uint(row.get(column)?)) };
    let rules: String = row.get(1)?;
    let shut: Option<String> = row.get(17)?;
    Ok(Source {
        name: name(&row.get::<_, String>(0)?)?,
        rules: serde_json::from_str(&rules)
            .map_err(|why| corrupt("sources.rules", &why.to_string()))?,
        blocked_until: Stamp(row.get(2)?),
        last_start: row.get::<_, Option<i64>>(3)?.map(Stamp),
        nth: count(4)?,
        ready: count(5)?,
        due: count(6)?,
        in_flight: count(7)?,
        dead: count(8)?,
        done: count(9)?,
        started: count(10)?,
        finished: count(11)?,
        retried: count(12)?,
        expired: count(13)?,
        promised: count(14)?,
        promised_until: Stamp(row.get(15)?),
        seat: Seat {
            turn: row.get::<_, Option<i64>>(16)?.map(uint),
            shut: shut.map(|shut| reason("sources.shut", &shut)).transpose()?,
            opens: row.get::<_, Option<i64>>(18)?.map(Stamp),
        },
    })
}

/// The starts of a source that are later than `now - span`; `started` have there been ever.
pub(super) fn recent(
    db: &Connection,
    name: &SourceName,
    started: u64,
    span: Duration,
    now: Stamp,
) -> Outcome<Recent> {
    let span = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    let oldest: Option<(i64, i64)> = db
        .prepare_cached(
            "SELECT at, n FROM starts WHERE source = ? AND at > ? ORDER BY at, n LIMIT 1",
        )?
        .query_row((name.as_str(), now.0.saturating_sub(span)), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(oldest.map_or_else(Recent::default, |(at, n)| Recent {
        count: u32::try_from((started + 1).saturating_sub(uint(n))).unwrap_or(u32::MAX),
        oldest: Stamp(at),
    }))
}

/// Writes what is another than `before`: each index is touched only by what changes in it.
pub(super) fn save(db: &Connection, source: &Source, before: Option<&Source>) -> Outcome<()> {
    let name = source.name.as_str();
    let same_rules = |before: &Source| {
        before.rules == source.rules && before.blocked_until == source.blocked_until
    };
    if !before.is_some_and(same_rules) {
        db.prepare_cached(
            "INSERT INTO sources (name, rules, blocked_until, nth, ready, due, in_flight, dead, done, started, finished, \
             retried, expired, promised, promised_until) VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) \
             ON CONFLICT (name) DO UPDATE SET rules = excluded.rules, blocked_until = excluded.blocked_until",
        )?
        .execute((name, text(&source.rules)?, source.blocked_until.0))?;
    }
    db.prepare_cached(
        "UPDATE sources SET last_start = :last_start, nth = :nth, ready = :ready, due = :due, \
         in_flight = :in_flight, dead = :dead, done = :done, started = :started, finished = :finished, \
         retried = :retried, expired = :expired, promised = :promised, promised_until = :promised_until \
         WHERE name = :name",
    )?
    .execute(named_params! {
        ":name": name,
        ":last_start": source.last_start.map(|at| at.0),
        ":nth": int(source.nth),
        ":ready": int(source.ready),
        ":due": int(source.due),
        ":in_flight": int(source.in_flight),
        ":dead": int(source.dead),
        ":done": int(source.done),
        ":started": int(source.started),
        ":finished": int(source.finished),
        ":retried": int(source.retried),
        ":expired": int(source.expired),
        ":promised": int(source.promised),
        ":promised_until": source.promised_until.0,
    })?;
    let seat = source.seat;
    if before.is_none_or(|before| before.seat != seat) {
        db.prepare_cached("UPDATE sources SET turn = ?, shut = ?, opens = ? WHERE name = ?")?
            .execute((seat.turn.map(int), seat.shut.map(word), seat.opens.map(|at| at.0), name))?;
    }
    Ok(())
}

/// As callers see it.
pub(super) fn view(db: &Connection, source: &Source, now: Stamp) -> Outcome<SourceView> {
    let window = source.rules.window;
    let recent = match window {
        Some(window) => recent(db, &source.name, source.started, window.span, now)?,
        None => Recent::default(),
    };
    let first = |sql: &str| -> Outcome<Option<Stamp>> {
        Ok(find(db, sql, [source.name.as_str()])?.map(Stamp))
    };
    let mut first_end = None;
    if source.is_full() {
        first_end = first(
            "SELECT until FROM tasks WHERE source = ? AND state = 'leased' ORDER BY until LIMIT 1",
        )?;
    }
    let mut first_due = None;
    if source.due > 0 {
        first_due =
            first("SELECT at FROM tasks WHERE source = ? AND state = 'due' ORDER BY at LIMIT 1")?;
    }
    Ok(SourceView {
        name: source.name.clone(),
        rules: source.rules.clone(),
        blocked_until: source.blocked_until,
        ready: source.ready,
        due: source.due,
        in_flight: source.in_flight,
        dead: source.dead,
        done: source.done,
        started: source.started,
        finished: source.finished,
        retried: source.retried,
        expired: source.expired,
        shut: source.shut(recent, first_end, first_due, now),
        now,
    })
}

/// No such source.
/// It is there no more, nor what it started. Its tasks are gone.
pub(super) fn remove(step: &Connection, name: &SourceName) -> Outcome<()> {
    step.execute("DELETE FROM starts WHERE source = ?", [name.as_str()])?;
    step.execute("DELETE FROM sources WHERE name = ?", [name.as_str()])?;
    Ok(())
}

pub(super) fn unknown(name: &SourceName) -> StoreError {
    StoreError::NotFound(format!("source {name}"))
}

/// The name in a row.
pub(super) fn name(text: &str) -> Outcome<SourceName> {
    SourceName::new(text).map_err(|why| corrupt("sources.name", &why.to_string()))
}

/// As columns keep a reason.
pub(super) fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Empty => "empty",
        Reason::Gap => "gap",
        Reason::Cap => "cap",
        Reason::Paused => "paused",
        Reason::Blocked => "blocked",
    }
}
