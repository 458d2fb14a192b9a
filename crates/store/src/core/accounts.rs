//! Accounts, on any [`Records`]: one row each.
//!
//! A change is made to the newest account, on condition that it still is the newest. So a change is never undone by another caller that read the
//! account before.

use async_trait::async_trait;

use super::credentials::{LINKS, Linked, Opened, SESSIONS, TOKENS};
use super::shared::{decide, json, look_at, of, parsed, row, rows, set, still, unset};
use crate::accounts::{Accounts, Changes, Role, User};
use crate::credentials::ApiToken;
use crate::records::{Check, Look, Looked, Plan, Records, Tell, Write};
use crate::{Result, StoreError};
use soloist_domain::name::UserName;

/// The table of accounts.
pub const USERS: &str = "users";

#[async_trait]
impl Accounts for dyn Records + '_ {
    async fn add_user(&self, user: &User, only_if_no_admin: bool) -> Result<()> {
        let name = user.name.as_str();
        let mut looks = vec![look_at(USERS, name)];
        if only_if_no_admin {
            looks.push(Look::Rows(USERS.to_owned()));
        }
        decide(self, &looks, |looked| {
            let mut checks = vec![still(USERS, name, None)];
            let mut taken = row(looked, 0).map(|_| name);
            if only_if_no_admin {
                for (other, text) in rows(looked, 1) {
                    let is_admin = parsed::<User>(USERS, text)?.role == Role::Admin;
                    taken = taken.or(is_admin.then_some(other));
                }
                if rows(looked, 1).next().is_none() {
                    checks.push(Check::Empty { table: USERS.to_owned() });
                }
            }
            if let Some(taken) = taken {
                return Err(StoreError::Exists(format!("user {taken}")));
            }
            let made = User { created: looked.at.floor(), ..user.clone() };
            let writes = vec![set(USERS, name, json(USERS, &made)?)];
            // A new account has no connections, but pages show its display name.
            let tells = made.display_name.map(|_| Tell::Accounts).into_iter().collect();
            Ok(((), Some(Plan { checks, writes, tells, once: true, ..Plan::default() })))
        })
        .await
    }

    async fn change_user(&self, name: &UserName, changes: &Changes) -> Result<User> {
        // What ends nothing is not read: a theme is changed more often than a role.
        let ends = changes.ends_sessions() || changes.end_tokens;
        let tables: &[&str] = if ends { &[SESSIONS, TOKENS, LINKS] } else { &[] };
        decide(self, &about(name, tables), |looked| {
            let (old, mut user) = found(looked, name)?;
            let mut checks = vec![still(USERS, name.as_str(), Some(old))];
            if changes.role.is_some_and(|role| role != Role::Admin) {
                checks.extend(another_admin(looked, &user)?);
            }
            changes.apply(&mut user);
            let mut writes = vec![set(USERS, name.as_str(), json(USERS, &user)?)];
            if changes.ends_sessions() {
                let mut ended = of(looked, 2, SESSIONS, |one: Opened| one.session.user == *name)?;
                ended.retain(|write| !unsets(write, changes.keep.as_deref()));
                writes.extend(ended);
            }
            if changes.end_tokens {
                writes.extend(of(looked, 3, TOKENS, |one: ApiToken| one.user == *name)?);
            }
            if changes.password.is_some() {
                writes.extend(of(looked, 4, LINKS, |one: Linked| one.user.as_ref() == Some(name))?);
            }
            let tells = vec![Tell::Accounts];
            Ok((user, Some(Plan { checks, writes, tells, ..Plan::default() })))
        })
        .await
    }

    async fn remove_user(&self, name: &UserName) -> Result<()> {
        decide(self, &about(name, &[SESSIONS, TOKENS, LINKS]), |looked| {
            let (old, user) = found(looked, name)?;
            let mut checks = vec![still(USERS, name.as_str(), Some(old))];
            checks.extend(another_admin(looked, &user)?);
            let mut writes = vec![unset(USERS, name.as_str())];
            writes.extend(of(looked, 2, SESSIONS, |one: Opened| one.session.user == *name)?);
            writes.extend(of(looked, 3, TOKENS, |one: ApiToken| one.user == *name)?);
            writes.extend(of(looked, 4, LINKS, |one: Linked| one.user.as_ref() == Some(name))?);
            let tells = vec![Tell::Accounts];
            Ok(((), Some(Plan { checks, writes, tells, once: true, ..Plan::default() })))
        })
        .await
    }

    async fn user(&self, name: &UserName) -> Result<Option<User>> {
        let looked = self.look(&[look_at(USERS, name.as_str())]).await?;
        row(&looked, 0).map(|text| parsed(USERS, text)).transpose()
    }

    async fn users(&self) -> Result<Vec<User>> {
        let looked = self.look(&[Look::Rows(USERS.to_owned())]).await?;
        rows(&looked, 0).map(|(_, text)| parsed(USERS, text)).collect()
    }
}

/// Whether that removes this row.
fn unsets(write: &Write, kept: Option<&str>) -> bool {
    matches!(write, Write::Unset { row, .. } if Some(row.as_str()) == kept)
}

/// The account, all accounts, and what else belongs to it.
fn about(name: &UserName, tables: &[&str]) -> Vec<Look> {
    let mut looks = vec![look_at(USERS, name.as_str()), Look::Rows(USERS.to_owned())];
    looks.extend(tables.iter().map(|table| Look::Rows((*table).to_owned())));
    looks
}

/// Makes sure that another admin remains when `user` is no longer one: without one, the page could not administer anything.
/// When `user` signs in without a provider, the other must be able to as well: a provider that is away must not shut every
/// admin out.
///
/// # Errors
/// [`StoreError::LastAdmin`].
fn another_admin(looked: &Looked, user: &User) -> Result<Option<Check>> {
    if user.role != Role::Admin {
        return Ok(None);
    }
    for (name, text) in rows(looked, 1) {
        let other: User = parsed(USERS, text)?;
        let as_good = other.is_local() || !user.is_local();
        if other.role == Role::Admin && other.name != user.name && as_good {
            return Ok(Some(still(USERS, name, Some(text))));
        }
    }
    Err(StoreError::LastAdmin(user.name.clone()))
}

/// The account and its text.
fn found<'a>(looked: &'a Looked, name: &UserName) -> Result<(&'a str, User)> {
    let text = row(looked, 0).ok_or_else(|| StoreError::NotFound(format!("user {name}")))?;
    Ok((text, parsed(USERS, text)?))
}
