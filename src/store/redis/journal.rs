//! Runs, output and audit in Redis; writes about a run are refused in the script when a newer token exists.

use std::time::Duration;

use super::lane::{Call, Lane};
use super::leases::told;
use super::link::Repeat;
use super::record::{from_json, inside, to_json};
use super::{RedisStore, millis, scripts};
use crate::domain::job::Exit;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, RunId};
use crate::domain::time::StoreTime;
use crate::store::journal::{
    AUDIT_KEPT, AuditEntry, Ended, Journal, LOG_LINES, LogLine, Output, RUNS_KEPT, RunEntry,
    Started, Then,
};
use crate::store::{Result, StoreError};

/// Audit entries read at once while looking for those on one target.
const AUDIT_STRETCH: usize = 1_000;

impl Journal for RedisStore {
    async fn record_started(&self, started: &Started) -> Result<StoreTime> {
        let keys = self.keys();
        let mut call = self.call(&scripts::RECORD_STARTED);
        call.key(keys.token(&started.job))
            .key(keys.state(&started.job))
            .key(keys.runs(&started.job))
            .key(keys.events(&started.job));
        let (began, ago) = told(started.began);
        call.arg(started.token.0)
            .arg(started.job.as_str())
            .arg(started.run.as_str())
            .arg(started.node.as_str())
            .arg(started.pid)
            .arg(began)
            .arg(ago)
            .arg(RUNS_KEPT);
        match fenced(&self.shared.rest, &call, started.token, Repeat::Harmless).await?.parse() {
            Ok(at) => Ok(StoreTime(at)),
            Err(error) => {
                Err(StoreError::Corrupt(format!("{}: {error}", keys.state(&started.job))))
            }
        }
    }

    async fn record_stopping(&self, job: &JobName, token: Token, grace: Duration) -> Result<()> {
        let keys = self.keys();
        let mut call = self.call(&scripts::RECORD_STOPPING);
        call.key(keys.token(job)).key(keys.state(job)).key(keys.events(job));
        call.arg(token.0).arg(job.as_str()).arg(millis(grace));
        fenced(&self.shared.rest, &call, token, Repeat::Harmless).await.map(drop)
    }

    async fn record_output(&self, output: &Output) -> Result<()> {
        let keys = self.keys();
        let log = keys.log(&output.job);
        let progress = match &output.progress {
            Some(progress) => to_json(&keys.state(&output.job), progress)?,
            None => String::new(),
        };
        let newest = output.lines.last().map_or("", |line| line.text.as_str());
        let mut call = self.call(&scripts::RECORD_OUTPUT);
        call.key(keys.token(&output.job))
            .key(keys.state(&output.job))
            .key(&log)
            .key(keys.events(&output.job));
        call.arg(output.token.0)
            .arg(output.job.as_str())
            .arg(output.run.as_str())
            .arg(progress)
            .arg(newest)
            .arg(LOG_LINES);
        for line in &output.lines {
            let kept = LogLine {
                seq: 0,
                at: StoreTime::default(),
                run: output.run.clone(),
                node: output.node.clone(),
                stream: line.stream,
                text: line.text.clone(),
            };
            call.arg(inside(&log, &kept, &["seq", "at"])?);
        }
        fenced(&self.shared.rest, &call, output.token, Repeat::Never).await.map(drop)
    }

    async fn record_ended(&self, ended: &Ended) -> Result<()> {
        let keys = self.keys();
        let (began, ago) = ended.began.map(told).unwrap_or_default();
        let number = |n: Option<i32>| n.map(|n| n.to_string()).unwrap_or_default();
        let (then, crashes, wait) = match ended.then {
            Then::Nothing => ("nothing", 0, Duration::ZERO),
            Then::Repeat(wait) => ("repeat", 0, wait),
            Then::Done => ("done", 0, Duration::ZERO),
            Then::Retry { crashes, wait } => ("retry", crashes, wait),
            Then::GiveUp { crashes } => ("give_up", crashes, Duration::ZERO),
        };
        let mut call = self.call(&scripts::RECORD_ENDED);
        call.key(keys.token(&ended.job))
            .key(keys.state(&ended.job))
            .key(keys.lease(&ended.job))
            .key(keys.runs(&ended.job))
            .key(keys.participants(&ended.job))
            .key(keys.events(&ended.job));
        call.arg(ended.token.0)
            .arg(ended.job.as_str())
            .arg(ended.owner.as_str())
            .arg(ended.run.as_str())
            .arg(number(ended.exit.code))
            .arg(number(ended.exit.signal))
            .arg(ended.end.as_str())
            .arg(ended.processes_killed)
            .arg(then)
            .arg(crashes)
            .arg(millis(wait))
            .arg(RUNS_KEPT)
            .arg(began)
            .arg(ago);
        fenced(&self.shared.leases, &call, ended.token, Repeat::Harmless).await.map(drop)
    }

    async fn runs(
        &self,
        job: &JobName,
        before: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<RunEntry>> {
        let runs = self.keys().runs(job);
        let mut call = self.call(&scripts::READ_RUNS);
        call.key(self.keys().state(job)).key(&runs);
        call.arg(before.map(RunId::as_str).unwrap_or_default()).arg(limit.max(1));
        let (present, ended): (Present, Vec<String>) =
            self.shared.rest.script(&call, Repeat::Harmless).await?;
        let mut entries = Vec::with_capacity(ended.len() + 1);
        entries.extend(present_entry(job, present)?);
        for text in ended {
            let (_, json) = text.split_once(' ').unwrap_or_default();
            entries.push(from_json::<RunEntry>(&runs, json)?);
        }
        entries.truncate(limit);
        Ok(entries)
    }

    async fn log(&self, job: &JobName, after: Option<u64>, limit: usize) -> Result<Vec<LogLine>> {
        let log = self.keys().log(job);
        let mut call = self.call(&scripts::READ_LOG);
        call.key(self.keys().state(job)).key(&log);
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

/// Runs a script that answers `ok` and perhaps a word more, which is returned, or `stale` and the newest token.
async fn fenced(lane: &Lane, call: &Call, sent: Token, repeat: Repeat) -> Result<String> {
    let answer: Vec<String> = lane.script(call, repeat).await?;
    match answer.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ok"] => Ok(String::new()),
        ["ok", more] => Ok(more.to_owned()),
        ["stale", newest] => Err(StoreError::Stale {
            sent,
            current: Token(newest.parse().map_err(|error| {
                StoreError::Corrupt(format!("the newest token is {newest:?}: {error}"))
            })?),
        }),
        _ => Err(StoreError::Corrupt(format!("an answer about a run: {answer:?}"))),
    }
}

/// Id, token, node and start of the run that goes on, if one does.
type Present = (Option<String>, Option<u64>, Option<String>, Option<i64>);

fn present_entry(job: &JobName, present: Present) -> Result<Option<RunEntry>> {
    let (Some(id), Some(token), Some(node), Some(started)) = present else { return Ok(None) };
    let node: NodeName =
        node.parse().map_err(|error| StoreError::Corrupt(format!("run of {job}: {error}")))?;
    Ok(Some(RunEntry {
        id: RunId(id),
        job: job.clone(),
        node,
        token: Token(token),
        started: StoreTime(started),
        ended: None,
        exit: Exit::default(),
        end: None,
        processes_killed: 0,
        folded: 0,
    }))
}
