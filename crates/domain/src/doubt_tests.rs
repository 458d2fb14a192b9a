//! What each loss leads to; and every history of a small world, in which no lease is granted beside one that was forgotten.

use std::collections::{BTreeSet, VecDeque};

use super::*;

const NOW: i64 = 1_000_000;

fn known() -> Epoch {
    Epoch {
        id: "one".to_owned(),
        server: "s1".to_owned(),
        longest: 5_000,
        turned: NOW - 1_000,
        ..Epoch::default()
    }
}

fn look<'a>() -> Look<'a> {
    Look {
        known: "one",
        remembered: 5_000,
        server: "s1",
        ttl: 5_000,
        suspect: false,
        fresh: "two",
        now: NOW,
    }
}

#[test]
fn a_store_that_is_as_it_was_known_is_believed_and_nothing_is_written() {
    let (epoch, write) = judge(Some(&known()), &look());
    assert!(!write && epoch == known() && epoch.quarantine(NOW) == 0);
}

#[test]
fn each_loss_keeps_everybody_out_for_the_longest_lease() {
    let emptied = judge(Some(&Epoch { id: "other".to_owned(), ..known() }), &look());
    let restarted = judge(Some(&known()), &Look { server: "s2", ..look() });
    let jumped = judge(Some(&known()), &Look { suspect: true, ..look() });
    let gone = judge(None, &look());
    for (which, (epoch, write)) in [emptied, restarted, jumped, gone].into_iter().enumerate() {
        assert!(write, "{which}");
        assert_eq!((epoch.quarantine(NOW), epoch.doubted), (5_000, NOW), "{which}");
    }
    let (restarted, _) = judge(Some(&known()), &Look { server: "s2", ..look() });
    assert_eq!((restarted.id.as_str(), restarted.server.as_str()), ("two", "s2"));
}

#[test]
fn who_notices_later_lengthens_a_quarantine_and_never_begins_it_anew() {
    let (first, _) = judge(None, &look());
    let later =
        Look { known: "one", remembered: 9_000, now: NOW + 2_000, fresh: "three", ..look() };
    let (second, write) = judge(Some(&first), &later);
    assert!(write && second.id == first.id);
    assert_eq!(second.until, NOW + 9_000);
    let (third, _) = judge(Some(&second), &Look { known: "two", ttl: 20_000, ..later });
    assert_eq!(third.until, NOW + 20_000, "for the length of the lease that is asked for");
}

#[test]
fn a_long_lease_of_last_week_does_not_lengthen_the_quarantine_of_today() {
    let week = Epoch { longest: 600_000, ..known() };
    let mut now = NOW;
    let mut epoch = week;
    for _ in 0..2 {
        now += 60_000 + 2 * epoch.reach() + 1_000;
        epoch = judge(Some(&epoch), &Look { now, ..look() }).0;
    }
    assert_eq!(epoch.reach(), 5_000);
}

#[test]
fn a_clock_set_back_makes_no_quarantine_longer_than_the_longest_lease() {
    let (epoch, _) = judge(Some(&Epoch { until: NOW + 3_600_000, since: NOW, ..known() }), &look());
    assert_eq!(epoch.quarantine(NOW), 5_000);
}

#[test]
fn a_fresh_store_of_nobody_doubts_only_what_came_before_its_server() {
    let first = Look { known: "", remembered: 0, ttl: 0, ..look() };
    let began = Epoch::begin(&first, NOW - 60_000, 30_000);
    assert_eq!((began.quarantine(NOW), began.longest), (0, 30_000));
    assert_eq!(Epoch::begin(&first, NOW, 30_000).quarantine(NOW), 30_000);
}

/// A store, two processes and one lease of two ticks; what the store forgets, its holder goes on trusting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    now: i64,
    server: u8,
    record: Option<Record>,
    /// In the store: until when.
    lease: Option<i64>,
    /// What each process remembers, and until when it trusts its lease.
    each: [(String, i64); 2],
}

type Record = (String, String, [i64; 6]);

const TICK: i64 = 1_000;
const TTL: i64 = 2 * TICK;

fn record(epoch: &Epoch) -> Record {
    let Epoch { id, server, since, until, longest, before, turned, doubted, .. } = epoch.clone();
    (id, server, [since, until, longest, before, turned, doubted])
}

fn epoch((id, server, [since, until, longest, before, turned, doubted]): Record) -> Epoch {
    Epoch { id, server, since, until, longest, before, turned, doubted, version: 0 }
}

impl World {
    fn followers(&self) -> Vec<(String, World)> {
        let mut all = Vec::new();
        let mut add = |what: String, change: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            change(&mut world);
            all.push((what, world));
        };
        if self.now < NOW + 6 * TICK {
            add("tick".to_owned(), &|world| {
                world.now += TICK;
                world.lease = world.lease.filter(|until| *until > world.now);
            });
        }
        if self.server < 2 {
            add("emptied".to_owned(), &|world| {
                (world.record, world.lease, world.server) = (None, None, world.server + 1);
            });
            add("restarted, and the lease was lost".to_owned(), &|world| {
                (world.lease, world.server) = (None, world.server + 1);
            });
        }
        for nth in 0..2 {
            add(format!("{nth} asks"), &|world| world.ask(nth));
        }
        all
    }

    fn ask(&mut self, nth: usize) {
        let (server, fresh) =
            (format!("s{}", self.server), format!("e{}-{}", self.server, self.now));
        let (known, trusted) = self.each[nth].clone();
        let look = Look {
            known: &known,
            remembered: if known.is_empty() { 0 } else { TTL },
            server: &server,
            ttl: TTL,
            suspect: false,
            fresh: &fresh,
            now: self.now,
        };
        let present = self.record.clone().map(epoch);
        let (epoch, write) = judge(present.as_ref(), &look);
        if write {
            self.record = Some(record(&epoch));
        }
        self.each[nth].0 = epoch.id.clone();
        let mine = trusted > self.now;
        if mine || self.lease.is_none() && epoch.quarantine(self.now) == 0 {
            // Granted, or asserted again.
            (self.lease, self.each[nth].1) = (Some(self.now + TTL), self.now + TTL);
        }
    }

    fn both(&self) -> bool {
        self.each.iter().all(|(_, trusted)| *trusted > self.now)
    }
}

#[test]
fn no_lease_is_granted_beside_one_that_the_store_forgot() {
    let used =
        Epoch { id: "one".to_owned(), server: "s0".to_owned(), turned: NOW, ..Epoch::default() };
    let each = ["one", "one"].map(|known| (known.to_owned(), 0));
    let first = World { now: NOW, server: 0, record: Some(record(&used)), lease: None, each };
    let (mut seen, mut queue) = (BTreeSet::from([first.clone()]), VecDeque::from([first]));
    while let Some(world) = queue.pop_front() {
        for (what, next) in world.followers() {
            assert!(!next.both(), "{what}: {world:?}");
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    assert!(seen.len() > 1_000, "{} worlds", seen.len());
}
