//! Which jobs there are: those of the configuration in force, then those that only other nodes define; by group.
//!
//! A job keeps its number for as long as this process lives, also while it is gone, so that seats may speak of numbers. It
//! decides only the order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Hub, ShownJob};
use crate::auth::Caller;
use soloist_config::{Alerting, Config, JobConfig, elsewhere, in_groups};
use soloist_domain::alert::Rule;
use soloist_domain::name::JobName;
use soloist_ops::Bound;
use soloist_store::journal::Within;
use soloist_store::nodes::NodeRecord;
use soloist_store::rotation::RotationView;
use soloist_view::NodeView;

/// What a caller may not know of: to them it does not exist.
pub struct Hidden<'a> {
    roster: Arc<Roster>,
    /// The names of jobs that were not for all, also of those that are in no configuration any more; `None`: they were not read yet.
    once: Option<Arc<BTreeSet<String>>>,
    /// `None`: anybody on this machine.
    caller: Option<&'a Caller>,
}

impl Hidden<'_> {
    /// Nothing is.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.is_told_all() && self.bound().is_none()
    }

    /// Nothing is, but for what a token is not bound to.
    fn is_told_all(&self) -> bool {
        self.caller.is_some_and(Caller::is_admin)
    }

    /// What a token is bound to is all that it may read of; `None`: no bound.
    fn bound(&self) -> Option<&Bound> {
        self.caller.map(|caller| &*caller.bound).filter(|bound| bound.names_any())
    }

    fn sees_by_role(&self, job: &JobConfig) -> bool {
        self.caller.map_or(job.is_public(), |caller| caller.sees_by_role(job))
    }

    /// A job that was known here ever, also one that is gone: what it left behind is not.
    fn known(&self, name: &str) -> Option<&JobConfig> {
        let nth = *self.roster.numbers.get(name)?;
        Some(&self.roster.jobs[nth].0)
    }

    /// What has the name of a job, and may be something else, as a lease may.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.has_type(name) || self.bound().is_some_and(|only| !only.reads_job(name))
    }

    /// A job. One that this node has never known was perhaps for some only: what is left of it is for admins.
    #[must_use]
    pub fn has_job(&self, name: &str) -> bool {
        let unknown = !self.is_told_all() && self.known(name).is_none();
        unknown || self.has(name)
    }

    /// A rotation by its name alone: one in which a job takes turns that is not for the caller.
    #[must_use]
    pub fn has_rotation(&self, name: &str) -> bool {
        let mut members = self.roster.members(name);
        members.any(|job| !self.sees_by_role(job))
            || self.bound().is_some_and(|only| !only.reads_rotation(name))
    }

    /// The same, and one whose types name such a job.
    #[must_use]
    pub fn has_ring(&self, view: &RotationView) -> bool {
        self.has_rotation(view.name.as_str())
            || view.rules.types.iter().any(|kind| self.has_type(kind.name.as_str()))
    }

    /// A type with the name of such a job. A token that is bound to a rotation reads of its types, although it is for none of the jobs.
    #[must_use]
    pub fn has_type(&self, kind: &str) -> bool {
        match self.known(kind) {
            Some(job) => !self.sees_by_role(job),
            None => !self.is_told_all() && self.was_hidden(kind),
        }
    }

    /// The name of a job that was not for all before this node started: nobody knows any more for whom it was, so it is for admins.
    fn was_hidden(&self, name: &str) -> bool {
        let hidden = self.once.as_ref().is_none_or(|names| names.contains(name));
        hidden && JobName::new(name).is_ok()
    }

    /// Whether something may be hidden from the caller by their role.
    #[must_use]
    pub fn may_be_by_role(&self) -> bool {
        let was = self.once.as_ref().is_none_or(|names| !names.is_empty());
        (self.roster.restricted || was) && !self.is_told_all()
    }

    /// An alert that is about such jobs alone.
    #[must_use]
    pub fn has_alert(&self, rule: &Rule) -> bool {
        let about = |job: &String| job == "*" || !self.has_job(job);
        !rule.jobs.is_empty() && !rule.jobs.iter().any(about)
    }

    /// What of the audit is for the caller: all of it for admins. What was done to a job, a rotation or an alert is for those who may see it; to
    /// one that is no more, for admins.
    #[must_use]
    pub fn audited(&self, alerting: &Alerting, rings: &[RotationView]) -> Vec<Within> {
        if self.is_told_all() {
            return Vec::new();
        }
        let jobs = self.roster.jobs.iter().map(|(job, _)| job).filter(|job| self.sees_by_role(job));
        let jobs: BTreeSet<String> = jobs.map(|job| job.name.to_string()).collect();
        let rings = rings.iter().filter(|view| !self.has_ring(view));
        let alerts = alerting.rules.iter().filter(|rule| !self.has_alert(rule));
        vec![
            ("job.", jobs.clone()),
            ("participation.", jobs),
            ("rotation.", rings.map(|view| view.name.to_string()).collect()),
            ("alert.", alerts.map(|rule| rule.name.clone()).collect()),
        ]
    }

    /// Takes them out of a list of nodes.
    #[must_use]
    pub fn strike(&self, mut nodes: Vec<NodeView>) -> Vec<NodeView> {
        if self.is_nothing() {
            return nodes;
        }
        for node in &mut nodes {
            node.holds.retain(|job| !self.has_job(job));
            node.jobs.retain(|job, _| !self.has_job(job));
            node.offers.retain(|job| !self.has_job(job));
        }
        nodes
    }
}

/// All jobs that were ever known here, and which of them there are now.
#[derive(Default)]
pub(super) struct Roster {
    jobs: Vec<(Arc<JobConfig>, Arc<ShownJob>)>,
    /// By name, also of those that are gone.
    numbers: HashMap<String, usize>,
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
        let others =
            elsewhere(&config.jobs, &config.alerting, nodes.iter().map(NodeRecord::telling));
        let mut all: Vec<&JobConfig> = config.jobs.iter().chain(&others).collect();
        in_groups(&mut all, |job| job);
        for job in all {
            let nth = match next.numbers.get(job.name.as_str()) {
                Some(&nth) => nth,
                None => {
                    next.numbers.insert(job.name.to_string(), next.jobs.len());
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

    /// The jobs that take their turns in this rotation, also those that are gone.
    fn members(&self, rotation: &str) -> impl Iterator<Item = &JobConfig> {
        let own =
            move |job: &&JobConfig| job.rotation.as_ref().is_some_and(|r| r.as_str() == rotation);
        self.jobs.iter().map(|(job, _)| &**job).filter(own)
    }

    /// The names of those that are not for all accounts, also of those that are gone.
    pub(super) fn restricted(&self) -> impl Iterator<Item = JobName> {
        let restricted = self.jobs.iter().filter(|(job, _)| !job.is_public());
        restricted.map(|(job, _)| job.name.clone())
    }

    /// The names of those that are gone.
    pub(super) fn gone(&self) -> impl Iterator<Item = &JobName> {
        self.jobs.iter().map(|(job, _)| &job.name).filter(|name| !self.index.contains_key(*name))
    }
}

impl Hub {
    /// The jobs as they are now.
    pub(super) fn roster(&self) -> Arc<Roster> {
        Arc::clone(&self.roster.read())
    }

    /// Looks at configuration and nodes again; whether jobs came, went or are defined otherwise.
    pub(super) fn choose(&self) -> bool {
        let old = self.roster();
        let next = old.chosen(&self.config.get(), &self.feed.nodes());
        if old.is(&next) {
            return false;
        }
        // What was rendered speaks of the definitions before.
        next.jobs.iter().for_each(|(_, slot)| *slot.frames.lock() = None);
        *self.roster.write() = Arc::new(next);
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
        let mut before = self.told.lock();
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

    /// What `caller` may not know of; nobody is all who are on this machine.
    #[must_use]
    pub fn hidden_from<'a>(&self, caller: Option<&'a Caller>) -> Hidden<'a> {
        Hidden { roster: self.roster(), once: self.past.names(), caller }
    }

    /// The job of that name.
    #[must_use]
    pub fn job_named(&self, name: &str) -> Option<Arc<JobConfig>> {
        let roster = self.roster();
        roster.number(name).map(|nth| Arc::clone(&roster.jobs[nth].0))
    }
}
