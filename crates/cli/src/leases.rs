//! Leases: everything that is held, also what only `soloist run` knows by name.

use std::time::Duration;

use clap::Subcommand;

use super::office::Office;
use super::output::{local, print, print_json, table};
use super::{Failure, ListArgs};
use soloist_view::HeldLeaseView;
use soloist_view::lists::Held;

const NOTHING: &str = "\
Nothing is held. A lease is the right to be the only one. It has one holder, on one node, until the holder gives it back or falls silent.
A job has one while it runs. Get one for any command with: soloist run --name NAME -- CMD";

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum LeaseCommand {
    /// List everything that is held: by jobs, and by commands under soloist run
    #[command(after_help = "\
KIND is job, command for what soloist run holds, or program for what a program holds over HTTP. LEFT is the time after which it is free unless its holder renews it.
WATCHED: the death of its process gives it back at once: a script under its guard, or a program on a life line (docs/lifeline.md).
--json gives the objects of GET /api/v1/leases.")]
    List(ListArgs),
}

/// `lease ...`.
pub(super) async fn act(office: &Office, command: LeaseCommand) -> Result<(), Failure> {
    match command {
        LeaseCommand::List(args) => list(office, &args).await,
    }
}

async fn list(office: &Office, args: &ListArgs) -> Result<(), Failure> {
    let mut held: Held = office.get("/api/v1/leases").await?;
    while let Some(after) = held.next_after.take() {
        let page: Held = office.get(format!("/api/v1/leases?after={after}")).await?;
        held.leases.extend(page.leases);
        held.next_after = page.next_after;
    }
    if args.json {
        return print_json(&held);
    }
    if held.leases.is_empty() {
        return print(NOTHING);
    }
    let rows: Vec<_> = held.leases.iter().map(row).collect();
    print(&table(&["NAME", "KIND", "HOLDER", "TOKEN", "SINCE", "LEFT", "WATCHED"], &rows))
}

fn row(held: &HeldLeaseView) -> Vec<String> {
    vec![
        held.name.clone(),
        held.kind.as_str().to_owned(),
        held.holder.clone(),
        held.token.to_string(),
        local(held.since),
        format!("{:.1?}", Duration::from_millis(held.expires_in_ms)),
        if held.watched { "yes" } else { "no" }.to_owned(),
    ]
}
