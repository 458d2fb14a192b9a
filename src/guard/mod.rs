//! The guard: the small process between node and script that kills the script in time when the node cannot.
//!
//! It is this same binary, re-executed and recognised at the very top of `main`, before any other thread or runtime
//! exists. It has a session of its own, blocks every signal, is the subreaper of everything the script leaves behind,
//! and keeps a deadline of its own on CLOCK_BOOTTIME that only the node's successful renewals move. It decides
//! nothing about jobs: it starts one command, kills it when told, when the deadline comes or when the node is gone,
//! and proves the death of the whole tree (`ECHILD` from `waitpid`) before anybody gives the lease back.
//!
//! A node that runs jobs keeps a few guards warm (`nursery`): copies of a small process that have come as far as anybody
//! can without a plan. Whoever starts one script and ends is guarded by a process of its own.
//!
//! How the tree is held together is one of three levels, `containment` says which: what each of them survives when
//! guard and node are killed at once stands in ADR 0007. A weaker level than the planned one is never used silently.

mod begin;
pub(crate) mod cgroup;
pub mod containment;
mod init;
pub(crate) mod kernel;
pub mod message;
mod nursery;
mod release;
mod title;
pub(crate) mod tree;

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{MsgFlags, SockType, getsockopt, recv, send, sockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock;
use crate::domain::job::Exit;
use crate::domain::time::Boot;
use crate::sabotage::{self, Bug, planted};
use begin::{Begun, begin};
use init::Init;
use message::{Cause, FromGuard, LARGEST, LARGEST_ORDER, Plan, Start, ToGuard};
use release::{Agent, Lost};
use tree::{Reaped, Tree};

/// The first argument that makes this binary a guard. Useless without the node's socket as standard input.
pub const WORD: &str = "__guard";
pub use nursery::WORD as NURSERY;
/// What has no run lets those that have one go first when their node died: the cores are theirs.
const AFTER_THE_OTHERS: Duration = Duration::from_millis(100);
/// How soon to look again when the kernel cannot wait for us.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Why a guard never came to start anything.
#[derive(Debug, thiserror::Error)]
enum NotStarted {
    #[error(
        "this command is started by a node, never by hand (its standard input is not a node's socket): use `soloist run --name NAME -- CMD` to run a command under a lease"
    )]
    ByHand,
    #[error("the node was gone before it said what to run")]
    NoNode,
    #[error("the guard could not be set up: {0}")]
    Kernel(#[from] Errno),
}

/// Runs as a guard if this process was started as one; `None` otherwise. Call it first in `main`.
#[must_use]
pub fn entry() -> Option<i32> {
    if std::env::args_os().nth(1).is_none_or(|word| word != WORD) {
        return None;
    }
    let what = std::env::args_os().nth(2).unwrap_or_default();
    if what == containment::PROBE {
        return Some(try_containment());
    }
    let ended = enter().and_then(|()| match what == nursery::WORD {
        true => nursery::nurse(),
        false => guard(None, None, |_| {}),
    });
    match ended {
        Ok(()) => Some(0),
        Err(error) => {
            eprintln!("soloist: {error}");
            Some(2)
        }
    }
}

/// Prints what works here; see [`containment::available`].
fn try_containment() -> i32 {
    kernel::close_inherited().ok();
    match serde_json::to_string(&containment::try_everything()) {
        Ok(text) => {
            println!("{text}");
            0
        }
        Err(_) => 2,
    }
}

/// The first steps of every process that a node starts by this program.
fn enter() -> Result<(), NotStarted> {
    // Before signals are blocked: whoever typed this by hand must be able to interrupt it.
    if !matches!(getsockopt(&std::io::stdin(), sockopt::SockType), Ok(SockType::SeqPacket)) {
        return Err(NotStarted::ByHand);
    }
    // Before Linux 5.9 there is no such call; then they stay, as they would with any other supervisor.
    kernel::close_inherited().ok();
    SigSet::all().thread_block()?;
    kernel::reset_signals()?;
    Ok(())
}

/// Waits for its plan and guards it to the end. A warm guard has an init `ready`; `agent` gives leases back for it, and
/// `introduce` is called once its script runs.
fn guard(
    ready: Option<Init>,
    agent: Option<&Agent>,
    introduce: impl FnOnce(&Plan),
) -> Result<(), NotStarted> {
    let Heard::Message(Start { plan, deadline }) = receive::<Start>(LARGEST) else {
        // A guard with a run has something to do now that another node waits for.
        std::thread::sleep(agent.map_or(Duration::ZERO, |_| AFTER_THE_OTHERS));
        ready.iter().for_each(Init::end);
        return Err(NotStarted::NoNode);
    };
    let deadline = sabotage::deadline(deadline, clock::boot());
    // A guard that leads a group already is told EPERM and keeps its session; its script gets one of its own anyway.
    nix::unistd::setsid().ok();
    nix::sys::prctl::set_child_subreaper(true)?;
    let signals =
        SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let timer =
        TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
    let Begun { script, held, containment, weaker_because } = match begin(&plan, deadline, ready) {
        Ok(begun) => begun,
        Err(error) => {
            let end = Lost::of(&plan, Exit::default(), 0, deadline);
            hand_over(&plan, &FromGuard::Failed { error }, &end, agent);
            return Ok(());
        }
    };
    // From here on nothing may end this process but the proof that the tree is gone: no `?` below.
    if let Err(error) = kernel::let_go_of_output() {
        eprintln!("soloist: guard: the end of the output will be seen late: {error}");
    }
    let pid = script.as_raw().unsigned_abs();
    say(&FromGuard::Started { pid, containment, weaker_because });
    introduce(&plan);
    let mut watch = Watch {
        deadline,
        term_at: deadline - plan.term_before_deadline,
        kill_at: None,
        cause: None,
        exit: None,
        node_is_gone: false,
        tree: Tree::new(script, held),
    };
    watch.until_all_are_gone(&signals, &timer);
    watch.tree.clear_away();
    let exit = watch.exit.unwrap_or_default();
    let processes_killed = watch.tree.killed_besides_the_first();
    let cause = watch.cause.unwrap_or(Cause::Itself);
    let last = FromGuard::Gone { exit, processes_killed, cause };
    let end = Lost::of(&plan, exit, processes_killed, watch.deadline);
    hand_over(&plan, &last, &end, agent);
    Ok(())
}

/// Says the last word. The node records the end and dismisses the guard; if it dies before, or is dead already, the
/// guard releases the lease. A node that is paused is waited for: it may hold other leases, and this one runs out.
fn hand_over(plan: &Plan, last: &FromGuard, end: &Lost, agent: Option<&Agent>) {
    say(last);
    loop {
        match receive(LARGEST_ORDER) {
            Heard::Message(ToGuard::Dismissed) => return,
            Heard::Message(_) => {}
            Heard::NodeGone => break,
        }
    }
    // First what another node waits for.
    if !agent.is_some_and(|agent| agent.give_back(end)) {
        end.give_back();
    }
    // Nothing is left of it to be swept at the next start.
    std::fs::remove_file(&plan.note).ok();
    plan.note.parent().map(std::fs::remove_dir).and_then(Result::ok);
}

struct Watch {
    deadline: Boot,
    term_at: Boot,
    kill_at: Option<Boot>,
    cause: Option<Cause>,
    exit: Option<Exit>,
    node_is_gone: bool,
    tree: Tree,
}

impl Watch {
    /// Returns only with the proof, whatever fails meanwhile.
    fn until_all_are_gone(&mut self, signals: &SignalFd, timer: &TimerFd) {
        while !self.reap() {
            let now = clock::boot();
            let killing = self.decide(now);
            if killing {
                self.tree.kill();
            }
            let kill_at = self.kill_at.map(|at| at.min(self.deadline));
            let wake = if killing {
                now + self.tree.look_again()
            } else {
                kill_at.unwrap_or(self.term_at)
            };
            // Without a timer the clock is looked at all the time.
            let limit =
                if set(timer, wake).is_ok() { PollTimeout::NONE } else { PollTimeout::from(2u8) };
            let stdin = std::io::stdin();
            let mut fds = vec![
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(timer.as_fd(), PollFlags::POLLIN),
            ];
            // A socket nobody holds is always "ready"; it is left out once that is known.
            if !self.node_is_gone {
                fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
            }
            fds.extend(self.tree.line().map(|line| PollFd::new(line, PollFlags::POLLIN)));
            if let Err(error) = poll(&mut fds, limit)
                && error != Errno::EINTR
            {
                std::thread::sleep(LOOK_AGAIN);
            }
            while matches!(signals.read_signal(), Ok(Some(_))) {}
            let node_speaks = fds[2..].first().is_some_and(|node| {
                !self.node_is_gone && node.revents().is_none_or(|events| !events.is_empty())
            });
            drop(fds);
            if node_speaks {
                self.listen();
            }
        }
    }

    /// What the clock says: TERM when it is time, and whether it is time for KILL.
    fn decide(&mut self, now: Boot) -> bool {
        if self.kill_at.is_none() {
            if self.exit.is_some() {
                // What the script left behind has no claim to a grace.
                self.kill_at = Some(now);
            } else if now >= self.term_at.min(self.deadline) && !planted(Bug::NoDeadline) {
                self.cause = Some(Cause::Deadline);
                if now < self.deadline {
                    self.tree.terminate();
                }
                self.kill_at = Some(self.deadline);
            }
        }
        self.kill_at.is_some_and(|at| now >= at.min(self.deadline))
    }

    fn listen(&mut self) {
        match receive(LARGEST_ORDER) {
            Heard::Message(ToGuard::Deadline { seq, deadline, term_before }) => {
                let deadline = sabotage::deadline(deadline, clock::boot());
                // Never backwards: a late message of an earlier renewal must not shorten, nor a wrong one.
                if deadline > self.deadline {
                    self.deadline = deadline;
                    self.term_at = deadline - term_before;
                }
                say(&FromGuard::Ack { seq });
            }
            Heard::Message(ToGuard::Stop { grace }) => {
                self.cause.get_or_insert(Cause::Stopped);
                let at = clock::boot() + grace;
                if self.kill_at.is_none() {
                    self.tree.terminate();
                }
                // A second stop can only hurry.
                self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
            }
            Heard::Message(ToGuard::Kill) => {
                self.cause.get_or_insert(Cause::Kill);
                self.kill_at = Some(clock::boot());
            }
            Heard::Message(ToGuard::Dismissed) => {}
            Heard::NodeGone => {
                // The node died, however it died: the script dies now, so that another node can start now.
                self.node_is_gone = true;
                if !planted(Bug::NodeDeathUnseen) {
                    self.kill_at = Some(clock::boot());
                }
            }
        }
    }

    /// Reaps whatever ended; true when no child is left, which is the proof.
    fn reap(&mut self) -> bool {
        loop {
            match self.tree.reap() {
                Reaped::First(exit) => self.exit = Some(exit),
                Reaped::Other => {}
                Reaped::NothingYet => return false,
                Reaped::NobodyLeft => return true,
            }
        }
    }
}

fn set(timer: &TimerFd, at: Boot) -> Result<(), Errno> {
    let at = TimeSpec::from(Duration::from_nanos(at.0.max(1)));
    timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
}

enum Heard<T> {
    Message(T),
    /// The end of the socket, or something on it that no node of this version says: either way nobody who could be
    /// trusted with the script is there.
    NodeGone,
}

/// Receives one message; waits for it.
fn receive<T: serde::de::DeserializeOwned>(largest: usize) -> Heard<T> {
    let mut buffer = vec![0; largest];
    loop {
        match recv(std::io::stdin().as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => {
                return serde_json::from_slice(&buffer[..length])
                    .map_or(Heard::NodeGone, Heard::Message);
            }
            Err(Errno::EINTR) => {}
            Err(_) => return Heard::NodeGone,
        }
    }
}

/// Sends one message. A node that is gone or does not read is noticed by other means.
fn say(message: &FromGuard) {
    let Ok(bytes) = serde_json::to_vec(message) else { return };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    send(std::io::stdin().as_raw_fd(), &bytes, flags).ok();
}
