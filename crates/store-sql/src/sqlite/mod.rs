//! The embedded store: one SQLite file, shared by the processes of one machine.
//!
//! WAL, so that readers never wait for writers; every change is one `BEGIN IMMEDIATE` transaction, in which
//! its conditions, the new state and its event stand or fall together. Jobs are texts that `store::core` decides on
//! (`engine.rs`). One thread owns the writing connection and
//! one the reading connection: the async side sends them closures and waits no longer than [`Options::timeout`].
//!
//! Time: leases run on CLOCK_BOOTTIME, which all processes of one machine share, so setting the clock moves no
//! lease (`deadline.rs`). What people see is the wall clock.
//!
//! This store cannot forget on its own: what was committed survives every
//! crash of a process. (`synchronous=NORMAL`: a *power cut* may take the last commits; what ran then is dead,
//! and tokens follow the clock, so they grow all the same.)
//! Somebody may give its path other files, though. `same.rs` says why two processes never each have a store of their own then,
//! and when nothing is granted for one lease (the quarantine).

mod clock;
mod deadline;
mod engine;
mod examine;
mod fault;
mod file;
mod joining;
mod mark;
mod notify;
mod others;
mod record;
mod records;
mod row;
mod same;
mod schema;
mod session;
mod step;
#[cfg(test)]
mod tests;
mod thread;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::TransactionBehavior;
use tokio::sync::mpsc;

use crate::sql::dispatch::BySql;
pub use schema::STEPS;
pub use session::query;
use soloist_domain::log::LogBounds;
use soloist_domain::name::JobName;
use soloist_store::backend::{Backend, Dispatches};
use soloist_store::core::{Known, KnownTurns};
use soloist_store::events::{Events, StoreEvent};
use soloist_store::examine::Finding;
use soloist_store::journal::AuditEntry;
use soloist_store::schema::Steps;
use soloist_store::{Description, For, Options, Result, StoreError};

use fault::SqliteResult;
use file::Place;
use mark::{Mark, NEW_EPOCH};
use notify::Notifier;
use step::{Moment, Step};
use thread::Worker;

/// A connection; cheap to clone. Its threads end with the last clone.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
    /// What is written down with each call.
    note: Option<Arc<AuditEntry>>,
}

struct Inner {
    place: Arc<Place>,
    timeout: Duration,
    writer: Worker,
    reader: Worker,
    /// Started by the first subscription: a command that only writes needs none.
    notifier: Mutex<Option<Notifier>>,
    /// Of the clock of all that belongs to no job, against CLOCK_BOOTTIME; noted by each change, and the least number before.
    offset_us: AtomicI64,
    turns: KnownTurns,
    /// The newest records that this process saw.
    known: Arc<Known>,
    log: LogBounds,
}

impl SqliteStore {
    /// Opens `sqlite:PATH`, creating the file (0600), its directory (0700) and its schema as needed, if that is asked for.
    ///
    /// # Errors
    /// As [`Store::open`](soloist_store::Store::open).
    pub async fn connect(url: &str, options: &Options) -> Result<Self> {
        let timeout = options.timeout;
        let place = Arc::new(Place::parse(url, options.longest_lease)?);
        let steps = Steps::new(place.to_string(), &STEPS, options);
        let opening = Arc::clone(&place);
        let writer = Worker::start("soloist-write", Arc::clone(&place), timeout, true, move || {
            opening.create(timeout, &steps)
        })
        .await?;
        let opening = Arc::clone(&place);
        let reader = Worker::start("soloist-read", Arc::clone(&place), timeout, false, move || {
            opening.open_reader(timeout)
        })
        .await?;
        let (notifier, known) = (Mutex::new(None), Arc::default());
        let offset_us = AtomicI64::new(i64::MIN);
        let turns = KnownTurns::default();
        let inner = Inner {
            place,
            timeout,
            writer,
            reader,
            notifier,
            offset_us,
            turns,
            known,
            log: options.log,
        };
        Ok(Self { inner: Arc::new(inner), note: None })
    }

    /// Runs `step` in one transaction that sees and makes all of it or nothing, then wakes the subscribers of
    /// all processes if it published anything.
    async fn write<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Step<'_>) -> SqliteResult<T> + Send + 'static,
    ) -> Result<T> {
        self.inner
            .writer
            .call(move |db, place| {
                let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let mark = Mark::read(&tx)?;
                if place.went_back(mark) {
                    let whole = Step::new(tx, Moment::now(place), mark);
                    whole.execute(NEW_EPOCH, [])?;
                    whole.publish_nodes()?;
                    if let Some(mark) = whole.commit()? {
                        place.ring(mark);
                    }
                    return Err(place.older());
                }
                let at = Moment::now(place);
                let whole = Step::new(tx, at, mark);
                let doubted = place.is_doubted();
                if doubted {
                    let now = clock::of_writer(&whole)?;
                    clock::doubt(&whole, now)?;
                }
                let value = step(&whole)?;
                if let Some(mark) = whole.commit()? {
                    place.ring(mark);
                }
                if doubted {
                    place.has_noted_doubt();
                }
                Ok(value)
            })
            .await
    }

    /// Runs `look` on one consistent snapshot.
    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&rusqlite::Connection, &Moment) -> SqliteResult<T> + Send + 'static,
    ) -> Result<T> {
        self.inner
            .reader
            .call(move |db, place| {
                let tx = db.transaction_with_behavior(TransactionBehavior::Deferred)?;
                look(&tx, &Moment::before(place, &tx)?)
            })
            .await
    }
}

#[async_trait]
impl Backend for SqliteStore {
    fn is_a_server(&self) -> bool {
        false
    }

    async fn open(&self, _: &Options) -> Result<()> {
        Ok(())
    }

    async fn be_ready(&self, _: For) -> Result<()> {
        Ok(())
    }

    async fn refuses_login(&self) -> bool {
        false
    }

    async fn describe(&self) -> Result<Description> {
        self.inner.reader.call(|db, _| Ok(schema::version(db)?)).await?;
        Ok(Description {
            what: format!("SQLite {} at {}", rusqlite::version(), self.inner.place),
            shared: false,
            warnings: self.inner.place.warnings(),
        })
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.findings().await
    }

    fn noting(&self, entry: AuditEntry) -> Arc<dyn Backend> {
        Arc::new(Self { note: Some(Arc::new(entry)), ..self.clone() })
    }

    fn dispatch(self: Arc<Self>) -> Arc<dyn Dispatches> {
        Arc::new(BySql(self))
    }
}

#[async_trait]
impl Events for SqliteStore {
    async fn subscribe(&self, _jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        let confirmed = {
            let mut notifier = self.inner.notifier.lock();
            let notifier = match &mut *notifier {
                Some(running) => running,
                none => {
                    let place = Arc::clone(&self.inner.place);
                    let known = Arc::clone(&self.inner.known);
                    none.insert(Notifier::start(place, self.inner.timeout, known)?)
                }
            };
            notifier.subscribe()?
        };
        match tokio::time::timeout(self.inner.timeout, confirmed).await {
            Ok(Ok(receiver)) => receiver,
            Ok(Err(_)) => Err(StoreError::Unavailable("the store is closing".to_owned())),
            Err(_) => Err(self.inner.place.too_slow(self.inner.timeout)),
        }
    }
}
