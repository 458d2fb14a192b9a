//! A real master with replicas, watched by real sentinels: for one test, on free ports, killed by process id at the end.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::redis::RedisServer;
use super::wait::until;

/// What the sentinels call the master.
pub(crate) const NAME: &str = "jobs";

/// A master, two replicas and three sentinels.
pub(crate) struct Watched {
    /// The first is the master at the beginning.
    pub servers: Vec<RedisServer>,
    /// Two of three decide.
    pub sentinels: Vec<Sentinel>,
}

impl Watched {
    /// Starts them all, and waits until every sentinel knows every other and both replicas.
    #[must_use]
    pub(crate) fn start() -> Self {
        let master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
        let port = master.port();
        let mut servers = vec![master];
        servers.extend((0..2).map(|_| RedisServer::replica_of(port)));
        let sentinels: Vec<_> = (0..3).map(|_| Sentinel::start(port)).collect();
        let watched = Self { servers, sentinels };
        for sentinel in &watched.sentinels {
            until("a sentinel knows them all", || {
                let known = sentinel.master();
                let of = |field: &str| known.iter().position(|word| word == field);
                let is = |field: &str| of(field).is_some_and(|at| known[at + 1] == "2");
                (is("num-slaves") && is("num-other-sentinels")).then_some(())
            });
        }
        watched
    }

    /// The URL of the store, database 0.
    #[must_use]
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/{NAME}", hosts.join(","))
    }

    /// Waits until a majority names another master than the server `old`, and that one says so too. Gives its place in
    /// `servers`.
    #[must_use]
    pub(crate) fn until_moved(&self, old: usize) -> usize {
        until("a replica is promoted", || {
            let named: Vec<_> = self.sentinels.iter().filter_map(Sentinel::address).collect();
            self.servers.iter().position(|server| {
                server.port() != self.servers[old].port()
                    && named.iter().filter(|&&port| port == server.port()).count() >= 2
                    && server.role() == "master"
            })
        })
    }
}

/// One sentinel.
pub(crate) struct Sentinel {
    port: u16,
    _directory: TempDir,
    process: Child,
}

impl Sentinel {
    fn start(master: u16) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let directory = TempDir::new().expect("a directory");
        // It writes what it learns into this file.
        let file = directory.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor {NAME} 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds {NAME} 1000\nsentinel failover-timeout {NAME} 4000\n\
             sentinel parallel-syncs {NAME} 2\n"
        );
        std::fs::write(&file, text).expect("a configuration");
        let process = Command::new("redis-server")
            .arg(&file)
            .arg("--sentinel")
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        let sentinel = Self { port, _directory: directory, process };
        until("a sentinel answers", || (!sentinel.master().is_empty()).then_some(()));
        sentinel
    }

    /// SIGSTOP.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("our own child");
    }

    /// What it knows of the master, field after value; empty when it does not answer.
    fn master(&self) -> Vec<String> {
        self.ask(&["SENTINEL", "MASTER", NAME]).unwrap_or_default()
    }

    /// The port it names.
    fn address(&self) -> Option<u16> {
        let named: (String, u16) = self.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?;
        Some(named.1)
    }

    fn ask<T: ::redis::FromRedisValue>(&self, words: &[&str]) -> Option<T> {
        super::redis::ask(&format!("redis://127.0.0.1:{}/", self.port), words).ok()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.process.kill().expect("our own child can be killed");
        self.process.wait().expect("and waited for");
    }
}
