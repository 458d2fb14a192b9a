//! The socket file: only user and group may connect, from its first instant on; it is made again when it was removed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, setsockopt, socket, sockopt};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Group, chown, getpid};

/// Members of it may connect, where it exists.
pub const GROUP: &str = "soloist-programs";

/// Whose the socket file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Own,
    /// Of another watcher.
    Another,
}

/// Holds a file beside the socket, so that nobody else starts to listen for it meanwhile.
///
/// # Errors
/// Another holds it, or the directory cannot be written.
pub fn alone(path: &Path) -> io::Result<Flock<File>> {
    let mut file = path.as_os_str().to_owned();
    file.push(".lock");
    let mut how = File::options();
    let file =
        how.create(true).truncate(false).write(true).mode(0o600).open(PathBuf::from(file))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

/// Connects without waiting for who listens but does not accept.
///
/// # Errors
/// Nobody listens, or too many wait already (EAGAIN).
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    nix::sys::socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    let line = UnixStream::from(socket);
    line.set_nonblocking(false)?;
    Ok(line)
}

/// The file, and who listens behind it.
pub(super) struct SocketFile {
    pub(super) path: PathBuf,
    pub(super) listener: UnixListener,
    /// Device and number of the file.
    made: (u64, u64),
}

impl SocketFile {
    /// Makes it.
    ///
    /// # Errors
    /// Why it cannot be, with the remedy.
    pub(super) fn make(path: PathBuf) -> Result<Self, String> {
        let (listener, made) = listen(&path)?;
        Ok(Self { path, listener, made })
    }

    /// Whose the file is; made again when somebody has removed it, or nobody listens behind the one in its place. What was accepted stays.
    pub(super) fn look(&mut self) -> Place {
        let now = std::fs::symlink_metadata(&self.path).ok();
        if now.as_ref().is_some_and(|file| (file.dev(), file.ino()) == self.made) {
            return Place::Own;
        }
        // No node starts a watcher meanwhile; else another second will do.
        let Ok(_alone) = alone(&self.path) else { return Place::Own };
        if now.is_some_and(|file| file.file_type().is_socket()) && connect(&self.path).is_ok() {
            return Place::Another;
        }
        if let Ok((listener, made)) = listen(&self.path) {
            (self.listener, self.made) = (listener, made);
        }
        Place::Own
    }

    /// Removes it, unless another has taken its place.
    pub(super) fn remove(&self) {
        let now = std::fs::symlink_metadata(&self.path).ok();
        if now.is_some_and(|file| (file.dev(), file.ino()) == self.made) {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

fn listen(path: &Path) -> Result<(UnixListener, (u64, u64)), String> {
    let shown = path.display();
    let no = |what: &str, error: &dyn std::fmt::Display| format!("{shown}: {what}: {error}");
    if std::fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
        return Err(format!(
            "{shown} is no socket: remove it, or choose another path for `lifeline`"
        ));
    }
    let (dir, name) = path.parent().zip(path.file_name()).ok_or_else(|| {
        format!("{shown} is not the path of a file: choose another for `lifeline`")
    })?;
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let folder = File::open(dir).map_err(|error| {
        no(&format!("make the directory {} for the node's user", dir.display()), &error)
    })?;
    // By way of its directory, so that no path is too long; under another name, so that a program that finds the file can connect.
    let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let new = through.join(format!(".lifeline-{}", getpid()));
    std::fs::remove_file(&new).ok();
    let before = umask(Mode::from_bits_truncate(0o117));
    let bound = UnixListener::bind(&new);
    umask(before);
    let listener = bound
        .map_err(|error| no("the node's user must be able to write in its directory", &error))?;
    if let Ok(Some(group)) = Group::from_name(GROUP) {
        // Without that right only the own group may connect; `soloist doctor` says so.
        chown(&new, None, Some(group.gid)).ok();
    }
    let ready = || -> io::Result<(u64, u64)> {
        listener.set_nonblocking(true)?;
        // Also for what is written before it is accepted.
        setsockopt(&listener, sockopt::PassCred, &true)?;
        std::fs::rename(&new, through.join(name))?;
        let file = std::fs::symlink_metadata(path)?;
        Ok((file.dev(), file.ino()))
    };
    let made = ready().map_err(|error| no("cannot be made", &error))?;
    Ok((listener, made))
}
