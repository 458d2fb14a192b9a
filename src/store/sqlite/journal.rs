//! The journal in SQLite: what `domain::transition` decides of runs and output, carried out; and what is read of it.

use std::time::Duration;

use rusqlite::{Row, params};

use super::SqliteStore;
use super::fault::Outcome;
use super::history::{ENTRY, past, past_of_start, run_entry};
use super::row::{corrupt, int, uint, word};
use super::transition::decide;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, RunId};
use crate::domain::time::StoreTime;
use crate::domain::transition::{output, run};
use crate::store::journal::{
    AuditEntry, Ended, Journal, LogLine, Output, RunEntry, Started, Stream,
};
use crate::store::{Result, core};

impl Journal for SqliteStore {
    async fn record_started(&self, started: &Started) -> Result<StoreTime> {
        let started = started.clone();
        self.write(move |step| {
            decide(step, &started.job, |job, now| {
                let past = past_of_start(step, job, &started.run)?;
                Ok(run::started(job, &past, &started, now)?)
            })
        })
        .await
    }

    async fn record_stopping(&self, job: &JobName, token: Token, grace: Duration) -> Result<()> {
        let name = job.clone();
        self.write(move |step| {
            decide(step, &name, |job, now| Ok(((), run::stopping(job, token, grace, now)?)))
        })
        .await
    }

    async fn record_output(&self, output: &Output) -> Result<()> {
        let (name, output) = (output.job.clone(), output.clone());
        self.write(move |step| {
            decide(step, &name, |job, now| Ok(((), output::report(job, output, now)?)))
        })
        .await
    }

    async fn record_ended(&self, ended: &Ended) -> Result<()> {
        let ended = ended.clone();
        self.write(move |step| {
            decide(step, &ended.job, |job, now| {
                let past = past(step, job, &ended.run)?;
                Ok(((), run::ended(job, &past, &ended, now)?))
            })
        })
        .await
    }

    async fn runs(
        &self,
        job: &JobName,
        before: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<RunEntry>> {
        let (name, before) = (job.clone(), before.cloned());
        self.read(move |db, _| {
            let mut statement = db.prepare_cached(&format!(
                "SELECT {ENTRY} FROM runs WHERE job = ?1 \
                 AND (?2 IS NULL OR n < (SELECT n FROM runs WHERE job = ?1 AND id = ?2)) \
                 ORDER BY n DESC LIMIT ?3"
            ))?;
            let before = before.as_ref().map(RunId::as_str);
            let limit = int(limit as u64);
            let mut rows = statement.query(params![name.as_str(), before, limit])?;
            let mut runs = Vec::new();
            while let Some(row) = rows.next()? {
                runs.push(run_entry(&name, row)?);
            }
            Ok(runs)
        })
        .await
    }

    async fn log(&self, job: &JobName, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>> {
        let (name, limit) = (job.clone(), int(limit as u64));
        self.read(move |db, _| {
            let order = if after.is_some() { "ASC" } else { "DESC" };
            let mut statement = db.prepare_cached(&format!(
                "SELECT seq, at, run, node, stream, text FROM lines WHERE job = ? AND seq > ? \
                 ORDER BY seq {order} LIMIT ?"
            ))?;
            let mut rows =
                statement.query(params![name.as_str(), int(after.unwrap_or(0)), limit])?;
            let mut lines = Vec::new();
            while let Some(row) = rows.next()? {
                lines.push(log_line(&name, row)?);
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

fn log_line(job: &JobName, row: &Row<'_>) -> Outcome<LogLine> {
    let node: String = row.get(3)?;
    let stream: String = row.get(4)?;
    let what = format!("lines of {job}");
    Ok(LogLine {
        seq: uint(row.get(0)?),
        at: StoreTime(row.get(1)?),
        run: RunId(row.get(2)?),
        node: NodeName::new(&node).map_err(|why| corrupt(&what, &why.to_string()))?,
        stream: word::<Stream>(&what, &stream)?,
        text: row.get(5)?,
    })
}
