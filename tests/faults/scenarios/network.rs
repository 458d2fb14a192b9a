//! Networks that lose packets without a word, in one direction or both, that are slow, and that break connections.

use std::thread::sleep;
use std::time::Duration;

use soloist::clock::boot;

use super::{JOB, Scenario, goes_on_for, taken_over};
use crate::cluster::{Cluster, Options};
use crate::machine::{in_time, within};
use crate::node::Node;
use crate::proxy::{Direction, Flow, HEALTHY};
use crate::witness::Mode;

fn stubborn(_: &std::path::Path) -> Options {
    Options::one(Mode::Stubborn)
}

/// Cuts the holder in some way; another runs the job within lease + 500 ms, and the old holder stays quiet after healing.
fn cut(cluster: &Cluster, cut: impl Fn(&Node, bool)) -> Vec<Duration> {
    cluster.until_more(JOB, 100);
    let holder = cluster.holder(JOB);
    let (_, token) = cluster.held_by(&holder)[0];
    let at = boot();
    cut(&holder, true);
    let took = taken_over(cluster, at, token);
    within(took, Duration::from_millis(2_500), "lease + 500 ms at most");
    cut(&holder, false);
    goes_on_for(cluster, Duration::from_secs(3));
    vec![took]
}

pub(super) const CUT_NODE: Scenario = Scenario {
    name: "cut_node",
    options: stubborn,
    act: |cluster| cut(cluster, Node::cut_off),
    limit: false,
};

pub(super) const CUT_TO_STORE: Scenario = Scenario {
    name: "cut_to_store",
    options: stubborn,
    act: |cluster| cut(cluster, |node, on| node.cut(Direction::ToStore, on)),
    limit: false,
};

/// The renewals arrive and only their answers are lost: the lease is extended, but nobody may trust in it. The take-over
/// may be as late as the last renewal that arrived.
pub(super) const CUT_FROM_STORE: Scenario = Scenario {
    name: "cut_from_store",
    options: stubborn,
    act: |cluster| {
        cluster.until_more(JOB, 100);
        let holder = cluster.holder(JOB);
        let (_, token) = cluster.held_by(&holder)[0];
        let at = boot();
        holder.cut(Direction::FromStore, true);
        let took = taken_over(cluster, at, token);
        holder.cut(Direction::FromStore, false);
        goes_on_for(cluster, Duration::from_secs(3));
        vec![took]
    },
    limit: false,
};

/// Half a second more for every answer, with the default lease: no reason to stop anything.
pub(super) const SLOW_STORE: Scenario = Scenario {
    name: "slow_store",
    options: |_| Options { lease: Duration::from_secs(5), ..Options::one(Mode::Plain) },
    act: |cluster| {
        let slow = |flow| {
            for node in &cluster.nodes {
                node.proxy().set(Direction::FromStore, flow);
            }
        };
        slow(Flow::After(Duration::from_millis(500)));
        goes_on_for(cluster, Duration::from_secs(11));
        slow(HEALTHY);
        vec![]
    },
    limit: false,
};

/// Connections break again and again, whatever is on its way.
pub(super) const RESETS: Scenario = Scenario {
    name: "resets",
    options: |_| Options { lease: Duration::from_secs(4), ..Options::one(Mode::Plain) },
    act: |cluster| {
        let starts = cluster.starts();
        for _ in 0..60 {
            for node in &cluster.nodes {
                node.proxy().reset();
            }
            sleep(Duration::from_millis(97));
        }
        cluster.until_more(JOB, 50);
        in_time(cluster.starts() == starts, || "the same run goes on".to_owned());
        vec![]
    },
    limit: false,
};
