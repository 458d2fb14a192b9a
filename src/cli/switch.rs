//! Switching: on, off, hold, resume, move. Each asks the store for one transition and says what came of it.

use super::desk::{may_operate, reason};
use super::output::print;
use super::{ActArgs, Desk, Failure, HoldArgs, MoveArgs, SwitchArgs};
use crate::config::JobConfig;
use crate::domain::handover::{NoMove, lasts, may_move};
use crate::domain::job::JobRecord;
use crate::store::jobs::Jobs;

/// `on` and `off`.
pub(super) async fn participate(desk: &Desk, args: &SwitchArgs, on: bool) -> Result<(), Failure> {
    let job = desk.job(&args.act.job)?;
    let user = desk.actor(args.act.user.as_deref()).await?;
    may_operate(&user, Some(job))?;
    let (user, reason) = (user.name, reason(args.reason.as_deref())?);
    let changed = desk.store.participate(&job.name, &user, on, reason.as_deref()).await?;
    let act = if on { "participation.on" } else { "participation.off" };
    desk.audit(Some(&user), act, job.name.as_str(), reason.as_deref()).await?;
    let after = record(desk, job).await?;
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
        && !desk
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
pub(super) async fn hold(desk: &Desk, args: &HoldArgs) -> Result<(), Failure> {
    let job = desk.job(&args.act.job)?;
    let Some(reason) = reason(Some(&args.reason))? else {
        return Err(Failure::Usage("--reason is empty: say why, others will read it".to_owned()));
    };
    let user = desk.operator(args.act.user.as_deref(), Some(job)).await?;
    desk.store.hold(&job.name, &user, &reason).await?;
    desk.audit(Some(&user), "job.hold", job.name.as_str(), Some(&reason)).await?;
    print(&format!("{} is held by {user}: {reason}", job.name))
}

/// `resume`.
pub(super) async fn resume(desk: &Desk, args: &ActArgs) -> Result<(), Failure> {
    let job = desk.job(&args.job)?;
    let user = desk.operator(args.user.as_deref(), Some(job)).await?;
    let before = record(desk, job).await?;
    desk.store.resume(&job.name).await?;
    desk.audit(Some(&user), "job.resume", job.name.as_str(), None).await?;
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
pub(super) async fn hand_over(desk: &Desk, args: &MoveArgs) -> Result<(), Failure> {
    let job = desk.job(&args.act.job)?;
    let user = desk.operator(args.act.user.as_deref(), Some(job)).await?;
    let takers: Vec<_> = desk.nodes().await?.iter().map(|node| node.taker(&job.name)).collect();
    let record = record(desk, job).await?;
    let from = may_move(&record, args.to.as_ref(), &takers).map_err(|refused| match refused {
        NoMove::NoSuchNode { .. } => Failure::NotFound(refused.to_string()),
        _ => Failure::Refused(refused.to_string()),
    })?;
    let lasts = lasts(job.stop_grace);
    desk.store.request_move(&job.name, args.to.as_ref(), &user, lasts).await?;
    let to = args.to.as_ref().map(|to| format!("to {to}"));
    desk.audit(Some(&user), "job.move", job.name.as_str(), to.as_deref()).await?;
    let to = to.unwrap_or_else(|| "to another node".to_owned());
    print(&format!(
        "{} is asked to move from {from} {to}; follow it with: soloist status {} --watch",
        job.name, job.name
    ))
}

async fn record(desk: &Desk, job: &JobConfig) -> Result<JobRecord, Failure> {
    let mut jobs = desk.store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
    Ok(jobs.pop().unwrap_or_else(|| JobRecord::untouched(job.name.clone())))
}
