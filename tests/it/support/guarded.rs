//! A script under a real guard, started as a node starts it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::clock::boot;
use soloist::domain::containment::Containment;
use soloist::domain::job::Exit;
use soloist::domain::lease::{Timing, Token};
use soloist::domain::name::{JobName, NodeName, Owner, RunId};
use soloist::domain::time::Boot;
use soloist::guard::choice::Choice;
use soloist::guard::containment::{self, Available};
use soloist::runner::child::{Cause, Child, ChildEvent, Spec, Streams, Work};
use soloist::runner::entrusted::Entrusted;
use soloist::runner::program::Program;
use soloist::store::journal::Stream;
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// Past this a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The program under test.
pub(crate) const SOLOIST: &str = env!("CARGO_BIN_EXE_soloist");
/// Stands in for the store's password.
pub(crate) const SECRET: &str = "s3cret-of-the-store";
/// A process that forked twice, left its session twice and closed its files; its number is in `daemon.pid`.
pub(crate) const DAEMON: &str = r#"
( setsid sh -c '( setsid sh -c "echo \$\$ > daemon.new; mv daemon.new daemon.pid; exec sleep 300" & )' <&- >&- 2>&- & )
until [ -s daemon.pid ]; do sleep 0.01; done
"#;

/// What this machine allows, tried once by the program under test.
pub(crate) fn available() -> &'static Available {
    static AVAILABLE: OnceLock<Available> = OnceLock::new();
    AVAILABLE.get_or_init(|| containment::available_to(Path::new(SOLOIST)))
}

/// Every level that this machine allows. Loud about the others: what they promise is not tested here.
pub(crate) fn levels() -> Vec<Containment> {
    let allowed = |level: &Containment| match available().why_not(*level) {
        None => true,
        Some(why) => {
            // Past what keeps back the output of a test that passes.
            writeln!(std::io::stderr(), "NOT TESTED HERE: containment by {level}: {why}").ok();
            false
        }
    };
    Containment::ALL.into_iter().filter(allowed).collect()
}

/// What a guard is told about containment: this level and no other.
pub(crate) fn contained_by(level: Containment) -> Choice {
    available().choose(Some(level)).expect("a level that this machine allows")
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    pub exit: Exit,
    pub processes_killed: u32,
    pub cause: Cause,
}

/// A script under a guard.
pub(crate) struct Guarded {
    pub directory: TempDir,
    pub run: RunId,
    pub child: Child,
    pub events: Receiver<ChildEvent>,
    /// What was heard so far, without the end.
    pub heard: Vec<ChildEvent>,
}

/// A spec that runs `script` with `sh` in `directory`.
pub(crate) fn spec(directory: &Path, script: &str) -> Spec {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let path = std::env::var_os("PATH").expect("a PATH");
    Spec {
        program: Program {
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            dir: directory.to_owned(),
            env: BTreeMap::from([("PATH".into(), path)]),
            stop_grace: Duration::from_millis(300),
            node: NodeName::new("node-a").expect("a name"),
            // No kind of store at all: a guard that is left alone gives up at once.
            store_url: format!("nowhere://:{SECRET}@127.0.0.1:1/0"),
            server: None,
            prefix: "soloist:".to_owned(),
            containment: contained_by(available().strongest()),
            entrusted: Entrusted::default(),
        },
        job: JobName::new("outbound").expect("a name"),
        run: RunId(run),
        token: Token(4_711),
        owner: Owner("owner".to_owned()),
        timing: Timing::from_ttl(Duration::from_secs(1)).expect("safe times"),
        streams: Streams::Read,
        work: Work::Run,
    }
}

/// In the far future, as the tests count.
pub(crate) fn much_later() -> Boot {
    boot() + PATIENCE * 2
}

impl Guarded {
    /// Starts `script` with a deadline far away.
    pub(crate) fn start(script: &str) -> Self {
        Self::start_until(much_later(), script)
    }

    /// Starts `script` on a level of containment.
    pub(crate) fn start_on(level: Containment, script: &str) -> Self {
        Self::start_spec(much_later(), script, |spec| {
            spec.program.containment = contained_by(level)
        })
    }

    /// Starts `script` with a deadline.
    pub(crate) fn start_until(deadline: Boot, script: &str) -> Self {
        Self::start_spec(deadline, script, |_| {})
    }

    /// Starts `script` after `change` has changed its spec.
    pub(crate) fn start_spec(deadline: Boot, script: &str, change: impl FnOnce(&mut Spec)) -> Self {
        let directory = TempDir::new().expect("a directory");
        let mut spec = spec(directory.path(), script);
        change(&mut spec);
        let run = spec.run.clone();
        let (child, events) =
            Child::spawn_with(Path::new(SOLOIST), spec, deadline).expect("a guard");
        Self { directory, run, child, events, heard: Vec::new() }
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> Option<ChildEvent> {
        timeout(PATIENCE, self.events.recv()).await.expect("an event in time")
    }

    /// Waits for a line on stdout.
    pub(crate) async fn until_line(&mut self, text: &str) {
        while !self.lines(Stream::Stdout).contains(&text.to_owned()) {
            let event = self.next().await.unwrap_or_else(|| panic!("{:?}", self.heard));
            assert!(!matches!(event, ChildEvent::Gone { .. }), "{:?} {event:?}", self.heard);
            self.heard.push(event);
        }
    }

    /// Waits for the end, and checks that it is one: nothing follows, nobody lives.
    pub(crate) async fn until_gone(&mut self) -> Gone {
        loop {
            match self.next().await.unwrap_or_else(|| panic!("no end: {:?}", self.heard)) {
                ChildEvent::Gone { exit, processes_killed, cause } => {
                    assert_eq!(alive(&self.run), [0; 0], "nobody lives after Gone");
                    assert!(self.events.try_recv().is_err(), "nothing follows the end");
                    return Gone { exit, processes_killed, cause };
                }
                event => self.heard.push(event),
            }
        }
    }

    /// The lines heard so far from a stream.
    pub(crate) fn lines(&self, stream: Stream) -> Vec<String> {
        self.heard
            .iter()
            .filter_map(|event| match event {
                ChildEvent::Line(line) if line.stream == stream => Some(line.text.clone()),
                _ => None,
            })
            .collect()
    }

    /// The script's first process, once it has started.
    pub(crate) fn pid(&self) -> i32 {
        let started = self.heard.iter().find_map(|event| match event {
            ChildEvent::Started { pid } => Some(*pid),
            _ => None,
        });
        i32::try_from(started.expect("it has started")).expect("a number")
    }

    /// The process whose number the script wrote to a file, by our numbers.
    pub(crate) fn pid_in(&self, file: &str) -> i32 {
        let number = number_in(&self.directory.path().join(file)).expect("a file with a number");
        outside(&self.run, number)
    }

    /// Signals the guard.
    pub(crate) fn signal_guard(&self, signal: Signal) {
        let pid = i32::try_from(self.child.guard_pid()).expect("a number");
        kill(Pid::from_raw(pid), signal).expect("our guard");
    }
}

/// The number in a file, when it is there.
pub(crate) fn number_in(file: &Path) -> Option<i32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Our number of the process that has `number` in the pid namespace of `run`; one that nobody has when it is dead.
pub(crate) fn outside(run: &RunId, number: i32) -> i32 {
    let namespace = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let inner = |pid: i32| -> Option<i32> {
        let status = fs::read(format!("/proc/{pid}/status")).ok()?;
        let status = String::from_utf8_lossy(&status).into_owned();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        numbers.split_whitespace().last()?.parse().ok()
    };
    let theirs = alive(run).into_iter().find_map(namespace);
    if theirs.is_some() && theirs == fs::read_link("/proc/self/ns/pid").ok() {
        return number;
    }
    let of_run = |pid: &i32| theirs.is_some() && namespace(*pid) == theirs;
    everybody().find(|pid| of_run(pid) && inner(*pid) == Some(number)).unwrap_or(i32::MAX)
}

fn everybody() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process runs: it has a state that is not dead, or threads beyond a dead first one.
pub(crate) fn runs(pid: i32) -> bool {
    let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { return false };
    let name_end = stat.iter().rposition(|&byte| byte == b')').expect("a name");
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !matches!(stat[name_end + 2], b'Z' | b'X') || threads > 1
}

/// Everybody who carries the mark of `run`.
pub(crate) fn alive(run: &RunId) -> Vec<i32> {
    let mark = format!("SOLOIST_RUN={run}");
    everybody()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|all| all.split(|&byte| byte == 0).any(|one| one == mark.as_bytes()))
        })
        .collect()
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = boot() + PATIENCE;
    while !condition() {
        assert!(boot() < end, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
