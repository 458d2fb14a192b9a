//! What people want of jobs, in Redis, and the snapshot of everything known.

use std::time::Duration;

use futures_util::future::try_join_all;

use super::lane::Call;
use super::link::Repeat;
use super::record::job_record;
use super::{Guarded, RedisStore, millis, scripts};
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, UserName};
use crate::domain::time::StoreTime;
use crate::store::jobs::{Jobs, Snapshot};
use crate::store::{Result, StoreError};

impl Jobs for RedisStore {
    async fn snapshot(&self, jobs: &[JobName]) -> Result<Snapshot> {
        // Without any job, the epoch and the clock are still read.
        let batches =
            if jobs.is_empty() { vec![jobs] } else { jobs.chunks(self.batch()).collect() };
        let parts =
            try_join_all(batches.into_iter().map(|batch| self.snapshot_batch(batch))).await?;
        let mut whole: Option<Snapshot> = None;
        for part in parts {
            match &mut whole {
                None => whole = Some(part),
                Some(whole) if whole.epoch == part.epoch => whole.jobs.extend(part.jobs),
                Some(_) => {
                    return Err(StoreError::Unavailable(
                        "the store was emptied while it was read: read it again".to_owned(),
                    ));
                }
            }
        }
        whole.ok_or_else(|| StoreError::Corrupt("snapshot_jobs: no answer".to_owned()))
    }

    async fn participate(
        &self,
        job: &JobName,
        user: &UserName,
        on: bool,
        reason: Option<&str>,
    ) -> Result<bool> {
        let keys = self.keys();
        let mut call = self.call(&scripts::SWITCH_PARTICIPATION);
        call.key(keys.state(job)).key(keys.participants(job)).key(keys.events(job));
        call.arg(job.as_str()).arg(user.as_str()).arg(u8::from(on));
        if let Some(reason) = reason {
            call.arg(reason);
        }
        let changed: u8 = self.shared.rest.script(&call, Repeat::Never).await?;
        Ok(changed > 0)
    }

    async fn hold(&self, job: &JobName, by: &UserName, reason: &str) -> Result<()> {
        let mut call = self.call(&scripts::HOLD_JOB);
        call.key(self.keys().state(job)).key(self.keys().events(job));
        call.arg(job.as_str()).arg(by.as_str()).arg(reason);
        self.change_job(&call).await
    }

    async fn resume(&self, job: &JobName) -> Result<()> {
        let mut call = self.call(&scripts::RESUME_JOB);
        call.key(self.keys().state(job)).key(self.keys().events(job));
        call.arg(job.as_str());
        self.change_job(&call).await
    }

    async fn request_move(
        &self,
        job: &JobName,
        to: Option<&NodeName>,
        by: &UserName,
        lasts: Duration,
    ) -> Result<()> {
        let keys = self.keys();
        let mut call = self.call(&scripts::REQUEST_MOVE);
        call.key(keys.state(job)).key(keys.lease(job)).key(keys.events(job));
        call.arg(job.as_str())
            .arg(to.map(NodeName::as_str).unwrap_or_default())
            .arg(by.as_str())
            .arg(millis(lasts));
        self.change_job(&call).await
    }

    async fn request_drill(
        &self,
        job: &JobName,
        token: Token,
        by: &UserName,
    ) -> Result<Option<StoreTime>> {
        let keys = self.keys();
        let mut call = self.call(&scripts::REQUEST_DRILL);
        call.key(keys.state(job)).key(keys.lease(job)).key(keys.events(job));
        call.arg(job.as_str()).arg(token.0).arg(by.as_str());
        let ordered: Option<i64> = self.shared.rest.script(&call, Repeat::Harmless).await?;
        Ok(ordered.map(StoreTime))
    }
}

impl RedisStore {
    /// Twice does what once does; only the version grows once more.
    async fn change_job(&self, call: &Call) -> Result<()> {
        let _done: u8 = self.shared.rest.script(call, Repeat::Harmless).await?;
        Ok(())
    }

    async fn snapshot_batch(&self, batch: &[JobName]) -> Result<Snapshot> {
        let names = self.keys();
        let keys: Vec<String> = batch
            .iter()
            .flat_map(|job| {
                [names.state(job), names.lease(job), names.participants(job), names.token(job)]
            })
            .collect();
        let epoch = names.epoch(batch.first());
        let lane = &self.shared.rest;
        let answer =
            self.guarded(lane, &scripts::SNAPSHOT_JOBS, epoch, &keys, Duration::ZERO, &[]).await?;
        if answer.values.len() != batch.len() {
            return Err(StoreError::Corrupt("snapshot_jobs: an answer is missing".to_owned()));
        }
        let jobs = batch
            .iter()
            .zip(answer.values)
            .map(|(job, read)| job_record(names, job, read, answer.now))
            .collect::<Result<_>>()?;
        let Guarded { epoch, now: at, quarantine, .. } = answer;
        Ok(Snapshot { epoch, at, quarantine, jobs })
    }
}
