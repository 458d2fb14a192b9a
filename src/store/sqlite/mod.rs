//! The sqlite backend (stub).
use super::*;
use crate::domain::name::*;
use std::time::Duration;

/// A connection.
#[derive(Clone)]
pub struct SqliteStore;

impl SqliteStore {
    /// Opens it.
    ///
    /// # Errors
    /// As [`Store::connect`].
    pub async fn connect(_url: &str, _options: &Options) -> Result<Self> {
        unimplemented!()
    }
    /// As [`Store::describe`].
    ///
    /// # Errors
    /// As [`Store::describe`].
    pub async fn describe(&self) -> Result<Description> {
        unimplemented!()
    }
}
impl leases::Leases for SqliteStore {
    async fn acquire(&self, _ask: &leases::Acquire) -> Result<leases::Acquired> {
        unimplemented!()
    }
    async fn renew(&self, _renewals: &[leases::Renewal]) -> Result<Vec<leases::Renewed>> {
        unimplemented!()
    }
    async fn release(&self, _job: &JobName, _owner: &Owner, _token: Token) -> Result<()> {
        unimplemented!()
    }
    async fn observe(&self, _jobs: &[JobName]) -> Result<Vec<leases::Observed>> {
        unimplemented!()
    }
}
impl jobs::Jobs for SqliteStore {
    async fn snapshot(&self, _jobs: &[JobName]) -> Result<jobs::Snapshot> {
        unimplemented!()
    }
    async fn participate(
        &self,
        _job: &JobName,
        _user: &UserName,
        _on: bool,
        _reason: Option<&str>,
    ) -> Result<bool> {
        unimplemented!()
    }
    async fn hold(&self, _job: &JobName, _by: &UserName, _reason: &str) -> Result<()> {
        unimplemented!()
    }
    async fn resume(&self, _job: &JobName) -> Result<()> {
        unimplemented!()
    }
    async fn request_move(
        &self,
        _job: &JobName,
        _to: Option<&NodeName>,
        _by: &UserName,
    ) -> Result<()> {
        unimplemented!()
    }
}
impl journal::Journal for SqliteStore {
    async fn record_started(&self, _started: &journal::Started) -> Result<()> {
        unimplemented!()
    }
    async fn record_stopping(&self, _job: &JobName, _token: Token, _grace: Duration) -> Result<()> {
        unimplemented!()
    }
    async fn record_output(&self, _output: &journal::Output) -> Result<()> {
        unimplemented!()
    }
    async fn record_ended(&self, _ended: &journal::Ended) -> Result<()> {
        unimplemented!()
    }
    async fn runs(
        &self,
        _job: &JobName,
        _before: Option<&RunId>,
        _limit: usize,
    ) -> Result<Vec<journal::RunEntry>> {
        unimplemented!()
    }
    async fn log(
        &self,
        _job: &JobName,
        _after: Option<u64>,
        _limit: usize,
    ) -> Result<Vec<journal::LogLine>> {
        unimplemented!()
    }
    async fn audit(&self, _entry: &journal::AuditEntry) -> Result<()> {
        unimplemented!()
    }
    async fn audits(
        &self,
        _target: Option<&str>,
        _before: Option<u64>,
        _limit: usize,
    ) -> Result<Vec<journal::AuditEntry>> {
        unimplemented!()
    }
}
impl nodes::Nodes for SqliteStore {
    async fn beat(&self, _beat: &nodes::Beat) -> Result<nodes::Heard> {
        unimplemented!()
    }
    async fn nodes(&self) -> Result<Vec<nodes::NodeRecord>> {
        unimplemented!()
    }
    async fn drain(&self, _node: &NodeName, _on: bool) -> Result<()> {
        unimplemented!()
    }
    async fn leave(&self, _node: &NodeName, _boot: &str) -> Result<()> {
        unimplemented!()
    }
}
impl accounts::Accounts for SqliteStore {
    async fn add_user(&self, _user: &accounts::User, _only_if_first: bool) -> Result<()> {
        unimplemented!()
    }
    async fn update_user(&self, _user: &accounts::User) -> Result<()> {
        unimplemented!()
    }
    async fn remove_user(&self, _name: &UserName) -> Result<()> {
        unimplemented!()
    }
    async fn user(&self, _name: &UserName) -> Result<Option<accounts::User>> {
        unimplemented!()
    }
    async fn users(&self) -> Result<Vec<accounts::User>> {
        unimplemented!()
    }
}
impl credentials::Credentials for SqliteStore {
    async fn open_session(
        &self,
        _hash: &str,
        _session: &credentials::Session,
        _lifetime: Duration,
    ) -> Result<()> {
        unimplemented!()
    }
    async fn session(&self, _hash: &str, _idle: Duration) -> Result<Option<credentials::Session>> {
        unimplemented!()
    }
    async fn close_sessions(&self, _user: &UserName, _hash: Option<&str>) -> Result<()> {
        unimplemented!()
    }
    async fn add_token(
        &self,
        _hash: &str,
        _token: &credentials::ApiToken,
        _lifetime: Option<Duration>,
    ) -> Result<()> {
        unimplemented!()
    }
    async fn token(&self, _hash: &str) -> Result<Option<credentials::ApiToken>> {
        unimplemented!()
    }
    async fn tokens(&self) -> Result<Vec<credentials::ApiToken>> {
        unimplemented!()
    }
    async fn revoke_token(&self, _id: &str) -> Result<()> {
        unimplemented!()
    }
    async fn add_link(
        &self,
        _hash: &str,
        _link: &credentials::Link,
        _lifetime: Duration,
    ) -> Result<()> {
        unimplemented!()
    }
    async fn link(&self, _hash: &str, _take: bool) -> Result<Option<credentials::Link>> {
        unimplemented!()
    }
    async fn failures(
        &self,
        _key: &str,
        _step: credentials::Count,
        _window: Duration,
    ) -> Result<u32> {
        unimplemented!()
    }
}
impl events::Events for SqliteStore {
    async fn subscribe(&self) -> Result<tokio::sync::mpsc::Receiver<events::StoreEvent>> {
        unimplemented!()
    }
}
