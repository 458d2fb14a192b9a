//! Switching: on, off, hold, resume, move. Each asks for one transition and says what came of it.

use serde_json::{Value, json};

use super::office::{Office, at, not_found_if};
use super::output::{print, visible};
use super::{ActArgs, Failure, HoldArgs, MoveArgs, SwitchArgs};
use soloist_domain::job::State;
use soloist_remote::Call;
use soloist_view::JobView;

/// `body` with a reason, if there is one: a node of an older version takes bodies without.
pub(super) fn because(mut body: Value, reason: Option<&str>) -> Value {
    if let Some(reason) = reason {
        body["reason"] = reason.into();
    }
    body
}

/// `on` and `off`.
pub(super) async fn participate(
    office: &Office,
    args: &SwitchArgs,
    on: bool,
) -> Result<(), Failure> {
    let (user, reason) = (args.act.user.as_deref(), args.reason.as_deref());
    let (acting, user) = office.owning(user).await?;
    let takes_part = |job: &JobView| job.participants.iter().any(|one| one.user == user);
    let changed = takes_part(&office.job(&args.act.job).await?) != on;
    let body = json!({"on": on, "reason": reason, "user": user});
    let put = Call::put(at(&args.act.job, "/participation")).with(&body);
    let job: JobView = acting.ask(put).await.map_err(not_found_if("there is no account"))?;
    let name = &job.name;
    let wanted_by: Vec<&str> = job.participants.iter().map(|p| p.user.as_str()).collect();
    let said = match (on, changed) {
        (true, true) => format!("{user} switched {name} on."),
        (true, false) => format!("{user} had {name} on already."),
        (false, false) => format!("{user} had {name} off already; nothing changed."),
        (false, true) if wanted_by.is_empty() => {
            format!("{user} switched {name} off. {user} was the last: this stops it.")
        }
        (false, true) => format!(
            "{user} switched {name} off. It stays on: still wanted by {}.",
            wanted_by.join(", ")
        ),
    };
    print(&said)?;
    if let Some(hold) = job.hold.as_ref().filter(|_| on) {
        eprintln!(
            "soloist: {name} is held by {} ({}): it starts after soloist resume {name}",
            hold.by,
            visible(&hold.reason)
        );
    } else if on
        && job.runner != "external"
        && !office.nodes().await?.iter().any(|node| node.alive && node.offers.contains(name))
    {
        eprintln!(
            "soloist: no living node may run {name}: start one with soloist serve, or look at soloist nodes"
        );
    }
    Ok(())
}

/// `hold`.
pub(super) async fn hold(office: &Office, args: &HoldArgs) -> Result<(), Failure> {
    let name = &args.act.job;
    let put = Call::put(at(name, "/hold")).with(&json!({"reason": args.reason}));
    let job: JobView = office.acting(args.act.user.as_deref()).await?.ask(put).await?;
    let Some(hold) = job.hold else {
        let text = format!("{name} was resumed by another at the same time");
        return Err(Failure::Failed(text));
    };
    print(&format!("{name} is held by {}: {}", hold.by, hold.reason))
}

/// `resume`.
pub(super) async fn resume(office: &Office, args: &ActArgs) -> Result<(), Failure> {
    let name = &args.job;
    let acting = office.acting(args.user.as_deref()).await?;
    let before = office.job(name).await?;
    let job: JobView = acting.ask(Call::delete(at(name, "/hold")).repeatable()).await?;
    let what = match (before.hold.is_some(), before.state == State::GivenUp) {
        (true, _) => "is no longer held",
        (false, true) => "is tried again",
        (false, false) => "was neither held nor given up; it goes on as it was",
    };
    let rest = match job.participants.is_empty() {
        true => format!("; nobody wants it yet: soloist on {name}"),
        false => String::new(),
    };
    print(&format!("{name} {what}{rest}."))
}

/// `move`.
pub(super) async fn hand_over(office: &Office, args: &MoveArgs) -> Result<(), Failure> {
    let name = &args.act.job;
    let (user, reason) = (args.act.user.as_deref(), args.reason.as_deref());
    let acting = office.acting(user).await?;
    let before = office.job(name).await?;
    let call = Call::post(at(name, "/move")).with(&because(json!({"to": args.to}), reason));
    let after: JobView = acting.ask(call).await.map_err(not_found_if("--to: "))?;
    let lease = before.lease.or(after.lease);
    let from = lease.map_or_else(|| "its node".to_owned(), |lease| lease.node);
    let to = args.to.as_ref().map(|to| format!("to {to}"));
    let to = to.unwrap_or_else(|| "to another node".to_owned());
    print(&format!(
        "{name} is asked to move from {from} {to}; follow it with: soloist status {name} --watch"
    ))
}
