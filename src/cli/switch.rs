//! Switching: on, off, hold, resume, move. Each asks the store for one transition and says what came of it.

use super::desk::{may_operate, reason};
use super::output::print;
use super::{ActArgs, Desk, Failure, HoldArgs, MoveArgs, SwitchArgs};
use crate::config::JobConfig;
use crate::domain::job::JobRecord;
use crate::store::jobs::Jobs;
use crate::store::nodes::{ALIVE_FOR, NodeRecord};

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
    } else if on && !desk.nodes().await?.iter().any(|node| alive(node) && may_take(node, job)) {
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
    let nodes = desk.nodes().await?;
    let target = args.to.as_ref().map(|name| find(&nodes, name.as_str())).transpose()?;
    let Some(lease) = record(desk, job).await?.lease else {
        return Err(Failure::Refused(format!(
            "{} is not running, so there is nothing to move: soloist why {}",
            job.name, job.name
        )));
    };
    match target {
        Some(node) if node.beat.node == lease.node => {
            return print(&format!("{} is on {} already.", job.name, lease.node));
        }
        Some(node) => fit(node, job)?,
        None => {
            let other = |node: &&NodeRecord| node.beat.node != lease.node && fit(node, job).is_ok();
            if nodes.iter().find(other).is_none() {
                return Err(Failure::Refused(format!(
                    "no other living node may run {}: it stays on {} (soloist nodes shows them)",
                    job.name, lease.node
                )));
            }
        }
    }
    desk.store.request_move(&job.name, args.to.as_ref(), &user).await?;
    let to = args.to.as_ref().map(|to| format!("to {to}"));
    desk.audit(Some(&user), "job.move", job.name.as_str(), to.as_deref()).await?;
    let to = to.unwrap_or_else(|| "to another node".to_owned());
    print(&format!(
        "{} is asked to move from {} {to}; follow it with: soloist status {} --watch",
        job.name, lease.node, job.name
    ))
}

fn find<'a>(nodes: &'a [NodeRecord], name: &str) -> Result<&'a NodeRecord, Failure> {
    nodes.iter().find(|node| node.beat.node.as_str() == name).ok_or_else(|| {
        let known: Vec<&str> = nodes.iter().map(|node| node.beat.node.as_str()).collect();
        Failure::NotFound(match known.as_slice() {
            [] => {
                format!("there is no node {name}: none has reported; start one with soloist serve")
            }
            known => format!("there is no node {name}; the store knows: {}", known.join(", ")),
        })
    })
}

/// Whether `node` could take `job` now, or why not.
fn fit(node: &NodeRecord, job: &JobConfig) -> Result<(), Failure> {
    let name = &node.beat.node;
    let why = if !alive(node) {
        format!("{name} has not reported for {} s: is it running?", node.age_ms / 1_000)
    } else if node.draining {
        format!("{name} is being drained: soloist undrain {name}")
    } else if !may_take(node, job) {
        format!("{} may not run on {name}: see its `nodes` in the configuration", job.name)
    } else {
        return Ok(());
    };
    Err(Failure::Refused(why))
}

fn alive(node: &NodeRecord) -> bool {
    u128::from(node.age_ms) <= ALIVE_FOR.as_millis()
}

/// The node itself says which jobs it may run: its configuration counts, not this one's.
fn may_take(node: &NodeRecord, job: &JobConfig) -> bool {
    node.beat.jobs.contains(&job.name)
}

async fn record(desk: &Desk, job: &JobConfig) -> Result<JobRecord, Failure> {
    let mut jobs = desk.store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
    Ok(jobs.pop().unwrap_or_else(|| JobRecord::untouched(job.name.clone())))
}
