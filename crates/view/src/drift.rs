//! Definitions that differ between nodes.
//!
//! Every node shows the same: the definition that most living nodes have is the reference, whichever node is asked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::{Language, say};
use soloist_domain::definition::{MISSING, ZONE_TABLE, drift};
use soloist_domain::name::JobName;
use soloist_store::nodes::NodeRecord;

/// A living node whose definition of the job is not the one that most living nodes have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Drift)]
pub struct DriftView {
    /// Which.
    pub node: String,
    /// The keys of `[[job]]` that differ, or `zone_table` if its table of time zones gives the schedule other times; `missing` alone when it
    /// does not define the job.
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

    /// What differs, for a page.
    #[must_use]
    pub fn words(differs: &[String], lang: Language) -> String {
        let word = |key: &String| match key.as_str() {
            MISSING => say(lang, "drift-missing", &[]),
            ZONE_TABLE => say(lang, "drift-zone-table", &[]),
            key => key.to_owned(),
        };
        let words: Vec<String> = differs.iter().map(word).collect();
        words.join(&say(lang, "list-separator", &[]))
    }

    /// For terminals and logs, in English.
    #[must_use]
    pub fn sentence(&self, job: &str) -> String {
        let node = &self.node;
        match self.differs.as_slice() {
            [one] if one == MISSING => format!("{node} does not define {job}"),
            [one] if one == ZONE_TABLE => {
                format!(
                    "the zone table of {node} gives {job} other times than most: update its tzdata, then restart it"
                )
            }
            keys => format!("{node} defines {job} otherwise than most: {}", keys.join(", ")),
        }
    }
}

/// Whether it has said what it defines, be it nothing.
fn tells(node: &NodeRecord) -> bool {
    !node.beat.digest.is_empty() && (node.beat.jobs.is_empty() || !node.told.is_empty())
}
