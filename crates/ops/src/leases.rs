//! Who may acquire a lease over HTTP, renew it and release it.
//!
//! Grants are no acts of people: a job's are runs in its history, so nothing is added to the audit.

use super::{Actor, OpsError, Result, operates};
use soloist_config::JobConfig;
use soloist_domain::name::JobName;
use soloist_store::accounts::Role;

/// May hold the lease `name`, which is that of `job` if there is one: collectors, and operators of that job.
///
/// # Errors
/// [`OpsError::Forbidden`]; [`OpsError::Conflict`] for a job whose command Soloist runs.
pub fn check(actor: &Actor, name: &JobName, job: Option<&JobConfig>) -> Result<()> {
    actor.check_collector()?;
    actor.bound.check_lease(name)?;
    let Some(job) = job else { return Ok(()) };
    if let Some(role @ (Role::Operator | Role::Viewer)) = actor.role
        && !operates(role, &actor.user, &actor.groups, job)
    {
        return Err(OpsError::forbidden(format!(
            "{} is not among the operators of {name} ({}): ask one of them, or an admin",
            actor.user,
            job.operators.join(", ")
        )));
    }
    if !job.is_external() {
        return Err(OpsError::conflict(format!(
            "{name} is a job with a command, and Soloist runs it: choose another name, or set runner = \"external\" in its [[job]] so that a program may hold it"
        )));
    }
    if job.is_elsewhere() {
        return Err(OpsError::conflict(format!(
            "{name} is a job, and this node's configuration does not define it: ask a node that does, or add its [[job]] here and reload"
        )));
    }
    Ok(())
}
