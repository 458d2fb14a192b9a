//! MySQL 8 and MariaDB 10.6, and later: a store that nodes on many machines share.
//!
//! Owned here: connections, what is refused of a server, the tables, the bell (rows that are polled), findings of doctor. All decisions, and
//! nearly every statement, are in `../sql/` and `store/core`: see [ADR 0023](../../../../docs/adr/0023-mysql.md). The tests run on MariaDB;
//! `tests/run --mysql` runs them on MySQL.
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

use async_trait::async_trait;
use tokio::sync::mpsc;

use self::place::Place;
use self::session::Conn;
use crate::sql::fault::Fault;
use crate::sql::linked::Linked;
use crate::sql::listen;
use crate::sql::packet::{Packet, Repeat};
use crate::sql::{Product, Server as _, SqlStore};
use soloist_store::engine::Way;
use soloist_store::events::StoreEvent;
use soloist_store::examine::Finding;
use soloist_store::{Description, Options, Result};

/// The server, and our connections to it.
pub(super) type Mysql = Linked<Conn>;

/// The server at `url`, to which no word was said.
///
/// # Errors
/// [`StoreError::Unsupported`](soloist_store::StoreError::Unsupported).
pub fn named(url: &str, options: &Options) -> Result<SqlStore> {
    let server: Mysql = Linked::new(Place::of(url, options)?, options.timeout);
    Ok(SqlStore::new(server, options))
}

#[async_trait]
impl Product for Mysql {
    async fn open(&self, options: &Options) -> Result<bool> {
        open::open(self, options).await
    }

    fn call_itself(&self) {
        self.links.call_themselves("witness");
    }

    async fn refuses_login(&self) -> bool {
        let tried = link::connect(&self.place, self.timeout, "").await;
        matches!(tried, Err(Fault::Login(_)))
    }

    async fn describe(&self) -> Result<Description> {
        let facts = open::facts(self).await?;
        // What was refused at the start must be reported, too, when it was set later.
        open::check(self, &facts)?;
        // A server without disk may read well and write nothing.
        let mut probe = Packet::change(self.dialect());
        probe.add(
            "INSERT INTO numbers (name, newest) VALUES ('probe', 1) ON DUPLICATE KEY UPDATE newest = newest + 1",
            Vec::new(),
        );
        self.send(Way::Rest, &probe, Repeat::Harmless).await?;
        Ok(Description {
            what: format!("{} at {}", facts.product(), self.place.name),
            shared: true,
            warnings: open::warnings(&facts),
        })
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.findings().await
    }

    async fn listen(&self, store: &SqlStore) -> Result<mpsc::Receiver<StoreEvent>> {
        listen::subscribe::<events::Ear>(&self.place, store).await
    }
}
