//! What administrators do to accounts, API tokens and sign-in links.
//!
//! Only whoever reaches the store or has a one-time link comes here: they need no role, only a name for the audit.

use std::time::Duration;

use super::{Act, OpsError, Result, Signature, noting, quota};
use crate::domain::name::{JobName, UserName};
use crate::secrets::{new_api_token, new_link};
use crate::store::Store;
use crate::store::accounts::{Accounts as _, Changes, Role, User};
use crate::store::credentials::{ApiToken, Credentials as _};
use crate::store::jobs::Jobs as _;

/// Adds an account; with `first` only while there is none.
///
/// # Errors
/// [`OpsError::Store`]; with [`crate::store::StoreError::Exists`] when the name is taken, or the account is not the first.
pub async fn add(store: &Store, by: &Signature, user: &User, first: bool) -> Result<()> {
    quota::user(store).await?;
    let said = if first { "the first admin" } else { user.role.as_str() };
    let store = noting(store, by, Act::UserAdd, user.name.as_str(), Some(said));
    Ok(store.add_user(user, first).await?)
}

/// Gives an account another role, and signs it out everywhere.
///
/// # Errors
/// [`OpsError::Store`]; with [`crate::store::StoreError::LastAdmin`] when no admin would be left.
pub async fn change_role(
    store: &Store,
    by: &Signature,
    name: &UserName,
    role: Role,
) -> Result<User> {
    let changes = Changes { role: Some(role), ..Changes::default() };
    let store = noting(store, by, Act::UserRole, name.as_str(), Some(role.as_str()));
    Ok(store.change_user(name, &changes).await?)
}

/// Gives an account another password (already hashed), and signs it out everywhere.
///
/// # Errors
/// [`OpsError::Store`].
pub async fn change_password(
    store: &Store,
    by: &Signature,
    name: &UserName,
    hash: String,
) -> Result<User> {
    let changes = Changes { password: Some(hash), ..Changes::default() };
    let store = noting(store, by, Act::UserPasswd, name.as_str(), None);
    Ok(store.change_user(name, &changes).await?)
}

/// Removes an account with its sessions, tokens, links and participations; returns which of `jobs` it wanted, and whether it
/// was the last that did.
///
/// # Errors
/// As [`change_role`].
pub async fn remove(
    store: &Store,
    by: &Signature,
    user: &User,
    jobs: &[JobName],
) -> Result<Vec<(JobName, bool)>> {
    let name = &user.name;
    // First, so that it can switch nothing on again while its participations end.
    noting(store, by, Act::UserRemove, name.as_str(), None).remove_user(name).await?;
    let mut left = Vec::new();
    for record in store.snapshot(jobs).await?.jobs {
        if record.participates(name) {
            store.participate(&record.name, name, false, Some("account removed")).await?;
            left.push((record.name, record.participants.len() == 1));
        }
    }
    Ok(left)
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
    quota::token(store, &token.user).await?;
    let (secret, hash, id) = new_api_token();
    token.id = id;
    token.sources.sort();
    token.sources.dedup();
    token.rotations.sort();
    token.rotations.dedup();
    for names in [&mut token.leases, &mut token.jobs] {
        names.sort();
        names.dedup();
    }
    let said = format!("{} {}", token.id, token.name);
    let store = noting(store, by, Act::TokenNew, token.user.as_str(), Some(said.trim()));
    store.add_token(&hash, &token, expires).await?;
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
    let store = noting(store, by, Act::TokenRevoke, token.user.as_str(), Some(id));
    store.revoke_token(id).await?;
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
    Ok(new_link(&noting(store, by, Act::LinkNew, &target, None), user, url).await?)
}
