//! Who waits for work, in which order. Who is woken is decided in `domain::dispatch`.

use rusqlite::OptionalExtension;

use super::super::fault::Outcome;
use super::super::row::{corrupt, find, text, uint};
use super::super::step::Step;
use crate::domain::dispatch::Waiting;
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;

/// In `waits`: any source.
const ANY: &str = "";

/// Makes it wait until then; one that waits already keeps its place.
pub(super) fn enter(
    step: &Step<'_>,
    waiter: &Waiter,
    sources: &[SourceName],
    until: Stamp,
) -> Outcome<()> {
    let known = step
        .prepare_cached("UPDATE waiters SET until = ? WHERE waiter = ?")?
        .execute((until.0, &waiter.0))?;
    if known > 0 {
        return Ok(());
    }
    step.prepare_cached("INSERT INTO waiters (waiter, sources, until) VALUES (?, ?, ?)")?
        .execute((&waiter.0, text(&sources)?, until.0))?;
    let n = step.last_insert_rowid();
    for source in names(sources) {
        step.prepare_cached("INSERT OR IGNORE INTO waits (source, waiter) VALUES (?, ?)")?
            .execute((source, n))?;
    }
    Ok(())
}

/// It waits no more, if it did.
pub(super) fn leave(step: &Step<'_>, waiter: &Waiter) -> Outcome<()> {
    let found: Option<(i64, String)> = step
        .prepare_cached("DELETE FROM waiters WHERE waiter = ? RETURNING n, sources")?
        .query_row([&waiter.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.map_or(Ok(()), |(n, sources)| forget(step, n, &sources))
}

/// All who wait for a source, which is gone: they wait no more, and are to be woken.
pub(super) fn dismiss(step: &Step<'_>, source: &SourceName) -> Outcome<Vec<Waiter>> {
    let waiting: Vec<Waiter> = step
        .prepare_cached(
            "SELECT w.waiter FROM waits s JOIN waiters w ON w.n = s.waiter WHERE s.source = ?",
        )?
        .query_map([source.as_str()], |row| Ok(Waiter(row.get(0)?)))?
        .collect::<Result<_, _>>()?;
    waiting.iter().try_for_each(|waiter| leave(step, waiter))?;
    Ok(waiting)
}

/// Forgets those whose time is over, at most `most`.
pub(super) fn expire(step: &Step<'_>, now: Stamp, most: u32) -> Outcome<()> {
    let over: Vec<(i64, String)> = step
        .prepare_cached(
            "DELETE FROM waiters WHERE n IN (SELECT n FROM waiters WHERE until <= ? ORDER BY until LIMIT ?) \
             RETURNING n, sources",
        )?
        .query_map((now.0, most), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (n, sources) in &over {
        forget(step, *n, sources)?;
    }
    Ok(())
}

/// Whether anybody waits, or did until now.
pub(super) fn are_there(step: &Step<'_>) -> Outcome<bool> {
    Ok(find(step, "SELECT EXISTS (SELECT 1 FROM waiters)", [])?.unwrap_or_default())
}

/// The first who wait for a source, or (none) for any, and whose time is not over.
pub(super) fn first(
    step: &Step<'_>,
    now: Stamp,
    source: Option<&SourceName>,
    most: i64,
) -> Outcome<Vec<Waiting>> {
    let waiting = step
        .prepare_cached(
            "SELECT s.waiter, w.waiter FROM waits s JOIN waiters w ON w.n = s.waiter \
             WHERE s.source = ? AND w.until > ? ORDER BY s.waiter LIMIT ?",
        )?
        .query_map((source.map_or(ANY, SourceName::as_str), now.0, most), |row| {
            Ok(Waiting { place: uint(row.get(0)?), waiter: Waiter(row.get(1)?) })
        })?
        .collect::<Result<_, _>>()?;
    Ok(waiting)
}

fn forget(step: &Step<'_>, n: i64, sources: &str) -> Outcome<()> {
    let sources: Vec<SourceName> = serde_json::from_str(sources)
        .map_err(|why| corrupt("waiters.sources", &why.to_string()))?;
    for source in names(&sources) {
        step.prepare_cached("DELETE FROM waits WHERE source = ? AND waiter = ?")?
            .execute((source, n))?;
    }
    Ok(())
}

fn names(sources: &[SourceName]) -> Vec<&str> {
    if sources.is_empty() { vec![ANY] } else { sources.iter().map(SourceName::as_str).collect() }
}
