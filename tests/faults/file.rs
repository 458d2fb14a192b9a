//! The SQLite file under test, on a small file system of its own, and what is done to it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::network;

/// A directory in `directory` on a file system of `megabytes`, mounted where only this process and its children see it.
///
/// # Panics
/// When it cannot be mounted.
pub(crate) fn small_place(directory: &Path, megabytes: u32) -> PathBuf {
    let place = directory.join("small");
    fs::create_dir_all(&place).expect("a directory");
    assert!(
        network::is_real(),
        "a small file system can be mounted neither as root nor in a user namespace here: run this as root"
    );
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "faults"])
        .arg(&place)
        .status()
        .expect("mount starts");
    assert!(mounted.success(), "no small file system could be mounted");
    place
}

/// Takes the file system away again, with all that is on it; of any other directory nothing.
pub(crate) fn unmount(place: &Path) {
    // One that still has an open file goes when that is closed.
    Command::new("umount").arg("--lazy").arg(place).status().ok();
}

/// The file in `place` that nodes are given.
pub(crate) fn store_in(place: &Path) -> PathBuf {
    place.join("soloist.db")
}

/// Leaves no room in `place`.
pub(crate) fn fill(place: &Path) {
    let mut file = File::create(filler(place)).expect("a file");
    let full = loop {
        if let Err(error) = file.write_all(&[0; 512]) {
            break error;
        }
    };
    assert_eq!(full.raw_os_error(), Some(nix::errno::Errno::ENOSPC as i32), "{full}");
}

/// Makes room again.
pub(crate) fn make_room(place: &Path) {
    fs::remove_file(filler(place)).expect("room is made");
}

fn filler(place: &Path) -> PathBuf {
    place.join("filler")
}

/// Another program writes to the store for so long, and then writes nothing.
pub(crate) fn hold(place: &Path, lasts: Duration) {
    let connection = rusqlite::Connection::open(store_in(place)).expect("the store's file");
    // Nodes write as well, and it waits for its turn.
    connection.busy_timeout(Duration::from_secs(30)).expect("a time");
    connection.execute_batch("BEGIN IMMEDIATE").expect("a turn");
    std::thread::sleep(lasts);
    connection.execute_batch("ROLLBACK").expect("nothing is written");
}
