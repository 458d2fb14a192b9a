//! `GET /api/v1/nodes`, emptying a node, and forgetting one.

use actix_web::{HttpRequest, web};
use serde::Deserialize;

use super::{Answer, answer, query};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use soloist_ops::nodes;
use soloist_store::nodes::listed;
use soloist_view::NodeView;
use soloist_view::lists::Nodes;

async fn stored(web: &Web, caller: &Caller) -> Answer<Nodes> {
    let nodes = web.feed.forgiving(listed(&web.store).await?);
    let nodes = NodeView::list(&nodes, &web.feed.held(), web.feed.store_now());
    answer(Nodes { nodes: web.live.hidden_from(Some(caller)).strike(nodes) })
}

/// All nodes, with the age of their newest report, their version and what they hold.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes", operation_id = "list_nodes",
    responses((status = 200, description = "The nodes.", body = Nodes)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<Nodes> {
    stored(&web, &caller).await
}

/// Empties a node and keeps it empty.
#[utoipa::path(put, path = "/api/v1/nodes/{node}/drain", tag = "nodes", operation_id = "drain_node",
    params(("node" = String, Path, description = "Its name."), Why),
    responses((status = 200, description = "The nodes.", body = Nodes)))]
pub async fn drain(
    web: web::Data<Web>,
    caller: Caller,
    node: web::Path<String>,
    request: HttpRequest,
) -> Answer<Nodes> {
    let Why { reason } = query(&request)?;
    let (node, reason) = (acts::node(&node)?, reason.as_deref());
    nodes::drain(&web.store, &caller.actor(), &node, true, reason).await?;
    stored(&web, &caller).await
}

/// Allows a node to take jobs again.
#[utoipa::path(delete, path = "/api/v1/nodes/{node}/drain", tag = "nodes", operation_id = "undrain_node",
    params(("node" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The nodes.", body = Nodes)))]
pub async fn undrain(
    web: web::Data<Web>,
    caller: Caller,
    node: web::Path<String>,
) -> Answer<Nodes> {
    nodes::drain(&web.store, &caller.actor(), &acts::node(&node)?, false, None).await?;
    stored(&web, &caller).await
}

/// Why.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// Kept in the audit; up to 500 characters.
    pub reason: Option<String>,
}

/// Forgets a node that is silent, with its drain mark. By itself that happens after 24 hours; one that comes back is a new
/// node.
#[utoipa::path(delete, path = "/api/v1/nodes/{node}", tag = "nodes", operation_id = "forget_node",
    params(("node" = String, Path, description = "Its name."), Why),
    responses((status = 200, description = "The nodes that are left.", body = Nodes)))]
pub async fn forget(
    web: web::Data<Web>,
    caller: Caller,
    node: web::Path<String>,
    request: HttpRequest,
) -> Answer<Nodes> {
    let Why { reason } = query(&request)?;
    let node = acts::node(&node)?;
    nodes::forget(&web.store, &caller.actor(), &node, reason.as_deref()).await?;
    stored(&web, &caller).await
}
