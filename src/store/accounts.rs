//! Accounts: who may look, switch and administer.

use serde::{Deserialize, Serialize};

use super::Result;
use crate::domain::name::UserName;
use crate::domain::time::StoreTime;

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

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Its name.
    pub name: UserName,
    /// What it may do.
    pub role: Role,
    /// argon2id in PHC string format.
    pub password: String,
    /// When it was made (store's clock; set by the store).
    pub created: StoreTime,
    /// `en` or `zh`, once chosen.
    pub language: Option<String>,
    /// `light` or `dark`, once chosen; the system's preference otherwise.
    pub theme: Option<String>,
}

/// Transitions and readings of accounts.
#[expect(async_fn_in_trait, reason = "never used as a trait object; the enum Store forwards")]
pub trait Accounts {
    /// Adds an account. With `only_if_first`, atomically only while no account exists.
    ///
    /// # Errors
    /// [`super::StoreError::Exists`] (also when `only_if_first` and there is any), [`super::StoreError::Unavailable`].
    async fn add_user(&self, user: &User, only_if_first: bool) -> Result<()>;

    /// Replaces an account's role, password and preferences.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn update_user(&self, user: &User) -> Result<()>;

    /// Removes an account with its sessions and tokens. Its participations are ended by the caller first.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
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
