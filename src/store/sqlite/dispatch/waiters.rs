//! Who waits for work, and whose turn it is.
//!
//! As many are woken as tasks can be served, each for its own sources, the oldest first, and leave the row as they are
//! woken. One who was woken has not claimed yet: for [`PROMISED`] its task is promised, so that nobody else is woken for it.

use std::time::Duration;

use rusqlite::OptionalExtension;

use super::super::fault::Outcome;
use super::super::row::{corrupt, text};
use super::super::step::Step;
use super::source::Source;
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;

/// How long a woken waiter has for its claim before another one is woken.
const PROMISED: Duration = Duration::from_millis(100);
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

/// Wakes as many as can be served from `sources` beyond what is promised.
pub(super) fn wake<'a>(
    step: &Step<'_>,
    now: Stamp,
    sources: impl Iterator<Item = &'a mut Source>,
) -> Outcome<()> {
    let mut woken = Vec::new();
    for source in sources {
        if source.promised_until <= now {
            source.promised = 0;
        }
        while source.servable > source.promised {
            let Some(waiter) = oldest(step, now, &source.name)? else { break };
            woken.push(waiter);
            source.promised += 1;
            source.promised_until = now + PROMISED;
        }
    }
    if woken.is_empty() { Ok(()) } else { step.publish_wake(&woken) }
}

/// Takes the oldest out who waits for `source`.
fn oldest(step: &Step<'_>, now: Stamp, source: &SourceName) -> Outcome<Option<Waiter>> {
    loop {
        let first = |source: &str| {
            step.prepare_cached(
                "SELECT waiter FROM waits WHERE source = ? ORDER BY waiter LIMIT 1",
            )?
            .query_row([source], |row| row.get::<_, i64>(0))
            .optional()
        };
        let (own, any) = (first(source.as_str())?, first(ANY)?);
        let Some(n) = own.into_iter().chain(any).min() else { return Ok(None) };
        let (waiter, sources, until): (String, String, i64) = step
            .prepare_cached("DELETE FROM waiters WHERE n = ? RETURNING waiter, sources, until")?
            .query_row([n], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        forget(step, n, &sources)?;
        if until > now.0 {
            return Ok(Some(Waiter(waiter)));
        }
    }
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
