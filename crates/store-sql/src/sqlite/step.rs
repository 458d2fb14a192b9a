//! One transition: a transaction, the instant it happens at, and the events it publishes.

use std::cell::Cell;
use std::ops::Deref;
use std::time::Duration;

use rusqlite::{Connection, Transaction, params};

use super::fault::SqliteResult;
use super::file::Place;
use super::mark::Mark;
use super::row::{int, text};
use soloist_domain::event::JobEvent;
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::dispatch::Waiter;

/// How many events are kept for subscribers that lag; one that lags more takes a snapshot.
const EVENTS_KEPT: i64 = 10_000;

/// The kind of an event about accounts.
pub(super) const ACCOUNTS: &str = "accounts";

/// Now, on both clocks of this store.
pub(super) struct Moment {
    /// For people, `next` and credentials.
    pub(super) wall: StoreTime,
    /// The same in microseconds: no two commits of a record happen at one.
    pub(super) micros: i64,
    /// For leases and heartbeats.
    pub(super) boot: Boot,
    /// Whose CLOCK_BOOTTIME.
    pub(super) boot_id: String,
    /// How long nothing may be granted.
    pub(super) quarantine: Duration,
}

impl Moment {
    pub(super) fn now(place: &Place) -> Self {
        let micros = jiff::Timestamp::now().as_microsecond();
        let wall = StoreTime(micros.div_euclid(1_000));
        let boot = clock::boot();
        let quarantine = place.quarantine(boot);
        Self { wall, micros, boot, boot_id: place.boot_id.clone(), quarantine }
    }
}

impl Moment {
    /// Now, before `tx` reads anything.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(super) fn before(place: &Place, tx: &Connection) -> SqliteResult<Self> {
        let now = Self::now(place);
        place.doubt_if_back(tx)?;
        Ok(Self { quarantine: place.quarantine(now.boot), ..now })
    }
}

/// A transaction under way; dropped without [`Step::commit`] it has never happened.
pub(super) struct Step<'c> {
    tx: Transaction<'c>,
    pub(super) at: Moment,
    /// How far the store has come with this transaction, once that is further than before.
    mark: Cell<Option<Mark>>,
    before: Mark,
}

impl Deref for Step<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.tx
    }
}

impl<'c> Step<'c> {
    pub(super) fn new(tx: Transaction<'c>, at: Moment, before: Mark) -> Self {
        Self { tx, at, mark: Cell::new(None), before }
    }

    /// Notes that leases were kept.
    pub(super) fn has_kept(&self) -> SqliteResult<()> {
        let mark = self.mark.get().unwrap_or(self.before);
        self.mark.set(Some(Mark { keeps: Mark::count_keep(&self.tx)?, ..mark }));
        Ok(())
    }

    /// Publishes a change of a job.
    pub(super) fn publish(&self, event: &JobEvent) -> SqliteResult<()> {
        self.insert(Some(event.job.as_str()), event.version, Some(event.event.as_str()), None)
    }

    /// Publishes that something about nodes changed.
    pub(super) fn publish_nodes(&self) -> SqliteResult<()> {
        self.insert(None, 0, None, None)
    }

    /// Publishes that an account, a session or a token changed or ended.
    pub(super) fn publish_accounts(&self) -> SqliteResult<()> {
        self.insert(None, 0, Some(ACCOUNTS), None)
    }

    /// Publishes that it is their turn.
    pub(super) fn publish_wake(&self, waiters: &[Waiter]) -> SqliteResult<()> {
        self.insert(None, 0, None, Some(text(&waiters)?))
    }

    fn insert(
        &self,
        job: Option<&str>,
        version: u64,
        kind: Option<&str>,
        wake: Option<String>,
    ) -> SqliteResult<()> {
        self.tx
            .prepare_cached("INSERT INTO events (job, version, kind, wake) VALUES (?, ?, ?, ?)")?
            .execute(params![job, int(version), kind, wake])?;
        let seq = self.tx.last_insert_rowid();
        if seq % 256 == 0 {
            self.tx
                .prepare_cached("DELETE FROM events WHERE seq <= ?")?
                .execute([seq - EVENTS_KEPT])?;
        }
        self.mark.set(Some(Mark { event: seq, ..self.mark.get().unwrap_or(self.before) }));
        Ok(())
    }

    /// Makes it so; how far the store has come if anything was published or kept.
    pub(super) fn commit(self) -> SqliteResult<Option<Mark>> {
        self.tx.commit()?;
        Ok(self.mark.get())
    }
}
