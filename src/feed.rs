//! The feed: follows the store's events, keeps the newest picture of every job, and fans changes out inside the
//! process.
//!
//! Events are hints; the feed reads the state itself, drops what is not newer, and takes a whole snapshot after
//! every interruption, on a new epoch and when a comparison every few seconds finds a difference. One subscription
//! per process. It decides nothing.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::clock;
use crate::domain::job::{JobRecord, Viewpoint};
use crate::domain::lease::Timing;
use crate::domain::name::JobName;
use crate::domain::time::{Boot, StoreTime};
use crate::store::Store;
use crate::store::nodes::NodeRecord;

/// A job as last read.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What the store said.
    pub record: Arc<JobRecord>,
    /// The store's clock at that moment.
    pub at: StoreTime,
    /// This machine's clock *before* that reading was asked for; observations of an unchanged version renew it.
    pub confirmed: Boot,
}

impl Seen {
    /// The store's clock now, as well as it is known here.
    #[must_use]
    pub fn store_now(&self, now: Boot) -> StoreTime {
        self.at + now.since(self.confirmed)
    }

    /// The record from where this node stands.
    #[must_use]
    pub fn viewpoint(&self, now: Boot, timing: &Timing, min_uptime: Duration) -> Viewpoint {
        Viewpoint {
            now: self.store_now(now),
            age: now.since(self.confirmed),
            stale_after: timing.ttl + Duration::from_millis(500),
            min_uptime,
            silent_after: timing.silent_after(),
        }
    }
}

/// What listeners are told; all of it can be read again from [`Feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A job has a newer picture (or its lease was seen to be silent, renewed again, or gone).
    Job(JobName),
    /// Nodes came, went or changed.
    Nodes,
    /// The store became reachable or unreachable.
    Reachable(bool),
    /// A new epoch or an interruption: everything was read again.
    Resynced,
}

/// A handle; cheap to clone.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    jobs: RwLock<HashMap<JobName, Seen>>,
    nodes: RwLock<Vec<NodeRecord>>,
    epoch: RwLock<String>,
    trouble: RwLock<Option<String>>,
    changes: broadcast::Sender<Change>,
}

impl Feed {
    /// The newest picture of one job; `None` until the first snapshot.
    #[must_use]
    pub fn job(&self, name: &JobName) -> Option<Seen> {
        unimplemented!("{name:?}")
    }
    /// Nodes as last read.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeRecord> {
        unimplemented!()
    }
    /// The epoch that versions belong to.
    #[must_use]
    pub fn epoch(&self) -> String {
        unimplemented!()
    }
    /// `None` while the store is reachable, else what is wrong (at once, not after the lease).
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        unimplemented!()
    }
    /// Changes from now on. A listener that lags reads everything again.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }
    /// Follows `jobs` until the process ends; returns after the first snapshot, or at once if the store is away.
    pub async fn start(_store: Store, _jobs: Vec<(JobName, Timing)>) -> Feed {
        let _now = clock::boot();
        unimplemented!()
    }
}
