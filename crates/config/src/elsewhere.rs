//! Jobs that only other nodes define.

use std::collections::{BTreeMap, HashSet};

use super::{Alerting, JobConfig};
use soloist_domain::definition::{Definition, Definitions, agreed};
use soloist_domain::name::{JobName, NodeName};

/// Whether a node is alive, which it is, and what it defines.
pub type Telling<'a> = (bool, &'a NodeName, &'a Definitions);

/// Jobs that this node does not define, as the others tell them: living nodes first, most of them, else silent ones. Rules of
/// this node's `alerting` are of them, too.
#[must_use]
pub fn elsewhere<'a>(
    own: &[JobConfig],
    alerting: &Alerting,
    nodes: impl IntoIterator<Item = Telling<'a>>,
) -> Vec<JobConfig> {
    let mut all: BTreeMap<&JobName, Vec<(bool, &NodeName, &Definition)>> = BTreeMap::new();
    for (alive, node, definitions) in nodes {
        for (job, told) in definitions.iter() {
            all.entry(job).or_default().push((alive, node, told));
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
