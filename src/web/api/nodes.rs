//! `GET /api/v1/nodes`, and emptying a node.

use actix_web::web;
use serde::Serialize;

use super::{Answer, answer};
use crate::picture::NodeView;
use crate::store::nodes::Nodes as _;
use crate::web::Web;
use crate::web::acts;
use crate::web::auth::Caller;
use crate::web::error::Problem;

/// Nodes, by name.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Nodes {
    /// The nodes.
    pub nodes: Vec<NodeView>,
}

async fn stored(web: &Web) -> Answer<Nodes> {
    let nodes = web.store.nodes().await?;
    answer(Nodes { nodes: nodes.into_iter().map(NodeView::from).collect() })
}

/// All nodes, with the age of their newest report, their version and what they hold.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes",
    responses(
        (status = 200, description = "The nodes.", body = Nodes),
        (status = 401, description = "No login.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "Not allowed.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store is out of reach.", body = Problem, content_type = "application/problem+json")))]
pub async fn list(web: web::Data<Web>) -> Answer<Nodes> {
    stored(&web).await
}

/// Empties a node and keeps it empty.
#[utoipa::path(put, path = "/api/v1/nodes/{node}/drain", tag = "nodes",
    params(("node" = String, Path, description = "Its name.")),
    responses(
        (status = 200, description = "The nodes.", body = Nodes),
        (status = 401, description = "No login.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "Not allowed.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "No such node.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store is out of reach.", body = Problem, content_type = "application/problem+json")))]
pub async fn drain(web: web::Data<Web>, caller: Caller, node: web::Path<String>) -> Answer<Nodes> {
    acts::drain(&web, &caller, &node, true).await?;
    stored(&web).await
}

/// Allows a node to take jobs again.
#[utoipa::path(delete, path = "/api/v1/nodes/{node}/drain", tag = "nodes",
    params(("node" = String, Path, description = "Its name.")),
    responses(
        (status = 200, description = "The nodes.", body = Nodes),
        (status = 401, description = "No login.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "Not allowed.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "No such node.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store is out of reach.", body = Problem, content_type = "application/problem+json")))]
pub async fn undrain(
    web: web::Data<Web>,
    caller: Caller,
    node: web::Path<String>,
) -> Answer<Nodes> {
    acts::drain(&web, &caller, &node, false).await?;
    stored(&web).await
}
