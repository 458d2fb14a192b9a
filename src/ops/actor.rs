//! Who acts, and what they may do by their role, as operators of a job, and by the bounds of their token.

use std::sync::Arc;

use super::{OpsError, Result};
use crate::config::JobConfig;
use crate::domain::name::{CollectorName, SourceName, UserName, WorkerName};
use crate::store::accounts::Role;
use crate::store::journal::Kind;

/// Who acts, as the audit names them, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Account name, or what stands for it (`link`, `cli:root`).
    pub who: String,
    /// Address or terminal.
    pub from: String,
    /// Whether a person acts or a program.
    pub kind: Kind,
}

/// A person or program that acts under the name of an account.
#[derive(Debug, Clone)]
pub struct Actor {
    /// Whose name the store keeps.
    pub user: UserName,
    /// What the account may do. `None`: there is no account. That is so only at a terminal that reaches the store, where
    /// one could be made as well.
    pub role: Option<Role>,
    /// For the audit.
    pub signature: Signature,
    /// What the token is bound to.
    pub bound: Arc<Bound>,
}

/// Whether an account switches, holds and moves this job: admins operate all jobs, operators those that list them.
#[must_use]
pub fn operates(role: Role, user: &UserName, job: &JobConfig) -> bool {
    role == Role::Admin || (role == Role::Operator && job.operated_by(user))
}

impl Actor {
    /// May operate nodes, sources, rotations, and put tasks.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`].
    pub fn check_operator(&self) -> Result<()> {
        self.check_role(&[Role::Operator, Role::Admin])
    }

    /// May do what collectors do.
    pub(super) fn check_collector(&self) -> Result<()> {
        self.check_role(&[Role::Collector, Role::Operator, Role::Admin])
    }

    fn check_role(&self, roles: &[Role]) -> Result<()> {
        match self.role {
            Some(role) if !roles.contains(&role) => Err(OpsError::Forbidden(format!(
                "{} is {} and may not do this: an admin can change it with soloist user role {} operator",
                self.user,
                role.with_article(),
                self.user
            ))),
            _ => Ok(()),
        }
    }

    /// May operate this job.
    pub(super) fn check_job(&self, job: &JobConfig) -> Result<()> {
        self.check_operator()?;
        match self.role {
            Some(role) if !operates(role, &self.user, job) => Err(OpsError::Forbidden(format!(
                "{} is not among the operators of {} ({}): ask one of them, or an admin",
                self.user,
                job.name,
                job.operators.join(", ")
            ))),
            _ => Ok(()),
        }
    }

    /// May do everything.
    pub(super) fn check_admin(&self) -> Result<()> {
        match self.role {
            Some(role) if role != Role::Admin => Err(OpsError::Forbidden(format!(
                "{} is {} and may not do this: ask an admin",
                self.user,
                role.with_article()
            ))),
            _ => Ok(()),
        }
    }
}

/// What a token may not go beyond in dispatch and rotations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// Only for this collector, or as this worker; `None`: for any.
    pub collector: Option<CollectorName>,
    /// Only these sources, and no rotations; empty: all.
    pub sources: Vec<SourceName>,
}

impl Bound {
    /// May act for this collector.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`].
    pub fn check_collector(&self, name: &CollectorName) -> Result<()> {
        match &self.collector {
            Some(own) if own != name => Err(OpsError::Forbidden(format!(
                "this token is for the collector {own} only, not for {name}: use that name, or another token"
            ))),
            _ => Ok(()),
        }
    }

    /// May act on this source.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`].
    pub fn check_source(&self, name: &SourceName) -> Result<()> {
        if self.sources.is_empty() || self.sources.contains(name) {
            return Ok(());
        }
        let own: Vec<&str> = self.sources.iter().map(SourceName::as_str).collect();
        let own = own.join(", ");
        Err(OpsError::Forbidden(format!(
            "this token is for the sources {own} only, not for {name}: name one of those, or use another token"
        )))
    }

    /// May have to do with rotations; answers as which worker only.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`].
    pub fn check_turns(&self) -> Result<Option<WorkerName>> {
        if !self.sources.is_empty() {
            let own: Vec<&str> = self.sources.iter().map(SourceName::as_str).collect();
            let own = own.join(", ");
            return Err(OpsError::Forbidden(format!(
                "this token is for the sources {own} only, not for rotations: use another token"
            )));
        }
        // Both are labels: what is one is the other.
        Ok(self.collector.as_ref().and_then(|own| WorkerName::new(own.as_str()).ok()))
    }

    /// May take turns as this worker.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`].
    pub fn check_worker(&self, name: &WorkerName) -> Result<()> {
        match self.check_turns()? {
            Some(own) if own != *name => Err(OpsError::Forbidden(format!(
                "this token is for the worker {own} only, not for {name}: use that name, or another token"
            ))),
            _ => Ok(()),
        }
    }
}
