//! The script of every job here: this very program, started again by a guard, writing down each of its acts.
//!
//! It needs no shell and no other program, reads CLOCK_BOOTTIME in nanoseconds, and misbehaves as it is told. Every
//! process of a tree holds a shared lock on one file of the job while it lives, and the kernel takes it away at its
//! death: a run that cannot have the lock alone at its start has found a living process of another run.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use soloist::clock::boot;

use crate::acts::Word;

/// The first argument that makes this program a script.
pub(crate) const WORD: &str = "witness";

/// How a script behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Ends at TERM.
    Plain,
    /// Ignores TERM, and has a grandchild that left its session twice and blocks every signal.
    Stubborn,
    /// A thousand lines of output within a millisecond, again and again.
    Chatty,
    /// Ends by itself after a moment; runs again and again.
    Short,
    /// The same after some seconds.
    Long,
    /// A grandchild that forks its successor and ends, for ever.
    Comet,
    /// Forks until it is stopped; up to sixty live at a time.
    Forker,
}

impl Mode {
    pub(crate) const ALL: [Self; 7] = [
        Self::Plain,
        Self::Stubborn,
        Self::Chatty,
        Self::Short,
        Self::Long,
        Self::Comet,
        Self::Forker,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Stubborn => "stubborn",
            Self::Chatty => "chatty",
            Self::Short => "short",
            Self::Long => "long",
            Self::Comet => "comet",
            Self::Forker => "forker",
        }
    }
}

/// One process of a script.
struct Witness {
    directory: PathBuf,
    job: String,
    prefix: String,
    file: File,
    lock: File,
}

/// Acts as a script if this process was started as one; never returns then.
pub(crate) fn entry() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, directory, job, role] = arguments.as_slice() else { return };
    if word != WORD {
        return;
    }
    let witness = Witness::open(Path::new(directory), job);
    match role.as_str() {
        "daemon-maker" | "successor-maker" => {
            nix::unistd::setsid().ok();
            witness.spawn(role.trim_end_matches("-maker"));
        }
        "daemon" => witness.daemon(),
        "successor" => witness.successor(),
        "fork" => witness.fork(),
        role => {
            let mode = Mode::ALL.into_iter().find(|mode| mode.as_str() == role);
            witness.script(mode.expect("a known mode"));
        }
    }
    std::process::exit(0);
}

impl Witness {
    fn open(directory: &Path, job: &str) -> Self {
        let variable =
            |name| std::env::var_os(name).and_then(|v| v.into_string().ok()).unwrap_or_default();
        let append = |ending: &str| {
            let file = directory.join(format!("{job}.{ending}"));
            OpenOptions::new().create(true).append(true).open(file).expect("the records")
        };
        Self {
            directory: directory.to_owned(),
            job: job.to_owned(),
            prefix: format!(
                "{} {} {}",
                variable("SOLOIST_TOKEN"),
                variable("SOLOIST_NODE"),
                std::process::id()
            ),
            file: append("acts"),
            lock: append("lives"),
        }
    }

    fn say(&self, word: Word) {
        // One write: a line is whole or not there, and its place in the file is its place in time.
        let line = format!("{} {} {}\n", self.prefix, boot().0, word.as_str());
        (&self.file).write_all(line.as_bytes()).expect("the record is written");
    }

    fn live(&self) {
        self.lock.lock_shared().expect("the lock is shared");
    }

    fn spawn(&self, role: &str) {
        let exe = std::env::current_exe().expect("this program");
        Command::new(exe)
            .args([Path::new(WORD), &self.directory, Path::new(&self.job), Path::new(role)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_or_else(|error| eprintln!("no further process: {error}"), drop);
    }

    fn script(&self, mode: Mode) {
        if self.lock.try_lock().is_err() {
            self.say(Word::Overlap);
        }
        self.live();
        let term = SigSet::from_iter([Signal::SIGTERM]);
        term.thread_block().expect("TERM is blocked");
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let signals = SignalFd::with_flags(&term, flags).expect("a signalfd");
        self.say(Word::Start);
        match mode {
            Mode::Stubborn => self.spawn("daemon-maker"),
            Mode::Comet => self.spawn("successor-maker"),
            _ => {}
        }
        let mut out = std::io::stdout().lock();
        let mut beats = 0_u64;
        loop {
            beats += 1;
            let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::from(2_u8)).ok();
            if matches!(signals.read_signal(), Ok(Some(_))) {
                if mode == Mode::Stubborn {
                    self.say(Word::Ignored);
                } else {
                    self.say(Word::End);
                    return;
                }
            }
            self.say(Word::Beat);
            let enough = match mode {
                Mode::Short => 150,
                Mode::Long => 1_000,
                _ => u64::MAX,
            };
            if beats >= enough {
                self.say(Word::End);
                return;
            }
            if mode == Mode::Forker && living_children() < 60 {
                self.spawn("fork");
            }
            let output = match mode {
                Mode::Chatty if beats.is_multiple_of(100) => {
                    (0..1_000).map(|n| format!("beat {beats} line {n}\n")).collect()
                }
                _ if beats.is_multiple_of(100) => format!("::progress {beats}/100000 acting\n"),
                _ => continue,
            };
            // A node that reads slowly holds the script back; one that is gone ends it some other way.
            out.write_all(output.as_bytes()).ok();
            out.flush().ok();
        }
    }

    /// Deaf to everything but KILL, in a session that nobody else is in.
    fn daemon(&self) {
        self.live();
        SigSet::all().thread_block().expect("signals are blocked");
        nix::unistd::setsid().ok();
        loop {
            self.say(Word::Beat);
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
    }

    fn successor(&self) {
        self.live();
        nix::unistd::setsid().ok();
        self.say(Word::Beat);
        self.spawn("successor");
    }

    fn fork(&self) {
        self.live();
        nix::unistd::setsid().ok();
        self.say(Word::Beat);
        std::thread::sleep(std::time::Duration::from_millis(400));
    }
}

/// Children of this process, dead ones collected first.
fn living_children() -> usize {
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    let any = nix::unistd::Pid::from_raw(-1);
    while let Ok(status) = waitpid(any, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            break;
        }
    }
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    children.split_whitespace().count()
}
