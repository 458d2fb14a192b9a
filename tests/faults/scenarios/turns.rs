//! Two jobs that take turns, on nodes that are killed, paused, cut off and told to leave: never both at a time.

use std::time::Duration;

use soloist::clock::boot;

use super::{BACK_WITHIN, Scenario};
use crate::cluster::{Cluster, Job, Options};
use crate::machine::holds;
use crate::node::Node;
use crate::proxy::Direction;
use crate::wait::until;
use crate::witness::Mode;

/// Shorter than a run, and much shorter than the leases of the jobs: a run that outlives its turn meets the next one.
const TURN: Duration = Duration::from_secs(1);

/// What is done to a node.
type Act = dyn Fn(&Node);

/// Every fault meets a run in the middle of its turn.
pub(super) const TURNS: Scenario = Scenario {
    name: "turns",
    options: |_| Options {
        jobs: vec![
            Job { name: "stock", mode: Mode::Long },
            Job { name: "prices", mode: Mode::Long },
        ],
        turns: Some(TURN),
        lease: Duration::from_secs(4),
        ..Options::one(Mode::Long)
    },
    act: |cluster| {
        let kill = |node: &Node| assert!(node.kill(Duration::ZERO).is_some(), "it lives");
        let freeze = |node: &Node| assert!(node.freeze(true).is_some(), "it lives");
        let thaw = |node: &Node| assert!(node.freeze(false).is_some(), "it lives still");
        let cut = |node: &Node| node.cut(Direction::ToStore, true);
        let mend = |node: &Node| node.cut(Direction::ToStore, false);
        let leave = |node: &Node| assert_eq!(node.terminate(Duration::ZERO), Some(0));
        let nothing = |_: &Node| ();
        let faults: [(&Act, &Act); 4] =
            [(&kill, &nothing), (&freeze, &thaw), (&cut, &mend), (&leave, &nothing)];
        for (harm, heal) in faults {
            let holder = cluster.holder(young(cluster));
            harm(&holder);
            let back = cluster.until_all_act(boot(), BACK_WITHIN);
            heal(&holder);
            back.expect("both have turns again");
            until("the node is back", || holder.address());
        }
        apart(cluster);
        Vec::new()
    },
    limit: false,
};

/// A job whose run has just begun and acts.
fn young(cluster: &Cluster) -> usize {
    until("a run has just begun", || {
        (0..cluster.options.jobs.len()).find(|&job| {
            cluster.judge(job, |judge| {
                let acts = |run: &crate::acts::Run| (20..200).contains(&run.acts);
                judge.newest().is_some_and(acts)
            })
        })
    })
}

/// No act of a run of one job between the first and the last of a run of another.
fn apart(cluster: &Cluster) {
    let jobs = 0..cluster.options.jobs.len();
    let of = |job| cluster.judge(job, |judge| judge.runs.values().cloned().collect::<Vec<_>>());
    let mut runs: Vec<_> =
        jobs.flat_map(|job| of(job).into_iter().map(move |run| (job, run))).collect();
    runs.sort_by_key(|(_, run)| run.first);
    for pair in runs.windows(2) {
        holds(pair[0].1.last < pair[1].1.first, || format!("two have the turn: {pair:?}"));
    }
}
