//! The one file that must talk to the kernel in ways the compiler cannot check: what happens between fork and exec.
//!
//! Nothing may be added here that a system call wrapper elsewhere can do. Between fork and exec only async-signal-safe
//! calls are allowed (signal-safety(7)): no allocation, no locks, no formatting.
#![expect(
    unsafe_code,
    reason = "pre_exec runs between fork and exec; each block says why it is sound"
)]

use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpid, getppid, setsid};

use super::message::Plan;
use crate::clock;
use crate::domain::time::Boot;

/// Starts the script in a session of its own, to die with this process, unless the deadline has come.
///
/// Its output goes where this process's output goes, its input is empty, and its environment is `plan.env` and the
/// four names of the contract, nothing else.
pub(super) fn start(plan: &Plan, deadline: Boot) -> io::Result<Pid> {
    let (command, arguments) = plan.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let guard = getpid();
    let mut script = Command::new(command);
    script
        .args(arguments)
        .current_dir(&plan.dir)
        .env_clear()
        .envs(&plan.env)
        .env("SOLOIST_JOB", plan.job.as_str())
        .env("SOLOIST_RUN", plan.run.as_str())
        .env("SOLOIST_NODE", plan.node.as_str())
        .env("SOLOIST_TOKEN", plan.token.to_string())
        .stdin(Stdio::null());
    // SAFETY: the closure only makes async-signal-safe system calls (setsid, prctl, getppid, sigprocmask,
    // clock_gettime), allocates nothing, and returns errors without formatting.
    unsafe {
        script.pre_exec(move || {
            setsid()?;
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            SigSet::empty().thread_set_mask()?;
            // The guard may have died before the prctl; and a start that took too long must not happen.
            if getppid() != guard || clock::boot() >= deadline {
                return Err(Errno::ETIMEDOUT.into());
            }
            Ok(())
        });
    }
    let child = script.spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    // Raising is always allowed. When memory is short the script goes, not its guard; without it all else holds.
    drop(std::fs::write(format!("/proc/{pid}/oom_score_adj"), "300"));
    Ok(pid)
}

/// Points this process's own output at nothing, so that the node sees the end of the script's.
pub(super) fn let_go_of_output() -> Result<(), Errno> {
    let null = OpenOptions::new().write(true).open("/dev/null").map_err(|_| Errno::ENODEV)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)
}
