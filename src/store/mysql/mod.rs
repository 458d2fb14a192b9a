//! MySQL 8 and MariaDB 10.6, and later: a store that nodes on many machines share.
//!
//! Owned here: connections, what is refused of a server, the tables, the bell (rows that are looked for), what doctor says. Everything that
//! is decided, and nearly every statement, is in `../sql/` and `../core/`: see [ADR 0023](../../../docs/adr/0023-mysql.md). MariaDB is what
//! the tests hold it to; `tests/run --mysql` holds it to MySQL.
//!
//! | file | what |
//! | --- | --- |
//! | `place` | the URL, made into what the driver wants |
//! | `link` | how a connection begins |
//! | `session` | a transaction as one text |
//! | `open` | what is refused, and the tables |
//! | `events` | the listener |
//! | `fault` | what an error means, in words |
//! | `examine` | what `soloist doctor` says |

mod events;
mod examine;
mod fault;
mod link;
mod open;
mod place;
mod session;

use self::place::Place;
use self::session::Conn;
use super::engine::Way;
use super::sql::fault::Fault;
use super::sql::linked::Linked;
use super::sql::packet::{Packet, Repeat};
use super::sql::{Server, SqlStore};
use super::{Description, Options, Result};

/// A store on MySQL or MariaDB.
pub(super) type MysqlStore = SqlStore<Mysql>;

/// The server, and our connections to it.
pub(super) type Mysql = Linked<Conn>;

impl MysqlStore {
    /// The server at `url`, to which no word was said.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`](super::StoreError::Unsupported).
    pub(super) fn named(url: &str, options: &Options) -> Result<Self> {
        let server = Linked::new(Place::of(url, options)?, options.timeout);
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
        self.opened(unused, options).await?;
        // Only now, so that processes that start together in a fresh store do not take each other for witnesses.
        server.links.call_themselves("witness");
        Ok(())
    }

    /// As [`Store::refuses_login`](super::Store::refuses_login).
    pub(super) async fn refuses_login(&self) -> bool {
        let server = &self.shared.server;
        let tried = link::connect(&server.place, server.timeout, "").await;
        matches!(tried, Err(Fault::Login(_)))
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
            "INSERT INTO numbers (name, newest) VALUES ('probe', 1) ON DUPLICATE KEY UPDATE newest = newest + 1",
            Vec::new(),
        );
        server.send(Way::Rest, &probe, Repeat::Harmless).await?;
        Ok(Description {
            what: format!("{} at {}", facts.product(), server.place.name),
            shared: true,
            warnings: open::warnings(&facts),
        })
    }
}
