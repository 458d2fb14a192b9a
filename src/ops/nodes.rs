//! What people do to nodes: drain, undrain, forget.

use super::{Act, Actor, OpsError, Result, noting, reason};
use crate::domain::name::NodeName;
use crate::store::Store;
use crate::store::nodes::{Forgotten, Nodes as _};

/// Empties a node and keeps it empty, or allows it again.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn drain(store: &Store, actor: &Actor, node: &NodeName, on: bool) -> Result<()> {
    actor.check_operator()?;
    actor.bound.check_unbound("nodes")?;
    let act = if on { Act::NodeDrain } else { Act::NodeUndrain };
    Ok(noting(store, &actor.signature, act, node.as_str(), None).drain(node, on).await?)
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
    match store.forget(node).await? {
        Forgotten::Done => Ok(()),
        Forgotten::Alive => Err(OpsError::Conflict(format!(
            "{node} is alive: only a silent node can be forgotten; end its process first, or empty it with soloist drain {node}"
        ))),
    }
}
