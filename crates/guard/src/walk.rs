//! The process tree as the kernel shows it: parents, children, and the identity of a process.
//!
//! A walk over all processes of the machine costs too much when many runs end at once: it is used only if the quick one fails. A signal
//! goes only to a process whose parent is in the tree at that moment, through a pidfd. Sources: pidfd_open(2), proc_pid_stat(5),
//! proc_tid_children(5).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::kernel;

/// How to look for children.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// From parent to child (`/proc/PID/task/TID/children`): costs what the tree is large.
    Quick,
    /// Over all processes of the machine.
    Complete,
}

/// Everything below one process at one moment.
pub struct Descendants {
    root: Pid,
    found: HashSet<Pid>,
    /// Parents before their children.
    order: Vec<Pid>,
}

impl Descendants {
    /// What is below `root` now.
    pub fn of(root: Pid, walk: Walk) -> Self {
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
    pub fn children_of_root(&self) -> impl Iterator<Item = Pid> + '_ {
        self.iter().filter(|pid| parent_of(*pid) == Some(self.root))
    }

    /// All, parents before their children.
    pub fn iter(&self) -> impl Iterator<Item = Pid> + '_ {
        self.order.iter().copied()
    }

    /// Signals `pid` if it still belongs here; false when it does not, or may not be signalled.
    pub fn signal(&self, pid: Pid, signals: &[Signal]) -> bool {
        let process = kernel::pidfd(pid);
        // Read after the pidfd was opened: whichever process has the number now, the signal can only hit one of ours.
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
pub fn everybody() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.map(Pid::from_raw).collect()
}

/// The parent, also of a process that *looks* like a zombie: its first thread may have ended while others live on.
fn parent_of(pid: Pid) -> Option<Pid> {
    stat_field(pid, 4)?.try_into().ok().map(Pid::from_raw)
}

/// Whether a process has not ended yet; one whose first thread alone has ended lives.
pub(super) fn lives(pid: Pid) -> bool {
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    stat(pid, 3).is_some_and(|state| !matches!(state.as_str(), "Z" | "X") || threads() > 1)
}

/// When a process began, in clock ticks since boot.
pub fn began(pid: Pid) -> Option<u64> {
    stat_field(pid, 22)
}

/// Whether the process that began at `at` under this number lives; one that is dead and not yet reaped does not.
pub fn lives_since(pid: Pid, at: u64) -> bool {
    let dead = |state: &str| matches!(state, "Z" | "X");
    began(pid) == Some(at) && stat(pid, 3).is_some_and(|state| !dead(&state))
}

/// The process group of a process.
pub fn group_of(pid: Pid) -> Option<Pid> {
    stat_field(pid, 5)?.try_into().ok().map(Pid::from_raw)
}

/// The session of a process.
pub fn session_of(pid: Pid) -> Option<Pid> {
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
    use std::process::Command;

    use nix::unistd::getpid;

    use super::*;

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
