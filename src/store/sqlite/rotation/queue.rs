//! Who waits for which type, in the order in which they came.

use rusqlite::{Connection, OptionalExtension};

use super::super::fault::Outcome;
use super::super::row::{find, uint};
use super::super::step::Step;
use crate::domain::name::{RotationName, TypeName, WorkerName};
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;

/// Makes it wait until then; one that waits already keeps its place.
pub(super) fn enter(
    step: &Step<'_>,
    rotation: &RotationName,
    kind: &TypeName,
    waiter: &Waiter,
    worker: &WorkerName,
    (now, until): (Stamp, Stamp),
) -> Outcome<()> {
    step.prepare_cached(
        "INSERT INTO queue (rotation, kind, waiter, worker, since, until) VALUES (?, ?, ?, ?, ?, ?) \
         ON CONFLICT (rotation, waiter) DO UPDATE SET until = excluded.until",
    )?
    .execute((
        rotation.as_str(),
        kind.as_str(),
        &waiter.0,
        worker.as_str(),
        now.0,
        until.0,
    ))?;
    Ok(())
}

/// It waits no more, if it did.
pub(super) fn leave(step: &Step<'_>, rotation: &RotationName, waiter: &Waiter) -> Outcome<()> {
    step.prepare_cached("DELETE FROM queue WHERE rotation = ? AND waiter = ?")?
        .execute((rotation.as_str(), &waiter.0))?;
    Ok(())
}

/// The first who waits for `kind`; those before it whose time is over, or whose node is silent, are struck out.
pub(super) fn first(
    step: &Step<'_>,
    rotation: &RotationName,
    kind: &TypeName,
    now: Stamp,
) -> Outcome<Option<Waiter>> {
    loop {
        let found: Option<(i64, String, i64)> = step
            .prepare_cached(
                "SELECT n, waiter, until FROM queue WHERE rotation = ? AND kind = ? ORDER BY n LIMIT 1",
            )?
            .query_row((rotation.as_str(), kind.as_str()), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let Some((n, waiter, until)) = found else { return Ok(None) };
        let waiter = Waiter(waiter);
        if until > now.0 && !is_silent(step, rotation, waiter.life(), now)? {
            return Ok(Some(waiter));
        }
        step.prepare_cached("DELETE FROM queue WHERE n = ?")?.execute([n])?;
    }
}

/// Strikes out who waits for `kind`, which is gone; returns them.
pub(super) fn clear(
    step: &Step<'_>,
    rotation: &RotationName,
    kind: &TypeName,
) -> Outcome<Vec<Waiter>> {
    let waiters = step
        .prepare_cached("DELETE FROM queue WHERE rotation = ? AND kind = ? RETURNING waiter")?
        .query_map((rotation.as_str(), kind.as_str()), |row| row.get(0).map(Waiter))?
        .collect::<Result<_, _>>()?;
    Ok(waiters)
}

/// How many wait for `kind`; before `waiter` only, if one is given who waits.
pub(super) fn count(
    db: &Connection,
    rotation: &RotationName,
    kind: &TypeName,
    before: Option<&Waiter>,
) -> Outcome<u64> {
    let n: Option<i64> = match before {
        Some(waiter) => find(
            db,
            "SELECT n FROM queue WHERE rotation = ? AND waiter = ?",
            (rotation.as_str(), &waiter.0),
        )?,
        None => None,
    };
    let count: Option<i64> = find(
        db,
        "SELECT count(*) FROM queue WHERE rotation = ? AND kind = ? AND n < ?",
        (rotation.as_str(), kind.as_str(), n.unwrap_or(i64::MAX)),
    )?;
    Ok(uint(count.unwrap_or_default()))
}

/// A life let a promise lapse: nobody of it waits, until it is heard of, or until then.
pub(super) fn silence(
    step: &Step<'_>,
    rotation: &RotationName,
    life: &str,
    until: Stamp,
) -> Outcome<()> {
    step.prepare_cached(
        "INSERT OR REPLACE INTO silent_lives (life, rotation, until) VALUES (?, ?, ?)",
    )?
    .execute((life, rotation.as_str(), until.0))?;
    Ok(())
}

/// A life is heard of; returns the rotations in which it was silent.
pub(super) fn hear(step: &Step<'_>, life: &str) -> Outcome<Vec<String>> {
    let rotations = step
        .prepare_cached("DELETE FROM silent_lives WHERE life = ? RETURNING rotation")?
        .query_map([life], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(rotations)
}

fn is_silent(step: &Step<'_>, rotation: &RotationName, life: &str, now: Stamp) -> Outcome<bool> {
    let until: Option<i64> = find(
        step,
        "SELECT until FROM silent_lives WHERE life = ? AND rotation = ?",
        (life, rotation.as_str()),
    )?;
    Ok(until.is_some_and(|until| until > now.0))
}
