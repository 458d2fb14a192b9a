//! Credentials: sessions, API tokens, one-time links and the login throttle. Only hashes are kept.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use soloist_domain::name::{CollectorName, JobName, RotationName, SourceName, UserName};
use soloist_domain::time::StoreTime;

/// A browser that signed in. The key is the SHA-256 (hex) of the cookie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Session {
    pub user: UserName,
    /// Secret that forms and `X-CSRF-Token` must repeat.
    pub csrf: String,
    /// Set by the store.
    pub created: StoreTime,
    /// Absolute end; set by the store from the `lifetime` it is given.
    pub expires: StoreTime,
    /// The address that signed in.
    #[serde(default)]
    pub from: String,
    /// What its browser calls itself, cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
}

impl Session {
    /// A session as the store is given it.
    #[must_use]
    pub fn new(user: UserName, csrf: String, from: String, user_agent: Option<String>) -> Self {
        let (created, expires) = (StoreTime(0), StoreTime(0));
        Self { user, csrf, created, expires, from, user_agent }
    }
}

/// Sessions that one account may have; the oldest gives way.
pub const MOST_SESSIONS: usize = 50;

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// Its key: the SHA-256 (hex) of the cookie. Never shown.
    pub hash: String,
    /// What is kept of it.
    pub session: Session,
    /// The newest act of a person under it, to a twentieth of the time after which it is idle.
    pub used: StoreTime,
}

/// An API token. The secret is `sol_` + random; the key is its SHA-256 (hex).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ApiToken {
    /// Short public id, for listing and revoking.
    pub id: String,
    pub user: UserName,
    pub name: String,
    /// Set by the store.
    pub created: StoreTime,
    /// `None`: does not expire. Set by the store from the `lifetime` it is given.
    pub expires: Option<StoreTime>,
    /// In dispatch it acts for this collector only; `None`: for any.
    #[serde(default)]
    pub collector: Option<CollectorName>,
    /// Of sources it acts on these only. A token that names anything here or below acts on nothing else.
    #[serde(default)]
    pub sources: Vec<SourceName>,
    /// Of rotations on these.
    #[serde(default)]
    pub rotations: Vec<RotationName>,
    /// Of leases of programs on these.
    #[serde(default)]
    pub leases: Vec<JobName>,
    /// Of jobs on these.
    #[serde(default)]
    pub jobs: Vec<JobName>,
    /// Puts tasks for its sources, whatever its role.
    #[serde(default)]
    pub put: bool,
    /// When it was shown last, to a minute; set by the store.
    #[serde(default)]
    pub last_used: Option<StoreTime>,
}

impl ApiToken {
    /// A token as the store is given it: bound to nothing.
    #[must_use]
    pub fn new(user: UserName, name: String) -> Self {
        Self {
            id: String::new(),
            user,
            name,
            created: StoreTime(0),
            expires: None,
            collector: None,
            sources: Vec::new(),
            rotations: Vec::new(),
            leases: Vec::new(),
            jobs: Vec::new(),
            put: false,
            last_used: None,
        }
    }
}

/// A one-time sign-in link. The key is the SHA-256 (hex) of its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// For whom; `None`: creates the first admin.
    pub user: Option<UserName>,
    /// Its bearer sets the account's password (an invitation, a reset); else the link signs in.
    pub sets_password: bool,
}

/// Transitions and readings of credentials. Expired ones are never returned.
#[async_trait]
pub trait Credentials {
    /// Opens a session that ends `lifetime` from now at the latest. Of more than [`MOST_SESSIONS`] of one account the oldest ends.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait).
    async fn open_session(&self, hash: &str, session: &Session, lifetime: Duration) -> Result<()>;

    /// Reads a session and notes its use; one unused for `idle` is gone.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn session(&self, hash: &str, idle: Duration) -> Result<Option<Session>>;

    /// Reads a session as [`Self::session`] does, without noting a use: for what no person did.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn peek_session(&self, hash: &str, idle: Duration) -> Result<Option<Session>>;

    /// The living sessions of `user`, or of everybody, newest first.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn sessions(&self, user: Option<&UserName>, idle: Duration) -> Result<Vec<OpenSession>>;

    /// Ends one session, or all of `user` when `hash` is `None`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn close_sessions(&self, user: &UserName, hash: Option<&str>) -> Result<()>;

    /// Stores an API token.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn add_token(
        &self,
        hash: &str,
        token: &ApiToken,
        lifetime: Option<Duration>,
    ) -> Result<()>;

    /// Reads an API token by the hash of its secret.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn token(&self, hash: &str) -> Result<Option<ApiToken>>;

    /// Notes that a token was shown, unless that was noted less than `every` ago.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn use_token(&self, hash: &str, every: Duration) -> Result<()>;

    /// All living API tokens, oldest first.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn tokens(&self) -> Result<Vec<ApiToken>>;

    /// Revokes an API token by its public id.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn revoke_token(&self, id: &str) -> Result<()>;

    /// Stores a one-time link. It is for the account that has that name *now*: when that one is removed, it does not work,
    /// also to a later account of the same name. A link that sets a password ends earlier ones that do so for that account.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] when there is no such account, [`super::StoreError::Unavailable`].
    async fn add_link(&self, hash: &str, link: &Link, lifetime: Duration) -> Result<()>;

    /// Reads a link; with `take` it is used up in the same step: of two takers one gets it.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn link(&self, hash: &str, take: bool) -> Result<Option<Link>>;

    /// Counts an attempt to sign in and returns zero: it is admitted. Or returns how long it must wait, and counts nothing. Of attempts
    /// at once each sees those before it.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn try_sign_in(&self, ask: &SignIn) -> Result<Duration>;

    /// Reports the outcome of a counted attempt. A wrong password stays counted and need not be said.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn settle_sign_in(&self, ask: &SignIn, tried: Tried) -> Result<()>;

    /// Counts one failure for `key` within a sliding `window`, or none with `add` false; returns the count.
    /// `clear` forgets instead.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn failures(&self, key: &str, step: Count, window: Duration) -> Result<u32>;
}

/// An attempt to sign in; both are hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct SignIn {
    pub account: String,
    pub address: String,
}

/// What became of an attempt that was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// The password was right.
    Right,
    /// The password was not checked.
    Unchecked,
}

/// What [`Credentials::failures`] does before it returns the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Count {
    Look,
    Add,
    Clear,
}
