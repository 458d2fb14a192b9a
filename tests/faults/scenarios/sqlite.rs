//! Several nodes of one machine on one SQLite file, on a file system that is full.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use soloist::clock::boot;

use super::{JOB, Scenario, taken_over};
use crate::cluster::{Cluster, Options, StoreKind};
use crate::network;
use crate::wait::until;
use crate::witness::Mode;

/// A file system of a megabyte or two, mounted where only this process and its children see it.
fn small(directory: &Path) -> Options {
    let place = directory.join("small");
    fs::create_dir_all(&place).expect("a directory");
    assert!(
        network::is_real(),
        "a small file system can be mounted neither as root nor in a user namespace here: run this as root"
    );
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "faults"])
        .arg(&place)
        .status()
        .expect("mount starts");
    assert!(mounted.success(), "no small file system could be mounted");
    Options { store: StoreKind::Sqlite(place), ..Options::one(Mode::Stubborn) }
}

fn fill(cluster: &Cluster) {
    let mut file = File::create(cluster.directory.join("small/filler")).expect("a file");
    let full = loop {
        if let Err(error) = file.write_all(&[0; 512]) {
            break error;
        }
    };
    assert_eq!(full.raw_os_error(), Some(nix::errno::Errno::ENOSPC as i32), "{full}");
}

fn make_room(cluster: &Cluster) {
    fs::remove_file(cluster.directory.join("small/filler")).expect("room is made");
}

/// The disk is full for longer than the lease, then has room again; then a node is killed while it is full.
pub(super) const DISK_FULL: Scenario = Scenario {
    name: "disk_full",
    options: small,
    act: |cluster| {
        cluster.until_more(JOB, 100);
        fill(cluster);
        let begun = boot();
        until("two leases have passed", || {
            (boot().since(begun) > Duration::from_secs(4)).then_some(())
        });
        make_room(cluster);
        cluster.until_all_act(boot(), super::BACK_WITHIN).expect("it acts again");
        cluster.until_more(JOB, 100);
        fill(cluster);
        let holder = cluster.holder(JOB);
        let token = cluster.judge(JOB, |judge| judge.newest().expect("a run").token);
        let at = holder.kill(Duration::ZERO).expect("it lives");
        until("nobody lives", || cluster.living(JOB).is_empty().then_some(()));
        make_room(cluster);
        vec![taken_over(cluster, at, token)]
    },
    limit: false,
};
