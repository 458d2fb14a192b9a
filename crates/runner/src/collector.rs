//! What the slots of a collector share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::passthrough::Passthrough;
use super::program::Program;
use super::work_source::WorkSource;
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::Opener;
use soloist_store::dispatch::Waiter;

/// A waiting slot asks again at least about this often, in case a wake was lost.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A store that is away is asked again this often.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(200);
/// How long the end of this process waits for a store that is away, and for a reader of the output.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(5);

/// What to do.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as on the command line")]
pub struct CollectCommand {
    /// What opens the store.
    pub open: Opener,
    pub collector: CollectorName,
    pub sources: Vec<SourceName>,
    pub parallel: u32,
    /// End after so many tasks.
    pub max: Option<u64>,
    /// End when the sources have no task that is ready, due or leased.
    pub until_empty: bool,
    pub program: Program,
    pub longest_lease: Duration,
}

/// The command cannot be started on this machine: no task would fare better than another.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NoCommand(pub(super) String);

/// Whether and how this process is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Working,
    /// Nothing more is claimed; what still runs then is killed.
    Until(Boot),
}

impl Stop {
    /// Returns when what still runs is to be killed.
    pub(super) async fn overdue(stop: &mut watch::Receiver<Self>) {
        loop {
            let seen = *stop.borrow_and_update();
            let until = match seen {
                Self::Working => None,
                Self::Until(at) => Some(at.since(clock::boot())),
            };
            tokio::select! {
                // It can only get sooner.
                Ok(()) = stop.changed() => {}
                () = async {
                    match until {
                        Some(left) => sleep(left).await,
                        None => std::future::pending().await,
                    }
                } => return,
            }
        }
    }
}

/// What the slots share.
pub(super) struct Collector {
    pub(super) with: CollectCommand,
    pub(super) work_source: WorkSource,
    pub(super) relay: Passthrough,
    pub(super) stop: watch::Sender<Stop>,
    /// As last read.
    pub(super) leases: Mutex<HashMap<SourceName, Duration>>,
    /// Tasks that were claimed, or are being asked for.
    pub(super) started: AtomicU64,
    /// One for each slot.
    pub(super) bells: Vec<(Waiter, Notify)>,
    /// Something was asked at the store, so there may be something to do soon.
    pub(super) stir: Notify,
    /// Whether the store was away when it was last asked.
    pub(super) away: watch::Sender<bool>,
}

impl Collector {
    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow() != Stop::Working
    }

    /// Whether one more may be claimed.
    pub(super) fn may_start(&self) -> bool {
        let one_more =
            |started: u64| self.with.max.is_none_or(|max| started < max).then_some(started + 1);
        !self.is_stopping()
            && self.started.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }
}
