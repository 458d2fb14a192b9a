//! `soloist collect`: a ready collector. Slots claim one task each, run the command on it, and report how it ended.
//!
//! An idle slot waits at the store: it is woken when work is there, and asks again every second in case a wake was lost. This process
//! does what the store's clock makes due, as nodes do, so collectors need no node. `slot` is one slot, `task_run` one task.
//!
//! To stop is to claim nothing more, let the running commands end, kill those that do not end within the grace, and return their tasks.

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::child::become_subreaper;
pub use super::collector::CollectCommand;
use super::collector::{ASK_AGAIN, Collector, LAST_WORDS, LOOK_AGAIN, NoCommand, Stop};
use super::command::{NOT_STARTED, say};
use super::passthrough::Passthrough;
use super::signals::Signals;
use super::task_run::too_short;
use super::trouble::Trouble;
use super::work_source::WorkSource;
use soloist_domain::lease::Timing;
use soloist_domain::name::SourceName;
use soloist_process::clock;
use soloist_remote::Client;
use soloist_store::dispatch::{ClaimOwner, Dispatch, Waiter};
use soloist_store::events::{Events, StoreEvent};
use soloist_store::{Options, StoreError};

/// Collects until it is asked to stop, or there is no more work; returns 0, or 127 when the command cannot
/// be started.
///
/// # Errors
/// A source that does not exist, a store that cannot be used, a result that could not be reported.
pub async fn run(with: CollectCommand) -> anyhow::Result<i32> {
    let mut signals = Signals::listen()?;
    // Before any task is claimed, also when there is none.
    if let Err(problem) = with.program.find() {
        say(&problem);
        return Ok(NOT_STARTED);
    }
    // This process starts guards and nothing else.
    become_subreaper();
    with.program.sweep()?;
    let begun = tokio::select! {
        begun = begin(&with) => begun?,
        _ = signals.next() => return Ok(0),
    };
    let (work_source, leases) = begun;
    let (relay, writing) = Passthrough::start()?;
    let random: u128 = rand::random();
    let bells = (0..with.parallel)
        .map(|slot| (Waiter(format!("collect/{random:032x}/{slot}")), Notify::new()))
        .collect();
    let collector = Collector {
        started: AtomicU64::new(0),
        leases: Mutex::new(leases),
        stop: watch::Sender::new(Stop::Working),
        stir: Notify::new(),
        away: watch::Sender::new(false),
        work_source,
        with,
        relay,
        bells,
    };
    let ended = collector.work(&mut signals).await;
    drop(collector);
    writing.end(LAST_WORDS).await;
    match ended {
        Err(error) if error.is::<NoCommand>() => {
            say(&error.to_string());
            Ok(NOT_STARTED)
        }
        ended => ended.map(|()| 0),
    }
}

/// Opens the store and reads the sources; retried while the store is away.
async fn begin(
    with: &CollectCommand,
) -> anyhow::Result<(WorkSource, HashMap<SourceName, Duration>)> {
    let options = Options { make: false, ..with.program.options(with.longest_lease) };
    let mut said = false;
    loop {
        let begun = async {
            let work_source = match &with.program.server {
                Some(access) => WorkSource::Server(Client::new(access.clone())?),
                None => {
                    let owner = ClaimOwner::of(&format!("{:032x}", rand::random::<u128>()));
                    let store = (with.open)(&with.program.store_url, &options).await?;
                    WorkSource::Store(store, owner)
                }
            };
            let mut leases = HashMap::new();
            for source in &with.sources {
                let lease = work_source.lease_of(source).await;
                let Some(lease) = lease.map_err(|error| missing(error, source))? else { continue };
                if Timing::from_ttl(lease).is_err() {
                    return Err(StoreError::Unsupported(too_short(source, lease)).into());
                }
                leases.insert(source.clone(), lease);
            }
            Ok((work_source, leases))
        };
        match begun.await {
            Ok(begun) => return Ok(begun),
            Err(error @ Trouble::Away(_)) => {
                if !std::mem::replace(&mut said, true) {
                    let who = if with.program.server.is_some() { "a node" } else { "the store" };
                    say(&format!("waiting for {who}: {error}"));
                }
                sleep(ASK_AGAIN).await;
            }
            Err(error) => return Err(error.into_error()),
        }
    }
}

fn missing(error: Trouble, source: &SourceName) -> Trouble {
    match error {
        // The text goes on with "does not exist".
        Trouble::NotFound(_) => StoreError::NotFound(format!(
            "source {source} (define it first with: soloist source set {source}, or PUT /api/v1/sources/{source})"
        ))
        .into(),
        other => other,
    }
}

impl Collector {
    async fn work(&self, signals: &mut Signals) -> anyhow::Result<()> {
        let slots = join_all((0..self.bells.len()).map(|slot| self.slot(slot)));
        tokio::pin!(slots);
        let ended = loop {
            tokio::select! {
                ended = &mut slots => break ended,
                _ = signals.next() => self.stop_asked(),
                () = self.listen() => {}
                () = self.do_what_is_due() => {}
            }
        };
        ended.into_iter().collect()
    }

    /// The second time it is at once.
    fn stop_asked(&self) {
        let grace = self.with.program.stop_grace;
        let now = clock::boot();
        self.relay.ending();
        let stop = match *self.stop.borrow() {
            Stop::Working => {
                say(&format!(
                    "stopping: no new task; those at work have {grace:?} to end (the same signal again kills them at once)"
                ));
                Stop::Until(now + grace)
            }
            Stop::Until(_) => Stop::Until(now),
        };
        self.stop.send_replace(stop);
    }

    /// Receives wake events of the store; never ends. A node wakes by its answer.
    async fn listen(&self) {
        let WorkSource::Store(store, _) = &self.work_source else { return pending().await };
        loop {
            if let Ok(mut events) = store.subscribe(&[]).await {
                while let Some(event) = events.recv().await {
                    match event {
                        StoreEvent::Wake(woken) => {
                            let ours = |(waiter, _): &&(Waiter, Notify)| woken.contains(waiter);
                            self.bells.iter().filter(ours).for_each(|(_, bell)| bell.notify_one());
                        }
                        // Something may have been missed.
                        StoreEvent::Subscribed => {
                            self.bells.iter().for_each(|(_, bell)| bell.notify_one());
                        }
                        StoreEvent::Job(_)
                        | StoreEvent::Record(_)
                        | StoreEvent::Lease(_)
                        | StoreEvent::Nodes
                        | StoreEvent::Accounts
                        | StoreEvent::Interrupted => {}
                    }
                }
            }
            sleep(ASK_AGAIN).await;
        }
    }

    /// Does what any node would do, for this process and for others; ends never.
    async fn do_what_is_due(&self) {
        let WorkSource::Store(store, _) = &self.work_source else { return pending().await };
        let mut pause = None;
        loop {
            tokio::select! {
                () = self.stir.notified() => {}
                () = async {
                    match pause {
                        Some(pause) => sleep(pause).await,
                        None => pending().await,
                    }
                } => {}
            }
            pause = match store.pump().await {
                Ok(pumped) if pumped.more => Some(Duration::ZERO),
                // Later than a slot that waits looks by itself: then that is soon enough.
                Ok(pumped) => {
                    pumped.next.map(|next| next.since(pumped.now)).filter(|p| *p < LOOK_AGAIN)
                }
                Err(_) => None,
            };
            // Never in a tight circle.
            pause = pause.map(|pause| pause.max(Duration::from_millis(1)));
        }
    }
}
