//! From a name in an address to an operation of [`crate::ops`]: pages, API and live sockets all come through here.
//!
//! Finds the job, node or source and tells the desks of this node what has changed. It answers nothing and knows no HTTP.

pub mod rotation;
pub mod source;

use super::Web;
use super::auth::Caller;
use super::error::WebError;
use crate::domain::drill::Drill;
use crate::domain::name::NodeName;
use crate::ops::{jobs, nodes};
use crate::picture::drill::DrillView;

/// As [`jobs::participate`].
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
    let job = web.job(job)?;
    jobs::participate(&web.store, &caller.actor(), &job, user, on, reason).await?;
    Ok(())
}

/// As [`jobs::hold`].
///
/// # Errors
/// As [`participate`].
pub async fn hold(web: &Web, caller: &Caller, job: &str, reason: &str) -> Result<(), WebError> {
    let job = web.job(job)?;
    jobs::hold(&web.store, &caller.actor(), &job, reason).await?;
    Ok(())
}

/// As [`jobs::resume`].
///
/// # Errors
/// As [`participate`].
pub async fn resume(web: &Web, caller: &Caller, job: &str) -> Result<(), WebError> {
    let job = web.job(job)?;
    Ok(jobs::resume(&web.store, &caller.actor(), &job).await?)
}

/// As [`jobs::hand_over`].
///
/// # Errors
/// As [`participate`], and [`WebError::Conflict`] when the job cannot be moved there.
pub async fn move_job(
    web: &Web,
    caller: &Caller,
    job: &str,
    to: Option<&str>,
) -> Result<(), WebError> {
    let job = web.job(job)?;
    let to = to.map(NodeName::new).transpose()?;
    jobs::hand_over(&web.store, &caller.actor(), &job, to.as_ref()).await?;
    Ok(())
}

/// As [`jobs::drill`].
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
    let actor = caller.actor();
    let ordered = jobs::drill(&web.store, &actor, &job, (force, "force"), |_| {}).await?;
    let (token, at) = (ordered.lease.token, ordered.at);
    let drill = Drill { token, by: actor.user, at, to: None, started: None };
    Ok(DrillView::of(&job.name, &drill))
}

/// As [`nodes::drain`].
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn drain(web: &Web, caller: &Caller, node: &str, on: bool) -> Result<(), WebError> {
    Ok(nodes::drain(&web.store, &caller.actor(), &named_node(node)?, on).await?)
}

/// As [`nodes::forget`].
///
/// # Errors
/// As [`drain`], and [`WebError::Conflict`] when it is alive.
pub async fn forget_node(
    web: &Web,
    caller: &Caller,
    node: &str,
    reason: Option<&str>,
) -> Result<(), WebError> {
    Ok(nodes::forget(&web.store, &caller.actor(), &named_node(node)?, reason).await?)
}

fn named_node(node: &str) -> Result<NodeName, WebError> {
    NodeName::new(node).map_err(|_| WebError::not_found(format!("there is no node {node:?}")))
}
