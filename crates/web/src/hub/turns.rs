//! The rotations that jobs of this node's configuration wait in: read for the sentences that say why.
//!
//! One reading serves every job and every viewer. It is made only while a job waits for its turn under its lease, at most
//! four times a second, and told only when it says something else.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Hub;
use soloist_domain::job::State;
use soloist_domain::rotation::{Ring, Rules};
use soloist_store::feed::Seen;
use soloist_store::rotation::{RotationView, Rotations as _};

/// How often the rotations are read while a job waits for its turn.
const READ_EVERY: Duration = Duration::from_millis(500);
/// Two readings are never closer than this.
const SPACING: Duration = Duration::from_millis(250);

/// The newest reading.
#[derive(Default)]
pub(super) struct Turns {
    known: Mutex<Option<Arc<Vec<RotationView>>>>,
    /// A job began to wait.
    came: Notify,
}

impl Hub {
    /// The rotations as they were read lately; `None` while no job waits for its turn, or the store does not answer.
    #[must_use]
    pub fn rotations(&self) -> Option<Arc<Vec<RotationView>>> {
        self.turns.known.lock().clone()
    }

    /// Whether a job waits for its turn under its lease.
    fn waits_for_turn(&self, job: usize, seen: &Seen) -> bool {
        let member = self.defined(job).rotation.is_some();
        member
            && seen.record.lease.is_some()
            && matches!(self.word(job, seen), State::Resting | State::Waiting)
    }

    /// To be called when the picture of a job has changed.
    pub(super) fn expect_turn(&self, job: usize, seen: &Seen) {
        if self.waits_for_turn(job, seen) {
            self.turns.came.notify_one();
        }
    }

    /// Reads the rotations if a job waits for its turn, and shows anew what says something else then.
    pub(super) async fn read_turns(&self) {
        let waits = |job: &usize| self.waits_for_turn(*job, &self.seen(*job));
        let waiting: Vec<usize> = self.numbers().into_iter().filter(waits).collect();
        let read = match waiting.is_empty() {
            true => None,
            false => match self.store.rotations(None, 0).await {
                Ok(views) => Some(Arc::new(views)),
                Err(error) => {
                    tracing::debug!(%error, "the rotations could not be read; the next look tries again");
                    None
                }
            },
        };
        let before = std::mem::replace(&mut *self.turns.known.lock(), read.clone());
        let news = |job: &usize| {
            let of = |views: &Option<Arc<Vec<RotationView>>>| self.gist(*job, views.as_deref());
            of(&before) != of(&read)
        };
        self.refresh(waiting.into_iter().filter(news).collect());
    }

    /// Reads the rotations while a job waits for its turn, for as long as this node serves.
    pub(super) async fn watch_turns(self: Arc<Self>) {
        while !self.is_draining() {
            self.read_turns().await;
            tokio::time::sleep(SPACING).await;
            tokio::select! {
                () = tokio::time::sleep(READ_EVERY - SPACING) => {}
                () = self.turns.came.notified() => {}
            }
        }
    }

    /// What of a reading matters for a job's sentence; the outer `None`: there is no reading.
    fn gist(&self, job: usize, views: Option<&Vec<RotationView>>) -> Option<Option<Gist>> {
        let config = self.defined(job);
        let name = config.rotation.as_ref()?;
        let view = views?.iter().find(|view| view.name == *name);
        Some(view.map(|view| Gist {
            rules: view.rules.clone(),
            ring: view.ring.clone(),
            awaited: view.types.iter().map(|kind| kind.waiting > 0).collect(),
        }))
    }
}

/// A rotation without its counters and its clock.
#[derive(PartialEq, Eq)]
struct Gist {
    rules: Rules,
    ring: Ring,
    awaited: Vec<bool>,
}
