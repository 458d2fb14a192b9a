//! Runs, output and audit in SQLite. What is written about a run is carried out by `store::core`.

use std::time::Duration;

use rusqlite::params;

use super::SqliteStore;
use super::fault::Outcome;
use super::row::{corrupt, int, uint};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, RunId};
use crate::domain::time::StoreTime;
use crate::store::journal::{
    AUDIT_KEPT, AuditEntry, Ended, Journal, LogLine, Output, RunEntry, Started,
};
use crate::store::{Result, core};

impl Journal for SqliteStore {
    async fn record_started(&self, started: &Started) -> Result<StoreTime> {
        core::record_started(self, started).await
    }

    async fn record_stopping(&self, job: &JobName, token: Token, grace: Duration) -> Result<()> {
        core::record_stopping(self, job, token, grace).await
    }

    async fn record_output(&self, output: &Output) -> Result<()> {
        core::record_output(self, output).await
    }

    async fn record_ended(&self, ended: &Ended) -> Result<()> {
        core::record_ended(self, ended).await
    }

    async fn runs(
        &self,
        job: &JobName,
        before: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<RunEntry>> {
        core::runs(self, job, before, limit).await
    }

    async fn log(&self, job: &JobName, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>> {
        let (name, limit) = (job.clone(), int(limit as u64));
        self.read(move |db, _| {
            let order = if after.is_some() { "ASC" } else { "DESC" };
            let mut statement = db.prepare_cached(&format!(
                "SELECT text FROM output WHERE job = ? AND number > ? ORDER BY number {order} LIMIT ?"
            ))?;
            let mut rows =
                statement.query(params![name.as_str(), int(after.unwrap_or(0)), limit])?;
            let mut lines = Vec::new();
            while let Some(row) = rows.next()? {
                lines.push(log_line(&name, row.get_ref(0)?.as_str().unwrap_or_default())?);
            }
            if after.is_none() {
                lines.reverse();
            }
            Ok(lines)
        })
        .await
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        let entry = entry.clone();
        self.write(move |step| {
            step.prepare_cached(
                "INSERT INTO audit (at, who, origin, act, target, reason) VALUES (?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                step.at.wall.0,
                entry.who,
                entry.from,
                entry.act,
                entry.target,
                entry.reason
            ])?;
            let id = step.last_insert_rowid();
            if id % 64 == 0 {
                let oldest = id - int(AUDIT_KEPT as u64);
                step.prepare_cached("DELETE FROM audit WHERE id <= ?")?.execute([oldest])?;
            }
            Ok(())
        })
        .await
    }

    async fn audits(
        &self,
        target: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let target = target.map(str::to_owned);
        self.read(move |db, _| {
            let only = if target.is_some() { "target = ?1" } else { "?1 IS NULL" };
            let mut statement = db.prepare_cached(&format!(
                "SELECT id, at, who, origin, act, target, reason FROM audit WHERE {only} AND id < ?2 \
                 ORDER BY id DESC LIMIT ?3"
            ))?;
            let before = before.map_or(i64::MAX, int);
            let entries = statement.query_map(params![target, before, int(limit as u64)], |row| {
                Ok(AuditEntry {
                    id: uint(row.get(0)?),
                    at: StoreTime(row.get(1)?),
                    who: row.get(2)?,
                    from: row.get(3)?,
                    act: row.get(4)?,
                    target: row.get(5)?,
                    reason: row.get(6)?,
                })
            })?;
            Ok(entries.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

fn log_line(job: &JobName, text: &str) -> Outcome<LogLine> {
    serde_json::from_str(text).map_err(|why| corrupt(&format!("output of {job}"), &why.to_string()))
}
