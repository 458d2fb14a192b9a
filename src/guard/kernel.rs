//! The one file that must talk to the kernel in ways the compiler cannot check: what happens between fork and exec,
//! and pidfds, for which there is no safe wrapper.
//!
//! Nothing may be added here that a system call wrapper elsewhere can do. Between fork and exec only async-signal-safe
//! calls are allowed (signal-safety(7)): no allocation, no locks, no formatting.
#![expect(
    unsafe_code,
    reason = "pre_exec runs between fork and exec, pidfds are bare numbers; each block says why it is sound"
)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, getpid, getppid, setsid, write};

use super::message::Plan;
use crate::clock;
use crate::domain::time::Boot;

/// Dispositions that a process inherits and that would make a script deaf, or a guard blind to its children.
const INHERITED: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGPIPE,
    Signal::SIGALRM,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCHLD,
];

/// Undoes what `nohup` and its like left behind. With SIGCHLD ignored no child could be waited for at all.
pub(super) fn reset_signals() -> Result<(), Errno> {
    for inherited in INHERITED {
        // SAFETY: SIG_DFL installs no handler, so no code of ours can run in signal context.
        unsafe { signal(inherited, SigHandler::SigDfl) }?;
    }
    Ok(())
}

/// Closes what the node was started with and did not know of: a listening socket, a lock or a file of credentials is
/// no business of a guard or its script.
///
/// Only for the very beginning of a process that opened nothing yet.
pub(super) fn close_inherited() -> Result<(), Errno> {
    // SAFETY: close_range(2) takes integers; nothing in this process owns a descriptor above standard error yet.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
    Errno::result(result).map(drop)
}

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
    // SAFETY: the closure only makes async-signal-safe system calls (setsid, prctl, sigaction, sigprocmask, open,
    // write, close, getppid, clock_gettime), allocates nothing, and returns errors without formatting.
    unsafe {
        script.pre_exec(move || {
            setsid()?;
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            reset_signals()?;
            SigSet::empty().thread_set_mask()?;
            // Before exec, so that no child of the script can miss it. When memory is short the script goes, not its
            // guard; raising is always allowed, and without it all else holds.
            let score = c"/proc/self/oom_score_adj";
            if let Ok(file) = open(score, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
                write(&file, b"300").ok();
            }
            // The guard may have died before the prctl; and a start that took too long must not happen.
            if getppid() != guard || clock::boot() >= deadline {
                return Err(Errno::ETIME.into());
            }
            Ok(())
        });
    }
    let child = script.spawn()?;
    Ok(Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?))
}

/// Points this process's own output at nothing, so that the node sees the end of the script's.
pub(super) fn let_go_of_output() -> Result<(), Errno> {
    let null = OpenOptions::new().write(true).open("/dev/null").map_err(|_| Errno::ENODEV)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)
}

/// A handle to the process that has this number *now*; signals through it never hit a later bearer of the number.
pub(super) fn pidfd(pid: Pid) -> Result<OwnedFd, Errno> {
    // SAFETY: pidfd_open(2) takes two integers and touches no memory.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })?;
    let fd = i32::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us, close-on-exec, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to the process behind a pidfd.
pub(super) fn signal_pidfd(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    let (fd, signal) = (process.as_raw_fd(), signal as i32);
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: pidfd_send_signal(2) takes integers and a null pointer, which means "as kill(2) would".
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, 0) };
    Errno::result(result).map(drop)
}
