//! The command line as a person or a script meets it: the real program, a store of its own, exit codes and words.

mod accounts;
mod alerts;
mod audit;
mod jobs;
mod removal;
mod single_sign_on;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::time::{Began, StoreTime};
use soloist::store::accounts::{Accounts, Role, User};
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Journal, NewLine, Output as Said, Started, Stream};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases};
use soloist::store::nodes::{Beat, Nodes};
use soloist::store::{Options, Store};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);
const PASSWORD: &str = "violet harbour 47 lanterns";
const JOBS: &str = r#"
[[job]]
name = "outbound"
command = ["true"]
[[job]]
name = "inbound"
command = ["true"]
operators = ["wang"]
"#;

/// A directory with a configuration and a store.
struct Place {
    dir: TempDir,
}

/// What a command did.
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

impl Done {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// The exit code and the one message, which must not stand on standard output.
    #[track_caller]
    fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert_eq!(self.out, "");
        assert!(self.err.starts_with("soloist: "), "{}", self.err);
        self.err
    }

    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("JSON")
    }
}

impl Place {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("soloist.toml"), text).expect("a file");
        Self { dir }
    }

    /// With accounts: `ada` is admin, `li` and `wang` operators, `eve` a viewer. Nobody knows their passwords:
    /// hashing them takes seconds in a debug build.
    async fn with_accounts() -> Self {
        let place = Self::new(JOBS);
        let store = place.store().await;
        for (name, role) in [
            ("ada", Role::Admin),
            ("li", Role::Operator),
            ("wang", Role::Operator),
            ("eve", Role::Viewer),
        ] {
            let account = User::new(user(name), role, "unusable".to_owned());
            store.add_user(&account, false).await.expect("added");
        }
        place
    }

    fn add(&self, name: &str, role: &str) -> Done {
        self.fed(&["user", "add", name, "--role", role, "--password-stdin"], PASSWORD)
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("data/soloist.db")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.args(args).current_dir(self.dir.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        self.command(args).stdin(Stdio::null()).output().expect("it starts").into()
    }

    fn fed(&self, args: &[&str], input: &str) -> Done {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // It may refuse before it reads.
        stdin.write_all(input.as_bytes()).ok();
        drop(stdin);
        child.wait_with_output().expect("it ends").into()
    }

    /// The same store, as a node would open it.
    async fn store(&self) -> Store {
        let url = format!("sqlite:{}", self.database().display());
        soloist::stores::connect(&url, &Options::default()).await.expect("the store opens")
    }
}

fn job() -> JobName {
    JobName::new("outbound").expect("a valid name")
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).expect("a valid name")
}

fn user(name: &str) -> UserName {
    UserName::new(name).expect("a valid name")
}

/// Lets `node-a` run outbound, as its runner would.
async fn running(store: &Store) -> Token {
    let owner = Owner("owner".to_owned());
    let ask = Acquire {
        job: job(),
        owner,
        node: node("node-a"),
        ttl: Duration::from_secs(60),
        condition: Condition::None,
        seen: Token(0),
    };
    let Acquired::Granted { token, .. } = store.acquire(&ask).await.expect("an answer") else {
        panic!("a free lease is granted");
    };
    let run = RunId("01J00000000000000000000000".to_owned());
    let began = Began::at_boot(soloist::clock::boot());
    let started = Started { job: job(), token, run, node: node("node-a"), pid: 4711, began };
    store.record_started(&started).await.expect("recorded");
    token
}

async fn say(store: &Store, token: Token, text: &str) {
    let said = Said {
        job: job(),
        token,
        run: RunId("01J00000000000000000000000".to_owned()),
        node: node("node-a"),
        lines: vec![NewLine { stream: Stream::Stdout, text: text.to_owned() }],
        progress: None,
        heard: false,
    };
    store.record_output(&said).await.expect("recorded");
}

fn beat(name: &str) -> Beat {
    Beat {
        node: node(name),
        boot: name.to_owned(),
        version: "0.1.0".to_owned(),
        started: StoreTime(0),
        containment: "subreaper".to_owned(),
        url: String::new(),
        jobs: [job()].into(),
        digest: String::new(),
        holds: Vec::new(),
        unfit: Default::default(),
        vitals: None,
        watched: None,
    }
}

async fn report(store: &Store, name: &str) {
    store.beat(&beat(name)).await.expect("heard");
}

/// A command that goes on until Ctrl-C.
struct Going {
    child: tokio::process::Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Going {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut command = tokio::process::Command::from(place.command(args));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    /// Reads until a line contains `part`.
    async fn reads(&mut self, part: &str) -> String {
        let reading = async {
            loop {
                let line = self.lines.next_line().await.expect("readable").expect("it goes on");
                if line.contains(part) {
                    return line;
                }
            }
        };
        timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("{part} never came"))
    }

    async fn ends_on_ctrl_c(mut self) {
        let pid = i32::try_from(self.child.id().expect("it runs")).expect("a pid");
        kill(Pid::from_raw(pid), Signal::SIGINT).expect("signalled");
        let status = timeout(PATIENCE, self.child.wait()).await.expect("it ends").expect("reaped");
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn check_reports_every_problem_and_touches_no_store() {
    let place = Place::new(&format!("{JOBS}comand = []\nlease_ttl = \"1ms\"\n"));
    let message = place.run(&["check"]).fails(2);
    assert!(message.contains("2 problems"), "{message}");
    assert!(message.contains("soloist.toml:9: job.inbound.comand: unknown key"), "{message}");
    assert!(message.contains("soloist.toml:10: job.inbound.lease_ttl"), "{message}");
    assert_eq!(place.run(&["status"]).fails(2), message, "every command says the same");

    let place = Place::new(JOBS);
    assert_eq!(place.run(&["check"]).ok(), "soloist.toml: 2 jobs, no problems\n");
    assert!(!place.database().exists());

    let rule = "[[alert]]\nwhen = \"given_up\"\nto = [\"ops\"]\n";
    let channel = "[channel.ops]\nkind = \"slack\"\nurl = \"https://hooks.example.org/x\"\n";
    let place = Place::new(&format!("{JOBS}{rule}{rule}{channel}"));
    let said = place.run(&["check"]).ok();
    assert_eq!(said, "soloist.toml: 2 jobs, 2 alerts, 1 channel, no problems\n");
}

#[test]
fn wrong_usage_is_exit_code_2_and_help_is_0() {
    let place = Place::new(JOBS);
    for args in [
        &["frobnicate"][..],
        &["hold", "outbound"],
        &["user", "add", "Li", "--role", "admin"],
        &["user", "add", "li", "--role", "king"],
        &["run", "--", "true"],
        &["run", "--name", "x", "--ttl", "fast", "--", "true"],
        &["status", "--config", "gone.toml"],
        &["status", "--store", "oracle://x"],
    ] {
        assert_eq!(place.run(args).code, 2, "{args:?}");
    }
    let help = place.run(&["--help"]).ok();
    for word in ["serve", "check", "status", "why", "hold", "fence", "Examples:", "Exit codes"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(place.run(&["--version"]).ok().starts_with("soloist "));
    assert!(!place.database().exists());
}

#[test]
fn a_store_out_of_reach_is_one_message_with_what_to_do() {
    let place = Place::new(JOBS);
    let message = place.run(&["status", "--store", "redis://u:sesame@127.0.0.1:1/0"]).fails(1);
    assert!(message.contains("start it, or correct the store URL"), "{message}");
    assert!(!message.contains("sesame"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[tokio::test]
async fn every_listing_is_json_when_asked() {
    let place = Place::with_accounts().await;
    for (args, key) in [
        (&["status", "--json"][..], "jobs"),
        (&["nodes", "--json"], "nodes"),
        (&["runs", "outbound", "--json"], "runs"),
        (&["logs", "outbound", "--json"], "lines"),
        (&["user", "list", "--json"], "users"),
        (&["token", "list", "--json"], "tokens"),
        (&["lease", "list", "--json"], "leases"),
    ] {
        let answer = place.run(args).json();
        assert!(answer[key].is_array(), "{args:?}: {answer}");
    }
    assert_eq!(place.run(&["status", "inbound", "--json"]).json()["name"], "inbound");
}

#[tokio::test]
async fn every_act_is_in_the_audit_with_who_and_why() {
    let place = Place::with_accounts().await;
    place.run(&["on", "outbound", "--user", "li", "--reason", "orders"]).ok();
    place.run(&["hold", "outbound", "--user", "wang", "--reason", "stock"]).ok();
    place.run(&["resume", "outbound", "--user", "wang"]).ok();
    let entries = place.store().await.audits(Some("outbound"), None, 10).await.expect("entries");
    let noted: Vec<_> = entries
        .iter()
        .map(|entry| (entry.who.as_str(), entry.act.as_str(), entry.reason.as_deref()))
        .collect();
    assert_eq!(
        noted,
        [
            ("cli:wang", "job.resume", None),
            ("cli:wang", "job.hold", Some("stock")),
            ("cli:li", "participation.on", Some("orders")),
        ]
    );
    assert!(entries.iter().all(|entry| entry.from == "terminal"));
    place.run(&["user", "role", "eve", "operator"]).ok();
    let noted = place.store().await.audits(Some("eve"), None, 10).await.expect("entries");
    assert_eq!(
        (noted[0].act.as_str(), noted[0].reason.as_deref()),
        ("user.role", Some("operator"))
    );
}

#[tokio::test]
async fn a_move_needs_a_running_job_and_a_node_that_may_take_it() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    let message = place.run(&["move", "outbound", "--to", "node-b", "--user", "li"]).fails(3);
    assert!(message.contains("none has reported"), "{message}");
    report(&store, "node-a").await;
    let message = place.run(&["move", "outbound", "--user", "li"]).fails(4);
    assert!(message.contains("nobody wants outbound"), "{message}");
    place.run(&["on", "outbound", "--user", "li"]).ok();
    let message = place.run(&["move", "outbound", "--user", "li"]).fails(4);
    assert!(message.contains("has not run yet"), "{message}");
    running(&store).await;
    let message = place.run(&["move", "outbound", "--user", "li"]).fails(4);
    assert!(message.contains("no other living node"), "{message}");
    report(&store, "node-a").await;
    let message = place.run(&["move", "outbound", "--to", "node-a", "--user", "li"]).fails(4);
    assert!(message.contains("already"), "{message}");
    report(&store, "node-b").await;
    let message = place.run(&["move", "outbound", "--to", "node-c", "--user", "li"]).fails(3);
    assert!(message.contains("node-a, node-b"), "{message}");
    place.run(&["drain", "node-b", "--user", "li"]).ok();
    let message = place.run(&["move", "outbound", "--to", "node-b", "--user", "li"]).fails(4);
    assert!(message.contains("undrain"), "{message}");
    place.run(&["undrain", "node-b", "--user", "li"]).ok();
    report(&store, "node-b").await;
    let order = ["move", "outbound", "--to", "node-b", "--user", "li", "--reason", "new disk"];
    place.run(&order).ok();
    let record = store.snapshot(&[job()]).await.expect("a snapshot").jobs.remove(0);
    assert_eq!(record.moving.expect("a move").to, Some(node("node-b")));
    place.run(&["drain", "node-z"]).fails(3);
    let drain = ["drain", "node-b", "--user", "li", "--reason", "kernel update"];
    place.run(&drain).ok();
    for (target, act, reason) in
        [("outbound", "job.move", "to node-b: new disk"), ("node-b", "node.drain", "kernel update")]
    {
        let noted = store.audits(Some(target), None, 1).await.expect("entries").remove(0);
        let (act, reason) = ((act, Some(reason)), (noted.act.as_str(), noted.reason.as_deref()));
        assert_eq!(reason, act, "why it was done is in the audit");
    }
}

#[tokio::test]
async fn logs_and_runs_are_read_from_the_store_and_cannot_control_the_terminal() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    let token = running(&store).await;
    say(&store, token, "first").await;
    say(&store, token, "second \u{1b}[31mred").await;
    let out = place.run(&["logs", "outbound", "--lines", "1"]).ok();
    assert!(out.contains("node-a stdout  second") && !out.contains("first"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
    let lines = place.run(&["logs", "outbound", "--json"]).json();
    assert_eq!(lines["lines"][0]["text"], "first");
    let runs = place.run(&["runs", "outbound"]).ok();
    assert!(
        runs.contains("01J00000000000000000000000  node-a") && runs.contains("running"),
        "{runs}"
    );
    let table = place.run(&["status"]).ok();
    assert!(table.contains("outbound  stopping  node-a"), "nobody wants it: {table}");
}

#[tokio::test]
async fn logs_are_searched_by_text_run_and_time() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    let token = running(&store).await;
    for text in ["shipped 10248", "\u{1b}[31mERR\u{1b}[0mOR", "shipped 10249"] {
        say(&store, token, text).await;
    }
    let logs = |more: &[&str]| place.run(&[&["logs", "outbound"], more].concat()).ok();
    let found = logs(&["--grep", "SHIPPED"]);
    assert!(found.lines().count() == 2 && found.contains("10248"), "{found}");
    assert_eq!(logs(&["--grep", "shipped", "--lines", "1"]).lines().count(), 1);
    assert!(logs(&["--grep", "error"]).ends_with("node-a stdout  ERROR\n"));
    let run = "01J00000000000000000000000";
    assert_eq!(logs(&["--run", run, "--since", "1h"]).lines().count(), 3);
    assert_eq!(logs(&["--run", "01JX"]), "");
    assert_eq!(logs(&["--since", "2100-01-01T00:00:00Z"]), "");
    let wrong = place.run(&["logs", "outbound", "--since", "soon"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("10m") && wrong.err.contains("01:02:03Z"), "{}", wrong.err);

    let mut following = Going::start(&place, &["logs", "outbound", "--follow", "--grep", "paid"]);
    say(&store, token, "unpaid bill").await;
    following.reads("unpaid").await;
    say(&store, token, "shipped 10250").await;
    say(&store, token, "Paid 10248").await;
    assert!(following.reads("").await.contains("Paid 10248"), "nothing else is printed between");
    following.ends_on_ctrl_c().await;
}

#[tokio::test]
async fn followed_logs_go_on_until_ctrl_c() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    let token = running(&store).await;
    say(&store, token, "before").await;
    let mut following = Going::start(&place, &["logs", "outbound", "--follow"]);
    following.reads("before").await;
    say(&store, token, "after").await;
    following.reads("after").await;
    following.ends_on_ctrl_c().await;
}

#[tokio::test]
async fn a_watched_status_shows_each_change_until_ctrl_c() {
    let place = Place::with_accounts().await;
    let store = place.store().await;
    let mut watching = Going::start(&place, &["status", "outbound", "--watch", "--json"]);
    watching.reads("\"state\":\"off\"").await;
    store.participate(&job(), &user("li"), true, None).await.expect("switched");
    let line = watching.reads("\"state\":\"waiting\"").await;
    let view: Value = serde_json::from_str(&line).expect("one object a line");
    assert_eq!(view["participants"][0]["user"], "li");
    watching.ends_on_ctrl_c().await;
}

#[tokio::test]
async fn an_account_made_here_can_be_read_by_a_node() {
    let place = Place::new(JOBS);
    place.add("ada", "admin").ok();
    let ada = place.store().await.user(&user("ada")).await.expect("an answer").expect("an account");
    assert!(soloist::secrets::verify(&ada.password, PASSWORD));
}

#[test]
fn fence_lets_only_the_newest_token_write() {
    let place = Place::new("");
    let fenced = |token: Option<&str>| -> Done {
        let mut command =
            place.command(&["fence", "fence", "--", "sh", "-c", "echo wrote; exit 3"]);
        if let Some(token) = token {
            command.env("SOLOIST_TOKEN", token);
        }
        command.stdin(Stdio::null()).output().expect("it starts").into()
    };
    let done = fenced(Some("8"));
    assert_eq!((done.code, done.out.as_str()), (3, "wrote\n"));
    let message = fenced(Some("7")).fails(4);
    assert!(message.contains("stale"), "{message}");
    fenced(None).fails(2);
}
