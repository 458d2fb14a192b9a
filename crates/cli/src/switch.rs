//! Switching: on, off, hold, resume, move. Each asks for one transition and says what came of it.

use super::office::{Gave, Office};
use super::output::{print, visible};
use super::{ActArgs, Failure, HoldArgs, MoveArgs, SwitchArgs};

/// `on` and `off`.
pub(super) async fn participate(
    office: &Office,
    args: &SwitchArgs,
    on: bool,
) -> Result<(), Failure> {
    let (user, reason) = (args.act.user.as_deref(), args.reason.as_deref());
    let Gave { user, changed, job } = office.participate(&args.act.job, user, on, reason).await?;
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
    let (by, reason) = office.hold(name, args.act.user.as_deref(), &args.reason).await?;
    print(&format!("{name} is held by {by}: {reason}"))
}

/// `resume`.
pub(super) async fn resume(office: &Office, args: &ActArgs) -> Result<(), Failure> {
    let name = &args.job;
    let (held, given_up, job) = office.resume(name, args.user.as_deref()).await?;
    let what = match (held, given_up) {
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
    let from = office.hand_over(name, user, args.to.as_ref(), reason).await?;
    let to = args.to.as_ref().map(|to| format!("to {to}"));
    let to = to.unwrap_or_else(|| "to another node".to_owned());
    print(&format!(
        "{name} is asked to move from {from} {to}; follow it with: soloist status {name} --watch"
    ))
}
