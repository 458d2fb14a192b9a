//! Accounts, tokens and sessions. A password goes to a node as it was typed, to be checked and hashed there.

use serde_json::{Value, json};

use super::super::context::administrator;
use super::super::{Failure, tokens};
use super::{Office, Server};
use soloist_domain::name::UserName;
use soloist_ops::credentials::{self, Expiry};
use soloist_ops::{accounts, external};
use soloist_remote::{Call, RemoteError, address, part};
use soloist_secrets::{PasswordError, new_password, session_id};
use soloist_store::accounts::{Accounts as _, External, NO_PASSWORD, Role, User};
use soloist_store::credentials::{ApiToken, Credentials as _, OpenSession};
use soloist_view::lists::Jobs;
use soloist_view::people::{
    ChangedUser, NewToken, SessionView, Sessions, TokenView, Tokens, UserView, Users,
};
use soloist_view::words::{Language, say};

/// An account to be made.
pub(crate) struct NewUser {
    pub(crate) name: UserName,
    pub(crate) role: Role,
    pub(crate) display_name: Option<String>,
    /// As it was typed; `None`: the person sets it by a one-time link.
    pub(crate) password: Option<String>,
}

fn at(user: &UserName) -> String {
    format!("/api/v1/users/{}", part(user.as_str()))
}

impl Server {
    async fn user(&self, name: &UserName) -> Result<UserView, Failure> {
        self.get(at(name)).await
    }

    async fn change(&self, name: &UserName, changes: &Value) -> Result<ChangedUser, Failure> {
        Ok(self.client.ask(Call::patch(at(name)).with(changes)).await?)
    }
}

impl Office {
    /// Whether there is an account of that name.
    pub(crate) async fn has_user(&self, name: &UserName) -> Result<bool, Failure> {
        match self {
            Self::Store(context) => Ok(context.store.user(name).await?.is_some()),
            Self::Server(server) => match server.user(name).await {
                Ok(_) => Ok(true),
                Err(Failure::NotFound(_)) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }

    /// Makes an account; the one-time link, if it has no password. `added` is called once it is made.
    pub(crate) async fn add_user(
        &self,
        new: NewUser,
        added: impl FnOnce(),
    ) -> Result<Option<String>, Failure> {
        let NewUser { name, role, display_name, password } = new;
        match self {
            Self::Store(context) => {
                let actor = administrator();
                let invited = password.is_none();
                let hash = match password {
                    Some(text) => hashed(&name, &text)?,
                    None => NO_PASSWORD.to_owned(),
                };
                let user = User { display_name, ..User::new(name, role, hash) };
                accounts::add(&context.store, &actor, &user).await?;
                added();
                if !invited {
                    return Ok(None);
                }
                let at = tokens::served(context).await?;
                Ok(Some(accounts::invite(&context.store, &actor, &user, &at).await?))
            }
            Self::Server(server) => {
                let mut body = json!({"name": name, "role": role});
                if let Some(password) = password {
                    body["password"] = password.into();
                }
                if let Some(shown) = display_name {
                    body["display_name"] = shown.into();
                }
                let call = Call::post("/api/v1/users").with(&body);
                let ChangedUser { link, .. } = server.client.ask(call).await?;
                added();
                Ok(link)
            }
        }
    }

    /// All accounts.
    pub(crate) async fn users(&self) -> Result<Users, Failure> {
        match self {
            Self::Store(context) => {
                let users = context.store.users().await?;
                Ok(Users { users: users.into_iter().map(UserView::from).collect() })
            }
            Self::Server(server) => server.get("/api/v1/users").await,
        }
    }

    /// Gives an account another role; `false` when it has that already.
    pub(crate) async fn change_role(&self, name: &UserName, role: Role) -> Result<bool, Failure> {
        match self {
            Self::Store(context) => {
                let user = context.account(name).await?;
                if user.role == role {
                    return Ok(false);
                }
                accounts::change_role(&context.store, &administrator(), name, role).await?;
            }
            Self::Server(server) => {
                if server.user(name).await?.role == role {
                    return Ok(false);
                }
                server.change(name, &json!({"role": role})).await?;
            }
        }
        Ok(true)
    }

    /// Gives an account another password, which is asked for once it is known that there is such an account.
    pub(crate) async fn change_password(
        &self,
        name: &UserName,
        ask: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Store(context) => {
                context.account(name).await?;
                let hash = hashed(name, &ask()?)?;
                accounts::change_password(&context.store, &administrator(), name, hash).await?;
            }
            Self::Server(server) => {
                server.user(name).await?;
                server.change(name, &json!({"password": ask()?})).await?;
            }
        }
        Ok(())
    }

    /// Takes a password away; the one-time link by which a new one is set.
    pub(crate) async fn reset_password(&self, name: &UserName) -> Result<String, Failure> {
        match self {
            Self::Store(context) => {
                let user = context.account(name).await?;
                let at = tokens::served(context).await?;
                Ok(accounts::reset(&context.store, &administrator(), &user, &at).await?)
            }
            Self::Server(server) => {
                let changed = server.change(name, &json!({"reset": true})).await?;
                changed.link.ok_or_else(|| Failure::Failed("the node answered no link".to_owned()))
            }
        }
    }

    /// Says who an account is at the provider of single sign-on; the account after it.
    pub(crate) async fn link_user(
        &self,
        name: &UserName,
        subject: Option<String>,
    ) -> Result<UserView, Failure> {
        match self {
            Self::Store(context) => {
                context.account(name).await?;
                let external = match (subject, &context.config.oidc) {
                    (None, _) => None,
                    (Some(subject), Some(rules)) => {
                        Some(External { issuer: rules.issuer.clone(), subject })
                    }
                    (Some(_), None) => {
                        return Err(Failure::Usage(
                            "the configuration has no [oidc], so nobody knows of which provider: add it, or say --config FILE".to_owned(),
                        ));
                    }
                };
                let by = administrator().signature;
                Ok(external::link(&context.store, &by, name, external).await?.into())
            }
            Self::Server(server) => {
                let body = json!({"subject": subject.unwrap_or_default()});
                Ok(server.change(name, &body).await?.user)
            }
        }
    }

    /// Removes an account; which jobs it wanted, and whether it was the last that did.
    pub(crate) async fn remove_user(
        &self,
        name: &UserName,
    ) -> Result<Vec<(String, bool)>, Failure> {
        match self {
            Self::Store(context) => {
                let user = context.account(name).await?;
                let names: Vec<_> = context.jobs().iter().map(|job| job.name.clone()).collect();
                let left =
                    accounts::remove(&context.store, &administrator(), &user, &names).await?;
                Ok(left.into_iter().map(|(job, last)| (job.to_string(), last)).collect())
            }
            Self::Server(server) => {
                let Jobs { jobs } = server.get("/api/v1/jobs").await?;
                server.client.tell(Call::delete(at(name))).await?;
                let wanted = jobs
                    .into_iter()
                    .filter(|job| job.participants.iter().any(|one| one.user == name.as_str()));
                Ok(wanted.map(|job| (job.name, job.participants.len() == 1)).collect())
            }
        }
    }

    /// Living API tokens.
    pub(crate) async fn tokens(&self) -> Result<Tokens, Failure> {
        match self {
            Self::Store(context) => {
                let tokens = context.store.tokens().await?;
                Ok(Tokens { tokens: tokens.into_iter().map(TokenView::from).collect() })
            }
            Self::Server(server) => server.get("/api/v1/tokens").await,
        }
    }

    /// Makes a token: what can be shown again, its secret, and the role of its account.
    pub(crate) async fn new_token(
        &self,
        token: ApiToken,
        expires: Expiry,
    ) -> Result<(TokenView, String, Role), Failure> {
        match self {
            Self::Store(context) => {
                let account = context.account(&token.user).await?;
                let actor = administrator();
                let made = credentials::new_token(&context.store, &actor, token, expires);
                let (token, secret) = made.await?;
                Ok((token.into(), secret, account.role))
            }
            Self::Server(server) => {
                let user = token.user.clone();
                let ApiToken { name, collector, sources, rotations, leases, jobs, put, .. } = token;
                let mut body = json!({
                    "name": name, "user": user, "collector": collector, "sources": sources,
                    "rotations": rotations, "leases": leases, "jobs": jobs, "put": put,
                });
                match expires {
                    Expiry::Usual => {}
                    Expiry::After(time) => {
                        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                        body["expires_in_ms"] = ms.into();
                    }
                    Expiry::Never => body["expires_in_ms"] = Value::Null,
                }
                let me = server.me().await?;
                let role =
                    if me.name == user.as_str() { me.role } else { server.user(&user).await?.role };
                let call = Call::post("/api/v1/tokens").with(&body);
                let NewToken { token, secret } = server.client.ask(call).await?;
                Ok((token, secret, role))
            }
        }
    }

    /// Revokes a token; whose it was.
    pub(crate) async fn revoke_token(&self, id: &str) -> Result<String, Failure> {
        match self {
            Self::Store(context) => {
                let token = credentials::revoke_token(&context.store, &administrator(), id).await?;
                Ok(token.user.to_string())
            }
            Self::Server(server) => {
                let Tokens { tokens } = server.get("/api/v1/tokens").await?;
                let call = Call::delete(format!("/api/v1/tokens/{}", part(id)));
                server.client.tell(call).await?;
                let user = tokens.into_iter().find(|token| token.id == id).map(|token| token.user);
                Ok(user.unwrap_or_else(|| "its account".to_owned()))
            }
        }
    }

    /// Where accounts are signed in: all, or this one.
    pub(crate) async fn sessions(&self, user: Option<&UserName>) -> Result<Sessions, Failure> {
        match self {
            Self::Store(context) => {
                if let Some(name) = user {
                    context.account(name).await?;
                }
                let open = credentials::sessions(&context.store, &administrator(), user).await?;
                let view = |one: OpenSession| {
                    let id = session_id(&one.hash);
                    SessionView::of(one, id, "")
                };
                Ok(Sessions { sessions: open.into_iter().map(view).collect() })
            }
            Self::Server(server) => {
                let all = server
                    .client
                    .ask(Call::get(address(
                        "/api/v1/sessions",
                        &[("user", user.map(ToString::to_string))],
                    )))
                    .await;
                match all {
                    // An account that is no admin sees its own.
                    Err(RemoteError::Refused { status: 403, detail }) => {
                        let me = server.me().await?;
                        match user {
                            Some(other) if me.name != other.as_str() => {
                                Err(Failure::Refused(detail))
                            }
                            _ => server.get("/api/v1/me/sessions").await,
                        }
                    }
                    all => Ok(all?),
                }
            }
        }
    }

    /// Ends a session; whose it was.
    pub(crate) async fn end_session(&self, id: &str) -> Result<String, Failure> {
        match self {
            Self::Store(context) => {
                let actor = administrator();
                let ended = credentials::end_session(&context.store, &actor, None, id).await?;
                Ok(ended.session.user.to_string())
            }
            Self::Server(server) => {
                let Sessions { sessions } = self.sessions(None).await?;
                let of = sessions.into_iter().find(|one| one.id == id).map(|one| one.user);
                let call = Call::delete(format!("/api/v1/sessions/{}", part(id)));
                match server.client.tell(call).await {
                    Err(RemoteError::Refused { status: 403, .. }) => {
                        let own = format!("/api/v1/me/sessions/{}", part(id));
                        server.client.tell(Call::delete(own)).await?;
                    }
                    done => done?,
                }
                Ok(of.unwrap_or_else(|| "its account".to_owned()))
            }
        }
    }
}

fn hashed(name: &UserName, text: &str) -> Result<String, Failure> {
    new_password(text, &[name.as_str()]).map_err(|error| match error {
        PasswordError::TooShort | PasswordError::TooLong => Failure::Usage(error.to_string()),
        PasswordError::Weak(why) => {
            let why: Vec<String> = why.iter().map(|id| say(Language::En, id, &[])).collect();
            Failure::Usage(why.join(" "))
        }
        PasswordError::Hash(_) | PasswordError::Busy => Failure::Failed(error.to_string()),
    })
}
