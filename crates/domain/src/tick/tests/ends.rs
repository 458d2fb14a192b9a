//! How ticks end that nobody wants any more, that have an entry already, that are replaced, or that lie in a long gap.

use super::*;

/// Somebody looks when the record says so, and not before.
fn looks(world: &mut World) {
    let clock = world.job.record.clock.as_ref().expect("ticks are known");
    let look = clock.next_look(&world.schedule, clock.accounted).expect("something is undecided");
    world.now = world.now.max(look.0);
    world.settle();
}

#[test]
fn off_and_hold_end_at_once_what_waits_for_its_next_attempt() {
    for (hold, why) in
        [(false, "nobody wanted it: li switched it off"), (true, "held by ops: stocktaking")]
    {
        let hourly = || {
            let mut world = World::new(60 * MINUTE, rules(|rules| rules.retries = 3));
            world.go(1.0);
            world.acquire().expect("due");
            world.now += SECOND;
            world
        };
        let forbid = |world: &mut World| match hold {
            true => world.hold(true),
            false => world.switch(false),
        };
        let mut world = hourly();
        world.end(RunEnd::Crashed, Then::Nothing);
        forbid(&mut world);
        let at = world.now;
        looks(&mut world);
        assert!(world.now <= at + 5 * SECOND, "{} ms later", world.now - at);
        assert_eq!((world.told(), world.why(1)), (vec!["1 failed".to_owned()], why.to_owned()));
        // It crashes while it is being stopped.
        let mut world = hourly();
        forbid(&mut world);
        world.now += SECOND;
        world.end(RunEnd::Crashed, Then::Nothing);
        let at = world.now;
        looks(&mut world);
        assert!(world.now <= at + 5 * SECOND, "{} ms later", world.now - at);
        assert_eq!((world.told(), world.why(1)), (vec!["1 failed".to_owned()], why.to_owned()));
    }
}

#[test]
fn off_decides_before_a_hold() {
    let mut world = World::new(
        MINUTE,
        rules(|rules| (rules.missed, rules.missed_window) = (Missed::All, Some(Duration::MAX))),
    );
    world.go(0.5);
    world.switch(false);
    world.hold(true);
    world.go(4.5);
    world.switch(true);
    world.now += SECOND;
    world.hold(false);
    assert!(world.acquire().is_err(), "nobody wanted them");
    assert_eq!(world.told(), ["1x4 unwanted"]);
    assert_eq!(world.why(1), "nobody wanted it: li switched it off");
    // A run by hand is none of the switch, and stopped by the hold.
    world.switch(false);
    ask(&mut world, "settle@hand:1").expect("taken in");
    world.acquire().expect("now");
    world.hold(true);
    world.now += SECOND;
    world.end(RunEnd::Stopped, Then::Nothing);
    let by_hand = world.list.iter().find(|entry| entry.by.is_some()).expect("an entry");
    assert_eq!(by_hand.outcome, Outcome::Failed);
    assert_eq!(by_hand.why.as_ref().unwrap().to_string(), "held by ops: stocktaking");
}

#[test]
fn a_run_by_hand_that_is_given_back_under_a_hold_has_failed_and_is_not_called_lost() {
    for lost in [false, true] {
        let mut world = World::new(60 * MINUTE, Rules::default());
        ask(&mut world, "settle@hand:1").expect("taken in");
        world.acquire().expect("now");
        if lost {
            world.lapse();
            world.settle();
            world.acquire().expect("again");
        }
        world.hold(true);
        world.now += SECOND;
        world.end(RunEnd::Stopped, Then::Unused);
        world.settle();
        let entry = world.list.last().expect("an entry");
        let outcome = if lost { Outcome::Lost } else { Outcome::Failed };
        assert_eq!(entry.outcome, outcome, "nothing was started, unless an earlier attempt was");
        assert_eq!(entry.why.as_ref().unwrap().to_string(), "held by ops: stocktaking");
        world.hold(false);
        assert!(world.acquire().is_err(), "whoever wants it asks again");
    }
}

#[test]
fn a_tick_that_no_machine_could_start_says_what_each_lacks() {
    let mut world = World::new(MINUTE, rules(|rules| rules.missed = Missed::Skip));
    let lacks = |node: &str, what: &str| (NodeName::new(node).expect("a name"), what.to_owned());
    world.go(1.2);
    world.schedule.lacks =
        [lacks("node-b", "dir: gone"), lacks("node-a", "no python9")].into_iter().collect();
    world.settle();
    world.go(2.2);
    world.settle();
    world.schedule.lacks.clear();
    world.go(3.2);
    world.settle();
    assert_eq!(world.told(), ["1x2 missed", "3 missed"]);
    assert_eq!(world.why(1), "it could not be started: node-a: no python9; node-b: dir: gone");
    assert_eq!(world.why(3), "nobody took it in time");
    // What was in the way at its start says more.
    world.hold(true);
    world.go(4.2);
    world.schedule.lacks = [lacks("node-a", "no python9")].into_iter().collect();
    world.hold(false);
    world.settle();
    assert_eq!(world.why(4), "held by ops: stocktaking");
}

/// Twelve runs that end well, one after the other: more entries than stand in the record.
fn twelve(world: &mut World) {
    for _ in 0..12 {
        world.now = (world.now / MINUTE + 1) * MINUTE;
        world.acquire().expect("due");
        world.now += SECOND;
        world.end(RunEnd::Exited, Then::Nothing);
    }
}

fn entries_of(world: &World, nth: i64) -> Vec<(Outcome, u32)> {
    let name = Each(MINUTE).tick(nth * MINUTE).name;
    let own = world.list.iter().filter(|entry| entry.is_of(&name, StoreTime(nth * MINUTE)));
    own.map(|entry| (entry.outcome, entry.attempt)).collect()
}

#[test]
fn a_tick_by_name_that_waited_long_has_one_entry() {
    // It is open, or waits behind a run by hand.
    for open in [false, true] {
        let mut world = World::new(MINUTE, rules(|rules| rules.overlap = Overlap::Queue));
        world.go(1.0);
        world.acquire().expect("due");
        world.end(RunEnd::Crashed, Then::Nothing);
        if !open {
            ask(&mut world, "settle@hand:1").expect("taken in");
            world.acquire().expect("by hand");
        }
        ask(&mut world, "settle@60000").expect("it failed");
        if open {
            world.acquire().expect("by name");
        }
        // Each waits behind the open one, and is replaced by the next: its entry joins no other.
        world.go(20.5);
        world.settle();
        if !open {
            world.end(RunEnd::Exited, Then::Nothing);
            let granted = world.acquire().expect("by name");
            assert_eq!((granted.tick.starts.0, granted.attempt), (MINUTE, 2));
        }
        world.now += SECOND;
        world.end(RunEnd::Exited, Then::Nothing);
        assert_eq!(entries_of(&world, 1), [(Outcome::Done, 2)]);
    }
}

#[test]
fn two_ticks_by_name_of_one_old_gap_have_one_entry_each() {
    let mut world = World::new(MINUTE, rules(|rules| rules.missed = Missed::Skip));
    world.go(5.5);
    world.settle();
    twelve(&mut world);
    let whole = world.list[0].clone();
    assert_eq!(whole.count, 5);
    for name in ["settle@120000", "settle@240000"] {
        let (asked, now) = (asked(&world, name), world.at());
        let (answer, writes) = law::ask(&mut world.job, &world.schedule, asked, Some(&whole), now);
        world.wrote(writes);
        answer.expect("it was missed");
    }
    for nth in [2, 4] {
        assert_eq!(world.acquire().expect("by name").tick.starts.0, nth * MINUTE);
        world.now += 1;
        world.end(RunEnd::Exited, Then::Nothing);
        assert_eq!(entries_of(&world, nth), [(Outcome::Done, 1)]);
    }
    assert_eq!(world.told()[..5], ["1 missed", "2 done", "3 missed", "4 done", "5 missed"]);
}

#[test]
fn a_tick_that_was_replaced_is_not_begun_again_however_its_run_ends() {
    for end in [None, Some(RunEnd::Crashed), Some(RunEnd::Lost)] {
        let mut world = World::new(
            MINUTE,
            rules(|rules| (rules.overlap, rules.retries) = (Overlap::Replace, 3)),
        );
        world.go(1.0);
        world.acquire().expect("due");
        world.go(2.0);
        world.settle();
        world.now += SECOND;
        match end {
            Some(end) => world.end(end, Then::Nothing),
            None => world.lapse(),
        }
        assert_eq!(world.acquire().expect("the newer").tick.starts.0, 2 * MINUTE, "{end:?}");
        assert_eq!(world.told(), ["1 failed"]);
        assert_eq!(world.why(1), "settle@120000 replaced it");
    }
}

#[test]
fn a_gap_that_is_too_long_to_be_counted_is_told_to_its_end_and_the_newest_are_run() {
    for (missed, hold, first, gap) in [
        (Missed::Skip, false, 49_998, 49_997),
        (Missed::Once, false, 50_000, 49_999),
        (Missed::Once, true, 50_000, 49_999),
        (Missed::All, false, 49_995, 49_994),
        (Missed::All, true, 49_995, 49_994),
    ] {
        let mut world = World::new(
            SECOND,
            rules(|rules| {
                (rules.missed, rules.missed_most) = (missed, 3);
                rules.missed_window = Some(Duration::from_secs(3_600));
            }),
        );
        if hold {
            world.hold(true);
        }
        world.go(50_000.5);
        world.settle();
        assert!(world.job.record.clock.as_ref().unwrap().pending.len() < 10);
        if hold {
            world.hold(false);
        }
        let granted = world.acquire().expect("one that was missed");
        assert_eq!(granted.tick.starts.0, first * SECOND, "{missed:?}");
        let entry = &world.list[0];
        assert_eq!(
            (entry.tick.starts.0, entry.last().starts.0),
            (SECOND, gap * SECOND),
            "{missed:?}: {:?}",
            world.told()
        );
        assert!(entry.count >= 10_000, "{}", entry.count);
    }
}

#[test]
fn a_tick_by_name_of_a_gap_that_is_too_long_to_be_counted_leaves_both_parts() {
    let mut world = World::new(SECOND, Rules::default());
    world.switch(false);
    world.now = 50_000 * SECOND + 1;
    world.switch(true);
    world.settle();
    ask(&mut world, "settle@30000000").expect("unwanted");
    world.acquire().expect("by name");
    world.end(RunEnd::Exited, Then::Nothing);
    let mut parts: Vec<(i64, i64)> = world
        .list
        .iter()
        .map(|entry| (entry.tick.starts.0 / SECOND, entry.last().starts.0 / SECOND))
        .collect();
    parts.sort_unstable();
    assert_eq!(parts, [(1, 29_999), (30_000, 30_000), (30_001, 50_000)]);
}

#[test]
fn what_is_due_while_a_new_store_is_in_doubt_is_made_up_for() {
    let mut world = World::new(
        MINUTE,
        rules(|rules| (rules.missed, rules.missed_window) = (Missed::All, Some(Duration::MAX))),
    );
    let seen = world.job.record.clock.take().expect("ticks are known");
    let in_doubt = |world: &mut World, sight: Option<&Sight>| {
        let (now, past) = (world.at(), Past::default());
        let writes = law::settle(&mut world.job, &past, &world.schedule, sight, TTL, now);
        world.wrote(writes);
    };
    world.go(0.9);
    in_doubt(&mut world, None);
    world.go(2.5);
    in_doubt(&mut world, None);
    assert_eq!(world.told(), [""; 0], "nothing is decided yet");
    let begun = world.job.clone();
    for nth in [1, 2] {
        assert_eq!(world.acquire().expect("missed").tick.starts.0, nth * MINUTE);
        world.end(RunEnd::Exited, Then::Nothing);
    }
    assert_eq!(world.told(), ["1 done", "2 done"]);
    // A node that saw more is believed all the same.
    world.job = begun;
    let taken = Taken { tick: Each(MINUTE).tick(MINUTE).name, starts: StoreTime(MINUTE) };
    let clock = Box::new(Clock { taken: Some(taken.clone()), ..*seen });
    let at = StoreTime(MINUTE + 1);
    let sight = Sight { clock, version: 0, at, changed: Some(StoreTime(MINUTE + 2)) };
    in_doubt(&mut world, Some(&sight));
    let clock = world.job.record.clock.as_ref().expect("it was told");
    assert_eq!((clock.taken.as_ref(), clock.accounted), (Some(&taken), StoreTime(1)));
}
