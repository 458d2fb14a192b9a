//! What people do to nodes: drain, undrain, forget.

use std::collections::HashSet;

use super::{Act, Actor, OpsError, Result, noting, operates, reason, sees};
use soloist_config::{Alerting, JobConfig, elsewhere};
use soloist_domain::detail::Detail;
use soloist_domain::name::{JobName, NodeName};
use soloist_store::accounts::Role;
use soloist_store::jobs::Jobs as _;
use soloist_store::nodes::{Forgotten, NodeRecord, Nodes as _, listed, takers};
use soloist_store::{Store, StoreError};

/// What a job is called to those who may not see it.
const HIDDEN: &str = "another job";

/// Empties a node and keeps it empty, or allows it again.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn drain(
    store: &Store,
    actor: &Actor,
    node: &NodeName,
    on: bool,
    given: Option<&str>,
) -> Result<()> {
    actor.bound.check_unbound("nodes")?;
    match on {
        true => check_drain(store, actor, node).await?,
        false => actor.check_operator()?,
    }
    let reason = reason(given)?;
    let act = if on { Act::NodeDrain } else { Act::NodeUndrain };
    let store = noting(store, &actor.signature, act, node.as_str(), reason.as_deref());
    store.drain(node, on).await.map_err(|error| unknown(node, error))
}

/// May empty this node: a job of others, which this actor may not stop, must neither be sent away by it nor be left
/// without any node.
///
/// # Errors
/// [`OpsError::Forbidden`] names those jobs; [`OpsError::Store`].
pub async fn check_drain(store: &Store, actor: &Actor, node: &NodeName) -> Result<()> {
    actor.check_operator()?;
    // An account that may operate every job needs no look at them.
    let Some(role) = actor.role.filter(|role| *role != Role::Admin) else { return Ok(()) };
    let nodes = listed(store).await?;
    let mut foreign = elsewhere(&[], &Alerting::default(), nodes.iter().map(NodeRecord::telling));
    foreign.retain(|job| !job.is_external() && !operates(role, &actor.user, &actor.groups, job));
    let seen = |job: &JobConfig| sees(role, &actor.user, &actor.groups, job);
    let told: HashSet<JobName> =
        foreign.iter().filter(|job| seen(job)).map(|job| job.name.clone()).collect();
    let names: Vec<_> = foreign.into_iter().map(|job| job.name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let records = store.snapshot(&names).await?.jobs;
    let hit: Vec<_> = records
        .iter()
        .filter(|job| {
            let takers = takers(&job.name, &nodes);
            let holds = job.lease.as_ref().is_some_and(|lease| lease.node == *node);
            holds || (takers.contains(node) && takers.len() == 1)
        })
        .map(|job| if told.contains(&job.name) { job.name.as_str() } else { HIDDEN })
        .collect();
    if hit.is_empty() {
        return Ok(());
    }
    let (user, jobs) = (&actor.user, hit.join(", "));
    let shown = jobs.replace(HIDDEN, "…");
    Err(OpsError::Forbidden(
        Detail::new(format!(
            "{user} is not among the operators of {jobs}, which {node} holds or which no other node may run: ask one of them, or an admin, to empty it"
        ))
        .told("refused-drain", &[("user", user), ("jobs", &shown), ("node", node)]),
    ))
}

/// A failure of the store; what is not found is the node.
fn unknown(node: &NodeName, error: StoreError) -> OpsError {
    match error {
        StoreError::NotFound(what) => OpsError::NotFound(
            Detail::new(format!("{what} does not exist"))
                .told("refused-no-node", &[("node", node)]),
        ),
        error => error.into(),
    }
}

/// Takes a silent node off the list, with its drain mark.
///
/// # Errors
/// As [`drain`], [`OpsError::Field`], and [`OpsError::Conflict`] when it is alive.
pub async fn forget(
    store: &Store,
    actor: &Actor,
    node: &NodeName,
    given: Option<&str>,
) -> Result<()> {
    actor.check_operator()?;
    actor.bound.check_unbound("nodes")?;
    let reason = reason(given)?;
    let said = reason.as_deref();
    let store = noting(store, &actor.signature, Act::NodeForget, node.as_str(), said);
    match store.forget(node).await.map_err(|error| unknown(node, error))? {
        Forgotten::Done => Ok(()),
        Forgotten::Alive => Err(OpsError::Conflict(
            Detail::new(format!(
                "{node} is alive: only a silent node can be forgotten; end its process first, or empty it with soloist drain {node}"
            ))
            .told("refused-forget-alive", &[("node", node)]),
        )),
    }
}
