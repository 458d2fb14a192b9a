//! The one file that must talk to the kernel in ways the compiler cannot check: what happens between fork and exec,
//! the forks, descriptors by number, and pidfds and raw wait statuses, for which there is no safe wrapper.
//!
//! Nothing may be added here that a system call wrapper elsewhere can do. Between fork and exec only async-signal-safe
//! calls are allowed (signal-safety(7)): no allocation, no locks, no formatting.
#![expect(
    unsafe_code,
    reason = "forks, pre_exec, bare numbers of pidfds and wait statuses; each block says why it is sound"
)]

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::stat::Mode;
use nix::unistd::{
    Gid, Pid, Uid, chdir, getpid, getppid, setgroups, setresgid, setresuid, setsid, write,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::message::{Plan, Work};
use soloist_domain::account::Account;
use soloist_domain::job::Exit;
use soloist_domain::time::Boot;
use soloist_process::clock;

/// How much sooner than its guard a script goes when memory is short (proc_pid_oom_score_adj(5)).
const OOM_SCORE: &[u8] = b"300";

/// The capabilities that a script keeps if its node has them (capabilities(7)): what scripts of root do on any day, from
/// chown to ping, sudo and cron. All others are gone for it and its children: with them it could read or change a
/// process that holds the store's password, the kernel, or the disk below the files. ADR 0019 says why which.
const KEPT: u64 = 1 << 0 // CHOWN
    | 1 << 1 // DAC_OVERRIDE
    | 1 << 3 // FOWNER
    | 1 << 4 // FSETID
    | 1 << 5 // KILL
    | 1 << 6 // SETGID
    | 1 << 7 // SETUID
    | 1 << 8 // SETPCAP
    | 1 << 10 // NET_BIND_SERVICE
    | 1 << 13 // NET_RAW
    | 1 << 14 // IPC_LOCK
    | 1 << 15 // IPC_OWNER
    | 1 << 18 // SYS_CHROOT
    | 1 << 23 // SYS_NICE
    | 1 << 24 // SYS_RESOURCE
    | 1 << 28 // LEASE
    | 1 << 29 // AUDIT_WRITE
    | 1 << 31; // SETFCAP

/// Undoes what `nohup` and its like left behind, a Python program for instance an ignored SIGXFSZ. A process inherits what is ignored:
/// a script would be deaf, and with SIGCHLD ignored no child could be waited for at all.
pub(super) fn reset_signals() -> Result<(), Errno> {
    // signal(7): the kernel allows no change of these two, so no process can have ignored them.
    let inherited = |signal: &Signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP);
    for inherited in Signal::iterator().filter(inherited) {
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
    close_all_but(None)
}

/// Closes what a copy of another process has no business with: all but standard input, output and error, and `kept`.
///
/// A value that owns another descriptor must never be dropped in this process: it continues without returning.
pub(super) fn close_all_but(kept: Option<RawFd>) -> Result<(), Errno> {
    let kept = kept.and_then(|fd| u32::try_from(fd).ok()).filter(|fd| *fd > 2);
    let (before, after) = match kept {
        Some(kept) => ((kept > 3).then_some((3, kept - 1)), kept + 1),
        None => (None, 3),
    };
    for (first, last) in before.into_iter().chain([(after, u32::MAX)]) {
        // SAFETY: close_range(2) takes integers. The callers are at the beginning of a process, or of a copy of one that
        // never returns, so nothing that owns such a descriptor is used or dropped after this.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
        Errno::result(result)?;
    }
    Ok(())
}

/// Removes a variable from the environment of this process, and its value from the memory that `/proc/PID/environ` shows.
/// Only for a process with a single thread.
pub(super) fn forget_variable(name: &OsStr) {
    let Ok(in_c) = CString::new(name.as_bytes()) else { return };
    // SAFETY: getenv(3) gives null, or the place of a value that ends with a NUL; all bytes before that are this process's
    // own and writable. There is no other thread that could read or change the environment meanwhile.
    unsafe {
        let value = libc::getenv(in_c.as_ptr());
        if !value.is_null() {
            for at in 0..libc::strlen(value) {
                // Volatile: no code reads it again, and it must still be written.
                value.add(at).write_volatile(b'*'.cast_signed());
            }
        }
        std::env::remove_var(name);
    }
}

/// Sets the soft limit for core dumps, in bytes; returns the one before.
pub(super) fn limit_core(soft: u64) -> Result<u64, Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) fills the one structure that it is given, which outlives the call.
    Errno::result(unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) })?;
    let before = limit.rlim_cur;
    limit.rlim_cur = soft.min(limit.rlim_max);
    // SAFETY: setrlimit(2) only reads the structure.
    Errno::result(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) })?;
    Ok(before)
}

/// What capset(2) reads and capget(2) fills: two halves of 32 capabilities each.
#[repr(C)]
#[derive(Default)]
struct CapabilityHalf {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up all capabilities but [`KEPT`] for what this process execs, and for all that comes from that. Only between
/// fork and exec. A node that was itself denied CAP_SETPCAP cannot narrow what root gets, and leaves it.
fn give_up_capabilities() -> Result<(), Errno> {
    for capability in 0..64 {
        if KEPT & (1 << capability) != 0 {
            continue;
        }
        // SAFETY: prctl(2) with PR_CAPBSET_DROP takes integers and touches no memory.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match Errno::result(dropped) {
            Ok(_) => {}
            // Past the last one that this kernel knows; or it may not.
            Err(Errno::EINVAL | Errno::EPERM) => break,
            Err(error) => return Err(error),
        }
    }
    // What is inheritable would come back by the exec. Ambient ones go with it.
    let kept = [KEPT & u64::from(u32::MAX), KEPT >> 32];
    let mut header = [0x2008_0522u32, 0];
    let mut halves = [CapabilityHalf::default(), CapabilityHalf::default()];
    // SAFETY: both calls take a header of two integers, in which the kernel may write the version that it knows. For this
    // version capget(2) fills two halves. All of it outlives the call.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_capget, header.as_mut_ptr(), halves.as_mut_ptr())
    })?;
    for (half, kept) in halves.iter_mut().zip(kept) {
        half.inheritable &= u32::try_from(kept).unwrap_or(0);
    }
    // SAFETY: as above; capset(2) only reads the halves.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_capset, header.as_mut_ptr(), halves.as_ptr())
    })?;
    Ok(())
}

/// An account as the child needs it between fork and exec, where nothing may be allocated.
struct Becoming {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    dir: CString,
}

impl Becoming {
    fn of(account: &Account, plan: &Plan) -> io::Result<Self> {
        Ok(Self {
            uid: Uid::from_raw(account.uid),
            gid: Gid::from_raw(account.gid),
            groups: account.groups.iter().copied().map(Gid::from_raw).collect(),
            dir: CString::new(plan.dir.as_os_str().as_bytes())?,
        })
    }

    /// From here on this process is that user, for good. Only between fork and exec.
    fn become_it(&self) -> Result<(), Errno> {
        if self.uid != Uid::effective() || self.uid.is_root() {
            // So that the script may open its own output again (/dev/stderr). A pipe that went elsewhere may refuse.
            for output in [1, 2] {
                // SAFETY: fchown(2) takes integers and touches no memory; -1 leaves the group as it is.
                unsafe { libc::fchown(output, self.uid.as_raw(), libc::gid_t::MAX) };
            }
            setgroups(&self.groups)?;
            setresgid(self.gid, self.gid, self.gid)?;
            setresuid(self.uid, self.uid, self.uid)?;
            // Until the exec this is a copy of the guard; fs.suid_dumpable may have opened it to that user.
            nix::sys::prctl::set_dumpable(false)?;
        }
        nix::sys::prctl::set_no_new_privs()?;
        // A script that may not enter it fails with that message, and does not start in a directory where it can open nothing.
        chdir(self.dir.as_c_str())
    }
}

/// Takes possession of a descriptor that has just come with a message.
pub fn received(fd: RawFd) -> OwnedFd {
    // SAFETY: recvmsg(2) has made this descriptor for us, and the only caller takes each of them once.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// What the script passes on its way from fork to exec, in this order.
#[derive(Default)]
pub(super) struct Doors {
    /// The `cgroup.procs` of its cgroup.
    pub(super) cgroup: Option<File>,
    /// A socket on which it shows itself: the kernel tells the other end who it is.
    pub(super) roll_call: Option<RawFd>,
}

/// Starts the script in a session of its own, to die with this process, unless the deadline has come.
///
/// Its output goes where this process's output goes, its input is empty or a task's, and its environment is `plan.env`
/// and the `SOLOIST_` names that tell the script its job, run, node and token, nothing else. It has few capabilities,
/// also as root, and is the user that the plan names.
pub(super) fn start(plan: &Plan, deadline: Boot, doors: Doors) -> io::Result<Pid> {
    let child = command(plan, deadline, doors)?.spawn()?;
    let child = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    score(child);
    Ok(child)
}

/// As [`start`], under the number `number` in this pid namespace and in the one above, if that is free in both; under
/// any other if not, or if this kernel cannot, or if it is 0.
///
/// So `$$` in the script is also its number outside, although it lives in a namespace.
pub(super) fn start_numbered(
    plan: &Plan,
    deadline: Boot,
    doors: Doors,
    number: i32,
) -> io::Result<Pid> {
    let mut script = command(plan, deadline, doors)?;
    let (reading, writing) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    let numbers = [number, number];
    let child = match number {
        0 => fork_as(0, &[])?,
        _ => fork_as(0, &numbers).or_else(|_| fork_as(0, &[]))?,
    };
    let Some(child) = child else {
        // This process has one thread, so its copy may allocate. An exec that succeeds never returns.
        let error = script.exec().raw_os_error().unwrap_or(libc::EINVAL);
        write(&writing, &error.to_ne_bytes()).ok();
        std::process::exit(127);
    };
    drop(writing);
    let mut error = [0; 4];
    // The end of the pipe without a message is a successful exec: the other side was closed by it.
    if nix::unistd::read(&reading, &mut error)? == 0 {
        score(child);
        return Ok(child);
    }
    nix::sys::wait::waitpid(child, None)?;
    Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error)))
}

/// Has a script that runs go before its guard when memory is short, if it could not see to that before its exec: until
/// then its own files in /proc are root's, as those of its guard.
fn score(script: Pid) {
    if !Uid::effective().is_root() {
        std::fs::write(format!("/proc/{script}/oom_score_adj"), OOM_SCORE).ok();
    }
}

fn command(plan: &Plan, deadline: Boot, doors: Doors) -> io::Result<Command> {
    let (command, arguments) = plan.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = getpid();
    let becoming = plan.account.as_ref().map(|one| Becoming::of(one, plan)).transpose()?;
    let core = plan.core;
    let mut script = Command::new(command);
    script
        .args(arguments)
        .current_dir(&plan.dir)
        .env_clear()
        .envs(&plan.env)
        .env("SOLOIST_RUN", plan.run.as_str())
        .env("SOLOIST_NODE", plan.node.as_str())
        .env("SOLOIST_TOKEN", plan.token.to_string());
    match &plan.work {
        Work::Run => script.env("SOLOIST_JOB", plan.job.as_str()).stdin(Stdio::null()),
        Work::Task { input, .. } => script.stdin(in_memory(input)?),
        Work::Turn(_) => script.stdin(Stdio::null()),
    };
    // SAFETY: the closure only makes async-signal-safe system calls (setsid, prctl, sigaction, sigprocmask, open,
    // write, send, close, getrlimit, setrlimit, capget, capset, fchown, setgroups, setresgid, setresuid, chdir, getppid,
    // clock_gettime), allocates nothing, and returns errors without formatting.
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
                write(&file, OOM_SCORE).ok();
            }
            if let Some(door) = &doors.cgroup {
                write(door, b"0")?;
            }
            if let Some(socket) = doors.roll_call {
                send(socket, b"S", MsgFlags::MSG_NOSIGNAL)?;
            }
            if let Some(core) = core {
                limit_core(core).ok();
            }
            give_up_capabilities()?;
            if let Some(becoming) = &becoming {
                becoming.become_it()?;
                // A change of user has cleared it.
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            }
            // The parent may have died before the prctl; and a start that took too long must not happen.
            if getppid() != parent || clock::boot() >= deadline {
                return Err(Errno::ETIME.into());
            }
            Ok(())
        });
    }
    Ok(script)
}

/// A file without a name that holds `text`: unlike a pipe it never fills, whether or not it is read.
fn in_memory(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"task", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// The arguments of clone3(2), as far as they are used; the rest counts as zero.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
}

/// Forks into the new namespaces that `flags` name; `None` is the child. Only for a process with a single thread.
pub(super) fn fork(flags: libc::c_int) -> Result<Option<Pid>, Errno> {
    fork_as(flags, &[])
}

/// Forks a child of this process's *parent*, who reaps it. Only for a process with a single thread.
pub(super) fn fork_sibling() -> Result<Option<Pid>, Errno> {
    fork_as(libc::CLONE_PARENT, &[])
}

/// As [`fork`], with the numbers the child shall have, from its own pid namespace upwards.
fn fork_as(flags: libc::c_int, numbers: &[libc::pid_t]) -> Result<Option<Pid>, Errno> {
    // A sibling takes over the signal of this process; naming one is refused.
    let signal = if flags & libc::CLONE_PARENT == 0 { libc::SIGCHLD } else { 0 };
    let arguments = CloneArguments {
        flags: u64::from(flags.cast_unsigned()),
        exit_signal: u64::from(signal.cast_unsigned()),
        set_tid: if numbers.is_empty() { 0 } else { numbers.as_ptr() as u64 },
        set_tid_size: numbers.len() as u64,
        ..CloneArguments::default()
    };
    // SAFETY: without CLONE_VM and without a stack this is fork(2): the child continues in a copy of everything. Guards
    // have a single thread, so no lock is held by a thread that is not there. The pointers outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>())
    };
    let child = match Errno::result(result) {
        // A seccomp profile cannot look into these arguments, so those of containers refuse the call to a process that may not make
        // namespaces. The older one does the same, as long as there is no number to choose.
        Err(Errno::ENOSYS) if numbers.is_empty() && flags & !libc::CLONE_PARENT == 0 => {
            let [flags, none] = [libc::c_long::from(flags | signal), 0];
            // SAFETY: as above; a stack of zero is a copy of the parent's, and no flag asks for the pointers behind it.
            let result = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
            Errno::result(result)?
        }
        result => result?,
    };
    Ok((child != 0).then(|| Pid::from_raw(i32::try_from(child).unwrap_or(-1))))
}

/// Writes `title` over the arguments of this process, whose place `begins` is as the kernel told it. Only for a process with a
/// single thread that does not read its arguments again.
pub(super) fn overwrite(begins: u64, title: &[u8]) {
    let Ok(begins) = usize::try_from(begins) else { return };
    let place = std::ptr::with_exposed_provenance_mut::<u8>(begins);
    // SAFETY: the kernel put the arguments there, on the stack of the first thread, and `title` is no longer than their room.
    // That is never moved or unmapped, and nothing in this program holds a reference into it.
    unsafe { std::ptr::copy(title.as_ptr(), place, title.len()) };
}

/// A number that no process has now, and that no fork is given until all others were given.
///
/// A number that is only chosen (`set_tid`) leaves the kernel's next one where it was: when its bearer is dead, the next
/// fork may get it. So the kernel itself is let give one, to a process that ends at once.
pub(super) fn spent_number() -> Result<Pid, Errno> {
    extern "C" fn end(_: *mut libc::c_void) -> libc::c_int {
        0
    }
    let mut stack = [0u128; 256];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let above = stack.as_mut_ptr_range().end.cast();
    // SAFETY: the child shares the memory and runs on `stack`, aligned and its own, while this thread waits until it has
    // ended (CLONE_VFORK); it does nothing but return, upon which the C library ends it.
    let pid = Errno::result(unsafe { libc::clone(end, above, flags, std::ptr::null_mut()) })?;
    let pid = Pid::from_raw(pid);
    nix::sys::wait::waitpid(pid, None).map(|_| pid)
}

/// A child that does nothing until it is killed; it dies with this process. Only for a process with a single thread.
pub(super) fn idle_child() -> Result<Pid, Errno> {
    match fork(0)? {
        Some(child) => Ok(child),
        None => {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).ok();
            loop {
                nix::unistd::pause();
            }
        }
    }
}

/// Waits for any child, with `flags` of waitpid(2); `None` when none has ended yet.
///
/// nix's own wrapper loses number and status of a child that a real-time signal has killed.
pub(super) fn wait_any(flags: libc::c_int) -> Result<Option<(Pid, Exit)>, Errno> {
    let mut status = 0;
    // SAFETY: waitpid(2) writes one integer to the place it is given, which outlives the call.
    let pid = Errno::result(unsafe { libc::waitpid(-1, &raw mut status, flags) })?;
    let exit = if libc::WIFEXITED(status) {
        Exit { code: Some(libc::WEXITSTATUS(status)), signal: None }
    } else {
        Exit { code: None, signal: Some(libc::WTERMSIG(status)) }
    };
    Ok((pid != 0).then(|| (Pid::from_raw(pid), exit)))
}

/// Points this process's own input at nothing: an init must not hold its guard's socket open.
pub(super) fn let_go_of_input() -> Result<(), Errno> {
    let null = File::open("/dev/null").map_err(|_| Errno::ENODEV)?;
    nix::unistd::dup2_stdin(&null)
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
    // SAFETY: the kernel has just made this descriptor for us, close-on-exec, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A handle to the process that connected this Unix socket (unix(7), SO_PEERPIDFD), from Linux 6.5 on.
pub(super) fn peer_pidfd(socket: &impl AsRawFd) -> Result<OwnedFd, Errno> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let (mut fd, mut length): (libc::c_int, _) = (-1, 4);
    let place = (&raw mut fd).cast();
    // SAFETY: getsockopt(2) writes at most `length` bytes, the size of `fd`, and the length.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_PEERPIDFD, place, &raw mut length)
    };
    Errno::result(result)?;
    Ok(received(fd))
}

/// Whether the process behind a pidfd has ended.
pub(super) fn is_dead(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Whether this process may send signals to the one behind a pidfd.
pub(super) fn may_signal(process: &OwnedFd) -> Result<(), Errno> {
    send_signal(process, 0)
}

/// The same for the runtime: readable when the process has ended.
pub fn end_of(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let process = pidfd(pid)?;
    // SAFETY: an OwnedFd shows one descriptor only, and that stays open for as long as it is owned, here by the AsyncFd.
    let watched = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
    watched.map_err(|error| error.into_parts().1)
}

/// Sends a signal to the process behind a pidfd.
pub(super) fn signal_pidfd(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    send_signal(process, signal as i32)
}

fn send_signal(process: &OwnedFd, signal: i32) -> Result<(), Errno> {
    let fd = process.as_raw_fd();
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: pidfd_send_signal(2) takes integers and a null pointer, which means "as kill(2) would".
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, 0) };
    Errno::result(result).map(drop)
}
