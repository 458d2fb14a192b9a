//! The process of a guard before it has its plan: started for one run, or taken from the nursery.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Receiver as Pipe;
use tokio::process::Command;

use super::nursery::Warm;
use super::spec::{Spec, Streams};
use super::{nursery, sweep};
use soloist_guard::descriptors;
use soloist_guard::message::WORD;
use soloist_process::sabotage;

/// A guard that waits for its plan.
pub(super) struct Guard {
    pub(super) socket: OwnedFd,
    pub(super) process: Process,
    pub(super) stdout: Option<Pipe>,
    pub(super) stderr: Option<Pipe>,
}

/// A guard's process. Another process may get its number once its end was awaited.
pub(super) struct Process {
    pub(super) pid: Pid,
    from: From,
}

enum From {
    /// This process started it.
    Start(tokio::process::Child),
    /// Its nursery forked it.
    Nursery(AsyncFd<OwnedFd>),
}

impl Process {
    /// Waits until it has ended, and reaps it.
    pub(super) async fn reaped(self) {
        match self.from {
            From::Start(mut child) => drop(child.wait().await),
            From::Nursery(process) => {
                while !nursery::reap(self.pid) {
                    // Readable from its end on.
                    drop(process.readable().await);
                }
            }
        }
        sweep::forget(self.pid);
    }
}

impl Guard {
    /// One that `exe` becomes.
    pub(super) fn started(exe: &Path, spec: &Spec) -> io::Result<Self> {
        let (socket, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let mut command = Command::new(exe);
        command
            .arg0(format!("soloist guard of {}", spec.job))
            .arg(WORD)
            .env_clear()
            .envs(sabotage::inherited())
            .envs(descriptors::inherited())
            .stdin(Stdio::from(theirs));
        if !matches!(spec.streams, Streams::Inherited) {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut guards = sweep::guards();
        let mut guard = command.spawn()?;
        let pid = guard.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number was started"))?;
        guards.employ(pid);
        drop(guards);
        let (stdout, stderr) = (guard.stdout.take(), guard.stderr.take());
        Ok(Self {
            socket,
            stdout: stdout.map(|pipe| Pipe::from_owned_fd(pipe.into_owned_fd()?)).transpose()?,
            stderr: stderr.map(|pipe| Pipe::from_owned_fd(pipe.into_owned_fd()?)).transpose()?,
            process: Process { pid, from: From::Start(guard) },
        })
    }

    /// One that waited in a nursery.
    pub(super) fn warm(warm: Warm) -> io::Result<Self> {
        let Warm { pid, process, socket, stdout, stderr } = warm;
        sweep::guards().employ(pid);
        Ok(Self {
            socket,
            process: Process { pid, from: From::Nursery(process) },
            stdout: Some(Pipe::from_owned_fd(stdout)?),
            stderr: Some(Pipe::from_owned_fd(stderr)?),
        })
    }
}
