//! Jobs in SQLite: what `domain::transition` decides of switches, holds, moves and drills, carried out.

use std::time::Duration;

use super::SqliteStore;
use super::row::{Row, find};
use super::transition::decide;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, UserName};
use crate::domain::time::StoreTime;
use crate::domain::transition::{drill, handover, participation};
use crate::store::jobs::{Jobs, Snapshot};
use crate::store::{Result, StoreError};

impl Jobs for SqliteStore {
    async fn snapshot(&self, jobs: &[JobName]) -> Result<Snapshot> {
        let names = jobs.to_vec();
        self.read(move |db, at| {
            let epoch = find(db, "SELECT value FROM meta WHERE key = 'epoch'", [])?;
            let epoch = epoch.ok_or_else(|| StoreError::Corrupt("meta, epoch: missing".into()))?;
            let mut jobs = Vec::with_capacity(names.len());
            for name in &names {
                jobs.push(Row::load(db, name, at)?.job.record);
            }
            Ok(Snapshot { epoch, at: at.wall, quarantine: Duration::ZERO, jobs })
        })
        .await
    }

    async fn participate(
        &self,
        job: &JobName,
        user: &UserName,
        on: bool,
        reason: Option<&str>,
    ) -> Result<bool> {
        let (name, user, reason) = (job.clone(), user.clone(), reason.map(str::to_owned));
        self.write(move |step| {
            decide(step, &name, |job, now| {
                Ok(participation::switch(job, &user, on, reason.as_deref(), now))
            })
        })
        .await
    }

    async fn hold(&self, job: &JobName, by: &UserName, reason: &str) -> Result<()> {
        let (name, by, reason) = (job.clone(), by.clone(), reason.to_owned());
        self.write(move |step| {
            decide(step, &name, |job, now| Ok(((), participation::hold(job, &by, &reason, now))))
        })
        .await
    }

    async fn resume(&self, job: &JobName) -> Result<()> {
        let name = job.clone();
        self.write(move |step| decide(step, &name, |job, _| Ok(((), participation::resume(job)))))
            .await
    }

    async fn request_move(
        &self,
        job: &JobName,
        to: Option<&NodeName>,
        by: &UserName,
        lasts: Duration,
    ) -> Result<()> {
        let (name, to, by) = (job.clone(), to.cloned(), by.clone());
        self.write(move |step| {
            decide(step, &name, |job, now| {
                Ok(((), handover::request(job, to.as_ref(), &by, lasts, now)))
            })
        })
        .await
    }

    async fn request_drill(
        &self,
        job: &JobName,
        token: Token,
        by: &UserName,
    ) -> Result<Option<StoreTime>> {
        let (name, by) = (job.clone(), by.clone());
        self.write(move |step| {
            decide(step, &name, |job, now| Ok(drill::request(job, token, &by, now)))
        })
        .await
    }
}
