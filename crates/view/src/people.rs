//! Accounts, tokens and sessions as JSON: what the API answers and `--json` prints, defined once. Nothing secret is in it.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::words::At;
use soloist_domain::name::UserName;
use soloist_store::accounts::{NO_PASSWORD, Role, User};
use soloist_store::credentials::{ApiToken, OpenSession};

/// Display names, by account; those who have none are not in it.
pub type DisplayNames = Arc<HashMap<UserName, String>>;

/// The display names of `users`.
#[must_use]
pub fn display_names(users: Vec<User>) -> DisplayNames {
    let named = users.into_iter().filter_map(|user| Some((user.name, user.display_name?)));
    Arc::new(named.collect())
}

/// The words of [`Role`], for the OpenAPI document.
#[must_use]
pub fn roles() -> Object {
    let words = [Role::Viewer, Role::Operator, Role::Admin, Role::Collector].map(Role::as_str);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// An account.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    /// Its name.
    pub name: String,
    /// What it may do.
    #[schema(schema_with = roles, example = "operator")]
    pub role: Role,
    /// How the person is called; left out while it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// When it was made.
    pub created: At,
    /// `en` or `zh`, once chosen.
    pub language: Option<String>,
    /// Whether it has a password. Without one it was invited, or its password was taken away.
    pub has_password: bool,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            name: user.name.to_string(),
            role: user.role,
            display_name: user.display_name,
            created: At(user.created),
            language: user.language,
            has_password: user.password != NO_PASSWORD,
        }
    }
}

/// Accounts, by name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Users {
    /// The accounts.
    pub users: Vec<UserView>,
}

/// An account that was made or changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedUser {
    /// As it is now.
    #[serde(flatten)]
    pub user: UserView,
    /// The one-time link (48 hours) with which the person sets the password; left out when there is a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// An API token; its secret is never shown again.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    /// For revoking it.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// Whose role it has.
    pub user: String,
    /// When it was made.
    pub created: At,
    /// When it ends; null: when it is revoked.
    pub expires: Option<At>,
    /// When it was shown last, to a minute; null: never.
    pub last_used: Option<At>,
    /// In dispatch for this collector only; null: for any.
    pub collector: Option<String>,
    /// For these sources. A token with any name here or below is for nothing else.
    pub sources: Vec<String>,
    /// For these rotations.
    pub rotations: Vec<String>,
    /// For these leases of programs.
    pub leases: Vec<String>,
    /// For these jobs.
    pub jobs: Vec<String>,
    /// May put tasks for its sources though its account is a collector.
    #[serde(default)]
    pub put: bool,
}

impl From<ApiToken> for TokenView {
    fn from(token: ApiToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            user: token.user.to_string(),
            created: At(token.created),
            expires: token.expires.map(At),
            last_used: token.last_used.map(At),
            collector: token.collector.map(|name| name.to_string()),
            sources: token.sources.iter().map(ToString::to_string).collect(),
            rotations: token.rotations.iter().map(ToString::to_string).collect(),
            leases: token.leases.iter().map(ToString::to_string).collect(),
            jobs: token.jobs.iter().map(ToString::to_string).collect(),
            put: token.put,
        }
    }
}

/// Tokens, oldest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<TokenView>,
}

/// A token that was made just now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// What can be shown again.
    #[serde(flatten)]
    pub token: TokenView,
    /// For the header `Authorization: Bearer`; it is not shown again.
    #[schema(example = "sol_...")]
    pub secret: String,
}

/// A browser that is signed in.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    /// For ending it.
    pub id: String,
    /// Whose.
    pub user: String,
    /// When it signed in.
    pub created: At,
    /// The newest page or form, to about half an hour.
    pub last_seen: At,
    /// It ends then in any case.
    pub expires: At,
    /// The address that signed in.
    pub from: String,
    /// What its browser calls itself; left out when it said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// It carries this very request.
    pub current: bool,
}

impl SessionView {
    /// `id`: its public one; `current`: the key of the session that asks.
    #[must_use]
    pub fn of(open: OpenSession, id: String, current: &str) -> Self {
        let OpenSession { hash, session, used } = open;
        Self {
            id,
            user: session.user.to_string(),
            created: At(session.created),
            last_seen: At(used),
            expires: At(session.expires),
            from: session.from,
            user_agent: session.user_agent,
            current: hash == current,
        }
    }
}

/// Sessions, newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Sessions {
    /// The sessions.
    pub sessions: Vec<SessionView>,
}

/// Who asks.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The account.
    pub name: String,
    /// What it may do.
    #[schema(schema_with = roles, example = "operator")]
    pub role: Role,
    /// How the person is called; left out while it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// By what it asks: `session` or `token`.
    #[schema(example = "token")]
    pub by: String,
    /// The id of the session; null with a token.
    pub session: Option<String>,
    /// The token that asks; null with a session.
    #[serde(default)]
    pub token: Option<TokenView>,
    /// The node that answers.
    #[serde(default)]
    pub node: String,
    /// The clock of that node.
    #[serde(default)]
    #[schema(value_type = At)]
    pub now: Option<At>,
}
