//! What people want of jobs, in SQLite, and the snapshot of everything known: carried out by `store::core`.

use std::time::Duration;

use super::SqliteStore;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, UserName};
use crate::domain::time::StoreTime;
use crate::store::jobs::{Jobs, Snapshot};
use crate::store::{Result, core};

impl Jobs for SqliteStore {
    async fn snapshot(&self, jobs: &[JobName]) -> Result<Snapshot> {
        core::snapshot(self, jobs).await
    }

    async fn participate(
        &self,
        job: &JobName,
        user: &UserName,
        on: bool,
        reason: Option<&str>,
    ) -> Result<bool> {
        core::participate(self, job, user, on, reason).await
    }

    async fn hold(&self, job: &JobName, by: &UserName, reason: &str) -> Result<()> {
        core::hold(self, job, by, reason).await
    }

    async fn resume(&self, job: &JobName) -> Result<()> {
        core::resume(self, job).await
    }

    async fn request_move(
        &self,
        job: &JobName,
        to: Option<&NodeName>,
        by: &UserName,
        lasts: Duration,
    ) -> Result<()> {
        core::request_move(self, job, to, by, lasts).await
    }

    async fn request_drill(
        &self,
        job: &JobName,
        token: Token,
        by: &UserName,
    ) -> Result<Option<StoreTime>> {
        core::request_drill(self, job, token, by).await
    }
}
