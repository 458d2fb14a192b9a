//! A process tree: finding it, ending it, and proving that nothing is left.
//!
//! Every descendant of a script, also one that forked twice and called setsid, is a descendant of its guard, because
//! the guard, or the init of the script's pid namespace, is their reaper. So one walk from parent to child serves every
//! level of containment. Where the kernel has a way of its own to kill everybody, that is used: in a namespace its
//! init is killed, and in a cgroup `cgroup.kill` is written, each as long as the tree is large; the walk only counts,
//! or finds who left its cgroup. A walk over all processes of the machine would make the end of many runs cost their
//! square: it is taken only when the quick one leads nowhere.
//!
//! A signal goes only to a process whose parent is in the tree at that moment, through a pidfd; proof of death is
//! `ECHILD` and nothing else. Sources: prctl(2) PR_SET_CHILD_SUBREAPER, pidfd_open(2), proc_pid_stat(5),
//! proc_tid_children(5), pid_namespaces(7).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpid};

use super::cgroup::RunCgroup;
use super::init::Init;
use super::kernel;
use crate::domain::job::Exit;
use crate::sabotage::{Bug, planted};

/// After so many fruitless passes the slow, complete walk is taken: the quick one can miss a child whose sibling just
/// exits.
const FRUITLESS: u32 = 8;
/// How soon to look again while processes are being killed: a forker may have made new ones.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The same when nobody new was found for a while: who ends says so by a signal.
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
    /// Passes in a row that found somebody new, or after which nobody had ended.
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

    /// Something besides signals of children that says that it is time to [`Tree::reap`].
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

    /// KILL to every process there is now. One pass: whoever forked meanwhile is found by the next.
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

    /// How soon [`Tree::kill`] wants to be called again, if nobody ends before.
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
        // After a pass that found nobody new, every end is on the way to the last one.
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

/// How to look for children.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// From parent to child (`/proc/PID/task/TID/children`): costs what the tree is large.
    Quick,
    /// Over all processes of the machine.
    Complete,
}

/// Everything below one process at one moment.
pub(crate) struct Descendants {
    root: Pid,
    found: HashSet<Pid>,
    /// Parents before their children.
    order: Vec<Pid>,
}

impl Descendants {
    pub(crate) fn of(root: Pid, walk: Walk) -> Self {
        let mut tree = Self { root, found: HashSet::new(), order: Vec::new() };
        let complete = walk == Walk::Complete || children(root).is_none();
        let mut families = complete.then(families);
        let mut look = vec![root];
        while let Some(parent) = look.pop() {
            let below = match &mut families {
                Some(families) => families.remove(&parent),
                None => children(parent),
            };
            for child in below.unwrap_or_default() {
                if tree.found.insert(child) {
                    tree.order.push(child);
                    look.push(child);
                }
            }
        }
        tree
    }

    /// Only the uppermost.
    pub(crate) fn children_of_root(&self) -> impl Iterator<Item = Pid> + '_ {
        self.iter().filter(|pid| parent_of(*pid) == Some(self.root))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Pid> + '_ {
        self.order.iter().copied()
    }

    /// Signals `pid` if it still belongs here; false when it does not, or may not be signalled.
    pub(crate) fn signal(&self, pid: Pid, signals: &[Signal]) -> bool {
        let process = kernel::pidfd(pid);
        // Read after the pidfd was opened: whoever bears the number now, the signal can only hit one of ours.
        let ours =
            parent_of(pid).is_some_and(|ppid| ppid == self.root || self.found.contains(&ppid));
        ours && signals.iter().all(|signal| match &process {
            Ok(process) => kernel::signal_pidfd(process, *signal).is_ok(),
            Err(Errno::ESRCH) => false,
            // No pidfds here, or none left.
            Err(_) => kill(pid, *signal).is_ok(),
        })
    }
}

/// The children of all threads of `pid`; `None` when this kernel does not tell, or the process is gone.
fn children(pid: Pid) -> Option<Vec<Pid>> {
    let mut all = Vec::new();
    let mut told = false;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Ok(text) = fs::read_to_string(thread.path().join("children")) else { continue };
        told = true;
        all.extend(text.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw));
    }
    told.then_some(all)
}

/// Every process of this machine, by parent.
fn families() -> HashMap<Pid, Vec<Pid>> {
    let mut families: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for pid in everybody() {
        if let Some(parent) = parent_of(pid) {
            families.entry(parent).or_default().push(pid);
        }
    }
    families
}

/// Every process of this machine.
pub(crate) fn everybody() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.map(Pid::from_raw).collect()
}

/// The parent, also of a process that *looks* like a zombie: its first thread may have ended while others live on.
fn parent_of(pid: Pid) -> Option<Pid> {
    stat_field(pid, 4)?.try_into().ok().map(Pid::from_raw)
}

/// Whether a process has not ended yet; one whose first thread alone has ended lives.
fn lives(pid: Pid) -> bool {
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    stat(pid, 3).is_some_and(|state| !matches!(state.as_str(), "Z" | "X") || threads() > 1)
}

/// Only for a planted bug: whether a process has not ended yet.
fn is_no_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// When a process began, in clock ticks since boot.
pub(crate) fn began(pid: Pid) -> Option<u64> {
    stat_field(pid, 22)
}

/// Whether the process that began at `at` under this number lives; one that is dead and not yet reaped does not.
pub(crate) fn lives_since(pid: Pid, at: u64) -> bool {
    let dead = |state: &str| matches!(state, "Z" | "X");
    began(pid) == Some(at) && stat(pid, 3).is_some_and(|state| !dead(&state))
}

/// The process group of a process.
pub(crate) fn group_of(pid: Pid) -> Option<Pid> {
    stat_field(pid, 5)?.try_into().ok().map(Pid::from_raw)
}

/// The session of a process.
pub(crate) fn session_of(pid: Pid) -> Option<Pid> {
    stat_field(pid, 6)?.try_into().ok().map(Pid::from_raw)
}

/// A numeric field of `/proc/PID/stat`, numbered as in proc_pid_stat(5), 4 or above.
fn stat_field(pid: Pid, number: usize) -> Option<u64> {
    stat(pid, number)?.parse().ok()
}

/// A field of `/proc/PID/stat`, 3 or above. The name in field 2 may hold anything, brackets, spaces and bytes that are
/// not UTF-8.
fn stat(pid: Pid, number: usize) -> Option<String> {
    // In one call, as the kernel gives it; it is never longer than some 600 bytes.
    let (mut stat, file) = ([0; 1024], fs::File::open(format!("/proc/{pid}/stat")));
    let length = file.ok()?.read(&mut stat).ok()?;
    let stat = stat.get(..length)?;
    let after_name = stat.iter().rposition(|&b| b == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    rest.split_whitespace().nth(number - 3).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn both_walks_find_a_child_and_its_child() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let mut grandchild = None;
        while grandchild.is_none() {
            grandchild = children(pid).unwrap_or_default().first().copied();
        }
        for walk in [Walk::Quick, Walk::Complete] {
            let tree = Descendants::of(getpid(), walk);
            assert!(tree.found.contains(&pid) && tree.found.contains(&grandchild.unwrap()));
        }
        let tree = Descendants::of(pid, Walk::Quick);
        assert!(!tree.signal(getpid(), &[Signal::SIGKILL]), "a stranger is never signalled");
        assert!(tree.signal(grandchild.unwrap(), &[Signal::SIGKILL]));
        assert!(child.wait().unwrap().code().is_some());
    }

    #[test]
    fn a_process_began_after_its_parent() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        assert!(began(pid).unwrap() >= began(getpid()).unwrap());
        assert_eq!(parent_of(pid), Some(getpid()));
        child.wait().unwrap();
    }
}
