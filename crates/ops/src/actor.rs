//! Who acts, and what they may do by their role, as operators of a job, and by the bounds of their token.

use std::sync::Arc;

use super::{Bound, OpsError, Result};
use soloist_config::JobConfig;
use soloist_domain::detail::Detail;
use soloist_domain::name::UserName;
use soloist_store::accounts::Role;
use soloist_store::journal::Kind;

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
    /// The groups that the account is a member of.
    pub groups: Arc<[String]>,
    /// For the audit.
    pub signature: Signature,
    /// What the token is bound to.
    pub bound: Arc<Bound>,
    /// It acts by an API token, and no person by a session or at a terminal.
    pub by_token: bool,
}

/// Whether an account switches, holds and moves this job: admins operate all jobs, operators those that list them.
#[must_use]
pub fn operates(role: Role, user: &UserName, groups: &[String], job: &JobConfig) -> bool {
    let named = job.operated_by(user, groups) && job.viewed_by(user, groups);
    role == Role::Admin || (role == Role::Operator && named)
}

/// Whether an account may know of this job: admins of all, others of those whose `viewers` or `operators` name them.
#[must_use]
pub fn sees(role: Role, user: &UserName, groups: &[String], job: &JobConfig) -> bool {
    role == Role::Admin || job.viewed_by(user, groups)
}

impl Actor {
    /// May operate nodes, sources, rotations, and put tasks.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`].
    pub fn check_operator(&self) -> Result<()> {
        self.check_role(&[Role::Operator, Role::Admin])
    }

    /// May put tasks: operators, and collectors whose token says so. Into which sources is for [`Bound`] to say.
    pub(super) fn check_put(&self) -> Result<()> {
        if self.role == Some(Role::Collector) && self.bound.put && !self.bound.sources.is_empty() {
            return Ok(());
        }
        self.check_operator()
    }

    /// May do what collectors do.
    pub(super) fn check_collector(&self) -> Result<()> {
        self.check_role(&[Role::Collector, Role::Operator, Role::Admin])
    }

    fn check_role(&self, roles: &[Role]) -> Result<()> {
        match self.role {
            Some(role) if !roles.contains(&role) => Err(OpsError::Forbidden(
                Detail::new(format!(
                    "{} is {} and may not do this: an admin can change it with soloist user role {} operator",
                    self.user,
                    role.with_article(),
                    self.user
                ))
                .told("refused-only-looks", &[("user", &self.user)]),
            )),
            _ => Ok(()),
        }
    }

    /// May operate this job.
    pub(super) fn check_job(&self, job: &JobConfig) -> Result<()> {
        self.check_operator()?;
        self.bound.check_job(&job.name)?;
        self.check_operates(job)
    }

    /// May know of this job.
    pub(super) fn sees(&self, job: &JobConfig) -> bool {
        self.role.is_none_or(|role| sees(role, &self.user, &self.groups, job))
    }

    /// Is among the operators of this job, whatever the token is bound to.
    pub(super) fn check_operates(&self, job: &JobConfig) -> Result<()> {
        match self.role {
            Some(role) if !operates(role, &self.user, &self.groups, job) => {
                let (user, job, operators) = (&self.user, &job.name, job.operators.join(", "));
                Err(OpsError::Forbidden(
                    Detail::new(format!(
                        "{user} is not among the operators of {job} ({operators}): ask one of them, or an admin"
                    ))
                    .told(
                        "refused-not-operator",
                        &[("user", user), ("job", job), ("operators", &operators)],
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// May administer accounts: as an admin, and by no token that is bound to something.
    pub(super) fn check_accounts(&self) -> Result<()> {
        self.check_admin()?;
        if self.by_token && *self.bound != Bound::default() {
            return Err(OpsError::forbidden(
                "this token is bound: accounts, tokens and sessions are for a person who signed in, or for an admin's token without bounds",
            ));
        }
        Ok(())
    }

    /// Whether it may act on all accounts.
    #[must_use]
    pub fn administers(&self) -> bool {
        self.check_accounts().is_ok()
    }

    /// May make and end credentials of `owner`: a person their own, and an administrator of accounts those of all. A token
    /// makes nothing that could do more, or live longer, than itself.
    pub(super) fn check_credentials(&self, owner: &UserName) -> Result<()> {
        if self.by_token || *owner != self.user {
            return self.check_accounts();
        }
        Ok(())
    }

    /// May do everything.
    pub(super) fn check_admin(&self) -> Result<()> {
        match self.role {
            Some(role) if role != Role::Admin => Err(OpsError::Forbidden(
                Detail::new(format!(
                    "{} is {} and may not do this: ask an admin",
                    self.user,
                    role.with_article()
                ))
                .told("refused-only-admins", &[("user", &self.user)]),
            )),
            _ => Ok(()),
        }
    }
}
