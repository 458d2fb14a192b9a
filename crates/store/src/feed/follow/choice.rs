//! Which jobs are followed: those of this node's configuration, and those that only other nodes define.
//!
//! It reads what the nodes define, as seldom as that changes; how often anything is looked at is decided elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::Followed;
use super::{Follower, OBSERVE_HELD};
use crate::nodes::{NodeRecord, Nodes};
use soloist_domain::definition::{Definition, Definitions};
use soloist_domain::lease::Timing;
use soloist_domain::name::{JobName, NodeName};

impl Followed {
    /// A job that only other nodes define, as they tell it.
    fn elsewhere(job: &JobName, told: &Definition) -> Option<Self> {
        Some(Self {
            job: job.clone(),
            timing: Timing::from_ttl(Duration::from_millis(told.lease_ttl_ms)).ok()?,
            min_uptime: Duration::from_millis(told.min_uptime_ms),
            takes_turns: told.rotation.is_some(),
            external: told.external,
            schedule: None,
        })
    }
}

impl Follower {
    /// Chooses the jobs to follow. Whether others than before came or went: then everything is to be subscribed anew.
    pub(super) fn choose(&mut self) -> bool {
        let mut chosen = self.own.borrow_and_update().clone();
        let own: HashSet<JobName> = chosen.iter().map(|f| f.job.clone()).collect();
        let mut others = BTreeMap::new();
        for node in self.feed.nodes().iter() {
            for (job, told) in node.told.iter().filter(|(job, _)| !own.contains(*job)) {
                others.entry(job.clone()).or_insert_with(|| Followed::elsewhere(job, told));
            }
        }
        chosen.extend(others.into_values().flatten());
        let shortest = chosen.iter().map(|f| f.timing.ttl / 10).min();
        self.held_every = shortest.map_or(OBSERVE_HELD, |every| every.min(OBSERVE_HELD));
        let names: Vec<JobName> = chosen.iter().map(|f| f.job.clone()).collect();
        self.jobs = chosen.into_iter().map(|f| (f.job.clone(), f)).collect();
        let before = std::mem::replace(&mut self.names, names);
        let gone: Vec<_> = before.iter().filter(|name| !self.jobs.contains_key(name)).collect();
        for name in &gone {
            self.said.remove(name);
            self.missing.remove(&Some((*name).clone()));
            self.feed.write(|pictures| pictures.drop(name));
        }
        !gone.is_empty() || before.len() != self.names.len()
    }

    /// Notes of `nodes` what they define; the store is asked only when one of them defines something new.
    pub(super) async fn read_definitions(&mut self, nodes: &mut [NodeRecord]) {
        let new =
            |node: &NodeRecord| !node.beat.digest.is_empty() && known(&self.told, node).is_none();
        if nodes.iter().any(new) {
            match self.store.definitions().await {
                Ok(all) => {
                    let told = |told: crate::nodes::Told| {
                        (told.node, (told.digest, Arc::new(told.definitions)))
                    };
                    self.told = all.into_iter().map(told).collect();
                }
                Err(error) => {
                    tracing::debug!(%error, "what nodes define is read with their next reports");
                }
            }
        }
        for node in nodes {
            node.told = known(&self.told, node).unwrap_or_default();
        }
    }
}

/// What a node defines by its newest report, if that was read.
fn known(
    told: &HashMap<NodeName, (String, Arc<Definitions>)>,
    node: &NodeRecord,
) -> Option<Arc<Definitions>> {
    let (digest, definitions) = told.get(&node.beat.node)?;
    (*digest == node.beat.digest).then(|| Arc::clone(definitions))
}
