//! ZooKeeper 3.6 and later as coordination beside a server store: leases of nodes and of `soloist run` are ephemeral nodes there, and a watch
//! reports their end.
//!
//! The store keeps the records, and everything else. `Coordinated` is an [`Engine`] on top of the store's engine: `core` reads the record with the
//! lease from here, and a commit has two steps. Laws and records stay the same. Leases of programs stay in the store: a program may renew at any
//! node, and the sessions of a dead node end.
//!
//! A row in the store says that its leases are here: `store::coordination`.
//!
//! | file | what |
//! | --- | --- |
//! | `link` | sessions, one for each length of lease, and what is asked in them |
//! | `locks` | leases as nodes: taken, extended, given back, ended; renewed and read |
//! | `era` | may the ensemble be believed |
//! | `engine` | the port of jobs, on the port of the store; the two steps of a grant |
//! | `events` | a lease that ended, and wakes, told to the followers |
//! | `server` | what a server says of itself, and what is refused of it |
//!
//! See [ADR 0024](../../../docs/adr/0024-zookeeper.md).

mod engine;
mod era;
mod events;
mod link;
mod locks;
mod server;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use self::engine::Coordinated;
use self::era::Era;
use self::link::Ensemble;
use self::locks::Mine;
use soloist_domain::name::JobName;
use soloist_process::clock;
use soloist_store::backend::Backend;
use soloist_store::coordination::{self, Coordination};
use soloist_store::core::Known;
use soloist_store::engine::Engine;
use soloist_store::examine::Finding;
use soloist_store::{Description, Options, Result, StoreError};

/// The leases of this process in an ensemble, and those that it sees there.
pub struct Locks {
    ensemble: Ensemble,
    /// The cases of jobs, with their leases from here.
    known: Known,
    mine: Mutex<HashMap<JobName, Mine>>,
    /// The newest that any session has seen.
    era: Mutex<Option<Era>>,
    looks: tokio::sync::Mutex<()>,
    /// Of the record store, when it was last seen to be marked; on a cluster each job has its own.
    epochs: Mutex<HashMap<Option<JobName>, String>>,
    sharded: bool,
    /// Whose clock the era is dated by.
    records: Arc<dyn Backend>,
    /// Longest lease that others may hold, as far as this process knows.
    longest: Duration,
    /// What is missing there is made.
    makes: bool,
}

impl Locks {
    /// The ensemble at `url` beside the store `records`; no word was said to it.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`].
    pub fn named(url: &str, options: &Options, records: Arc<dyn Backend>) -> Result<Arc<Self>> {
        let place = soloist_domain::ensemble::Ensemble::read(url)
            .map_err(|why| StoreError::Unsupported(format!("coordination {why}")))?;
        Ok(Arc::new(Self {
            ensemble: Ensemble::new(place, options.timeout),
            known: Known::default(),
            mine: Mutex::default(),
            era: Mutex::default(),
            looks: tokio::sync::Mutex::default(),
            epochs: Mutex::default(),
            sharded: records.is_sharded(),
            records,
            longest: options.longest_lease,
            makes: options.make,
        }))
    }

    /// The clock of the record store, at least and at most, in milliseconds; `None` as long as it is not known.
    fn clock(&self) -> Option<(i64, i64)> {
        let (at, slack) = self.records.estimate(&coordination::job()?, clock::boot())?;
        Some((at.0, (at + slack).0))
    }
}

#[async_trait]
impl Coordination for Locks {
    fn before(self: Arc<Self>, records: Arc<dyn Backend>) -> Arc<dyn Engine> {
        Arc::new(Coordinated { records, locks: self })
    }

    fn place(&self) -> String {
        self.ensemble.place().name()
    }

    async fn open(&self, unused: bool) -> Result<()> {
        server::findings(&self.ensemble).await?;
        if self.makes {
            self.ensemble.session(Some(self.longest)).await?;
        }
        let looking = self.ensemble.looking().await?;
        self.look_at_era(&looking, unused).await.map(drop)
    }

    async fn describe(&self, mut of: Description) -> Result<Description> {
        for Finding { what, remedy, .. } in server::findings(&self.ensemble).await? {
            match remedy {
                None => of.what = format!("{}; leases in {what}", of.what),
                Some(remedy) => of.warnings.push(format!("{what}: {remedy}")),
            }
        }
        Ok(of)
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        let looked = async {
            let mut findings = server::findings(&self.ensemble).await?;
            let (ttl, session) = (self.longest, self.ensemble.session(Some(self.longest)).await?);
            let what = format!("a lease of {ttl:?} is a session of {:?}", session.timeout);
            findings.push(Finding::ok(server::CHECK, what));
            Ok(findings)
        };
        match looked.await {
            Err(StoreError::Unsupported(why)) => {
                let remedy = "as it says; until then no node starts";
                Ok(vec![Finding::bad(server::CHECK, why, remedy)])
            }
            looked => looked,
        }
    }

    async fn quarantine(&self) -> Result<Duration> {
        self.quiet_for().await
    }

    async fn texts(&self, jobs: Option<&[JobName]>) -> Result<BTreeMap<JobName, String>> {
        self.lease_texts(jobs).await
    }
}
