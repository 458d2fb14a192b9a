//! Accounts: who may look, switch and administer.
//!
//! Passwords are typed or piped, never an argument: every user of the machine sees arguments in its process list.

use std::io::{IsTerminal as _, Read as _};

use serde_json::{Value, json};

use super::office::Office;
use super::output::{local, print, print_json, table};
use super::{Failure, ListArgs, UserCommand};
use soloist_domain::name::UserName;
use soloist_ops::accounts;
use soloist_remote::{Call, part};
use soloist_store::accounts::Role;
use soloist_view::JobView;
use soloist_view::people::{ChangedUser, UserView, Users};

fn at(name: &UserName) -> String {
    format!("/api/v1/users/{}", part(name.as_str()))
}

async fn user(office: &Office, name: &UserName) -> Result<UserView, Failure> {
    office.get(at(name)).await
}

async fn change(office: &Office, name: &UserName, changes: &Value) -> Result<ChangedUser, Failure> {
    office.ask(Call::patch(at(name)).with(changes)).await
}

/// `user ...`.
pub(super) async fn act(office: &Office, command: UserCommand) -> Result<(), Failure> {
    match command {
        UserCommand::Add { name, role, password_stdin, invite, display_name } => {
            let how = if invite { Given::Invited } else { Given::Password(password_stdin) };
            add(office, name, role, how, display_name.as_deref()).await
        }
        UserCommand::List(args) => list(office, &args).await,
        UserCommand::Role { name, role } => change_role(office, &name, role).await,
        UserCommand::Passwd { name, password_stdin, invite } => {
            let how = if invite { Given::Invited } else { Given::Password(password_stdin) };
            passwd(office, &name, how).await
        }
        UserCommand::Link { name, subject, .. } => link(office, &name, subject).await,
        UserCommand::Remove { name } => remove(office, &name).await,
    }
}

async fn add(
    office: &Office,
    name: UserName,
    role: Role,
    how: Given,
    display_name: Option<&str>,
) -> Result<(), Failure> {
    // Asked first, so that no person types a password in vain.
    match user(office, &name).await {
        Err(Failure::NotFound(_)) => {}
        Err(error) => return Err(error),
        Ok(_) => {
            return Err(Failure::Refused(format!(
                "there is an account {name} already: change it with soloist user role, or soloist user passwd"
            )));
        }
    }
    let display_name = match display_name {
        Some(text) => accounts::display_name(text)?,
        None => None,
    };
    let password = match how {
        Given::Password(from_stdin) => Some(password(&name, from_stdin)?),
        Given::Invited => None,
    };
    if password.is_none() && role == Role::Collector {
        return Err(Failure::Refused(format!(
            "collectors use tokens and no password: leave --invite out, then soloist token new --user {name}"
        )));
    }
    let mut body = json!({"name": name, "role": role});
    if let Some(password) = password {
        body["password"] = password.into();
    }
    if let Some(shown) = display_name {
        body["display_name"] = shown.into();
    }
    let added: ChangedUser = office.ask(Call::post("/api/v1/users").with(&body)).await?;
    match added.link {
        Some(link) => {
            eprintln!("soloist: account {name} added: {}", role.as_str());
            say_link(&name, &link)
        }
        None => print(&format!("Account {name} added: {}.", role.as_str())),
    }
}

/// How a password is given.
#[derive(Clone, Copy)]
enum Given {
    /// Here; on standard input, or else asked for.
    Password(bool),
    /// By the person who gets the link.
    Invited,
}

/// The link alone on standard output.
fn say_link(name: &UserName, link: &str) -> Result<(), Failure> {
    eprintln!("soloist: with this link {name} sets the password; it works once, for 48 hours");
    print(link)
}

async fn list(office: &Office, args: &ListArgs) -> Result<(), Failure> {
    let users: Users = office.get("/api/v1/users").await?;
    if args.json {
        return print_json(&users);
    }
    if users.users.is_empty() {
        return print(
            "No account yet. Make the first admin with: soloist user add NAME --role admin, or soloist link",
        );
    }
    let row = |user: &UserView| {
        vec![
            user.name.clone(),
            user.display_name.clone().unwrap_or_else(|| "-".to_owned()),
            user.role.as_str().to_owned(),
            local(user.created),
        ]
    };
    let rows: Vec<_> = users.users.iter().map(row).collect();
    print(&table(&["NAME", "CALLED", "ROLE", "CREATED"], &rows))
}

async fn change_role(office: &Office, name: &UserName, role: Role) -> Result<(), Failure> {
    if user(office, name).await?.role == role {
        return print(&format!("{name} is {} already.", role.as_str()));
    }
    change(office, name, &json!({"role": role})).await?;
    print(&format!("{name} is now {}; signed out everywhere.", role.as_str()))
}

async fn passwd(office: &Office, name: &UserName, how: Given) -> Result<(), Failure> {
    match how {
        Given::Password(from_stdin) => {
            // Whether there is one is known before a password is asked for.
            user(office, name).await?;
            change(office, name, &json!({"password": password(name, from_stdin)?})).await?;
            print(&format!(
                "The password of {name} is changed; signed out everywhere, and its API tokens are revoked."
            ))
        }
        Given::Invited => {
            let link = change(office, name, &json!({"reset": true})).await?.link;
            let link = link.ok_or_else(|| Failure::Failed("the answer has no link".to_owned()))?;
            eprintln!(
                "soloist: {name} has no password now, is signed out everywhere, and its API tokens are revoked"
            );
            say_link(name, &link)
        }
    }
}

async fn link(office: &Office, name: &UserName, subject: Option<String>) -> Result<(), Failure> {
    let linked = subject.is_some();
    let body = json!({"subject": subject.unwrap_or_default()});
    let user = change(office, name, &body).await?.user;
    print(&match (linked, user.has_password) {
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

async fn remove(office: &Office, name: &UserName) -> Result<(), Failure> {
    let jobs = office.jobs().await?.jobs;
    office.tell(Call::delete(at(name))).await?;
    let wanted = |job: &&JobView| job.participants.iter().any(|one| one.user == name.as_str());
    let left = jobs.iter().filter(wanted).map(|job| {
        let last = if job.participants.len() == 1 { " (was the last: this stops it)" } else { "" };
        format!("{}{last}", job.name)
    });
    let left: Vec<String> = left.collect();
    let left = match left.as_slice() {
        [] => String::new(),
        jobs => format!(" It no longer wants {}.", jobs.join(", ")),
    };
    print(&format!("Account {name} removed, with its sessions and tokens.{left}"))
}

/// Reads a new password.
fn password(name: &UserName, from_stdin: bool) -> Result<String, Failure> {
    if from_stdin { piped() } else { typed(name) }
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
