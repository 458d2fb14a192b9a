//! A round: a fresh cluster, a schedule from a seed, everything healed, and the verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use soloist::clock::boot;

use crate::cluster::{Cluster, FOUR, Options, StoreKind};
use crate::faults::{Outcome, inflict};
use crate::file;
use crate::place::{Base, Place};
use crate::schedule::schedule;

/// How long a wanted job may take to act again after the last fault has healed: a node that was killed waits until its
/// old report has faded (4 s), a store that forgot grants nothing for a lease (2 s), and this machine may be slow.
const BACK_WITHIN: Duration = Duration::from_secs(20);

/// Of the disk of a SQLite file: room for all that a round writes.
const MEGABYTES: u32 = 32;

/// What a round, or several, came to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: usize,
    pub(crate) faults: BTreeMap<&'static str, usize>,
    pub(crate) excluded: usize,
    pub(crate) without_target: usize,
    pub(crate) starts: usize,
    pub(crate) slowest_return: Duration,
    /// How long jobs were wanted, and how long of it their scripts acted: faults that keep everything from running
    /// would prove nothing.
    pub(crate) wanted: Duration,
    pub(crate) acted: Duration,
    /// Everything that is wrong, in words.
    pub(crate) wrongs: Vec<String>,
}

impl Tally {
    pub(crate) fn faults(&self) -> usize {
        self.faults.values().sum()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        self.excluded += other.excluded;
        self.without_target += other.without_target;
        self.starts += other.starts;
        self.slowest_return = self.slowest_return.max(other.slowest_return);
        self.wanted += other.wanted;
        self.acted += other.acted;
        self.wrongs.extend(other.wrongs);
    }

    /// In percent of the time in which they were wanted.
    pub(crate) fn busy(&self) -> u128 {
        self.acted.as_millis() * 100 / self.wanted.as_millis().max(1)
    }

    fn note(&mut self, kind: &'static str, outcome: Outcome) {
        match outcome {
            Outcome::Done { .. } => *self.faults.entry(kind).or_default() += 1,
            Outcome::Excluded => self.excluded += 1,
            Outcome::NoTarget => self.without_target += 1,
        }
    }
}

/// Runs the round of `seed`, on that store, in `directory`, which afterwards holds all records and the log of every
/// node.
pub(crate) fn round(on: Place, seed: u64, directory: &Path) -> Tally {
    let plan = schedule(on, seed, 3, FOUR.len());
    let store = match on.base {
        Base::Redis => StoreKind::Redis { append_only: plan.append_only, replica: plan.replica },
        Base::Cluster => StoreKind::Members,
        Base::Sqlite => StoreKind::Sqlite(file::small_place(directory, MEGABYTES)),
        Base::Sql(kind) => StoreKind::Sql(kind),
    };
    let options = Options {
        store,
        lease: Duration::from_secs(2),
        jobs: FOUR.to_vec(),
        nodes: 3,
        own_clock: true,
        turns: None,
        zookeeper: on.zookeeper,
    };
    let cluster = Cluster::start(directory, options);
    let _judged = cluster.overlaps_come_first();
    let strongest = cluster.containment().contains("namespace");
    let begun = boot();
    let mut tally = Tally { rounds: 1, ..Tally::default() };
    let mut story = String::new();
    thread::scope(|scope| {
        let cluster = &cluster;
        let threads: Vec<_> = plan
            .events
            .iter()
            .map(|event| {
                let doing = scope.spawn(move || {
                    thread::sleep(event.at.saturating_sub(boot().since(begun)));
                    inflict(cluster, event.fault, event.lasts, strongest)
                });
                (event, doing)
            })
            .collect();
        for (event, doing) in threads {
            let outcome = doing.join().expect("a fault can be inflicted");
            tally.note(event.fault.kind(), outcome);
            story += &format!("{event:?}: {outcome:?}\n");
        }
    });
    std::fs::write(directory.join("faults.txt"), story).expect("the story is written");
    match cluster.until_all_act(boot(), BACK_WITHIN) {
        Ok(slowest) => {
            tally.slowest_return = slowest;
            tally.wanted = boot().since(begun) * u32::try_from(FOUR.len()).expect("few");
            tally.acted = cluster.acted();
            tally.wrongs.extend(cluster.switch_off());
        }
        // A machine that takes the time away may be to blame.
        Err(wrong) => panic!("{wrong}"),
    }
    tally.starts = cluster.starts();
    tally.wrongs.extend(cluster.wrongs());
    tally
}
