//! Nodes that are killed, paused, told to leave, or wrong about the time.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use soloist::clock::boot;

use super::late::nothing_of_it_is_believed;
use super::{JOB, Scenario, goes_on_for, taken_over};
use crate::cluster::{Cluster, Options};
use crate::machine::{holds, within};
use crate::node::SOLOIST;
use crate::proxy::{Direction, Flow, HEALTHY};
use crate::wait::until;
use crate::witness::Mode;

fn stubborn(_: &std::path::Path) -> Options {
    Options::one(Mode::Stubborn)
}

/// The last renewal that reaches the store is answered late, then the node is paused: whoever counted trust from the
/// answer, not from before the request, would let the script live on beyond the lease.
pub(super) const PAUSED_NODE: Scenario = Scenario {
    name: "paused_node",
    options: |_| Options { lease: Duration::from_secs(5), ..Options::one(Mode::Stubborn) },
    act: |cluster| {
        let holder = cluster.holder(JOB);
        goes_on_for(cluster, Duration::from_secs(1));
        // Just below the store time-out of such a lease, 1 s.
        let late = Duration::from_millis(850);
        holder.proxy().set(Direction::FromStore, Flow::After(late));
        goes_on_for(cluster, Duration::from_secs(2));
        let (_, token) = cluster.held_by(&holder)[0];
        let at = boot();
        holder.cut(Direction::ToStore, true);
        until("every answer has arrived", || (boot().since(at) > late).then_some(()));
        holder.freeze(true).expect("it lives");
        let took = taken_over(cluster, at, token);
        holder.freeze(false);
        holder.cut(Direction::ToStore, false);
        holder.proxy().set(Direction::FromStore, HEALTHY);
        within(took, Duration::from_millis(5_500), "lease + 500 ms at most");
        goes_on_for(cluster, Duration::from_secs(2));
        vec![took]
    },
    limit: false,
};

/// kill -9 of the node of a script with a daemon: with a lease of a minute, only a tree that was killed and a lease
/// that was given back explain a quick take-over.
pub(super) const DOUBLE_FORKED_DAEMON: Scenario = Scenario {
    name: "double_forked_daemon",
    options: |_| Options { lease: Duration::from_secs(60), ..Options::one(Mode::Stubborn) },
    act: |cluster| {
        let mut took = Vec::new();
        for _ in 0..3 {
            cluster.until_more(JOB, 50);
            let holder = cluster.holder(JOB);
            let (_, token) = cluster.held_by(&holder)[0];
            let at = holder.kill(Duration::ZERO).expect("it lives");
            took.push(taken_over(cluster, at, token));
            until("the dead node is back", || holder.address());
        }
        took
    },
    limit: false,
};

/// SIGTERM to the node of a script that ignores TERM: the lease must not be given back before the tree is gone.
pub(super) const STUBBORN_HAND_OVER: Scenario = Scenario {
    name: "stubborn_hand_over",
    options: stubborn,
    act: |cluster| {
        cluster.until_more(JOB, 50);
        let holder = cluster.holder(JOB);
        let (_, token) = cluster.held_by(&holder)[0];
        let at = boot();
        assert_eq!(holder.terminate(Duration::ZERO), Some(0), "it leaves in order");
        vec![taken_over(cluster, at, token)]
    },
    limit: false,
};

/// Switched off again and again while the tree ignores TERM: `off` is said only when nobody lives.
pub(super) const STUBBORN_STOP: Scenario = Scenario {
    name: "stubborn_stop",
    options: stubborn,
    act: |cluster| {
        for turn in 1..=3 {
            cluster.until_started(JOB, turn);
            cluster.until_more(JOB, 50);
            let wrongs = cluster.switch_off();
            holds(wrongs.is_empty(), || format!("{wrongs:?}"));
            cluster.switch_on();
        }
        vec![]
    },
    limit: false,
};

/// A node that wakes after its lease was taken reports and renews under its old token: nothing of it may count.
pub(super) const STALE_TOKEN: Scenario = Scenario {
    name: "stale_token",
    options: stubborn,
    act: |cluster| {
        let holder = cluster.holder(JOB);
        let (_, old) = cluster.held_by(&holder)[0];
        until("the page shows the run", || {
            let page = cluster.page(&holder, "/api/v1/jobs/outbound")?;
            (page["run"]["token"] == old || page["state"] == "running").then_some(())
        });
        let at = holder.freeze(true).expect("it lives");
        let took = taken_over(cluster, at, old);
        holder.freeze(false);
        // Longer than a lease: the sleeper has tried to renew, and the run that is right has had to.
        goes_on_for(cluster, Duration::from_secs(3));
        nothing_of_it_is_believed(cluster, old);
        let new = cluster.judge(JOB, |judge| judge.newest().expect("a run").token);
        let survivor = cluster.holder(JOB);
        let page = |path: &str| {
            until("a page", || cluster.page(&survivor, &format!("/api/v1/jobs/outbound{path}")))
        };
        assert_eq!(page("")["lease"]["token"], new);
        let runs = page("/runs");
        let run = |index: usize| runs["runs"][index].clone();
        assert_eq!(
            (run(0)["token"].as_u64(), &run(0)["ended"]),
            (Some(new), &Value::Null),
            "{runs}"
        );
        assert_eq!(run(1)["token"], old, "{runs}");
        assert!(matches!(run(1)["end"].as_str(), Some("lost" | "fenced")), "{runs}");
        vec![took]
    },
    limit: false,
};

/// One node believes a clock that is an hour wrong, in both directions: nothing may depend on it.
pub(super) const WALL_CLOCK_STEP: Scenario = Scenario {
    name: "wall_clock_step",
    options: |_| Options { nodes: 2, own_clock: true, ..Options::one(Mode::Stubborn) },
    act: |cluster| {
        let dreamer = &cluster.nodes[1];
        let clock = dreamer.plan.clock.as_ref().expect("a clock of its own");
        if cluster.holder(JOB).plan.name != dreamer.plan.name {
            let (_, token) = cluster.held_by(&cluster.nodes[0])[0];
            assert_eq!(cluster.nodes[0].terminate(Duration::ZERO), Some(0), "it leaves in order");
            cluster.until_after(JOB, token);
        }
        until("both nodes are there", || cluster.nodes[0].address());
        for step in [3_600, -3_600] {
            clock.step(step);
            let said = || {
                let mut command = Command::new("date");
                clock.apply(&mut command);
                let output = command.arg("+%s").output().expect("date starts");
                String::from_utf8_lossy(&output.stdout).trim().parse::<i64>().expect("seconds")
            };
            let truth = || {
                let output = Command::new("date").arg("+%s").output().expect("date starts");
                String::from_utf8_lossy(&output.stdout).trim().parse::<i64>().expect("seconds")
            };
            assert!((said() - truth() - step).abs() < 5, "the library does its work");
            goes_on_for(cluster, Duration::from_secs(3));
        }
        clock.step(-3_600);
        let (_, token) = cluster.held_by(dreamer)[0];
        let at = boot();
        dreamer.cut_off(true);
        let took = taken_over(cluster, at, token);
        dreamer.cut_off(false);
        within(took, Duration::from_millis(2_500), "lease + 500 ms at most");
        vec![took]
    },
    limit: false,
};

/// Node and guard killed in the same instant. In a pid namespace the tree dies with them and the lease runs out;
/// elsewhere what has left its session lives on until the node's next start, and only the token protects.
pub(super) const NODE_AND_GUARD_KILLED: Scenario = Scenario {
    name: "node_and_guard_killed",
    options: stubborn,
    act: |cluster| {
        cluster.until_more(JOB, 50);
        let strong = cluster.containment().contains("namespace");
        let (holder, guard) = until("a guard", || cluster.guard(JOB));
        let (_, token) = cluster.held_by(&holder)[0];
        let at = boot();
        guard.signal(nix::sys::signal::Signal::SIGKILL);
        holder.kill(Duration::from_secs(4));
        let took = taken_over(cluster, at, token);
        let overlaps = cluster.wrongs();
        holds(!strong || overlaps.is_empty(), || {
            format!("a pid namespace leaves nobody: {overlaps:?}")
        });
        the_older_token_is_refused(cluster, token);
        for left in cluster.left_of(JOB, token) {
            left.signal(nix::sys::signal::Signal::SIGKILL);
        }
        vec![took]
    },
    limit: true,
};

/// `soloist fence` lets the newest run pass and refuses that of `old`.
pub(super) fn the_older_token_is_refused(cluster: &Cluster, old: u64) {
    let new = cluster.judge(JOB, |judge| judge.newest().expect("a run").token);
    holds(new > old, || "the newer run has the higher token".to_owned());
    let sink = cluster.directory.join("sink.fence");
    let fence = |token: u64| {
        let mut command = Command::new(SOLOIST);
        let status = command.arg("fence").arg(&sink).args(["--", "true"]);
        status.env("SOLOIST_TOKEN", token.to_string()).status().expect("soloist starts").code()
    };
    assert_eq!(fence(old), Some(0), "alone it passes");
    assert_eq!(fence(new), Some(0), "the newer passes");
    holds(fence(old) == Some(4), || "after the newer the older is refused".to_owned());
}
