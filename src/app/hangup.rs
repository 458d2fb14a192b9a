//! SIGHUP: by a process it means "read the configuration again", from the kernel that the terminal is gone.
//!
//! A plain handler cannot tell the two apart, so the signal is blocked in every thread and read from a file descriptor
//! that says who sent it. A guard empties the mask again before it starts a script.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::sync::mpsc;

use soloist_runner::signals;

/// What a SIGHUP asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// To read the configuration again.
    Reload,
    /// To end in order: the terminal is gone.
    End,
    /// Nothing: the terminal is gone, and this process was started to outlive it (`nohup`).
    Nothing,
}

/// Blocks the signal in this thread and those that it starts. To be called before there are others.
///
/// # Errors
/// When the kernel refuses.
pub fn block() -> io::Result<()> {
    Ok(only().thread_block()?)
}

fn only() -> SigSet {
    SigSet::from(Signal::SIGHUP)
}

/// Where the signal is received.
pub(super) struct Hangups(mpsc::UnboundedReceiver<Asked>);

impl Hangups {
    /// Listens, in a thread of its own, for as long as this process lives; [`block`] has been called.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = SignalFd::with_flags(&only(), SfdFlags::SFD_CLOEXEC)?;
        let ignored = signals::is_ignored(Signal::SIGHUP);
        let mut on_a_terminal = has_terminal();
        let (heard, hangups) = mpsc::unbounded_channel();
        let listening = move || {
            loop {
                let by_the_kernel = match signals.read_signal() {
                    Ok(Some(signal)) => signal.ssi_code == libc::SI_KERNEL,
                    Ok(None) | Err(Errno::EINTR) => continue,
                    Err(error) => {
                        tracing::error!(%error, "SIGHUP is not received any more");
                        return;
                    }
                };
                // A shell that loses its terminal passes the signal on to what it has put into the background.
                let gone = by_the_kernel || on_a_terminal && !has_terminal();
                on_a_terminal &= !gone;
                if heard.send(meaning(gone, ignored)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("soloist-hangup".to_owned()).spawn(listening)?;
        Ok(Self(hangups))
    }

    /// What the next one asks for.
    pub(super) async fn next(&mut self) -> Asked {
        match self.0.recv().await {
            Some(asked) => asked,
            None => std::future::pending().await,
        }
    }
}

fn meaning(terminal_is_gone: bool, ignored: bool) -> Asked {
    match (terminal_is_gone, ignored) {
        (false, _) => Asked::Reload,
        (true, false) => Asked::End,
        (true, true) => Asked::Nothing,
    }
}

/// Whether this process still has a controlling terminal.
fn has_terminal() -> bool {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open("/dev/tty").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lost_terminal_ends_a_node_and_nohup_outlives_it() {
        assert_eq!(meaning(false, false), Asked::Reload);
        assert_eq!(meaning(false, true), Asked::Reload, "nohup does not forbid to reload");
        assert_eq!(meaning(true, false), Asked::End);
        assert_eq!(meaning(true, true), Asked::Nothing);
    }
}
