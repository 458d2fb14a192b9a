//! A process that speaks on a life line, and the site in which it does.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::node::{Ground, Node};
use crate::support::wait::{until, until_async};

/// Its name in the configuration.
pub(super) const SOCKET: &str = "line.sock";
const TTL_MS: u64 = 10_000;

/// A process that does what it is told.
pub(super) struct Program {
    process: Child,
    tells: Option<ChildStdin>,
    hears: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(super) fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lifeline/program.py");
        let mut process = Command::new("python3")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3: install it");
        let tells = process.stdin.take();
        let hears = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Self { process, tells, hears }
    }

    /// Has it do one thing; its answer.
    pub(super) fn tell(&mut self, what: &Value) -> Value {
        let tells = self.tells.as_mut().expect("it listens");
        writeln!(tells, "{what}").expect("it listens");
        let answer = self.hears.next().expect("it answers").expect("UTF-8");
        serde_json::from_str(&answer).expect("JSON")
    }

    pub(super) fn connect(&mut self, path: &Path) -> u64 {
        self.tell(&json!({"connect": path})).as_u64().expect("connected")
    }

    /// Says one line on the connection `line`; the watcher's answer.
    pub(super) fn say(&mut self, line: u64, what: &Value) -> Value {
        self.tell(&json!({"line": line, "say": what}))
    }

    pub(super) fn id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.process.id()).expect("a process id"))
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill(self.id(), signal).expect("our own child");
    }

    pub(super) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        assert_eq!(self.wait().signal(), Some(9));
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        until("it ends", || self.process.try_wait().expect("our own child"))
    }

    pub(super) fn lives(&mut self) -> bool {
        self.process.try_wait().expect("our own child").is_none()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A node with a life line.
pub(super) struct Site {
    pub(super) ground: Ground,
    pub(super) node: Node,
    pub(super) token: String,
    pub(super) api: Api,
}

impl Site {
    pub(super) fn new(jobs: &str) -> Self {
        Self::of(Ground::new("sqlite:soloist.db", &format!("lifeline = {SOCKET:?}\n{jobs}")))
    }

    pub(super) fn of(ground: Ground) -> Self {
        ground.add_user("ada", "admin");
        let token = ground.token("ada");
        let node = ground.start("node-a");
        let api = node.api(&token);
        let site = Self { ground, node, token, api };
        site.until_watched();
        site
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.ground.path(SOCKET)
    }

    /// Waits until somebody listens at the socket, and the node answers there.
    pub(super) fn until_watched(&self) {
        until("a node answers at the socket", || {
            let mut line = UnixStream::connect(self.socket()).ok()?;
            line.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
            writeln!(line, "{}", json!({"auth": self.token})).ok()?;
            let mut answer = String::new();
            BufReader::new(line).read_line(&mut answer).ok()?;
            let answer: Value = serde_json::from_str(&answer).ok()?;
            let knows = !answer["why"].as_str().unwrap_or_default().contains("is not checked yet");
            (answer["ok"] == true && knows).then_some(())
        });
    }

    /// The watcher's process.
    pub(super) fn watcher(&self) -> Pid {
        self.listener().expect("somebody listens")
    }

    /// Who listens at the socket, if anybody does.
    pub(super) fn listener(&self) -> Option<Pid> {
        let line = UnixStream::connect(self.socket()).ok()?;
        let peer = getsockopt(&line, sockopt::PeerCredentials).ok()?;
        Some(Pid::from_raw(peer.pid()))
    }

    /// Starts the node again.
    pub(super) fn restart(&mut self) {
        self.node = self.ground.start("node-a");
        self.api = self.node.api(&self.token);
        self.until_watched();
    }

    /// Asks for a lease; the grant.
    pub(super) async fn acquire(&self, name: &str, holder: &str) -> Value {
        let grant = self.ask(name, holder, 0).await;
        assert!(grant["secret"].is_string(), "{grant}");
        grant
    }

    pub(super) async fn ask(&self, name: &str, holder: &str, wait_ms: u64) -> Value {
        let body = json!({"holder": holder, "request_id": ulid::Ulid::generate().to_string(), "ttl_ms": TTL_MS, "wait_ms": wait_ms});
        let (status, answer) =
            self.api.call(Method::POST, &format!("/api/v1/leases/{name}"), Some(body)).await;
        assert!(status.is_success(), "{status} {answer}");
        answer
    }

    pub(super) async fn release(&self, name: &str, grant: &Value) {
        let body = json!({"secret": grant["secret"]});
        let path = format!("/api/v1/leases/{name}/release");
        let (status, answer) = self.api.call(Method::POST, &path, Some(body)).await;
        assert!(status.is_success(), "{status} {answer}");
    }

    /// The lease of that name in the list.
    pub(super) async fn held(&self, name: &str) -> Option<Value> {
        let list = self.api.get("/api/v1/leases").await;
        list["leases"].as_array().expect("leases").iter().find(|one| one["name"] == name).cloned()
    }

    pub(super) async fn until_free(&self, name: &str) {
        until_async("it is given back", async || self.held(name).await.is_none().then_some(()))
            .await;
    }

    /// A program that is on the line; its connection.
    pub(super) fn program(&self) -> (Program, u64) {
        let mut program = Program::start();
        let line = program.connect(&self.socket());
        let answer = program.say(line, &json!({"auth": self.token}));
        assert_eq!(answer["ok"], true, "{answer}");
        (program, line)
    }

    /// A program that works under a lease of that name, as long as the grant allows; the grant, and what the watcher said.
    pub(super) async fn worker(&self, name: &str) -> (Program, u64, Value, Value) {
        let (mut program, line) = self.program();
        let before = program.say(line, &json!({"end": "nothing"}))["now_ns"].clone();
        let grant = self.acquire(name, &format!("p-{}", program.id())).await;
        let until = before.as_u64().expect("a time") + span(&grant);
        let under = json!({"under": name, "secret": grant["secret"], "until_ns": until});
        let said = program.say(line, &under);
        assert_eq!((&said["ok"], &said["release"]), (&true.into(), &true.into()), "{said}");
        (program, line, grant, said)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.node.kill();
        if let Some(watcher) = self.listener() {
            // It may have ended.
            kill(watcher, Signal::SIGTERM).ok();
        }
    }
}

/// 99 % of a grant, in nanoseconds.
pub(super) fn span(grant: &Value) -> u64 {
    grant["expires_in_ms"].as_u64().expect("a length") * 990_000
}
