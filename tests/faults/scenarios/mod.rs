//! The named scenarios: one fault each, always the same way. A bug planted in a protection must make its scenario fail.
//!
//! Whatever a scenario looks at besides, each ends alike: every job still acts, is switched off, no page says `off`
//! while a process lives, and the records show no overlap.

mod late;
mod network;
mod nodes;
mod scripts;
mod sqlite;
mod stores;
mod turns;

use std::path::Path;
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::time::Boot;

use crate::cluster::{Cluster, Options};
use crate::machine::in_time;

/// The only job of most scenarios.
const JOB: usize = 0;
/// Whatever a wanted job may have to wait for.
const BACK_WITHIN: Duration = Duration::from_secs(20);

/// One of them.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Given a directory of its own.
    options: fn(&Path) -> Options,
    /// Answers the take-overs that it has seen; panics when something is not as promised.
    act: fn(&Cluster) -> Vec<Duration>,
    /// It shows a documented limit: what the records say is judged by the scenario itself.
    limit: bool,
}

/// All of them, in the order in which they are run.
pub(crate) static ALL: &[Scenario] = &[
    nodes::PAUSED_NODE,
    nodes::DOUBLE_FORKED_DAEMON,
    nodes::STUBBORN_HAND_OVER,
    nodes::STUBBORN_STOP,
    nodes::STALE_TOKEN,
    nodes::WALL_CLOCK_STEP,
    late::SUSPENDED_MACHINE,
    nodes::NODE_AND_GUARD_KILLED,
    scripts::LATE_MESSAGE,
    scripts::GUARD_FROZEN,
    scripts::GUARD_FROZEN_NODE_CUT,
    scripts::GUARD_KILLED,
    scripts::SCRIPT_KILLED,
    scripts::COMET,
    scripts::FORKER,
    scripts::CHATTY,
    scripts::GUARD_FROZEN_NODE_DEAD,
    network::CUT_NODE,
    network::CUT_TO_STORE,
    network::CUT_FROM_STORE,
    network::SLOW_STORE,
    network::RESETS,
    stores::REDIS_RESTART_AOF,
    stores::REDIS_FROZEN,
    stores::FLUSHALL_CUT_HOLDER,
    stores::RESTART_EMPTY_CUT_HOLDER,
    stores::RESTART_EMPTY_NEW_NODE,
    stores::FAIL_OVER_CUT_HOLDER,
    stores::OUT_OF_MEMORY,
    stores::READ_ONLY,
    sqlite::DISK_FULL,
    turns::TURNS,
];

impl Scenario {
    /// Runs it in `directory`.
    pub(crate) fn run(&self, directory: &Path) -> Result<String, Vec<String>> {
        let cluster = Cluster::start(directory, (self.options)(directory));
        let _judged = (!self.limit).then(|| cluster.overlaps_come_first());
        let take_overs = (self.act)(&cluster);
        let mut wrongs = Vec::new();
        match cluster.until_all_act(boot(), BACK_WITHIN) {
            Ok(_) => wrongs.extend(cluster.switch_off()),
            // On a machine that takes its time away it need not be wrong.
            Err(wrong) => panic!("{wrong}"),
        }
        wrongs.extend(cluster.went_back());
        if !self.limit {
            wrongs.extend(cluster.wrongs());
        }
        if !wrongs.is_empty() {
            return Err(wrongs);
        }
        let worst = take_overs.iter().max();
        let worst = worst.map_or("none".to_owned(), |worst| format!("{} ms", worst.as_millis()));
        let verdict = if self.limit { "only the token protects" } else { "0 overlaps" };
        Ok(format!("ok, {} starts, worst take-over {worst}, {verdict}", cluster.starts()))
    }
}

/// Waits for the run after that of `token`; how long after `at` it acted first.
fn taken_over(cluster: &Cluster, at: Boot, token: u64) -> Duration {
    Boot(cluster.until_after(JOB, token).first).since(at)
}

/// Lets the job act for `time`, and holds that it is the same run all along.
fn goes_on_for(cluster: &Cluster, time: Duration) {
    let (begun, starts) = (boot(), cluster.starts());
    while boot().since(begun) < time {
        cluster.until_more(JOB, 20);
    }
    let now = cluster.starts();
    in_time(now == starts, || format!("the same run goes on: {starts} starts, then {now}"));
}
