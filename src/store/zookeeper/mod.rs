//! ZooKeeper 3.6 and later as coordination beside a server store: leases of nodes and of `soloist run` are ephemeral nodes there, and
//! their ends are heard by a watch.
//!
//! The store keeps the records, and everything else. [`Coordinated`] is an [`Engine`](super::engine::Engine) on the engine of the store: what `core` reads is the record
//! with the lease from here, and what it commits is done in two steps. No law and no record is another with it. Leases of
//! programs stay in the store: a program may renew at any node, and a node that dies takes its sessions along.
//!
//! | file | what |
//! | --- | --- |
//! | `link` | sessions, one for each length of lease |
//! | `locks` | leases as nodes: taken, extended, given back |
//! | `keep`, `read` | the same, renewed and read |
//! | `step` | the two steps of a grant, and what takes back half of one |
//! | `era` | may the ensemble be believed |
//! | `engine` | the port of jobs, on the port of the store |
//! | `bell` | wakes |
//! | `events` | a lease that ended, and wakes, told to the followers |
//! | `mark` | what says in the store that its leases are here |
//! | `server` | what a server says of itself, and what is refused of it |
//!
//! See [ADR 0024](../../../docs/adr/0024-zookeeper.md).

mod bell;
mod engine;
mod era;
mod events;
mod keep;
mod link;
mod locks;
mod mark;
mod read;
mod server;
mod step;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;

pub(super) use self::engine::Coordinated;
use self::era::Era;
use self::link::Ensemble;
use self::locks::Mine;
pub(super) use self::mark::agree;
use self::step::Halves;
use super::core::Known;
use super::{Description, Options, Result, StoreError};
use crate::domain::name::JobName;
use crate::domain::time::StoreTime;

/// The clock of the record store for a job, as its engine estimates it.
pub(super) type ReadsClock = Box<dyn Fn(&JobName) -> Option<(StoreTime, Duration)> + Send + Sync>;

/// The leases of this process in an ensemble, and those that it sees there.
pub(super) struct Locks {
    ensemble: Ensemble,
    /// The cases of jobs, with their leases from here.
    known: Known,
    mine: Mutex<HashMap<JobName, Mine>>,
    /// Leases whose grant has not come to its end, or was taken back, by job.
    halves: Mutex<HashMap<String, Halves>>,
    /// One change of a lease after the other.
    turns: Mutex<HashMap<JobName, Arc<tokio::sync::Mutex<()>>>>,
    era: Mutex<Option<Era>>,
    looks: tokio::sync::Mutex<()>,
    /// Of the record store, as last read. On a cluster each job has its own, and here is none.
    epoch: Mutex<Option<String>>,
    sharded: bool,
    /// The epoch in which the record store was seen to be marked.
    marked: Mutex<Option<String>>,
    reads_clock: ReadsClock,
    /// Longest lease that others may hold, as far as this process knows.
    longest: Duration,
    /// What is missing there is made.
    makes: bool,
}

/// A call whose type is forgotten: it is a state machine on those of the store, too deep for the compiler when it asks whether it can be sent.
pub(super) fn erased<'a, T>(call: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(call)
}

/// Why a store that is a file has no coordination.
pub(super) fn no_server() -> StoreError {
    StoreError::Unsupported(
        "coordination is for nodes on many machines, and sqlite: is a file on one: use a server store, or leave coordination out"
            .to_owned(),
    )
}

impl Locks {
    /// The ensemble at `url`, to which no word was said.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`].
    pub(super) fn named(
        url: &str,
        options: &Options,
        reads_clock: ReadsClock,
        sharded: bool,
    ) -> Result<Arc<Self>> {
        let place = crate::domain::ensemble::Ensemble::read(url)
            .map_err(|why| StoreError::Unsupported(format!("coordination {why}")))?;
        Ok(Arc::new(Self {
            ensemble: Ensemble::new(place, options.timeout),
            known: Known::default(),
            mine: Mutex::default(),
            halves: Mutex::default(),
            turns: Mutex::default(),
            era: Mutex::default(),
            looks: tokio::sync::Mutex::default(),
            epoch: Mutex::default(),
            sharded,
            marked: Mutex::default(),
            reads_clock,
            longest: options.longest_lease,
            makes: options.make,
        }))
    }

    /// Makes what is missing, and looks whether the ensemble can keep the promise. `unused`: no store has ever used it.
    ///
    /// # Errors
    /// As [`Store::open`](super::Store::open).
    pub(super) async fn open(&self, unused: bool) -> Result<()> {
        server::refuse(&self.ensemble).await?;
        self.ensemble.reach(self.makes).await?;
        if self.makes {
            // Before the era is read: then it counts in it.
            self.ensemble.session(self.longest).await?;
        }
        self.look_at_era(unused).await.map(drop)
    }

    /// Opens what is needed when every millisecond counts.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(super) async fn be_ready(&self) -> Result<()> {
        self.ensemble.looking().await?;
        self.era().await.map(drop)
    }

    /// Adds what there is to say of the ensemble.
    ///
    /// # Errors
    /// As [`Store::describe`](super::Store::describe).
    pub(super) async fn describe(&self, mut of: Description) -> Result<Description> {
        let seen = server::see(&self.ensemble).await?;
        of.what = format!("{}; leases in {}", of.what, seen.what(&self.ensemble.place));
        of.warnings.extend(seen.warnings(&self.ensemble).await?);
        Ok(of)
    }

    /// What `soloist doctor` says of it.
    ///
    /// # Errors
    /// As [`Store::examine`](super::Store).
    pub(super) async fn examine(&self) -> Result<Vec<super::examine::Finding>> {
        server::see(&self.ensemble).await?.findings(&self.ensemble, self.longest).await
    }

    /// The clock of the record store, at least and at most, in milliseconds; `None` as long as it is not known.
    fn clock(&self) -> Option<(i64, i64)> {
        let (at, slack) = (self.reads_clock)(&mark::job()?)?;
        Some((at.0, (at + slack).0))
    }

    fn lock<'a, T>(&self, what: &'a Mutex<T>) -> MutexGuard<'a, T> {
        what.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other change of this lease is under way here.
    async fn turn(&self, job: &JobName) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.lock(&self.turns);
            if turns.len() > 1_000 {
                turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            }
            Arc::clone(turns.entry(job.clone()).or_default())
        };
        turn.lock_owned().await
    }
}
