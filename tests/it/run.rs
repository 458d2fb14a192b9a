//! `soloist run`, as cron and deploy scripts use it: one at a time, every byte, every signal, every way to die.

mod once;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::guarded::runs as lives;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::until;
use crate::support::witness::living;

/// Whoever waited for this lease would fail by its patience.
const LONG: &str = "60s";
/// Says that it runs, then lives until it is told to go on.
const WAITS: &str = "echo $$ > pid.new; mv pid.new pid; until [ -e go ]; do sleep 0.02; done";
/// Says when it lives, by CLOCK_BOOTTIME, and leaves a grandchild that fled twice.
const BEATS: &str = r#"
( setsid sh -c '( setsid sh -c "echo \$\$ > fled.new; mv fled.new fled; exec sleep 300" & )' )
until [ -s fled ]; do sleep 0.01; done
echo $$ > pid.new; mv pid.new pid
while :; do read -r up _ </proc/uptime; echo "$up" > beat.new; mv beat.new beat; sleep 0.02; done
"#;

/// A directory and a store.
struct Place {
    ground: Ground,
}

/// A `soloist run` under way.
struct Running {
    child: Child,
}

impl Place {
    fn on(store: &str) -> Self {
        Self { ground: Ground::new(store, "") }
    }

    /// On a file: for what is not about the store.
    fn new() -> Self {
        Self::on("sqlite:soloist.db")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.ground.path(name)
    }

    /// Runs `script` under the lease `deploy` to its end.
    fn run(&self, options: &[&str], script: &str) -> Output {
        self.ground.command(&words(options, script)).output().expect("soloist starts")
    }

    fn start(&self, options: &[&str], script: &str) -> Running {
        let mut command = self.ground.command(&words(options, script));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().expect("soloist starts") }
    }

    /// A number that a script wrote into a file.
    fn number(&self, name: &str) -> i32 {
        until(&format!("a number in {name}"), || {
            fs::read_to_string(self.path(name)).ok()?.trim().parse().ok()
        })
    }

    fn go(&self) {
        fs::write(self.path("go"), "").expect("written");
    }

    /// When the script of [`BEATS`] lived last.
    fn last_beat(&self) -> f64 {
        fs::read_to_string(self.path("beat")).expect("a beat").trim().parse().expect("a number")
    }

    /// That nobody of [`BEATS`] is left.
    fn until_gone(&self) {
        let tree = || living("deploy", &self.path(""), None);
        until("its whole tree is gone", || tree().is_empty().then_some(()));
    }
}

fn words<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut words = vec!["run", "--name", "deploy"];
    words.extend(options);
    words.extend(["--", "sh", "-c", script]);
    words
}

/// CLOCK_BOOTTIME as scripts read it.
fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").expect("/proc");
    text.split(' ').next().expect("a number").parse().expect("a number")
}

impl Running {
    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("our own child");
    }

    fn status(&mut self) -> ExitStatus {
        until("soloist run ends", || self.child.try_wait().expect("our own child"))
    }

    /// Its exit code and what it said.
    fn end(mut self) -> (i32, String) {
        let status = self.status();
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).expect("UTF-8");
        (status.code().unwrap_or_else(|| panic!("killed: {said}")), said)
    }

    /// Waits until it says `part`.
    fn says(&mut self, part: &str) -> String {
        let mut lines = BufReader::new(self.child.stderr.as_mut().expect("a pipe")).lines();
        let found = lines.by_ref().map_while(Result::ok).find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("never said {part:?}"))
    }

    /// Its guard: the only child it has.
    fn guard(&self) -> Pid {
        let pid = self.pid();
        until("it has a guard", || {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn output_passes_byte_by_byte_and_the_exit_code_is_the_commands() {
    let place = Place::new();
    let script = r"printf 'a\0b\377\r\n::progress 1/2\nno end'; printf 'err\r' >&2; exit 3";
    let output = place.run(&[], script);
    assert_eq!(output.stdout, b"a\0b\xff\r\n::progress 1/2\nno end");
    assert_eq!(output.stderr, b"err\r");
    assert_eq!(output.status.code(), Some(3));
    let long = place.run(&[], "head -c 3000000 /dev/zero | tr '\\0' x");
    assert!(long.stdout.len() == 3_000_000 && long.status.success(), "one line of 3 MB");
    assert_eq!(place.run(&[], "kill -KILL $$").status.code(), Some(128 + 9));
    let missing = place.ground.run(&["run", "--name", "deploy", "--", "./missing"]);
    assert_eq!(missing.status.code(), Some(127));
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("./missing") && said.contains("install it"), "{said}");
}

#[test]
fn the_command_gets_its_token_and_nothing_of_the_stores_address() {
    let place = Place::new();
    let output = place.run(&[], "env; tr '\\0' '\\n' </proc/$PPID/environ");
    let env = String::from_utf8(output.stdout).expect("UTF-8");
    for name in ["SOLOIST_JOB=deploy", "SOLOIST_TOKEN=", "SOLOIST_RUN=", "SOLOIST_NODE="] {
        assert!(env.contains(name), "{name} in {env}");
    }
    assert!(!env.contains("soloist.db"), "{env}");
}

#[test]
fn a_reader_who_leaves_ends_the_command_as_in_any_pipe() {
    let place = Place::new();
    let mut running = place.start(&["--ttl", LONG], "exec yes");
    let mut first = String::new();
    let mut reader = BufReader::new(running.child.stdout.take().expect("a pipe"));
    reader.read_line(&mut first).expect("a line");
    drop(reader);
    assert_eq!(first, "y\n");
    assert_eq!(running.end().0, 128 + 13);
    assert!(place.run(&["--wait", "0"], "true").status.success(), "the lease is free");
}

#[test]
fn of_two_one_runs_and_the_other_waits_as_long_as_it_was_told() {
    let place = Place::new();
    let first = place.start(&["--ttl", LONG], WAITS);
    let _pid = place.number("pid");
    let refused = place.run(&["--wait", "0"], "echo never");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(75), 0), "{said}");
    assert!(said.contains("not had in time") && said.contains("holds it"), "{said}");
    assert_eq!(place.run(&["--wait", "100ms"], "echo never").status.code(), Some(75));
    let mut second = place.start(&["--wait", LONG], "echo second > order");
    second.says("waiting for the lease of deploy");
    assert!(!place.path("order").exists());
    place.go();
    assert_eq!(first.end().0, 0);
    assert_eq!(second.end().0, 0);
    assert!(place.path("order").exists());
}

#[test]
fn every_stopping_signal_asks_the_command_first_and_a_second_one_kills() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let place = Place::new();
        let asked = format!("trap 'echo asked > asked; exit 7' TERM; {WAITS}");
        let running = place.start(&["--stop-grace", LONG], &asked);
        let pid = place.number("pid");
        running.signal(signal);
        let (code, said) = running.end();
        assert_eq!(code, 7, "{signal}: {said}");
        assert!(place.path("asked").exists() && !lives(pid), "{signal}");
    }
    let place = Place::new();
    let stubborn = format!("trap 'echo > deaf' TERM; {WAITS}");
    let running = place.start(&["--stop-grace", LONG], &stubborn);
    let pid = place.number("pid");
    running.signal(Signal::SIGTERM);
    until("TERM has come", || place.path("deaf").exists().then_some(()));
    assert!(lives(pid));
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end().0, 128 + 9);
    assert!(!lives(pid));

    let place = Place::new();
    let running = place.start(&["--stop-grace", "50ms"], &stubborn);
    let _pid = place.number("pid");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end().0, 128 + 9, "the grace is over by itself");
    assert!(place.run(&["--wait", "0"], "true").status.success(), "the lease is free");
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let place = Place::new();
    let mut command = std::process::Command::new("sh");
    let inner = place.ground.command(&words(&[], WAITS));
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(inner.get_program());
    command.args(inner.get_args()).current_dir(place.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running { child: command.spawn().expect("sh starts") };
    let pid = place.number("pid");
    running.signal(Signal::SIGHUP);
    place.go();
    assert_eq!(running.end().0, 0, "it ran to its own end: {pid}");
}

#[test]
fn a_signal_while_waiting_leaves_nothing_behind() {
    let place = Place::new();
    let first = place.start(&["--ttl", LONG], WAITS);
    let _pid = place.number("pid");
    let mut second = place.start(&[], "echo never > never");
    second.says("waiting");
    second.signal(Signal::SIGTERM);
    assert_eq!(second.end().0, 128 + 15);
    place.go();
    assert_eq!(first.end().0, 0);
    assert!(place.run(&["--wait", "0"], "true").status.success(), "nobody waits any more");
    assert!(!place.path("never").exists());
}

#[test]
fn kill_9_of_soloist_run_ends_the_whole_tree_and_frees_the_lease() {
    let place = Place::new();
    let mut running = place.start(&["--ttl", LONG], BEATS);
    let _pid = place.number("pid");
    running.signal(Signal::SIGKILL);
    assert_eq!(running.status().code(), None);
    let after = place.run(&["--wait", "20s"], "echo after");
    assert_eq!(after.stdout, b"after\n", "long before the lease would have run out");
    place.until_gone();
}

#[test]
fn kill_9_of_the_guard_ends_the_whole_tree_and_is_said() {
    let place = Place::new();
    let running = place.start(&["--ttl", LONG], BEATS);
    let _pid = place.number("pid");
    kill(running.guard(), Signal::SIGKILL).expect("its guard");
    let (code, said) = running.end();
    assert_eq!(code, 128 + 9, "{said}");
    assert!(said.contains("the guard of deploy was killed"), "{said}");
    place.until_gone();
    assert!(place.run(&["--wait", "0"], "true").status.success(), "the lease is free");
}

#[test]
fn a_frozen_soloist_run_loses_its_command_before_its_lease_and_says_so_later() {
    let redis = RedisServer::start(&[]);
    let place = Place::on(&redis.url());
    let running = place.start(&["--ttl", "2s"], BEATS);
    let _pid = place.number("pid");
    running.signal(Signal::SIGSTOP);
    let after = place.run(&["--wait", "20s"], "read -r up _ </proc/uptime; echo $up; cat beat");
    let text = String::from_utf8(after.stdout).expect("UTF-8");
    let times: Vec<f64> = text.lines().map(|line| line.parse().expect("a number")).collect();
    assert!(times[1] < times[0], "it lived at {} when the next began at {}", times[1], times[0]);
    place.until_gone();
    running.signal(Signal::SIGCONT);
    let (code, said) = running.end();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("the command was killed"), "{said}");
    assert!(place.last_beat() < times[0]);
}

#[test]
fn without_the_store_the_command_is_dead_before_the_lease_can_be_anothers() {
    let redis = RedisServer::start(&[]);
    let place = Place::on(&redis.url());
    let running = place.start(&["--ttl", "2s"], BEATS);
    let _pid = place.number("pid");
    redis.pause();
    // A renewal that the store had read already counts from its answer at the latest.
    let end_of_lease = uptime() + 2.0;
    let (code, said) = running.end();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("not renewed in time"), "{said}");
    place.until_gone();
    assert!(place.last_beat() < end_of_lease, "{} and {end_of_lease}", place.last_beat());
    redis.resume();
    assert!(place.run(&["--wait", "20s"], "true").status.success());
}

#[test]
fn a_store_that_is_away_is_waited_for_as_long_as_was_said() {
    let mut redis = RedisServer::start(&[]);
    let place = Place::on(&redis.url());
    redis.kill();
    for wait in ["0", "300ms"] {
        let refused = place.run(&["--wait", wait], "echo never");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(75), 0), "{said}");
        assert!(said.contains("the store is not reachable"), "{said}");
    }
    let mut waiting = place.start(&["--wait", LONG], "exit 5");
    waiting.says("the store is not reachable");
    redis.restart();
    assert_eq!(waiting.end().0, 5);
}
