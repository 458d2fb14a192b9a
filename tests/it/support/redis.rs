//! A real `redis-server` for one test: a free port, a directory of its own, killed by its process id at the end, and by
//! the kernel should the test process end without an end.
//!
//! It may be killed and started again on the same port and directory, paused, and spoken to directly.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, mpsc};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::wait::until;

/// Runs one command on a connection of its own to the server at `url`.
///
/// # Errors
/// What the server or the connection says.
pub(crate) fn ask<T: ::redis::FromRedisValue>(
    url: &str,
    words: &[&str],
) -> ::redis::RedisResult<T> {
    let client = ::redis::Client::open(url)?;
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(2))?;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut command = ::redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query(&mut connection)
}

/// How long a server may take to answer after it was started.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running server.
pub(crate) struct RedisServer {
    port: u16,
    options: Vec<String>,
    environment: Vec<(String, String)>,
    directory: TempDir,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts a server without persistence, plus `options` (`["--appendonly", "yes"]`).
    ///
    /// # Panics
    /// When `redis-server` is not installed, or does not come up.
    #[must_use]
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_in(options, &[])
    }

    /// As [`Self::start`], with a user that may do what `deploy/redis.acl` lists: [`Self::narrow_url`].
    #[must_use]
    pub(crate) fn start_narrow() -> Self {
        let rules = include_str!("../../../deploy/redis.acl");
        let lines = rules.lines().filter(|line| !line.starts_with('#'));
        let words = lines.flat_map(str::split_whitespace);
        let user = ["--user", "soloist", "on", ">narrow"];
        Self::start(&user.into_iter().chain(words).collect::<Vec<_>>())
    }

    /// Its URL for a user that may do what `deploy/redis.acl` lists.
    #[must_use]
    pub(crate) fn narrow_url(&self) -> String {
        format!("redis://soloist:narrow@127.0.0.1:{}/0", self.port)
    }

    /// What that user tried and might not do: command, key or channel.
    #[must_use]
    pub(crate) fn denied(&self) -> Vec<String> {
        let entries: Vec<Vec<(String, ::redis::Value)>> = self.run(&["ACL", "LOG"]);
        let object = |entry: Vec<(String, ::redis::Value)>| {
            entry
                .into_iter()
                .find(|(name, _)| name == "object")
                .and_then(|(_, value)| ::redis::from_redis_value::<String>(value).ok())
        };
        entries.into_iter().filter_map(object).collect()
    }

    /// As [`Self::start`], with more in its environment.
    #[must_use]
    pub(crate) fn start_in(options: &[&str], environment: &[(&str, &str)]) -> Self {
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = free.local_addr().expect("its address").port();
            drop(free);
            let mut server = Self {
                port,
                options: options.iter().map(|&option| option.to_owned()).collect(),
                environment: environment
                    .iter()
                    .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
                directory: TempDir::new().expect("a directory"),
                process: None,
            };
            if server.spawn() {
                server.make_known();
                return server;
            }
        }
        panic!("redis-server did not start on any of five free ports: is Redis 7 installed?");
    }

    /// An empty store on a server that has just started is taken for one that lost everything, and grants nothing for
    /// a lease. Tests know better, until they restart or empty it.
    fn make_known(&self) {
        let info: String = self.run(&["INFO", "server"]);
        let run_id = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        let run_id = run_id.expect("its run id").trim();
        let epoch = ["HSET", "soloist:epoch", "id", run_id, "run_id", run_id, "since", "0"];
        let rest = ["until", "0", "longest", "0", "before", "0", "turned", "0"];
        // A replica takes it from its master.
        self.try_run::<i64>(&[&epoch[..], &rest].concat()).ok();
    }

    /// Whether it is our process that answers: a server of another test may have taken the port first, and ours is about to end.
    fn is_ours(&self) -> bool {
        let ours = self.process.as_ref().map(|process| format!("process_id:{}", process.id()));
        let info = self.try_run::<String>(&["INFO", "server"]).unwrap_or_default();
        ours.is_some_and(|ours| info.lines().any(|line| line.trim() == ours))
    }

    /// Starts a replica of the server on `port`, and waits until that one counts on it.
    #[must_use]
    pub(crate) fn replica_of(port: u16) -> Self {
        let replica = Self::start(&[
            "--repl-diskless-sync-delay",
            "0",
            "--replicaof",
            &format!("127.0.0.1 {port}"),
        ]);
        // The master sends it nothing before it has acknowledged something, which takes up to a second.
        let (own, silent) = (format!("port={},state=online", replica.port), "offset=0,");
        until("the master counts on the replica", || {
            let master = format!("redis://127.0.0.1:{port}/");
            // So that there is something to acknowledge.
            ask::<u64>(&master, &["PUBLISH", "nobody", "listens"]).ok()?;
            let info: String = ask(&master, &["INFO", "replication"]).ok()?;
            info.lines().find(|line| line.contains(&own) && !line.contains(silent)).map(drop)
        });
        replica
    }

    /// Its URL, database 0.
    #[must_use]
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("our own child can be killed");
            process.wait().expect("and waited for");
        }
    }

    /// Starts it again on the same port and directory, killing it first if it runs.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.spawn(), "redis-server did not come back on port {}", self.port);
    }

    /// SIGSTOP: it keeps accepting connections (the kernel does) and never answers.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Of its process.
    ///
    /// # Panics
    /// When it was killed.
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    fn signal(&self, signal: Signal) {
        let id = self.pid();
        kill(Pid::from_raw(i32::try_from(id).expect("a process id")), signal).expect("our child");
    }

    /// Runs one command on a connection of its own: `run(&["CONFIG", "SET", ...])`.
    ///
    /// # Panics
    /// When the server refuses it.
    pub(crate) fn run<T: ::redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_run(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// As [`Self::run`], for commands that may fail.
    ///
    /// # Errors
    /// What the server or the connection says.
    pub(crate) fn try_run<T: ::redis::FromRedisValue>(
        &self,
        words: &[&str],
    ) -> ::redis::RedisResult<T> {
        loop {
            match ask(&self.url(), words) {
                // A child of this process ended meanwhile: nothing is wrong with the server.
                Err(error) if error.to_string().contains("(os error 4)") => {}
                answer => return answer,
            }
        }
    }

    /// The record of `job`, as JSON; null when there is none.
    #[must_use]
    pub(crate) fn record(&self, job: &str) -> serde_json::Value {
        let text: Option<String> = self.run(&["GET", &format!("soloist:{{{job}}}:record")]);
        let text = text.unwrap_or_default();
        let (_, json) = text.split_once('\n').unwrap_or(("", "null"));
        serde_json::from_str(json).expect("JSON after the first line")
    }

    /// The lease of `job`, as JSON; null when it is free.
    #[must_use]
    pub(crate) fn lease(&self, job: &str) -> serde_json::Value {
        let text: Option<String> = self.run(&["GET", &format!("soloist:{{{job}}}:lease")]);
        serde_json::from_str(text.as_deref().unwrap_or("null")).expect("JSON")
    }

    /// Changes the record of `job` to what an older copy of it would be, as a replica has one: the version tells nothing of it.
    pub(crate) fn rewrite(&self, job: &str, change: impl FnOnce(&mut serde_json::Value)) {
        let key = format!("soloist:{{{job}}}:record");
        let text: String = self.run(&["GET", &key]);
        let (head, _) = text.split_once('\n').expect("a first line");
        let (version, at) = head.split_once(' ').expect("version and instant");
        let mut record = self.record(job);
        change(&mut record);
        let older = at.parse::<i64>().expect("an instant") - 1;
        self.run::<()>(&["SET", &key, &format!("{version} {older}\n{record}")]);
    }

    /// `master`, `slave`, or nothing when it does not answer.
    #[must_use]
    pub(crate) fn role(&self) -> String {
        let role: Vec<::redis::Value> = self.try_run(&["ROLE"]).unwrap_or_default();
        role.into_iter()
            .next()
            .and_then(|role| ::redis::from_redis_value(role).ok())
            .unwrap_or_default()
    }

    fn spawn(&mut self) -> bool {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "redis-server"])
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no", "--daemonize", "no"])
            .arg("--dir")
            .arg(self.directory.path())
            .args(&self.options)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = spawn_for_good(command).unwrap_or_else(|error| {
                panic!("setpriv cannot be started ({error}): install util-linux, and Redis 7: for instance `apt-get install util-linux redis-server`")
            });
        self.process = Some(child);
        #[expect(clippy::disallowed_methods, reason = "a test's patience, nothing depends on it")]
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let running = self.process.as_mut().is_some_and(|p| matches!(p.try_wait(), Ok(None)));
            if !running {
                self.process = None;
                return false;
            }
            if self.try_run::<String>(&["PING"]).is_ok() && self.is_ours() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        false
    }
}

/// Starts a process that is killed with this one, so that no server outlives the tests. The kernel sends that signal when
/// the *thread* ends which started the process: so all are started by one thread that never does.
fn spawn_for_good(command: Command) -> std::io::Result<Child> {
    type Order = (Command, mpsc::Sender<std::io::Result<Child>>);
    static ORDERS: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in inbox {
                // Whoever ordered it waits for it.
                answer.send(command.spawn()).ok();
            }
        });
        orders
    });
    let (answer, started) = mpsc::channel();
    ORDERS.send((command, answer)).map_err(std::io::Error::other)?;
    started.recv().map_err(std::io::Error::other)?
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
