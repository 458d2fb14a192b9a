//! What says in the store that its leases are in ZooKeeper: a row that every process compares when it opens the store. Without it a node with
//! another configuration would grant leases beside those there.

use std::time::Duration;

use super::Locks;
use crate::domain::name::JobName;
use crate::store::core::carry;
use crate::store::engine::{Engine, Way};
use crate::store::nodes::Nodes as _;
use crate::store::records::Records;
use crate::store::{Options, Result, Store, StoreError};

const TABLE: &str = "coordination";
const ROW: &str = "leases";
const ZOOKEEPER: &str = "zookeeper";

/// No job, but the name of one: on a cluster each has a clock of its own, and all processes must read the same.
pub(super) fn job() -> Option<JobName> {
    JobName::new(TABLE).ok()
}

async fn is_set<R: Records>(records: &R) -> Result<bool> {
    let (_, text) = carry::look_at_row(records, TABLE, ROW).await?;
    match text.as_deref() {
        None => Ok(false),
        Some(ZOOKEEPER) => Ok(true),
        Some(_) => Err(StoreError::Unsupported(
            "the leases of this store are kept by something that this program does not know: start the newer Soloist"
                .to_owned(),
        )),
    }
}

async fn set<R: Records>(records: &R) -> Result<()> {
    // Another process may be faster.
    carry::swap_row(records, TABLE, ROW, None, Some(ZOOKEEPER), None).await.map(drop)
}

/// The store was emptied or replaced: it is said again. Should that fail, the next process that opens the store says it.
pub(super) async fn again<R: Records>(records: &R) {
    if let Err(error) = set(records).await {
        tracing::debug!(%error, "that leases are in ZooKeeper could not be written down");
    }
}

/// Opens the ensemble of a store that is open itself, and marks the store. Without an ensemble a store that has the mark is refused.
///
/// # Errors
/// [`StoreError::Unsupported`]: also when nodes live that keep leases in the store. [`StoreError::Unavailable`].
pub(in crate::store) async fn agree<E: Engine>(
    records: &E,
    locks: Option<&Locks>,
    options: &Options,
) -> Result<()> {
    let marked = is_set(records).await?;
    let Some(locks) = locks else {
        return if marked { Err(elsewhere()) } else { Ok(()) };
    };
    if !marked && let Some(node) = records.nodes().await?.iter().find(|node| node.is_alive()) {
        return Err(StoreError::Unsupported(format!(
            "node {} keeps leases in the store itself: stop every node, wait 4 s, and start all of them with `coordination`",
            node.beat.node
        )));
    }
    if !marked && !options.make {
        return Err(StoreError::Absent(format!(
            "{}: no node has used this store with it yet",
            locks.ensemble.place.name()
        )));
    }
    // From here on its clock is known.
    let reading = records.read(job().as_slice(), Way::Rest).await?;
    *locks.lock(&locks.epoch) = Some(reading.epoch).filter(|_| !locks.sharded);
    locks.open(!marked).await?;
    if marked { Ok(()) } else { set(records).await }
}

fn elsewhere() -> StoreError {
    StoreError::Unsupported(
        "the leases of this store are in ZooKeeper: set `coordination` (SOLOIST_COORDINATION) as on its nodes; to copy the store, say --from \"STORE-URL COORDINATION-URL\""
            .to_owned(),
    )
}

impl Store {
    /// Whether anybody has a lease that is not in the store itself.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(in crate::store) async fn holds_elsewhere(&self) -> Result<Option<String>> {
        let Some(locks) = &self.locks else { return Ok(None) };
        locks.any().await
    }

    /// So long leases may last that are not in the store itself, and were forgotten there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(in crate::store) async fn doubted_elsewhere(&self) -> Result<Duration> {
        let Some(locks) = &self.locks else { return Ok(Duration::ZERO) };
        Ok(locks.era().await?.quiet())
    }
}
