//! Runs, output and audit in Redis. What is written about a run is carried out by `store::core`.

use std::time::Duration;

use super::link::Repeat;
use super::record::from_json;
use super::{RedisStore, scripts};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, RunId};
use crate::domain::time::StoreTime;
use crate::store::journal::{
    AuditEntry, Ended, Journal, LOG_LINES, LogLine, Output, RunEntry, Started,
};
use crate::store::{Result, core};

impl Journal for RedisStore {
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
        let log = self.keys().log(job);
        let mut call = self.call(&scripts::READ_LOG);
        call.key(&log);
        call.arg(after.map(|after| after.to_string()).unwrap_or_default())
            .arg(limit.min(LOG_LINES));
        let lines: Vec<String> = self.shared.rest.script(&call, Repeat::Harmless).await?;
        lines.iter().map(|line| from_json(&log, line)).collect()
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
