//! Random schedules: the same seed is the same schedule, on every machine and whatever happens meanwhile.

use std::time::Duration;

use crate::dice::Dice;
use crate::ensemble::Harm;
use crate::faults::Fault;
use crate::members;
use crate::node::Side;
use crate::place::{Base, Place};

/// A fault, when it begins and how long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
    pub(crate) lasts: Duration,
}

/// What a round is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) append_only: bool,
    pub(crate) replica: bool,
    /// By their beginnings.
    pub(crate) events: Vec<Event>,
}

/// How long faults keep beginning.
pub(crate) const SPAN: Duration = Duration::from_secs(30);
/// Faults of nodes, guards, scripts and cables in a round; they overlap each other and those of the store.
const COMMON: usize = 50;
/// Faults of the store, and as many of ZooKeeper: they stop everybody, so more of them would leave nothing for the others to hit.
const OF_THE_STORE: u64 = 5;

/// The schedule of `seed` for `nodes` nodes and `jobs` jobs with a lease of about two seconds.
pub(crate) fn schedule(on: Place, seed: u64, nodes: usize, jobs: usize) -> Schedule {
    let mut dice = Dice::new(seed);
    let (append_only, replica) = (dice.below(2) == 0, dice.below(2) == 0);
    let span = u64::try_from(SPAN.as_millis()).expect("short");
    let mut events: Vec<Event> = (0..COMMON)
        .map(|_| {
            let at = dice.between(0, span);
            let (mut fault, lasts) = common(&mut dice, nodes, jobs);
            if on.zookeeper {
                fault = fault.aside(Side::ALL[dice.index(Side::ALL.len())]);
            }
            fault = match on.base {
                Base::Sqlite => fault.without_wire(),
                Base::Cluster => fault.without_relay(),
                Base::Redis | Base::Sql(_) => fault,
            };
            Event { at, fault, lasts }
        })
        .collect();
    let share = span / OF_THE_STORE;
    for turn in 0..OF_THE_STORE {
        let at = Duration::from_millis(turn * share) + dice.between(0, share);
        let (fault, lasts) = match on.base {
            Base::Redis => of_the_store(&mut dice, replica),
            Base::Cluster => {
                let (harm, lasts) = members::Harm::random(&mut dice, jobs);
                (Fault::Members(harm), lasts)
            }
            Base::Sqlite => of_a_file(&mut dice),
            Base::Sql(_) => of_a_server(&mut dice),
        };
        events.push(Event { at, fault, lasts });
    }
    if on.zookeeper {
        for turn in 0..OF_THE_STORE {
            let at = Duration::from_millis(turn * share) + dice.between(0, share);
            let (harm, lasts) = Harm::random(&mut dice);
            events.push(Event { at, fault: Fault::Ensemble(harm), lasts });
        }
    }
    events.sort_by_key(|event| event.at);
    Schedule { append_only, replica, events }
}

fn common(dice: &mut Dice, nodes: usize, jobs: usize) -> (Fault, Duration) {
    let (node, job) = (dice.index(nodes), dice.index(jobs));
    // Around the lease of two seconds, in both directions.
    let around = dice.between(100, 3_500);
    let short = dice.between(0, 800);
    match dice.below(100) {
        0..10 => (Fault::KillNode(node), short),
        10..18 => (Fault::KillGuard(job), short),
        18..26 => (Fault::KillScript(job), short),
        26..30 => (Fault::KillNodeAndGuard(job), short),
        30..34 => (Fault::KillNodeAndScript(job), short),
        34..38 => (Fault::KillGuardAndScript(job), short),
        38..42 => (Fault::TerminateNode(node), short),
        42..52 => (Fault::FreezeNode(node), around),
        52..59 => (Fault::FreezeGuard(job), around),
        59..66 => (Fault::FreezeScript(job), around),
        66..75 => (Fault::CutNode(node, Side::Both), around),
        75..80 => (Fault::CutToStore(node, Side::Both), around),
        80..85 => (Fault::CutFromStore(node, Side::Both), around),
        85..90 => (Fault::SlowNode(node, Side::Both), around),
        90..96 => (Fault::ResetConnections(node, Side::Both), short),
        96..98 => (Fault::ClockForward, around),
        _ => (Fault::ClockBack, around),
    }
}

fn of_the_store(dice: &mut Dice, replica: bool) -> (Fault, Duration) {
    let (short, around) = (dice.between(0, 800), dice.between(100, 2_500));
    let fault = match dice.below(7) {
        0 | 1 => Fault::RestartRedis,
        2 => Fault::FlushAll,
        3 => Fault::OutOfMemory,
        4 => Fault::FreezeRedis,
        _ if replica => Fault::FailOver,
        5 => Fault::ReadOnly,
        _ => Fault::TooFewReplicas,
    };
    let stops_all = matches!(fault, Fault::RestartRedis | Fault::FailOver);
    (fault, if stops_all { short } else { around })
}

fn of_a_server(dice: &mut Dice) -> (Fault, Duration) {
    let (short, around) = (dice.between(0, 800), dice.between(100, 2_500));
    match dice.below(4) {
        0 => (Fault::RestartServer, short),
        1 => (Fault::FreezeServer, around),
        2 => (Fault::ReadOnlyServer, around),
        _ => (Fault::CutConnections, short),
    }
}

fn of_a_file(dice: &mut Dice) -> (Fault, Duration) {
    let around = dice.between(100, 2_500);
    (if dice.below(2) == 0 { Fault::HoldFile } else { Fault::FillDisk }, around)
}

/// Without this a failure could not be repeated.
pub(crate) fn the_same_seed_is_the_same_schedule() {
    for on in Place::ALL {
        assert_eq!(schedule(on, 7, 3, 4), schedule(on, 7, 3, 4));
        assert_ne!(schedule(on, 7, 3, 4), schedule(on, 8, 3, 4));
    }
    let mut dice = Dice::new(1);
    assert_eq!(dice.roll(), 10_451_216_379_200_822_465, "the published first value for seed 1");
}
