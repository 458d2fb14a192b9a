//! `/api/v1/users`: accounts, for admins.

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use serde::Deserialize;

use super::{Answer, answer, read};
use crate::Web;
use crate::acts::account;
use crate::auth::{Caller, Shown};
use crate::error::WebError;
use soloist_domain::name::{JobName, UserName};
use soloist_ops::{accounts, external};
use soloist_store::accounts::{External, NO_PASSWORD, Role, User};
use soloist_view::people::{ChangedUser, UserView, Users, roles};
use soloist_view::words::Language;

/// All accounts.
#[utoipa::path(get, path = "/api/v1/users", tag = "accounts", operation_id = "list_users",
    responses((status = 200, description = "The accounts, by name.", body = Users)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<Users> {
    let users = accounts::list(&web.store, &caller.actor()).await?;
    answer(Users { users: users.into_iter().map(UserView::from).collect() })
}

/// One account.
#[utoipa::path(get, path = "/api/v1/users/{user}", tag = "accounts", operation_id = "get_user",
    params(("user" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The account.", body = UserView)))]
pub async fn one(web: web::Data<Web>, caller: Caller, user: web::Path<String>) -> Answer<UserView> {
    answer(accounts::one(&web.store, &caller.actor(), &user).await?.into())
}

/// An account to be made.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUserBody {
    /// Its name.
    #[schema(value_type = String, format = "name")]
    pub name: UserName,
    /// What it may do.
    #[schema(schema_with = roles, example = "operator")]
    pub role: Role,
    /// At least 10 characters, at most 1,024 bytes, and not easily guessed. Left out: the person sets it with the one-time link in
    /// the answer; collectors have none.
    #[schema(min_length = 10, max_length = 1_024)]
    pub password: Option<String>,
    /// How the person is called, in any script; one line.
    #[schema(min_length = 1, max_length = 64)]
    pub display_name: Option<String>,
    /// In which language the person reads.
    pub language: Option<Language>,
}

/// Makes an account. Without a password the answer has a one-time link (48 hours) with which the person sets one.
#[utoipa::path(post, path = "/api/v1/users", tag = "accounts", operation_id = "add_user",
    request_body = NewUserBody,
    responses((status = 201, description = "The account.", body = ChangedUser)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let body: NewUserBody = read(&body)?;
    Ok(HttpResponse::Created().json(add(&web, &caller, body).await?))
}

/// Makes an account, for API and page.
///
/// # Errors
/// As [`accounts::add`]; 400 for a weak password.
pub async fn add(web: &Web, caller: &Caller, body: NewUserBody) -> Result<ChangedUser, WebError> {
    let NewUserBody { name, role, password, display_name, language } = body;
    let actor = caller.actor();
    let display_name = accounts::display_name(&display_name.unwrap_or_default())?;
    let invited = password.is_none() && role != Role::Collector;
    let password = match password {
        Some(password) => account::hash(web, &name, display_name.clone(), password).await?,
        None => NO_PASSWORD.to_owned(),
    };
    let language = language.map(|language| language.as_str().to_owned());
    let user = User { display_name, language, ..User::new(name, role, password) };
    accounts::add(&web.store, &actor, &user).await?;
    let link = match invited {
        true => Some(accounts::invite(&web.store, &actor, &user, &web.config().public_url).await?),
        false => None,
    };
    let user = accounts::one(&web.store, &actor, user.name.as_str()).await?;
    Ok(ChangedUser { user: user.into(), link })
}

/// What is to be changed of an account; what is left out stays.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChanges {
    /// Another role. It signs the account out everywhere.
    #[serde(default)]
    #[schema(schema_with = roles, example = "viewer")]
    pub role: Option<Role>,
    /// How the person is called, in any script; one line. Empty takes it away.
    #[schema(max_length = 64)]
    pub display_name: Option<String>,
    /// At least 10 characters, at most 1,024 bytes, and not easily guessed. It signs the account out everywhere, and ends its API
    /// tokens. For the caller's own account there is `PUT /api/v1/me/password`.
    #[schema(min_length = 10, max_length = 1_024)]
    pub password: Option<String>,
    /// Takes the password away, signs the account out everywhere and ends its API tokens; the answer has the one-time link (48
    /// hours) with which a new one is set.
    #[serde(default)]
    pub reset: bool,
    /// What the provider of single sign-on calls the person for ever (`sub`); empty: no person. It signs the account out everywhere.
    #[schema(max_length = 255)]
    pub subject: Option<String>,
}

/// Changes an account.
#[utoipa::path(patch, path = "/api/v1/users/{user}", tag = "accounts", operation_id = "change_user",
    params(("user" = String, Path, description = "Its name.")),
    request_body = UserChanges,
    responses((status = 200, description = "The account.", body = ChangedUser)))]
pub async fn patch(
    web: web::Data<Web>,
    caller: Caller,
    user: web::Path<String>,
    body: Bytes,
) -> Answer<ChangedUser> {
    let UserChanges { role, display_name, password, reset, subject } = read(&body)?;
    let (store, actor) = (&web.store, caller.actor());
    let user = accounts::one(store, &actor, &user).await?;
    let name = &user.name;
    // Everything that may be wrong is found before anything is changed.
    if password.is_some() && reset {
        return Err(WebError::bad("field reset: leave it out, or leave password out"));
    }
    // Whoever sits at the terminal shows no old password, whatever the login name is.
    if password.is_some() && *name == caller.user && caller.shown != Shown::Terminal {
        return Err(WebError::Conflict {
            detail: "this is your own account: change your password with PUT /api/v1/me/password"
                .into(),
        });
    }
    let external = match (subject.as_deref(), &web.config().oidc) {
        (None, _) => None,
        (Some(""), _) => Some(None),
        (Some(subject), Some(rules)) => {
            let (issuer, subject) = (rules.issuer.clone(), subject.to_owned());
            Some(Some(External { issuer, subject }))
        }
        (Some(_), None) => {
            return Err(WebError::bad(
                "field subject: the configuration of this node has no [oidc], so nobody knows of which provider",
            ));
        }
    };
    let shown = match &display_name {
        Some(text) => Some(accounts::display_name(text)?),
        None => None,
    };
    let hash = match password {
        Some(password) => {
            let called = user.display_name.clone();
            Some(account::hash(&web, name, called, password).await?)
        }
        None => None,
    };
    if let Some(role) = role.filter(|role| *role != user.role) {
        accounts::change_role(store, &actor, name, role).await?;
    }
    if let Some(shown) = shown.filter(|shown| *shown != user.display_name) {
        accounts::change_display_name(store, &actor, name, shown).await?;
    }
    if let Some(external) = external {
        external::link(store, &actor.signature, name, external).await?;
    }
    if let Some(hash) = hash {
        accounts::change_password(store, &actor, name, hash).await?;
    }
    let user = accounts::one(store, &actor, name.as_str()).await?;
    let link = match reset {
        true => Some(accounts::reset(store, &actor, &user, &web.config().public_url).await?),
        false => None,
    };
    let mut user = UserView::from(user);
    user.has_password &= !reset;
    answer(ChangedUser { user, link })
}

/// Removes an account with its sessions, tokens and links; what it wanted, it no longer wants. The last admin stays.
#[utoipa::path(delete, path = "/api/v1/users/{user}", tag = "accounts", operation_id = "remove_user",
    params(("user" = String, Path, description = "Its name.")),
    responses((status = 204, description = "It is removed.")))]
pub async fn delete(
    web: web::Data<Web>,
    caller: Caller,
    user: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    remove(&web, &caller, &user).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Removes an account, for API and page.
///
/// # Errors
/// As [`accounts::remove`].
pub async fn remove(web: &Web, caller: &Caller, user: &str) -> Result<(), WebError> {
    let actor = caller.actor();
    let user = accounts::one(&web.store, &actor, user).await?;
    let jobs: Vec<JobName> = web.live.jobs().iter().map(|job| job.name.clone()).collect();
    accounts::remove(&web.store, &actor, &user, &jobs).await?;
    Ok(())
}
