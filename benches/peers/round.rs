//! One round: two holders of one lock, something happens to the first, and the records say what came of it.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::clock;
use soloist::domain::time::Boot;
use tempfile::TempDir;

use super::TTL;
use super::link::Link;
use super::lives::{Beat, beats};
use super::support::guarded::runs;
use super::support::wait::until;
use super::systems::{Place, System};

/// How long the second holder gets to ask for the lock before anything happens; no peer says that it waits.
const SETTLE: Duration = Duration::from_millis(1_500);
/// How long a take-over may take before it counts as none.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long both children are watched after the second one started and the first holder is back.
const WATCH: Duration = Duration::from_secs(2);

/// What happens to the first holder (to that process alone).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Kill,
    Terminate,
    /// SIGSTOP for two leases, then SIGCONT.
    Pause,
    /// Its connections to the store fall silent.
    CutOff,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// From the act to the first sign of life of the second child.
    pub takeover: Option<Duration>,
    /// How long both children lived at once, as far as they were watched.
    pub overlap: Duration,
    /// Whether the first child still lived at the end of the watch.
    pub survives: bool,
}

/// Two holders; the first one's child runs.
pub(crate) struct Round {
    directory: TempDir,
    near: Link,
    holders: Vec<Child>,
    // Dropped last: the store of this round.
    _place: Place,
}

impl Round {
    /// A fresh store, a fresh lock, two holders.
    pub(crate) fn begin(system: &System) -> Self {
        let directory = TempDir::new().expect("a directory");
        let place = (system.place)(&directory);
        let near = Link::to(place.port);
        let mut round = Self { directory, near, holders: Vec::new(), _place: place };
        round.start(system, "first", round.near.port);
        until("the first child lives", || round.beats_of("first").first().map(|_| ()));
        let port = round._place.port;
        round.start(system, "second", port);
        std::thread::sleep(SETTLE);
        assert!(round.beats_of("second").is_empty(), "only one child runs");
        round
    }

    fn start(&mut self, system: &System, holder: &str, port: u16) {
        let mut command = (system.holder)(&self.directory, &self.log(), holder, port);
        let log = std::fs::File::create(self.directory.path().join(format!("{holder}.log")));
        let log = log.expect("a log");
        command.env("HOLDER", holder).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        self.holders.push(command.spawn().expect("the holder starts"));
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("beats")
    }

    fn beats_of(&self, holder: &str) -> Vec<Beat> {
        beats(&self.log()).into_iter().filter(|beat| beat.holder == holder).collect()
    }

    /// Does it to the first holder and watches.
    pub(crate) fn carry_out(self, act: Act) -> Outcome {
        let first = pid(&self.holders[0]);
        let before = clock::boot();
        let send = |signal| kill(first, signal).expect("our own child");
        match act {
            Act::Kill => send(Signal::SIGKILL),
            Act::Terminate => send(Signal::SIGTERM),
            Act::Pause => {
                send(Signal::SIGSTOP);
                std::thread::sleep(TTL * 2);
                send(Signal::SIGCONT);
            }
            Act::CutOff => self.near.cut(),
        }
        let mut took_over: Option<Boot> = None;
        while took_over.is_none() && clock::boot().since(before) < PATIENCE {
            took_over = self.beats_of("second").first().map(|beat| beat.at);
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(WATCH);
        let last = self.beats_of("first").last().cloned().expect("the first child lived");
        Outcome {
            takeover: took_over.map(|at| at.since(before)),
            overlap: took_over.map(|at| last.at.since(at)).unwrap_or_default(),
            survives: runs(last.pid),
        }
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process id"))
}

impl Drop for Round {
    /// Nothing of a round is left: holders first, then whatever children wrote their numbers.
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // It may have ended by itself.
            holder.kill().ok();
            holder.wait().ok();
        }
        let mut pids: Vec<i32> = beats(&self.log()).iter().map(|beat| beat.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            let own = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
            if own.is_ok_and(|line| line.contains(super::lives::WORD)) {
                kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
            }
        }
    }
}
