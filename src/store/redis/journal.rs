//! Runs, output and audit in Redis. What is written about a run is carried out by `store::core`.

use std::time::Duration;

use super::link::Repeat;
use super::record::{from_json, inside};
use super::{RedisStore, scripts};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, RunId};
use crate::domain::time::StoreTime;
use crate::store::journal::{
    AUDIT_KEPT, AuditEntry, Ended, Journal, LOG_LINES, LogLine, Output, RunEntry, Started,
};
use crate::store::{Result, core};

/// Audit entries read at once while looking for those on one target.
const AUDIT_STRETCH: usize = 1_000;

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
        let audit = self.keys().global("audit");
        let mut call = self.call(&scripts::APPEND_AUDIT);
        call.key(&audit).key(self.keys().global("audit_seq"));
        call.arg(inside(&audit, entry, &["id", "at"])?).arg(AUDIT_KEPT);
        let _id: u64 = self.shared.rest.script(&call, Repeat::Never).await?;
        Ok(())
    }

    async fn audits(
        &self,
        target: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let audit = self.keys().global("audit");
        let stretch = if target.is_some() { AUDIT_STRETCH } else { limit };
        let (mut found, mut before) = (Vec::new(), before);
        while found.len() < limit {
            let mut call = self.call(&scripts::READ_AUDIT);
            call.key(&audit).key(self.keys().global("audit_seq"));
            call.arg(before.map(|before| before.to_string()).unwrap_or_default()).arg(stretch);
            let read: Vec<String> = self.shared.rest.script(&call, Repeat::Harmless).await?;
            if read.is_empty() {
                break;
            }
            for text in read.iter().rev() {
                let entry: AuditEntry = from_json(&audit, text)?;
                before = Some(entry.id);
                if target.is_none_or(|target| entry.target == target) {
                    found.push(entry);
                }
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}
