//! Nodes: the list, emptying one, forgetting one.

use super::output::{print, print_json, table};
use super::{CommandContext, Failure, ForgetArgs, ListArgs, NodeArgs};
use crate::ops::nodes;
use crate::view::NodeView;
use crate::view::lists::Nodes;

/// `nodes`.
pub(super) async fn list(context: &CommandContext, args: &ListArgs) -> Result<(), Failure> {
    let nodes = context.nodes().await?;
    let seen = context.see(&context.jobs()).await?;
    let held: Vec<_> = seen
        .iter()
        .filter_map(|seen| {
            Some((seen.record.name.clone(), seen.record.lease.as_ref()?.node.clone()))
        })
        .collect();
    let nodes = NodeView::list(&nodes, &held, seen.first().map(|seen| seen.at));
    if args.json {
        return print_json(&Nodes { nodes });
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
pub(super) async fn forget(context: &CommandContext, args: &ForgetArgs) -> Result<(), Failure> {
    let NodeArgs { node, user } = &args.node;
    let actor = context.operator(user.as_deref()).await?;
    nodes::forget(&context.store, &actor, node, args.reason.as_deref()).await?;
    print(&format!("{node} is forgotten. If it comes back, it is a new node."))
}

/// `drain` and `undrain`.
pub(super) async fn drain(
    context: &CommandContext,
    args: &NodeArgs,
    on: bool,
) -> Result<(), Failure> {
    let (node, actor) = (&args.node, context.operator(args.user.as_deref()).await?);
    nodes::drain(&context.store, &actor, node, on).await?;
    print(&match on {
        true => {
            format!("{node} hands its jobs over and takes no more, until: soloist undrain {node}")
        }
        false => format!("{node} may take jobs again."),
    })
}
