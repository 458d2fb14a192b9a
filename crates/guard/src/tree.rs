//! A process tree: finding it, ending it, and proving that nothing is left.
//!
//! Every descendant of a script, also one that forked twice and called setsid, is a descendant of its guard, because the guard, or the
//! init of the script's pid namespace, is their reaper. So one walk from parent to child works on every level of containment. Where the
//! kernel can kill all of them, that is used: in a namespace its init is killed, in a cgroup `cgroup.kill` is written; each takes as long
//! as the tree is large. The walk then only counts, or finds processes that left the cgroup.
//!
//! Only `ECHILD` proves the death. Sources: prctl(2) PR_SET_CHILD_SUBREAPER, pid_namespaces(7).

use std::collections::HashSet;
use std::fs;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpid};

use super::cgroup::RunCgroup;
use super::init::Init;
use super::kernel;
use super::walk::{Descendants, Walk, lives};
use soloist_domain::job::Exit;
use soloist_process::sabotage::{Bug, planted};

/// After so many fruitless passes the slow, complete walk is taken: the quick one can miss a child whose sibling just
/// exits.
const FRUITLESS: u32 = 8;
/// How soon to look again while processes are being killed: a forker may have made new ones.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The same when no new process was found for a while: a process that ends says so by a signal.
const LOOK_LATER: Duration = Duration::from_millis(64);

/// What one reaping found.
pub(super) enum Reaped {
    /// The script's first process ended.
    First(Exit),
    /// Another ended.
    Other,
    /// Children live, none has ended.
    NothingYet,
    /// The proof.
    NobodyLeft,
}

/// What keeps a script's processes together.
pub(super) enum Held {
    /// In a pid namespace; its init is the only child of this process.
    Namespace(Init),
    /// In a cgroup, and below this process.
    Cgroup(RunCgroup),
    /// Below this process.
    Below,
}

/// Everything below this process.
pub(super) struct Tree {
    first: Pid,
    held: Held,
    first_is_reaped: bool,
    passes: u32,
    /// Passes in a row that found a new process, or after which no process had ended.
    fruitless: u32,
    look_again: Duration,
    /// Signalled with KILL, once each.
    killed: HashSet<Pid>,
    killed_besides_the_first: u32,
}

impl Tree {
    pub(super) fn new(first: Pid, held: Held) -> Self {
        Self {
            first,
            held,
            first_is_reaped: false,
            passes: 0,
            fruitless: 0,
            look_again: LOOK_AGAIN,
            killed: HashSet::new(),
            killed_besides_the_first: 0,
        }
    }

    /// Another sign than signals of children that it is time to [`Tree::reap`].
    pub(super) fn line(&self) -> Option<BorrowedFd<'_>> {
        match &self.held {
            Held::Namespace(init) => init.line(),
            Held::Cgroup(_) | Held::Below => None,
        }
    }

    /// TERM to every process, and CONT so that stopped ones hear it.
    pub(super) fn terminate(&self) {
        if planted(Bug::ProcessGroupOnly) {
            killpg(self.first, Signal::SIGTERM).ok();
            return;
        }
        let tree = Descendants::of(getpid(), Walk::Quick);
        for pid in tree.iter().filter(|pid| !self.is_init(*pid)) {
            tree.signal(pid, &[Signal::SIGTERM, Signal::SIGCONT]);
        }
    }

    /// KILL to every process there is now. One pass: a process that was forked meanwhile is found by the next.
    pub(super) fn kill(&mut self) {
        self.passes += 1;
        if planted(Bug::ProcessGroupOnly) {
            killpg(self.first, Signal::SIGKILL).ok();
            return;
        }
        match &self.held {
            Held::Namespace(init) => {
                if self.passes == 1 {
                    self.killed_besides_the_first = self.living_besides_the_first();
                    init.kill();
                }
                self.look_again = LOOK_LATER;
                return;
            }
            // Who is in it is dead after that; the walk of a later pass is for those who went elsewhere.
            Held::Cgroup(cgroup) => {
                if cgroup.kill().is_err() || self.passes > 1 {
                    self.kill_below();
                }
            }
            Held::Below => self.kill_below(),
        }
        if !self.first_is_reaped {
            // Safe by number, as only this process can reap it, and needed where /proc cannot be read.
            kill(self.first, Signal::SIGKILL).ok();
        }
    }

    /// One walk from parent to child; a complete one when those have led nowhere.
    fn kill_below(&mut self) {
        let complete = self.fruitless >= FRUITLESS;
        let tree = Descendants::of(getpid(), if complete { Walk::Complete } else { Walk::Quick });
        let mut found_new = false;
        for pid in tree.iter() {
            if tree.signal(pid, &[Signal::SIGKILL]) && pid != self.first {
                found_new |= self.killed.insert(pid);
            }
        }
        self.fruitless = if complete { 0 } else { self.fruitless + 1 };
        self.look_again =
            if found_new { LOOK_AGAIN } else { (self.look_again * 2).min(LOOK_LATER) };
    }

    /// How soon [`Tree::kill`] wants to be called again, if no process ends before.
    pub(super) fn look_again(&self) -> Duration {
        self.look_again
    }

    /// How many there are that the death of the init is going to kill, the script's first process left out.
    fn living_besides_the_first(&self) -> u32 {
        let tree = Descendants::of(getpid(), Walk::Quick);
        let others = tree.iter().filter(|pid| !self.is_init(*pid) && *pid != self.first);
        others.filter(|pid| lives(*pid)).count().try_into().unwrap_or(u32::MAX)
    }

    fn is_init(&self, pid: Pid) -> bool {
        matches!(&self.held, Held::Namespace(init) if init.pid == pid)
    }

    /// For the last word, when all are gone.
    pub(super) fn killed_besides_the_first(&self) -> u32 {
        self.killed_besides_the_first
    }

    /// When all are gone: leaves nothing behind.
    pub(super) fn clear_away(&self) {
        if let Held::Cgroup(cgroup) = &self.held {
            cgroup.remove();
        }
    }

    pub(super) fn reap(&mut self) -> Reaped {
        if let Some(exit) = self.told_by_init() {
            return Reaped::First(exit);
        }
        if planted(Bug::ProcessGroupOnly) && self.first_is_reaped {
            return Reaped::NobodyLeft;
        }
        if planted(Bug::NoReaping) && !self.first_is_reaped && is_no_zombie(self.first) {
            return Reaped::NothingYet;
        }
        let (pid, exit) = match kernel::wait_any(libc::WNOHANG) {
            Ok(Some(ended)) => ended,
            Ok(None) => return Reaped::NothingYet,
            Err(Errno::ECHILD) => return self.nobody_left(),
            Err(_) => return Reaped::NothingYet,
        };
        // After a pass that found no new process, every end is on the way to the last one.
        if self.look_again > LOOK_AGAIN {
            self.fruitless = 0;
        }
        // One that had exited by itself before the KILL came did not have to be killed. A cgroup kills more than
        // the walk has seen.
        let by_us = self.killed.remove(&pid)
            || (self.passes > 0 && matches!(self.held, Held::Cgroup(_)) && pid != self.first);
        if by_us && exit.signal == Some(Signal::SIGKILL as i32) {
            self.killed_besides_the_first += 1;
        }
        if pid == self.first && !self.first_is_reaped {
            self.first_is_reaped = true;
            return Reaped::First(exit);
        }
        Reaped::Other
    }

    /// How the script ended, when an init has just told it.
    fn told_by_init(&mut self) -> Option<Exit> {
        let Held::Namespace(init) = &mut self.held else { return None };
        init.listen();
        let exit = init.exit.take()?;
        self.first_is_reaped = true;
        Some(exit)
    }

    fn nobody_left(&mut self) -> Reaped {
        // Between the last look and the end an init may have said its last.
        if let Some(exit) = self.told_by_init() {
            return Reaped::First(exit);
        }
        if self.first_is_reaped {
            return Reaped::NobodyLeft;
        }
        // The init was killed, and the kernel has killed the script.
        self.first_is_reaped = true;
        Reaped::First(Exit { code: None, signal: Some(Signal::SIGKILL as i32) })
    }
}

/// Only for a planted bug: whether a process has not ended yet.
fn is_no_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
