//! Definitions that differ between nodes.
//!
//! Every node shows the same: the definition that most living nodes have is the reference, whichever node is asked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use soloist_domain::definition::{MISSING, drift};
use soloist_domain::name::JobName;
use soloist_store::nodes::NodeRecord;

/// A living node whose definition of the job is not the one that most living nodes have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Drift)]
pub struct DriftView {
    /// Which.
    pub node: String,
    /// The keys of `[[job]]` that differ; `missing` alone when it does not define the job.
    #[schema(example = json!(["command"]))]
    pub differs: Vec<String>,
}

impl DriftView {
    /// Of one job. A node that tells no definitions (version 0.1, or just started) is not counted.
    #[must_use]
    pub fn of(job: &JobName, nodes: &[NodeRecord]) -> Vec<Self> {
        let telling = nodes.iter().filter(|node| node.is_alive() && tells(node));
        let told: Vec<_> = telling.map(|node| (&node.beat.node, node.told.get(job))).collect();
        let views = drift(&told).into_iter();
        views.map(|one| Self { node: one.node.to_string(), differs: one.differs }).collect()
    }

    /// For terminals and logs, in English.
    #[must_use]
    pub fn sentence(&self, job: &str) -> String {
        let node = &self.node;
        match self.differs.as_slice() {
            [one] if one == MISSING => format!("{node} does not define {job}"),
            keys => format!("{node} defines {job} otherwise than most: {}", keys.join(", ")),
        }
    }
}

/// Whether it has said what it defines, be it nothing.
fn tells(node: &NodeRecord) -> bool {
    !node.beat.digest.is_empty() && (node.beat.jobs.is_empty() || !node.told.is_empty())
}
