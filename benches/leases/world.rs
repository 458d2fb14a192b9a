//! The nodes of a measurement and their store.

use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;
use soloist::domain::name::JobName;
use soloist::store::line::Lines as _;
use soloist::store::{Options, Store};

use super::http::Door;
use super::support::node::{Ground, Node};
use super::support::redis::RedisServer;
use super::support::wait::until_async;

/// External jobs: one to be stopped, one whose holders fall silent.
pub(crate) const THREAD: &str = "thread";
pub(crate) const BRIEF: &str = "brief";
const JOBS: &str = "[[job]]\nname = \"thread\"\nrunner = \"external\"\nlease_ttl = \"5s\"\n\
                    [[job]]\nname = \"brief\"\nrunner = \"external\"\nlease_ttl = \"1s\"\n";
/// More than ever wait.
const PLACES: usize = 4_000;

/// Which store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Two nodes.
    Redis,
    /// One node.
    Sqlite,
}

impl Kind {
    /// As on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Sqlite => "sqlite",
        }
    }

    /// As in a table.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Redis => "Redis, two nodes",
            Self::Sqlite => "SQLite, one node",
        }
    }
}

/// Running nodes. The order of the fields is the order of their ends.
pub(crate) struct World {
    pub nodes: Vec<Node>,
    pub store: Store,
    pub redis: Option<RedisServer>,
    token: Arc<str>,
    _ground: Ground,
}

impl World {
    pub(crate) async fn start(kind: Kind) -> Self {
        let redis = (kind == Kind::Redis).then(|| RedisServer::start(&[]));
        let url = redis.as_ref().map_or("sqlite:soloist.db".to_owned(), RedisServer::url);
        let ground = Ground::new(&url, JOBS);
        ground.add_user("li", "operator");
        let token = ground.token("li").into();
        let names: &[&str] = if redis.is_some() { &["node-a", "node-b"] } else { &["node-a"] };
        let nodes = names.iter().map(|name| ground.start(name)).collect();
        let url = match &redis {
            Some(redis) => redis.url(),
            None => format!("sqlite:{}", ground.path("soloist.db").display()),
        };
        let store = soloist::stores::connect(&url, &Options::default()).await.expect("the store");
        Self { nodes, store, redis, token, _ground: ground }
    }

    /// The way into a node; the same one again when there are fewer.
    pub(crate) fn door(&self, nth: usize) -> Door {
        let node = &self.nodes[nth % self.nodes.len()];
        let address = node.url.trim_start_matches("http://").to_owned();
        Door { address, token: Arc::clone(&self.token) }
    }

    /// Until so many wait for `name` with their connections open.
    pub(crate) async fn until_waiting(&self, name: &str, count: usize) {
        let name = JobName::new(name).expect("a name");
        until_async("they stand in line", async || {
            let line = self.store.line(&name, PLACES).await.expect("an answer");
            let here = line.kept().filter(|place| place.waiter.is_some()).count();
            if here == count {
                return Some(());
            }
            // Looking at a long line costs something.
            tokio::time::sleep(Duration::from_millis(45)).await;
            None
        })
        .await;
    }

    /// The process of Redis.
    pub(crate) fn redis_pid(&self) -> Option<Pid> {
        const PID: &str =
            "return tonumber(string.match(redis.call('INFO', 'server'), 'process_id:(%d+)'))";
        self.redis.as_ref().map(|redis| Pid::from_raw(redis.run::<i32>(&["EVAL", PID, "0"])))
    }
}
