//! A build without ZooKeeper: nobody makes a [`Locks`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::backend::Backend;
use super::engine::Engine;
use super::examine::Finding;
use super::{Description, Options, Result, StoreError};
use soloist_domain::name::JobName;

/// There is none.
pub(super) enum Locks {}

impl Locks {
    /// Refused.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`].
    pub(super) fn named(_: &str, _: &Options, _: Arc<dyn Backend>) -> Result<Arc<Self>> {
        Err(StoreError::Unsupported(
            soloist_process::parts::ZOOKEEPER.missing().unwrap_or_default(),
        ))
    }

    pub(super) fn before(self: &Arc<Self>, _: Arc<dyn Backend>) -> Arc<dyn Engine> {
        match **self {}
    }

    pub(super) fn place(&self) -> String {
        match *self {}
    }

    pub(super) async fn open(&self, _: bool) -> Result<()> {
        match *self {}
    }

    pub(super) async fn quarantine(&self) -> Result<Duration> {
        match *self {}
    }

    pub(super) async fn texts(&self, _: Option<&[JobName]>) -> Result<BTreeMap<JobName, String>> {
        match *self {}
    }

    pub(super) async fn describe(&self, _: Description) -> Result<Description> {
        match *self {}
    }

    pub(super) async fn examine(&self) -> Result<Vec<Finding>> {
        match *self {}
    }
}
