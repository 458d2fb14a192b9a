//! A store in memory, for tests alone: what is kept is a few maps, and its clock stands still until a test moves it.
//!
//! No address leads here, so no configuration does. A [`World`] is what a server is elsewhere, each [`World::connect`] a process
//! that uses it. It decides nothing: jobs and records are carried out by `store::core`, dispatch by `sql::dispatch` of `store-sql`, doubt is
//! `domain::doubt`. It is never copied (`store::copy` opens stores by their addresses). The laws of the core are held to it here (`core`).
//!
//! | file | what |
//! | --- | --- |
//! | `engine` | the port of jobs, and may the store be believed |
//! | `records` | the port of what belongs to no job |
//! | `shelf` | sessions for dispatch, on a SQLite database in memory |
//! | `events` | what is told, and who listens |

#[cfg(test)]
mod core;
mod engine;
mod events;
mod records;
mod shelf;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

pub(crate) use self::engine::MemoryStore;
#[cfg(test)]
pub(crate) use self::records::MemoryRecords;
use soloist_domain::time::{Boot, Stamp};
use soloist_store::{Options, Store};

/// When every world begins, in microseconds: 2027-01-15 08:00 UTC.
const BEGINNING: i64 = 1_800_000_000_000_000;
/// So long every machine has been running then.
const UP: Duration = Duration::from_secs(3_600_000);

/// What all processes at one store in memory share, its clock too.
#[derive(Clone)]
pub struct World(MemoryStore);

impl World {
    /// An empty store.
    ///
    /// # Panics
    /// When SQLite cannot make a database in memory.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self(MemoryStore::alone(options, Clock::new(0)))
    }

    /// The same, where each change takes a microsecond: no two happen at one instant, as on every other store.
    ///
    /// # Panics
    /// As [`World::new`].
    #[must_use]
    pub fn ticking(options: &Options) -> Self {
        Self(MemoryStore::alone(options, Clock::new(1)))
    }

    /// One more process that uses it.
    #[must_use]
    pub fn connect(&self, options: &Options) -> Store {
        Store::on(Arc::new(self.0.another(options)), None, options)
    }

    /// Lets time pass.
    pub fn pass(&self, span: Duration) {
        self.0.clock().pass(span);
    }

    /// The store's clock.
    #[must_use]
    pub fn now(&self) -> Stamp {
        self.0.clock().now()
    }

    /// The clock of every machine, which runs as the store's does.
    #[must_use]
    pub fn boot(&self) -> Boot {
        self.0.clock().boot()
    }

    /// The server crashes and starts again. What it kept is there still, but a process cannot know that all of it is.
    pub fn restart(&self) {
        self.0.restart(false);
    }

    /// The same, and nothing was kept of jobs and leases.
    pub fn forget(&self) {
        self.0.restart(true);
    }
}

/// Where `store` is kept, if that is in memory.
#[must_use]
pub fn world(store: &Store) -> Option<World> {
    store.in_memory()?.downcast().ok().map(|world| *world)
}

/// A clock that stands still until it is moved. Microseconds.
#[derive(Debug, Clone)]
struct Clock {
    now: Arc<AtomicI64>,
    /// How long each change takes.
    change: i64,
}

impl Clock {
    fn new(change: i64) -> Self {
        Self { now: Arc::new(AtomicI64::new(BEGINNING)), change }
    }

    /// The instant of a change.
    fn change(&self) -> Stamp {
        Stamp(self.now.fetch_add(self.change, Ordering::SeqCst) + self.change)
    }

    fn pass(&self, span: Duration) {
        let span = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        self.now.fetch_add(span, Ordering::SeqCst);
    }

    fn now(&self) -> Stamp {
        Stamp(self.now.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Boot {
        Boot(0) + UP + self.now().since(Stamp(BEGINNING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_address_leads_to_a_store_in_memory() {
        for url in ["memory:", "memory://", "mem:x", "in_memory:"] {
            let refused = soloist_stores::connect(url, &Options::default()).await;
            assert!(matches!(refused, Err(soloist_store::StoreError::Unsupported(_))), "{url}");
        }
    }
}
