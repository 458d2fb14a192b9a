//! What the stores that speak SQL to a server have in common: jobs, records, trust and events, over *packets*.
//!
//! A statement that all of them understand is written once, here; what differs between them is asked of [`session::Dialect`].
//! Each driver (`../postgres/`, `../mysql/`) brings its connections, its bell, its tables and what is refused of its server; it is a [`Server`].
//!
//! | file | what |
//! | --- | --- |
//! | `session`, `row` | a transaction under way, and values in columns |
//! | `dispatch`, `relay` | dispatch on such a transaction: SQLite uses it as well |
//! | `link`, `fault` | one task that owns one connection, and what may go wrong on it |
//! | `linked` | a server by its connections: what the drivers have in common |
//! | `converse`, `queue` | dispatch on such a connection: acts that wait at the same time share a transaction |
//! | `packet`, `dialect` | a transaction that is sent as a whole, and its words |
//! | `trust` | may the server be believed: `domain::doubt` on its epoch row |
//! | `engine`, `job` | the port of jobs |
//! | `records`, `look`, `plan`, `log` | the port of what belongs to no job |
//! | `follow` | hints made into events, and the sweep that finds what no hint told |
//! | `listen` | who rings, and who listens |
//! | `tls` | which server may have the password |
//!
//! # One packet
//!
//! No process decides while it holds a lock of the server: a node that is stopped then would stop all others. So a change is sent as
//! one packet: it takes its locks, reads the clock once, compares, writes if all of it held, and commits. A change of one row is one
//! statement that does the same. See [ADR 0022](../../../docs/adr/0022-sql-stores.md).

pub(super) mod converse;
mod dialect;
pub(super) mod dispatch;
mod engine;
pub(super) mod fault;
pub(super) mod follow;
mod job;
pub(super) mod link;
pub(super) mod linked;
pub(super) mod listen;
pub(in crate::store) mod log;
mod look;
pub(super) mod packet;
mod plan;
pub(super) mod queue;
mod records;
pub(super) mod relay;
pub(super) mod row;
pub(super) mod session;
pub(super) mod tls;
pub(super) mod trust;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use self::follow::Hint;
use self::packet::{Answers, Packet, Repeat};
use self::session::Dialect;
use super::core::{Known, KnownTurns};
use super::engine::Way;
use super::journal::AuditEntry;
use super::latest::Latest;
use super::memory::{Memory, Opening};
use super::{For, Options, Result};
use crate::domain::log::LogBounds;

/// A server that speaks SQL.
pub(super) trait Server: Send + Sync + 'static {
    /// Its words.
    fn dialect(&self) -> Dialect;

    /// For messages; never a password.
    fn name(&self) -> &str;

    /// Longest time for one call.
    fn timeout(&self) -> Duration;

    /// Carries a packet out as one transaction, and answers with the rows of each statement.
    async fn send(&self, way: Way, packet: &Packet, repeat: Repeat) -> Result<Answers>;

    /// Tells everybody who follows what the commit did not, after it, in the order of these calls. What it returns ends when that was
    /// done or has failed: only a process that may end soon waits for it.
    fn ring(&self, hint: Hint) -> oneshot::Receiver<()>;
}

/// A store on such a server; cheap to clone.
pub(super) struct SqlStore<S> {
    pub(super) shared: Arc<Shared<S>>,
    /// What is written down with each call.
    note: Option<Arc<AuditEntry>>,
}

/// What all clones share.
pub(super) struct Shared<S> {
    pub(super) server: S,
    memory: Mutex<Memory>,
    pub(super) known: Known,
    turns: KnownTurns,
    in_hand: Arc<dispatch::InHand>,
    latest: Mutex<Option<Latest>>,
    log: LogBounds,
}

impl<S> Clone for SqlStore<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), note: self.note.clone() }
    }
}

impl<S: Server> SqlStore<S> {
    /// A store on `server`, to which no word was said.
    pub(super) fn new(server: S, options: &Options) -> Self {
        let shared = Shared {
            server,
            memory: Mutex::default(),
            known: Known::default(),
            turns: KnownTurns::default(),
            in_hand: Arc::default(),
            latest: Mutex::default(),
            log: options.log,
        };
        Self { shared: Arc::new(shared), note: None }
    }

    /// The same store, whose calls write `entry` down.
    pub(super) fn noting(&self, entry: AuditEntry) -> Self {
        Self { note: Some(Arc::new(entry)), ..self.clone() }
    }

    /// Judges what the store says of itself, and writes it; `unused`: nothing shows that anybody uses it.
    ///
    /// # Errors
    /// As [`Store::open`](super::Store::open).
    pub(super) async fn opened(&self, unused: bool, options: &Options) -> Result<()> {
        let longest_ms = u64::try_from(options.longest_lease.as_millis()).unwrap_or(u64::MAX);
        let opening = Some(Opening { unused, longest_ms });
        let dialect = self.shared.server.dialect();
        let look = |_: &_| {
            let mut packet = Packet::look(dialect);
            trust::ask(&mut packet);
            packet
        };
        self.trusted(Way::Rest, Duration::ZERO, opening, look).await.map(drop)
    }

    /// As [`Store::be_ready`](super::Store::be_ready).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`](super::StoreError::Unavailable).
    pub(super) async fn be_ready(&self, what: For) -> Result<()> {
        let ways: &[Way] = match what {
            For::GivingBack => &[Way::Lease],
            For::TakingOver => &[Way::Grant, Way::Lease, Way::Rest],
        };
        for way in ways {
            self.learn(*way).await?;
        }
        Ok(())
    }
}
