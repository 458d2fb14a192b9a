//! What administrators do to accounts, API tokens and sign-in links.
//!
//! Only whoever reaches the store or has a one-time link comes here: they need no role, only a name for the audit.

use std::time::Duration;

use super::{Act, OpsError, Result, Signature, note};
use crate::domain::name::{JobName, UserName};
use crate::secrets::{new_api_token, new_link};
use crate::store::Store;
use crate::store::accounts::{Accounts as _, Role, User};
use crate::store::credentials::{ApiToken, Credentials as _};
use crate::store::jobs::Jobs as _;

/// Adds an account; with `first` only while there is none.
///
/// # Errors
/// [`OpsError::Store`]; with [`crate::store::StoreError::Exists`] when the name is taken, or the account is not the first.
pub async fn add(store: &Store, by: &Signature, user: &User, first: bool) -> Result<()> {
    store.add_user(user, first).await?;
    let said = if first { "the first admin" } else { user.role.as_str() };
    note(store, by, Act::UserAdd, user.name.as_str(), Some(said)).await
}

/// Gives an account another role, and signs it out everywhere.
///
/// # Errors
/// [`OpsError::Conflict`] for the last admin, [`OpsError::Store`].
pub async fn change_role(store: &Store, by: &Signature, mut user: User, role: Role) -> Result<()> {
    keep_an_admin(store, &user).await?;
    user.role = role;
    store.update_user(&user).await?;
    store.close_sessions(&user.name, None).await?;
    note(store, by, Act::UserRole, user.name.as_str(), Some(role.as_str())).await
}

/// Gives an account another password (already hashed), and signs it out everywhere.
///
/// # Errors
/// [`OpsError::Store`].
pub async fn change_password(
    store: &Store,
    by: &Signature,
    mut user: User,
    hash: String,
) -> Result<()> {
    user.password = hash;
    store.update_user(&user).await?;
    store.close_sessions(&user.name, None).await?;
    note(store, by, Act::UserPasswd, user.name.as_str(), None).await
}

/// Removes an account with its sessions, tokens and participations; returns which of `jobs` it wanted, and whether it was
/// the last that did.
///
/// # Errors
/// As [`change_role`].
pub async fn remove(
    store: &Store,
    by: &Signature,
    user: &User,
    jobs: &[JobName],
) -> Result<Vec<(JobName, bool)>> {
    keep_an_admin(store, user).await?;
    let name = &user.name;
    let mut left = Vec::new();
    for record in store.snapshot(jobs).await?.jobs {
        if record.participates(name) {
            store.participate(&record.name, name, false, Some("account removed")).await?;
            left.push((record.name, record.participants.len() == 1));
        }
    }
    store.close_sessions(name, None).await?;
    store.remove_user(name).await?;
    note(store, by, Act::UserRemove, name.as_str(), None).await?;
    Ok(left)
}

/// Without an admin nobody could administer from the page any more.
async fn keep_an_admin(store: &Store, user: &User) -> Result<()> {
    if user.role != Role::Admin {
        return Ok(());
    }
    let admins = store.users().await?.iter().filter(|user| user.role == Role::Admin).count();
    if admins > 1 {
        return Ok(());
    }
    Err(OpsError::Conflict(format!(
        "{} is the last admin: make another first with soloist user add NAME --role admin",
        user.name
    )))
}

/// Makes an API token of `token`, whose id is made here; returns it with its secret.
///
/// # Errors
/// [`OpsError::Field`], [`OpsError::Store`].
pub async fn new_token(
    store: &Store,
    by: &Signature,
    mut token: ApiToken,
    expires: Option<Duration>,
) -> Result<(ApiToken, String)> {
    let wrong = |field, what: &str| OpsError::Field { field, what: what.to_owned() };
    if expires.is_some_and(|lifetime| lifetime.is_zero()) {
        return Err(wrong("expires", "is zero: use for example 90d"));
    }
    if token.name.chars().count() > 100 || token.name.contains(char::is_control) {
        return Err(wrong("name", "is too long: use at most 100 characters on one line"));
    }
    let (secret, hash, id) = new_api_token();
    token.id = id;
    token.sources.sort();
    token.sources.dedup();
    store.add_token(&hash, &token, expires).await?;
    let said = format!("{} {}", token.id, token.name);
    note(store, by, Act::TokenNew, token.user.as_str(), Some(said.trim())).await?;
    Ok((token, secret))
}

/// Revokes a token; returns it.
///
/// # Errors
/// [`OpsError::NotFound`], [`OpsError::Store`].
pub async fn revoke_token(store: &Store, by: &Signature, id: &str) -> Result<ApiToken> {
    let mut tokens = store.tokens().await?.into_iter();
    let token = tokens.find(|token| token.id == id).ok_or_else(|| {
        OpsError::NotFound(format!("there is no token {id:?}: soloist token list shows their ids"))
    })?;
    store.revoke_token(id).await?;
    note(store, by, Act::TokenRevoke, token.user.as_str(), Some(id)).await?;
    Ok(token)
}

/// Makes a one-time link that signs `user` in at `url`; without one, that makes the first admin.
///
/// # Errors
/// [`OpsError::Store`].
pub async fn make_link(
    store: &Store,
    by: &Signature,
    user: Option<UserName>,
    url: &str,
) -> Result<String> {
    let target = user.as_ref().map_or("the first admin", UserName::as_str).to_owned();
    let link = new_link(store, user, url).await?;
    note(store, by, Act::LinkNew, &target, None).await?;
    Ok(link)
}
