//! Writes what was decided: records that changed, and what is kept beside them.

use super::super::row::{count, int};
use super::super::session::{Statement, Value};
use super::desk::Desk;
use super::ink::Ink;
use super::{claims, source, task};
use soloist_domain::dispatch::{Change, DONE_KEPT, NewTask, SEEN_EVERY, Write};
use soloist_domain::time::Stamp;
use soloist_store::Result;
use soloist_store::dispatch::Waiter;

/// How long a collector is remembered that asks for nothing.
const COLLECTOR_KEPT_US: i64 = 24 * 3_600 * 1_000_000;

/// So many are remembered: of more, those that were heard of last.
const COLLECTORS_KEPT: usize = 1_000;

/// Writes a change. `put` are the tasks that are put.
pub(super) async fn commit(desk: &mut Desk<'_>, change: Change<()>, put: &[NewTask]) -> Result<()> {
    let dialect = desk.session.dialect();
    let mut ink = Ink::open(desk, &change).await?;
    let Change { answer: (), book, sources, tasks, claims, writes } = change;
    for one in &sources {
        let before = desk.sets.sources.get(&one.name).and_then(Option::as_ref);
        ink.extend(source::save(one, before)?);
    }
    // A claim is begun before its tasks are: they name its row.
    for (id, claim) in &claims {
        claims::save(desk, &mut ink, id, claim.as_ref());
    }
    let known = tasks.iter().filter_map(|one| {
        let claim = one.claim.as_ref().and_then(|claim| desk.claims.get(claim)).copied();
        let before = desk.sets.tasks.get(&one.id).and_then(Option::as_ref);
        let token = before.map(|before| before.token);
        Some(task::Changed { n: *desk.rows.get(&one.id)?, task: one, claim, token })
    });
    ink.extend(task::save(dialect, &known.collect::<Vec<_>>()));
    for (id, claim) in &claims {
        if let Some(claim) = claim {
            ink.extend(claims::save_grants(desk, dialect, id, claim));
        }
    }
    let (mut woken, mut new) = (Vec::new(), Vec::new());
    for one in writes {
        match one {
            Write::Put(task, number) => {
                new.extend(put.get(number).map(|put| (ink.new_task(), task, put)));
            }
            other => woken.extend(write(desk, &mut ink, other)?),
        }
    }
    ink.extend(task::add(dialect, new));
    if ink.is_empty() && woken.is_empty() {
        return Ok(());
    }
    if ink.forget_done() {
        desk.done = desk.done.min(DONE_KEPT);
    }
    ink.push(desk.save_book(&book));
    ink.dry(desk.session).await?;
    if !woken.is_empty() {
        desk.session.publish_wake(&woken).await?;
    }
    Ok(())
}

/// Who is woken by it.
fn write(desk: &mut Desk<'_>, ink: &mut Ink, one: Write) -> Result<Option<Waiter>> {
    let now = desk.now;
    match one {
        // All of them together, with their keys and payloads.
        Write::Put(..) => {}
        Write::Finished(id) => {
            if let Some(row) = desk.rows.get(&id) {
                ink.finish(*row);
            }
            desk.done += 1;
        }
        Write::Remove(id, was_done) => {
            if let Some(row) = desk.rows.get(&id).copied() {
                ink.push(task::forget_grants(row));
                ink.extend(task::forget(&[row]));
            }
            desk.done = desk.done.saturating_sub(u64::from(was_done));
        }
        Write::Note(id, past) => {
            if let Some(row) = desk.rows.get(&id) {
                ink.note(*row, &past);
            }
        }
        Write::Start { source, nth, span } => {
            let span = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
            let (source, oldest) = (Value::from(source.as_str()), now.0.saturating_sub(span));
            ink.push(Statement::new(
                "DELETE FROM starts WHERE source = ? AND at <= ?",
                vec![source.clone(), oldest.into()],
            ));
            ink.push(Statement::new(
                "INSERT INTO starts (source, at, n) VALUES (?, ?, ?)",
                vec![source, now.0.into(), int(nth).into()],
            ));
        }
        Write::ForgetStarts(source) => ink.push(Statement::new(
            "DELETE FROM starts WHERE source = ?",
            vec![source.as_str().into()],
        )),
        Write::Seen(collector) => {
            let sql = match ink.seen(&collector) {
                Some(before) if now < before + SEEN_EVERY => {
                    desk.seen.insert(collector, before);
                    return Ok(None);
                }
                Some(_) => "UPDATE collectors SET seen = ? WHERE name = ?",
                None => "INSERT INTO collectors (seen, name) VALUES (?, ?)",
            };
            ink.push(Statement::new(sql, vec![now.0.into(), collector.as_str().into()]));
            desk.seen.insert(collector, now);
        }
        Write::Enter { waiter, sources, until } => ink.enter(&waiter, &sources, until)?,
        Write::Strike(waiter) => ink.leave(&waiter),
        Write::Wake(waiter) => {
            ink.leave(&waiter);
            return Ok(Some(waiter));
        }
    }
    Ok(None)
}

/// The collectors that are too many when so many new ones come, by name.
pub(super) fn collectors_beyond(new: usize) -> Statement {
    let kept = COLLECTORS_KEPT.saturating_sub(new);
    Statement::new(
        "SELECT name FROM collectors ORDER BY seen DESC LIMIT ? OFFSET ?",
        vec![i64::MAX.into(), count(kept).into()],
    )
}

/// Forgets these collectors, and all who asked for nothing for too long.
pub(super) fn forget_collectors(names: &[String], now: Stamp) -> Vec<Statement> {
    let old = "DELETE FROM collectors WHERE seen <= ?";
    let mut statements = vec![Statement::new(old, vec![oldest_seen(now).into()])];
    statements.extend(names.iter().map(|name| {
        Statement::new("DELETE FROM collectors WHERE name = ?", vec![name.as_str().into()])
    }));
    statements
}

/// A collector seen no later than this is forgotten.
pub(super) fn oldest_seen(now: Stamp) -> i64 {
    now.0 - COLLECTOR_KEPT_US
}
