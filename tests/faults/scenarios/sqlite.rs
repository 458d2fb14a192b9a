//! Several nodes of one machine on one SQLite file, on a file system that is full.

use std::path::{Path, PathBuf};
use std::time::Duration;

use soloist::clock::boot;

use super::{JOB, Scenario, taken_over};
use crate::cluster::{Cluster, Options, StoreKind};
use crate::file;
use crate::wait::until;
use crate::witness::Mode;

fn small(directory: &Path) -> Options {
    let place = file::small_place(directory, 2);
    Options { store: StoreKind::Sqlite(place), ..Options::one(Mode::Stubborn) }
}

fn place(cluster: &Cluster) -> PathBuf {
    cluster.directory.join("small")
}

/// The disk is full for longer than the lease, then has room again; then a node is killed while it is full.
pub(super) const DISK_FULL: Scenario = Scenario {
    name: "disk_full",
    options: small,
    act: |cluster| {
        cluster.until_more(JOB, 100);
        file::fill(&place(cluster));
        let begun = boot();
        until("two leases have passed", || {
            (boot().since(begun) > Duration::from_secs(4)).then_some(())
        });
        file::make_room(&place(cluster));
        cluster.until_all_act(boot(), super::BACK_WITHIN).expect("it acts again");
        cluster.until_more(JOB, 100);
        file::fill(&place(cluster));
        let holder = cluster.holder(JOB);
        let token = cluster.judge(JOB, |judge| judge.newest().expect("a run").token);
        let at = holder.kill(Duration::ZERO).expect("it lives");
        until("nobody lives", || cluster.living(JOB).is_empty().then_some(()));
        file::make_room(&place(cluster));
        vec![taken_over(cluster, at, token)]
    },
    limit: false,
};
