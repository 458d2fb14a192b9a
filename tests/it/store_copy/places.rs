//! Stores to copy from and into, each empty and of its own.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use soloist::domain::ensemble::joined;
use soloist::store::{Options, Store};

use super::filled::SOURCES;
use crate::support::cluster::RedisCluster;
use crate::support::mariadb::MariaServer;
use crate::support::postgres::PostgresServer;
use crate::support::redis::RedisServer;
use crate::support::zookeeper::ZooKeeper;

/// An hour of tokens.
const HOUR: u64 = 3_600_000 * 1_024;

/// Where a store is.
pub(super) struct Place {
    pub(super) url: String,
    pub(super) options: Options,
    /// Makes that the newest token of sources and rotations in the store itself.
    ahead: Box<dyn Fn(u64) + Send>,
    _guard: Box<dyn Any + Send>,
}

impl Place {
    pub(super) async fn open(&self) -> Store {
        soloist::stores::connect(&self.url, &self.options).await.expect("the store opens")
    }

    /// Opened, and copied, so.
    pub(super) fn with(self, options: &Options) -> Self {
        Self { options: options.clone(), ..self }
    }

    /// As if the source's clock had been set back after it handed out tokens: they are greater than any that a clock makes now. Returns
    /// the newest, zero if nothing was done.
    pub(super) fn tokens_run_ahead(&self) -> u64 {
        let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).expect("after 1970");
        let token = now * 1_024 + HOUR;
        (self.ahead)(token);
        token
    }
}

/// A store that may have forgotten something holds back for a second only.
fn options() -> Options {
    let (timeout, longest_lease) = (Duration::from_secs(20), Duration::from_secs(1));
    Options { timeout, longest_lease, ..Options::default() }
}

fn place(url: String, guard: impl Any + Send, ahead: impl Fn(u64) + Send + 'static) -> Place {
    Place { url, options: options(), ahead: Box::new(ahead), _guard: Box::new(guard) }
}

pub(super) fn sqlite() -> Place {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("soloist.db");
    let url = format!("sqlite:{}", file.display());
    place(url, dir, move |token| {
        let db = rusqlite::Connection::open(&file).expect("it opens");
        db.busy_timeout(Duration::from_secs(20)).expect("patient");
        let small = i64::try_from(token).expect("small");
        db.execute("UPDATE dispatch SET token = ?", [small]).expect("written");
        let of = "SELECT text FROM rows WHERE kind = 'rotations'";
        let text: String = db.query_row(of, [], |row| row.get(0)).expect("a rotation");
        let text = with_token(&text, token);
        db.execute("UPDATE rows SET text = ? WHERE kind = 'rotations'", [text]).expect("written");
    })
}

/// The record of a rotation whose newest token is that one.
fn with_token(text: &str, token: u64) -> String {
    let (head, body) = text.split_once('\n').expect("a head");
    let mut body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    body["rotation"]["ring"]["token"] = token.into();
    format!("{head}\n{body}")
}

/// A server of its own, on which the store may do what `deploy/redis.acl` lists.
pub(super) fn redis() -> Place {
    let server = RedisServer::start_narrow();
    let (url, port) = (server.narrow_url(), server.port());
    place(url, server, move |token| {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).expect("a URL");
        let mut connection = client.get_connection().expect("it answers");
        for name in SOURCES {
            let mut set = redis::cmd("HSET");
            set.arg(format!("soloist:dispatch:s:{name}")).arg("token").arg(token);
            set.query::<u64>(&mut connection).expect("set");
        }
        let of = ["soloist:rotations", "supplier-api"];
        let text: String = redis::cmd("HGET").arg(&of).query(&mut connection).expect("a rotation");
        let text = with_token(&text, token);
        redis::cmd("HSET").arg(&of).arg(text).query::<u64>(&mut connection).expect("set");
    })
}

/// The same for keys under any prefix.
pub(super) fn wide_redis() -> Place {
    let server = RedisServer::start(&[]);
    let url = server.url();
    place(url, server, |_| {})
}

pub(super) fn postgres() -> Place {
    let server = PostgresServer::shared();
    let url = server.database();
    let database = url.rsplit('/').next().expect("its name").to_owned();
    place(url, (), move |token| {
        server.psql(&database, &format!("UPDATE soloist.dispatch SET token = {token}"));
    })
}

pub(super) fn mariadb() -> Place {
    let server = MariaServer::shared();
    let url = server.database();
    let database = url.rsplit('/').next().expect("its name").to_owned();
    place(url, (), move |token| {
        server.sql(&format!("UPDATE {database}.dispatch SET token = {token}"));
    })
}

/// That store, with its leases in a ZooKeeper.
pub(super) fn beside_zookeeper(store: Place) -> Place {
    beside(store, ZooKeeper::shared())
}

/// The same in that one.
pub(super) fn beside(store: Place, ensemble: &ZooKeeper) -> Place {
    Place { url: joined(&store.url, Some(&ensemble.chroot())), ..store }
}

/// Keys of its own in the cluster that all tests share.
pub(super) fn cluster() -> Place {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let cluster = RedisCluster::shared();
    let prefix = format!("copy-{}:", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut place = place(cluster.url(), (), |_| {});
    place.options.prefix = prefix.clone();
    place.ahead = Box::new(move |token| {
        for key in SOURCES.map(|name| format!("{prefix}{{~}}:dispatch:s:{name}")) {
            let master = cluster.master_of(&key, 0);
            cluster.members[master].run::<u64>(&["HSET", &key, "token", &token.to_string()]);
        }
    });
    place
}
