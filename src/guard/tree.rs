//! The script's process tree: finding it, ending it, and proving that nothing is left.
//!
//! Every descendant, also one that forked twice and called setsid, is a descendant of the guard, because the guard is
//! their subreaper. Signals go only to processes whose chain of parents leads here at that moment; proof of death is
//! `ECHILD` and nothing else. Source: prctl(2) PR_SET_CHILD_SUBREAPER, proc_pid_stat(5).

use std::collections::{HashMap, HashSet};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use super::ProcessId;
use crate::domain::job::Exit;

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

pub(super) struct Tree {
    first: ProcessId,
    killed: HashSet<i32>,
    killed_and_reaped: u32,
}

impl Tree {
    pub(super) fn new(first: ProcessId) -> Self {
        Self { first, killed: HashSet::new(), killed_and_reaped: 0 }
    }

    /// TERM to every process, and CONT so that stopped ones hear it.
    pub(super) fn terminate(&self) {
        for pid in descendants(getpid()) {
            signal(pid, Signal::SIGTERM);
            signal(pid, Signal::SIGCONT);
        }
    }

    /// KILL to every process there is now. One pass: whoever forked meanwhile is found by the next.
    pub(super) fn kill(&mut self) {
        for pid in descendants(getpid()) {
            signal(pid, Signal::SIGKILL);
            if pid != self.first {
                self.killed.insert(pid.as_raw());
            }
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
            Ok(_) | Err(Errno::EINTR) => return Reaped::NothingYet,
            Err(_) => return Reaped::NobodyLeft,
        };
        if pid == self.first {
            return Reaped::First(exit);
        }
        if self.killed.remove(&pid.as_raw()) {
            self.killed_and_reaped += 1;
        }
        Reaped::Other
    }
}

fn signal(pid: Pid, signal: Signal) {
    // A process that is gone already needs no signal; one that may not be signalled stays, and so does the lease.
    if let Err(error) = kill(pid, signal)
        && error != Errno::ESRCH
    {
        eprintln!("soloist: guard: {signal} to {pid}: {error}");
    }
}

/// Every living process whose chain of parents leads to `root`.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut look = vec![root.as_raw()];
    while let Some(pid) = look.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(Pid::from_raw(child));
            look.push(child);
        }
    }
    found
}

/// The parent of a process that is not a zombie. The name in the middle may hold anything, `) ` too.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut rest = stat[stat.rfind(')')? + 1..].split_whitespace();
    if rest.next()? == "Z" {
        return None;
    }
    rest.next()?.parse().ok()
}
