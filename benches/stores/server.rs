//! A server of each kind, with the settings that keep what was answered, and what it costs.

use std::time::Duration;

use nix::unistd::Pid;
use soloist::store::{Options, Store};

use super::processes::cpu_of_tree;
use super::support::mariadb::MariaServer;
use super::support::postgres::PostgresServer;
use super::support::redis::RedisServer;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    RedisAlways,
    Postgres,
    Maria,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Redis, Self::RedisAlways, Self::Postgres, Self::Maria];

    /// The word on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Redis | Self::RedisAlways => "redis",
            Self::Postgres => "postgres",
            Self::Maria => "mariadb",
        }
    }

    /// What the table calls it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Redis => "Redis",
            Self::RedisAlways => "Redis, always",
            Self::Postgres => "PostgreSQL",
            Self::Maria => "MariaDB",
        }
    }
}

/// A running server, and the URL of its store.
pub(crate) struct Server {
    pub kind: Kind,
    pub url: String,
    process: Process,
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
            Kind::Postgres => {
                let server = PostgresServer::start(&[]);
                (server.database(), Process::Postgres(server))
            }
            Kind::Maria => {
                let server = MariaServer::start(&[]);
                (server.database(), Process::Maria(server))
            }
        };
        Self { kind, url, process }
    }

    pub(crate) async fn connect(&self, timeout: Duration) -> Store {
        let options = Options { timeout, ..Options::default() };
        Store::connect(&self.url, &options).await.expect("the store")
    }

    /// Of all its processes so far, also those that have ended.
    pub(crate) fn cpu(&self) -> Duration {
        let pid = match &self.process {
            Process::Redis(server) => server.pid(),
            Process::Postgres(server) => server.pid(),
            Process::Maria(server) => server.pid(),
        };
        cpu_of_tree(Pid::from_raw(i32::try_from(pid).expect("a pid")))
    }
}
