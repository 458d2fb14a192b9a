//! Whether the leases of a store are in the store itself or in ZooKeeper. A row in the store says so; every process compares it when it opens the
//! store, also one of a build without ZooKeeper. Otherwise a node would grant leases beside those there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::backend::Backend;
use super::core::carry;
use super::engine::{Engine, Way};
use super::examine::Finding;
use super::nodes::Nodes as _;
use super::records::Records;
use super::{Description, Options, Result, Store, StoreError};
use soloist_domain::name::JobName;

/// Leases that are not in the store itself, and those of them that this process has.
#[async_trait]
pub trait Coordination: Send + Sync {
    /// The port of jobs of the store `records`, with the leases from here.
    fn before(self: Arc<Self>, records: Arc<dyn Backend>) -> Arc<dyn Engine>;

    /// Where they are, in words.
    fn place(&self) -> String;

    /// Makes what is missing, and looks whether the promise can be kept there. `unused`: no store has ever used it.
    ///
    /// # Errors
    /// As [`Store::open`].
    async fn open(&self, unused: bool) -> Result<()>;

    /// So long nothing is granted, because leases may have been forgotten there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn quarantine(&self) -> Result<Duration>;

    /// The texts of those of the leases that are there; `None`: of all.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn texts(&self, jobs: Option<&[JobName]>) -> Result<BTreeMap<JobName, String>>;

    /// Adds what there is to say of it.
    ///
    /// # Errors
    /// As [`Store::describe`].
    async fn describe(&self, of: Description) -> Result<Description>;

    /// What `soloist doctor` says of it.
    ///
    /// # Errors
    /// As [`Store::examine`].
    async fn examine(&self) -> Result<Vec<Finding>>;
}

const TABLE: &str = "coordination";
const ROW: &str = "leases";
const ELSEWHERE: &str = "the leases of this store are in ZooKeeper: set `coordination` (SOLOIST_COORDINATION) as on its nodes; to copy the store, say --from \"STORE-URL COORDINATION-URL\"";

/// Why a store that is a file has no coordination.
pub fn no_server() -> StoreError {
    StoreError::Unsupported(
        "coordination is for nodes on many machines, and sqlite: is a file on one: use a server store, or leave coordination out"
            .to_owned(),
    )
}

/// No job, but the name of one: on a cluster each has a clock of its own, and all processes must read the same.
pub fn job() -> Option<JobName> {
    JobName::new(TABLE).ok()
}

/// Marks the store.
pub async fn set(records: &dyn Records) -> Result<()> {
    // Another process may be faster.
    carry::swap_row(records, TABLE, ROW, None, Some("zookeeper"), None).await.map(drop)
}

/// Opens the ensemble of a store that is open itself, and marks the store. Without an ensemble a store that has the mark is refused.
///
/// # Errors
/// [`StoreError::Unsupported`]: also when nodes live that keep leases in the store. [`StoreError::Unavailable`].
pub async fn agree(
    records: &dyn Engine,
    locks: Option<&dyn Coordination>,
    options: &Options,
) -> Result<()> {
    let marked = carry::look_at_row(records, TABLE, ROW).await?.1.is_some();
    let Some(locks) = locks else {
        return if marked { Err(StoreError::Unsupported(ELSEWHERE.to_owned())) } else { Ok(()) };
    };
    let plain: &dyn Records = records;
    if !marked && let Some(node) = plain.nodes().await?.iter().find(|node| node.is_alive()) {
        return Err(StoreError::Unsupported(format!(
            "node {} keeps leases in the store itself: stop every node, wait 4 s, and start all of them with `coordination`",
            node.beat.node
        )));
    }
    if !marked && !options.make {
        return Err(StoreError::Absent(format!(
            "{}: no node has used this store with it yet",
            locks.place()
        )));
    }
    // From here on its clock is known.
    records.read(job().as_slice(), Way::Rest).await?;
    locks.open(!marked).await?;
    if marked { Ok(()) } else { set(records).await }
}

impl Store {
    /// Whether anybody has a lease that is not in the store itself.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn holds_elsewhere(&self) -> Result<Option<String>> {
        let Some(locks) = &self.locks else { return Ok(None) };
        Ok(locks.texts(None).await?.into_keys().next().map(|job| job.to_string()))
    }

    /// So long leases may last that are not in the store itself, and were forgotten there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn doubted_elsewhere(&self) -> Result<Duration> {
        let Some(locks) = &self.locks else { return Ok(Duration::ZERO) };
        locks.quarantine().await
    }
}
