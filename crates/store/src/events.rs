//! Events: hints that make polling unnecessary.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::Result;
use super::dispatch::Waiter;
use soloist_domain::event::JobEvent;
use soloist_domain::job::JobRecord;
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;

/// What a subscriber receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreEvent {
    /// A job changed.
    Job(JobEvent),
    /// How it is since then, told before the [`StoreEvent::Job`] of the change, or of the first of several. It may be lost, come twice
    /// or late, or be newer than the change: a reader that keeps the newest compares versions and instants.
    Record(Told),
    /// The lease of this job ended or was released beside its record: read it.
    Lease(JobName),
    /// Something about nodes changed.
    Nodes,
    /// An account, a session or a token was changed or ended: a connection that is open under one asks again.
    Accounts,
    /// It is the turn of these waiters; those of other nodes are heard as well.
    Wake(Vec<Waiter>),
    /// The subscription is confirmed (first, and after every interruption): take a snapshot now.
    Subscribed,
    /// The subscription is interrupted, on a cluster perhaps a part of it; a [`StoreEvent::Subscribed`] follows when
    /// it is back.
    Interrupted,
}

/// A record as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// With the time that was left of its lease at that instant.
    pub record: Arc<JobRecord>,
    /// When it was so, by the store's clock: at the change, or at a reading after it.
    pub at: StoreTime,
}

/// The subscription of changes.
#[async_trait]
pub trait Events {
    /// Subscribes to `jobs` and nodes; other jobs may be heard as well. The store keeps the subscription alive by itself until
    /// the receiver is dropped. The channel is bounded: when its reader is slow, hints are dropped and
    /// [`StoreEvent::Subscribed`] is sent instead, so that it takes a snapshot.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] when the first subscription is not confirmed in time.
    async fn subscribe(&self, jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>>;
}
