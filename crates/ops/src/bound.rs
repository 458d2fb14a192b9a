//! The scope of an API token: the jobs, leases, sources and rotations it may touch.
//!
//! A bound token may act only on names that it is bound to, of each kind: one for a source is for no job. It reads nothing else of jobs,
//! leases, sources, tasks and rotations: lists leave others out, and another name is refused whether it exists or not. A collector binds
//! differently: it says as whom a token acts in dispatch and rotations, and that it acts nowhere else; the role alone decides what it
//! reads. Roles are not decided here.

use std::fmt::Display;

use super::{OpsError, Result};
use soloist_domain::name::{CollectorName, JobName, RotationName, SourceName, WorkerName};
use soloist_store::credentials::ApiToken;

/// The bounds of a token; the default has none.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// Only for this collector, or as this worker; `None`: for any.
    pub collector: Option<CollectorName>,
    /// These sources.
    pub sources: Vec<SourceName>,
    /// These rotations.
    pub rotations: Vec<RotationName>,
    /// These leases.
    pub leases: Vec<JobName>,
    /// These jobs.
    pub jobs: Vec<JobName>,
    /// Whether a collector may put tasks with it, for those sources.
    pub put: bool,
}

impl From<ApiToken> for Bound {
    fn from(token: ApiToken) -> Self {
        let ApiToken { collector, sources, rotations, leases, jobs, put, .. } = token;
        Self { collector, sources, rotations, leases, jobs, put }
    }
}

impl Bound {
    /// Whether it names anything.
    #[must_use]
    pub fn names_any(&self) -> bool {
        let Self { collector: _, sources, rotations, leases, jobs, put: _ } = self;
        !(sources.is_empty() && rotations.is_empty() && leases.is_empty() && jobs.is_empty())
    }

    /// May read of this job or lease: what a lease is for may be a job.
    #[must_use]
    pub fn reads_job(&self, name: &str) -> bool {
        let own = |names: &[JobName]| names.iter().any(|own| own.as_str() == name);
        !self.names_any() || own(&self.jobs) || own(&self.leases)
    }

    /// May read of this source and its tasks.
    #[must_use]
    pub fn reads_source(&self, name: &str) -> bool {
        !self.names_any() || self.sources.iter().any(|own| own.as_str() == name)
    }

    /// May read of this rotation.
    #[must_use]
    pub fn reads_rotation(&self, name: &str) -> bool {
        !self.names_any() || self.rotations.iter().any(|own| own.as_str() == name)
    }

    /// May read of this job.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_reads_job(&self, name: &JobName) -> Result<()> {
        match self.reads_job(name.as_str()) {
            true => Ok(()),
            false => Err(self.refused(format_args!("the job {name}"))),
        }
    }

    /// May read what speaks of everything; `what` names it.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_reads_all(&self, what: &str) -> Result<()> {
        if self.names_any() { Err(self.refused(what)) } else { Ok(()) }
    }

    /// What it is for, in words: `the sources a, b and the job c`.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { collector, sources, rotations, leases, jobs, put: _ } = self;
        let collector = collector.as_slice();
        [
            named("collector", collector),
            named("source", sources),
            named("rotation", rotations),
            named("lease", leases),
            named("job", jobs),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" and ")
    }

    fn refused(&self, what: impl Display) -> OpsError {
        OpsError::forbidden(format!(
            "this token is for {} only, not for {what}: name what it is for, or use another token",
            self.words()
        ))
    }

    fn check<T: PartialEq + Display>(&self, own: &[T], kind: &str, name: &T) -> Result<()> {
        if !self.names_any() || own.contains(name) {
            return Ok(());
        }
        Err(self.refused(format_args!("the {kind} {name}")))
    }

    /// May act for this collector.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`] (as of every check).
    pub fn check_collector(&self, name: &CollectorName) -> Result<()> {
        match &self.collector {
            Some(own) if own != name => Err(self.refused(format_args!("the collector {name}"))),
            _ => Ok(()),
        }
    }

    /// May act on this source.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_source(&self, name: &SourceName) -> Result<()> {
        self.check(&self.sources, "source", name)
    }

    /// The sources that a claim is for which names none; empty: all.
    ///
    /// # Errors
    /// As [`Self::check_collector`], when it is for other things than sources.
    pub fn all_sources(&self) -> Result<Vec<SourceName>> {
        if self.names_any() && self.sources.is_empty() {
            return Err(self.refused("sources"));
        }
        Ok(self.sources.clone())
    }

    /// May define this rotation and act on its turns; answers as which worker only.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_rotation(&self, name: &RotationName) -> Result<Option<WorkerName>> {
        self.check(&self.rotations, "rotation", name)?;
        // Both are labels: what is one is the other.
        Ok(self.collector.as_ref().and_then(|own| WorkerName::new(own.as_str()).ok()))
    }

    /// May take turns of this rotation as this worker.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_worker(&self, rotation: &RotationName, name: &WorkerName) -> Result<()> {
        match self.check_rotation(rotation)? {
            Some(own) if own != *name => Err(self.refused(format_args!("the worker {name}"))),
            _ => Ok(()),
        }
    }

    /// May switch, hold, move and drill this job.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_job(&self, name: &JobName) -> Result<()> {
        self.check_dispatch_only("jobs")?;
        self.check(&self.jobs, "job", name)
    }

    /// May take, renew and release this lease, which may be that of a job.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_lease(&self, name: &JobName) -> Result<()> {
        self.check_dispatch_only("leases")?;
        if self.jobs.contains(name) {
            return Ok(());
        }
        self.check(&self.leases, "lease", name)
    }

    /// May act on what no token can be bound to: nodes, accounts, tokens. `what` names it.
    ///
    /// # Errors
    /// As [`Self::check_collector`].
    pub fn check_unbound(&self, what: &str) -> Result<()> {
        self.check_dispatch_only(what)?;
        if self.names_any() { Err(self.refused(what)) } else { Ok(()) }
    }

    fn check_dispatch_only(&self, what: &str) -> Result<()> {
        if self.collector.is_some() && !self.names_any() {
            return Err(self.refused(what));
        }
        Ok(())
    }
}

fn named<T: Display>(kind: &str, names: &[T]) -> Option<String> {
    let all: Vec<String> = names.iter().map(ToString::to_string).collect();
    match all.as_slice() {
        [] => None,
        [one] => Some(format!("the {kind} {one}")),
        _ => Some(format!("the {kind}s {}", all.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name<T: std::str::FromStr>(text: &str) -> T {
        text.parse().ok().expect("a good name")
    }

    #[test]
    fn a_token_without_bounds_may_do_everything() {
        let bound = Bound::default();
        bound.check_source(&name("shop")).unwrap();
        bound.check_job(&name("outbound")).unwrap();
        bound.check_lease(&name("shop")).unwrap();
        bound.check_unbound("nodes").unwrap();
        assert_eq!(bound.check_rotation(&name("supplier")).unwrap(), None);
        assert!(bound.all_sources().unwrap().is_empty());
    }

    #[test]
    fn a_token_that_is_bound_to_a_name_of_one_kind_may_act_on_nothing_else() {
        let source = Bound { sources: vec![name("shop")], ..Bound::default() };
        source.check_source(&name("shop")).unwrap();
        for refused in [
            source.check_source(&name("other")),
            source.check_job(&name("shop")),
            source.check_lease(&name("shop")),
            source.check_rotation(&name("shop")).map(drop),
            source.check_unbound("nodes"),
        ] {
            let said = refused.unwrap_err().to_string();
            assert!(said.starts_with("this token is for the source shop only, not for "), "{said}");
        }
        let job = Bound { jobs: vec![name("outbound"), name("labels")], ..Bound::default() };
        job.check_job(&name("labels")).unwrap();
        job.check_lease(&name("labels")).unwrap();
        assert!(job.check_source(&name("labels")).is_err());
        let said = job.all_sources().unwrap_err().to_string();
        assert!(said.contains("for the jobs outbound, labels only, not for sources"), "{said}");
    }

    #[test]
    fn a_token_of_a_collector_is_for_dispatch_and_turns_alone() {
        let bound = Bound { collector: Some(name("host-1")), ..Bound::default() };
        bound.check_source(&name("shop")).unwrap();
        bound.check_worker(&name("supplier"), &name("host-1")).unwrap();
        assert!(bound.check_worker(&name("supplier"), &name("host-2")).is_err());
        assert!(bound.check_collector(&name("host-2")).is_err());
        assert!(bound.check_job(&name("outbound")).is_err());
        assert!(bound.check_unbound("nodes").is_err());
    }
}
