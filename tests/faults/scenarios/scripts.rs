//! Guards and scripts that are killed, frozen, late, or that do not want to end.

use std::time::Duration;

use nix::sys::signal::Signal;
use soloist::clock::boot;

use super::nodes::the_older_token_is_refused;
use super::{JOB, Scenario, goes_on_for, taken_over};
use crate::cluster::{Cluster, Options};
use crate::machine::within;
use crate::processes::zombies_below;
use crate::wait::until;
use crate::witness::Mode;

fn token(cluster: &Cluster) -> u64 {
    cluster.judge(JOB, |judge| judge.newest().expect("a run").token)
}

fn pass(time: Duration) {
    let begun = boot();
    until("some time has passed", || (boot().since(begun) >= time).then_some(()));
}

/// A guard is frozen while deadlines arrive, its node is cut off and paused, and it is thawed: whoever took a deadline to count
/// from its arrival would let the script live on beyond the lease.
pub(super) const LATE_MESSAGE: Scenario = Scenario {
    name: "late_message",
    options: |_| Options { lease: Duration::from_secs(4), ..Options::one(Mode::Stubborn) },
    act: |cluster| {
        let (node, guard) = until("a guard", || cluster.guard(JOB));
        let token = token(cluster);
        guard.signal(Signal::SIGSTOP);
        // A renewal comes every 667 ms; after three without an answer the node would kill the guard.
        pass(Duration::from_millis(750));
        let at = boot();
        node.cut_off(true);
        pass(Duration::from_millis(950));
        // The node would keep the deadline as well.
        node.freeze(true);
        guard.signal(Signal::SIGCONT);
        let took = taken_over(cluster, at, token);
        node.freeze(false);
        node.cut_off(false);
        goes_on_for(cluster, Duration::from_secs(1));
        vec![took]
    },
    limit: false,
};

/// A guard that is frozen does not answer: its node kills it and the tree before anything else may start.
pub(super) const GUARD_FROZEN: Scenario = Scenario {
    name: "guard_frozen",
    options: |_| Options::one(Mode::Stubborn),
    act: |cluster| {
        let (_, guard) = until("a guard", || cluster.guard(JOB));
        let token = token(cluster);
        let at = boot();
        guard.signal(Signal::SIGSTOP);
        vec![taken_over(cluster, at, token)]
    },
    limit: false,
};

/// The same while the node cannot renew: the node is the only one left to keep the deadline.
pub(super) const GUARD_FROZEN_NODE_CUT: Scenario = Scenario {
    name: "guard_frozen_node_cut",
    options: |_| Options::one(Mode::Stubborn),
    act: |cluster| {
        let (node, guard) = until("a guard", || cluster.guard(JOB));
        let token = token(cluster);
        let at = boot();
        node.cut_off(true);
        guard.signal(Signal::SIGSTOP);
        let took = taken_over(cluster, at, token);
        node.cut_off(false);
        within(took, Duration::from_millis(2_500), "lease + 500 ms at most");
        vec![took]
    },
    limit: false,
};

/// kill -9 of the guard: the node finds what it leaves behind, the daemon too.
pub(super) const GUARD_KILLED: Scenario = Scenario {
    name: "guard_killed",
    options: |_| Options::one(Mode::Stubborn),
    act: |cluster| {
        let mut took = Vec::new();
        for _ in 0..3 {
            cluster.until_more(JOB, 50);
            let (_, guard) = until("a guard", || cluster.guard(JOB));
            let token = token(cluster);
            let at = boot();
            guard.signal(Signal::SIGKILL);
            took.push(taken_over(cluster, at, token));
        }
        took
    },
    limit: false,
};

/// kill -9 of the script's first process: its daemon dies, too, before the next run.
pub(super) const SCRIPT_KILLED: Scenario = Scenario {
    name: "script_killed",
    options: |_| Options::one(Mode::Stubborn),
    act: |cluster| {
        let mut took = Vec::new();
        for _ in 0..3 {
            cluster.until_more(JOB, 50);
            let script = until("a script", || cluster.script(JOB));
            let token = token(cluster);
            let at = boot();
            script.signal(Signal::SIGKILL);
            took.push(taken_over(cluster, at, token));
        }
        took
    },
    limit: false,
};

/// Forks its successor and ends, for ever: it is reaped all the time, and dies.
pub(super) const COMET: Scenario = Scenario {
    name: "comet",
    options: |_| Options::one(Mode::Comet),
    act: |cluster| {
        let (node, guard) = until("a guard", || cluster.guard(JOB));
        cluster.until_more(JOB, 2_000);
        let zombies = zombies_below(guard.pid);
        assert!(zombies < 50, "{zombies} dead processes wait to be reaped below the guard");
        let token = token(cluster);
        let at = node.kill(Duration::ZERO).expect("it lives");
        vec![taken_over(cluster, at, token)]
    },
    limit: false,
};

/// Forks until it is stopped: a kill of its node and a switch both end all of it.
pub(super) const FORKER: Scenario = Scenario {
    name: "forker",
    options: |_| Options::one(Mode::Forker),
    act: |cluster| {
        until("many live", || (cluster.living(JOB).len() > 20).then_some(()));
        let token = token(cluster);
        let at = cluster.holder(JOB).kill(Duration::ZERO).expect("it lives");
        let took = taken_over(cluster, at, token);
        until("many live", || (cluster.living(JOB).len() > 20).then_some(()));
        vec![took]
    },
    limit: false,
};

/// A thousand lines within a millisecond, five times a second: neither the lease nor the script suffers.
pub(super) const CHATTY: Scenario = Scenario {
    name: "chatty",
    options: |_| Options::one(Mode::Chatty),
    act: |cluster| {
        goes_on_for(cluster, Duration::from_secs(6));
        let holder = cluster.holder(JOB);
        let token = token(cluster);
        let at = holder.kill(Duration::ZERO).expect("it lives");
        vec![taken_over(cluster, at, token)]
    },
    limit: false,
};

/// The documented limit: nobody is left who could kill in time. The newer run has the higher token, and every sink that
/// asks refuses the older.
pub(super) const GUARD_FROZEN_NODE_DEAD: Scenario = Scenario {
    name: "guard_frozen_node_dead",
    options: |_| Options::one(Mode::Stubborn),
    act: |cluster| {
        let (node, guard) = until("a guard", || cluster.guard(JOB));
        let token = token(cluster);
        guard.signal(Signal::SIGSTOP);
        let at = node.kill(Duration::ZERO).expect("it lives");
        let took = taken_over(cluster, at, token);
        the_older_token_is_refused(cluster, token);
        guard.signal(Signal::SIGCONT);
        until("the thawed guard has ended what it guards", || (!guard.lives()).then_some(()));
        vec![took]
    },
    limit: true,
};
