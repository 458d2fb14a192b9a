//! Accounts: who may look, switch and administer.
//!
//! Passwords are typed or piped, never an argument: arguments stand in everybody's process list.

use std::io::{IsTerminal as _, Read as _};

use super::context::administrator;
use super::output::{local, print, print_json, table};
use super::{CommandContext, Failure, ListArgs, UserCommand, tokens};
use crate::domain::name::UserName;
use crate::ops::{accounts, external};
use crate::secrets::{PasswordError, new_password};
use crate::store::accounts::{Accounts as _, External, NO_PASSWORD, Role, User};
use crate::view::people::{UserView, Users};
use crate::words::{Language, say};

/// `user ...`.
pub(super) async fn act(context: &CommandContext, command: UserCommand) -> Result<(), Failure> {
    match command {
        UserCommand::Add { name, role, password_stdin, invite, display_name } => {
            let how = if invite { Given::Invited } else { Given::Password(password_stdin) };
            add(context, name, role, how, display_name.as_deref()).await
        }
        UserCommand::List(args) => list(context, &args).await,
        UserCommand::Role { name, role } => change_role(context, &name, role).await,
        UserCommand::Passwd { name, password_stdin, invite } => {
            let how = if invite { Given::Invited } else { Given::Password(password_stdin) };
            passwd(context, &name, how).await
        }
        UserCommand::Link { name, subject, .. } => link(context, &name, subject).await,
        UserCommand::Remove { name } => remove(context, &name).await,
    }
}

async fn add(
    context: &CommandContext,
    name: UserName,
    role: Role,
    how: Given,
    display_name: Option<&str>,
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
    let display_name = match display_name {
        Some(text) => accounts::display_name(text)?,
        None => None,
    };
    let password = match how {
        Given::Password(from_stdin) => password(&name, from_stdin)?,
        Given::Invited => NO_PASSWORD.to_owned(),
    };
    let user = User { display_name, ..User::new(name.clone(), role, password) };
    let actor = administrator();
    if matches!(how, Given::Invited) && role == Role::Collector {
        return Err(Failure::Refused(format!(
            "collectors use tokens and no password: leave --invite out, then soloist token new --user {name}"
        )));
    }
    accounts::add(&context.store, &actor, &user).await?;
    match how {
        Given::Password(_) => print(&format!("Account {name} added: {}.", role.as_str())),
        Given::Invited => {
            let at = tokens::served(context).await?;
            let link = accounts::invite(&context.store, &actor, &user, &at).await?;
            eprintln!("soloist: account {name} added: {}", role.as_str());
            say_link(&name, &link)
        }
    }
}

/// How a password is given.
#[derive(Clone, Copy)]
enum Given {
    /// Here; on standard input, or else asked for.
    Password(bool),
    /// By whoever gets the link.
    Invited,
}

/// The link alone on standard output.
fn say_link(name: &UserName, link: &str) -> Result<(), Failure> {
    eprintln!("soloist: with this link {name} sets the password; it works once, for 48 hours");
    print(link)
}

async fn list(context: &CommandContext, args: &ListArgs) -> Result<(), Failure> {
    let users = context.store.users().await?;
    if args.json {
        return print_json(&Users { users: users.into_iter().map(UserView::from).collect() });
    }
    if users.is_empty() {
        return print(
            "No account yet. Make the first admin with: soloist user add NAME --role admin, or soloist link",
        );
    }
    let row = |user: &User| {
        vec![
            user.name.to_string(),
            user.display_name.clone().unwrap_or_else(|| "-".to_owned()),
            user.role.as_str().to_owned(),
            local(user.created),
        ]
    };
    print(&table(
        &["NAME", "CALLED", "ROLE", "CREATED"],
        &users.iter().map(row).collect::<Vec<_>>(),
    ))
}

async fn change_role(context: &CommandContext, name: &UserName, role: Role) -> Result<(), Failure> {
    let user = context.account(name).await?;
    if user.role == role {
        return print(&format!("{name} is {} already.", role.as_str()));
    }
    accounts::change_role(&context.store, &administrator(), &user.name, role).await?;
    print(&format!("{name} is now {}; signed out everywhere.", role.as_str()))
}

async fn passwd(context: &CommandContext, name: &UserName, how: Given) -> Result<(), Failure> {
    let user = context.account(name).await?;
    let actor = administrator();
    match how {
        Given::Password(from_stdin) => {
            let hash = password(name, from_stdin)?;
            accounts::change_password(&context.store, &actor, name, hash).await?;
            print(&format!(
                "The password of {name} is changed; signed out everywhere, and its API tokens are revoked."
            ))
        }
        Given::Invited => {
            let at = tokens::served(context).await?;
            let link = accounts::reset(&context.store, &actor, &user, &at).await?;
            eprintln!(
                "soloist: {name} has no password now, is signed out everywhere, and its API tokens are revoked"
            );
            say_link(name, &link)
        }
    }
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
    external::link(&context.store, &administrator().signature, name, external).await?;
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
    new_password(&text, &[name.as_str()]).map_err(|error| match error {
        PasswordError::TooShort | PasswordError::TooLong => Failure::Usage(error.to_string()),
        PasswordError::Weak(why) => {
            let why: Vec<String> = why.iter().map(|id| say(Language::En, id, &[])).collect();
            Failure::Usage(why.join(" "))
        }
        PasswordError::Hash(_) | PasswordError::Busy => Failure::Failed(error.to_string()),
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
