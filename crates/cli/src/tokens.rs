//! API tokens and sign-in links: secrets that are printed once, alone on standard output.

use serde_json::{Value, json};

use super::office::Office;
use super::output::{local, print, print_json, table};
use super::terminal::{Terminal, administrator};
use super::{Failure, ListArgs, TokenCommand};
use soloist_domain::name::UserName;
use soloist_ops::accounts;
use soloist_ops::credentials::Expiry;
use soloist_remote::{Call, part};
use soloist_store::accounts::{Accounts, Role, User};
use soloist_store::credentials::ApiToken;
use soloist_store::nodes::NodeRecord;
use soloist_view::millis;
use soloist_view::people::{Me, NewToken, TokenView, Tokens, UserView};
use soloist_view::words::At;

/// `token ...`.
pub(super) async fn act(office: &Office, command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::New {
            user,
            name,
            expires,
            collector,
            sources,
            rotations,
            leases,
            jobs,
            put,
        } => {
            let unbound = ApiToken::new(user, name);
            let token = ApiToken { collector, sources, rotations, leases, jobs, put, ..unbound };
            new(office, token, expires).await
        }
        TokenCommand::List(args) => list(office, &args).await,
        TokenCommand::Revoke { id } => revoke(office, &id).await,
    }
}

async fn new(office: &Office, token: ApiToken, expires: Expiry) -> Result<(), Failure> {
    let role = role_of(office, &token.user).await?;
    let ApiToken { name, user, collector, sources, rotations, leases, jobs, put, .. } = token;
    let mut body = json!({
        "name": name, "user": user, "collector": collector, "sources": sources,
        "rotations": rotations, "leases": leases, "jobs": jobs, "put": put,
    });
    match expires {
        Expiry::Usual => {}
        Expiry::After(time) => body["expires_in_ms"] = millis(time).into(),
        Expiry::Never => body["expires_in_ms"] = Value::Null,
    }
    let call = Call::post("/api/v1/tokens").with(&body);
    let NewToken { token, secret } = office.ask(call).await?;
    let ends = token.expires.map_or_else(|| "never".to_owned(), |at| at.to_string());
    eprintln!(
        "soloist: token {} for {} ({}), ends {ends}; keep it now, it is not shown again. Use: Authorization: Bearer TOKEN",
        token.id,
        token.user,
        role.as_str()
    );
    print(&secret)
}

/// What an account may do. One that is no admin may ask it of itself only.
async fn role_of(office: &Office, user: &UserName) -> Result<Role, Failure> {
    match office.get(format!("/api/v1/users/{}", part(user.as_str()))).await {
        Ok(UserView { role, .. }) => Ok(role),
        Err(refused @ Failure::Refused(_)) => match office.get("/api/v1/me").await? {
            Me { name, role, .. } if name == user.as_str() => Ok(role),
            _ => Err(refused),
        },
        Err(other) => Err(other),
    }
}

async fn list(office: &Office, args: &ListArgs) -> Result<(), Failure> {
    let tokens: Tokens = office.get("/api/v1/tokens").await?;
    if args.json {
        return print_json(&tokens);
    }
    if tokens.tokens.is_empty() {
        return print("No token. Make one with: soloist token new --user NAME");
    }
    let or_never = |at: Option<At>| at.map_or_else(|| "never".to_owned(), local);
    let row = |token: &TokenView| {
        vec![
            token.id.clone(),
            token.user.clone(),
            if token.name.is_empty() { "-".to_owned() } else { token.name.clone() },
            local(token.created),
            or_never(token.expires),
            or_never(token.last_used),
            only_for(token),
        ]
    };
    let rows: Vec<_> = tokens.tokens.iter().map(row).collect();
    print(&table(&["ID", "USER", "NAME", "CREATED", "EXPIRES", "LAST USED", "ONLY FOR"], &rows))
}

/// What a token is bound to.
pub(super) fn only_for(token: &TokenView) -> String {
    let collector = token.collector.iter().map(|name| format!("collector {name}"));
    let put = if token.put { " (may put)" } else { "" };
    let sources = token.sources.iter().map(|name| format!("source {name}{put}"));
    let rotations = token.rotations.iter().map(|name| format!("rotation {name}"));
    let leases = token.leases.iter().map(|name| format!("lease {name}"));
    let jobs = token.jobs.iter().map(|name| format!("job {name}"));
    let bounds: Vec<String> =
        collector.chain(sources).chain(rotations).chain(leases).chain(jobs).collect();
    if bounds.is_empty() { "-".to_owned() } else { bounds.join(", ") }
}

async fn revoke(office: &Office, id: &str) -> Result<(), Failure> {
    let all: Tokens = office.get("/api/v1/tokens").await?;
    office.tell(Call::delete(format!("/api/v1/tokens/{}", part(id)))).await?;
    let of = all.tokens.into_iter().find(|token| token.id == id);
    let user = of.map_or_else(|| "its account".to_owned(), |token| token.user);
    print(&format!("Token {id} of {user} is revoked."))
}

/// `link`. It is done at the store itself: whoever can open that makes sign-in links, also while there is no account, and no address
/// of a node may do so.
pub(super) async fn link(terminal: &Terminal, user: Option<UserName>) -> Result<(), Failure> {
    let users = terminal.store.users().await?;
    let user = match user {
        Some(name) => {
            let account = terminal.account(&name).await?;
            if account.role != Role::Admin {
                return Err(Failure::Refused(format!(
                    "{name} is {}: links are for admins; set a password with soloist user passwd {name}",
                    account.role.with_article()
                )));
            }
            Some(name)
        }
        None => the_admin(terminal, &users).await?,
    };
    let (store, at) = (&terminal.store, &terminal.served);
    let url = accounts::make_link(store, &administrator(), user.clone(), at).await?;
    let does = match &user {
        Some(name) => format!("signs in {name}"),
        None => "makes the first admin, as soloist user add NAME --role admin does".to_owned(),
    };
    eprintln!("soloist: this link {does}; it works once, for 30 minutes");
    print(&url)
}

/// Where a node serves: it may have been started with another address than the configuration says.
pub(super) fn served_at<'a>(nodes: &'a [NodeRecord], configured: &'a str) -> &'a str {
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

/// The only admin, or the acting one; `None` while there is none.
async fn the_admin(terminal: &Terminal, users: &[User]) -> Result<Option<UserName>, Failure> {
    let admins: Vec<&UserName> =
        users.iter().filter(|user| user.role == Role::Admin).map(|user| &user.name).collect();
    match admins.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some((*only).clone())),
        several => match terminal.actor(None).await {
            Ok(own) if own.role == Some(Role::Admin) => Ok(Some(own.user)),
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
