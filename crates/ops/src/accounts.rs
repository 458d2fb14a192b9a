//! Acts on accounts, by administrators and by their owners: the right, and the entry in the audit in the same step.
//!
//! Admins ([`Actor`] with that role, by no bound token), a person at a terminal with access to the store, and the holder of a one-time link
//! may administer an account. Tokens and sessions are `credentials`.

use super::{Act, Actor, OpsError, Result, Signature, line, noting, quota};
use soloist_domain::detail::Detail;
use soloist_domain::name::{JobName, UserName};
use soloist_secrets::{new_invitation, new_link};
use soloist_store::accounts::{Accounts as _, Changes, NO_PASSWORD, Role, User};
use soloist_store::jobs::Jobs as _;
use soloist_store::{Store, StoreError};

/// Longest display name, in characters.
pub const DISPLAY_NAME_MAX: usize = 64;

/// The name in the audit of the person who makes the first account.
pub const FIRST_ADMIN: &str = "the first admin";

/// A display name as it is kept; an empty one is none.
///
/// # Errors
/// [`OpsError::Field`].
pub fn display_name(given: &str) -> Result<Option<String>> {
    let given = Some(given).filter(|text| !text.trim().is_empty());
    given.map(|text| line("display_name", text, DISPLAY_NAME_MAX)).transpose()
}

/// All accounts.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn list(store: &Store, actor: &Actor) -> Result<Vec<User>> {
    actor.check_accounts()?;
    Ok(store.users().await?)
}

/// One account.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::NotFound`], [`OpsError::Store`].
pub async fn one(store: &Store, actor: &Actor, name: &str) -> Result<User> {
    actor.check_accounts()?;
    let found = match UserName::new(name) {
        Ok(name) => store.user(&name).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> OpsError {
    let name: String = name.chars().take(64).collect();
    OpsError::NotFound(
        Detail::new(format!(
            "there is no account {name:?}: GET /api/v1/users lists them, and soloist user list"
        ))
        .told("refused-no-account", &[("user", &name)]),
    )
}

/// Adds an account.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Conflict`] when the name is taken, [`OpsError::Store`].
pub async fn add(store: &Store, actor: &Actor, user: &User) -> Result<()> {
    actor.check_accounts()?;
    quota::user(store).await?;
    let name = user.name.as_str();
    let noted = noting(store, &actor.signature, Act::UserAdd, name, Some(user.role.as_str()));
    noted.add_user(user, false).await.map_err(|error| match error {
        StoreError::Exists(_) => OpsError::Conflict(
            Detail::new(format!(
                "there is an account {name} already: change it with soloist user role, or soloist user passwd; or choose another name"
            ))
            .told("refused-account-taken", &[("user", &name)]),
        ),
        other => other.into(),
    })
}

/// Makes the first admin, by the one-time link for that.
///
/// # Errors
/// [`OpsError::Store`]; with [`StoreError::Exists`] when there is an admin, or the name is taken.
pub async fn add_first(store: &Store, by: &Signature, user: &User) -> Result<()> {
    let store = noting(store, by, Act::UserAdd, user.name.as_str(), Some(FIRST_ADMIN));
    Ok(store.add_user(user, true).await?)
}

/// Gives an account another role, and signs it out everywhere.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`]; with [`StoreError::LastAdmin`] when no admin would be left.
pub async fn change_role(
    store: &Store,
    actor: &Actor,
    name: &UserName,
    role: Role,
) -> Result<User> {
    actor.check_accounts()?;
    let changes = Changes { role: Some(role), ..Changes::default() };
    let by = &actor.signature;
    let store = noting(store, by, Act::UserRole, name.as_str(), Some(role.as_str()));
    Ok(store.change_user(name, &changes).await?)
}

/// Gives an account another password (already hashed), signs it out everywhere, and ends its tokens and links: a person who had
/// the old password may have made them.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn change_password(
    store: &Store,
    actor: &Actor,
    name: &UserName,
    hash: String,
) -> Result<User> {
    actor.check_accounts()?;
    replace_password(store, &actor.signature, Act::UserPasswd, name, hash).await
}

async fn replace_password(
    store: &Store,
    by: &Signature,
    act: Act,
    name: &UserName,
    hash: String,
) -> Result<User> {
    let changes = Changes { password: Some(hash), end_tokens: true, ..Changes::default() };
    Ok(noting(store, by, act, name.as_str(), None).change_user(name, &changes).await?)
}

/// Gives the actor's own account another password (already hashed). All its sessions end but the one in `keep`; tokens live on,
/// the page lists them beside.
///
/// # Errors
/// [`OpsError::Forbidden`] for a token, [`OpsError::Store`].
pub async fn change_own_password(
    store: &Store,
    actor: &Actor,
    hash: String,
    keep: &str,
) -> Result<User> {
    if actor.by_token {
        return Err(OpsError::forbidden(
            "a token cannot change a password: sign in, and change it on /account",
        ));
    }
    let keep = Some(keep.to_owned());
    let changes = Changes { password: Some(hash), keep, ..Changes::default() };
    let name = &actor.user;
    let store = noting(store, &actor.signature, Act::UserPasswdOwn, name.as_str(), None);
    Ok(store.change_user(name, &changes).await?)
}

/// Sets the password by the one-time link for that, which the caller has used up.
///
/// # Errors
/// [`OpsError::Store`].
pub async fn set_by_link(
    store: &Store,
    by: &Signature,
    name: &UserName,
    hash: String,
) -> Result<User> {
    let changes = Changes { password: Some(hash), ..Changes::default() };
    let store = noting(store, by, Act::UserPasswd, name.as_str(), Some("by one-time link"));
    Ok(store.change_user(name, &changes).await?)
}

/// Gives an account another display name; `None` takes it away. Every person may do so to their own.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn change_display_name(
    store: &Store,
    actor: &Actor,
    name: &UserName,
    shown: Option<String>,
) -> Result<User> {
    if *name != actor.user || actor.by_token {
        actor.check_accounts()?;
    }
    let (by, said) = (&actor.signature, shown.clone());
    let store = noting(store, by, Act::UserDisplay, name.as_str(), said.as_deref());
    let changes = Changes { display_name: Some(shown), ..Changes::default() };
    Ok(store.change_user(name, &changes).await?)
}

/// Chooses the zone in which the caller's own account reads instants; `None`: that of the browser. Every person may who has signed in. A token
/// may only if it may administer accounts.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn choose_zone(store: &Store, actor: &Actor, zone: Option<String>) -> Result<()> {
    if actor.by_token {
        actor.check_accounts()?;
    }
    let changes = Changes { time_zone: Some(zone), ..Changes::default() };
    store.change_user(&actor.user, &changes).await?;
    Ok(())
}

/// A one-time link at `url` with which `name` sets their password.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Conflict`] for a collector, [`OpsError::Store`].
pub async fn invite(store: &Store, actor: &Actor, user: &User, url: &str) -> Result<String> {
    actor.check_accounts()?;
    let name = &user.name;
    if user.role == Role::Collector {
        return Err(OpsError::Conflict(
            Detail::new(format!(
                "{name} is a collector, which uses tokens and no password: make one with soloist token new --user {name}"
            ))
            .told("refused-link-collector", &[("user", name)]),
        ));
    }
    let noted = noting(store, &actor.signature, Act::Invite, name.as_str(), None);
    Ok(new_invitation(&noted, name.clone(), url).await?)
}

/// Withdraws the one-time link of an account that has no password yet: a person who has the link can do nothing
/// with it then.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Conflict`] for an account that has a password, [`OpsError::Store`].
pub async fn withdraw(store: &Store, actor: &Actor, user: &User) -> Result<()> {
    actor.check_accounts()?;
    let name = &user.name;
    if user.password != NO_PASSWORD || user.role == Role::Collector {
        let text = format!("no invitation of {name} is open");
        return Err(OpsError::Conflict(
            Detail::new(text).told("refused-no-invitation", &[("user", name)]),
        ));
    }
    // Another password, also none again, ends all links of the account in the same step.
    let changes = Changes { password: Some(NO_PASSWORD.to_owned()), ..Changes::default() };
    let by = &actor.signature;
    let noted = noting(store, by, Act::InviteWithdraw, name.as_str(), None);
    noted.change_user(name, &changes).await?;
    Ok(())
}

/// The jobs of `jobs` that an account has switched on, each with whether it is the last that did: what [`remove`] ends.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn wants(
    store: &Store,
    actor: &Actor,
    name: &UserName,
    jobs: &[JobName],
) -> Result<Vec<(JobName, bool)>> {
    actor.check_accounts()?;
    let records = store.snapshot(jobs).await?.jobs.into_iter();
    let own = records.filter(|record| record.participates(name));
    Ok(own.map(|record| (record.name.clone(), record.participants.len() == 1)).collect())
}

/// Takes an account's password away, signs it out everywhere and ends its tokens at once; answers with the one-time link with
/// which a new password is set.
///
/// # Errors
/// As [`invite`]; [`OpsError::Conflict`] for the actor's own account.
pub async fn reset(store: &Store, actor: &Actor, user: &User, url: &str) -> Result<String> {
    actor.check_accounts()?;
    if user.name == actor.user && actor.role.is_some() {
        let text = "this is your own account: change your password on /account, or with soloist user passwd";
        return Err(OpsError::Conflict(Detail::new(text).told("refused-own-account", &[])));
    }
    if user.role != Role::Collector {
        let none = NO_PASSWORD.to_owned();
        replace_password(store, &actor.signature, Act::UserReset, &user.name, none).await?;
    }
    invite(store, actor, user, url).await
}

/// Removes an account with its sessions, tokens, links and participations; returns which of `jobs` it wanted, and whether it
/// was the last that did.
///
/// # Errors
/// As [`change_role`].
pub async fn remove(
    store: &Store,
    actor: &Actor,
    user: &User,
    jobs: &[JobName],
) -> Result<Vec<(JobName, bool)>> {
    actor.check_accounts()?;
    let name = &user.name;
    // First, so that it can switch nothing on again while its participations end.
    let by = &actor.signature;
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

/// Makes a one-time link that signs `user` in at `url`; without one, that makes the first admin.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn make_link(
    store: &Store,
    actor: &Actor,
    user: Option<UserName>,
    url: &str,
) -> Result<String> {
    actor.check_accounts()?;
    let target = user.as_ref().map_or(FIRST_ADMIN, UserName::as_str).to_owned();
    let noted = noting(store, &actor.signature, Act::LinkNew, &target, None);
    Ok(new_link(&noted, user, url).await?)
}
