//! Claims: the answers to requests, remembered so that asking again gets the same one; extended and given back.

use std::time::Duration;

use rusqlite::OptionalExtension;

use super::super::fault::Outcome;
use super::super::row::find;
use super::super::step::Step;
use super::desk::Desk;
use super::source::{reason, word};
use super::task::{self, Task};
use crate::domain::dispatch::{Departure, Reason};
use crate::domain::lease::Token;
use crate::domain::name::CollectorName;
use crate::domain::time::Stamp;
use crate::store::StoreError;
use crate::store::dispatch::{ClaimAsk, ClaimId, Claimed, Extended, Handed, TaskId};

/// How long an answer is remembered that gave nothing, and a claim beyond its end (and its lease).
const REMEMBERED: Duration = Duration::from_secs(60);
/// How long a collector is remembered that asks for nothing.
const COLLECTOR_KEPT: Duration = Duration::from_secs(24 * 3600);

/// The answer that the same request got before, if it still holds.
pub(super) fn answered(desk: &Desk<'_>, ask: &ClaimAsk) -> Outcome<Option<Claimed>> {
    type Known = (i64, Option<String>, Option<i64>, Option<String>, Option<i64>, i64);
    let known: Option<Known> = desk
        .step
        .prepare_cached(
            "SELECT n, claim, until, reason, next_at, forget FROM claims WHERE collector = ? AND request = ?",
        )?
        .query_row((ask.collector.as_str(), ask.request.as_str()), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        })
        .optional()?;
    let Some((n, claim, until, why, next_at, forget)) = known else { return Ok(None) };
    let now = desk.now;
    match (claim, why) {
        (Some(claim), _) => {
            let (tasks, ends) = held(desk, n)?;
            let first = ends.iter().min().copied();
            if first.is_some() || until.is_some_and(|until| until > now.0) {
                desk.step
                    .prepare_cached("UPDATE claims SET repeated = 1 WHERE n = ? AND repeated = 0")?
                    .execute([n])?;
                let lease_until = first.unwrap_or(Stamp(until.unwrap_or_default()));
                return Ok(Some(Claimed::Granted { claim: ClaimId(claim), lease_until, tasks }));
            }
        }
        (None, Some(why)) if forget > now.0 => {
            return Ok(Some(Claimed::Nothing {
                reason: reason(&why)?,
                next_at: next_at.map(Stamp),
            }));
        }
        (None, _) => {}
    }
    // It is over: the same request is a new one, and the same claim again.
    desk.step.prepare_cached("DELETE FROM grants WHERE claim = ?")?.execute([n])?;
    desk.step.prepare_cached("DELETE FROM claims WHERE n = ?")?.execute([n])?;
    Ok(None)
}

/// What is held of claim `n`, as it was granted, and when each ends.
fn held(desk: &Desk<'_>, n: i64) -> Outcome<(Vec<Handed>, Vec<Stamp>)> {
    let mut found = desk.step.prepare_cached(
        "SELECT t.id, p.key, t.source, p.payload, t.token, t.attempt, t.until FROM grants g \
         JOIN tasks t ON t.n = g.task JOIN payloads p ON p.task = t.n \
         WHERE g.claim = ?1 AND t.claim = ?1 AND t.state = 'leased' AND t.until > ?2 ORDER BY t.token",
    )?;
    let mut rows = found.query((n, desk.now.0))?;
    let (mut tasks, mut ends) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        tasks.push(Handed {
            id: TaskId(row.get(0)?),
            key: row.get(1)?,
            source: super::source::source_name(&row.get::<_, String>(2)?)?,
            payload: row.get(3)?,
            token: Token(super::super::row::uint(row.get(4)?)),
            attempt: row.get(5)?,
        });
        ends.push(Stamp(row.get(6)?));
    }
    Ok((tasks, ends))
}

/// Begins a claim; its number.
pub(super) fn begin(desk: &Desk<'_>, ask: &ClaimAsk) -> Outcome<i64> {
    forget(desk.step, desk.now, 4)?;
    desk.step
        .prepare_cached(
            "INSERT INTO claims (claim, collector, request, forget) VALUES (?, ?, ?, ?)",
        )?
        .execute((
            ask.id().0,
            ask.collector.as_str(),
            ask.request.as_str(),
            (desk.now + REMEMBERED).0,
        ))?;
    Ok(desk.step.last_insert_rowid())
}

/// The last of its leases ends at `until` and lasts for `lease`.
pub(super) fn lasts(desk: &Desk<'_>, n: i64, until: Stamp, lease: Duration) -> Outcome<()> {
    desk.step.prepare_cached("UPDATE claims SET until = ?, forget = ? WHERE n = ?")?.execute((
        until.0,
        (until + lease + REMEMBERED).0,
        n,
    ))?;
    Ok(())
}

/// Remembers that a request got nothing.
pub(super) fn got_nothing(
    desk: &Desk<'_>,
    ask: &ClaimAsk,
    reason: Reason,
    next_at: Option<Stamp>,
) -> Outcome<()> {
    forget(desk.step, desk.now, 4)?;
    desk.step
        .prepare_cached(
            "INSERT INTO claims (collector, request, reason, next_at, forget) VALUES (?, ?, ?, ?, ?)",
        )?
        .execute((
            ask.collector.as_str(),
            ask.request.as_str(),
            word(reason),
            next_at.map(|at| at.0),
            (desk.now + REMEMBERED).0,
        ))?;
    Ok(())
}

/// Forgets what is old, at most `most`.
pub(super) fn forget(step: &Step<'_>, now: Stamp, most: u32) -> Outcome<()> {
    let old: Vec<i64> = step
        .prepare_cached("SELECT n FROM claims WHERE forget <= ? ORDER BY forget LIMIT ?")?
        .query_map((now.0, most), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    old.into_iter().try_for_each(|n| drop_claim(step, n))
}

fn drop_claim(step: &Step<'_>, n: i64) -> Outcome<()> {
    step.prepare_cached("DELETE FROM grants WHERE claim = ?")?.execute([n])?;
    step.prepare_cached("DELETE FROM claims WHERE n = ?")?.execute([n])?;
    Ok(())
}

/// A task of claim `n` was reported; a claim without any other is finished and forgotten.
pub(super) fn strike(step: &Step<'_>, n: i64, task: i64) -> Outcome<()> {
    step.prepare_cached("DELETE FROM grants WHERE claim = ? AND task = ?")?.execute((n, task))?;
    let left = find::<i64>(step, "SELECT task FROM grants WHERE claim = ? LIMIT 1", [n])?;
    if left.is_none() {
        step.prepare_cached("DELETE FROM claims WHERE n = ?")?.execute([n])?;
    }
    Ok(())
}

/// The number of `claim`, if `only` may touch it.
fn number(desk: &Desk<'_>, claim: &ClaimId, only: Option<&CollectorName>) -> Outcome<Option<i64>> {
    let found: Option<(i64, String)> = desk
        .step
        .prepare_cached("SELECT n, collector FROM claims WHERE claim = ?")?
        .query_row([&claim.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((n, whose)) = found else { return Ok(None) };
    let whose = task::collector(&whose)?;
    if only.is_some_and(|only| *only != whose) {
        return Ok(None);
    }
    seen(desk, &whose)?;
    Ok(Some(n))
}

/// Extends what is still held.
pub(super) fn extend(
    desk: &mut Desk<'_>,
    claim: &ClaimId,
    only: Option<&CollectorName>,
) -> Outcome<Extended> {
    let n = number(desk, claim, only)?
        .ok_or_else(|| StoreError::NotFound(format!("claim {}", claim.0)))?;
    let (step, now) = (desk.step, desk.now);
    let granted: Vec<(i64, String)> = step
        .prepare_cached(
            "SELECT t.n, t.id FROM grants g JOIN tasks t ON t.n = g.task WHERE g.claim = ? ORDER BY t.n",
        )?
        .query_map([n], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut extended = Extended::default();
    let mut last = None;
    for (task, id) in granted {
        let id = TaskId(id);
        let found = Task::select(step, "n = ?", [task])?.pop();
        match found.filter(|task| task.is_held(n, now)) {
            Some(task) => {
                let lease = desk.source(&task.source)?.rules.lease;
                let until = now + lease;
                step.prepare_cached("UPDATE tasks SET until = ? WHERE n = ?")?
                    .execute((until.0, task.n))?;
                last = last.max(Some((until, lease)));
                extended.lease_until =
                    Some(extended.lease_until.map_or(until, |first| first.min(until)));
                extended.kept.push(id);
            }
            None => extended.lost.push(id),
        }
    }
    if let Some((until, lease)) = last {
        lasts(desk, n, until, lease)?;
    }
    Ok(extended)
}

/// Gives back what is still held.
pub(super) fn give_back(
    desk: &mut Desk<'_>,
    claim: &ClaimId,
    only: Option<&CollectorName>,
) -> Outcome<u64> {
    let Some(n) = number(desk, claim, only)? else { return Ok(0) };
    let now = desk.now;
    let granted = Task::select(
        desk.step,
        "n IN (SELECT task FROM grants WHERE claim = ?) ORDER BY token DESC",
        [n],
    )?;
    let mut returned = 0;
    // The last first, so that the head of the queue is again as it was.
    for task in granted.iter().filter(|task| task.is_held(n, now)) {
        task.leave(desk, Departure::Returned, None)?;
        returned += 1;
    }
    drop_claim(desk.step, n)?;
    Ok(returned)
}

/// Whether the same request was answered with it again.
pub(super) fn was_repeated(desk: &Desk<'_>, claim: &ClaimId) -> Outcome<bool> {
    let found: Option<bool> = desk
        .step
        .prepare_cached("SELECT repeated FROM claims WHERE claim = ?")?
        .query_row([&claim.0], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(false))
}

/// Notes that a collector asked for something.
pub(super) fn seen(desk: &Desk<'_>, collector: &CollectorName) -> Outcome<()> {
    let (step, now) = (desk.step, desk.now);
    let known = step
        .prepare_cached("UPDATE collectors SET seen = ? WHERE name = ?")?
        .execute((now.0, collector.as_str()))?;
    if known == 0 {
        step.prepare_cached("INSERT INTO collectors (name, seen) VALUES (?, ?)")?
            .execute((collector.as_str(), now.0))?;
        step.prepare_cached("DELETE FROM collectors WHERE seen <= ?")?
            .execute([oldest_seen(now)])?;
    }
    Ok(())
}

/// A collector seen no later than this is forgotten.
pub(super) fn oldest_seen(now: Stamp) -> i64 {
    now.0 - i64::try_from(COLLECTOR_KEPT.as_micros()).unwrap_or(i64::MAX)
}
