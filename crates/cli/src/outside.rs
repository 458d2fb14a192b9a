//! `soloist doctor --server`: what can be looked at from outside: the nodes, the clocks, and what the token is for.

use std::time::Duration;

use super::doctor::finish;
use super::output::visible;
use super::tokens::only_for;
use super::{Failure, ListArgs};
use soloist_domain::time::StoreTime;
use soloist_process::clock;
use soloist_remote::{Access, Call, Client, RemoteError};
use soloist_store::examine::Finding;
use soloist_view::lists::Nodes;
use soloist_view::people::Me;
use soloist_view::words::At;

/// Clocks that differ by more make what is printed hard to compare. Nothing is decided by them.
const CLOCKS_APART: Duration = Duration::from_secs(5);
/// A token that ends sooner is said.
const SOON: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Looks at every address on its own.
pub(super) async fn doctor(access: &Access, args: &ListArgs) -> Result<(), Failure> {
    let mut findings = Vec::new();
    let mut answered = None;
    for access in access.each() {
        let server = access.servers().join("");
        let one = Client::new(access)?;
        findings.push(ready(&one, &server).await);
        let asked = clock::boot();
        match one.ask::<Me>(Call::get("/api/v1/me")).await {
            Ok(me) => {
                let took = clock::boot().since(asked);
                findings.push(clocks(&me, took));
                answered = Some((one, me));
            }
            Err(RemoteError::Unreachable(_)) => {}
            Err(error @ RemoteError::Refused { status: 403, .. }) => findings.push(Finding::ok(
                "token",
                format!("accepted by {server}, which does not say more of it: {error}"),
            )),
            Err(error) => findings.push(Finding::bad(
                "token",
                error.to_string(),
                "use another token, or another node",
            )),
        }
    }
    if let Some((client, me)) = answered {
        findings.push(token(&me));
        findings.push(match client.ask::<Nodes>(Call::get("/api/v1/nodes")).await {
            Ok(nodes) => cluster(&nodes),
            Err(error) => Finding::warn("nodes", error.to_string(), "try again in a moment"),
        });
    }
    findings.push(Finding::ok(
        "store",
        "not looked at: only nodes open it; run soloist doctor on a node for that",
    ));
    finish(findings, args.json)
}

async fn ready(client: &Client, server: &str) -> Finding {
    let check = "node";
    match client.tell(Call::get("/readyz")).await {
        Ok(()) => Finding::ok(check, format!("{server} is ready")),
        Err(error @ RemoteError::Unreachable(_)) => Finding::bad(
            check,
            error.to_string(),
            "start it (soloist serve), or correct --server; from another machine `listen` must not be 127.0.0.1",
        ),
        Err(error) => Finding::bad(
            check,
            format!("{server} is not ready: {error}"),
            "look at its log; another node may serve meanwhile",
        ),
    }
}

fn clocks(me: &Me, took: Duration) -> Finding {
    let check = "clock";
    let own = StoreTime(jiff::Timestamp::now().as_millisecond());
    let node = visible(&me.node);
    let Some(At(theirs)) = me.now else {
        return Finding::warn(check, format!("{node} does not tell its clock"), "upgrade it");
    };
    // It read its clock at some moment while the answer was on its way.
    let apart = own.apart(theirs).saturating_sub(took);
    let what =
        format!("{node} and this machine differ by {apart:.1?} at most, give or take {took:.1?}");
    if apart <= CLOCKS_APART {
        return Finding::ok(check, what);
    }
    Finding::warn(
        check,
        what,
        "set one of them right (NTP): leases do not need it, people who compare logs do",
    )
}

fn token(me: &Me) -> Finding {
    let check = "token";
    let who = format!("of {}, {}", visible(&me.name), me.role.with_article());
    let Some(token) = &me.token else { return Finding::ok(check, who) };
    let bounds = match only_for(token).as_str() {
        "-" => "bound to nothing".to_owned(),
        names => format!("only for {}", visible(names)),
    };
    let ends = token.expires.map_or_else(|| "never".to_owned(), |at| at.to_string());
    let what = format!("{} {who}, {bounds}, ends {ends}", visible(&token.id));
    let left = token.expires.zip(me.now);
    match left.map(|(At(ends), At(now))| ends.since(now)) {
        Some(left) if left < SOON => {
            Finding::warn(check, what, "have another made in time: soloist token new")
        }
        _ => Finding::ok(check, what),
    }
}

fn cluster(nodes: &Nodes) -> Finding {
    let living: Vec<_> = nodes.nodes.iter().filter(|node| node.alive).collect();
    let mut versions: Vec<String> = living.iter().map(|node| visible(&node.version)).collect();
    versions.sort_unstable();
    versions.dedup();
    let what = format!("{} alive, version {}", living.len(), versions.join(" and "));
    let own = env!("CARGO_PKG_VERSION");
    match (living.len(), versions.as_slice()) {
        (0 | 1, _) => {
            Finding::warn("nodes", what, "start a second one: nobody takes over from one")
        }
        (_, [one]) if one == own => Finding::ok("nodes", what),
        (_, [_]) => Finding::warn("nodes", what, format!("this program is {own}: use theirs")),
        _ => Finding::warn("nodes", what, "finish the upgrade: give all nodes one version"),
    }
}
