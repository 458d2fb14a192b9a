//! The guard: the small process between node and script that kills the script in time when the node cannot.
//!
//! It is this same binary, re-executed and recognised at the very top of `main`, before any other thread or runtime
//! exists. It has a session of its own, blocks every signal, is the subreaper of everything the script leaves behind,
//! and keeps a deadline of its own on CLOCK_BOOTTIME that only the node's successful renewals move. It decides
//! nothing about jobs: it starts one command, kills it when told, when the deadline comes or when the node is gone,
//! and proves the death of the whole tree (`ECHILD` from `waitpid`) before anybody gives the lease back.

mod kernel;
pub mod message;
mod release;
mod tree;

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::Pid;

use crate::clock;
use crate::domain::job::Exit;
use crate::domain::time::Boot;
use message::{Cause, FromGuard, LARGEST, Start, ToGuard};
use tree::Tree;

/// The first argument that makes this binary a guard. Useless without the node's socket as standard input.
pub const WORD: &str = "__guard";
/// How soon to look again while processes are being killed: a forker may have made new ones.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Runs as a guard if this process was started as one; `None` otherwise. Call it first in `main`.
#[must_use]
pub fn entry() -> Option<i32> {
    if std::env::args_os().nth(1).is_none_or(|word| word != WORD) {
        return None;
    }
    match guard() {
        Ok(()) => Some(0),
        Err(error) => {
            eprintln!("soloist: {WORD} is started by a node, never by hand: {error}");
            Some(2)
        }
    }
}

fn guard() -> Result<(), Errno> {
    SigSet::all().thread_block()?;
    let Some(Start { plan, deadline }) = receive::<Start>()? else { return Err(Errno::ENOTCONN) };
    // A guard that is a group leader already is in a session of its own.
    if let Err(error) = nix::unistd::setsid()
        && error != Errno::EPERM
    {
        return Err(error);
    }
    nix::sys::prctl::set_child_subreaper(true)?;
    let signals =
        SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let timer =
        TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
    let script = match kernel::start(&plan, deadline) {
        Ok(pid) => pid,
        Err(error) => {
            say(&FromGuard::Failed { error: explain(&plan.argv, &plan.dir, &error) });
            return wait_for_dismissal(&plan);
        }
    };
    kernel::let_go_of_output()?;
    say(&FromGuard::Started { pid: script.as_raw().unsigned_abs() });
    let mut watch = Watch {
        deadline,
        term_at: deadline - plan.term_before_deadline,
        kill_at: None,
        cause: None,
        exit: None,
        node_is_gone: false,
        tree: Tree::new(script),
    };
    watch.until_all_are_gone(&signals, &timer)?;
    let exit = watch.exit.unwrap_or(Exit { code: None, signal: Some(Signal::SIGKILL as i32) });
    let processes_killed = watch.tree.killed_besides_the_first();
    if !watch.node_is_gone {
        let cause = watch.cause.unwrap_or(Cause::Itself);
        if say(&FromGuard::Gone { exit, processes_killed, cause }) {
            return wait_for_dismissal(&plan);
        }
    }
    release::record_lost(&plan, exit, processes_killed, watch.deadline);
    Ok(())
}

/// After the last word the node records the end and says so; if it dies before, the guard releases the lease.
fn wait_for_dismissal(plan: &message::Plan) -> Result<(), Errno> {
    loop {
        match receive::<ToGuard>()? {
            Some(ToGuard::Dismissed) => return Ok(()),
            Some(_) => {}
            None => {
                release::record_lost(plan, Exit::default(), 0, clock::boot());
                return Ok(());
            }
        }
    }
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
    fn until_all_are_gone(&mut self, signals: &SignalFd, timer: &TimerFd) -> Result<(), Errno> {
        loop {
            if self.reap() {
                return Ok(());
            }
            let now = clock::boot();
            if self.kill_at.is_none() {
                if self.exit.is_some() || now >= self.deadline {
                    self.kill_at = Some(now);
                } else if now >= self.term_at {
                    self.cause.get_or_insert(Cause::Deadline);
                    self.tree.terminate();
                    self.kill_at = Some(self.deadline);
                }
            }
            let kill_at = self.kill_at.map(|at| at.min(self.deadline));
            let killing = kill_at.is_some_and(|at| now >= at);
            if killing {
                if self.exit.is_none() && now >= self.deadline {
                    self.cause.get_or_insert(Cause::Deadline);
                }
                self.tree.kill();
            }
            let wake = if killing { now + LOOK_AGAIN } else { kill_at.unwrap_or(self.term_at) };
            set(timer, wake)?;
            let stdin = std::io::stdin();
            let listening = if self.node_is_gone { PollFlags::empty() } else { PollFlags::POLLIN };
            let mut fds = [
                PollFd::new(stdin.as_fd(), listening),
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(timer.as_fd(), PollFlags::POLLIN),
            ];
            // A socket nobody holds is always "ready"; it is left out once that is known.
            let fds = if self.node_is_gone { &mut fds[1..] } else { &mut fds[..] };
            match poll(fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
            let socket_ready =
                !self.node_is_gone && fds[0].revents().is_some_and(|events| !events.is_empty());
            while matches!(signals.read_signal(), Ok(Some(_))) {}
            if socket_ready {
                self.listen()?;
            }
        }
    }

    fn listen(&mut self) -> Result<(), Errno> {
        let now = clock::boot();
        match receive::<ToGuard>()? {
            Some(ToGuard::Deadline { seq, deadline, term_before }) => {
                // Never backwards: a late message of an earlier renewal must not shorten, nor a wrong one.
                if deadline > self.deadline {
                    self.deadline = deadline;
                    self.term_at = deadline - term_before;
                }
                say(&FromGuard::Ack { seq });
            }
            Some(ToGuard::Stop { grace }) => {
                if self.kill_at.is_none() {
                    self.cause.get_or_insert(Cause::Stopped);
                    self.tree.terminate();
                    self.kill_at = Some(now + grace);
                }
            }
            Some(ToGuard::Kill) => {
                self.cause.get_or_insert(Cause::Kill);
                self.kill_at = Some(now);
            }
            Some(ToGuard::Dismissed) => {}
            None => {
                // The node died, however it died: the script dies now, so that another node can start now.
                self.node_is_gone = true;
                self.kill_at = Some(now);
            }
        }
        Ok(())
    }

    /// Reaps whatever ended; true when no child is left, which is the proof.
    fn reap(&mut self) -> bool {
        loop {
            match self.tree.reap() {
                tree::Reaped::First(exit) => self.exit = Some(exit),
                tree::Reaped::Other => {}
                tree::Reaped::NothingYet => return false,
                tree::Reaped::NobodyLeft => return true,
            }
        }
    }
}

fn set(timer: &TimerFd, at: Boot) -> Result<(), Errno> {
    let at = TimeSpec::from(Duration::from_nanos(at.0.max(1)));
    timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
}

/// Receives one message; `None` at the end of the node.
fn receive<T: serde::de::DeserializeOwned>() -> Result<Option<T>, Errno> {
    let mut buffer = vec![0; LARGEST];
    let length = loop {
        match recv(std::io::stdin().as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => break length,
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok(None),
            Err(error) => return Err(error),
        }
    };
    if length == 0 {
        return Ok(None);
    }
    serde_json::from_slice(&buffer[..length]).map(Some).map_err(|_| Errno::EBADMSG)
}

/// Sends one message; false when the node is gone or does not read.
fn say(message: &FromGuard) -> bool {
    let Ok(bytes) = serde_json::to_vec(message) else { return false };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    send(std::io::stdin().as_raw_fd(), &bytes, flags).is_ok()
}

fn explain(argv: &[String], dir: &std::path::Path, error: &std::io::Error) -> String {
    let command = argv.first().map_or("", String::as_str);
    if !dir.is_dir() {
        return format!(
            "the directory {} does not exist on this node: make it, or change `dir`",
            dir.display()
        );
    }
    match error.kind() {
        std::io::ErrorKind::NotFound => format!(
            "the command {command:?} was not found on this node: install it, or write its whole path in `command`"
        ),
        std::io::ErrorKind::PermissionDenied => {
            format!(
                "{command:?} may not be executed: chmod +x it, or name its interpreter first in `command`"
            )
        }
        _ => format!("{command:?} could not be started: {error}"),
    }
}

/// The pid type of this room's siblings.
pub(crate) type ProcessId = Pid;
