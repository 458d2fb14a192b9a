//! The PostgreSQL or the MariaDB under test: one server of its own for each cluster. It forgets nothing, so an operator switches each job on once.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::mariadb::MariaServer;
use crate::postgres::PostgresServer;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    MariaDb,
}

/// A server, and the URL of the database that is the store.
pub(crate) struct Sql {
    server: Server,
    url: String,
}

enum Server {
    Postgres(PostgresServer),
    MariaDb(MariaServer),
}

impl Sql {
    /// Starts one with the settings that a store must have.
    pub(crate) fn start(kind: Kind) -> Self {
        match kind {
            Kind::Postgres => {
                let server = PostgresServer::start(&[]);
                Self { url: server.database(), server: Server::Postgres(server) }
            }
            Kind::MariaDb => {
                let server = MariaServer::start(&[]);
                Self { url: server.database(), server: Server::MariaDb(server) }
            }
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let port = match &self.server {
            Server::Postgres(server) => server.port(),
            Server::MariaDb(server) => server.port(),
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// The same store by another address that leads to it. Beyond the loopback a node asks for TLS, which these servers do not speak.
    pub(crate) fn url_through(&self, address: SocketAddr) -> String {
        self.url.replace(&self.address().to_string(), &address.to_string()) + "?sslmode=disable"
    }

    /// kill -9 of all of it, and a start on the same files after `rest`.
    pub(crate) fn restart(&mut self, rest: Duration) {
        match &mut self.server {
            Server::Postgres(server) => {
                server.kill();
                std::thread::sleep(rest);
                server.restart();
            }
            Server::MariaDb(server) => {
                server.kill();
                std::thread::sleep(rest);
                server.restart();
            }
        }
    }

    /// Stops all of it, or lets it go on.
    pub(crate) fn freeze(&self, on: bool) {
        let signal = if on { Signal::SIGSTOP } else { Signal::SIGCONT };
        match &self.server {
            Server::Postgres(server) => server.signal(signal),
            Server::MariaDb(server) => server.signal(signal),
        }
    }

    /// It takes no writes, or does again.
    pub(crate) fn read_only(&self, on: bool) {
        match &self.server {
            Server::Postgres(server) => {
                let word = if on { "on" } else { "off" };
                server.psql(
                    "postgres",
                    &format!("ALTER SYSTEM SET default_transaction_read_only = {word}"),
                );
                server.psql("postgres", "SELECT pg_reload_conf()");
            }
            Server::MariaDb(server) => {
                server.sql(&format!("SET GLOBAL read_only = {}", u8::from(on)));
            }
        }
    }

    /// Ends every connection of the nodes.
    pub(crate) fn cut_all(&self) {
        match &self.server {
            Server::Postgres(server) => {
                let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'soloist'";
                server.psql("postgres", all);
            }
            Server::MariaDb(server) => server.cut_all(),
        }
    }
}
