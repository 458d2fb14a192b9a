//! Nodes: the list, emptying one, forgetting one.

use serde_json::Value;

use super::Office;
use soloist_domain::name::NodeName;
use soloist_ops::nodes;
use soloist_remote::{Call, address, part};
use soloist_view::NodeView;
use soloist_view::lists::Nodes;

use super::super::Failure;

fn at(node: &NodeName, what: &str) -> String {
    format!("/api/v1/nodes/{}{what}", part(node.as_str()))
}

impl Office {
    /// All nodes.
    pub(crate) async fn nodes(&self) -> Result<Vec<NodeView>, Failure> {
        match self {
            Self::Store(context) => {
                let nodes = context.nodes().await?;
                let seen = context.see(&context.jobs()).await?;
                let held = seen.iter().filter_map(|seen| {
                    Some((seen.record.name.clone(), seen.record.lease.as_ref()?.node.clone()))
                });
                let held: Vec<_> = held.collect();
                Ok(NodeView::list(&nodes, &held, seen.first().map(|seen| seen.at)))
            }
            Self::Server(server) => {
                let Nodes { nodes } = server.get("/api/v1/nodes").await?;
                Ok(nodes)
            }
        }
    }

    /// Empties a node and keeps it empty, or allows it again.
    pub(crate) async fn drain(
        &self,
        node: &NodeName,
        user: Option<&str>,
        on: bool,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                Ok(nodes::drain(&context.store, &actor, node, on, reason).await?)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let query = [("reason", reason.map(str::to_owned))];
                let path = address(&at(node, "/drain"), &query);
                let call = if on { Call::put(path) } else { Call::delete(path).repeatable() };
                Ok(server.client.tell(call).await?)
            }
        }
    }

    /// Takes a silent node off the list.
    pub(crate) async fn forget(
        &self,
        node: &NodeName,
        user: Option<&str>,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store(context) => {
                let actor = context.operator(user).await?;
                Ok(nodes::forget(&context.store, &actor, node, reason).await?)
            }
            Self::Server(server) => {
                server.is_own(user).await?;
                let query = [("reason", reason.map(str::to_owned))];
                let _: Value =
                    server.client.ask(Call::delete(address(&at(node, ""), &query))).await?;
                Ok(())
            }
        }
    }
}
