//! A pid namespace for one run, and its init: the first process in it, a copy of the guard.
//!
//! When an init dies, however it dies, the kernel kills every process of its namespace and lets no parent reap it before
//! they are dead (pid_namespaces(7)). It dies with its guard (PR_SET_PDEATHSIG), so nothing is left even when node and
//! guard are killed at once. The script is not the init itself: to an init without handlers TERM means nothing.
//!
//! It is made before there is a plan, so that a warm guard (`nursery`) has it ready; its mounts are made when the plan is
//! there, so that a script sees the mounts of its own time. Then the init starts the script, reaps all the time, tells
//! the guard how the script ended, and ends when no process is left.
//! Its guard kills it to kill all. It handles no signal and forwards none: the guard, outside, sees every process of the
//! namespace below itself. It has its own mounts, passed on from outside but not back, with a /proc that shows the
//! numbers a script in there knows: `ps`, `kill $!` and `/proc/$$` work. `$$` itself is the number outside, too: one
//! that the kernel gave to the guard for it, so that no process is given it again when the run is over.
//!
//! Needs root (CAP_SYS_ADMIN). A user namespace would do without, but in it sudo, su, ping and the like stop working
//! in scripts: a node that is not root uses the next level instead.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixCredentials, recv,
    recvmsg, send, setsockopt, socketpair, sockopt,
};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use serde::Serialize;

use super::kernel::{self, Doors};
use super::message::{LARGEST, Plan, Start};
use super::title::Title;
use soloist_domain::job::Exit;
use soloist_domain::time::Boot;

/// Words on the line between guard and init: one of these and a number.
mod word {
    /// Init: I die with you from now on, tell me what to do.
    pub(super) const READY: u8 = b'R';
    /// Guard: start the plan that follows, the script's number is this (0: any); without a plan only try.
    pub(super) const PLAN: u8 = b'P';
    /// The script, before its exec: here I am.
    pub(super) const SCRIPT: u8 = b'S';
    /// Init: the script runs.
    pub(super) const RUNS: u8 = b'X';
    /// Init: the namespace could not be furnished; an errno.
    pub(super) const NO_NAMESPACE: u8 = b'N';
    /// Init: the script could not be started; an errno.
    pub(super) const NO_SCRIPT: u8 = b'F';
    /// Init: the script ended with this code.
    pub(super) const EXITED: u8 = b'E';
    /// Init: the script ended by this signal.
    pub(super) const SIGNALED: u8 = b'G';
}

/// Why there is no script.
pub(super) enum NotBegun {
    /// The init is dead that should have started it: another may do.
    NoInit,
    /// The namespace cannot be made; a weaker level may do.
    Namespace(String),
    /// The script cannot be started, on whatever level.
    Script(io::Error),
}

/// A guard's end of the line to its init.
pub(super) struct Init {
    pub(super) pid: Pid,
    line: OwnedFd,
    /// The other end is closed.
    hung_up: bool,
    /// How the script ended, until it is asked for.
    pub(super) exit: Option<Exit>,
}

impl Init {
    /// An init that dies with this process and waits for its plan.
    pub(super) fn make() -> Result<Self, NotBegun> {
        let no = |error: Errno| NotBegun::Namespace(explain(error));
        let flags = SockFlag::SOCK_CLOEXEC;
        let (line, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).map_err(no)?;
        setsockopt(&line, sockopt::PassCred, &true).map_err(no)?;
        let Some(pid) = kernel::fork(libc::CLONE_NEWPID).map_err(no)? else {
            drop(line);
            std::process::exit(wait_and_start(&Line(theirs)));
        };
        Ok(Self { pid, line, hung_up: false, exit: None })
    }

    /// Starts the script of `plan`, unless `deadline` comes first. The number of the script is the one outside.
    pub(super) fn start(self, plan: &Plan, deadline: Boot) -> Result<(Self, Pid), NotBegun> {
        let order = serde_json::to_vec(&Order { plan, deadline })
            .map_err(|error| NotBegun::Script(io::Error::other(error)));
        let told = match order {
            Ok(order) => self.order(&order),
            Err(error) => Err(error),
        };
        if told.is_err() {
            self.end();
        }
        told.map(|script| (self, script))
    }

    fn order(&self, plan: &[u8]) -> Result<Pid, NotBegun> {
        // If this guard dies before the init has tied itself to it, the init reads the end of the line instead.
        let Some((word::READY, ..)) = self.hear() else { return Err(NotBegun::NoInit) };
        let number = match plan {
            [] => 0,
            _ => kernel::spent_number().map_or(0, Pid::as_raw),
        };
        let mut order = vec![word::PLAN];
        order.extend(number.to_ne_bytes());
        order.extend(plan);
        if send(self.line.as_raw_fd(), &order, MsgFlags::MSG_NOSIGNAL).is_err() {
            return Err(NotBegun::NoInit);
        }
        let mut script = None;
        loop {
            match self.hear() {
                Some((word::SCRIPT, _, sender)) => script = Some(sender),
                // The script's own words came before, and in order; a mere trial has none.
                Some((word::RUNS, _, sender)) => return Ok(script.unwrap_or(sender)),
                Some((word::NO_NAMESPACE, error, _)) => {
                    return Err(NotBegun::Namespace(explain(Errno::from_raw(error))));
                }
                Some((word::NO_SCRIPT, error, _)) => {
                    return Err(NotBegun::Script(io::Error::from_raw_os_error(error)));
                }
                Some(_) => {}
                // Killed in the middle: whether the script ran is not known, and it shall not run twice.
                None if script.is_some() => {
                    let error = "the first process of its namespace was killed before it ran";
                    return Err(NotBegun::Script(io::Error::other(error)));
                }
                None => return Err(NotBegun::NoInit),
            }
        }
    }

    /// Kills and reaps it, and with it all in there.
    pub(super) fn end(&self) {
        kill(self.pid, Signal::SIGKILL).ok();
        waitpid(self.pid, None).ok();
    }

    /// The next word, its number, and who said it, by the numbers of this side.
    fn hear(&self) -> Option<(u8, i32, Pid)> {
        self.receive(MsgFlags::empty())?.ok()
    }

    /// `None` at the end of the line.
    fn receive(&self, flags: MsgFlags) -> Option<Result<(u8, i32, Pid), Errno>> {
        let (mut bytes, mut control) = ([0; 5], cmsg_space!(UnixCredentials));
        let (length, sender) = loop {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            match recvmsg::<()>(self.line.as_raw_fd(), &mut parts, Some(&mut control), flags) {
                Ok(message) => {
                    let sender = message.cmsgs().ok().and_then(|mut all| {
                        all.find_map(|one| match one {
                            ControlMessageOwned::ScmCredentials(who) => Some(who.pid()),
                            _ => None,
                        })
                    });
                    break (message.bytes, sender.unwrap_or(0));
                }
                Err(Errno::EINTR) => {}
                Err(error) => return Some(Err(error)),
            }
        };
        let (word, number) = (bytes[0], [bytes[1], bytes[2], bytes[3], bytes[4]]);
        (length > 0).then(|| Ok((word, i32::from_ne_bytes(number), Pid::from_raw(sender))))
    }

    /// Takes in what the init has said. It never waits.
    pub(super) fn listen(&mut self) {
        while !self.hung_up {
            match self.receive(MsgFlags::MSG_DONTWAIT) {
                Some(Ok((word::EXITED, code, _))) => {
                    self.exit = Some(Exit { code: Some(code), signal: None });
                }
                Some(Ok((word::SIGNALED, signal, _))) => {
                    self.exit = Some(Exit { code: None, signal: Some(signal) });
                }
                Some(Ok(_)) => {}
                Some(Err(Errno::EAGAIN)) => return,
                Some(Err(_)) | None => self.hung_up = true,
            }
        }
    }

    /// To be waited on for more words; `None` when there will be none.
    pub(super) fn line(&self) -> Option<BorrowedFd<'_>> {
        (!self.hung_up).then(|| self.line.as_fd())
    }

    /// The kernel kills all, in one walk over the namespace.
    pub(super) fn kill(&self) {
        // Not reaped yet, so the number is its own.
        kill(self.pid, Signal::SIGKILL).ok();
    }
}

/// The init's end.
struct Line(OwnedFd);

impl Line {
    fn tell(&self, word: u8, number: i32) {
        tell(self.0.as_fd(), word, number);
    }

    /// Waits for the order: the script's number and the plan. `None` when the guard is gone.
    fn hear(&self) -> Option<(i32, Vec<u8>)> {
        let mut bytes = vec![0; 5 + LARGEST];
        let length = recv(self.0.as_raw_fd(), &mut bytes, MsgFlags::empty()).ok()?;
        let (front, plan) = bytes.get(..length)?.split_at_checked(5)?;
        let number = [front[1], front[2], front[3], front[4]];
        (front[0] == word::PLAN).then(|| (i32::from_ne_bytes(number), plan.to_vec()))
    }
}

/// The orders to an init.
#[derive(Serialize)]
struct Order<'a> {
    plan: &'a Plan,
    deadline: Boot,
}

fn tell(line: BorrowedFd<'_>, word: u8, number: i32) {
    let [a, b, c, d] = number.to_ne_bytes();
    // One who is gone is noticed by other means.
    send(line.as_raw_fd(), &[word, a, b, c, d], MsgFlags::MSG_NOSIGNAL).ok();
}

/// Everything that an init does; returns its exit code. Without a plan it only tries whether it could.
fn wait_and_start(line: &Line) -> i32 {
    kernel::let_go_of_input().ok();
    if nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_err() {
        return 1;
    }
    line.tell(word::READY, 0);
    let Some((number, order)) = line.hear() else { return 1 };
    if let Err(error) = furnish() {
        line.tell(word::NO_NAMESPACE, error as i32);
        return 1;
    }
    if order.is_empty() {
        line.tell(word::RUNS, 0);
        return 0;
    }
    let Ok(Start { plan, deadline }) = serde_json::from_slice(&order) else {
        line.tell(word::NO_SCRIPT, libc::EINVAL);
        return 1;
    };
    let doors = Doors { roll_call: Some(line.0.as_raw_fd()), ..Doors::default() };
    let first = match kernel::start_numbered(&plan, deadline, doors, number) {
        Ok(first) => first,
        Err(error) => {
            line.tell(word::NO_SCRIPT, error.raw_os_error().unwrap_or(libc::EINVAL));
            return 1;
        }
    };
    // Only the script and its children hold the output now; without this its end is seen when they all are gone.
    kernel::let_go_of_output().ok();
    line.tell(word::RUNS, 0);
    if let Some(title) = Title::find() {
        title.say(&format!("soloist init of {}", plan.job));
    }
    reap(line, first);
    0
}

/// Mounts of its own, and a /proc that tells of this namespace.
fn furnish() -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What is mounted and unmounted outside must still be seen here; what happens here must not be seen there.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
    let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), safe, None::<&str>)
}

/// Reaps until no process is left.
fn reap(line: &Line, first: Pid) {
    let mut first_is_reaped = false;
    loop {
        match kernel::wait_any(0) {
            Ok(Some((pid, exit))) if pid == first && !first_is_reaped => {
                first_is_reaped = true;
                match exit {
                    Exit { code: Some(code), .. } => line.tell(word::EXITED, code),
                    Exit { signal, .. } => line.tell(word::SIGNALED, signal.unwrap_or(0)),
                }
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Whether a namespace can be made here, by making one.
///
/// # Errors
/// Why not, with the remedy.
pub(super) fn probe() -> Result<(), String> {
    let tried = Init::make().and_then(|init| {
        let tried = init.order(&[]);
        init.end();
        tried
    });
    match tried {
        Ok(_) => Ok(()),
        Err(NotBegun::Namespace(why)) => Err(why),
        Err(NotBegun::Script(error)) => Err(error.to_string()),
        Err(NotBegun::NoInit) => {
            Err("the first process of a new namespace died at once".to_owned())
        }
    }
}

fn explain(error: Errno) -> String {
    match error {
        Errno::EPERM | Errno::EACCES => {
            "it needs root (CAP_SYS_ADMIN): run the node as root, or its container with --cap-add SYS_ADMIN".to_owned()
        }
        Errno::ENOSYS | Errno::EINVAL => format!(
            "this kernel cannot do it, or a seccomp profile forbids it, as those of containers do ({error})"
        ),
        Errno::ENOSPC | Errno::EUSERS => {
            format!("there are too many namespaces ({error}): raise user.max_pid_namespaces")
        }
        error => error.to_string(),
    }
}
