//! Starts a watcher of programs (`guard/watcher`), which outlives this node.

use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, send, setsockopt, socketpair, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::unistd::Pid;

use super::sweep;
use soloist_guard::descriptors;
use soloist_guard::message::WORD;
use soloist_guard::watcher::{WATCHER, Watching};
use soloist_process::sabotage;

/// How long it may take to begin.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts one, and waits until it listens.
///
/// # Errors
/// Why it does not, with the remedy.
pub fn start(watching: &Watching) -> Result<(), String> {
    match begin(watching) {
        Ok(said) => said,
        Err(error) => Err(format!("no watcher can be started: {error}")),
    }
}

fn begin(watching: &Watching) -> io::Result<Result<(), String>> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
    let patience =
        TimeVal::milliseconds(i64::try_from(PATIENCE.as_millis()).map_err(io::Error::other)?);
    setsockopt(&ours, sockopt::ReceiveTimeout, &patience)?;
    let mut command = Command::new(Path::new("/proc/self/exe"));
    std::os::unix::process::CommandExt::arg0(&mut command, format!("{:160}", "soloist watcher"));
    command
        .args([WORD, WATCHER])
        .current_dir("/")
        .env_clear()
        .envs(sabotage::inherited())
        .envs(descriptors::inherited())
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut guards = sweep::guards();
    let mut process = command.spawn()?;
    let pid = Pid::from_raw(i32::try_from(process.id()).map_err(io::Error::other)?);
    guards.nurse(pid);
    drop(guards);
    // Reaped when it ends, by a thread that does nothing else: it may outlive this node.
    std::thread::Builder::new().name("watcher".to_owned()).spawn(move || {
        process.wait().ok();
        sweep::guards().nurse_no_more(pid);
    })?;
    send(ours.as_raw_fd(), &serde_json::to_vec(watching)?, MsgFlags::MSG_NOSIGNAL)?;
    // A file by type only: it reads one message.
    let mut said = vec![0; 4_096];
    let length = std::fs::File::from(ours).read(&mut said)?;
    Ok(serde_json::from_slice(&said[..length])?)
}
