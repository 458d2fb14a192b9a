//! Which jobs there are: those of the configuration in force, then those that only other nodes define; by group.
//!
//! A job keeps its number for as long as this process lives, also while it is gone, so that seats may speak of numbers. It
//! decides only the order.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use super::{Hub, ShownJob, lock};
use crate::config::{Config, JobConfig, in_groups};
use crate::domain::name::{JobName, RotationName};
use crate::ops::Bound;
use crate::store::nodes::NodeRecord;
use crate::view::{NodeView, elsewhere};
use crate::web::auth::Caller;

/// What a caller may not know of: to them it does not exist.
#[derive(Debug, Default)]
pub struct Hidden {
    /// Jobs.
    jobs: HashSet<JobName>,
    /// Rotations with such a job among their types.
    rotations: HashSet<RotationName>,
    /// Whatever these do not name.
    only: Option<Arc<Bound>>,
}

impl Hidden {
    /// Nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.only.is_none()
    }

    /// All their names, but for what a token is not bound to.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        let jobs = self.jobs.iter().map(ToString::to_string);
        jobs.chain(self.rotations.iter().map(ToString::to_string)).collect()
    }

    /// A job, or whatever else has its name (a lease, the target of an act).
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.jobs.iter().any(|job| job.as_str() == name)
            || self.only.as_ref().is_some_and(|only| !only.reads_job(name))
    }

    /// A rotation.
    #[must_use]
    pub fn has_rotation(&self, name: &str) -> bool {
        self.rotations.iter().any(|rotation| rotation.as_str() == name)
            || self.only.as_ref().is_some_and(|only| !only.reads_rotation(name))
    }

    /// Takes them out of a list of nodes.
    #[must_use]
    pub fn strike(&self, mut nodes: Vec<NodeView>) -> Vec<NodeView> {
        if self.is_empty() {
            return nodes;
        }
        for node in &mut nodes {
            node.holds.retain(|job| !self.has(job));
            node.jobs.retain(|job, _| !self.has(job));
            node.offers.retain(|job| !self.has(job));
        }
        nodes
    }
}

/// All jobs that were ever known here, and which of them there are now.
#[derive(Default)]
pub(super) struct Roster {
    jobs: Vec<(Arc<JobConfig>, Arc<ShownJob>)>,
    numbers: HashMap<JobName, usize>,
    /// The numbers of the jobs that there are now.
    index: HashMap<JobName, usize>,
    /// Numbers, in the order of the page.
    shown: Vec<usize>,
    /// Some job, also of those that are gone, is not for all accounts: only then it matters who looks.
    restricted: bool,
}

impl Roster {
    /// As the configuration and the nodes have it now.
    pub(super) fn chosen(&self, config: &Config, nodes: &[NodeRecord]) -> Self {
        let (jobs, numbers) = (self.jobs.clone(), self.numbers.clone());
        let mut next = Self { jobs, numbers, ..Self::default() };
        let others = elsewhere(&config.jobs, &config.alerting, nodes);
        let mut all: Vec<&JobConfig> = config.jobs.iter().chain(&others).collect();
        in_groups(&mut all, |job| job);
        for job in all {
            let nth = match next.numbers.get(&job.name) {
                Some(&nth) => nth,
                None => {
                    next.numbers.insert(job.name.clone(), next.jobs.len());
                    next.jobs.push((Arc::new(job.clone()), Arc::default()));
                    next.jobs.len() - 1
                }
            };
            if *next.jobs[nth].0 != *job {
                next.jobs[nth].0 = Arc::new(job.clone());
            }
            next.index.insert(job.name.clone(), nth);
            next.shown.push(nth);
        }
        next.restricted = next.jobs.iter().any(|(job, _)| !job.is_public());
        next
    }

    fn is(&self, other: &Self) -> bool {
        self.shown == other.shown
            && self.jobs.len() == other.jobs.len()
            && self.jobs.iter().zip(&other.jobs).all(|(a, b)| Arc::ptr_eq(&a.0, &b.0))
    }

    /// The number of a job that there is.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.shown.iter().copied().find(|&nth| self.jobs[nth].0.name.as_str() == name)
    }

    /// How many jobs that `caller` sees stand before this one.
    pub(super) fn place_for(&self, caller: &Caller, job: usize) -> usize {
        let before = self.shown().take_while(|(nth, _)| *nth != job);
        before.filter(|(_, job)| caller.sees(job)).count()
    }

    /// As [`Self::number`].
    pub(super) fn number_of(&self, name: &JobName) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Numbers and definitions of the jobs that there are, in the order of the page.
    pub(super) fn shown(&self) -> impl Iterator<Item = (usize, &Arc<JobConfig>)> {
        self.shown.iter().map(|&nth| (nth, &self.jobs[nth].0))
    }

    /// Whether some of them may be hidden from `caller`.
    pub(super) fn may_hide_from(&self, caller: &Caller) -> bool {
        (self.restricted && !caller.is_admin()) || caller.bound.names_any()
    }

    /// The names of those that are gone.
    pub(super) fn gone(&self) -> impl Iterator<Item = &JobName> {
        self.numbers.keys().filter(|name| !self.index.contains_key(*name))
    }
}

impl Hub {
    /// The jobs as they are now.
    pub(super) fn roster(&self) -> Arc<Roster> {
        Arc::clone(&self.roster.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at configuration and nodes again; whether jobs came, went or are defined otherwise.
    pub(super) fn choose(&self) -> bool {
        let old = self.roster();
        let next = old.chosen(&self.config.get(), &self.feed.nodes());
        if old.is(&next) {
            return false;
        }
        // What was rendered speaks of the definitions before.
        next.jobs.iter().for_each(|(_, slot)| *lock(&slot.frames) = None);
        *self.roster.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        true
    }

    /// Whether other nodes are alive than at the last look, or some define something else: every picture may say
    /// something else then.
    pub(super) fn others_tell(&self) -> bool {
        let nodes = self.feed.nodes();
        let now: Vec<_> = nodes
            .iter()
            .map(|node| (node.beat.node.clone(), node.is_alive(), Arc::clone(&node.told)))
            .collect();
        let mut before = lock(&self.told);
        let same = before.len() == now.len()
            && before.iter().zip(&now).all(
                |((node, alive, told), (now_node, now_alive, now_told))| {
                    node == now_node && alive == now_alive && told == now_told
                },
            );
        *before = now;
        !same
    }

    /// How a job is defined.
    pub(super) fn defined(&self, job: usize) -> Arc<JobConfig> {
        Arc::clone(&self.roster().jobs[job].0)
    }

    /// What is kept for a job.
    pub(super) fn slot(&self, job: usize) -> Arc<ShownJob> {
        Arc::clone(&self.roster().jobs[job].1)
    }

    /// All jobs, in the order of the page.
    #[must_use]
    pub fn jobs(&self) -> Vec<Arc<JobConfig>> {
        self.roster().shown().map(|(_, job)| Arc::clone(job)).collect()
    }

    /// The jobs that `caller` may see, in the order of the page.
    #[must_use]
    pub fn jobs_for(&self, caller: &Caller) -> Vec<Arc<JobConfig>> {
        self.jobs().into_iter().filter(|job| caller.sees(job)).collect()
    }

    /// What of jobs `caller` may not know of.
    #[must_use]
    pub fn hidden_from(&self, caller: Option<&Caller>) -> Hidden {
        let roster = self.roster();
        if !caller.map_or(roster.restricted, |caller| roster.may_hide_from(caller)) {
            return Hidden::default();
        }
        // What a token is not bound to is hidden by its name: of a rotation it may read although it is for none of its jobs.
        let only = caller.map(|caller| &caller.bound).filter(|bound| bound.names_any());
        let sees =
            |job: &JobConfig| caller.map_or(job.is_public(), |caller| caller.sees_by_role(job));
        // Also those that are gone: their history is not.
        let hidden = || roster.jobs.iter().map(|(job, _)| job).filter(|job| !sees(job));
        Hidden {
            only: only.cloned(),
            jobs: hidden().map(|job| job.name.clone()).collect(),
            rotations: hidden().filter_map(|job| job.rotation.clone()).collect(),
        }
    }

    /// The job of that name.
    #[must_use]
    pub fn job_named(&self, name: &str) -> Option<Arc<JobConfig>> {
        let roster = self.roster();
        roster.number(name).map(|nth| Arc::clone(&roster.jobs[nth].0))
    }
}
