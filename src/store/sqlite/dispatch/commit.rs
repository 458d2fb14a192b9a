//! Writes what was decided: records that changed, and what is kept beside them.

use super::super::fault::Outcome;
use super::super::row::int;
use super::decide::Desk;
use super::{claims, source, task, waiters};
use crate::domain::dispatch::{Change, NewTask, Write};
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;

/// How long a collector is remembered that asks for nothing.
const COLLECTOR_KEPT_US: i64 = 24 * 3_600 * 1_000_000;

/// So many are remembered: of more, those that were heard of last.
const COLLECTORS_KEPT: u32 = 1_000;

/// Writes a change, and answers. `put` are the tasks that are put.
pub(super) fn commit<T>(desk: &mut Desk<'_>, change: Change<T>, put: &[NewTask]) -> Outcome<T> {
    let Change { answer, book, sources, tasks, claims, writes } = change;
    let nothing = sources.is_empty() && tasks.is_empty() && claims.is_empty() && writes.is_empty();
    if nothing {
        return Ok(answer);
    }
    for one in &sources {
        let before = desk.sets.sources.get(&one.name).and_then(Option::as_ref);
        source::save(desk.step, one, before)?;
    }
    // A claim is begun before its tasks are: they name its row.
    for (id, claim) in &claims {
        claims::save(desk, id, claim.as_ref())?;
    }
    for one in &tasks {
        let claim = one.claim.as_ref().and_then(|claim| desk.claims.get(claim)).copied();
        if let Some(row) = desk.rows.get(&one.id) {
            task::save(desk.step, *row, one, claim)?;
        }
    }
    for (id, claim) in &claims {
        if let Some(claim) = claim {
            claims::save_grants(desk, id, claim)?;
        }
    }
    let mut woken = Vec::new();
    for one in writes {
        woken.extend(write(desk, one, put)?);
    }
    if !woken.is_empty() {
        desk.step.publish_wake(&woken)?;
    }
    desk.save_book(&book)?;
    Ok(answer)
}

/// Who is woken by it.
fn write(desk: &mut Desk<'_>, one: Write, put: &[NewTask]) -> Outcome<Option<Waiter>> {
    let (step, now) = (desk.step, desk.now);
    match one {
        Write::Put(task, number) => {
            if let Some(new) = put.get(number) {
                task::add(step, &task, new)?;
            }
        }
        Write::Finished(id) => {
            if let Some(row) = desk.rows.get(&id) {
                task::drop_payload(step, *row)?;
            }
            desk.remember_done()?;
        }
        Write::Remove(id, was_done) => {
            if let Some(row) = desk.rows.get(&id).copied() {
                task::remove(step, row)?;
            }
            if was_done {
                desk.forget_done();
            }
        }
        Write::Note(id, past) => {
            if let Some(row) = desk.rows.get(&id) {
                task::note(step, *row, &past)?;
            }
        }
        Write::Start { source, nth, span } => {
            let span = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
            step.prepare_cached("DELETE FROM starts WHERE source = ? AND at <= ?")?
                .execute((source.as_str(), now.0.saturating_sub(span)))?;
            step.prepare_cached("INSERT INTO starts (source, at, n) VALUES (?, ?, ?)")?
                .execute((source.as_str(), now.0, int(nth)))?;
        }
        Write::ForgetStarts(source) => {
            step.prepare_cached("DELETE FROM starts WHERE source = ?")?
                .execute([source.as_str()])?;
        }
        Write::Seen(collector) => {
            let known = step
                .prepare_cached("UPDATE collectors SET seen = ? WHERE name = ?")?
                .execute((now.0, collector.as_str()))?;
            if known == 0 {
                step.prepare_cached("INSERT INTO collectors (name, seen) VALUES (?, ?)")?
                    .execute((collector.as_str(), now.0))?;
                step.prepare_cached("DELETE FROM collectors WHERE seen <= ?")?
                    .execute([oldest_seen(now)])?;
                step.prepare_cached(
                    "DELETE FROM collectors WHERE name IN \
                     (SELECT name FROM collectors ORDER BY seen DESC LIMIT -1 OFFSET ?)",
                )?
                .execute([COLLECTORS_KEPT])?;
            }
        }
        Write::Enter { waiter, sources, until } => waiters::enter(step, &waiter, &sources, until)?,
        Write::Strike(waiter) => waiters::leave(step, &waiter)?,
        Write::Wake(waiter) => {
            waiters::leave(step, &waiter)?;
            return Ok(Some(waiter));
        }
    }
    Ok(None)
}

/// A collector seen no later than this is forgotten.
pub(super) fn oldest_seen(now: Stamp) -> i64 {
    now.0 - COLLECTOR_KEPT_US
}
