//! Accounts: who may look, switch and administer.
//!
//! Passwords are typed or piped, never an argument: arguments stand in everybody's process list.

use std::io::{IsTerminal as _, Read as _};

use serde::Serialize;

use super::context::administrator;
use super::output::{local, print, print_json, rfc3339, table};
use super::{CommandContext, Failure, ListArgs, UserCommand};
use crate::domain::name::UserName;
use crate::domain::time::StoreTime;
use crate::ops::{OpsError, accounts, external};
use crate::secrets::{PasswordError, hash_password};
use crate::store::StoreError;
use crate::store::accounts::{Accounts as _, External, Role, User};

#[derive(Serialize)]
struct UsersAnswer {
    users: Vec<UserLine>,
}

#[derive(Serialize)]
struct UserLine {
    name: UserName,
    role: Role,
    created: String,
}

/// `user ...`.
pub(super) async fn act(context: &CommandContext, command: UserCommand) -> Result<(), Failure> {
    match command {
        UserCommand::Add { name, role, password_stdin } => {
            add(context, name, role, password_stdin).await
        }
        UserCommand::List(args) => list(context, &args).await,
        UserCommand::Role { name, role } => change_role(context, &name, role).await,
        UserCommand::Passwd { name, password_stdin } => {
            passwd(context, &name, password_stdin).await
        }
        UserCommand::Link { name, subject, .. } => link(context, &name, subject).await,
        UserCommand::Remove { name } => remove(context, &name).await,
    }
}

async fn add(
    context: &CommandContext,
    name: UserName,
    role: Role,
    password_stdin: bool,
) -> Result<(), Failure> {
    let taken = || {
        Failure::Refused(format!(
            "there is an account {name} already: change it with soloist user role, or soloist user passwd"
        ))
    };
    // Asked first, so that nobody types a password in vain.
    if context.store.user(&name).await?.is_some() {
        return Err(taken());
    }
    let user = User {
        name: name.clone(),
        role,
        password: password(&name, password_stdin)?,
        created: StoreTime(0),
        language: None,
        theme: None,
        external: None,
    };
    let added = accounts::add(&context.store, &administrator(), &user, false).await;
    added.map_err(|error| match error {
        OpsError::Store(StoreError::Exists(_)) => taken(),
        other => other.into(),
    })?;
    print(&format!("Account {name} added: {}.", role.as_str()))
}

async fn list(context: &CommandContext, args: &ListArgs) -> Result<(), Failure> {
    let users = context.store.users().await?;
    if args.json {
        let line = |user: User| UserLine {
            name: user.name,
            role: user.role,
            created: rfc3339(user.created),
        };
        return print_json(&UsersAnswer { users: users.into_iter().map(line).collect() });
    }
    if users.is_empty() {
        return print(
            "No account yet. Make the first admin with: soloist user add NAME --role admin, or soloist link",
        );
    }
    let row = |user: &User| {
        vec![user.name.to_string(), user.role.as_str().to_owned(), local(user.created)]
    };
    print(&table(&["NAME", "ROLE", "CREATED"], &users.iter().map(row).collect::<Vec<_>>()))
}

async fn change_role(context: &CommandContext, name: &UserName, role: Role) -> Result<(), Failure> {
    let user = context.account(name).await?;
    if user.role == role {
        return print(&format!("{name} is {} already.", role.as_str()));
    }
    accounts::change_role(&context.store, &administrator(), &user.name, role).await?;
    print(&format!("{name} is now {}; signed out everywhere.", role.as_str()))
}

async fn passwd(
    context: &CommandContext,
    name: &UserName,
    password_stdin: bool,
) -> Result<(), Failure> {
    context.account(name).await?;
    let hash = password(name, password_stdin)?;
    accounts::change_password(&context.store, &administrator(), name, hash).await?;
    print(&format!(
        "The password of {name} is changed; signed out everywhere. Its API tokens live on: soloist token list"
    ))
}

async fn link(
    context: &CommandContext,
    name: &UserName,
    subject: Option<String>,
) -> Result<(), Failure> {
    let before = context.account(name).await?;
    let external = match (subject, &context.config.oidc) {
        (None, _) => None,
        (Some(subject), Some(rules)) => Some(External { issuer: rules.issuer.clone(), subject }),
        (Some(_), None) => {
            return Err(Failure::Usage(
                "the configuration has no [oidc], so nobody knows of which provider: add it, or say --config FILE".to_owned(),
            ));
        }
    };
    let linked = external.is_some();
    external::link(&context.store, &administrator(), name, external).await?;
    print(&match (linked, before.is_local()) {
        (true, _) => format!(
            "{name} is linked: that person signs in by single sign-on. Signed out everywhere."
        ),
        (false, true) => {
            format!("{name} is linked with nobody and signs in by password. Signed out everywhere.")
        }
        (false, false) => format!(
            "{name} is linked with nobody and has no password: it cannot sign in until soloist user passwd {name}. Signed out everywhere."
        ),
    })
}

async fn remove(context: &CommandContext, name: &UserName) -> Result<(), Failure> {
    let user = context.account(name).await?;
    let names: Vec<_> = context.jobs().iter().map(|job| job.name.clone()).collect();
    let left = accounts::remove(&context.store, &administrator(), &user, &names).await?;
    let last = |last: &bool| if *last { " (was the last: this stops it)" } else { "" };
    let left: Vec<String> = left.iter().map(|(job, was)| format!("{job}{}", last(was))).collect();
    let left = match left.as_slice() {
        [] => String::new(),
        jobs => format!(" It no longer wants {}.", jobs.join(", ")),
    };
    print(&format!("Account {name} removed, with its sessions and tokens.{left}"))
}

/// Reads a new password and hashes it.
fn password(name: &UserName, from_stdin: bool) -> Result<String, Failure> {
    let text = if from_stdin { piped()? } else { typed(name)? };
    hash_password(&text).map_err(|error| match error {
        PasswordError::TooShort | PasswordError::TooLong => Failure::Usage(error.to_string()),
        PasswordError::Hash(_) => Failure::Failed(error.to_string()),
    })
}

fn piped() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().take(64 * 1024).read_to_string(&mut text).map_err(|error| {
        Failure::Usage(format!("the password on standard input cannot be read: {error}"))
    })?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.contains('\n') {
        return Err(Failure::Usage(
            "standard input has several lines: pipe the password alone".to_owned(),
        ));
    }
    Ok(line.to_owned())
}

fn typed(name: &UserName) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "there is no terminal to ask for a password: pipe it in with --password-stdin"
                .to_owned(),
        ));
    }
    let ask = |prompt: String| {
        rpassword::prompt_password(prompt)
            .map_err(|error| Failure::Failed(format!("the password cannot be read: {error}")))
    };
    let first = ask(format!("New password for {name} (at least 10 characters): "))?;
    if first != ask("The same again: ".to_owned())? {
        return Err(Failure::Usage("the two passwords differ: nothing was changed".to_owned()));
    }
    Ok(first)
}
