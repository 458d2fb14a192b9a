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
