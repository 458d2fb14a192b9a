//! Where accounts are signed in, and ending that.

use super::office::Office;
use super::output::{local, print, print_json, table, visible};
use super::{Failure, ListArgs, SessionCommand};
use soloist_domain::name::UserName;
use soloist_remote::{Call, address, part};
use soloist_view::people::{Me, SessionView, Sessions};

/// `session ...`.
pub(super) async fn act(office: &Office, command: SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::List { user, list: args } => list(office, user.as_ref(), &args).await,
        SessionCommand::Revoke { id } => revoke(office, &id).await,
    }
}

async fn list(office: &Office, user: Option<&UserName>, args: &ListArgs) -> Result<(), Failure> {
    let open = sessions(office, user).await?;
    if args.json {
        return print_json(&open);
    }
    if open.sessions.is_empty() {
        return print("Nobody is signed in.");
    }
    let row = |one: &SessionView| {
        vec![
            one.id.clone(),
            one.user.clone(),
            local(one.created),
            local(one.last_seen),
            one.from.clone(),
            one.user_agent.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = open.sessions.iter().map(row).collect();
    print(&table(&["ID", "USER", "SINCE", "LAST SEEN", "FROM", "BROWSER"], &rows))
}

/// Where accounts are signed in: all, or this one. An account that is no admin sees its own.
async fn sessions(office: &Office, user: Option<&UserName>) -> Result<Sessions, Failure> {
    let path = address("/api/v1/sessions", &[("user", user.map(ToString::to_string))]);
    match office.get(path).await {
        Err(refused @ Failure::Refused(_)) => {
            let me: Me = office.get("/api/v1/me").await?;
            match user {
                Some(other) if me.name != other.as_str() => Err(refused),
                _ => office.get("/api/v1/me/sessions").await,
            }
        }
        all => all,
    }
}

async fn revoke(office: &Office, id: &str) -> Result<(), Failure> {
    let of = sessions(office, None).await?.sessions.into_iter().find(|one| one.id == id);
    match office.tell(Call::delete(format!("/api/v1/sessions/{}", part(id)))).await {
        Err(Failure::Refused(_)) => {
            office.tell(Call::delete(format!("/api/v1/me/sessions/{}", part(id)))).await?;
        }
        done => done?,
    }
    let user = of.map_or_else(|| "its account".to_owned(), |one| one.user);
    print(&format!("The session {id} of {} has ended.", visible(&user)))
}
