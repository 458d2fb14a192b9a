//! Switching: on, off, hold, resume, move. Each asks the store for one transition and says what came of it.

use super::output::print;
use super::{ActArgs, CommandContext, Failure, HoldArgs, MoveArgs, SwitchArgs};
use crate::config::JobConfig;
use crate::domain::job::JobRecord;
use crate::ops::jobs;
use crate::store::jobs::Jobs as _;

/// `on` and `off`.
pub(super) async fn participate(
    context: &CommandContext,
    args: &SwitchArgs,
    on: bool,
) -> Result<(), Failure> {
    let job = context.job(&args.act.job)?;
    let actor = context.actor(args.act.user.as_deref()).await?;
    let (store, reason) = (&context.store, args.reason.as_deref());
    let changed = jobs::participate(store, &actor, job, None, on, reason).await?;
    let user = actor.user;
    let after = record(context, job).await?;
    let wanted_by: Vec<&str> = after.participants.iter().map(|p| p.user.as_str()).collect();
    let said = match (on, changed) {
        (true, true) => format!("{user} switched {} on.", job.name),
        (true, false) => format!("{user} had {} on already.", job.name),
        (false, false) => format!("{user} had {} off already; nothing changed.", job.name),
        (false, true) if wanted_by.is_empty() => {
            format!("{user} switched {} off. {user} was the last: this stops it.", job.name)
        }
        (false, true) => format!(
            "{user} switched {} off. It stays on: still wanted by {}.",
            job.name,
            wanted_by.join(", ")
        ),
    };
    print(&said)?;
    if let Some(hold) = after.hold.filter(|_| on) {
        eprintln!(
            "soloist: {} is held by {} ({}): it starts after soloist resume {}",
            job.name, hold.by, hold.reason, job.name
        );
    } else if on
        && !context
            .nodes()
            .await?
            .iter()
            .any(|node| node.is_alive() && node.beat.jobs.contains(&job.name))
    {
        eprintln!(
            "soloist: no living node may run {}: start one with soloist serve, or look at soloist nodes",
            job.name
        );
    }
    Ok(())
}

/// `hold`.
pub(super) async fn hold(context: &CommandContext, args: &HoldArgs) -> Result<(), Failure> {
    let job = context.job(&args.act.job)?;
    let actor = context.operator(args.act.user.as_deref()).await?;
    let reason = jobs::hold(&context.store, &actor, job, &args.reason).await?;
    print(&format!("{} is held by {}: {reason}", job.name, actor.user))
}

/// `resume`.
pub(super) async fn resume(context: &CommandContext, args: &ActArgs) -> Result<(), Failure> {
    let job = context.job(&args.job)?;
    let actor = context.operator(args.user.as_deref()).await?;
    let before = record(context, job).await?;
    jobs::resume(&context.store, &actor, job).await?;
    let what = match (before.hold.is_some(), before.given_up) {
        (true, _) => "is no longer held",
        (false, true) => "is tried again",
        (false, false) => "was neither held nor given up; it goes on as it was",
    };
    let rest = match before.participants.is_empty() {
        true => format!("; nobody wants it yet: soloist on {}", job.name),
        false => String::new(),
    };
    print(&format!("{} {what}{rest}.", job.name))
}

/// `move`.
pub(super) async fn hand_over(context: &CommandContext, args: &MoveArgs) -> Result<(), Failure> {
    let job = context.job(&args.act.job)?;
    let actor = context.operator(args.act.user.as_deref()).await?;
    let from = jobs::hand_over(&context.store, &actor, job, args.to.as_ref()).await?;
    let to = args.to.as_ref().map(|to| format!("to {to}"));
    let to = to.unwrap_or_else(|| "to another node".to_owned());
    print(&format!(
        "{} is asked to move from {from} {to}; follow it with: soloist status {} --watch",
        job.name, job.name
    ))
}

async fn record(context: &CommandContext, job: &JobConfig) -> Result<JobRecord, Failure> {
    let mut jobs = context.store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
    Ok(jobs.pop().unwrap_or_else(|| JobRecord::untouched(job.name.clone())))
}
