//! The level of containment that a node chose, in the form that it passes to its guards.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use soloist_domain::containment::Containment;
use soloist_domain::name::{NodeName, RunId};

/// What a guard gets about containment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Choice {
    /// The level to use.
    pub level: Containment,
    /// Where cgroups of runs are made, where they can be.
    pub cgroups: Option<PathBuf>,
    /// Rather start nothing than use a weaker level.
    pub demanded: bool,
}

impl Choice {
    /// Where the cgroup of a run is, if it gets one.
    pub fn cgroup_of(&self, node: &NodeName, run: &RunId) -> Option<PathBuf> {
        Some(self.cgroups.as_ref()?.join(node.as_str()).join(run.as_str()))
    }
}
