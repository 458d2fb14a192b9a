//! Where accounts are signed in, and ending that.

use super::office::Office;
use super::output::{local_of, print, print_json, table, visible};
use super::{Failure, ListArgs, SessionCommand};
use soloist_domain::name::UserName;
use soloist_view::people::SessionView;

/// `session ...`.
pub(super) async fn act(office: &Office, command: SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::List { user, list: args } => list(office, user.as_ref(), &args).await,
        SessionCommand::Revoke { id } => revoke(office, &id).await,
    }
}

async fn list(office: &Office, user: Option<&UserName>, args: &ListArgs) -> Result<(), Failure> {
    let open = office.sessions(user).await?;
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
            local_of(&one.created),
            local_of(&one.last_seen),
            one.from.clone(),
            one.user_agent.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = open.sessions.iter().map(row).collect();
    print(&table(&["ID", "USER", "SINCE", "LAST SEEN", "FROM", "BROWSER"], &rows))
}

async fn revoke(office: &Office, id: &str) -> Result<(), Failure> {
    let user = office.end_session(id).await?;
    print(&format!("The session {id} of {} has ended.", visible(&user)))
}
