//! The faults themselves: how each is done to a running cluster, what it must not be done together with, and how it
//! heals.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use soloist::clock::boot;
use soloist::domain::time::Boot;

use crate::cluster::Cluster;
use crate::ensemble::Harm;
use crate::node::{Node, Side};
use crate::processes::Process;
use crate::proxy::{Direction, Flow, HEALTHY};
use crate::wait::until;
use crate::{file, members};

/// An hour: what a wall clock is stepped by.
const HOUR: i64 = 3_600;
/// How long a fault waits for something to be done to: a job may be between two runs.
const FOR_A_TARGET: Duration = Duration::from_millis(1_500);

/// Nodes and jobs are numbers in the cluster's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillNode(usize),
    KillGuard(usize),
    KillScript(usize),
    KillNodeAndGuard(usize),
    KillNodeAndScript(usize),
    KillGuardAndScript(usize),
    TerminateNode(usize),
    FreezeNode(usize),
    FreezeGuard(usize),
    FreezeScript(usize),
    CutNode(usize, Side),
    CutToStore(usize, Side),
    CutFromStore(usize, Side),
    SlowNode(usize, Side),
    ResetConnections(usize, Side),
    ClockForward,
    ClockBack,
    RestartRedis,
    FlushAll,
    OutOfMemory,
    ReadOnly,
    TooFewReplicas,
    FailOver,
    FreezeRedis,
    RestartServer,
    FreezeServer,
    ReadOnlyServer,
    CutConnections,
    HoldFile,
    FillDisk,
    Members(members::Harm),
    Ensemble(Harm),
}

impl Fault {
    /// The kind, for counting.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::KillNode(_) => "kill -9 of a node",
            Self::KillGuard(_) => "kill -9 of a guard",
            Self::KillScript(_) => "kill -9 of a script",
            Self::KillNodeAndGuard(_) => "kill -9 of node and guard",
            Self::KillNodeAndScript(_) => "kill -9 of node and script",
            Self::KillGuardAndScript(_) => "kill -9 of guard and script",
            Self::TerminateNode(_) => "SIGTERM of a node",
            Self::FreezeNode(_) => "SIGSTOP of a node",
            Self::FreezeGuard(_) => "SIGSTOP of a guard",
            Self::FreezeScript(_) => "SIGSTOP of a script",
            Self::CutNode(_, side) => side.of([
                "silent partition",
                "silent partition from the store alone",
                "silent partition from ZooKeeper alone",
            ]),
            Self::CutToStore(_, side) => side.of([
                "partition towards the store",
                "partition towards the store alone",
                "partition towards ZooKeeper alone",
            ]),
            Self::CutFromStore(_, side) => side.of([
                "partition from the store",
                "partition from the store alone",
                "partition from ZooKeeper alone",
            ]),
            Self::SlowNode(_, side) => {
                side.of(["slow store", "slow store alone", "slow ZooKeeper alone"])
            }
            Self::ResetConnections(_, side) => side.of([
                "connections reset",
                "connections to the store reset",
                "connections to ZooKeeper reset",
            ]),
            Self::ClockForward => "wall clock an hour forward",
            Self::ClockBack => "wall clock an hour back",
            Self::RestartRedis => "Redis restarted",
            Self::FlushAll => "FLUSHALL",
            Self::OutOfMemory => "Redis out of memory",
            Self::ReadOnly => "Redis read-only",
            Self::TooFewReplicas => "Redis without enough replicas",
            Self::FailOver => "fail-over that loses writes",
            Self::FreezeRedis => "SIGSTOP of Redis",
            Self::RestartServer => "kill -9 of the server",
            Self::FreezeServer => "SIGSTOP of the server",
            Self::ReadOnlyServer => "server read-only",
            Self::CutConnections => "all connections ended by the server",
            Self::HoldFile => "SQLite file held by another program",
            Self::FillDisk => "disk full",
            Self::Members(harm) => harm.kind(),
            Self::Ensemble(harm) => harm.kind(),
        }
    }

    /// The same on one side alone, or on both, if it is one of a node's ways.
    pub(crate) fn aside(self, to: Side) -> Self {
        match self {
            Self::CutNode(node, _) => Self::CutNode(node, to),
            Self::CutToStore(node, _) => Self::CutToStore(node, to),
            Self::CutFromStore(node, _) => Self::CutFromStore(node, to),
            Self::SlowNode(node, _) => Self::SlowNode(node, to),
            Self::ResetConnections(node, _) => Self::ResetConnections(node, to),
            other => other,
        }
    }

    /// The nearest one that needs no relay between node and store, which members of a Redis Cluster cannot have.
    pub(crate) fn without_relay(self) -> Self {
        match self {
            Self::SlowNode(node, side) => Self::CutFromStore(node, side),
            Self::ResetConnections(node, side) => Self::CutToStore(node, side),
            other => other,
        }
    }

    /// The nearest one to a node whose store is a file, from which it cannot be cut off.
    pub(crate) fn without_wire(self) -> Self {
        match self {
            Self::CutNode(node, _) | Self::CutToStore(node, _) | Self::CutFromStore(node, _) => {
                Self::FreezeNode(node)
            }
            Self::SlowNode(node, _) | Self::ResetConnections(node, _) => Self::KillNode(node),
            other => other,
        }
    }
}

/// What became of an intended fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It happened, and has healed.
    Done {
        /// Right before it began.
        at: Boot,
        /// Once nothing of it was left.
        healed: Boot,
    },
    /// There was nothing that it could be done to.
    NoTarget,
    /// It would have made a combination that is documented as not covered.
    Excluded,
}

/// Does it, lets it last, heals it.
pub(crate) fn inflict(
    cluster: &Cluster,
    fault: Fault,
    lasts: Duration,
    strongest: bool,
) -> Outcome {
    let node = |index: usize| Arc::clone(&cluster.nodes[index]);
    match fault {
        Fault::KillNode(index) => harm_node(&node(index), |node| node.kill(lasts)),
        Fault::TerminateNode(index) => harm_node(&node(index), |node| {
            let at = boot();
            node.terminate(lasts).map(|_| at)
        }),
        Fault::FreezeNode(index) => harm_node(&node(index), |node| {
            let at = node.freeze(true)?;
            sleep(lasts);
            node.freeze(false);
            Some(at)
        }),
        Fault::KillNodeAndScript(job) => {
            let Some((node, guard)) = target(cluster, job) else { return Outcome::NoTarget };
            let script = cluster.script_under(&guard, job);
            harm_node(&node, |node| {
                let at = boot();
                if let Some(script) = script {
                    script.signal(Signal::SIGKILL);
                }
                node.kill(lasts).map(|_| at)
            })
        }
        Fault::KillNodeAndGuard(job) => {
            // Without a pid namespace nobody would be left to kill what has left its session: a documented limit.
            if !strongest {
                return Outcome::Excluded;
            }
            let Some((node, guard)) = target(cluster, job) else { return Outcome::NoTarget };
            harm_node(&node, |node| {
                let at = boot();
                guard.signal(Signal::SIGKILL);
                node.kill(lasts).map(|_| at)
            })
        }
        Fault::KillGuard(job) => harm_guard(cluster, job, true, |guard, _| {
            guard.signal(Signal::SIGKILL);
        }),
        Fault::KillGuardAndScript(job) => harm_guard(cluster, job, true, |guard, script| {
            guard.signal(Signal::SIGKILL);
            if let Some(script) = script {
                script.signal(Signal::SIGKILL);
            }
        }),
        Fault::FreezeGuard(job) => harm_guard(cluster, job, false, |guard, _| {
            guard.signal(Signal::SIGSTOP);
            sleep(lasts);
            guard.signal(Signal::SIGCONT);
        }),
        Fault::KillScript(job) => harm_script(cluster, job, |script| {
            script.signal(Signal::SIGKILL);
        }),
        Fault::FreezeScript(job) => harm_script(cluster, job, |script| {
            script.signal(Signal::SIGSTOP);
            sleep(lasts);
            script.signal(Signal::SIGCONT);
        }),
        Fault::CutNode(index, side) => for_a_while(lasts, |on| node(index).cut_off_from(side, on)),
        Fault::CutToStore(index, side) => {
            for_a_while(lasts, |on| node(index).cut_from(side, Direction::ToStore, on))
        }
        Fault::CutFromStore(index, side) => {
            for_a_while(lasts, |on| node(index).cut_from(side, Direction::FromStore, on))
        }
        Fault::SlowNode(index, side) => for_a_while(lasts, |on| {
            let flow = if on { Flow::After(Duration::from_millis(500)) } else { HEALTHY };
            node(index).slow_down(side, flow);
        }),
        Fault::ResetConnections(index, side) => {
            let at = boot();
            for _ in 0..5 {
                node(index).reset(side);
                sleep(Duration::from_millis(20));
            }
            Outcome::Done { at, healed: boot() }
        }
        Fault::Ensemble(harm) => {
            let mut ensemble = cluster.ensemble();
            let at = boot();
            ensemble.suffer(harm, lasts);
            Outcome::Done { at, healed: boot() }
        }
        Fault::Members(harm) => {
            let jobs: Vec<&str> = cluster.options.jobs.iter().map(|job| job.name).collect();
            let mut members = cluster.members();
            let at = boot();
            members.suffer(harm, &jobs, lasts);
            Outcome::Done { at, healed: boot() }
        }
        Fault::HoldFile => {
            let place = cluster.file();
            let at = boot();
            file::hold(&place, lasts);
            Outcome::Done { at, healed: boot() }
        }
        Fault::FillDisk => {
            let place = cluster.file();
            for_a_while(lasts, |on| if on { file::fill(&place) } else { file::make_room(&place) })
        }
        Fault::ClockForward => step_clock(cluster, HOUR, lasts),
        Fault::ClockBack => step_clock(cluster, -HOUR, lasts),
        Fault::RestartServer
        | Fault::FreezeServer
        | Fault::ReadOnlyServer
        | Fault::CutConnections => harm_server(cluster, fault, lasts),
        fault => harm_redis(cluster, fault, lasts),
    }
}

/// What runs the job now, waited for.
fn target(cluster: &Cluster, job: usize) -> Option<(Arc<Node>, Process)> {
    wait_for(|| cluster.guard(job))
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = boot();
    loop {
        let found = look();
        if found.is_some() || boot().since(begun) > FOR_A_TARGET {
            return found;
        }
        sleep(Duration::from_millis(10));
    }
}

fn for_a_while(lasts: Duration, change: impl Fn(bool)) -> Outcome {
    let at = boot();
    change(true);
    sleep(lasts);
    change(false);
    Outcome::Done { at, healed: boot() }
}

fn step_clock(cluster: &Cluster, seconds: i64, lasts: Duration) -> Outcome {
    let Some(clock) = cluster.nodes.iter().find_map(|node| node.plan.clock.as_ref()) else {
        return Outcome::NoTarget;
    };
    for_a_while(lasts, |on| clock.step(if on { seconds } else { 0 }))
}

fn harm_node(node: &Node, harm: impl FnOnce(&Node) -> Option<Boot>) -> Outcome {
    if wait_for(|| node.may_harm_node().then_some(())).is_none() {
        return Outcome::Excluded;
    }
    let done = harm(node);
    node.node_is_well();
    done.map_or(Outcome::NoTarget, |at| Outcome::Done { at, healed: boot() })
}

fn harm_guard(
    cluster: &Cluster,
    job: usize,
    deadly: bool,
    harm: impl FnOnce(&Process, Option<Process>),
) -> Outcome {
    let found = wait_for(|| {
        let (node, guard) = cluster.guard(job)?;
        node.may_harm_guard().then_some((node, guard))
    });
    let Some((node, guard)) = found else { return Outcome::Excluded };
    let script = cluster.script_under(&guard, job);
    let at = boot();
    harm(&guard, script);
    if !deadly {
        // The node may just be about to find that its guard is lost.
        sleep(Duration::from_millis(300));
    }
    // The node is spared until it has done what its guard cannot do any more: it waits for the guard's process last.
    if deadly || !guard.lives() {
        until("the node has dealt with the death of a guard", || (!guard.is_there()).then_some(()));
    }
    node.guard_is_well();
    Outcome::Done { at, healed: boot() }
}

fn harm_script(cluster: &Cluster, job: usize, harm: impl FnOnce(&Process)) -> Outcome {
    match wait_for(|| cluster.script(job)) {
        Some(script) => {
            let at = boot();
            harm(&script);
            Outcome::Done { at, healed: boot() }
        }
        None => Outcome::NoTarget,
    }
}

/// One at a time: whoever harms the store has it alone until it has healed.
fn harm_redis(cluster: &Cluster, fault: Fault, lasts: Duration) -> Outcome {
    let mut redis = cluster.redis();
    let at = boot();
    match fault {
        Fault::RestartRedis => {
            redis.now_mut().kill();
            sleep(lasts);
            redis.now_mut().restart();
        }
        Fault::FlushAll => {
            redis.now().run::<()>(&["FLUSHALL"]);
        }
        Fault::OutOfMemory => {
            redis.now().run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
            sleep(lasts);
            redis.now().run::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        }
        Fault::ReadOnly if !redis.has_replica() => {
            redis.now().run::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
            sleep(lasts);
            redis.now().run::<()>(&["REPLICAOF", "NO", "ONE"]);
        }
        Fault::TooFewReplicas => {
            redis.now().run::<()>(&["CONFIG", "SET", "min-replicas-to-write", "3"]);
            sleep(lasts);
            redis.now().run::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        }
        Fault::FailOver if redis.has_replica() => {
            assert!(redis.detach_replica(), "the replica does not answer");
            sleep(lasts);
            redis.fail_over();
            for node in &cluster.nodes {
                node.proxy().turn_to(redis.address());
            }
            assert!(redis.come_back(), "the old master does not catch up");
        }
        Fault::FreezeRedis => {
            redis.now().pause();
            sleep(lasts);
            redis.now().resume();
        }
        _ => return Outcome::NoTarget,
    }
    Outcome::Done { at, healed: boot() }
}

/// As [`harm_redis`], to a server of SQL.
fn harm_server(cluster: &Cluster, fault: Fault, lasts: Duration) -> Outcome {
    let mut server = cluster.sql();
    let at = boot();
    match fault {
        Fault::RestartServer => server.restart(lasts),
        Fault::FreezeServer => {
            server.freeze(true);
            sleep(lasts);
            server.freeze(false);
        }
        Fault::ReadOnlyServer => {
            server.read_only(true);
            sleep(lasts);
            server.read_only(false);
        }
        Fault::CutConnections => {
            for _ in 0..5 {
                server.cut_all();
                sleep(Duration::from_millis(20));
            }
        }
        _ => return Outcome::NoTarget,
    }
    Outcome::Done { at, healed: boot() }
}
