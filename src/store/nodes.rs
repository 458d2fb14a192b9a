//! Nodes: who is there, since when, and who is being emptied.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Result;
use crate::domain::name::{JobName, NodeName};
use crate::domain::time::StoreTime;

/// How often a node reports.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// A node that did not report for this long is not counted on.
pub const ALIVE_FOR: Duration = Duration::from_secs(4);

/// A node's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Which node.
    pub node: NodeName,
    /// Random per process: two processes of one name are told apart by it.
    pub boot: String,
    /// Program version.
    pub version: String,
    /// When the process started.
    pub started: StoreTime,
    /// Containment level in force (`pid namespace`, `cgroup`, `subreaper`).
    pub containment: String,
    /// Jobs it may run.
    pub jobs: Vec<JobName>,
    /// Jobs it holds.
    pub holds: Vec<JobName>,
}

/// A node as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Its newest report.
    pub beat: Beat,
    /// Age of that report by the store's clock, in milliseconds.
    pub age_ms: u64,
    /// Being emptied and kept empty.
    pub draining: bool,
}

/// What a node hears back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Welcome; `draining` says whether to keep empty.
    Welcome {
        /// Keep empty?
        draining: bool,
    },
    /// Another living process reports under this name.
    Duplicate,
}

/// Transitions and readings of nodes.
#[expect(async_fn_in_trait, reason = "never used as a trait object; the enum Store forwards")]
pub trait Nodes {
    /// Stores a report. Records of nodes silent for a day are dropped. A node that is new, changed what it
    /// holds, or came back publishes a nodes event; a mere beat does not.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn beat(&self, beat: &Beat) -> Result<Heard>;

    /// All nodes, by name.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn nodes(&self) -> Result<Vec<NodeRecord>>;

    /// Empties a node and keeps it empty, or allows it again. Publishes a nodes event.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn drain(&self, node: &NodeName, on: bool) -> Result<()>;

    /// Removes the report at a clean end (the drain mark stays). Publishes a nodes event.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn leave(&self, node: &NodeName, boot: &str) -> Result<()>;
}
