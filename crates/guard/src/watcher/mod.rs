//! The watcher: a guard for programs on this machine.
//!
//! A program connects to the socket file and says under which leases it works, and until when its work must end. The watcher kills it by
//! then. When the kernel reports its death, the node releases its leases. One process for each socket file, without a runtime, that
//! outlives its node: the next node takes it over.
//!
//! | file | what |
//! | --- | --- |
//! | `said` | the messages |
//! | `line` | one connection: bytes, lines, answers in order, and the peer |
//! | `program` | messages of programs, and the answers |
//! | `node` | questions to the node, and reports to it |
//! | `mod` | the loop: accepts, reads, kills in time, notices deaths |
//! | `file` | the socket file |
//!
//! `domain/lifeline.rs` decides what is armed and what a death releases. Only a pidfd proves a death. Nothing here waits for a program or
//! for the node.

mod file;
mod line;
mod node;
mod program;
pub mod said;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::file::{Place, SocketFile};
use self::line::{Connection, Role, Slot};
use self::said::Watched;
use super::kernel;
use super::message::LARGEST_ORDER;
use super::socket::{self, receive};
use super::title::Title;
use super::watch::NotStarted;
use soloist_domain::lifeline::Process;
use soloist_domain::time::Boot;
use soloist_process::clock;

pub use self::file::{GROUP, alone, connect};

/// Marks the process among those that this program starts.
pub const WATCHER: &str = "watcher";

/// A program takes an answer that comes later for none, after 1 s.
const NODE_PATIENCE: Duration = Duration::from_millis(700);
/// So long a connection may say nothing before it says who it is.
const FIRST_LINE: Duration = Duration::from_secs(5);
/// How often the socket file is looked for, and what the node did not know is asked again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Without a node and a program, the watcher ends.
const IDLE_FOR: Duration = Duration::from_secs(10);
/// A death is kept for a node so long beyond the instant by which the work had to be over.
const DEATHS_KEPT: Duration = Duration::from_secs(60);
/// When the kernel could not wait.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const NO_NODE: &str = "no node is here now";
/// Who connects is heard so many at a time: nothing comes before a kill.
const ACCEPTED_AT_ONCE: usize = 32;
/// Most deaths that are kept.
const MOST_DEATHS: usize = 50_000;
/// Most connections. Who has not said who it is goes first.
const MOST_LINES: usize = 4_096;
/// Most connections of one process.
const MOST_OF_ONE: usize = 16;

/// The arguments of a watcher.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Watching {
    /// The socket file.
    pub path: PathBuf,
    /// Do as on a kernel before 6.5 (tests).
    pub old_kernel: bool,
}

/// Runs as a watcher until nobody needs it.
pub(super) fn run() -> Result<(), NotStarted> {
    let socket::Heard::Message(Watching { path, old_kernel }) = receive::<Watching>(LARGEST_ORDER)
    else {
        return Err(NotStarted::NoNode);
    };
    let made = SocketFile::make(path);
    let said = made.as_ref().map(|_| ()).map_err(Clone::clone);
    let text = serde_json::to_vec(&said).map_err(|_| Errno::EINVAL)?;
    let stdin = std::io::stdin();
    send(stdin.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL)?;
    let Ok(file) = made else { return Ok(()) };
    if let Some(title) = Title::find() {
        title.say(&format!("soloist watcher of {}", file.path.display()));
    }
    nix::unistd::setsid().ok();
    super::descriptors::raise().ok();
    kernel::let_go_of_input()?;
    kernel::let_go_of_output()?;
    let mut term = SigSet::empty();
    term.add(Signal::SIGTERM);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&term, flags)?;
    let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?;
    let now = clock::boot();
    let mut watcher = Watcher {
        file,
        old_kernel,
        lines: BTreeMap::new(),
        programs: BTreeMap::new(),
        node: None,
        questions: BTreeMap::new(),
        dead: BTreeMap::new(),
        gone: HashMap::new(),
        next: 1,
        told: None,
        changed: true,
        tell_at: now,
        look_at: now + LOOK_EVERY,
        full: false,
        lost: false,
        needed: now,
    };
    watcher.watch(&signals, &timer);
    watcher.file.remove();
    Ok(())
}

struct Watcher {
    file: SocketFile,
    old_kernel: bool,
    lines: BTreeMap<u64, Connection>,
    /// By their process ids, for as long as the kernel has not said that they are dead.
    programs: BTreeMap<i32, Program>,
    /// Whose line is the node's.
    node: Option<u64>,
    /// What the node was asked.
    questions: BTreeMap<u64, Question>,
    /// Deaths that no node has taken yet.
    dead: BTreeMap<u64, Death>,
    /// Secrets of dead processes: no other process is watched under them.
    gone: HashMap<String, Boot>,
    next: u64,
    /// What the node was told last.
    told: Option<Watched>,
    /// What is watched may have changed since, and when the node may be told.
    changed: bool,
    tell_at: Boot,
    look_at: Boot,
    /// No descriptor was left for who connects.
    full: bool,
    /// Another watcher listens at the socket file.
    lost: bool,
    /// When somebody needed this process for the last time.
    needed: Boot,
}

/// A process that is watched.
struct Program {
    process: OwnedFd,
    /// Why it is not killed; `None`: it is.
    spared: Option<String>,
    work: Process,
    killed: Option<Boot>,
}

struct Question {
    asked: Boot,
    /// Which connection waits for the answer.
    line: u64,
    about: About,
}

enum About {
    Token,
    Holds { pid: i32, name: String, secret: String },
}

struct Death {
    name: String,
    secret: String,
    pid: i32,
    killed: bool,
    keep_until: Boot,
    /// When it is reported to the node; `None`: it was, and the node has not answered.
    tell_at: Option<Boot>,
}

impl Watcher {
    fn watch(&mut self, signals: &SignalFd, timer: &TimerFd) {
        loop {
            let now = clock::boot();
            // Nothing comes before this.
            self.kill_in_time(now);
            self.be_in_time(now);
            if self.lost || now >= self.needed + IDLE_FOR {
                return;
            }
            self.arm(timer, now);
            let (heard, ended, accepts, terminated) = self.wait(signals, timer);
            if terminated {
                return;
            }
            for pid in ended {
                self.bury(pid);
            }
            if accepts {
                self.accept();
            }
            for line in heard {
                self.hear(line);
            }
            self.speak();
        }
    }

    /// Waits until there is something to do: lines that can be read or written, processes that ended, whether somebody
    /// connects, and whether this process is to end.
    fn wait(&self, signals: &SignalFd, timer: &TimerFd) -> (Vec<u64>, Vec<i32>, bool, bool) {
        let mut fds = vec![
            PollFd::new(timer.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.file.listener.as_fd(), self.accepts()),
        ];
        let first = fds.len();
        fds.extend(
            self.programs.values().map(|one| PollFd::new(one.process.as_fd(), PollFlags::POLLIN)),
        );
        // One that only waits for the node's answer would be said to be closed again and again.
        let lines = self.lines.iter().filter(|(_, line)| !line.wants().is_empty());
        let lines: Vec<_> = lines.collect();
        fds.extend(lines.iter().map(|(_, line)| PollFd::new(line.socket.as_fd(), line.wants())));
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            // Interrupted, or the kernel has no memory: kills are still in time.
            std::thread::sleep(LOOK_AGAIN);
            return (Vec::new(), Vec::new(), false, false);
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or_default()).collect();
        let (programs, ready_lines) = ready[first..].split_at(self.programs.len());
        let ended = self.programs.keys().zip(programs).filter(|(_, ready)| **ready);
        let heard = lines.iter().zip(ready_lines).filter(|(_, ready)| **ready);
        let (ended, heard) = (ended.map(|(pid, _)| *pid), heard.map(|((line, _), _)| **line));
        (heard.collect(), ended.collect(), ready[2], ready[1])
    }

    /// Kills whose work is not over by the instant that was said.
    fn kill_in_time(&mut self, now: Boot) {
        for program in self.programs.values_mut() {
            let due = program.work.kill_at().is_some_and(|at| at <= now);
            if !due || program.killed.is_some() || program.spared.is_some() {
                continue;
            }
            match kernel::signal_pidfd(&program.process, Signal::SIGKILL) {
                // Dead already: the kernel says so in a moment.
                Ok(()) | Err(Errno::ESRCH) => program.killed = Some(now),
                Err(error) => program.spared = Some(format!("it cannot be killed: {error}")),
            }
        }
    }

    /// What must not be waited for any longer.
    fn be_in_time(&mut self, now: Boot) {
        let overdue = |question: &Question| question.asked + NODE_PATIENCE <= now;
        let late: Vec<u64> = self
            .questions
            .iter()
            .filter(|(id, question)| overdue(question) && self.is_waited_for(**id, question.line))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.answer(id, None, Some("the node does not answer".to_owned()), true);
        }
        let old = self.lines.iter().filter(|(_, line)| line.since + FIRST_LINE <= now);
        let old = old.filter(|(_, line)| line.closing || matches!(line.role, Role::New));
        let old: Vec<(u64, bool)> = old.map(|(id, line)| (*id, line.closing)).collect();
        for (id, closing) in old {
            match closing {
                // A peer that does not read keeps nothing open.
                true => self.close(id),
                false => self.refuse(id, "nothing was said for 5 s: say {\"auth\":TOKEN} first"),
            }
        }
        if self.node.is_some() || !self.programs.is_empty() || !self.dead.is_empty() {
            self.needed = now;
        }
        if now >= self.look_at {
            (self.look_at, self.full) = (now + LOOK_EVERY, false);
            if self.file.look() == Place::Another {
                // Who is watched there connects there.
                self.lost = true;
            }
            self.dead.retain(|_, death| now < death.keep_until);
            self.gone.retain(|_, until| now < *until);
            self.questions.retain(|_, question| now < question.asked + DEATHS_KEPT);
            self.ask_again();
        }
        if self.changed && now >= self.tell_at {
            self.tell_what_is_watched(now);
        }
        self.tell_of_deaths(now);
        self.speak();
    }

    fn arm(&self, timer: &TimerFd, now: Boot) {
        let kills =
            self.programs.values().filter(|one| one.killed.is_none() && one.spared.is_none());
        let kills = kills.filter_map(|one| one.work.kill_at());
        let answers = self
            .questions
            .iter()
            .filter(|(id, question)| self.is_waited_for(**id, question.line))
            .map(|(_, question)| question.asked + NODE_PATIENCE);
        let tells = self.changed.then_some(self.tell_at);
        let next = kills
            .chain(answers)
            .chain(tells)
            .chain(self.next_death())
            .chain([self.look_at])
            .min()
            .unwrap_or(self.look_at);
        // The instant 0 would disarm it.
        let next = next.max(now + Duration::from_micros(1));
        let at = TimeSpec::from_duration(Duration::from_nanos(next.0));
        timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok();
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let line = match Connection::accept(&self.file.listener, self.old_kernel) {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(_) => {
                    // No descriptor is left: who connects is heard when others have gone.
                    self.full = true;
                    return;
                }
            };
            if self.lines.len() >= MOST_LINES {
                let stranger = self.lines.iter().find(|(_, line)| matches!(line.role, Role::New));
                let Some((id, _)) = stranger.map(|(id, line)| (*id, line)) else { continue };
                self.lines.remove(&id);
            }
            let own = self.lines.iter().filter(|(_, other)| other.pid == line.pid);
            let own: Vec<u64> = own.map(|(id, _)| *id).collect();
            if own.len() >= MOST_OF_ONE && Some(own[0]) != self.node {
                self.close(own[0]);
            }
            let id = self.number();
            self.lines.insert(id, line);
        }
    }

    fn accepts(&self) -> PollFlags {
        if self.full { PollFlags::empty() } else { PollFlags::POLLIN }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn say(&mut self, id: u64, answer: Value) {
        if let Some(line) = self.lines.get_mut(&id) {
            line.answers.push_back(Slot::Said(with_now(answer)));
        }
    }

    /// Says why, and ends the connection.
    fn refuse(&mut self, id: u64, why: &str) {
        self.say(id, json!({"ok": false, "detail": why}));
        self.refused(id);
    }

    fn refused(&mut self, id: u64) {
        if let Some(line) = self.lines.get_mut(&id).filter(|line| !line.closing) {
            (line.closing, line.since) = (true, clock::boot());
        }
    }

    /// The kernel says that the process is dead.
    fn bury(&mut self, pid: i32) {
        let Some(program) = self.programs.remove(&pid) else { return };
        self.changed = true;
        for (name, work) in program.work.all().filter(|(_, work)| work.release) {
            if self.dead.len() >= MOST_DEATHS
                || (!work.checked && self.dead.len() >= MOST_DEATHS / 2)
            {
                continue;
            }
            self.gone.insert(work.secret.clone(), clock::boot() + DEATHS_KEPT);
            let number = self.number();
            let death = Death {
                name: name.to_owned(),
                secret: work.secret.clone(),
                pid,
                killed: program.killed.is_some_and(|at| work.kill_at() <= at),
                // Nobody knows whether what no node has checked was ever a lease.
                keep_until: match work.checked {
                    true => work.until + DEATHS_KEPT,
                    false => clock::boot() + DEATHS_KEPT * 10,
                },
                tell_at: Some(clock::boot()),
            };
            self.dead.insert(number, death);
        }
    }

    fn close(&mut self, id: u64) {
        let Some(line) = self.lines.remove(&id) else { return };
        if self.node == Some(id) {
            self.node = None;
            let asked: Vec<u64> = self.questions.keys().copied().collect();
            for number in asked {
                self.answer(number, None, Some(NO_NODE.to_owned()), false);
            }
        }
        let pid = line.pid;
        let idle = self.programs.get(&pid).is_some_and(|program| program.work.is_idle());
        if idle && !self.lines.values().any(|line| line.pid == pid) {
            self.programs.remove(&pid);
            self.changed = true;
        }
    }

    /// Writes what is to be written.
    fn speak(&mut self) {
        let over = |line: &mut Connection| line.write().is_err() || line.is_over();
        let over: Vec<u64> =
            self.lines.iter_mut().filter_map(|(id, line)| over(line).then_some(*id)).collect();
        for id in over {
            self.close(id);
        }
    }
}

/// Every answer has the watcher's clock.
fn with_now(mut answer: Value) -> String {
    answer["now_ns"] = clock::boot().0.into();
    answer.to_string()
}
