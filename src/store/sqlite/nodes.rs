//! Nodes in SQLite.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::fault::Outcome;
use super::row::{corrupt, int, json, ms, text, uint};
use super::step::{Moment, Step};
use crate::domain::name::NodeName;
use crate::domain::time::{Boot, StoreTime};
use crate::store::nodes::{
    ALIVE_FOR, Beat, FORGOTTEN_AFTER, Forgotten, Heard, NodeRecord, Nodes, Told,
};
use crate::store::{Result, StoreError};

impl Nodes for SqliteStore {
    async fn beat(&self, beat: &Beat) -> Result<Heard> {
        let beat = beat.clone();
        self.write(move |step| hear(step, &beat)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        self.read(|db, at| {
            let mut statement = db.prepare_cached(
                "SELECT * FROM nodes WHERE beat IS NOT NULL AND heard > ? ORDER BY name",
            )?;
            let oldest = at.wall.0 - ms(FORGOTTEN_AFTER);
            let mut rows = statement.query([oldest])?;
            let mut nodes = Vec::new();
            while let Some(row) = rows.next()? {
                nodes.extend(record(row, at)?);
            }
            Ok(nodes)
        })
        .await
    }

    async fn define(&self, told: &Told) -> Result<()> {
        let told = told.clone();
        self.write(move |step| {
            let definitions = text(&told.definitions)?;
            step.prepare_cached("UPDATE nodes SET digest = ?, definitions = ? WHERE name = ?")?
                .execute(params![told.digest, definitions, told.node.as_str()])?;
            step.publish_nodes()
        })
        .await
    }

    async fn definitions(&self) -> Result<Vec<Told>> {
        self.read(|db, _| {
            let mut statement = db.prepare_cached(
                "SELECT name, digest, definitions FROM nodes WHERE definitions IS NOT NULL ORDER BY name",
            )?;
            let mut rows = statement.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let bad = |column: &str, why: &str| corrupt(&format!("nodes, {column}"), why);
                let name: String = row.get("name")?;
                let node = NodeName::new(&name).map_err(|why| bad("name", &why.to_string()))?;
                let definitions = json(row, "definitions", &bad)?.unwrap_or_default();
                all.push(Told { node, digest: row.get("digest")?, definitions });
            }
            Ok(all)
        })
        .await
    }

    async fn drain(&self, node: &NodeName, on: bool) -> Result<()> {
        let node = node.clone();
        self.write(move |step| {
            let changed = step
                .prepare_cached("UPDATE nodes SET draining = ? WHERE name = ?")?
                .execute(params![on, node.as_str()])?;
            if changed == 0 {
                return Err(StoreError::NotFound(format!("node {node}")).into());
            }
            drop_empty(step)?;
            step.publish_nodes()
        })
        .await
    }

    async fn forget(&self, node: &NodeName) -> Result<Forgotten> {
        let node = node.clone();
        self.write(move |step| {
            let (draining, known) = find(step, &node)?;
            if known.as_ref().is_some_and(|known| known.age_ms < alive_ms()) {
                return Ok(Forgotten::Alive);
            }
            if known.is_none() && !draining {
                return Err(StoreError::NotFound(format!("node {node}")).into());
            }
            step.prepare_cached("DELETE FROM nodes WHERE name = ?")?.execute([node.as_str()])?;
            step.publish_nodes()?;
            Ok(Forgotten::Done)
        })
        .await
    }

    async fn leave(&self, node: &NodeName, boot: &str) -> Result<()> {
        let (node, boot) = (node.clone(), boot.to_owned());
        self.write(move |step| {
            let theirs = |known: &NodeRecord| known.beat.boot == boot;
            if !find(step, &node)?.1.as_ref().is_some_and(theirs) {
                return Ok(());
            }
            step.prepare_cached(
                "UPDATE nodes SET beat = NULL, digest = NULL, definitions = NULL WHERE name = ?",
            )?
            .execute([node.as_str()])?;
            drop_empty(step)?;
            step.publish_nodes()
        })
        .await
    }
}

fn hear(step: &Step<'_>, beat: &Beat) -> Outcome<Heard> {
    let (draining, known) = find(step, &beat.node)?;
    let told: Option<String> = step
        .prepare_cached("SELECT digest FROM nodes WHERE name = ?")?
        .query_row([beat.node.as_str()], |row| row.get("digest"))
        .optional()?
        .flatten();
    let fresh = known.filter(|known| known.age_ms < alive_ms());
    if fresh.as_ref().is_some_and(|known| known.beat.boot != beat.boot) {
        return Ok(Heard::Duplicate);
    }
    step.prepare_cached(
        "INSERT INTO nodes (name, beat, draining, heard, heard_boot_ns, boot) VALUES (?, ?, ?, ?, ?, ?) \
         ON CONFLICT (name) DO UPDATE SET beat = excluded.beat, heard = excluded.heard, \
         heard_boot_ns = excluded.heard_boot_ns, boot = excluded.boot",
    )?
    .execute(params![
        beat.node.as_str(),
        text(beat)?,
        draining,
        step.at.wall.0,
        int(step.at.boot.0),
        step.at.boot_id
    ])?;
    if fresh.is_none_or(|known| known.beat != *beat) {
        let oldest = step.at.wall.0 - ms(FORGOTTEN_AFTER);
        step.prepare_cached(
            "UPDATE nodes SET beat = NULL, digest = NULL, definitions = NULL WHERE heard <= ?",
        )?
        .execute([oldest])?;
        drop_empty(step)?;
        step.publish_nodes()?;
    }
    Ok(Heard::Welcome { draining, told: told.as_ref() == Some(&beat.digest) })
}

fn alive_ms() -> u64 {
    u64::try_from(ALIVE_FOR.as_millis()).unwrap_or(u64::MAX)
}

/// Rows without a report are kept only for their drain mark.
fn drop_empty(step: &Step<'_>) -> Outcome<()> {
    step.prepare_cached("DELETE FROM nodes WHERE beat IS NULL AND draining = 0")?.execute([])?;
    Ok(())
}

/// The drain mark of a node, and its newest report unless it left.
fn find(step: &Step<'_>, node: &NodeName) -> Outcome<(bool, Option<NodeRecord>)> {
    let mut statement = step.prepare_cached("SELECT * FROM nodes WHERE name = ?")?;
    let mut rows = statement.query([node.as_str()])?;
    match rows.next()? {
        Some(row) => Ok((row.get("draining")?, record(row, &step.at)?)),
        None => Ok((false, None)),
    }
}

fn record(row: &Row<'_>, at: &Moment) -> Outcome<Option<NodeRecord>> {
    let bad = |column: &str, why: &str| corrupt(&format!("nodes, {column}"), why);
    let Some(beat) = json::<Beat>(row, "beat", &bad)? else { return Ok(None) };
    let heard = Boot(uint(row.get("heard_boot_ns")?));
    let age = if row.get::<_, String>("boot")? == at.boot_id {
        at.boot.since(heard)
    } else {
        at.wall.since(StoreTime(row.get("heard")?))
    };
    let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Ok(Some(NodeRecord { beat, age_ms, draining: row.get("draining")?, told: Arc::default() }))
}
