//! PostgreSQL 13 and later: the store for whoever runs one already, shared by nodes on many machines.
//!
//! Owned here: connections, TLS, what is refused of a server, the tables, the bell (`NOTIFY`), what doctor says. Everything that is decided,
//! and nearly every statement, is in `../sql/` and `../core/`. Jsonb, advisory locks for leases, triggers and poolers are refused on purpose:
//! see [ADR 0022](../../../docs/adr/0022-sql-stores.md).
//!
//! | file | what |
//! | --- | --- |
//! | `place` | the URL, made into what the driver wants |
//! | `link` | one task that owns one connection |
//! | `session` | statements on it: prepared, pipelined, in a transaction |
//! | `open` | what is refused, and the tables |
//! | `events` | the listener and the ringer |
//! | `fault` | what an error means, in words |
//! | `examine` | what `soloist doctor` says |

mod dispatch;
mod events;
mod examine;
mod fault;
mod link;
mod open;
mod place;
mod session;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use self::events::Ringer;
use self::link::Link;
use self::place::Place;
use super::engine::Way;
use super::memory::Opening;
use super::sql::follow::Hint;
use super::sql::packet::{Answers, Packet, Repeat};
use super::sql::session::Dialect;
use super::sql::{Server, SqlStore};
use super::{Description, For, Options, Result};

/// A store on PostgreSQL.
pub(super) type PostgresStore = SqlStore<Postgres>;

/// The server, and our connections to it.
pub(super) struct Postgres {
    place: Arc<Place>,
    /// A renewal waits for nothing else.
    leases: Link,
    grants: Link,
    rest: Link,
    /// Dispatch is busy on its own account.
    dispatch: Link,
    ringer: Ringer,
    timeout: Duration,
}

impl Server for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn name(&self) -> &str {
        &self.place.name
    }

    async fn send(&self, way: Way, packet: &Packet, repeat: Repeat) -> Result<Answers> {
        let link = match way {
            Way::Grant => &self.grants,
            Way::Lease => &self.leases,
            Way::Rest => &self.rest,
        };
        link.send(packet, repeat).await
    }

    fn ring(&self, hint: Hint) -> oneshot::Receiver<()> {
        self.ringer.ring(hint)
    }
}

impl PostgresStore {
    /// The server at `url`, to which no word was said.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`].
    pub(super) fn named(url: &str, options: &Options) -> Result<Self> {
        let place = Arc::new(Place::of(url, options)?);
        let link = || Link::new(Arc::clone(&place), options.timeout);
        let ringer = Ringer::new(Arc::clone(&place), options.timeout);
        let server = Postgres {
            leases: link(),
            grants: link(),
            rest: link(),
            dispatch: link(),
            ringer,
            timeout: options.timeout,
            place,
        };
        Ok(Self::new(server, options))
    }

    /// As [`Store::open`](super::Store::open).
    ///
    /// # Errors
    /// As there.
    pub(super) async fn open(&self, options: &Options) -> Result<()> {
        if options.checked {
            return Ok(());
        }
        let server = &self.shared.server;
        let unused = open::open(server, options.make).await?;
        let longest_ms = u64::try_from(options.longest_lease.as_millis()).unwrap_or(u64::MAX);
        let opening = Some(Opening { unused, longest_ms });
        let dialect = server.dialect();
        let look = |_: &_| {
            let mut packet = Packet::look(dialect);
            super::sql::trust::ask(&mut packet);
            packet
        };
        self.trusted(Way::Rest, Duration::ZERO, opening, look).await?;
        // Only now, so that processes that start together in a fresh store do not take each other for witnesses.
        let name = open::witness(&server.place.schema);
        [&server.leases, &server.grants, &server.rest]
            .iter()
            .for_each(|link| link.call_itself(&name));
        Ok(())
    }

    /// As [`Store::be_ready`](super::Store::be_ready).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
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

    /// As [`Store::refuses_login`](super::Store::refuses_login).
    pub(super) async fn refuses_login(&self) -> bool {
        let server = &self.shared.server;
        let tried = link::connect(&server.place, server.timeout, "soloist").await;
        matches!(tried, Err(fault::Fault::Login(_)))
    }

    /// As [`Store::describe`](super::Store::describe).
    ///
    /// # Errors
    /// As there.
    pub(super) async fn describe(&self) -> Result<Description> {
        let server = &self.shared.server;
        let facts = open::facts(server).await?;
        // What was refused at the start must not go on unsaid when it was set later.
        open::check(server, &facts)?;
        // A server without disk may read well and write nothing.
        let mut probe = Packet::change(server.dialect());
        probe.add(
            "INSERT INTO numbers (name, newest) VALUES ('probe', 1) ON CONFLICT (name) DO UPDATE SET newest = 1",
            Vec::new(),
        );
        server.send(Way::Rest, &probe, Repeat::Harmless).await?;
        Ok(Description {
            what: format!("PostgreSQL {} at {}", facts.version, server.place.name),
            shared: true,
            warnings: open::warnings(&facts),
        })
    }
}
