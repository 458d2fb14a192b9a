//! Leases: everything that is held, also what only `soloist run` knows by name.

use clap::Subcommand;

use super::output::{local, print, print_json, table};
use super::{CommandContext, Failure, ListArgs};
use crate::store::leases::{HeldLease, Leases as _};
use crate::view::lists::Held;
use crate::view::{HeldLeaseView, LeaseKind};

const NOTHING: &str = "\
Nothing is held. A lease is the right to be the only one. It has one holder, on one node, until the holder gives it back or falls silent.
A job has one while it runs. Get one for any command with: soloist run --name NAME -- CMD";

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum LeaseCommand {
    /// List everything that is held: by jobs, and by commands under soloist run
    #[command(after_help = "\
KIND is job, or command for what soloist run holds. LEFT is the time after which it is free unless its holder renews it.
--json gives the objects of GET /api/v1/leases.")]
    List(ListArgs),
}

/// `lease ...`.
pub(super) async fn act(context: &CommandContext, command: LeaseCommand) -> Result<(), Failure> {
    match command {
        LeaseCommand::List(args) => list(context, &args).await,
    }
}

async fn list(context: &CommandContext, args: &ListArgs) -> Result<(), Failure> {
    let held = context.store.held().await?;
    let jobs = context.jobs();
    let view = |held| HeldLeaseView::of(held, |name| jobs.iter().any(|job| job.name == *name));
    let views: Vec<HeldLeaseView> = held.iter().map(view).collect();
    if args.json {
        return print_json(&Held { leases: views });
    }
    if held.is_empty() {
        return print(NOTHING);
    }
    let rows: Vec<_> = held.iter().zip(&views).map(|(held, view)| row(held, view.kind)).collect();
    print(&table(&["NAME", "KIND", "NODE", "TOKEN", "SINCE", "LEFT"], &rows))
}

fn row(held: &HeldLease, kind: LeaseKind) -> Vec<String> {
    let HeldLease { name, lease } = held;
    vec![
        name.to_string(),
        kind.as_str().to_owned(),
        lease.node.to_string(),
        lease.token.to_string(),
        local(lease.since),
        format!("{:.1?}", lease.expires_in),
    ]
}
