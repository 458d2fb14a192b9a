//! A store that forgot, act by act: nodes report again what they saw, and what no node saw does not run.

use super::tests::{MINUTE, World, ask, rules};
use super::*;
use crate::job::RunEnd;
use crate::journal::Then;
use crate::transition::Job;

/// A store that was kept, and what a node saw last of the one that goes on.
struct Kept {
    job: Job,
    list: Vec<Entry>,
}

impl Kept {
    fn of(world: &World) -> Self {
        Self { job: world.job.clone(), list: world.list.clone() }
    }

    /// Puts it back; what a node saw of `world` just before.
    fn put_back(self, world: &mut World) -> Sight {
        let clock = world.job.record.clock.clone().expect("ticks are known");
        let (at, version) = (StoreTime(world.now), world.job.record.version);
        (world.job, world.list) = (self.job, self.list);
        // Leases are not put back: they end by the clock.
        (world.job.record.lease, world.job.lapsed) = (None, None);
        Sight { clock, version, at, changed: Some(StoreTime(world.now)) }
    }
}

fn daily() -> World {
    World::new(
        MINUTE,
        rules(|rules| {
            rules.missed = Missed::All;
            rules.missed_window = Some(std::time::Duration::MAX);
        }),
    )
}

/// Runs the tick that is due.
fn runs(world: &mut World, end: RunEnd) -> Granted {
    let granted = world.acquire().expect("due");
    world.end(end, Then::Nothing);
    granted
}

#[test]
fn what_ran_since_is_told_again_and_runs_no_second_time() {
    let mut world = daily();
    world.go(1.0);
    runs(&mut world, RunEnd::Exited);
    let kept = Kept::of(&world);
    for nth in [2.0, 3.0, 4.0] {
        world.go(nth);
        runs(&mut world, RunEnd::Exited);
    }
    let sight = kept.put_back(&mut world);
    world.tell(&sight);
    assert_eq!(world.told(), ["1 done", "2 done", "3 done", "4 done"]);
    world.go(4.9);
    assert!(world.acquire().is_err());
    world.go(5.0);
    assert_eq!(world.acquire().expect("the next").tick.starts.0, 5 * MINUTE);
}

#[test]
fn a_tick_that_nobody_saw_is_not_run_and_its_entry_says_why() {
    let mut world = daily();
    world.go(1.0);
    runs(&mut world, RunEnd::Exited);
    world.go(2.5);
    let kept = Kept::of(&world);
    let mut sight = kept.put_back(&mut world);
    // This node looked for the last time before the second was due.
    sight.at = StoreTime(MINUTE + 1);
    world.tell(&sight);
    assert!(world.acquire().is_err());
    assert_eq!(world.told(), ["1 done", "2 missed"]);
    assert_eq!(world.why(2), "the store forgot whether it ran");
    world.go(3.0);
    assert_eq!(world.acquire().expect("after the change").tick.starts.0, 3 * MINUTE);
}

#[test]
fn a_tick_that_a_node_saw_without_a_grant_is_run() {
    let mut world = daily();
    world.go(1.2);
    world.settle();
    let kept = Kept::of(&world);
    world.go(1.4);
    let sight = kept.put_back(&mut world);
    world.tell(&sight);
    assert_eq!(world.acquire().expect("it waited before").tick.starts.0, MINUTE);
}

#[test]
fn a_run_that_goes_on_is_the_open_tick_of_a_store_that_forgot_it() {
    let mut world = daily();
    let kept = Kept::of(&world);
    world.go(1.0);
    world.acquire().expect("due");
    let lease = world.job.record.lease.clone();
    let token = world.job.record.token;
    let sight = kept.put_back(&mut world);
    (world.job.record.lease, world.job.record.token) = (lease, token);
    world.tell(&sight);
    world.go(1.5);
    world.end(RunEnd::Exited, Then::Nothing);
    assert!(world.acquire().is_err());
    assert_eq!(world.told(), ["1 done"]);
}

#[test]
fn a_run_whose_end_was_told_to_a_store_that_did_not_know_it_is_not_begun_again() {
    let mut world = daily();
    let kept = Kept::of(&world);
    world.go(1.0);
    world.acquire().expect("due");
    let token = world.job.record.token;
    let sight = kept.put_back(&mut world);
    world.job.released = token;
    // Two nodes saw it, one of them a later record.
    let later = Sight { version: sight.version + 9, ..sight.clone() };
    for sight in [sight, later] {
        world.tell(&sight);
        assert!(world.acquire().is_err());
        assert_eq!(world.told(), ["1 lost"]);
    }
}

#[test]
fn an_attempt_by_name_is_greater_than_those_that_were_forgotten() {
    let mut world = daily();
    world.go(1.0);
    runs(&mut world, RunEnd::Crashed);
    let kept = Kept::of(&world);
    for _ in 0..3 {
        world.job.record.clock.as_mut().expect("ticks are known").answered.clear();
        ask(&mut world, "settle@60000").expect("it failed");
        runs(&mut world, RunEnd::Crashed);
    }
    let mut sight = kept.put_back(&mut world);
    // Its entry is older than what this node saw of the counter.
    sight.clock.recent.clear();
    world.tell(&sight);
    world.job.record.clock.as_mut().expect("ticks are known").answered.clear();
    ask(&mut world, "settle@60000").expect("it failed");
    assert_eq!(world.acquire().expect("now").attempt, 5);
}

#[test]
fn a_store_that_knows_more_learns_nothing() {
    let mut world = daily();
    world.go(1.0);
    runs(&mut world, RunEnd::Exited);
    let clock = world.job.record.clock.clone().expect("ticks are known");
    let (at, version) = (StoreTime(world.now), world.job.record.version);
    world.go(2.0);
    runs(&mut world, RunEnd::Exited);
    let before = world.job.record.clone();
    world.tell(&Sight { clock, version, at, changed: None });
    assert_eq!(world.job.record, before);
}
