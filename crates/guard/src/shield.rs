//! Protects the memory and the environment of a node, its nursery, its agent and its guards from the scripts they run.
//!
//! A script of the same user could read `/proc/PID/environ` and `/proc/PID/mem`, or attach a debugger, and so read the store's password.
//! For a process that is not dumpable the kernel refuses that to every process without CAP_SYS_PTRACE, which scripts do not have
//! (`kernel`). A fork inherits this state, an exec resets it: so each of our programs sets it first. Other rights of the same user (read
//! our files, send signals) are outside the scope of this file: ADR 0019.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::OnceLock;

use super::kernel;

/// What a script is known by in its own environment: a program of ours that a script starts keeps these, because who
/// looks for what is left of a run goes by them.
const MARKS: [&str; 4] = ["SOLOIST_JOB", "SOLOIST_RUN", "SOLOIST_NODE", "SOLOIST_TOKEN"];

/// The limit for core dumps that this process was started with, in bytes.
static CORE: OnceLock<u64> = OnceLock::new();

/// Makes this process unreadable and keeps it from leaving its memory in a core dump. Call it before anything secret is
/// in memory. What the kernel refuses is left as it was: there is nothing better to do.
pub fn raise() {
    nix::sys::prctl::set_dumpable(false).ok();
    if let Ok(before) = kernel::limit_core(0) {
        CORE.get_or_init(|| before);
    }
}

/// What a script is to have as its limit for core dumps, in bytes; `None`: what it inherits.
pub fn core_before() -> Option<u64> {
    CORE.get().copied()
}

/// Whether this program was started by a script that Soloist runs.
#[must_use]
pub fn is_in_a_script() -> bool {
    std::env::var_os("SOLOIST_RUN").is_some()
}

/// Takes what configures Soloist out of the environment of this process, and out of what `/proc/PID/environ` shows of
/// it. Only while this process has a single thread.
#[must_use]
pub fn take_variables() -> BTreeMap<String, String> {
    let ours = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        name.starts_with("SOLOIST_") && !MARKS.contains(&name)
    };
    let all: Vec<_> = std::env::vars_os().filter(|(name, _)| ours(name)).collect();
    let mut taken = BTreeMap::new();
    for (name, value) in all {
        kernel::forget_variable(&name);
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
            taken.insert(name, value);
        }
    }
    taken
}
