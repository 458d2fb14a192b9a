//! Readers that stand still: a pipe that nobody reads, a terminal that is stopped. Nothing that holds a lease waits for one.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{FlowArg, tcflow};
use nix::unistd::Pid;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::api::Api;
use crate::support::machine::{in_time, judged};
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async, within};
use crate::support::worker::Site;

judged! {
    a_node_whose_log_nobody_reads_answers_switches_off_moves_and_ends
    a_node_on_a_terminal_that_is_stopped_answers_switches_off_moves_and_ends
    a_command_is_renewed_while_nobody_reads_what_is_said_of_it
    a_command_is_killed_in_time_while_nobody_reads_that_it_is
    a_command_in_the_background_of_a_terminal_is_renewed_where_output_stops_whoever_writes
    a_collector_whose_output_nobody_reads_ends_when_it_is_told_to
}

/// What the end of a process may take; it waits for a reader for one second.
const SOON: Duration = Duration::from_secs(8);
const JOB: &str =
    "[[job]]\nname = \"beat\"\ncommand = [\"sh\", \"-c\", \"while :; do sleep 0.05; done\"]\n";
/// Writes when it lives, by CLOCK_BOOTTIME, for at most a minute.
const BEATS: &str = "for n in $(seq 1200); do read -r up _ </proc/uptime; echo \"$up\" > beat.new; mv beat.new beat; sleep 0.05; done";

/// A program whose standard error is a pipe of one page or a terminal, and the end of it that is read, or not.
struct Talker {
    child: Child,
    from: BufReader<File>,
    to: OwnedFd,
    is_terminal: bool,
}

impl Talker {
    fn start(mut command: Command, is_terminal: bool) -> Self {
        let (from, to) = if is_terminal {
            let terminal = nix::pty::openpty(None, None).expect("a terminal");
            (terminal.master, terminal.slave)
        } else {
            let (from, to) = nix::unistd::pipe2(OFlag::O_CLOEXEC).expect("a pipe");
            fcntl(&to, FcntlArg::F_SETPIPE_SZ(4_096)).expect("a small pipe");
            (from, to)
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(to.try_clone().expect("its other end"));
        let child = command.spawn().expect("soloist starts");
        Self { child, from: BufReader::new(from.into()), to, is_terminal }
    }

    /// Reads until a line has `part`; returns the line.
    fn read_until(&mut self, part: &str) -> String {
        loop {
            let mut line = Vec::new();
            let read = self.from.read_until(b'\n', &mut line).expect("its end is open");
            assert!(read > 0, "it never said {part:?}");
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains(part) {
                return line;
            }
        }
    }

    /// From now on whoever writes to it waits.
    fn stand_still(&self) {
        if self.is_terminal {
            return tcflow(&self.to, FlowArg::TCOOFF).expect("a terminal");
        }
        fill(&self.to);
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("our own child");
    }

    /// Its exit code, if it ends soon.
    fn end(&mut self) -> Option<i32> {
        within(SOON, || self.child.try_wait().expect("our own child"))?.code()
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Fills a pipe, whichever of its ends this is.
fn fill(pipe: &impl AsRawFd) {
    let mut filling = filling(pipe);
    for some in [512, 1] {
        // Less than so many bytes have no room any more.
        while filling.write(&[b'\n'; 512][..some]).is_ok() {}
    }
    assert!(is_full(pipe));
}

fn is_full(pipe: &impl AsRawFd) -> bool {
    let written = filling(pipe).write(b"\n");
    written.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Another description of the same pipe: the program's own must go on waiting.
fn filling(pipe: &impl AsRawFd) -> File {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let open = File::options().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    open.expect("the pipe")
}

fn serve(ground: &Ground) -> Command {
    ground.command(&["serve", "--listen", "127.0.0.1:0", "--node", "node-a"])
}

/// Where a node listens, by the line of its log.
fn url_of(line: &str) -> String {
    let (_, rest) = line.split_once("http://").expect("an address");
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
    format!("http://{}", &rest[..end.unwrap_or(rest.len())])
}

async fn a_node_whose_log_nobody_reads_answers_switches_off_moves_and_ends() {
    works_without_a_reader(false).await;
}

async fn a_node_on_a_terminal_that_is_stopped_answers_switches_off_moves_and_ends() {
    works_without_a_reader(true).await;
}

async fn works_without_a_reader(is_terminal: bool) {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let mut node = Talker::start(serve(&ground), is_terminal);
    let url = url_of(&node.read_until("listening on "));
    let li = Api::new(&url, &token);
    let job = async || li.get("/api/v1/jobs/beat").await;
    li.switch("beat", true).await;
    until_async("it runs", async || (job().await["run"]["pid"].is_number()).then_some(())).await;
    node.stand_still();
    // Each is a line of the log, in whichever thread answers.
    let stranger = Api::new(&url, "sol_of_nobody");
    for _ in 0..40 {
        let (status, _) = stranger.call(Method::GET, "/api/v1/jobs", None).await;
        assert!(status.is_client_error(), "{status}");
    }
    let ready = crate::support::http::get(format!("{url}/readyz")).await.expect("an answer");
    assert_eq!(ready.status(), StatusCode::OK);
    li.switch("beat", false).await;
    until_async("it is off", async || (job().await["state"] == "off").then_some(())).await;
    li.switch("beat", true).await;
    let _other = ground.start("node-b");
    let there = async || job().await["lease"]["node"].as_str().map(str::to_owned);
    until_async("node-a has it again", async || (there().await? == "node-a").then_some(())).await;
    let to = Some(json!({ "to": "node-b" }));
    until_async("the move is accepted", async || {
        let (status, _) = li.call(Method::POST, "/api/v1/jobs/beat/move", to.clone()).await;
        (status == StatusCode::ACCEPTED).then_some(())
    })
    .await;
    until_async("node-b has it", async || (there().await? == "node-b").then_some(())).await;
    node.signal(Signal::SIGTERM);
    assert_eq!(node.end(), Some(0), "it ends though nobody has read its log");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_logged_while_nobody_read_comes_later_in_order_and_the_last_line_before_the_end() {
    let ground = Ground::new("sqlite:soloist.db", JOB);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let mut node = Talker::start(serve(&ground), false);
    let li = Api::new(&url_of(&node.read_until("listening on ")), &token);
    node.stand_still();
    let file = ground.path("soloist.toml");
    let text = fs::read_to_string(&file).expect("a configuration");
    for word in ["one", "two"] {
        fs::write(&file, text.replace("\"beat\"", &format!("{word:?}"))).expect("written");
        node.signal(Signal::SIGHUP);
        until_async("it is read", async || {
            (li.get("/api/v1/jobs").await["jobs"][0]["name"] == word).then_some(())
        })
        .await;
    }
    for added in ["one", "two"] {
        let line = node.read_until("the configuration is read again");
        assert!(line.contains(added), "{line}");
    }
    node.signal(Signal::SIGTERM);
    node.read_until("stopping: handing every job over");
    node.read_until("closing connections");
    assert_eq!(node.end(), Some(0));
}

fn run(ground: &Ground, log: &str) -> Command {
    let words = ["run", "--name", "deploy", "--ttl", "2s", "--", "sh", "-c", BEATS];
    let mut command = ground.command(&words);
    command.env("RUST_LOG", log);
    command
}

fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").expect("/proc");
    text.split(' ').next().expect("a number").parse().expect("a number")
}

/// When the script of [`BEATS`] lived last.
fn last_beat(ground: &Ground) -> Option<f64> {
    fs::read_to_string(ground.path("beat")).ok()?.trim().parse().ok()
}

/// That the command lives for more than two leases from now on.
fn lives_on(ground: &Ground) {
    let later = until("it beats", || last_beat(ground)) + 5.0;
    let lives = || last_beat(ground).filter(|beat| *beat > later);
    let lived = within(Duration::from_secs(10), lives);
    in_time(lived.is_some(), || format!("it lived at {:?} last", last_beat(ground)));
}

async fn a_command_is_renewed_while_nobody_reads_what_is_said_of_it() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let mut running = Talker::start(run(&ground, "trace"), false);
    until("it beats", || last_beat(&ground));
    running.stand_still();
    lives_on(&ground);
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end(), Some(128 + 15));
}

async fn a_command_is_killed_in_time_while_nobody_reads_that_it_is() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), "");
    let mut running = Talker::start(run(&ground, "warn"), false);
    until("it beats", || last_beat(&ground));
    running.stand_still();
    redis.pause();
    let end_of_lease = uptime() + 2.0;
    assert_eq!(running.end(), Some(76));
    let last = last_beat(&ground).expect("a beat");
    assert!(last < end_of_lease, "it lived at {last}, its lease ended at {end_of_lease}");
    redis.resume();
}

async fn a_command_in_the_background_of_a_terminal_is_renewed_where_output_stops_whoever_writes() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let inner = run(&ground, "trace");
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let end = || terminal.slave.try_clone().expect("its other end");
    let script =
        "stty tostop; set -m; RUST_LOG=trace \"$@\" & echo $! > run.new; mv run.new run.pid; wait";
    let mut command = Command::new("setsid");
    command.args(["--ctty", "sh", "-c", script, "sh"]).arg(inner.get_program());
    command.args(inner.get_args()).current_dir(ground.path(""));
    command.stdin(end()).stdout(end()).stderr(end());
    let mut shell = Talker {
        child: command.spawn().expect("setsid starts"),
        from: BufReader::new(terminal.master.try_clone().expect("its other end").into()),
        to: terminal.slave,
        is_terminal: true,
    };
    // Somebody reads, or the terminal would be full.
    let mut reader = File::from(terminal.master);
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    lives_on(&ground);
    let pid = fs::read_to_string(ground.path("run.pid")).expect("a file");
    kill(Pid::from_raw(pid.trim().parse().expect("a number")), Signal::SIGTERM).expect("it lives");
    assert!(shell.end().is_some());
}

async fn a_collector_whose_output_nobody_reads_ends_when_it_is_told_to() {
    let site = Site::on_file();
    site.ground.must(&["source", "set", "pages", "--lease", "60s"]);
    site.ground.must(&["task", "put", "--source", "pages", "--key", "one"]);
    let script = "echo > begun; while :; do echo tick; done";
    let words = ["collect", "--source", "pages", "--stop-grace", "100ms", "--", "sh", "-c", script];
    let mut collector = site.start(&words);
    let stdout = collector.child.stdout.take().expect("a pipe");
    until("nobody reads, and it is full", || {
        (site.ground.path("begun").exists() && is_full(&stdout)).then_some(())
    });
    collector.signal(Signal::SIGTERM);
    let ended = within(SOON, || collector.child.try_wait().expect("our own child"));
    assert!(ended.is_some(), "it waits for a reader");
}
