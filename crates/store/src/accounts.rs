//! Accounts: who may read, switch and administer.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use soloist_domain::name::UserName;
use soloist_domain::time::StoreTime;

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Looks and switches.
    Operator,
    /// Everything.
    Admin,
    /// Only claims, extends, reports, takes and passes turns.
    Collector,
}

impl Role {
    /// The word in JSON and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Collector => "collector",
        }
    }

    /// The word in an English sentence: `a viewer`, `an operator`.
    #[must_use]
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Viewer => "a viewer",
            Self::Operator => "an operator",
            Self::Admin => "an admin",
            Self::Collector => "a collector",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        [Self::Viewer, Self::Operator, Self::Admin, Self::Collector]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no role: use viewer, operator, admin or collector"))
    }
}

/// A person's identity at an identity provider (OpenID Connect Core 1.0, section 5.7: only both together are unique and stay).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct External {
    pub issuer: String,
    pub subject: String,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Its name.
    pub name: UserName,
    /// What it may do.
    pub role: Role,
    /// argon2id in PHC string format; empty: it has none and signs in by [`Self::external`] only.
    pub password: String,
    /// When it was made (store's clock; set by the store).
    pub created: StoreTime,
    /// `en` or `zh`, once chosen.
    pub language: Option<String>,
    /// `light` or `dark`, once chosen; the system's preference otherwise.
    pub theme: Option<String>,
    /// In which zone instants are said, by its IANA name, once chosen; that of the browser otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How the person is called, in any script: one line, as [`clean_line`](soloist_domain::line::clean_line) allows it. It is
    /// no identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Who this is at the provider of single sign-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// The groups that the provider named at the newest sign-in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// Marks an account without a password. It is no PHC string, so nothing verifies against it. It stands for invited accounts,
/// accounts that sign in by [`User::external`] only, and collectors, which only use tokens.
pub const NO_PASSWORD: &str = "!";

impl User {
    /// An account as the store is given it.
    #[must_use]
    pub fn new(name: UserName, role: Role, password: String) -> Self {
        Self {
            name,
            role,
            password,
            created: StoreTime(0),
            language: None,
            theme: None,
            time_zone: None,
            display_name: None,
            external: None,
            groups: Vec::new(),
        }
    }

    /// The hash to hold a password against. `None`: it has no password.
    #[must_use]
    pub fn password_hash(&self) -> Option<&str> {
        Some(self.password.as_str()).filter(|hash| ![NO_PASSWORD, ""].contains(hash))
    }

    /// Whether it can sign in without a provider.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.password_hash().is_some()
    }
}

/// What is to be changed of an account; all else stays as it is by then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Another role. It signs the account out everywhere.
    pub role: Option<Role>,
    /// Another password (argon2id in PHC string format). It signs the account out everywhere.
    pub password: Option<String>,
    /// Another language.
    pub language: Option<String>,
    /// Another theme; `Some(None)` is that of the system.
    pub theme: Option<Option<String>>,
    /// Another time zone; `Some(None)` is that of the browser.
    pub time_zone: Option<Option<String>>,
    /// Another display name; `Some(None)` takes it away.
    pub display_name: Option<Option<String>>,
    /// Who this is at the provider; `Some(None)` removes the identity. It signs the account out everywhere.
    pub external: Option<Option<External>>,
    /// The groups that the provider names.
    pub groups: Option<Vec<String>>,
    /// The one session that stays when all others end (the hash): that of a person who changes their own password.
    pub keep: Option<String>,
    /// API tokens end too: a person who had the old password may have made them.
    pub end_tokens: bool,
}

impl Changes {
    /// Whether the person who is signed in must sign in again.
    #[must_use]
    pub fn ends_sessions(&self) -> bool {
        self.role.is_some() || self.password.is_some() || self.external.is_some()
    }

    /// Makes them.
    pub fn apply(&self, user: &mut User) {
        let Self {
            role, password, language, theme, time_zone, display_name, external, groups, ..
        } = self.clone();
        user.role = role.unwrap_or(user.role);
        if let Some(password) = password {
            user.password = password;
        }
        user.language = language.or(user.language.take());
        if let Some(theme) = theme {
            user.theme = theme;
        }
        if let Some(time_zone) = time_zone {
            user.time_zone = time_zone;
        }
        if let Some(display_name) = display_name {
            user.display_name = display_name;
        }
        if let Some(groups) = groups {
            user.groups = groups;
        }
        if let Some(external) = external {
            user.external = external;
        }
    }
}

/// Transitions and readings of accounts.
#[async_trait]
pub trait Accounts {
    /// Adds an account. With `only_if_no_admin`, only while no admin exists. While no account at all exists, one of many that come
    /// at once is made; beside accounts that are no admins, two that come at the same instant may both be.
    ///
    /// # Errors
    /// [`super::StoreError::Exists`] (also when `only_if_no_admin` and there is an admin), [`super::StoreError::Unavailable`].
    async fn add_user(&self, user: &User, only_if_no_admin: bool) -> Result<()>;

    /// Makes `changes` to the newest account of that name, and returns it. Nothing else of it is written, so of two who change
    /// different things none undoes what the other did. Another role or password ends all sessions but [`Changes::keep`] in the
    /// same step; another password ends all one-time links of the account, too.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::LastAdmin`], [`super::StoreError::Unavailable`].
    async fn change_user(&self, name: &UserName, changes: &Changes) -> Result<User>;

    /// Removes an account with its sessions, tokens and links. Its participations are ended by the caller first.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::LastAdmin`], [`super::StoreError::Unavailable`].
    async fn remove_user(&self, name: &UserName) -> Result<()>;

    /// One account.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn user(&self, name: &UserName) -> Result<Option<User>>;

    /// All accounts, by name.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn users(&self) -> Result<Vec<User>>;
}
