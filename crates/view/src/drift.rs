//! Definitions that differ between nodes, and the jobs that only other nodes define.
//!
//! Every node shows the same: the definition that most living nodes have is the reference, whichever node is asked.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use soloist_config::{Alerting, JobConfig};
use soloist_domain::definition::{Definition, MISSING, agreed, drift};
use soloist_domain::name::{JobName, NodeName};
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

/// Jobs that this node does not define, as the others tell them: living nodes first, most of them, else silent ones. Rules of
/// this node's `alerting` are of them, too.
#[must_use]
pub fn elsewhere(own: &[JobConfig], alerting: &Alerting, nodes: &[NodeRecord]) -> Vec<JobConfig> {
    let mut all: BTreeMap<&JobName, Vec<(bool, &NodeName, &Definition)>> = BTreeMap::new();
    for node in nodes {
        for (job, told) in node.told.iter() {
            all.entry(job).or_default().push((node.is_alive(), &node.beat.node, told));
        }
    }
    let own: HashSet<&JobName> = own.iter().map(|job| &job.name).collect();
    all.retain(|job, _| !own.contains(job));
    let choose = |told: &[(bool, &NodeName, &Definition)], living: bool| {
        let some = told.iter().filter(|(alive, _, _)| *alive == living);
        agreed(&some.map(|(_, node, told)| (*node, *told)).collect::<Vec<_>>()).cloned()
    };
    all.into_iter()
        .filter_map(|(job, told)| {
            let chosen = choose(&told, true).or_else(|| choose(&told, false))?;
            let stuck_after = alerting.stuck_after(job);
            let missing_after = alerting.missing_after(job);
            Some(JobConfig { stuck_after, missing_after, ..JobConfig::elsewhere(job, &chosen) })
        })
        .collect()
}
