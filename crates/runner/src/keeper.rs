//! The keeper: renews every lease this node holds, in batches, and moves each guard's deadline.
//!
//! A time-out or an error means *unknown*: it is retried until the guard's own deadline. "Not yours" means *lost*. Batches run in
//! parallel with a time-out each, so that a slow one delays no other; where each job may be unreachable by itself (a cluster), each lease
//! is a batch of its own. The keeper neither acquires nor releases, and knows nothing of processes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::hold::{Hold, Trusted};
use super::renewals::{Party, Renewals};
use soloist_domain::lease::Timing;
use soloist_domain::name::{Owner, RunId};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_process::telemetry::Metrics;
use soloist_store::leases::{Leases, Renewal, Renewed};
use soloist_store::{Result, Store, StoreError};

/// Leases per call to the store: 10,000 took 34 ms at this size, and the worst call 0.4 ms.
const BATCH: usize = 100;

/// A handle; cheap to clone.
#[derive(Clone)]
pub struct Keeper {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Keep(Entry),
    Reported(Owner, RunId),
    Forget(Owner),
}

struct Entry {
    renewal: Renewal,
    trusted: Trusted,
    forgot: watch::Sender<()>,
}

/// What the holder of a kept lease listens to.
pub struct Kept {
    /// How far the lease may be trusted.
    pub lease: Hold,
    /// Changes when the store forgot the lease, or the run under it: what was reported must be reported again.
    pub forgot: watch::Receiver<()>,
    /// For telling the keeper which run the store knows.
    pub told: Told,
}

/// Tells the keeper that the store has confirmed to know a run; cheap to clone.
#[derive(Clone)]
pub struct Told {
    orders: mpsc::UnboundedSender<Order>,
    owner: Owner,
}

impl Told {
    /// From now on every renewal asks whether the store still knows `run`.
    pub fn reported(&self, run: &RunId) {
        drop(self.orders.send(Order::Reported(self.owner.clone(), run.clone())));
    }
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
        let (trusted, lease) = Trusted::since(sent, timing);
        let (forgot_tx, forgot) = watch::channel(());
        let told = Told { orders: self.orders.clone(), owner: renewal.owner.clone() };
        let entry = Entry { renewal, trusted, forgot: forgot_tx };
        // The task lives as long as the runtime; without it the guard's deadline ends the run.
        drop(self.orders.send(Order::Keep(entry)));
        Kept { lease, forgot, told }
    }

    /// Stops renewing; to be called before the release is sent.
    pub fn forget(&self, owner: &Owner) {
        drop(self.orders.send(Order::Forget(owner.clone())));
    }
}

struct Answer {
    party: Party,
    sent: Boot,
    result: Result<Vec<Renewed>>,
}

async fn keep_all(store: Store, metrics: Arc<Metrics>, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut kept = Leased::default();
    let mut calls: JoinSet<Answer> = JoinSet::new();
    loop {
        kept.send_due(&store, &mut calls);
        let pause =
            kept.rounds.next().map_or(Duration::from_secs(3_600), |due| due.since(clock::boot()));
        tokio::select! {
            order = inbox.recv() => match order {
                Some(Order::Keep(entry)) => kept.keep(entry),
                Some(Order::Reported(owner, run)) => kept.reported(&owner, run),
                Some(Order::Forget(owner)) => kept.forget(&owner),
                None => return,
            },
            Some(Ok(answer)) = calls.join_next(), if !calls.is_empty() => {
                kept.take_answer(answer, &metrics);
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The leases, and those of them that are not on their way in the order in which they are due.
#[derive(Default)]
struct Leased {
    entries: HashMap<Owner, Entry>,
    rounds: Renewals,
}

impl Leased {
    fn keep(&mut self, entry: Entry) {
        Self::put(&mut self.rounds, &entry);
        self.entries.insert(entry.renewal.owner.clone(), entry);
    }

    /// An entry that was not on the list, or was on its way, is due again.
    fn put(rounds: &mut Renewals, entry: &Entry) {
        let Entry { renewal, trusted, .. } = entry;
        rounds.put(renewal.owner.clone(), trusted.due, trusted.timing.renew_every);
    }

    fn reported(&mut self, owner: &Owner, run: RunId) {
        if let Some(entry) = self.entries.get_mut(owner) {
            entry.renewal.run = Some(run);
        }
    }

    fn forget(&mut self, owner: &Owner) {
        if let Some(entry) = self.entries.remove(owner) {
            self.rounds.remove(owner.clone(), entry.trusted.due);
        }
    }

    fn send_due(&mut self, store: &Store, calls: &mut JoinSet<Answer>) {
        let batch = if store.is_sharded() { 1 } else { BATCH };
        for party in self.rounds.take(clock::boot(), batch) {
            let entries = || party.owners.iter().filter_map(|owner| self.entries.get(owner));
            let patience = entries().map(|e| e.trusted.timing.store_timeout).min();
            let renewals: Vec<Renewal> = entries().map(|e| e.renewal.clone()).collect();
            let store = store.clone();
            calls.spawn(async move {
                let sent = clock::boot();
                let asked = timeout(patience.unwrap_or_default(), store.renew(&renewals));
                let result = asked.await.unwrap_or_else(|_| {
                    Err(StoreError::Unavailable("no answer to a renewal in time".into()))
                });
                Answer { party, sent, result }
            });
        }
    }

    fn take_answer(&mut self, Answer { party, sent, result }: Answer, metrics: &Metrics) {
        match result {
            Ok(results) => {
                for (owner, renewed) in party.owners.iter().zip(results) {
                    self.take_one(owner, &renewed, &party, sent, metrics);
                }
            }
            Err(error) => {
                tracing::warn!(leases = party.owners.len(), %error, "leases could not be renewed; trying again");
                for owner in &party.owners {
                    if let Some(entry) = self.entries.get_mut(owner) {
                        entry.trusted.failed(sent);
                        Self::put(&mut self.rounds, entry);
                    }
                }
            }
        }
    }

    fn take_one(
        &mut self,
        owner: &Owner,
        renewed: &Renewed,
        party: &Party,
        sent: Boot,
        metrics: &Metrics,
    ) {
        let Some(entry) = self.entries.get_mut(owner) else { return };
        let job = &entry.renewal.job;
        match *renewed {
            Renewed::Kept { margin, forgot } => {
                if forgot {
                    tracing::warn!(%job, "the store forgot the lease or its run: reporting it again");
                    entry.forgot.send_replace(());
                }
                let after = party.next_after(entry.trusted.timing.renew_every);
                entry.trusted.renewed(sent, after);
                Self::put(&mut self.rounds, entry);
                metrics.observe_margin(margin);
            }
            Renewed::Lost => {
                tracing::error!(%job, "the lease is lost: killing the script");
                metrics.lease_lost();
                if let Some(entry) = self.entries.remove(owner) {
                    entry.trusted.lost();
                }
            }
        }
    }
}
