//! API tokens and sign-in links: secrets that are printed once, alone on standard output.

use super::context::administrator;
use super::output::{local, print, print_json, rfc3339, table};
use super::{CommandContext, Failure, ListArgs, TokenCommand};
use crate::domain::name::UserName;
use crate::ops::accounts;
use crate::ops::credentials::{self, Expiry};
use crate::store::accounts::{Accounts, Role, User};
use crate::store::credentials::{ApiToken, Credentials};
use crate::store::nodes::{NodeRecord, Nodes};
use crate::view::people::{TokenView, Tokens};

/// `token ...`.
pub(super) async fn act(context: &CommandContext, command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::New { user, name, expires, collector, sources, rotations, leases, jobs } => {
            let unbound = ApiToken::new(user, name);
            let token = ApiToken { collector, sources, rotations, leases, jobs, ..unbound };
            new(context, token, expires).await
        }
        TokenCommand::List(args) => list(context, &args).await,
        TokenCommand::Revoke { id } => revoke(context, &id).await,
    }
}

async fn new(context: &CommandContext, token: ApiToken, expires: Expiry) -> Result<(), Failure> {
    let account = context.account(&token.user).await?;
    let (token, secret) =
        credentials::new_token(&context.store, &administrator(), token, expires).await?;
    let ends = token.expires.map_or_else(|| "never".to_owned(), rfc3339);
    eprintln!(
        "soloist: token {} for {} ({}), ends {ends}; keep it now, it is not shown again. Use: Authorization: Bearer TOKEN",
        token.id,
        account.name,
        account.role.as_str()
    );
    print(&secret)
}

async fn list(context: &CommandContext, args: &ListArgs) -> Result<(), Failure> {
    let tokens = context.store.tokens().await?;
    if args.json {
        return print_json(&Tokens { tokens: tokens.into_iter().map(TokenView::from).collect() });
    }
    if tokens.is_empty() {
        return print("No token. Make one with: soloist token new --user NAME");
    }
    let row = |token: &ApiToken| {
        vec![
            token.id.clone(),
            token.user.to_string(),
            if token.name.is_empty() { "-".to_owned() } else { token.name.clone() },
            local(token.created),
            token.expires.map_or_else(|| "never".to_owned(), local),
            token.last_used.map_or_else(|| "never".to_owned(), local),
            only_for(token),
        ]
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    print(&table(&["ID", "USER", "NAME", "CREATED", "EXPIRES", "LAST USED", "ONLY FOR"], &rows))
}

/// What a token is bound to.
fn only_for(token: &ApiToken) -> String {
    let collector = token.collector.iter().map(|name| format!("collector {name}"));
    let sources = token.sources.iter().map(|name| format!("source {name}"));
    let rotations = token.rotations.iter().map(|name| format!("rotation {name}"));
    let leases = token.leases.iter().map(|name| format!("lease {name}"));
    let jobs = token.jobs.iter().map(|name| format!("job {name}"));
    let bounds: Vec<String> =
        collector.chain(sources).chain(rotations).chain(leases).chain(jobs).collect();
    if bounds.is_empty() { "-".to_owned() } else { bounds.join(", ") }
}

async fn revoke(context: &CommandContext, id: &str) -> Result<(), Failure> {
    let token = credentials::revoke_token(&context.store, &administrator(), id).await?;
    print(&format!("Token {id} of {} is revoked.", token.user))
}

/// `link`.
pub(super) async fn link(context: &CommandContext, user: Option<UserName>) -> Result<(), Failure> {
    let users = context.store.users().await?;
    let user = match user {
        Some(name) => {
            let account = context.account(&name).await?;
            if account.role != Role::Admin {
                return Err(Failure::Refused(format!(
                    "{name} is {}: links are for admins; set a password with soloist user passwd {name}",
                    account.role.with_article()
                )));
            }
            Some(name)
        }
        None if users.is_empty() => None,
        None => Some(the_admin(context, &users).await?),
    };
    let at = served(context).await?;
    let url = accounts::make_link(&context.store, &administrator(), user.clone(), &at).await?;
    let target = user.as_ref().map_or("the first admin", UserName::as_str);
    eprintln!("soloist: this link signs in {target}; it works once, for 30 minutes");
    print(&url)
}

/// Where links lead to.
pub(super) async fn served(context: &CommandContext) -> Result<String, Failure> {
    let nodes = context.store.nodes().await?;
    Ok(served_at(&nodes, &context.config.public_url).to_owned())
}

/// Where a node serves: it may have been started with another address than the configuration says.
fn served_at<'a>(nodes: &'a [NodeRecord], configured: &'a str) -> &'a str {
    let mut known = nodes
        .iter()
        .filter(|node| node.is_alive())
        .map(|node| node.beat.url.as_str())
        .filter(|url| !url.is_empty());
    if known.clone().any(|url| url == configured) {
        return configured;
    }
    known.next().unwrap_or(configured)
}

/// The only admin, or the acting one.
async fn the_admin(context: &CommandContext, users: &[User]) -> Result<UserName, Failure> {
    let admins: Vec<&UserName> =
        users.iter().filter(|user| user.role == Role::Admin).map(|user| &user.name).collect();
    match admins.as_slice() {
        [] => Err(Failure::NotFound(
            "there is no admin: make one with soloist user role NAME admin".to_owned(),
        )),
        [only] => Ok((*only).clone()),
        several => match context.actor(None).await {
            Ok(own) if own.role == Some(Role::Admin) => Ok(own.user),
            _ => {
                let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
                Err(Failure::Usage(format!(
                    "for which admin? say --user, one of {}",
                    names.join(", ")
                )))
            }
        },
    }
}
