//! The socket file: made so that nobody but user and group may connect from its first instant on, and made again when it was removed.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Group, chown, getpid};

/// Members of it may connect, where it exists.
pub const GROUP: &str = "soloist-programs";

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

    /// Makes it again when somebody has removed it. What was accepted stays.
    pub(super) fn look(&mut self) {
        if std::fs::symlink_metadata(&self.path).is_err()
            && let Ok((listener, made)) = listen(&self.path)
        {
            (self.listener, self.made) = (listener, made);
        }
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
    // By way of its directory, so that no path is too long; under another name, so that whoever finds the file can connect.
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
    let ready = || -> std::io::Result<(u64, u64)> {
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
