//! The Redis under test: one server, or a master with a replica to fail over to; and what an operator does after it
//! has forgotten everything.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::redis::RedisServer;

/// One or two servers; one of them is the store.
pub(crate) struct Redis {
    servers: Vec<RedisServer>,
    current: usize,
    /// What is kept elsewhere and put back: accounts and API tokens, as DUMP gives them.
    accounts: Vec<Vec<u8>>,
}

const ACCOUNTS: [&str; 2] = ["soloist:users", "soloist:tokens"];

impl Redis {
    /// Starts a server, which keeps everything on disk if wanted, and a replica of it if wanted.
    pub(crate) fn start(append_only: bool, replica: bool) -> Self {
        // A replica that comes back waits for no others before it copies.
        let mut options = vec!["--repl-diskless-sync-delay", "0"];
        if append_only {
            options.extend(["--appendonly", "yes", "--appendfsync", "always"]);
        }
        let start = |_| RedisServer::start(&options);
        let servers = (0..=u8::from(replica)).map(start).collect();
        let redis = Self { servers, current: 0, accounts: Vec::new() };
        if replica {
            assert!(redis.replicate(), "the replica does not catch up");
        }
        redis
    }

    /// The server that is the store now.
    pub(crate) fn now(&self) -> &RedisServer {
        &self.servers[self.current]
    }

    pub(crate) fn now_mut(&mut self) -> &mut RedisServer {
        &mut self.servers[self.current]
    }

    /// Whether there is another to fail over to.
    pub(crate) fn has_replica(&self) -> bool {
        self.servers.len() > 1
    }

    fn other(&self) -> &RedisServer {
        &self.servers[1 - self.current]
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.now().port()).into()
    }

    /// The replica hears nothing from now on, and will not know that it missed something.
    pub(crate) fn detach_replica(&self) -> bool {
        self.other().try_run::<String>(&["REPLICAOF", "NO", "ONE"]).is_ok()
    }

    /// The store dies and the other server is it from now on.
    pub(crate) fn fail_over(&mut self) {
        self.now_mut().kill();
        self.current = 1 - self.current;
    }

    /// The dead server comes back as a replica; true once it has caught up.
    pub(crate) fn come_back(&mut self) -> bool {
        let dead = 1 - self.current;
        self.servers[dead].restart();
        self.replicate()
    }

    fn replicate(&self) -> bool {
        let port = self.now().port().to_string();
        self.other().try_run::<String>(&["REPLICAOF", "127.0.0.1", &port]).is_ok()
            && (0..400).any(|_| {
                let info = self.other().try_run::<String>(&["INFO", "replication"]);
                let done = info.is_ok_and(|info| info.contains("master_link_status:up"));
                if !done {
                    std::thread::sleep(Duration::from_millis(25));
                }
                done
            })
    }

    /// Remembers the accounts, so that an operator can put them back.
    pub(crate) fn keep_accounts(&mut self) {
        self.accounts = ACCOUNTS.map(|key| self.now().run(&["DUMP", key])).to_vec();
    }

    /// Puts the accounts back if they are gone. Whether they are there.
    pub(crate) fn restore_accounts(&self) -> bool {
        if !matches!(self.now().try_run::<i64>(&["EXISTS", ACCOUNTS[0]]), Ok(0)) {
            return true;
        }
        let restore = || -> ::redis::RedisResult<()> {
            let client = ::redis::Client::open(self.now().url())?;
            let mut connection = client.get_connection_with_timeout(Duration::from_secs(2))?;
            connection.set_read_timeout(Some(Duration::from_secs(2)))?;
            for (key, value) in ACCOUNTS.iter().zip(&self.accounts) {
                let mut command = ::redis::cmd("RESTORE");
                command.arg(key).arg(0).arg(value).arg("REPLACE");
                command.query::<()>(&mut connection)?;
            }
            Ok(())
        };
        restore().is_ok()
    }

    /// Whether the replica has heard that `user` participates.
    pub(crate) fn replica_participates(&self, job: &str, user: &str) -> bool {
        participates(self.other(), job, user) == Some(true)
    }

    /// Whether `user` participates in `job`; `None` when the store does not say.
    pub(crate) fn participates(&self, job: &str, user: &str) -> Option<bool> {
        participates(self.now(), job, user)
    }
}

/// Whether a server has it that `user` participates in `job`; `None` when it does not say.
pub(crate) fn participates(server: &RedisServer, job: &str, user: &str) -> Option<bool> {
    let key = format!("soloist:{{{job}}}:record");
    let Some(text) = server.try_run::<Option<String>>(&["GET", &key]).ok()? else {
        return Some(false);
    };
    let record: serde_json::Value = serde_json::from_str(text.split_once('\n')?.1).ok()?;
    let users = record["participants"].as_array();
    Some(users.is_some_and(|users| users.iter().any(|one| one["user"] == user)))
}
