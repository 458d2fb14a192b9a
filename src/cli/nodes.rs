//! Nodes: the list, emptying one, forgetting one.

use serde::Serialize;

use super::desk::reason;
use super::output::{print, print_json, table};
use super::{Desk, Failure, ForgetArgs, ListArgs, NodeArgs};
use crate::picture::NodeView;
use crate::store::nodes::{Forgotten, Nodes};

#[derive(Serialize)]
struct NodesAnswer {
    nodes: Vec<NodeView>,
}

/// `nodes`.
pub(super) async fn list(desk: &Desk, args: &ListArgs) -> Result<(), Failure> {
    let nodes = desk.nodes().await?;
    let seen = desk.see(&desk.jobs()).await?;
    let held: Vec<_> = seen
        .iter()
        .filter_map(|seen| {
            Some((seen.record.name.clone(), seen.record.lease.as_ref()?.node.clone()))
        })
        .collect();
    let nodes = NodeView::list(&nodes, &held, seen.first().map(|seen| seen.at));
    if args.json {
        return print_json(&NodesAnswer { nodes });
    }
    if nodes.is_empty() {
        return print("No node has reported. Start one with: soloist serve");
    }
    let rows: Vec<Vec<String>> = nodes.iter().map(row).collect();
    print(&table(&["NODE", "STATE", "REPORTED", "VERSION", "HOLDS"], &rows))
}

fn row(node: &NodeView) -> Vec<String> {
    let state = match (node.alive, node.draining) {
        (false, _) => "silent",
        (true, true) => "draining",
        (true, false) => "alive",
    };
    vec![
        node.name.clone(),
        state.to_owned(),
        format!("{}.{} s ago", node.age_ms / 1_000, node.age_ms % 1_000 / 100),
        node.version.clone(),
        if node.holds.is_empty() { "-".to_owned() } else { node.holds.join(", ") },
    ]
}

/// `forget`.
pub(super) async fn forget(desk: &Desk, args: &ForgetArgs) -> Result<(), Failure> {
    let reason = reason(args.reason.as_deref())?;
    let NodeArgs { node, user } = &args.node;
    let user = desk.operator(user.as_deref(), None).await?;
    match desk.store.forget(node).await? {
        Forgotten::Done => {}
        Forgotten::Alive => {
            return Err(Failure::Refused(format!(
                "{node} is alive: end its process first (or empty it with: soloist drain {node})"
            )));
        }
    }
    desk.audit(Some(&user), "node.forget", node.as_str(), reason.as_deref()).await?;
    print(&format!("{node} is forgotten. If it comes back, it is a new node."))
}

/// `drain` and `undrain`.
pub(super) async fn drain(desk: &Desk, args: &NodeArgs, on: bool) -> Result<(), Failure> {
    let user = desk.operator(args.user.as_deref(), None).await?;
    desk.store.drain(&args.node, on).await?;
    let act = if on { "node.drain" } else { "node.undrain" };
    desk.audit(Some(&user), act, args.node.as_str(), None).await?;
    let node = &args.node;
    print(&match on {
        true => {
            format!("{node} hands its jobs over and takes no more, until: soloist undrain {node}")
        }
        false => format!("{node} may take jobs again."),
    })
}
