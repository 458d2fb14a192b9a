//! A process tree: finding it, ending it, and proving that nothing is left.
//!
//! Every descendant of a script, also one that forked twice and called setsid, is a descendant of its guard, because
//! the guard is their subreaper. A signal goes only to a process whose parent is in the tree at that moment, through
//! a pidfd; proof of death is `ECHILD` and nothing else. Sources: prctl(2) PR_SET_CHILD_SUBREAPER, pidfd_open(2),
//! proc_pid_stat(5), proc_tid_children(5).

use std::collections::{HashMap, HashSet};
use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use super::kernel;
use crate::domain::job::Exit;

/// Every so many passes the slow, complete walk is taken: the quick one can miss a child whose sibling just exits.
const COMPLETE_EVERY: u32 = 4;

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

/// Everything below this process.
pub(super) struct Tree {
    first: Pid,
    first_is_reaped: bool,
    passes: u32,
    /// Signalled with KILL and not yet reaped.
    killed: HashSet<Pid>,
    killed_and_reaped: u32,
}

impl Tree {
    pub(super) fn new(first: Pid) -> Self {
        let killed = HashSet::new();
        Self { first, first_is_reaped: false, passes: 0, killed, killed_and_reaped: 0 }
    }

    /// TERM to every process, and CONT so that stopped ones hear it.
    pub(super) fn terminate(&self) {
        let tree = Descendants::of(getpid(), Walk::Quick);
        for pid in tree.iter() {
            tree.signal(pid, &[Signal::SIGTERM, Signal::SIGCONT]);
        }
    }

    /// KILL to every process there is now. One pass: whoever forked meanwhile is found by the next.
    pub(super) fn kill(&mut self) {
        self.passes += 1;
        let complete = self.passes.is_multiple_of(COMPLETE_EVERY);
        let tree = Descendants::of(getpid(), if complete { Walk::Complete } else { Walk::Quick });
        for pid in tree.iter() {
            if tree.signal(pid, &[Signal::SIGKILL]) && pid != self.first {
                self.killed.insert(pid);
            }
        }
        if !self.first_is_reaped {
            // Safe by number, as only this process can reap it, and needed where /proc cannot be read.
            kill(self.first, Signal::SIGKILL).ok();
        }
    }

    pub(super) fn killed_besides_the_first(&self) -> u32 {
        self.killed_and_reaped
    }

    pub(super) fn reap(&mut self) -> Reaped {
        let (pid, exit) = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Exit { code: Some(code), signal: None }),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                (pid, Exit { code: None, signal: Some(signal as i32) })
            }
            Err(Errno::ECHILD) => return Reaped::NobodyLeft,
            // A real-time signal has no name in `Signal`; whoever it killed is reaped all the same.
            Err(Errno::EINVAL) if self.first_is_reaped || parent_of(self.first).is_some() => {
                return Reaped::Other;
            }
            Err(Errno::EINVAL) => (self.first, Exit::default()),
            Ok(_) | Err(_) => return Reaped::NothingYet,
        };
        // One that had exited by itself before the KILL came did not have to be killed.
        if self.killed.remove(&pid) && exit.signal == Some(Signal::SIGKILL as i32) {
            self.killed_and_reaped += 1;
        }
        if pid == self.first && !self.first_is_reaped {
            self.first_is_reaped = true;
            return Reaped::First(exit);
        }
        Reaped::Other
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

/// When a process began, in clock ticks since boot.
pub(crate) fn began(pid: Pid) -> Option<u64> {
    stat_field(pid, 22)
}

/// A numeric field of `/proc/PID/stat`, numbered as in proc_pid_stat(5), 4 or above. The name in field 2 may hold
/// anything, brackets, spaces and bytes that are not UTF-8.
fn stat_field(pid: Pid, number: usize) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|&b| b == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
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
