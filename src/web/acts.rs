//! What people may do, once: pages, API and live sockets all come through here.
//!
//! Checks the role and the job's operators, writes to the store, and adds to the audit. It answers nothing and
//! knows no HTTP; what follows from an act is everybody else's business.

pub mod dispatch;
pub mod rotation;
pub mod source;

use std::sync::Arc;

use super::Web;
use super::auth::Caller;
use super::error::WebError;
use crate::config::JobConfig;
use crate::domain::drill::Drill;
use crate::domain::handover::{NoMove, lasts, may_move};
use crate::domain::name::{NodeName, UserName};
use crate::picture::drill::{DrillView, target};
use crate::store::accounts::{Accounts, Role};
use crate::store::jobs::Jobs;
use crate::store::nodes::{Forgotten, Nodes};

/// Longest reason that is kept, in characters.
pub const REASON_MAX: usize = 500;

fn check_job(web: &Web, caller: &Caller, job: &str) -> Result<Arc<JobConfig>, WebError> {
    let job = web.job(job)?;
    if caller.may_switch(&job) {
        return Ok(job);
    }
    let who = if caller.is_operator() {
        format!("{} is not among the operators of {}", caller.user, job.name)
    } else {
        format!("{} is {} and may only look", caller.user, caller.role.with_article())
    };
    Err(WebError::forbidden(format!("{who}: ask an admin")))
}

/// Trims a reason; an empty one is none.
///
/// # Errors
/// [`WebError::BadRequest`] when it is too long.
pub fn check_reason(reason: Option<&str>) -> Result<Option<String>, WebError> {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    if reason.is_some_and(|reason| reason.chars().count() > REASON_MAX) {
        return Err(WebError::bad(format!(
            "field reason is too long: use at most {REASON_MAX} characters"
        )));
    }
    // One line, nothing invisible: it is shown to others and written to logs.
    Ok(reason.map(|reason| reason.replace(|c: char| c.is_control(), " ")))
}

/// Switches a participation: the caller's, or for an admin that of `user`.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::BadRequest`], [`WebError::Unavailable`].
pub async fn participate(
    web: &Web,
    caller: &Caller,
    job: &str,
    user: Option<&str>,
    on: bool,
    reason: Option<&str>,
) -> Result<(), WebError> {
    let job = check_job(web, caller, job)?;
    let reason = check_reason(reason)?;
    let user = match user {
        Some(name) if name != caller.user.as_str() => named_user(web, caller, name).await?,
        _ => caller.user.clone(),
    };
    web.store.participate(&job.name, &user, on, reason.as_deref()).await?;
    let act = if on { "participation.on" } else { "participation.off" };
    let said = if user == caller.user {
        reason
    } else {
        Some(match reason {
            Some(reason) => format!("for {user}: {reason}"),
            None => format!("for {user}"),
        })
    };
    web.audit(caller, act, job.name.as_str(), said.as_deref()).await
}

async fn named_user(web: &Web, caller: &Caller, name: &str) -> Result<UserName, WebError> {
    if !caller.is_admin() {
        return Err(WebError::forbidden(format!(
            "only an admin may switch for another user: leave out user, or ask {name}"
        )));
    }
    let name = UserName::new(name)?;
    match web.store.user(&name).await? {
        Some(user) if user.role != Role::Collector => Ok(name),
        Some(_) => {
            Err(WebError::bad(format!("field user: {name} is a collector and takes no part")))
        }
        None => Err(WebError::bad(format!("field user: there is no account {name}"))),
    }
}

/// Forbids a job, saying why.
///
/// # Errors
/// As [`participate`].
pub async fn hold(web: &Web, caller: &Caller, job: &str, reason: &str) -> Result<(), WebError> {
    let job = check_job(web, caller, job)?;
    let reason = check_reason(Some(reason))?.ok_or_else(|| {
        WebError::bad("field reason is empty: say why the job is held, others will read it")
    })?;
    web.store.hold(&job.name, &caller.user, &reason).await?;
    web.audit(caller, "job.hold", job.name.as_str(), Some(&reason)).await
}

/// Allows a job again.
///
/// # Errors
/// As [`participate`].
pub async fn resume(web: &Web, caller: &Caller, job: &str) -> Result<(), WebError> {
    let job = check_job(web, caller, job)?;
    web.store.resume(&job.name).await?;
    web.audit(caller, "job.resume", job.name.as_str(), None).await
}

/// Asks for a hand-over, to `to` or to any other node.
///
/// # Errors
/// As [`participate`], and [`WebError::Conflict`] when the job cannot be moved there.
pub async fn move_job(
    web: &Web,
    caller: &Caller,
    job: &str,
    to: Option<&str>,
) -> Result<(), WebError> {
    let job = check_job(web, caller, job)?;
    let to = to.map(NodeName::new).transpose()?;
    let records = web.store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
    let record = records.first().ok_or_else(|| WebError::Internal {
        detail: format!("the store did not answer for {}", job.name),
    })?;
    let nodes = web.store.nodes().await?;
    let takers: Vec<_> = nodes.iter().map(|node| node.taker(&job.name)).collect();
    may_move(record, to.as_ref(), &takers).map_err(|refused| match refused {
        NoMove::NoSuchNode { .. } => WebError::bad(format!("field to: {refused}")),
        _ => WebError::Conflict { detail: refused.to_string() },
    })?;
    let lasts = lasts(job.stop_grace);
    web.store.request_move(&job.name, to.as_ref(), &caller.user, lasts).await?;
    let said = to.map(|to| format!("to {to}"));
    web.audit(caller, "job.move", job.name.as_str(), said.as_deref()).await
}

/// Has the node process that holds a job crash; `force` also when nobody could take over.
///
/// # Errors
/// As [`participate`], and [`WebError::Conflict`] when there is nobody to crash or nobody to take over.
pub async fn drill(
    web: &Web,
    caller: &Caller,
    job: &str,
    force: bool,
) -> Result<DrillView, WebError> {
    let job = web.job(job)?;
    if !caller.is_admin() {
        return Err(WebError::forbidden(format!(
            "{} is {} and may not crash nodes: ask an admin",
            caller.user,
            caller.role.with_article()
        )));
    }
    let conflict = |detail| WebError::Conflict { detail };
    let records = web.store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
    let record = records.first().ok_or_else(|| WebError::Internal {
        detail: format!("the store did not answer for {}", job.name),
    })?;
    let nodes = web.store.nodes().await?;
    let lease =
        target(record, &nodes, force, "force").map_err(|refusal| conflict(refusal.to_string()))?;
    let by = &caller.user;
    let Some(at) = web.store.request_drill(&job.name, lease.token, by).await? else {
        let (job, node) = (&job.name, &lease.node);
        return Err(conflict(format!(
            "{job} has just left {node}, so nobody was crashed: try again"
        )));
    };
    let said = format!("{} under token {}", lease.node, lease.token);
    web.audit(caller, "job.drill", job.name.as_str(), Some(&said)).await?;
    let drill = Drill { token: lease.token, by: by.clone(), at, to: None, started: None };
    Ok(DrillView::of(&job.name, &drill))
}

/// Empties a node and keeps it empty, or allows it again.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn drain(web: &Web, caller: &Caller, node: &str, on: bool) -> Result<(), WebError> {
    let name = operated_node(caller, node)?;
    web.store.drain(&name, on).await?;
    let act = if on { "node.drain" } else { "node.undrain" };
    web.audit(caller, act, name.as_str(), None).await
}

/// Takes a silent node off the list, with its drain mark.
///
/// # Errors
/// As [`drain`], and [`WebError::Conflict`] when it is alive.
pub async fn forget_node(
    web: &Web,
    caller: &Caller,
    node: &str,
    reason: Option<&str>,
) -> Result<(), WebError> {
    let name = operated_node(caller, node)?;
    let reason = check_reason(reason)?;
    match web.store.forget(&name).await? {
        Forgotten::Done => {}
        Forgotten::Alive => {
            return Err(WebError::Conflict {
                detail: format!(
                    "{name} is alive: only a silent node can be forgotten; end its process first, or drain it"
                ),
            });
        }
    }
    web.audit(caller, "node.forget", name.as_str(), reason.as_deref()).await
}

fn operated_node(caller: &Caller, node: &str) -> Result<NodeName, WebError> {
    if !caller.is_operator() {
        return Err(WebError::forbidden(format!(
            "{} is {} and may only look: ask an operator",
            caller.user,
            caller.role.with_article()
        )));
    }
    NodeName::new(node).map_err(|_| WebError::not_found(format!("there is no node {node:?}")))
}
