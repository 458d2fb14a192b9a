//! Who waits for which type, in the order in which they came.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::super::fault::Outcome;
use super::super::row::{corrupt, find, uint};
use super::super::step::Step;
use crate::domain::name::{RotationName, TypeName, WorkerName};
use crate::domain::rotation::Queues;
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
pub(super) fn strike(step: &Step<'_>, rotation: &RotationName, waiter: &Waiter) -> Outcome<()> {
    step.prepare_cached("DELETE FROM queue WHERE rotation = ? AND waiter = ?")?
        .execute((rotation.as_str(), &waiter.0))?;
    Ok(())
}

/// The first who wait for `kind` and are at none of the `silent` node incarnations (JSON): whose time is not over,
/// but `asker` in any case.
pub(super) fn first(
    step: &Step<'_>,
    rotation: &RotationName,
    kind: &TypeName,
    silent: &str,
    now: Stamp,
    asker: Option<&Waiter>,
) -> Outcome<Vec<Waiter>> {
    let waiters = step
        .prepare_cached(
            "SELECT waiter FROM queue WHERE rotation = ? AND kind = ? AND (until > ? OR waiter = ?) \
             AND life NOT IN (SELECT value FROM json_each(?)) ORDER BY n LIMIT ?",
        )?
        .query_map(
            (
                rotation.as_str(),
                kind.as_str(),
                now.0,
                asker.map(|asker| &asker.0),
                silent,
                i64::try_from(Queues::FIRST).unwrap_or(i64::MAX),
            ),
            |row| row.get(0).map(Waiter),
        )?
        .collect::<Result<_, _>>()?;
    Ok(waiters)
}

/// Strikes out who waits for `kind`, which is gone; returns them.
pub(super) fn dismiss(
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

/// How many wait, by type.
pub(super) fn counts(db: &Connection, rotation: &RotationName) -> Outcome<BTreeMap<TypeName, u64>> {
    let mut counts = BTreeMap::new();
    let mut found =
        db.prepare_cached("SELECT kind, count(*) FROM queue WHERE rotation = ? GROUP BY kind")?;
    let mut rows = found.query([rotation.as_str()])?;
    while let Some(row) = rows.next()? {
        let kind = TypeName::new(&row.get::<_, String>(0)?);
        let kind = kind.map_err(|why| corrupt("queue.kind", &why.to_string()))?;
        counts.insert(kind, uint(row.get(1)?));
    }
    Ok(counts)
}

/// How many wait for `kind`; before `waiter` only, if one is given who waits.
pub(super) fn before(
    db: &Connection,
    rotation: &RotationName,
    kind: &TypeName,
    waiter: Option<&Waiter>,
) -> Outcome<u64> {
    let count: Option<i64> = find(
        db,
        "SELECT count(*) FROM queue WHERE rotation = ?1 AND kind = ?2 AND n < \
         coalesce((SELECT n FROM queue WHERE rotation = ?1 AND waiter = ?3), ?4)",
        (rotation.as_str(), kind.as_str(), waiter.map(|waiter| &waiter.0), i64::MAX),
    )?;
    Ok(uint(count.unwrap_or_default()))
}

/// The rotations in which a node incarnation is silent.
pub(super) fn silent_in(step: &Step<'_>, life: &str) -> Outcome<Vec<String>> {
    let rotations = step
        .prepare_cached("SELECT rotation FROM silent_lives WHERE life = ?")?
        .query_map([life], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(rotations)
}

/// Strikes out those whose time is over, some at a time, and forgets who was silent once.
pub(super) fn forget(step: &Step<'_>, now: Stamp) -> Outcome<()> {
    step.prepare_cached(
        "DELETE FROM queue WHERE n IN (SELECT n FROM queue WHERE until <= ? ORDER BY until LIMIT ?)",
    )?
    .execute((now.0, MOST))?;
    step.prepare_cached("DELETE FROM silent_lives WHERE until <= ?")?.execute([now.0])?;
    Ok(())
}
