//! Where accounts are signed in, and ending that.

use super::context::administrator;
use super::output::{local, print, print_json, table};
use super::{CommandContext, Failure, ListArgs, SessionCommand};
use crate::domain::name::UserName;
use crate::ops::credentials;
use crate::secrets::session_id;
use crate::store::credentials::OpenSession;
use crate::view::people::{SessionView, Sessions};

/// `session ...`.
pub(super) async fn act(context: &CommandContext, command: SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::List { user, list: args } => list(context, user.as_ref(), &args).await,
        SessionCommand::Revoke { id } => revoke(context, &id).await,
    }
}

async fn list(
    context: &CommandContext,
    user: Option<&UserName>,
    args: &ListArgs,
) -> Result<(), Failure> {
    if let Some(name) = user {
        context.account(name).await?;
    }
    let open = credentials::sessions(&context.store, &administrator(), user).await?;
    if args.json {
        let view = |one: OpenSession| {
            let id = session_id(&one.hash);
            SessionView::of(one, id, "")
        };
        return print_json(&Sessions { sessions: open.into_iter().map(view).collect() });
    }
    if open.is_empty() {
        return print("Nobody is signed in.");
    }
    let row = |one: &OpenSession| {
        vec![
            session_id(&one.hash),
            one.session.user.to_string(),
            local(one.session.created),
            local(one.used),
            one.session.from.clone(),
            one.session.user_agent.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = open.iter().map(row).collect();
    print(&table(&["ID", "USER", "SINCE", "LAST SEEN", "FROM", "BROWSER"], &rows))
}

async fn revoke(context: &CommandContext, id: &str) -> Result<(), Failure> {
    let actor = administrator();
    let ended = credentials::end_session(&context.store, &actor, None, id).await?;
    print(&format!("The session {id} of {} has ended.", ended.session.user))
}
