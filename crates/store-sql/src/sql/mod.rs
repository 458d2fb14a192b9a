//! Shared by the stores that speak SQL to a server: jobs, records, trust and events, over *packets*.
//!
//! A statement that all of them understand is written once, here; [`session::Dialect`] has the differences. Each driver (`../postgres/`,
//! `../mysql/`) brings its connections, its bell, its tables and what is refused of its server; it is a `Product`.
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
//! statement that does the same. See [ADR 0022](../../../../docs/adr/0022-sql-stores.md).

pub(super) mod converse;
mod dialect;
pub mod dispatch;
mod engine;
pub(super) mod fault;
pub(super) mod follow;
mod job;
pub(super) mod link;
pub(super) mod linked;
pub(super) mod listen;
pub(crate) mod log;
mod look;
pub(super) mod packet;
mod plan;
pub(super) mod queue;
mod records;
pub mod relay;
pub mod row;
pub mod session;
pub(super) mod tls;
pub(super) mod trust;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use self::dispatch::BySql;
use self::fault::Outcome;
use self::follow::Hint;
use self::packet::{Answers, Packet, Repeat};
use self::relay::Asked;
use self::session::Dialect;
use soloist_domain::log::LogBounds;
use soloist_domain::name::JobName;
use soloist_domain::time::{Boot, millis};
use soloist_store::backend::{Backend, Dispatches};
use soloist_store::core::{Known, KnownTurns};
use soloist_store::dispatch::Waiter;
use soloist_store::engine::Way;
use soloist_store::events::{Events, StoreEvent};
use soloist_store::examine::Finding;
use soloist_store::journal::AuditEntry;
use soloist_store::latest::Latest;
use soloist_store::memory::{Memory, Opening};
use soloist_store::{Description, For, Options, Result};

/// A server that speaks SQL, by its connections.
#[async_trait]
pub(super) trait Server: Send + Sync + 'static {
    /// Its words.
    fn dialect(&self) -> Dialect;

    /// For messages; never a password.
    fn name(&self) -> &str;

    /// Longest time for one call.
    fn timeout(&self) -> Duration;

    /// Carries a packet out as one transaction, and answers with the rows of each statement.
    async fn send(&self, way: Way, packet: &Packet, repeat: Repeat) -> Result<Answers>;

    /// Serves an act of dispatch in a transaction; one that only `looks` in one of its own. Returns who is woken by it.
    async fn serve(&self, looks: bool, asked: Asked, until: Boot) -> Outcome<Vec<Waiter>>;

    /// Tells everybody who follows what the commit did not, after it, in the order of these calls. What it returns ends when that was
    /// done or has failed: only a process that may end soon waits for it.
    fn ring(&self, hint: Hint) -> oneshot::Receiver<()>;
}

/// What is of this or that server alone.
#[async_trait]
pub(super) trait Product: Server {
    /// Makes the tables if there are none and `options` ask for that, and checks that it can keep the promise. Whether nothing shows that
    /// anybody uses it.
    ///
    /// # Errors
    /// As [`Store::open`](soloist_store::Store::open).
    async fn open(&self, options: &Options) -> Result<bool>;

    /// Other processes see from now on that this one uses it.
    fn call_itself(&self);

    /// As [`Store::refuses_login`](soloist_store::Store::refuses_login).
    async fn refuses_login(&self) -> bool;

    /// As [`Store::describe`](soloist_store::Store::describe).
    ///
    /// # Errors
    /// As there.
    async fn describe(&self) -> Result<Description>;

    /// As [`Store::examine`](soloist_store::Store::examine), without what concerns time.
    ///
    /// # Errors
    /// As there.
    async fn examine(&self) -> Result<Vec<Finding>>;

    /// As [`Events::subscribe`]; `store` is the one on this server.
    ///
    /// # Errors
    /// As there.
    async fn listen(&self, store: &SqlStore) -> Result<mpsc::Receiver<StoreEvent>>;
}

/// A store on such a server; cheap to clone.
#[derive(Clone)]
pub struct SqlStore {
    pub(super) shared: Arc<Shared>,
    /// What is written down with each call.
    note: Option<Arc<AuditEntry>>,
}

/// What all clones share.
pub(super) struct Shared {
    pub(super) server: Box<dyn Product>,
    memory: Mutex<Memory>,
    pub(super) known: Known,
    turns: KnownTurns,
    in_hand: Arc<dispatch::InHand>,
    latest: Mutex<Option<Latest>>,
    log: LogBounds,
}

impl SqlStore {
    /// A store on `server`, to which no word was said.
    pub(super) fn new(server: impl Product, options: &Options) -> Self {
        let shared = Shared {
            server: Box::new(server),
            memory: Mutex::default(),
            known: Known::default(),
            turns: KnownTurns::default(),
            in_hand: Arc::default(),
            latest: Mutex::default(),
            log: options.log,
        };
        Self { shared: Arc::new(shared), note: None }
    }

    /// Judges what the store says of itself, and writes it; `unused`: nothing shows that anybody uses it.
    ///
    /// # Errors
    /// As [`Store::open`](soloist_store::Store::open).
    async fn opened(&self, unused: bool, options: &Options) -> Result<()> {
        let longest_ms = millis(options.longest_lease);
        let opening = Some(Opening { unused, longest_ms });
        let dialect = self.shared.server.dialect();
        let look = |_: &_| {
            let mut packet = Packet::look(dialect);
            trust::ask(&mut packet);
            packet
        };
        self.trusted(Way::Rest, Duration::ZERO, opening, look).await.map(drop)
    }
}

#[async_trait]
impl Backend for SqlStore {
    async fn open(&self, options: &Options) -> Result<()> {
        if options.checked {
            return Ok(());
        }
        let unused = self.shared.server.open(options).await?;
        self.opened(unused, options).await?;
        // Only now, so that processes that start together in a fresh store do not take each other for witnesses.
        self.shared.server.call_itself();
        Ok(())
    }

    async fn be_ready(&self, what: For) -> Result<()> {
        let ways: &[Way] = match what {
            For::GivingBack => &[Way::Lease],
            For::TakingOver => &[Way::Grant, Way::Lease, Way::Rest],
        };
        for way in ways {
            self.learn(*way).await?;
        }
        Ok(())
    }

    async fn refuses_login(&self) -> bool {
        self.shared.server.refuses_login().await
    }

    async fn describe(&self) -> Result<Description> {
        self.shared.server.describe().await
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.shared.server.examine().await
    }

    fn noting(&self, entry: AuditEntry) -> Arc<dyn Backend> {
        Arc::new(Self { note: Some(Arc::new(entry)), ..self.clone() })
    }

    fn dispatch(self: Arc<Self>) -> Arc<dyn Dispatches> {
        Arc::new(BySql(self))
    }
}

#[async_trait]
impl Events for SqlStore {
    async fn subscribe(&self, _jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        self.shared.server.listen(self).await
    }
}
