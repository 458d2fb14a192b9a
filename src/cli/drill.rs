//! `soloist drill`: crashes the holder of a job on purpose and says, step by step, how another took over.
//!
//! Every figure is a difference of two instants of the store's clock, and counts from the moment the order was
//! written: the crash itself comes a little later, so no figure flatters.

use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::output::{print, print_json};
use super::{CommandContext, DrillArgs, Failure};
use crate::clock;
use crate::config::JobConfig;
use crate::domain::drill::Drill;
use crate::domain::job::{Exit, JobRecord, LeaseRecord, RunEnd};
use crate::domain::lease::Token;
use crate::domain::time::StoreTime;
use crate::ops::jobs::{self, Ordered};
use crate::store::events::{Events, StoreEvent};
use crate::store::jobs::Jobs;
use crate::store::{Result as StoreResult, StoreError};
use crate::view::drill::{DrillView, target, warning};

/// What a take-over may need beyond the lease before the drill counts as failed.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(2);
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
pub(super) async fn drill(context: &CommandContext, args: &DrillArgs) -> Result<(), Failure> {
    let job = context.job(&args.act.job)?;
    let actor = context.operator(args.act.user.as_deref()).await?;
    let mut events = context.store.subscribe(std::slice::from_ref(&job.name)).await?;
    let begun = clock::boot();
    let force = (args.force, "--force");
    let ordered = jobs::drill(&context.store, &actor, job, force, |lease| {
        eprintln!("soloist: {}", warning(lease.node.as_str()));
    });
    let Ordered { before, lease, drill } = ordered.await?;
    let (lease, ordered) = (&lease, drill.at);
    if !args.list.json {
        step(0, &format!("{} ordered {} to die (token {})", drill.by, lease.node, lease.token))?;
    }
    let alone = args.force && target(&before, &context.nodes().await?, false, "").is_err();
    let mut seen = Progress::default();
    let limit = lease.ttl + BEYOND_THE_LEASE;
    loop {
        // A store that does not answer for a moment is no reason to give up: the clock decides.
        if let Ok(record) = record(context, job).await {
            let now = progress(&record, lease, ordered, &seen);
            if !args.list.json {
                say(&seen, &now, lease)?;
            }
            seen = now;
            if seen.started_ms.is_some() || (alone && seen.released_ms.is_some()) {
                return report(&record, lease, &drill, &seen, args.list.json);
            }
            if overtaken(&record, lease) {
                return Err(Failure::Failed(format!(
                    "the run on {} ended before the order reached it: nothing was measured, try again",
                    lease.node
                )));
            }
        }
        let left = limit.saturating_sub(clock::boot().since(begun));
        if left.is_zero() {
            return Err(Failure::Failed(blame(job, lease, &seen, limit)));
        }
        drop(timeout(left.min(LOOK_AGAIN), hint(&mut events)).await);
    }
}

async fn record(context: &CommandContext, job: &JobConfig) -> StoreResult<JobRecord> {
    let jobs = context.store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
    jobs.into_iter().next().ok_or_else(|| StoreError::Corrupt("a snapshot without the job".into()))
}

async fn hint(events: &mut Receiver<StoreEvent>) {
    if events.recv().await.is_none() {
        // Without a subscription the look every quarter of a second is left.
        std::future::pending::<()>().await;
    }
    while events.try_recv().is_ok() {}
}

/// What `record` shows of the take-over; whatever was seen once stays.
fn progress(
    record: &JobRecord,
    crashed: &LeaseRecord,
    ordered: StoreTime,
    seen: &Progress,
) -> Progress {
    let from_order =
        |at: StoreTime| Some(u64::try_from(at.since(ordered).as_millis()).unwrap_or(u64::MAX));
    let later = |token: Token| token > crashed.token;
    let lost = record
        .last_exit
        .as_ref()
        .filter(|last| last.end == RunEnd::Lost && last.node == crashed.node && last.at >= ordered);
    let lease = record.lease.as_ref().filter(|lease| later(lease.token));
    let done = record.drill.as_ref().filter(|drill| drill.token == crashed.token);
    let to = done.and_then(|drill| drill.to.as_ref()).or(lease.map(|lease| &lease.node));
    Progress {
        released_ms: seen.released_ms.or(lost.and_then(|last| from_order(last.at))),
        // The next holder closes a run whose lease ran out, and knows no exit of it.
        by_guard: seen.by_guard || lost.is_some_and(|last| last.exit != Exit::default()),
        acquired_ms: seen.acquired_ms.or(lease.and_then(|lease| from_order(lease.since))),
        started_ms: done.and_then(|drill| drill.started).and_then(from_order),
        to: to.map(ToString::to_string).or_else(|| seen.to.clone()),
    }
}

/// The run ended by itself, or was stopped, before the order came.
fn overtaken(record: &JobRecord, crashed: &LeaseRecord) -> bool {
    let gone = record.lease.as_ref().is_none_or(|lease| lease.token != crashed.token);
    let lost = record.last_exit.as_ref().is_some_and(|last| last.end == RunEnd::Lost);
    let superseded = record.drill.as_ref().is_none_or(|drill| drill.token != crashed.token);
    superseded || (gone && !lost && record.last_exit.is_some())
}

fn say(before: &Progress, now: &Progress, crashed: &LeaseRecord) -> Result<(), Failure> {
    let to = now.to.as_deref().unwrap_or("another node");
    if let (None, Some(ms)) = (before.released_ms, now.released_ms) {
        let how = match now.by_guard {
            true => "is dead; its guard proved the script gone and gave the lease back",
            false => "is silent; its lease ran out",
        };
        step(ms, &format!("{} {how}", crashed.node))?;
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

fn report(
    record: &JobRecord,
    crashed: &LeaseRecord,
    ordered: &Drill,
    seen: &Progress,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let drill = record.drill.as_ref().filter(|drill| drill.token == crashed.token);
        return print_json(&Report {
            drill: DrillView::of(&record.name, drill.unwrap_or(ordered)),
            from: crashed.node.to_string(),
            released_ms: seen.released_ms,
            released_by_guard: seen.by_guard,
            acquired_ms: seen.acquired_ms,
        });
    }
    print(&match seen.started_ms {
        Some(ms) => format!("Taken over in {ms} ms, from the order to the start of the script."),
        None => format!(
            "{} is dead, and {} is down until a node that may run it is there: soloist nodes",
            crashed.node, record.name
        ),
    })
}

/// What to look at when nobody took over in time.
fn blame(job: &JobConfig, crashed: &LeaseRecord, seen: &Progress, limit: Duration) -> String {
    let (name, node) = (&job.name, &crashed.node);
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
