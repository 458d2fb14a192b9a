//! The keeper: renews every lease this node holds, in batches, and moves each guard's deadline.
//!
//! A time-out or an error means *unknown*: it is tried again until the guard's own deadline ends the matter. "Not
//! yours" means *lost*. Batches run beside each other with a time-out each, so that a slow one delays no other; where
//! each job may be out of reach by itself (a cluster), each lease is a batch of its own. The keeper neither acquires nor releases, and knows nothing of processes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clock;
use crate::domain::lease::Timing;
use crate::domain::name::Owner;
use crate::domain::time::Boot;
use crate::store::leases::{Leases, Renewal, Renewed};
use crate::store::{Result, Store};
use crate::telemetry::Metrics;

/// Leases per call to the store: 10,000 took 34 ms at this size, and the worst call 0.4 ms.
const BATCH: usize = 100;

/// A handle; cheap to clone.
#[derive(Clone)]
pub struct Keeper {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Keep(Entry),
    Forget(Owner),
}

struct Entry {
    renewal: Renewal,
    timing: Timing,
    due: Boot,
    in_flight: bool,
    trusted: watch::Sender<Boot>,
    lost: Option<oneshot::Sender<()>>,
}

/// What the holder of a kept lease listens to.
pub struct Kept {
    /// Until when the lease may be trusted; moves with every renewal.
    pub trusted_until: watch::Receiver<Boot>,
    /// Resolves when the store says that the lease is another's.
    pub lost: oneshot::Receiver<()>,
}

impl Keeper {
    /// Starts the keeper's task.
    #[must_use]
    pub fn start(store: Store, metrics: Arc<Metrics>) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        tokio::spawn(keep_all(store, metrics, inbox));
        Self { orders }
    }

    /// Renews a lease from now on whose grant was asked for at `sent`.
    #[must_use]
    pub fn keep(&self, renewal: Renewal, timing: Timing, sent: Boot) -> Kept {
        let (trusted, trusted_until) = watch::channel(timing.trusted_until(sent));
        let (lost_tx, lost) = oneshot::channel();
        let due = sent + timing.renew_every;
        let entry = Entry { renewal, timing, due, in_flight: false, trusted, lost: Some(lost_tx) };
        // The task lives as long as the runtime; without it the guard's deadline ends the run.
        drop(self.orders.send(Order::Keep(entry)));
        Kept { trusted_until, lost }
    }

    /// Stops renewing; to be called before the release is sent.
    pub fn forget(&self, owner: &Owner) {
        drop(self.orders.send(Order::Forget(owner.clone())));
    }
}

struct Answer {
    owners: Vec<Owner>,
    sent: Boot,
    result: Result<Vec<Renewed>>,
}

async fn keep_all(store: Store, metrics: Arc<Metrics>, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut entries: HashMap<Owner, Entry> = HashMap::new();
    let mut calls: JoinSet<Answer> = JoinSet::new();
    loop {
        send_due(&store, &mut entries, &mut calls);
        let next = entries.values().filter(|e| !e.in_flight).map(|e| e.due).min();
        let pause = next.map_or(Duration::from_secs(3_600), |due| due.since(clock::boot()));
        tokio::select! {
            order = inbox.recv() => match order {
                Some(Order::Keep(entry)) => {
                    entries.insert(entry.renewal.owner.clone(), entry);
                }
                Some(Order::Forget(owner)) => {
                    entries.remove(&owner);
                }
                None => return,
            },
            Some(Ok(answer)) = calls.join_next(), if !calls.is_empty() => {
                take_answer(answer, &mut entries, &metrics);
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

fn send_due(store: &Store, entries: &mut HashMap<Owner, Entry>, calls: &mut JoinSet<Answer>) {
    let now = clock::boot();
    if !entries.values().any(|e| !e.in_flight && e.due <= now) {
        return;
    }
    // What is due a little later goes along: fewer calls, and neighbours stay together.
    let mut due: Vec<&mut Entry> = entries
        .values_mut()
        .filter(|e| !e.in_flight && e.due <= now + e.timing.renew_every / 8)
        .collect();
    let batch = if store.is_apart() { 1 } else { BATCH };
    for chunk in due.chunks_mut(batch) {
        let longest = chunk.iter().map(|e| e.timing.store_timeout).min().unwrap_or_default();
        let renewals: Vec<Renewal> = chunk.iter().map(|e| e.renewal.clone()).collect();
        for entry in chunk {
            entry.in_flight = true;
        }
        let store = store.clone();
        calls.spawn(async move {
            let sent = clock::boot();
            let result = timeout(longest, store.renew(&renewals)).await.unwrap_or_else(|_| {
                Err(crate::store::StoreError::Unavailable("no answer to a renewal in time".into()))
            });
            let owners = renewals.into_iter().map(|r| r.owner).collect();
            Answer { owners, sent, result }
        });
    }
}

fn take_answer(answer: Answer, entries: &mut HashMap<Owner, Entry>, metrics: &Metrics) {
    let now = clock::boot();
    match answer.result {
        Ok(results) => {
            for (owner, renewed) in answer.owners.iter().zip(results) {
                let Some(entry) = entries.get_mut(owner) else { continue };
                match renewed {
                    Renewed::Kept { margin } => {
                        entry.in_flight = false;
                        entry.due = answer.sent + entry.timing.renew_every;
                        entry.trusted.send_replace(entry.timing.trusted_until(answer.sent));
                        metrics.observe_margin(margin);
                    }
                    Renewed::Lost => {
                        let job = &entry.renewal.job;
                        tracing::error!(%job, "the lease is lost: killing the script");
                        metrics.lease_lost();
                        if let Some(lost) = entries.remove(owner).and_then(|mut e| e.lost.take()) {
                            // A run that has ended meanwhile does not listen any more.
                            lost.send(()).ok();
                        }
                    }
                }
            }
        }
        Err(error) => {
            tracing::warn!(leases = answer.owners.len(), %error, "leases could not be renewed; trying again");
            for owner in &answer.owners {
                if let Some(entry) = entries.get_mut(owner) {
                    entry.in_flight = false;
                    entry.due =
                        now + (entry.timing.renew_every / 4).min(Duration::from_millis(200));
                }
            }
        }
    }
}
