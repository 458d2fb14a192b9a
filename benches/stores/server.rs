//! A server of each kind, with the settings that keep what was answered, and what it costs.

use std::time::Duration;

use nix::unistd::Pid;
use soloist::domain::ensemble::joined;
use soloist::store::{Options, Store};

use super::processes::cpu_of_tree;
use super::support::mariadb::MariaServer;
use super::support::postgres::PostgresServer;
use super::support::redis::RedisServer;
use super::support::zookeeper::ZooKeeper;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    RedisAlways,
    Postgres,
    Maria,
    /// Leases in three servers of ZooKeeper, all else in PostgreSQL.
    PostgresZookeeper,
    /// The same beside MariaDB.
    MariaZookeeper,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Redis,
        Self::RedisAlways,
        Self::Postgres,
        Self::Maria,
        Self::PostgresZookeeper,
        Self::MariaZookeeper,
    ];

    /// Leases are in ZooKeeper.
    pub(crate) fn coordinated(self) -> bool {
        matches!(self, Self::PostgresZookeeper | Self::MariaZookeeper)
    }

    /// The word on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Redis | Self::RedisAlways => "redis",
            Self::Postgres => "postgres",
            Self::Maria => "mariadb",
            Self::PostgresZookeeper | Self::MariaZookeeper => "zookeeper",
        }
    }

    /// What the table calls it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Redis => "Redis",
            Self::RedisAlways => "Redis, always",
            Self::Postgres => "PostgreSQL",
            Self::Maria => "MariaDB",
            Self::PostgresZookeeper => "PostgreSQL and ZooKeeper",
            Self::MariaZookeeper => "MariaDB and ZooKeeper",
        }
    }
}

/// A running server, and the URL of its store, with that of its ensemble behind it.
pub(crate) struct Server {
    pub kind: Kind,
    pub url: String,
    process: Process,
    _ensemble: Option<ZooKeeper>,
}

enum Process {
    Redis(RedisServer),
    Postgres(PostgresServer),
    Maria(MariaServer),
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Self {
        let (url, process) = match kind {
            Kind::Redis | Kind::RedisAlways => {
                let mut words = vec!["--appendonly", "yes"];
                if kind == Kind::RedisAlways {
                    words.extend(["--appendfsync", "always"]);
                }
                let server = RedisServer::start(&words);
                (server.url(), Process::Redis(server))
            }
            Kind::Postgres | Kind::PostgresZookeeper => {
                let server = PostgresServer::start(&[]);
                (server.database(), Process::Postgres(server))
            }
            Kind::Maria | Kind::MariaZookeeper => {
                let server = MariaServer::start(&[]);
                (server.database(), Process::Maria(server))
            }
        };
        let ensemble = kind.coordinated().then(|| ZooKeeper::start(3, &[], &[]));
        let coordination = ensemble.as_ref().map(ZooKeeper::chroot);
        let url = joined(&url, coordination.as_deref());
        Self { kind, url, process, _ensemble: ensemble }
    }

    pub(crate) async fn connect(&self, timeout: Duration) -> Store {
        let options = Options { timeout, ..Options::default() };
        soloist::stores::connect(&self.url, &options).await.expect("the store")
    }

    /// Of all its processes so far, also those that have ended; not of an ensemble.
    pub(crate) fn cpu(&self) -> Duration {
        let pid = match &self.process {
            Process::Redis(server) => server.pid(),
            Process::Postgres(server) => server.pid(),
            Process::Maria(server) => server.pid(),
        };
        cpu_of_tree(Pid::from_raw(i32::try_from(pid).expect("a pid")))
    }
}
