//! API tokens and sessions: people make and end their own, admins those of all accounts.
//!
//! A token never makes a credential, unless it is an admin's and bound to nothing: a leaked one could otherwise outlive its own
//! revocation.

use std::time::Duration;

use super::{Act, Actor, OpsError, Result, line, noting, quota};
use soloist_domain::detail::Detail;
use soloist_domain::name::UserName;
use soloist_domain::time::parse_duration;
use soloist_secrets::{new_api_token, session_id};
use soloist_store::Store;
use soloist_store::accounts::Accounts as _;
use soloist_store::credentials::{ApiToken, Credentials as _, OpenSession};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a token is valid unless the request says how long.
pub const TOKEN_LIFETIME: Duration = DAY.saturating_mul(90);
/// The longest time that a token is valid, if it ends at all.
pub const TOKEN_LIFETIME_MAX: Duration = DAY.saturating_mul(5 * 365 + 1);
/// Longest name of a token, in characters.
pub const TOKEN_NAME_MAX: usize = 100;

/// A session unused for this long is gone.
pub const SESSION_IDLE: Duration = Duration::from_secs(12 * 60 * 60);

/// When a token ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// After [`TOKEN_LIFETIME`].
    #[default]
    Usual,
    /// After so long.
    After(Duration),
    /// When it is revoked.
    Never,
}

impl std::str::FromStr for Expiry {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        let parsed = parse_duration(text);
        parsed
            .map(Self::After)
            .map_err(|_| "use a number with a unit, for example 12h or 90d, or never".to_owned())
    }
}

/// The living tokens of `owner`, or of all accounts.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn tokens(
    store: &Store,
    actor: &Actor,
    owner: Option<&UserName>,
) -> Result<Vec<ApiToken>> {
    if owner != Some(&actor.user) {
        actor.check_accounts()?;
    }
    let mut tokens = store.tokens().await?;
    tokens.retain(|token| owner.is_none_or(|owner| token.user == *owner));
    Ok(tokens)
}

/// Makes an API token of `token`, whose id is made here; returns it with its secret.
///
/// # Errors
/// [`OpsError::Field`], [`OpsError::Forbidden`], [`OpsError::NotFound`], [`OpsError::Conflict`], [`OpsError::Store`].
pub async fn new_token(
    store: &Store,
    actor: &Actor,
    mut token: ApiToken,
    expiry: Expiry,
) -> Result<(ApiToken, String)> {
    actor.check_credentials(&token.user)?;
    let wrong = |what: &str| Err(OpsError::Field { field: "expires", what: what.into() });
    let lifetime = match expiry {
        Expiry::Usual => Some(TOKEN_LIFETIME),
        Expiry::After(Duration::ZERO) => return wrong("is zero: use for example 90d"),
        Expiry::After(lifetime) if lifetime > TOKEN_LIFETIME_MAX => {
            return wrong("is longer than 5 years: use less");
        }
        Expiry::After(lifetime) => Some(lifetime),
        Expiry::Never if actor.administers() => None,
        Expiry::Never => {
            return wrong("may be never for admins only: use at most 5 years, for example 365d");
        }
    };
    if token.put && token.sources.is_empty() {
        return Err(OpsError::Field {
            field: "put",
            what: "is for the sources of the token: name at least one (source), so that what leaks can fill no other".into(),
        });
    }
    if !token.name.trim().is_empty() {
        token.name = line("name", &token.name, TOKEN_NAME_MAX)?;
    }
    if store.user(&token.user).await?.is_none() {
        let (user, text) = (&token.user, format!("there is no account {}", token.user));
        let why = Detail::new(text).told("refused-no-account", &[("user", user)]);
        return Err(OpsError::NotFound(why));
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
    let (by, user) = (&actor.signature, token.user.as_str());
    let noted = noting(store, by, Act::TokenNew, user, Some(said.trim()));
    noted.add_token(&hash, &token, lifetime).await?;
    // With the instants that the store set.
    let made = store.tokens().await?.into_iter().find(|one| one.id == token.id);
    Ok((made.unwrap_or(token), secret))
}

/// Revokes a token; returns it.
///
/// # Errors
/// [`OpsError::NotFound`], [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn revoke_token(store: &Store, actor: &Actor, id: &str) -> Result<ApiToken> {
    let mut tokens = store.tokens().await?.into_iter();
    let known = |token: &ApiToken| token.user == actor.user || actor.administers();
    // To others it does not exist.
    let token = tokens.find(|token| token.id == id && known(token)).ok_or_else(|| {
        let id: String = id.chars().take(64).collect();
        OpsError::NotFound(
            Detail::new(format!("there is no token {id:?}: soloist token list shows their ids"))
                .told("refused-no-token", &[]),
        )
    })?;
    actor.check_credentials(&token.user)?;
    let by = &actor.signature;
    let noted = noting(store, by, Act::TokenRevoke, token.user.as_str(), Some(id));
    noted.revoke_token(id).await?;
    Ok(token)
}

/// The living sessions of `owner`, or of all accounts, newest first.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn sessions(
    store: &Store,
    actor: &Actor,
    owner: Option<&UserName>,
) -> Result<Vec<OpenSession>> {
    if owner != Some(&actor.user) {
        actor.check_accounts()?;
    }
    Ok(store.sessions(owner, SESSION_IDLE).await?)
}

/// Ends the session of that public id, one of `owner`'s or of any account's; returns it.
///
/// # Errors
/// [`OpsError::NotFound`], [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn end_session(
    store: &Store,
    actor: &Actor,
    owner: Option<&UserName>,
    id: &str,
) -> Result<OpenSession> {
    let mut open = sessions(store, actor, owner).await?.into_iter();
    let found = open.find(|one| session_id(&one.hash) == id).ok_or_else(|| {
        let id: String = id.chars().take(64).collect();
        OpsError::NotFound(
            Detail::new(format!("there is no session {id:?}: it may have ended by itself"))
                .told("refused-no-session", &[]),
        )
    })?;
    let user = &found.session.user;
    actor.check_credentials(user)?;
    let noted = noting(store, &actor.signature, Act::SessionEnd, user.as_str(), Some(id));
    noted.close_sessions(user, Some(&found.hash)).await?;
    Ok(found)
}

/// Ends every session of `owner`: everywhere they are signed in, they must sign in again. Tokens live on.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Store`].
pub async fn end_sessions(store: &Store, actor: &Actor, owner: &UserName) -> Result<()> {
    actor.check_credentials(owner)?;
    let noted = noting(store, &actor.signature, Act::SessionEndAll, owner.as_str(), None);
    Ok(noted.close_sessions(owner, None).await?)
}
