//! What of ticks is told to a person: since when, what is in the way, and until when.

use super::super::trouble::TOLD_FOR;
use super::*;

fn unstarted_of(world: &World) -> Option<(i64, Option<Obstacle>)> {
    let overdue = unstarted(&world.job.record, &world.schedule, StoreTime(world.now))?;
    Some((overdue.tick.starts.0 / world.every, overdue.obstacle))
}

fn trouble_of(world: &World, kind: Kind) -> Option<(i64, u32, bool)> {
    let record = &world.job.record;
    let trouble = record.clock.as_ref()?.trouble(kind)?;
    let lasts = trouble.lasts(record, StoreTime(world.now));
    Some((trouble.tick.starts.0 / world.every, trouble.count, lasts))
}

/// Brings the record up to an instant, in units of `every`.
fn look(world: &mut World, nth: f64) {
    world.go(nth);
    world.settle();
}

#[test]
fn a_tick_that_nobody_takes_is_told_once_and_until_one_begins() {
    let second = Duration::from_secs(1);
    let mut world = World::new(MINUTE, rules(|rules| rules.start_within = Some(second * 10)));
    look(&mut world, 1.1);
    assert_eq!(unstarted_of(&world), None, "6 s after its start");
    look(&mut world, 1.17);
    assert_eq!(unstarted_of(&world), Some((1, None)));
    // It is missed, and so are the next ones: the same trouble.
    look(&mut world, 3.05);
    assert_eq!(world.told(), ["1x2 missed"]);
    assert_eq!(unstarted_of(&world), Some((1, None)));
    world.acquire().expect("a node is there");
    assert_eq!(unstarted_of(&world), None, "it has its time");
    world.go(3.2);
    assert_eq!(unstarted_of(&world), Some((3, Some(Obstacle::NotBegun))), "waits for its turn");
    world.job.record.clock.as_mut().unwrap().open.as_mut().unwrap().run = Some(RunId("r".into()));
    assert_eq!(unstarted_of(&world), None, "it has begun");
}

#[test]
fn off_is_no_obstacle_and_a_hold_or_an_open_tick_is_named() {
    let limit = Some(Duration::from_secs(10));
    let new = || {
        World::new(
            MINUTE,
            rules(|rules| (rules.start_within, rules.overlap) = (limit, Overlap::Queue)),
        )
    };
    let mut held = new();
    held.go(0.5);
    held.hold(true);
    look(&mut held, 1.3);
    let (by, reason) = (UserName::new("ops").unwrap(), "stocktaking".to_owned());
    assert_eq!(unstarted_of(&held), Some((1, Some(Obstacle::Held { by, reason }))));
    held.switch(false);
    assert_eq!(unstarted_of(&held), None, "nobody wants it");
    let mut queue = new();
    queue.go(1.0);
    queue.acquire().expect("due");
    let open = queue.job.record.clock.as_mut().unwrap().open.as_mut().unwrap();
    open.run = Some(RunId("r".into()));
    look(&mut queue, 2.5);
    let behind = Obstacle::Behind(TickName("settle@60000".into()));
    assert_eq!(unstarted_of(&queue), Some((2, Some(behind))));
}

#[test]
fn a_tick_that_has_not_ended_in_time_is_told_retries_and_all() {
    let mut world = World::new(
        10 * MINUTE,
        rules(|rules| {
            (rules.finish_within, rules.retries) = (Some(Duration::from_secs(60)), 1);
            rules.backoff = Duration::from_secs(120);
            rules.backoff_max = rules.backoff;
        }),
    );
    let unfinished_of = |world: &World| {
        unfinished(&world.job.record, &world.schedule, StoreTime(world.now)).map(|one| one.since.0)
    };
    world.go(1.0);
    world.acquire().expect("due");
    world.go(1.05);
    world.end(RunEnd::Crashed, Then::Nothing);
    assert_eq!(unfinished_of(&world), None);
    look(&mut world, 1.1);
    assert_eq!(unfinished_of(&world), Some(11 * MINUTE), "it waits for its retry");
    world.go(1.3);
    world.acquire().expect("again");
    world.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(unfinished_of(&world), None);
}

#[test]
fn a_missed_tick_is_told_although_the_next_one_is_granted_in_the_same_step() {
    let mut world = World::new(MINUTE, rules(|rules| rules.missed = Missed::Skip));
    world.go(5.0);
    world.acquire().expect("the fifth");
    assert_eq!(world.told(), ["1x4 missed"]);
    assert_eq!(trouble_of(&world, Kind::Missed), Some((1, 4, true)));
    world.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(trouble_of(&world, Kind::Missed), Some((1, 4, true)), "whoever tells it looks now");
    world.now += i64::try_from(TOLD_FOR.as_millis()).unwrap();
    assert_eq!(trouble_of(&world, Kind::Missed), Some((1, 4, false)), "a run ended well since");
}

#[test]
fn a_lost_tick_is_told_until_a_run_ends_well_or_nobody_wants_the_job() {
    let new = || {
        let mut world = World::new(MINUTE, rules(|rules| rules.on_loss = OnLoss::Spent));
        world.go(1.0);
        world.acquire().expect("due");
        world.lapse();
        look(&mut world, 1.2);
        assert_eq!(trouble_of(&world, Kind::Lost), Some((1, 1, true)));
        world
    };
    let mut world = new();
    look(&mut world, 3.0);
    world.acquire().expect("a later one");
    world.end(RunEnd::Crashed, Then::Nothing);
    assert_eq!(trouble_of(&world, Kind::Lost), Some((1, 1, true)), "a crash ends it not");
    look(&mut world, 4.0);
    world.acquire().expect("a later one");
    world.end(RunEnd::Exited, Then::Nothing);
    assert!(trouble_of(&world, Kind::Lost).is_none_or(|(_, _, lasts)| !lasts));
    let mut world = new();
    look(&mut world, 3.0);
    world.switch(false);
    assert_eq!(trouble_of(&world, Kind::Lost), Some((1, 1, false)));
}

#[test]
fn a_run_that_ends_well_too_quickly_is_told_and_ends_nothing() {
    let least = Some(Duration::from_secs(10));
    let mut world = World::new(MINUTE, rules(|rules| rules.at_least = least));
    let mut run = |nth: f64, seconds: i64| {
        world.go(nth);
        world.acquire().expect("due");
        world.now += seconds * SECOND;
        world.end(RunEnd::Exited, Then::Nothing);
        trouble_of(&world, Kind::TooQuick)
    };
    assert_eq!(run(1.0, 10), None);
    assert_eq!(run(2.0, 9), Some((2, 1, true)));
    assert_eq!(run(4.0, 0), Some((2, 2, true)), "still");
    assert!(run(5.0, 11).is_none_or(|(_, _, lasts)| !lasts), "long enough");
}

#[test]
fn a_success_is_remembered_and_counts_from_when_the_job_was_wanted() {
    let mut world = World::new(MINUTE, Rules::default());
    let since = |world: &World| world.job.record.without_success_since().map(|at| at.0);
    assert_eq!(since(&world), Some(1), "never yet: since it was switched on");
    world.go(1.0);
    world.acquire().expect("due");
    world.end(RunEnd::Exited, Then::Nothing);
    world.go(2.0);
    world.acquire().expect("due");
    world.end(RunEnd::Crashed, Then::Nothing);
    assert_eq!(since(&world), Some(MINUTE), "a crash is no success");
    world.switch(false);
    assert_eq!(since(&world), None);
    world.go(9.0);
    world.switch(true);
    assert_eq!(since(&world), Some(9 * MINUTE), "what was while it was off does not count");
}

#[test]
fn what_became_of_ticks_is_counted_once_between_two_looks() {
    let mut world = World::new(MINUTE, rules(|rules| rules.missed = Missed::Skip));
    let clock = |world: &World| world.job.record.clock.clone().expect("a clock");
    let mut before = clock(&world);
    let mut news = |world: &World| {
        let after = clock(world);
        let news = after.news_since(&before);
        assert_eq!(after.news_since(&after), News::default(), "nothing is new twice");
        before = after;
        (news.ended, news.late_ms)
    };
    look(&mut world, 2.5);
    assert_eq!(news(&world), (vec![(Outcome::Missed, 2)], vec![]));
    look(&mut world, 3.5);
    assert_eq!(news(&world), (vec![(Outcome::Missed, 1)], vec![]), "one entry, and one more");
    world.now = 4 * MINUTE + 700;
    world.acquire().expect("due");
    assert_eq!(news(&world), (vec![], vec![700]));
    world.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(news(&world), (vec![(Outcome::Done, 1)], vec![]));
    world.go(5.0);
    world.acquire().expect("due");
    world.end(RunEnd::Crashed, Then::Nothing);
    assert_eq!(news(&world), (vec![(Outcome::Failed, 1)], vec![0]), "both at once");
}
