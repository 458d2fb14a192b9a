//! The bell: rows with hints, read every 20 to 60 ms by each process that listens. See [ADR 0023](../../../docs/adr/0023-mysql.md).

use std::time::Duration;

use tokio::sync::mpsc;

use super::session::Conn;
use super::{Mysql, MysqlStore};
use crate::clock;
use crate::domain::name::JobName;
use crate::domain::time::Boot;
use crate::store::Result;
use crate::store::events::{Events, StoreEvent};
use crate::store::outlet::Outlet;
use crate::store::sql::fault::Outcome;
use crate::store::sql::follow::{Follower, Hint};
use crate::store::sql::link::{Link, Wire as _};
use crate::store::sql::listen::{self, SWEEP_EVERY};
use crate::store::sql::session::{Row, Statement, Value};

/// How often a process that listens looks whether anybody rang, and after how long a silence less often.
const POLL_EVERY: Duration = Duration::from_millis(20);
const QUIET_POLL_EVERY: Duration = Duration::from_millis(60);
const QUIET_AFTER: Duration = Duration::from_secs(2);
/// Rings in one look.
const AT_ONCE: i64 = 256;

impl Events for MysqlStore {
    async fn subscribe(&self, _jobs: &[JobName]) -> Result<mpsc::Receiver<StoreEvent>> {
        listen::subscribe::<Ear>(self).await
    }
}

/// A connection that looks for rings, and what was told of what it heard.
struct Ear {
    link: Link<Conn>,
    timeout: Duration,
    /// The last ring that was heard.
    last: i64,
    follower: Follower<Mysql>,
    swept: Boot,
    rang: Boot,
}

impl listen::Ear for Ear {
    type Server = Mysql;

    async fn open(store: &MysqlStore) -> Result<Self> {
        let server = &store.shared.server;
        let link = Link::new(server.place.clone(), server.timeout);
        let newest = "SELECT newest, '' FROM numbers WHERE name = 'bell'";
        let found = rings(&link, server.timeout, newest, Vec::new()).await;
        let found = found.map_err(|fault| fault.told(&server.place.name))?;
        let missing = || crate::store::sql::row::corrupt("numbers", "there is no bell");
        let last = found.first().ok_or_else(missing)?.int(0)?;
        // Behind the number: what is committed from now on rings later.
        let follower = Follower::start(store.clone()).await?;
        Ok(Self {
            link,
            timeout: server.timeout,
            last,
            follower,
            swept: clock::boot(),
            rang: clock::boot(),
        })
    }

    async fn follow(&mut self, outlet: &mut Outlet) -> String {
        let mut next = tokio::time::Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => {
                    if let Err(why) = self.look(outlet).await {
                        return why;
                    }
                    let is_quiet = clock::boot().since(self.rang) > QUIET_AFTER;
                    let every = if is_quiet { QUIET_POLL_EVERY } else { POLL_EVERY };
                    next = tokio::time::Instant::now() + every;
                }
                listened = outlet.settle() => if !listened { return "nobody listens".to_owned() },
            }
        }
    }
}

impl Ear {
    async fn look(&mut self, outlet: &mut Outlet) -> std::result::Result<(), String> {
        let since = "SELECT n, hint FROM bells WHERE n > ? ORDER BY n LIMIT ?";
        let params = vec![Value::Int(self.last), Value::Int(AT_ONCE)];
        let found = rings(&self.link, self.timeout, since, params).await;
        for ring in found.map_err(|fault| fault.told("MySQL").to_string())? {
            let (n, hint) = ring
                .int(0)
                .and_then(|n| Ok((n, ring.text(1)?)))
                .map_err(|error| error.to_string())?;
            self.last = n;
            self.rang = clock::boot();
            let hint = serde_json::from_str::<Hint>(hint).unwrap_or_else(|error| {
                tracing::debug!(%error, "a hint that is not understood");
                Hint::default()
            });
            self.follower.hear(hint, outlet).await.map_err(|error| error.to_string())?;
        }
        if clock::boot().since(self.swept) >= SWEEP_EVERY {
            self.swept = clock::boot();
            self.follower.sweep(outlet).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

async fn rings(
    link: &Link<Conn>,
    timeout: Duration,
    sql: &'static str,
    params: Vec<Value>,
) -> Outcome<Vec<Row>> {
    let statement = [Statement::new(sql, params)];
    let asked = link.call(clock::boot() + timeout, move |conn: &mut Conn| {
        Box::pin(async move { conn.ask_all(&statement).await })
    });
    Ok(asked.await?.pop().unwrap_or_default())
}
