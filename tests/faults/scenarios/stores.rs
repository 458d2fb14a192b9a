//! A Redis that is restarted, frozen, wiped, full, read-only, or replaced by a replica that knows less.

use std::path::Path;
use std::time::Duration;

use soloist::clock::boot;

use super::{JOB, Scenario, goes_on_for, taken_over};
use crate::cluster::{Cluster, Options, StoreKind};
use crate::faults::{Fault, inflict};
use crate::machine::within;
use crate::wait::until;
use crate::witness::Mode;

fn long_lease(_: &Path) -> Options {
    Options { lease: Duration::from_secs(4), ..Options::one(Mode::Plain) }
}

fn stubborn(_: &Path) -> Options {
    Options::one(Mode::Stubborn)
}

/// Killed and started again with everything it had: nobody notices.
pub(super) const REDIS_RESTART_AOF: Scenario = Scenario {
    name: "redis_restart_aof",
    options: |directory| Options {
        store: StoreKind::Redis { append_only: true, replica: false },
        ..long_lease(directory)
    },
    act: |cluster| {
        inflict(cluster, Fault::RestartRedis, Duration::from_millis(300), false);
        goes_on_for(cluster, Duration::from_secs(9));
        vec![]
    },
    limit: false,
};

/// It accepts and does not answer, for less than a lease: nobody notices.
pub(super) const REDIS_FROZEN: Scenario = Scenario {
    name: "redis_frozen",
    options: long_lease,
    act: |cluster| {
        // Long enough that a renewal runs into its time-out, 798 ms, and short enough that the next one is in time.
        inflict(cluster, Fault::FreezeRedis, Duration::from_millis(1_700), false);
        goes_on_for(cluster, Duration::from_secs(9));
        vec![]
    },
    limit: false,
};

/// The store forgets everything while a holder that is cut off still runs, and the operator switches on again at once:
/// whoever granted at once would make two.
fn forgets(cluster: &Cluster, forget: impl FnOnce(&Cluster)) -> Vec<Duration> {
    cluster.until_more(JOB, 100);
    let holder = cluster.holder(JOB);
    let (_, token) = cluster.held_by(&holder)[0];
    let at = boot();
    holder.cut_off(true);
    forget(cluster);
    let took = taken_over(cluster, at, token);
    within(took, Duration::from_secs(6), "one lease holds new runs back");
    holder.cut_off(false);
    goes_on_for(cluster, Duration::from_secs(3));
    vec![took]
}

pub(super) const FLUSHALL_CUT_HOLDER: Scenario = Scenario {
    name: "flushall_cut_holder",
    options: stubborn,
    act: |cluster| {
        // Some tokens, so that one which only counts on from what the store remembers would go back.
        for run in 1..=15 {
            cluster.until_started(JOB, run);
            until("a script", || cluster.script(JOB)).signal(nix::sys::signal::Signal::SIGKILL);
        }
        cluster.until_started(JOB, 16);
        forgets(cluster, |cluster| {
            inflict(cluster, Fault::FlushAll, Duration::ZERO, false);
        })
    },
    limit: false,
};

pub(super) const RESTART_EMPTY_CUT_HOLDER: Scenario = Scenario {
    name: "restart_empty_cut_holder",
    options: stubborn,
    act: |cluster| {
        forgets(cluster, |cluster| {
            inflict(cluster, Fault::RestartRedis, Duration::ZERO, false);
        })
    },
    limit: false,
};

/// Redis restarts empty, a node that has just started is the first to dial, and those that know better cannot say so.
pub(super) const RESTART_EMPTY_NEW_NODE: Scenario = Scenario {
    name: "restart_empty_new_node",
    options: stubborn,
    act: |cluster| {
        cluster.until_more(JOB, 100);
        let holder = cluster.holder(JOB);
        let (_, token) = cluster.held_by(&holder)[0];
        let others = || cluster.nodes.iter().filter(|node| node.plan.name != holder.plan.name);
        let (knows, new) = (others().next().expect("three"), others().nth(1).expect("three"));
        new.kill(Duration::ZERO);
        let at = boot();
        holder.cut_off(true);
        knows.cut_off(true);
        inflict(cluster, Fault::RestartRedis, Duration::ZERO, false);
        let took = taken_over(cluster, at, token);
        holder.cut_off(false);
        knows.cut_off(false);
        vec![took]
    },
    limit: false,
};

/// The replica knows the switches and nothing of the lease, whose last renewal it has missed.
pub(super) const FAIL_OVER_CUT_HOLDER: Scenario = Scenario {
    name: "fail_over_cut_holder",
    options: |_| Options {
        store: StoreKind::Redis { append_only: false, replica: true },
        ..Options::one(Mode::Stubborn)
    },
    act: |cluster| {
        {
            let redis = cluster.redis();
            until("the replica has the switch", || {
                redis.replica_participates("outbound", "li").then_some(())
            });
            assert!(redis.detach_replica(), "the replica does not answer");
        }
        // What the replica knows of the lease runs out meanwhile.
        goes_on_for(cluster, Duration::from_millis(2_500));
        forgets(cluster, |cluster| {
            inflict(cluster, Fault::FailOver, Duration::ZERO, false);
        })
    },
    limit: false,
};

/// What is held stays held: renewing needs no memory.
pub(super) const OUT_OF_MEMORY: Scenario = Scenario {
    name: "out_of_memory",
    options: stubborn,
    act: |cluster| {
        cluster.redis().now().run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        goes_on_for(cluster, Duration::from_secs(5));
        cluster.redis().now().run::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        vec![]
    },
    limit: false,
};

/// Renewals are refused for longer than the lease: the script ends in time, and comes back by itself.
pub(super) const READ_ONLY: Scenario = Scenario {
    name: "read_only",
    options: stubborn,
    act: |cluster| {
        let (_, token) = cluster.held_by(&cluster.holder(JOB))[0];
        let redis = cluster.redis();
        redis.now().run::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
        until("nobody lives", || cluster.living(JOB).is_empty().then_some(()));
        let at = boot();
        redis.now().run::<()>(&["REPLICAOF", "NO", "ONE"]);
        drop(redis);
        vec![taken_over(cluster, at, token)]
    },
    limit: false,
};
