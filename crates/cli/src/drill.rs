//! `soloist drill`: crashes the holder of a job on purpose and says, step by step, how another took over.
//!
//! Every figure is a difference of two instants of the store's clock, and counts from the moment the order was
//! written: the crash itself comes a little later, so no figure flatters.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::office::{Office, at};
use super::output::{print, print_json};
use super::switch::because;
use super::watch::Watch;
use super::{DrillArgs, Failure};
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::time::millis;
use soloist_process::clock;
use soloist_remote::Call;
use soloist_view::drill::{DrillView, warning};
use soloist_view::lists::Runs;
use soloist_view::words::At;
use soloist_view::{JobView, NodeView, RunExit, RunView};

/// What a take-over may need beyond the lease before the drill counts as failed.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(2);
/// So long at least, also while nobody says how long the lease lasts.
const LONGEST_LEASE: Duration = Duration::from_secs(30);
/// A look at least this often, whatever hints were missed.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What is known of the take-over so far; milliseconds from the order.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Progress {
    released_ms: Option<u64>,
    /// Whether the guard gave the lease back; otherwise it ran out.
    by_guard: bool,
    acquired_ms: Option<u64>,
    started_ms: Option<u64>,
    to: Option<String>,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    drill: DrillView,
    from: String,
    released_ms: Option<u64>,
    released_by_guard: bool,
    acquired_ms: Option<u64>,
}

/// `drill`.
pub(super) async fn drill(office: &Office, args: &DrillArgs) -> Result<(), Failure> {
    let name = &args.act.job;
    // Before the order, so that nothing of what follows is missed.
    let mut watch = Watch::start(office).await?;
    let begun = clock::boot();
    let (user, reason) = (args.act.user.as_deref(), args.reason.as_deref());
    let ordered = order(office, name, user, args.force, reason).await?;
    let Ordered { drill, from, .. } = &ordered;
    if !args.list.json {
        step(0, &format!("{} ordered {from} to die (token {})", drill.by, drill.token))?;
    }
    let mut seen = Progress::default();
    let mut limit = LONGEST_LEASE + BEYOND_THE_LEASE;
    loop {
        // A store, or a node, that does not answer for a moment is no reason to give up: the clock decides.
        if let Ok(now) = take_over(office, name, drill.token).await {
            if let Some(lease) = now.job.lease.as_ref().filter(|it| it.token == drill.token) {
                let lasts = Duration::from_millis(lease.expires_in_ms) + BEYOND_THE_LEASE;
                limit = limit.max(clock::boot().since(begun) + lasts);
            }
            let next = progress(&now, &ordered, &seen);
            if !args.list.json {
                say(&seen, &next, from)?;
            }
            seen = next;
            if seen.started_ms.is_some() || (ordered.alone && seen.released_ms.is_some()) {
                return report(now, &ordered, &seen, args.list.json);
            }
            if overtaken(&now, drill.token) {
                return Err(Failure::Failed(format!(
                    "the run on {from} ended before the order reached it: nothing was measured, try again"
                )));
            }
        }
        let left = limit.saturating_sub(clock::boot().since(begun));
        if left.is_zero() {
            return Err(Failure::Failed(blame(name, from, &seen, limit)));
        }
        match timeout(left.min(LOOK_AGAIN), watch.change()).await {
            Ok(Ok(false)) => {
                return Err(Failure::Failed(format!(
                    "interrupted; the order stands: soloist status {name}"
                )));
            }
            // Without a subscription the look every quarter of a second is left.
            Ok(Err(_)) => sleep(left.min(LOOK_AGAIN)).await,
            Ok(Ok(true)) | Err(_) => {}
        }
    }
}

/// A drill that was ordered.
struct Ordered {
    drill: DrillView,
    /// Whose process crashes.
    from: String,
    /// No other node can take the job over.
    alone: bool,
}

/// How far a take-over has come.
struct TakeOver {
    job: JobView,
    /// The run that was crashed, if it is in the history.
    crashed: Option<RunView>,
    /// The newest drill.
    drill: Option<DrillView>,
}

#[derive(Deserialize)]
struct Newest {
    drill: Option<DrillView>,
}

/// Orders the holder of a job to crash, and says on standard error what that means.
async fn order(
    office: &Office,
    name: &str,
    user: Option<&str>,
    force: bool,
    reason: Option<&str>,
) -> Result<Ordered, Failure> {
    let acting = office.acting(user).await?;
    let before = office.job(name).await?;
    let nodes = office.nodes().await?;
    let lease = before.lease.as_ref();
    let from = lease.map_or_else(|| "its node".to_owned(), |lease| lease.node.clone());
    let takes = |node: &&NodeView| {
        node.alive && !node.draining && node.offers.iter().any(|job| job == name)
    };
    let alone = nodes.iter().filter(takes).all(|node| node.name == from);
    if lease.is_some() {
        eprintln!("soloist: {}", warning(&from));
    }
    let call = Call::post(at(name, "/drill")).with(&because(json!({"force": force}), reason));
    let drill = match acting.ask(call).await {
        Err(Failure::Refused(detail)) => {
            return Err(Failure::Refused(detail.replace("with force", "with --force")));
        }
        // The node that was asked may die of it before it can answer; the others know the order.
        Err(lost @ Failure::Failed(_)) => {
            let Newest { drill } = office.get(at(name, "/drill")).await?;
            let token = lease.map(|lease| lease.token);
            drill.filter(|drill| Some(drill.token) == token).ok_or(lost)?
        }
        answer => answer?,
    };
    Ok(Ordered { drill, from, alone: force && alone })
}

/// How far the take-over after a drill has come; `token` is of the lease that was crashed.
async fn take_over(office: &Office, name: &str, token: u64) -> Result<TakeOver, Failure> {
    let Newest { drill } = office.get(at(name, "/drill")).await?;
    let Runs { runs } = office.get(at(name, "/runs?limit=20")).await?;
    let crashed = runs.into_iter().find(|run| run.token == token);
    Ok(TakeOver { job: office.job(name).await?, crashed, drill })
}

/// Whether the guard gave the lease of a crashed run back: the next holder closes a run whose lease ran out, and knows no exit
/// of it.
fn is_given_back(run: &RunView) -> bool {
    let nothing = RunExit::from(Exit::default());
    run.end == Some(RunEnd::Lost) && run.exit != nothing
}

/// What `now` shows of the take-over; whatever was seen once stays.
fn progress(now: &TakeOver, of: &Ordered, seen: &Progress) -> Progress {
    let (token, ordered) = (of.drill.token, of.drill.ordered.0);
    let from_order = |At(at): At| millis(at.since(ordered));
    let lost = now.crashed.as_ref().filter(|run| run.end == Some(RunEnd::Lost));
    let released = lost.and_then(|run| run.ended);
    let lease = now.job.lease.as_ref().filter(|lease| lease.token > token);
    let done = now.drill.as_ref().filter(|drill| drill.token == token);
    let to = done.and_then(|drill| drill.to.as_ref()).or(lease.map(|lease| &lease.node));
    Progress {
        released_ms: seen.released_ms.or(released.map(from_order)),
        by_guard: seen.by_guard || lost.is_some_and(is_given_back),
        acquired_ms: seen.acquired_ms.or(lease.map(|lease| from_order(lease.since))),
        started_ms: done.and_then(|drill| drill.started).map(from_order),
        to: to.cloned().or_else(|| seen.to.clone()),
    }
}

/// The run ended by itself, or was stopped, before the order came.
fn overtaken(now: &TakeOver, token: u64) -> bool {
    let gone = now.job.lease.as_ref().is_none_or(|lease| lease.token != token);
    let ended = now.crashed.as_ref().and_then(|run| run.end);
    let superseded = now.drill.as_ref().is_none_or(|drill| drill.token != token);
    superseded || (gone && ended.is_some_and(|end| end != RunEnd::Lost))
}

fn say(before: &Progress, now: &Progress, from: &str) -> Result<(), Failure> {
    let to = now.to.as_deref().unwrap_or("another node");
    if let (None, Some(ms)) = (before.released_ms, now.released_ms) {
        let how = match now.by_guard {
            true => "is dead; its guard proved the script gone and gave the lease back",
            false => "is silent; its lease ran out",
        };
        step(ms, &format!("{from} {how}"))?;
    }
    if let (None, Some(ms)) = (before.acquired_ms, now.acquired_ms) {
        step(ms, &format!("{to} acquired the lease"))?;
    }
    if let (None, Some(ms)) = (before.started_ms, now.started_ms) {
        step(ms, &format!("{to} started the script"))?;
    }
    Ok(())
}

fn step(ms: u64, text: &str) -> Result<(), Failure> {
    print(&format!("{ms:>6} ms  {text}"))
}

fn report(now: TakeOver, of: &Ordered, seen: &Progress, json: bool) -> Result<(), Failure> {
    let from = of.from.clone();
    if json {
        let drill = now.drill.filter(|drill| drill.token == of.drill.token);
        return print_json(&Report {
            drill: drill.unwrap_or_else(|| of.drill.clone()),
            from,
            released_ms: seen.released_ms,
            released_by_guard: seen.by_guard,
            acquired_ms: seen.acquired_ms,
        });
    }
    print(&match seen.started_ms {
        Some(ms) => format!("Taken over in {ms} ms, from the order to the start of the script."),
        None => format!(
            "{from} is dead, and {} is down until a node that may run it is there: soloist nodes",
            now.job.name
        ),
    })
}

/// What to look at when no node took over in time.
fn blame(name: &str, node: &str, seen: &Progress, limit: Duration) -> String {
    let what = match (seen.released_ms, seen.acquired_ms) {
        (None, _) => format!(
            "the lease of {node} is still out: is {node} cut off from the store, or of an older version that knows no drills? Look at its log"
        ),
        (Some(_), None) => format!(
            "the lease is free and nobody took it: soloist why {name}, soloist nodes, and the logs of the other nodes"
        ),
        (Some(_), Some(_)) => format!(
            "{} took the lease and did not start the script: soloist logs {name}",
            seen.to.as_deref().unwrap_or("a node")
        ),
    };
    format!("nobody runs {name} {} s after the order; {what}", limit.as_secs_f64())
}
