//! Nodes: the list, and emptying one.

use serde::Serialize;

use super::output::{print, print_json, table};
use super::{Desk, Failure, ListArgs, NodeArgs};
use crate::picture::NodeView;
use crate::store::nodes::{ALIVE_FOR, NodeRecord, Nodes};

#[derive(Serialize)]
struct NodesAnswer {
    nodes: Vec<NodeView>,
}

/// `nodes`.
pub(super) async fn list(desk: &Desk, args: &ListArgs) -> Result<(), Failure> {
    let nodes = desk.nodes().await?;
    if args.json {
        let nodes = nodes.into_iter().map(NodeView::from).collect();
        return print_json(&NodesAnswer { nodes });
    }
    if nodes.is_empty() {
        return print("No node has reported. Start one with: soloist serve");
    }
    let rows: Vec<Vec<String>> = nodes.iter().map(row).collect();
    print(&table(&["NODE", "STATE", "REPORTED", "VERSION", "HOLDS"], &rows))
}

fn row(node: &NodeRecord) -> Vec<String> {
    let silent = u128::from(node.age_ms) > ALIVE_FOR.as_millis();
    let state = match (silent, node.draining) {
        (true, _) => "silent",
        (false, true) => "draining",
        (false, false) => "alive",
    };
    let holds: Vec<&str> = node.beat.holds.iter().map(|job| job.as_str()).collect();
    vec![
        node.beat.node.to_string(),
        state.to_owned(),
        format!("{}.{} s ago", node.age_ms / 1_000, node.age_ms % 1_000 / 100),
        node.beat.version.clone(),
        if holds.is_empty() { "-".to_owned() } else { holds.join(", ") },
    ]
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
