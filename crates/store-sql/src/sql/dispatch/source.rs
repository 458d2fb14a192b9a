//! A source's row: read, written back, shown.

use std::time::Duration;

use super::super::relay::Relay;
use super::super::row::{corrupt, int, text, uint, word as reason};
use super::super::session::{Row, Statement, Value};
use soloist_domain::dispatch::{Reason, Recent, Seat, Source};
use soloist_domain::name::SourceName;
use soloist_domain::time::Stamp;
use soloist_store::dispatch::SourceView;
use soloist_store::{Result, StoreError};

/// What [`read`] reads; the name first.
pub(super) const SOURCES: &str = "SELECT name, rules, blocked_until, last_start, nth, ready, due, in_flight, dead, done, started, \
    finished, retried, expired, promised, promised_until, turn, shut, opens FROM sources ";
/// Sources by name; what follows says which.
pub(super) const NAMED: &str = "WHERE name";
/// Begins what writes these columns of a source, in the order of [`SOURCES`].
const SAVE: &str = "UPDATE sources SET last_start = ?, nth = ?, ready = ?, due = ?, in_flight = ?, dead = ?, done = ?, started = ?, \
    finished = ?, retried = ?, expired = ?, promised = ?, promised_until = ?";
/// Goes on with where it stands.
const SAVE_SEAT: &str = ", turn = ?, shut = ?, opens = ?";
/// Ends it.
const SAVED: &str = " WHERE name = ?";
/// The columns of [`SAVE`] in a row of [`SOURCES`], and those of [`SAVE_SEAT`].
const COUNTS: std::ops::Range<usize> = 3..16;
const SEAT: std::ops::Range<usize> = 16..19;
const NEW: &str = "INSERT INTO sources (name, rules, blocked_until, nth, ready, due, in_flight, dead, done, started, finished, \
    retried, expired, promised, promised_until) VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)";

/// One; `None` when there is no such.
pub(super) async fn one(session: &mut Relay, name: &SourceName) -> Result<Option<Source>> {
    let params = [name.as_str().into()];
    let found = session.query(&format!("{SOURCES}{NAMED} = ?"), &params).await?;
    found.first().map(read).transpose()
}

/// All, by name.
pub(super) async fn all(session: &mut Relay) -> Result<Vec<Source>> {
    let found = session.query(&format!("{SOURCES}ORDER BY name"), &[]).await?;
    let mut all: Vec<Source> = found.iter().map(read).collect::<Result<_>>()?;
    // Servers have their own orders of letters.
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// A source.
pub(super) fn read(row: &Row) -> Result<Source> {
    let number = |column| row.int(column).map(uint);
    Ok(Source {
        name: name(row.text(0)?)?,
        rules: serde_json::from_str(row.text(1)?)
            .map_err(|why| corrupt("sources.rules", &why.to_string()))?,
        blocked_until: Stamp(row.int(2)?),
        last_start: row.opt_int(3)?.map(Stamp),
        nth: number(4)?,
        ready: number(5)?,
        due: number(6)?,
        in_flight: number(7)?,
        dead: number(8)?,
        done: number(9)?,
        started: number(10)?,
        finished: number(11)?,
        retried: number(12)?,
        expired: number(13)?,
        promised: number(14)?,
        promised_until: Stamp(row.int(15)?),
        seat: Seat {
            turn: row.opt_int(16)?.map(uint),
            shut: row.opt_text(17)?.map(|shut| reason("sources.shut", shut)).transpose()?,
            opens: row.opt_int(18)?.map(Stamp),
        },
    })
}

/// The oldest start of a source that is later than `now - span`, for [`recent`].
pub(super) fn oldest_start(name: &SourceName, span: Duration, now: Stamp) -> Statement {
    let span = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Statement::new(
        "SELECT at, n FROM starts WHERE source = ? AND at > ? ORDER BY at, n LIMIT 1",
        vec![name.as_str().into(), now.0.saturating_sub(span).into()],
    )
}

/// The starts that are counted, by the oldest; `started` have there been ever.
pub(super) fn recent(oldest: Option<&Row>, started: u64) -> Result<Recent> {
    let Some(oldest) = oldest else { return Ok(Recent::default()) };
    let nth = uint(oldest.int(1)?);
    Ok(Recent {
        count: u32::try_from((started + 1).saturating_sub(nth)).unwrap_or(u32::MAX),
        oldest: Stamp(oldest.int(0)?),
    })
}

/// Writes what is another than `before`: each index is touched only by what changes in it.
pub(super) fn save(source: &Source, before: Option<&Source>) -> Result<Vec<Statement>> {
    let name = Value::from(source.name.as_str());
    let mut statements = Vec::with_capacity(2);
    let known = before.filter(|before| before.rules == source.rules);
    if known.is_none_or(|before| before.blocked_until != source.blocked_until) {
        let (rules, until) = (text(&source.rules)?, source.blocked_until.0);
        statements.push(match before {
            None => Statement::new(NEW, vec![name.clone(), rules.into(), until.into()]),
            Some(_) => Statement::new(
                "UPDATE sources SET rules = ?, blocked_until = ? WHERE name = ?",
                vec![rules.into(), until.into(), name.clone()],
            ),
        });
    }
    let mut params = vec![
        source.last_start.map(|at| at.0).into(),
        int(source.nth).into(),
        int(source.ready).into(),
        int(source.due).into(),
        int(source.in_flight).into(),
        int(source.dead).into(),
        int(source.done).into(),
        int(source.started).into(),
        int(source.finished).into(),
        int(source.retried).into(),
        int(source.expired).into(),
        int(source.promised).into(),
        source.promised_until.0.into(),
    ];
    let seat = source.seat;
    let moved = before.is_none_or(|before| before.seat != seat);
    if moved {
        params.extend([
            seat.turn.map(int).into(),
            seat.shut.map(word).into(),
            seat.opens.map(|at| at.0).into(),
        ]);
    }
    params.push(name);
    statements.push(saving(moved, params));
    Ok(statements)
}

/// With or without its seat.
fn saving(seat: bool, params: Vec<Value>) -> Statement {
    Statement::new(format!("{SAVE}{}{SAVED}", if seat { SAVE_SEAT } else { "" }), params)
}

/// Writes the row of a source, with or without its seat.
pub(super) fn save_row(row: &Row, seat: bool) -> Statement {
    let columns = COUNTS.start..if seat { SEAT.end } else { COUNTS.end };
    let params = row.0.iter().take(columns.end).skip(columns.start).chain(row.0.first());
    saving(seat, params.cloned().collect())
}

/// Which source such a statement writes, and the values.
pub(super) fn saved(statement: &Statement) -> Option<(&str, &[Value])> {
    let is_one = statement.sql.starts_with(SAVE) && statement.sql.ends_with(SAVED);
    match statement.params.split_last() {
        Some((Value::Text(name), values)) if is_one => Some((name, values)),
        _ => None,
    }
}

/// Puts the values of such a statement into the row of its source; returns whether its seat is among them.
pub(super) fn put(row: &mut Row, values: &[Value]) -> bool {
    for (column, value) in row.0.iter_mut().skip(COUNTS.start).zip(values) {
        column.clone_from(value);
    }
    values.len() > COUNTS.len()
}

/// Its turn in the ring, in its row.
pub(super) fn turn(row: &Row) -> Option<i64> {
    row.opt_int(SEAT.start).ok().flatten()
}

/// What the view of a source says beside its record.
enum Beside {
    Recent,
    FirstEnd,
    FirstDue,
}

/// As callers see them.
pub(super) async fn views(
    session: &mut Relay,
    sources: &[Source],
    now: Stamp,
) -> Result<Vec<SourceView>> {
    let (mut asked, mut asks) = (Vec::new(), Vec::new());
    for (nth, source) in sources.iter().enumerate() {
        for (what, ask) in beside(source, now) {
            asked.push((nth, what));
            asks.push(ask);
        }
    }
    let mut found = vec![(Recent::default(), None, None); sources.len()];
    for ((nth, what), rows) in asked.into_iter().zip(session.query_all(&asks).await?) {
        let (Some(found), Some(source)) = (found.get_mut(nth), sources.get(nth)) else { continue };
        let first = rows.first();
        let at = || first.map(|row| row.int(0).map(Stamp)).transpose();
        match what {
            Beside::Recent => found.0 = recent(first, source.started)?,
            Beside::FirstEnd => found.1 = at()?,
            Beside::FirstDue => found.2 = at()?,
        }
    }
    let views = sources.iter().zip(found);
    Ok(views.map(|(source, found)| view(source, found, now)).collect())
}

fn beside(source: &Source, now: Stamp) -> Vec<(Beside, Statement)> {
    let first = |sql: &'static str| Statement::new(sql, vec![source.name.as_str().into()]);
    let mut asks = Vec::new();
    if let Some(window) = source.rules.window {
        asks.push((Beside::Recent, oldest_start(&source.name, window.span, now)));
    }
    if source.is_full() {
        asks.push((
            Beside::FirstEnd,
            first("SELECT until FROM tasks WHERE source = ? AND state = 'leased' ORDER BY {until} LIMIT 1"),
        ));
    }
    if source.due > 0 {
        asks.push((
            Beside::FirstDue,
            first("SELECT at FROM tasks WHERE source = ? AND state = 'due' ORDER BY {due} LIMIT 1"),
        ));
    }
    asks
}

fn view(
    source: &Source,
    (recent, first_end, first_due): (Recent, Option<Stamp>, Option<Stamp>),
    now: Stamp,
) -> SourceView {
    SourceView {
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
    }
}

/// It is there no more, nor what it started. Its tasks are gone.
pub(super) fn remove(name: &SourceName) -> [Statement; 2] {
    ["DELETE FROM starts WHERE source = ?", "DELETE FROM sources WHERE name = ?"]
        .map(|remove| Statement::new(remove, vec![name.as_str().into()]))
}

/// No such source.
pub(super) fn unknown(name: &SourceName) -> StoreError {
    StoreError::NotFound(format!("source {name}"))
}

/// The name in a row.
pub(super) fn name(text: &str) -> Result<SourceName> {
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
