//! Runs, output and audit in SQLite. What is written about a run is carried out by `store::core`.

use std::time::Duration;

use rusqlite::params;

use super::SqliteStore;
use super::fault::Outcome;
use super::row::{corrupt, int, uint};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, RunId};
use crate::domain::time::StoreTime;
use crate::store::journal::{AuditEntry, Ended, Journal, LogLine, Output, RunEntry, Started};
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
        core::audit::audit(self, entry).await
    }

    async fn audits(
        &self,
        target: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        core::audit::audits(self, target, before, limit).await
    }
}

fn log_line(job: &JobName, text: &str) -> Outcome<LogLine> {
    serde_json::from_str(text).map_err(|why| corrupt(&format!("output of {job}"), &why.to_string()))
}
