//! A file system of some megabytes for one server. It is mounted where only a process of ours that waits and the server see it, and is gone
//! with them. It takes root, as tests of a bare machine have it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;

use super::wait::until;

/// A mounted file system.
pub(crate) struct SmallDisk {
    holder: Child,
    place: PathBuf,
}

impl SmallDisk {
    /// Mounts one at `place`, a directory, and copies what is there into it.
    ///
    /// # Panics
    /// When it cannot be mounted.
    pub(crate) fn at(place: &Path, megabytes: u32) -> Self {
        let script = "set -e; cp -a \"$1\" \"$1.made\"; mount -t tmpfs -o size=$2m small \"$1\"; \
             cp -a \"$1.made/.\" \"$1\"; chown --reference=\"$1.made\" \"$1\"; chmod 0700 \"$1\"; touch \"$1.made/mounted\"; read -r _";
        let mut holder = Command::new("unshare");
        holder.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
        holder.arg(place).arg(megabytes.to_string()).stdin(Stdio::piped());
        let mut holder = holder.spawn().expect("unshare runs");
        let mounted = place.with_extension("made").join("mounted");
        until("a small file system is mounted", || {
            let ended = holder.try_wait().expect("its state");
            assert!(ended.is_none(), "no file system can be mounted: run this test as root");
            mounted.exists().then_some(())
        });
        Self { holder, place: place.to_owned() }
    }

    /// What goes before a command that is to see it.
    pub(crate) fn enter(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--mount=/proc/{}/ns/mnt", self.holder.id())]
    }

    /// A file there, as this process reaches it.
    fn filler(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.place.strip_prefix("/").expect("absolute")).join("filler")
    }

    /// Leaves no room.
    ///
    /// # Panics
    /// When something else goes wrong.
    pub(crate) fn fill(&self) {
        let mut file =
            File::options().append(true).create(true).open(self.filler()).expect("a file");
        let full = loop {
            if let Err(error) = file.write_all(&[7; 4_096]) {
                break error;
            }
        };
        assert_eq!(full.raw_os_error(), Some(Errno::ENOSPC as i32), "{full}");
    }

    /// Leaves room again.
    ///
    /// # Panics
    /// When it was not full.
    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("room is made");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}
