//! Commands of Soloist that run scripts (`collect`, `turn`): a directory and a store for them, and one that is under way.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::store::{Options, Store};

use super::node::Ground;
use super::redis::RedisServer;
use super::wait::until;

/// Says which it is, then lives until it is told to [`Site::go`].
pub(crate) const WAITS: &str =
    "echo $$ > pid.new; mv pid.new pid; until [ -e go ]; do sleep 0.02; done";

/// A directory and a store.
pub(crate) struct Site {
    redis: Option<RedisServer>,
    pub ground: Ground,
}

impl Site {
    /// On a Redis of its own.
    pub(crate) fn on_redis() -> Self {
        let redis = RedisServer::start(&[]);
        let ground = Ground::new(&redis.url(), "");
        Self { redis: Some(redis), ground }
    }

    /// On a file.
    pub(crate) fn on_file() -> Self {
        Self { redis: None, ground: Ground::new("sqlite:soloist.db", "") }
    }

    /// Its Redis.
    ///
    /// # Panics
    /// On a file.
    pub(crate) fn redis(&self) -> &RedisServer {
        self.redis.as_ref().expect("it is not on a file")
    }

    /// Starts `soloist` with these words.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        let mut command = self.ground.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().expect("soloist starts") }
    }

    /// The URL of its store.
    pub(crate) fn store(&self) -> String {
        let file = || format!("sqlite:{}", self.ground.path("soloist.db").display());
        self.redis.as_ref().map_or_else(file, RedisServer::url)
    }

    /// Asks its store something.
    pub(crate) fn ask<T>(&self, ask: impl AsyncFnOnce(Store) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let store = soloist::stores::connect(&self.store(), &Options::default()).await;
            ask(store.expect("a store")).await
        })
    }

    /// The lines of a file that scripts wrote.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.ground.path(name)).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// A number that a script wrote into a file.
    pub(crate) fn number(&self, name: &str) -> i32 {
        until(&format!("a number in {name}"), || {
            fs::read_to_string(self.ground.path(name)).ok()?.trim().parse().ok()
        })
    }

    /// Lets [`WAITS`] end.
    pub(crate) fn go(&self) {
        fs::write(self.ground.path("go"), "").expect("written");
    }
}

/// A command under way; killed when it is dropped.
pub(crate) struct Running {
    pub child: Child,
}

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("our own child");
    }

    /// Its exit code and what it said.
    pub(crate) fn end(mut self) -> (i32, String) {
        let status = until("it ends", || self.child.try_wait().expect("our own child"));
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).expect("UTF-8");
        (status.code().unwrap_or_else(|| panic!("killed: {said}")), said)
    }

    /// Waits until it says `part`; returns the line.
    pub(crate) fn says(&mut self, part: &str) -> String {
        let mut lines = BufReader::new(self.child.stderr.as_mut().expect("a pipe")).lines();
        let found = lines.by_ref().map_while(Result::ok).find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("never said {part:?}"))
    }

    /// Its children: guards.
    pub(crate) fn guards(&self) -> Vec<Pid> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok().map(Pid::from_raw)).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
