//! Dispatch in SQLite: stands open.

use std::time::Duration;

use super::SqliteStore;
use crate::domain::dispatch::Rules;
use crate::domain::name::{CollectorName, SourceName};
use crate::store::dispatch::{
    ClaimId, CollectorView, Dispatch, Exchange, Exchanged, Extended, NewTask, Pumped, SourceView,
    Sources, TaskId, TaskView, Waiter,
};
use crate::store::{Result, StoreError};

fn open<T>() -> Result<T> {
    Err(StoreError::Unsupported("dispatch is not built yet".to_owned()))
}

impl Sources for SqliteStore {
    async fn put_source(&self, _source: &SourceName, _rules: &Rules) -> Result<SourceView> {
        open()
    }
    async fn block_source(&self, _source: &SourceName, _lasting: Duration) -> Result<SourceView> {
        open()
    }
    async fn sources(&self, _only: Option<&SourceName>) -> Result<Vec<SourceView>> {
        open()
    }
    async fn collectors(&self) -> Result<Vec<CollectorView>> {
        open()
    }
}

impl Dispatch for SqliteStore {
    async fn put_tasks(&self, _tasks: &[NewTask]) -> Result<Vec<bool>> {
        open()
    }
    async fn exchange(&self, _ask: &Exchange) -> Result<Exchanged> {
        open()
    }
    async fn extend(&self, _claim: &ClaimId, _only: Option<&CollectorName>) -> Result<Extended> {
        open()
    }
    async fn give_back(&self, _claim: &ClaimId, _only: Option<&CollectorName>) -> Result<u64> {
        open()
    }
    async fn stop_waiting(&self, _waiter: &Waiter, _sources: &[SourceName]) -> Result<()> {
        open()
    }
    async fn pump(&self) -> Result<Pumped> {
        open()
    }
    async fn task(&self, _id: &TaskId) -> Result<Option<TaskView>> {
        open()
    }
    async fn dead(
        &self,
        _source: Option<&SourceName>,
        _skip: usize,
        _limit: usize,
    ) -> Result<Vec<TaskView>> {
        open()
    }
    async fn revive(&self, _id: &TaskId) -> Result<TaskView> {
        open()
    }
}
