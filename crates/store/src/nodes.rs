//! Nodes: which ones live, since when, and which ones are drained.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::Result;
use soloist_domain::definition::Definitions;
use soloist_domain::handover::Taker;
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::StoreTime;

/// How often a node reports.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// A node that did not report for this long is not counted on.
pub const ALIVE_FOR: Duration = Duration::from_secs(4);
/// A node that was silent for this long is forgotten by itself: long enough to find in the morning what died at night.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A node's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Which node.
    pub node: NodeName,
    /// Random per process: it distinguishes two processes of one name.
    pub boot: String,
    /// Program version.
    pub version: String,
    /// When the process started.
    pub started: StoreTime,
    /// Containment level in force (`pid namespace`, `cgroup`, `subreaper`).
    pub containment: String,
    /// Where browsers reach it; empty for nodes that do not say it.
    #[serde(default)]
    pub url: String,
    /// Jobs it may run, and can.
    pub jobs: BTreeSet<JobName>,
    /// Jobs that it may run and cannot start now, with why: a directory is not mounted, a program or a user is not there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unfit: BTreeMap<JobName, String>,
    /// Of everything it defines ([`Nodes::define`]); empty from nodes of version 0.1.
    #[serde(default)]
    pub digest: String,
    /// Jobs it says it holds, for nodes of version 0.1 alone: the leases say what a node really holds
    /// (`picture::NodeView`).
    pub holds: Vec<JobName>,
    /// How its machine is; nothing from nodes that do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vitals: Option<Vitals>,
    /// The programs on this machine that it watches; nothing from nodes without a life line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

/// Programs that a node watches (contract 15).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Watched {
    /// How many processes.
    pub programs: u32,
    /// The leases that their death releases, at most [`Watched::MOST`] of them in a report.
    pub leases: BTreeMap<JobName, Token>,
}

impl Watched {
    /// Reports are read by every node every second.
    pub const MOST: usize = 1_000;

    /// The same, as short as a report must be.
    #[must_use]
    pub fn reported(&self) -> Self {
        let leases = self.leases.iter().take(Self::MOST);
        Self {
            programs: self.programs,
            leases: leases.map(|(name, token)| (name.clone(), *token)).collect(),
        }
    }

    /// Whether the lease of `name` under this token is watched.
    #[must_use]
    pub fn has(&self, name: &JobName, token: Token) -> bool {
        self.leases.get(name) == Some(&token)
    }
}

/// How a machine is; what it does not tell is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Vitals {
    /// Its load in the last minute, in hundredths.
    pub load_percent: Option<u32>,
    /// Its processors, as far as the node may use them.
    pub cores: Option<u32>,
    /// Its memory in MiB.
    pub memory_mb: Option<u64>,
    /// What of it is available.
    pub free_mb: Option<u64>,
    /// The file system in which the node works, in MiB.
    pub disk_mb: Option<u64>,
    /// What of it is free, in MiB.
    pub disk_free_mb: Option<u64>,
    /// Its own clock when it reported.
    pub clock: Option<StoreTime>,
    /// So many milliseconds that clock is ahead of the store's, as [`Nodes::nodes`] reads it; the way of the report to the store
    /// is in it.
    #[serde(skip)]
    pub ahead_ms: Option<i64>,
}

impl Beat {
    /// Whether the other report says the same of the node; how its machine is does not count.
    #[must_use]
    pub fn says_as(&self, other: &Self) -> bool {
        let plain = |beat: &Self| Self { vitals: None, ..beat.clone() };
        plain(self) == plain(other)
    }
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
    /// What it defines, as [`listed`] and the feed read it; [`Nodes::nodes`] leaves it empty.
    #[serde(skip)]
    pub told: Arc<Definitions>,
}

/// What a node defines, as it told the store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Told {
    pub node: NodeName,
    pub digest: String,
    pub definitions: Definitions,
}

/// Nodes to which `job` could be moved: alive, offering it, not being emptied.
#[must_use]
pub fn takers(job: &JobName, nodes: &[NodeRecord]) -> Vec<NodeName> {
    nodes.iter().filter(|node| node.may_take(job)).map(|node| node.beat.node.clone()).collect()
}

/// All nodes with what they define.
///
/// # Errors
/// As [`Nodes::nodes`].
pub fn listed(store: &super::Store) -> BoxFuture<'_, Result<Vec<NodeRecord>>> {
    Box::pin(async move {
        let mut nodes = store.nodes().await?;
        for told in store.definitions().await? {
            let its = |node: &&mut NodeRecord| {
                node.beat.node == told.node && node.beat.digest == told.digest
            };
            if let Some(node) = nodes.iter_mut().find(its) {
                node.told = Arc::new(told.definitions);
            }
        }
        Ok(nodes)
    })
}

impl NodeRecord {
    /// Whether it may take `job`: it reported lately, offers the job, and is not being emptied.
    #[must_use]
    pub fn may_take(&self, job: &JobName) -> bool {
        self.taker(job).is_fit()
    }

    /// Whether it is alive, which it is, and what it defines.
    #[must_use]
    pub fn telling(&self) -> (bool, &NodeName, &Definitions) {
        (self.is_alive(), &self.beat.node, &self.told)
    }

    /// Whether the node reported lately.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Duration::from_millis(self.age_ms) < ALIVE_FOR
    }

    /// The node as a hand-over of `job` sees it. The node itself says which jobs it may run.
    #[must_use]
    pub fn taker(&self, job: &JobName) -> Taker {
        Taker {
            node: self.beat.node.clone(),
            silent_for: (!self.is_alive()).then(|| Duration::from_millis(self.age_ms)),
            draining: self.draining,
            offers: self.beat.jobs.contains(job),
        }
    }
}

/// The answer to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Welcome.
    Welcome {
        /// Keep empty?
        draining: bool,
        /// The store knows what this node defines; if not, it is to be told with [`Nodes::define`].
        told: bool,
    },
    /// Another living process reports under this name.
    Duplicate,
}

/// What came of the wish to forget a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Forgotten {
    /// Its report and its drain mark are gone.
    Done,
    /// It reported a moment ago: nothing was changed.
    Alive,
}

/// Transitions and readings of nodes.
#[async_trait]
pub trait Nodes {
    /// Stores a report. Records of nodes silent for [`FORGOTTEN_AFTER`] are dropped. A node that is new, changed what it
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

    /// Says what a node defines, under the digest of its reports. Apart from the reports, because it is large and seldom
    /// changes. Publishes a nodes event. It goes when the report goes.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn define(&self, told: &Told) -> Result<()>;

    /// What the nodes define, by name.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn definitions(&self) -> Result<Vec<Told>>;

    /// Empties a node and keeps it empty, or allows it again. Publishes a nodes event.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn drain(&self, node: &NodeName, on: bool) -> Result<()>;

    /// Removes the report and the drain mark of a node that is silent. Publishes a nodes event. A node that comes back
    /// after that is a new one.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn forget(&self, node: &NodeName) -> Result<Forgotten>;

    /// Removes the report at a clean end (the drain mark stays). Publishes a nodes event.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn leave(&self, node: &NodeName, boot: &str) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_version_0_1_is_read_and_one_of_ours_is_read_by_it() {
        let old = r#"{"node":"node-a","boot":"b","version":"0.1.0","started":1,"containment":"subreaper","jobs":["outbound"],"holds":["outbound"]}"#;
        let beat: Beat = serde_json::from_str(old).unwrap();
        assert_eq!((beat.jobs.len(), beat.digest.as_str()), (1, ""));
        let ours = serde_json::to_value(Beat { digest: "d1".to_owned(), ..beat }).unwrap();
        // It knows nothing of a digest and would refuse to read any list of nodes if these were not lists of names.
        assert_eq!(ours["jobs"], serde_json::json!(["outbound"]));
        assert_eq!(ours["holds"], serde_json::json!(["outbound"]));
    }
}
