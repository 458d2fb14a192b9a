//! Who waits for which type, in the order in which they came.

use rusqlite::Connection;

use super::super::fault::Outcome;
use super::super::row::{find, uint};
use super::super::step::Step;
use crate::domain::name::{RotationName, TypeName, WorkerName};
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;

/// Most waiters that one pump strikes out.
const MOST: u32 = 256;

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
        "INSERT INTO queue (rotation, kind, waiter, life, worker, since, until) VALUES (?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (rotation, waiter) DO UPDATE SET until = excluded.until",
    )?
    .execute((
        rotation.as_str(),
        kind.as_str(),
        &waiter.0,
        waiter.life(),
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

/// The first who waits for `kind`, but for those whose time is over, and those whose life is silent.
pub(super) fn first(
    step: &Step<'_>,
    rotation: &RotationName,
    kind: &TypeName,
    now: Stamp,
) -> Outcome<Option<Waiter>> {
    let waiter = find(
        step,
        "SELECT waiter FROM queue WHERE rotation = ?1 AND kind = ?2 AND until > ?3 AND life NOT IN \
         (SELECT life FROM silent_lives WHERE rotation = ?1 AND until > ?3) ORDER BY n LIMIT 1",
        (rotation.as_str(), kind.as_str(), now.0),
    )?;
    Ok(waiter.map(Waiter))
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

/// A life is heard of in one rotation.
pub(super) fn hear(step: &Step<'_>, rotation: &RotationName, life: &str) -> Outcome<()> {
    step.prepare_cached("DELETE FROM silent_lives WHERE life = ? AND rotation = ?")?
        .execute((life, rotation.as_str()))?;
    Ok(())
}

/// A life is heard of in all of them; returns those in which it was silent.
pub(super) fn hear_everywhere(step: &Step<'_>, life: &str) -> Outcome<Vec<String>> {
    let rotations = step
        .prepare_cached("DELETE FROM silent_lives WHERE life = ? RETURNING rotation")?
        .query_map([life], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(rotations)
}

/// Strikes out those whose time is over, some at a time, and forgets which lives were silent once.
pub(super) fn forget(step: &Step<'_>, now: Stamp) -> Outcome<()> {
    step.prepare_cached(
        "DELETE FROM queue WHERE n IN (SELECT n FROM queue WHERE until <= ? ORDER BY until LIMIT ?)",
    )?
    .execute((now.0, MOST))?;
    step.prepare_cached("DELETE FROM silent_lives WHERE until <= ?")?.execute([now.0])?;
    Ok(())
}
