//! How much there may be of what people and programs make: sources, rotations, tasks, accounts, tokens, leases.
//!
//! A faulty program could fill the store that all share. Each number is far beyond what is sensible; a refusal names the number and the
//! remedy. It is counted before the write and not in its step: simultaneous requests may exceed it by their number. The size of one
//! request is limited elsewhere (`domain`, `store`).

use std::fmt::Display;
use std::time::Duration;

use super::{OpsError, Result};
use soloist_domain::detail::Detail;
use soloist_domain::name::{RotationName, SourceName, UserName};
use soloist_store::accounts::Accounts as _;
use soloist_store::credentials::Credentials as _;
use soloist_store::dispatch::{NewTask, SourceView, Sources as _};
use soloist_store::rotation::{RotationView, Rotations as _};
use soloist_store::{Store, StoreError};

/// Most sources.
pub const SOURCES: usize = 1_000;
/// Most rotations.
pub const ROTATIONS: usize = 200;
/// Most tasks of one source that are not done.
pub const TASKS: u64 = 1_000_000;
/// Most accounts.
pub const USERS: usize = 10_000;
/// Most API tokens of one account.
pub const TOKENS: usize = 100;
/// Longest block of a source.
pub const LONGEST_BLOCK: Duration = Duration::from_secs(24 * 3600);

fn full(most: impl Display, what: &str, remedy: &str, told: &'static str) -> OpsError {
    let text = format!("there are {most} {what} already, and no more are allowed: {remedy}");
    OpsError::Conflict(Detail::new(text).told(told, &[("most", &most)]))
}

/// The source, if there is one; room for one more, if not.
pub(super) async fn source(store: &Store, name: &SourceName) -> Result<Option<SourceView>> {
    match store.sources(Some(name)).await {
        Ok(found) => return Ok(found.into_iter().next()),
        Err(StoreError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    if store.sources(None).await?.len() >= SOURCES {
        let remedy = "remove one with DELETE /api/v1/sources/{source}";
        return Err(full(SOURCES, "sources", remedy, "refused-full-sources"));
    }
    Ok(None)
}

/// Room for this rotation, if it is new; as it is, if it is not.
pub(super) async fn rotation(store: &Store, name: &RotationName) -> Result<Option<RotationView>> {
    match store.rotations(Some(name), 0).await {
        Ok(found) => return Ok(found.into_iter().next()),
        Err(StoreError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    if store.rotations(None, 0).await?.len() >= ROTATIONS {
        let remedy = "remove one with DELETE /api/v1/rotations/{rotation}";
        return Err(full(ROTATIONS, "rotations", remedy, "refused-full-rotations"));
    }
    Ok(None)
}

/// Room for these tasks in their sources. A missing source is not reported here.
pub(super) async fn tasks(store: &Store, tasks: &[NewTask]) -> Result<()> {
    let mut names: Vec<&SourceName> = tasks.iter().map(|task| &task.source).collect();
    names.sort();
    names.dedup();
    for name in names {
        let found = match store.sources(Some(name)).await {
            Err(StoreError::NotFound(_)) => continue,
            found => found?,
        };
        let there = found.iter().map(kept).sum::<u64>();
        if there >= TASKS {
            let what = format!("tasks in {name}");
            let remedy = "wait until some are done, or remove dead ones";
            return Err(full(there, &what, remedy, "refused-full-tasks"));
        }
    }
    Ok(())
}

/// How many tasks of a source are there and not done.
#[must_use]
pub fn kept(view: &SourceView) -> u64 {
    view.ready + view.due + view.in_flight + view.dead
}

/// Room for one more account.
pub(super) async fn user(store: &Store) -> Result<()> {
    if store.users().await?.len() >= USERS {
        let remedy = "remove one with soloist user remove";
        return Err(full(USERS, "accounts", remedy, "refused-full-accounts"));
    }
    Ok(())
}

/// Room for one more token of this account.
pub(super) async fn token(store: &Store, user: &UserName) -> Result<()> {
    let own = store.tokens().await?.into_iter().filter(|token| token.user == *user).count();
    if own >= TOKENS {
        let what = format!("API tokens of {user}");
        let remedy = "revoke one with soloist token revoke";
        return Err(full(TOKENS, &what, remedy, "refused-full-tokens"));
    }
    Ok(())
}

/// There is no room for one more lease of this account.
#[must_use]
pub fn leases(user: &UserName, most: usize) -> OpsError {
    let what = format!("leases of {user}");
    let remedy = "release those that are not needed, or raise leases_per_account in limits of the configuration";
    full(most, &what, remedy, "refused-full-leases")
}
