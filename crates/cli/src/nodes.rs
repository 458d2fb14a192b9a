//! Nodes: the list, emptying one, forgetting one.

use super::office::Office;
use super::output::{print, print_json, table};
use super::{Failure, ForgetArgs, ListArgs, NodeArgs};
use soloist_domain::name::NodeName;
use soloist_remote::{Call, address, part};
use soloist_view::NodeView;
use soloist_view::lists::Nodes;

fn at(node: &NodeName, what: &str) -> String {
    format!("/api/v1/nodes/{}{what}", part(node.as_str()))
}

/// `nodes`.
pub(super) async fn list(office: &Office, args: &ListArgs) -> Result<(), Failure> {
    let list: Nodes = office.get("/api/v1/nodes").await?;
    if args.json {
        return print_json(&list);
    }
    let nodes = list.nodes;
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
pub(super) async fn forget(office: &Office, args: &ForgetArgs) -> Result<(), Failure> {
    let NodeArgs { node, user } = &args.node;
    let path = address(&at(node, ""), &[("reason", args.reason.clone())]);
    office.acting(user.as_deref()).await?.tell(Call::delete(path)).await?;
    print(&format!("{node} is forgotten. If it comes back, it is a new node."))
}

/// `drain` and `undrain`.
pub(super) async fn drain(
    office: &Office,
    args: &NodeArgs,
    on: bool,
    reason: Option<&str>,
) -> Result<(), Failure> {
    let node = &args.node;
    let path = address(&at(node, "/drain"), &[("reason", reason.map(str::to_owned))]);
    let call = if on { Call::put(path) } else { Call::delete(path).repeatable() };
    office.acting(args.user.as_deref()).await?.tell(call).await?;
    print(&match on {
        true => {
            format!("{node} hands its jobs over and takes no more, until: soloist undrain {node}")
        }
        false => format!("{node} may take jobs again."),
    })
}
