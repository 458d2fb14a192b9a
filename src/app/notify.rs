//! Tells a service manager that this node is ready, that it still lives, and that it ends (sd_notify(3)); nothing where none asks.
//!
//! Ready is a node that listens: one whose store is away serves its page, and a manager that ended it would make nothing better.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

/// The socket of the manager that started this process, if one did.
#[derive(Clone, Default)]
pub(super) struct Manager(Option<Arc<UnixDatagram>>);

impl Manager {
    /// The one that `$NOTIFY_SOCKET` names. An address that cannot be used is logged, and no manager is told anything.
    pub(super) fn of_environment() -> Self {
        let Some(address) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())
        else {
            return Self::default();
        };
        match connect(&address) {
            Ok(socket) => Self(Some(Arc::new(socket))),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used: the service manager is told nothing");
                Self::default()
            }
        }
    }

    /// This node listens; from now on it also says that it lives, as often as the manager asks for.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
        if let (Some(_), Some(patience)) = (&self.0, watchdog()) {
            let manager = self.clone();
            // Twice within the patience, as sd_watchdog_enabled(3) advises. By a task: when no task runs any more, the manager is not told.
            let mut beat = tokio::time::interval(patience / 2);
            tokio::spawn(async move {
                loop {
                    beat.tick().await;
                    manager.tell("WATCHDOG=1");
                }
            });
        }
    }

    /// This node hands its jobs over and ends.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    fn tell(&self, what: &str) {
        let Some(socket) = &self.0 else { return };
        if let Err(error) = socket.send(what.as_bytes()) {
            tracing::debug!(%error, what, "the service manager was not told");
        }
    }
}

/// A path, or behind `@` a name of the abstract namespace (unix(7)).
fn connect(address: &OsString) -> io::Result<UnixDatagram> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsString::from_vec(path.to_vec()))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    // A manager that does not read must not hold a node up.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// How long the manager waits for a sign of life, if it waits for this process.
fn watchdog() -> Option<Duration> {
    let number = |name| std::env::var_os(name)?.into_string().ok()?.parse::<u64>().ok();
    let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    let patience = number("WATCHDOG_USEC").filter(|micros| ours && *micros > 1)?;
    Some(Duration::from_micros(patience))
}
