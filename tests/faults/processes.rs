//! Who lives on this machine: nodes' guards, scripts and what scripts left behind, found in `/proc` from outside.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::witness;

/// One process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// Ended, but not waited for.
    pub(crate) zombie: bool,
    /// In clock ticks since boot: with the number it is a process for good.
    began: u64,
    arguments: Vec<String>,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
        let rest = String::from_utf8_lossy(&stat[after_name..]).into_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words = command.split(|&byte| byte == 0);
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            zombie: matches!(*fields.first()?, "Z" | "X"),
            began: fields.get(19)?.parse().ok()?,
            arguments: words.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
        })
    }

    /// Sends a signal, unless the number belongs to somebody else by now. False when it is gone.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        self.is_there() && kill(Pid::from_raw(self.pid), signal).is_ok()
    }

    /// Whether it still exists, be it as a zombie.
    pub(crate) fn is_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.began == self.began)
    }

    /// Whether it can still act.
    pub(crate) fn lives(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.began == self.began && !now.zombie)
    }

    /// Whether it belongs to the run of that token.
    pub(crate) fn has_token(&self, token: u64) -> bool {
        let mark = format!("SOLOIST_TOKEN={token}");
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
    }

    fn is_guard_of(&self, job: &str) -> bool {
        self.arguments.first().is_some_and(|name| name == &format!("soloist guard of {job}"))
    }

    fn is_witness_of(&self, directory: &Path, job: &str) -> bool {
        let own = self.arguments.get(1..4);
        own.is_some_and(|own| {
            own[0] == witness::WORD && Path::new(&own[1]) == directory && own[2] == job
        })
    }

    fn is_first_of_script(&self) -> bool {
        let role = self.arguments.get(4);
        role.is_some_and(|role| witness::Mode::ALL.iter().any(|mode| mode.as_str() == role))
    }
}

/// Everybody.
pub(crate) fn everybody() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read).collect()
}

/// The guard of `job` that the node with process id `node` started.
pub(crate) fn guard_of(node: i32, job: &str) -> Option<Process> {
    everybody().into_iter().find(|p| p.parent == node && !p.zombie && p.is_guard_of(job))
}

/// The first process of the script that runs under `guard`, at whatever depth.
pub(crate) fn script_under(guard: &Process, directory: &Path, job: &str) -> Option<Process> {
    let everybody = everybody();
    let mut at: Vec<i32> = vec![guard.pid];
    while let Some(parent) = at.pop() {
        for process in everybody.iter().filter(|p| p.parent == parent && !p.zombie) {
            if process.is_witness_of(directory, job) && process.is_first_of_script() {
                return Some(process.clone());
            }
            at.push(process.pid);
        }
    }
    None
}

/// Every guard that was started in `directory`, also one whose node is dead.
pub(crate) fn guards_in(directory: &Path) -> Vec<Process> {
    let is_guard = |p: &Process| {
        p.arguments.first().is_some_and(|title| title.starts_with("soloist guard of "))
    };
    let is_here = |p: &Process| {
        fs::read_link(format!("/proc/{}/cwd", p.pid)).is_ok_and(|cwd| cwd == directory)
    };
    everybody().into_iter().filter(|p| is_guard(p) && is_here(p)).collect()
}

/// Every process of any run of `job` that can still act.
pub(crate) fn living(directory: &Path, job: &str) -> Vec<Process> {
    let all = everybody().into_iter();
    all.filter(|p| !p.zombie && p.is_witness_of(directory, job)).collect()
}

/// Ended children of `parent` or of a process below it that nobody has waited for.
pub(crate) fn zombies_below(parent: i32) -> usize {
    let everybody = everybody();
    let (mut at, mut found) = (vec![parent], 0);
    while let Some(parent) = at.pop() {
        for process in everybody.iter().filter(|p| p.parent == parent) {
            found += usize::from(process.zombie);
            at.push(process.pid);
        }
    }
    found
}
