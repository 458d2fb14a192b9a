//! A rotation as everybody outside sees it.

use rusqlite::{Connection, Row};

use super::super::fault::Outcome;
use super::super::row::{corrupt, uint};
use super::past;
use super::record::unknown;
use crate::domain::name::{NodeName, RotationName, TypeName, WorkerName};
use crate::domain::rotation::Rules;
use crate::domain::time::Stamp;
use crate::store::rotation::{
    PastTurn, RotationView, TURNS_KEPT, TypeView, WAITERS_NAMED, WaiterView,
};

const SELECT: &str = "SELECT name, rules, ring FROM rotations";

/// One.
pub(super) fn one(
    db: &Connection,
    name: &RotationName,
    now: Stamp,
    past: usize,
) -> Outcome<RotationView> {
    let mut found = db.prepare_cached(&format!("{SELECT} WHERE name = ?"))?;
    let mut rows = found.query([name.as_str()])?;
    let row = rows.next()?.ok_or_else(|| unknown(name))?;
    read(db, row, now, past)
}

/// All, by name.
pub(super) fn all(db: &Connection, now: Stamp, past: usize) -> Outcome<Vec<RotationView>> {
    let mut found = db.prepare_cached(&format!("{SELECT} ORDER BY name"))?;
    let mut rows = found.query([])?;
    let mut views = Vec::new();
    while let Some(row) = rows.next()? {
        views.push(read(db, row, now, past)?);
    }
    Ok(views)
}

/// A name in a column.
pub(super) fn name(text: &str) -> Outcome<RotationName> {
    RotationName::new(text).map_err(|why| corrupt("rotations.name", &why.to_string()))
}

fn read(db: &Connection, row: &Row<'_>, now: Stamp, past: usize) -> Outcome<RotationView> {
    let name = name(&row.get::<_, String>(0)?)?;
    let bad = |column: &str, why: &dyn std::fmt::Display| {
        corrupt(&format!("rotation {name}, {column}"), &why.to_string())
    };
    let rules: Rules =
        serde_json::from_str(&row.get::<_, String>(1)?).map_err(|why| bad("rules", &why))?;
    let ring = serde_json::from_str(&row.get::<_, String>(2)?).map_err(|why| bad("ring", &why))?;
    Ok(RotationView {
        types: types(db, &name, &rules)?,
        waiters: waiters(db, &name)?,
        past: pasts(db, &name, past)?,
        name,
        rules,
        ring,
        now,
    })
}

fn types(db: &Connection, rotation: &RotationName, rules: &Rules) -> Outcome<Vec<TypeView>> {
    let mut views: Vec<TypeView> = rules
        .types
        .iter()
        .map(|kind| TypeView {
            kind: kind.name.clone(),
            waiting: 0,
            done: 0,
            empty: 0,
            failed: 0,
            lost: 0,
        })
        .collect();
    let mut counts = db.prepare_cached(
        "SELECT kind, ending, count FROM turn_counts WHERE rotation = ?1 \
         UNION ALL SELECT kind, 'waiting', count(*) FROM queue WHERE rotation = ?1 GROUP BY kind",
    )?;
    let mut rows = counts.query([rotation.as_str()])?;
    while let Some(row) = rows.next()? {
        let (kind, what) = (row.get::<_, String>(0)?, row.get::<_, String>(1)?);
        let count = uint(row.get(2)?);
        // A type that is gone is not counted any more.
        let Some(view) = views.iter_mut().find(|view| view.kind.as_str() == kind) else { continue };
        match what.as_str() {
            "done" => view.done = count,
            "empty" => view.empty = count,
            "failed" => view.failed = count,
            "lost" => view.lost = count,
            _ => view.waiting = count,
        }
    }
    Ok(views)
}

fn waiters(db: &Connection, rotation: &RotationName) -> Outcome<Vec<WaiterView>> {
    let mut found = db.prepare_cached(
        "SELECT kind, worker, waiter, since FROM queue WHERE rotation = ? ORDER BY n LIMIT ?",
    )?;
    let most = i64::try_from(WAITERS_NAMED).unwrap_or(i64::MAX);
    let mut rows = found.query((rotation.as_str(), most))?;
    let mut waiters = Vec::new();
    let bad = |why: &dyn std::fmt::Display| corrupt("queue", &why.to_string());
    while let Some(row) = rows.next()? {
        let waiter: String = row.get(2)?;
        let node = waiter.split('/').next().unwrap_or_default();
        waiters.push(WaiterView {
            kind: TypeName::new(&row.get::<_, String>(0)?).map_err(|why| bad(&why))?,
            worker: WorkerName::new(&row.get::<_, String>(1)?).map_err(|why| bad(&why))?,
            node: NodeName::new(node).map_err(|why| bad(&why))?,
            since: Stamp(row.get(3)?),
        });
    }
    Ok(waiters)
}

fn pasts(db: &Connection, rotation: &RotationName, most: usize) -> Outcome<Vec<PastTurn>> {
    let most = i64::try_from(most.min(TURNS_KEPT)).unwrap_or(i64::MAX);
    let mut found = db
        .prepare_cached("SELECT turn FROM past_turns WHERE rotation = ? ORDER BY n DESC LIMIT ?")?;
    let mut rows = found.query((rotation.as_str(), most))?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        turns.push(past::read(&row.get::<_, String>(0)?)?);
    }
    Ok(turns)
}
