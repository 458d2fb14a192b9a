//! The law of ticks, act by act, and at random: a tick is granted once for each attempt, and every tick that was due has one entry.

mod ends;
mod troubles;

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::grant::{Acquire, Acquired, Condition};
use crate::job::{Exit, RunEnd};
use crate::journal::{Ended, Then};
use crate::lease::Token;
use crate::name::{JobName, NodeName, Owner, RunId, UserName};
use crate::time::Boot;
use crate::transition::history::Past;
use crate::transition::{Job, Now, Write, participation, run, tick as law};

const TTL: Duration = Duration::from_secs(5);
const SECOND: i64 = 1_000;

/// A tick each so many milliseconds.
#[derive(Debug, Clone, Copy)]
struct Each(i64);

impl Each {
    fn tick(self, at: i64) -> Tick {
        let name = TickName(format!("settle@{at}"));
        Tick { name, due: StoreTime(at), starts: StoreTime(at), note: None }
    }
}

impl Ticks for Each {
    fn after(&self, instant: StoreTime) -> Option<Tick> {
        Some(self.tick((instant.0.div_euclid(self.0) + 1) * self.0))
    }

    fn until(&self, instant: StoreTime) -> Option<Tick> {
        Some(self.tick(instant.0.div_euclid(self.0) * self.0))
    }

    fn former(&self, _: &str) -> Option<std::sync::Arc<dyn Ticks>> {
        Some(std::sync::Arc::new(*self))
    }
}

impl Fill for Each {
    fn fill(&self, _tick: &Tick, given: &Params) -> Params {
        given.clone()
    }
}

pub(super) struct World {
    pub(super) job: Job,
    schedule: Schedule,
    every: i64,
    pub(super) now: i64,
    /// What the store would list.
    pub(super) list: Vec<Entry>,
    granted: BTreeMap<(String, u32), Token>,
    owners: u32,
}

impl World {
    pub(super) fn new(every: i64, rules: Rules) -> Self {
        let ticks = std::sync::Arc::new(Each(every));
        let params = std::sync::Arc::new(Each(every));
        let schedule =
            Schedule { ticks, rules, text: "each".to_owned(), params, lacks: BTreeMap::new() };
        let mut world = Self {
            job: Job::untouched(JobName::new("settle").expect("a name")),
            schedule,
            every,
            now: 1,
            list: Vec::new(),
            granted: BTreeMap::new(),
            owners: 0,
        };
        world.switch(true);
        world.settle();
        world
    }

    fn at(&self) -> Now {
        Now { at: StoreTime(self.now), boot: Boot(0) }
    }

    fn wrote(&mut self, writes: Vec<Write>) {
        for write in writes {
            let Write::KeepTick { entry, instead } = write else { continue };
            if let Some(instead) = instead {
                let at = self.list.iter().position(|one| *one == *instead);
                self.list.remove(at.unwrap_or_else(|| panic!("{instead:?} is not listed")));
            }
            self.list.push(*entry);
        }
    }

    fn switch(&mut self, on: bool) {
        let (user, now) = (UserName::new("li").expect("a name"), self.at());
        let (_, writes) = participation::switch(&mut self.job, &user, on, None, now);
        self.wrote(writes);
    }

    fn hold(&mut self, on: bool) {
        let (user, now) = (UserName::new("ops").expect("a name"), self.at());
        let writes = match on {
            true => participation::hold(&mut self.job, &user, "stocktaking", now),
            false => participation::resume(&mut self.job, now),
        };
        self.wrote(writes);
    }

    pub(super) fn settle(&mut self) {
        let now = self.at();
        let writes =
            law::settle(&mut self.job, &Past::default(), &self.schedule, None, Duration::ZERO, now);
        self.wrote(writes);
    }

    /// A node tells a store that is in doubt what it saw.
    pub(super) fn tell(&mut self, sight: &Sight) {
        let (now, past) = (self.at(), Past::default());
        let writes = law::settle(&mut self.job, &past, &self.schedule, Some(sight), TTL, now);
        self.wrote(writes);
    }

    pub(super) fn acquire(&mut self) -> Result<Granted, Acquired> {
        self.owners += 1;
        let ask = Acquire {
            job: self.job.record.name.clone(),
            owner: Owner(self.owners.to_string()),
            node: NodeName::new("node-a").expect("a name"),
            ttl: TTL,
            condition: Condition::Wanted,
            seen: Token(0),
        };
        let now = self.at();
        let (answer, granted, writes) = law::acquire(
            &mut self.job,
            &Past::default(),
            &ask,
            &self.schedule,
            None,
            Duration::ZERO,
            now,
        );
        self.wrote(writes);
        let Acquired::Granted { token, .. } = answer else { return Err(answer) };
        let granted = granted.expect("a tick");
        assert!(granted.tick.starts <= now.at, "not before it is due");
        let key = (granted.tick.name.0.clone(), granted.attempt);
        assert_eq!(self.granted.insert(key, token), None, "{granted:?} was granted before");
        Ok(granted)
    }

    pub(super) fn end(&mut self, end: RunEnd, then: Then) {
        let lease = self.job.record.lease.clone().expect("a lease");
        let run = RunId(lease.token.0.to_string());
        let ended = Ended {
            job: self.job.record.name.clone(),
            owner: lease.owner,
            token: lease.token,
            run,
            exit: Exit { code: Some(i32::from(end != RunEnd::Exited)), signal: None },
            end,
            processes_killed: 0,
            then,
            began: None,
        };
        let now = self.at();
        let writes = run::ended(&mut self.job, &Past::default(), &ended, now).expect("not stale");
        self.wrote(writes);
    }

    /// The lease runs out.
    fn lapse(&mut self) {
        self.job.lapsed = self.job.record.lease.take();
    }

    /// What is listed, as words: the first tick in units of `every`, how many, and what became of them.
    pub(super) fn told(&self) -> Vec<String> {
        let mut list = self.list.clone();
        list.sort_by_key(|entry| entry.tick.starts);
        let word = |entry: &Entry| {
            let nth = entry.tick.starts.0 as f64 / self.every as f64;
            let count = if entry.count > 1 { format!("x{}", entry.count) } else { String::new() };
            format!("{nth}{count} {}", entry.outcome.as_str())
        };
        list.iter().map(word).collect()
    }

    pub(super) fn why(&self, nth: i64) -> String {
        let starts = StoreTime(nth * self.every);
        let name = Each(self.every).tick(starts.0).name;
        let entry = self.list.iter().find(|entry| entry.is_of(&name, starts)).expect("an entry");
        entry.why.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    pub(super) fn go(&mut self, nth: f64) {
        #[expect(clippy::cast_possible_truncation, reason = "small")]
        let at = (nth * self.every as f64) as i64;
        self.now = at;
    }
}

pub(super) fn rules(change: impl FnOnce(&mut Rules)) -> Rules {
    let mut rules = Rules::default();
    change(&mut rules);
    rules
}

pub(super) const MINUTE: i64 = 60 * SECOND;

#[test]
fn a_tick_is_granted_once_when_its_start_has_come() {
    let mut world = World::new(MINUTE, Rules::default());
    world.go(0.5);
    let refused = world.acquire().expect_err("not due");
    assert_eq!(refused, Acquired::NotYet { wait: Duration::from_secs(30) });
    world.go(1.0);
    let granted = world.acquire().expect("due");
    assert_eq!((granted.tick.starts, granted.attempt, granted.late_ms), (StoreTime(MINUTE), 1, 0));
    world.go(1.2);
    world.end(RunEnd::Exited, Then::Nothing);
    assert!(world.acquire().is_err(), "taken");
    assert_eq!(world.told(), ["1 done"]);
    assert_eq!(world.job.record.clock.as_ref().unwrap().taken.as_ref().unwrap().starts.0, MINUTE);
}

#[test]
fn what_nobody_wants_passes_and_switching_on_makes_up_for_nothing() {
    let mut world = World::new(MINUTE, Rules::default());
    world.go(0.5);
    world.switch(false);
    world.go(3.5);
    world.switch(true);
    world.go(3.6);
    assert!(world.acquire().is_err());
    assert_eq!(world.told(), ["1x3 unwanted"]);
    assert_eq!(world.why(2), "nobody wanted it: li switched it off");
    world.go(4.0);
    assert!(world.acquire().is_ok());
}

#[test]
fn off_decides_what_is_due_and_not_granted_at_once() {
    let mut world = World::new(MINUTE, Rules::default());
    world.now = MINUTE + SECOND;
    world.settle();
    world.switch(false);
    world.now += SECOND;
    world.switch(true);
    assert!(world.acquire().is_err());
    assert_eq!(world.told(), ["1 unwanted"]);
}

#[test]
fn missed_ticks_are_skipped_or_run_once_or_all() {
    for (missed, expected) in [
        (Missed::Skip, vec!["1x5 missed"]),
        (Missed::Once, vec!["1x4 covered", "5 done"]),
        (Missed::All, vec!["1x3 dropped", "4 done", "5 done"]),
    ] {
        let mut world = World::new(
            MINUTE,
            rules(|rules| {
                (rules.missed, rules.missed_most) = (missed, 2);
                rules.missed_window = Some(Duration::from_secs(3_600));
            }),
        );
        world.go(5.5);
        while world.acquire().is_ok() {
            world.now += 1;
            world.end(RunEnd::Exited, Then::Nothing);
        }
        assert_eq!(world.told(), expected, "{missed:?}");
    }
}

#[test]
fn a_missed_tick_runs_in_its_window_only() {
    let mut world = World::new(MINUTE, Rules::default());
    world.go(1.49);
    assert!(world.acquire().is_ok(), "half the interval is not over");
    let mut world = World::new(MINUTE, Rules::default());
    world.go(1.5);
    assert!(world.acquire().is_err());
    assert_eq!(world.told(), ["1 missed"]);
    assert_eq!(world.why(1), "nobody took it in time");
}

#[test]
fn the_end_of_a_hold_lets_missed_decide() {
    let mut world = World::new(MINUTE, Rules::default());
    world.go(0.5);
    world.hold(true);
    world.go(3.2);
    assert_eq!(world.acquire().expect_err("held"), Acquired::NotWanted);
    world.hold(false);
    let granted = world.acquire().expect("the newest");
    assert_eq!(granted.tick.starts.0, 3 * MINUTE);
    world.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(world.told(), ["1x2 missed", "3 done"]);
    assert_eq!(world.why(1), "held by ops: stocktaking");
}

#[test]
fn an_overlap_is_skipped_queued_or_replaces() {
    let open = |overlap| {
        let mut world = World::new(MINUTE, rules(|rules| rules.overlap = overlap));
        world.go(1.0);
        world.acquire().expect("due");
        world.go(3.1);
        world.settle();
        world
    };
    let mut skip = open(Overlap::Skip);
    skip.end(RunEnd::Exited, Then::Nothing);
    assert!(skip.acquire().is_err());
    assert_eq!(skip.told(), ["1 done", "2x2 skipped"]);
    assert_eq!(skip.why(2), "settle@60000 was still open");
    let mut queue = open(Overlap::Queue);
    queue.now += 10 * SECOND;
    queue.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(queue.acquire().expect("it waited").tick.starts.0, 3 * MINUTE);
    assert_eq!(queue.told(), ["1 done", "2 skipped"]);
    let mut replace = open(Overlap::Replace);
    assert!(!replace.job.record.wanted(), "its run is to be stopped");
    replace.end(RunEnd::Stopped, Then::Nothing);
    assert!(replace.job.record.wanted());
    assert_eq!(replace.acquire().expect("it replaced").tick.starts.0, 3 * MINUTE);
    assert_eq!(replace.told(), ["1 failed", "2 skipped"]);
    assert_eq!(replace.why(1), "settle@120000 replaced it", "the first that came stops it");
}

#[test]
fn a_crash_is_retried_and_a_loss_is_done_again_or_spent() {
    let again = |change: fn(&mut Rules)| {
        let mut world = World::new(10 * MINUTE, rules(change));
        world.now = 10 * MINUTE;
        world.acquire().expect("due");
        world.now += SECOND;
        world
    };
    let mut crash = again(|rules| rules.retries = 1);
    crash.end(RunEnd::Crashed, Then::Nothing);
    assert!(crash.acquire().is_err(), "it backs off");
    crash.now += SECOND;
    assert_eq!(crash.acquire().expect("a retry").attempt, 2);
    crash.end(RunEnd::Crashed, Then::Nothing);
    assert!(crash.acquire().is_err(), "used up");
    assert_eq!(crash.told(), ["1 failed"]);
    assert_eq!(crash.why(1), "it ended with exit code 1");

    let mut lost = again(|_| {});
    lost.lapse();
    let second = lost.acquire().expect("at once");
    assert_eq!((second.tick.starts.0, second.attempt), (10 * MINUTE, 2));
    lost.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(lost.told(), ["1 done"]);

    let mut spent = again(|rules| rules.on_loss = OnLoss::Spent);
    spent.lapse();
    spent.settle();
    assert_eq!(spent.told(), ["1 lost"], "told at once, by the clock");
    assert!(spent.acquire().is_err());

    let mut moved = again(|rules| rules.on_loss = OnLoss::Spent);
    moved.end(RunEnd::Stopped, Then::Unused);
    assert_eq!(moved.acquire().expect("nothing was started").attempt, 2);
}

#[test]
fn a_run_that_off_or_hold_stops_has_failed() {
    for hold in [false, true] {
        let mut world = World::new(MINUTE, rules(|rules| rules.retries = 3));
        world.go(1.0);
        world.acquire().expect("due");
        if hold {
            world.hold(true)
        } else {
            world.switch(false)
        }
        assert!(!world.job.record.wanted());
        world.now += SECOND;
        world.end(RunEnd::Stopped, Then::Nothing);
        assert_eq!(world.told(), ["1 failed"]);
    }
}

#[test]
fn what_is_due_while_no_node_lives_to_run_the_open_tick_again_is_missed_and_not_skipped() {
    for (missed, expected) in [
        (Missed::Skip, vec!["1 done", "2x4 missed"]),
        (Missed::Once, vec!["1 done", "2x3 covered", "5 done"]),
        (Missed::All, vec!["1 done", "2 done", "3 done", "4 done", "5 done"]),
    ] {
        let mut world = World::new(
            MINUTE,
            rules(|rules| {
                rules.missed = missed;
                rules.missed_window = Some(Duration::from_secs(3_600));
            }),
        );
        world.go(1.0);
        world.acquire().expect("due");
        world.now += SECOND;
        world.lapse();
        world.settle();
        world.go(5.5);
        assert_eq!(world.acquire().expect("again").attempt, 2);
        world.now += SECOND;
        world.end(RunEnd::Exited, Then::Nothing);
        while world.acquire().is_ok() {
            world.now += 1;
            world.end(RunEnd::Exited, Then::Nothing);
        }
        assert_eq!(world.told(), expected, "{missed:?}");
    }
}

fn asked(world: &World, name: &str) -> Asked {
    let starts = match name.split_once('@') {
        Some((_, at)) if !at.starts_with("hand") => StoreTime(at.parse().expect("a number")),
        _ => StoreTime(world.now),
    };
    let tick = Tick { name: TickName(name.to_owned()), due: starts, starts, note: None };
    Asked {
        tick,
        by: UserName::new("wang").expect("a name"),
        params: Params::new(),
        at: StoreTime(world.now),
        request: Some(name.to_owned()),
        attempts: 0,
        known: None,
    }
}

pub(super) fn ask(world: &mut World, name: &str) -> Result<TickName, Refused> {
    let (asked, now) = (asked(world, name), world.at());
    let (answer, writes) = law::ask(&mut world.job, &world.schedule, asked, None, now);
    world.wrote(writes);
    answer
}

#[test]
fn a_run_by_hand_needs_no_switch_and_is_refused_while_held() {
    let mut world = World::new(MINUTE, Rules::default());
    world.switch(false);
    let name = ask(&mut world, "settle@hand:1").expect("taken in");
    assert_eq!(ask(&mut world, "settle@hand:1"), Ok(name.clone()), "the same request");
    assert!(world.job.record.wanted());
    assert_eq!(world.acquire().expect("now").tick.name, name);
    assert!(world.job.record.wanted(), "off does not stop it");
    world.end(RunEnd::Exited, Then::Nothing);
    assert!(!world.job.record.wanted() && world.acquire().is_err());
    assert_eq!(world.list[0].by.as_ref().unwrap().as_str(), "wang");
    world.hold(true);
    assert!(matches!(ask(&mut world, "settle@hand:2"), Err(Refused::Held { .. })));
}

#[test]
fn a_tick_by_name_gets_its_next_attempt_and_leaves_the_gap_in_which_it_lay() {
    let mut world = World::new(MINUTE, rules(|rules| rules.missed = Missed::Skip));
    world.go(5.5);
    world.settle();
    assert_eq!(world.told(), ["1x5 missed"]);
    assert!(matches!(ask(&mut world, "settle@360000"), Err(Refused::Undecided(_))));
    ask(&mut world, "settle@180000").expect("taken in");
    let granted = world.acquire().expect("now");
    assert_eq!((granted.tick.starts.0, granted.attempt), (3 * MINUTE, 1));
    world.end(RunEnd::Crashed, Then::Nothing);
    assert_eq!(world.told(), ["1x2 missed", "3 failed", "4x2 missed"]);
    world.job.record.clock.as_mut().unwrap().answered.clear();
    ask(&mut world, "settle@180000").expect("it failed");
    assert_eq!(world.acquire().expect("now").attempt, 2);
    world.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(world.told(), ["1x2 missed", "3 done", "4x2 missed"]);
}

#[test]
fn a_tick_for_which_a_newer_one_may_still_run_is_not_decided() {
    let window = |rules: &mut Rules| rules.missed_window = Some(Duration::from_secs(3_600));
    let mut world = World::new(MINUTE, rules(window));
    world.go(3.5);
    world.settle();
    assert!(matches!(ask(&mut world, "settle@60000"), Err(Refused::Undecided(_))));
    world.acquire().expect("the newest");
    world.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(world.told(), ["1x2 covered", "3 done"]);
    ask(&mut world, "settle@60000").expect("covered");
}

#[test]
fn a_gap_does_not_take_in_the_entry_of_a_tick_that_runs_by_its_name() {
    let mut world = World::new(MINUTE, Rules::default());
    world.switch(false);
    world.go(1.5);
    ask(&mut world, "settle@60000").expect("nobody wanted it");
    world.acquire().expect("now");
    world.go(3.5);
    world.settle();
    world.end(RunEnd::Exited, Then::Nothing);
    assert_eq!(world.told(), ["1 done", "2x2 unwanted"]);
}

#[test]
fn a_new_expression_counts_from_when_it_is_first_seen() {
    let mut world = World::new(MINUTE, rules(|rules| rules.missed_window = Some(Duration::MAX)));
    world.go(1.1);
    world.settle();
    let old = world.schedule.clone();
    world.schedule.text = "another".to_owned();
    world.settle();
    assert_eq!(world.told(), ["1 missed"]);
    assert_eq!(world.why(1), "the schedule was changed");
    world.schedule = old;
    world.go(2.0);
    assert!(world.acquire().is_ok(), "one that it had before moves nothing");
}

#[test]
fn a_run_that_lasts_does_not_let_the_record_grow() {
    let mut world = World::new(
        MINUTE,
        rules(|rules| {
            (rules.missed, rules.missed_most) = (Missed::All, 3);
            rules.missed_window = Some(Duration::MAX);
        }),
    );
    world.go(3.5);
    world.acquire().expect("the oldest");
    world.go(500.5);
    world.settle();
    let clock = world.job.record.clock.as_ref().unwrap();
    assert_eq!(clock.pending.len(), 3);
    assert_eq!(world.told().last().map(String::as_str), Some("5x496 skipped"));
}

#[test]
fn a_gap_that_is_too_long_to_be_counted_is_one_entry_up_to_its_end() {
    let mut world = World::new(SECOND, Rules::default());
    world.switch(false);
    world.now = 50_000 * SECOND + 1;
    world.switch(true);
    world.settle();
    assert_eq!(world.list.len(), 1, "{:?}", world.told());
    let gap = &world.list[0];
    assert_eq!((gap.tick.starts.0, gap.last().starts.0), (SECOND, 50_000 * SECOND));
    assert!(gap.count >= 10_000, "{}", gap.count);
}

#[test]
fn a_tick_by_name_whose_entry_is_old_has_one_entry_afterwards() {
    let mut world = World::new(MINUTE, Rules::default());
    for nth in 1..=20 {
        world.now = nth * MINUTE;
        world.acquire().expect("due");
        let end = if nth == 2 { RunEnd::Crashed } else { RunEnd::Exited };
        world.end(end, Then::Nothing);
    }
    let name = "settle@120000";
    let known = world.list.iter().find(|entry| entry.tick.name.0 == name).cloned();
    let (asked, now) = (asked(&world, name), world.at());
    let (answer, writes) = law::ask(&mut world.job, &world.schedule, asked, known.as_ref(), now);
    world.wrote(writes);
    answer.expect("it failed");
    assert_eq!(world.acquire().expect("now").attempt, 2);
    world.end(RunEnd::Exited, Then::Nothing);
    let of_it = world.list.iter().filter(|entry| entry.tick.name.0 == name).collect::<Vec<_>>();
    assert_eq!(of_it.len(), 1, "{of_it:?}");
    assert_eq!((of_it[0].outcome, of_it[0].attempt), (Outcome::Done, 2));
}

#[test]
fn a_run_that_was_asked_for_is_none_of_a_job_that_has_become_continuous() {
    let mut world = World::new(MINUTE, Rules::default());
    world.switch(false);
    ask(&mut world, "settle@hand:1").expect("taken in");
    let ask = Acquire {
        job: world.job.record.name.clone(),
        owner: Owner("o".to_owned()),
        node: NodeName::new("node-a").expect("a name"),
        ttl: TTL,
        condition: Condition::Wanted,
        seen: Token(0),
    };
    let now = world.at();
    let (answer, _) = crate::transition::lease::acquire(
        &mut world.job,
        &Past::default(),
        &ask,
        Duration::ZERO,
        now,
    );
    assert_eq!(answer, Acquired::NotWanted);
}

#[test]
fn a_clock_that_was_far_ahead_stands_in_the_way_until_it_is_reset() {
    let mut world = World::new(MINUTE, Rules::default());
    world.switch(false);
    world.now = 1_000 * MINUTE;
    world.switch(true);
    world.settle();
    world.now = 5 * MINUTE;
    let upcoming = upcoming(&world.job.record, &world.schedule, StoreTime(world.now));
    assert_eq!(upcoming, Upcoming::Barred);
    let now = world.at();
    assert!(law::reset(&mut world.job, now).0);
    world.now = 6 * MINUTE;
    assert!(world.acquire().is_ok());
}

#[test]
fn after_a_reset_a_tick_that_ended_ahead_of_the_clock_is_not_open() {
    let mut world = World::new(MINUTE, Rules::default());
    world.now = 1_000 * MINUTE;
    world.settle();
    world.acquire().expect("due");
    world.end(RunEnd::Exited, Then::Nothing);
    world.now = 5 * MINUTE + SECOND;
    let now = world.at();
    assert!(law::reset(&mut world.job, now).0);
    world.now = 6 * MINUTE;
    assert_eq!(world.acquire().expect("not skipped").tick.starts.0, 6 * MINUTE);
}

/// A small generator: the tests of this room draw no random numbers from outside.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn whatever_happens_each_tick_is_granted_once_and_has_one_entry() {
    for seed in 0..1_000 {
        let mut dice = Dice(seed);
        let made = rules(|rules| {
            rules.missed = [Missed::Skip, Missed::Once, Missed::All][dice.roll(3) as usize];
            rules.overlap =
                [Overlap::Skip, Overlap::Queue, Overlap::Replace][dice.roll(3) as usize];
            rules.on_loss = [OnLoss::Again, OnLoss::Spent][dice.roll(2) as usize];
            rules.retries = dice.roll(3) as u32;
            rules.missed_most = 1 + dice.roll(3) as usize;
            rules.missed_window = [None, Some(Duration::from_secs(25))][dice.roll(2) as usize];
        });
        let every = 10 * SECOND;
        let spent = made.on_loss == OnLoss::Spent;
        let mut world = World::new(every, made);
        let mut losses: BTreeMap<String, bool> = BTreeMap::new();
        for _ in 0..60 {
            world.now += 1 + i64::try_from(dice.roll(9_000)).expect("small");
            let held = world.job.record.lease.is_some();
            match dice.roll(12) {
                0 => world.switch(dice.roll(2) == 0),
                1 => world.hold(dice.roll(3) == 0),
                2 => world.settle(),
                3 | 4 if held => world.end(RunEnd::Exited, Then::Nothing),
                5 if held => world.end(RunEnd::Crashed, Then::Nothing),
                6 if held => world.end(RunEnd::Stopped, Then::Nothing),
                7 if held => {
                    let tick = world.job.record.clock.as_ref().unwrap().open().unwrap();
                    losses.insert(tick.tick.name.0.clone(), true);
                    world.lapse();
                }
                8 => {
                    let name = format!("settle@hand:{}", world.now);
                    drop(ask(&mut world, &name));
                }
                _ if !held => {
                    if let Ok(granted) = world.acquire() {
                        let lost = losses.contains_key(&granted.tick.name.0);
                        assert!(!(lost && spent), "seed {seed}: {granted:?} was spent");
                    }
                }
                _ => {}
            }
        }
        world.hold(false);
        world.now += 1_000 * SECOND;
        if world.job.record.lease.is_some() {
            world.lapse();
        }
        world.settle();
        let clock = world.job.record.clock.as_ref().unwrap();
        let mut seen = BTreeMap::new();
        let pending = clock.pending.iter().flat_map(|one| {
            let older = one.older.iter().map(|older| (older.tick.starts.0, older.count));
            older.chain([(one.tick.starts.0, 1)])
        });
        let open = clock.open().map(|open| (open.tick.starts.0, 1));
        let open = open.filter(|_| !clock.open().unwrap().tick.name.is_by_hand());
        let listed = world.list.iter().filter(|entry| !entry.tick.name.is_by_hand());
        let all = listed.map(|entry| (entry.tick.starts.0, entry.count)).chain(pending).chain(open);
        for (starts, count) in all {
            for nth in 0..i64::from(count) {
                let tick = starts + nth * every;
                assert_eq!(seen.insert(tick, ()), None, "seed {seed}: {tick} twice");
            }
        }
        let due: Vec<i64> = (1..=world.now / every).map(|nth| nth * every).collect();
        assert_eq!(seen.into_keys().collect::<Vec<_>>(), due, "seed {seed}: {:#?}", world.told());
    }
}

/// A zone table in which the clocks of Berlin went back an hour, or did not.
#[derive(Debug, Clone, Copy)]
struct Table {
    ahead: i64,
}

impl Table {
    fn tick(self, nth: i64) -> Tick {
        let (hour, minute) = (nth.div_euclid(60), nth.rem_euclid(60));
        let name = format!(
            "settle@2026-10-25T{hour:02}:{minute:02}+0{}:00[Europe/Berlin]",
            1 + self.ahead
        );
        let at = StoreTime((nth - 60 * self.ahead) * MINUTE);
        Tick { name: TickName(name), due: at, starts: at, note: None }
    }
}

impl Ticks for Table {
    fn after(&self, instant: StoreTime) -> Option<Tick> {
        Some(self.tick(instant.0.div_euclid(MINUTE) + 1 + 60 * self.ahead))
    }

    fn until(&self, instant: StoreTime) -> Option<Tick> {
        Some(self.tick(instant.0.div_euclid(MINUTE) + 60 * self.ahead))
    }

    fn former(&self, _: &str) -> Option<std::sync::Arc<dyn Ticks>> {
        None
    }
}

#[test]
fn two_nodes_with_other_zone_tables_run_a_civil_time_once() {
    for seed in 0..50 {
        let mut dice = Dice(seed);
        let mut world = World::new(MINUTE, Rules::default());
        world.now = 3 * 60 * MINUTE;
        let mut civil: BTreeMap<String, u32> = BTreeMap::new();
        for _ in 0..400 {
            world.now += 1 + i64::try_from(dice.roll(30_000)).expect("small");
            let ahead = i64::try_from(dice.roll(2)).expect("small");
            world.schedule.ticks = std::sync::Arc::new(Table { ahead });
            if world.job.record.lease.is_some() {
                world.end(RunEnd::Exited, Then::Nothing);
            } else if let Ok(granted) = world.acquire() {
                let (time, _) = granted.tick.name.0.split_once('+').expect("an offset");
                *civil.entry(time.to_owned()).or_default() += 1;
            }
        }
        assert!(civil.len() > 30, "{}", civil.len());
        assert!(civil.values().all(|count| *count == 1), "seed {seed}: {civil:?}");
    }
}

#[test]
fn the_second_pass_of_a_fold_is_no_tick_of_the_first() {
    let name = |text: &str| TickName(text.to_owned());
    let first = name("a@2026-10-25T02:40+02:00[Europe/Berlin]");
    let second = name("a@2026-10-25T02:20+01:00[Europe/Berlin][_fold=2]");
    assert!(!second.is_not_after(&first));
    assert!(name("a@2026-10-25T02:20+01:00[Europe/Berlin]").is_not_after(&first));
    assert!(!name("a@2026-10-25T03:00+01:00[Europe/Berlin]").is_not_after(&second));
    assert!(!name("a@2026-10-25T02:20+01:00[Europe/Paris]").is_not_after(&first));
    assert!(!name("a@2026-10-25T00:20:00Z").is_not_after(&name("a@2026-10-25T00:40:00Z")));
}

#[test]
fn the_offset_in_a_name_is_shown_and_not_compared() {
    let name = |text: &str| TickName(text.to_owned());
    let one = name("settle@2026-10-25T02:30+02:00[Europe/Berlin]");
    assert_eq!(one, name("settle@2026-10-25T02:30+01:00[Europe/Berlin]"));
    assert_ne!(one, name("settle@2026-10-25T02:31+02:00[Europe/Berlin]"));
    assert_ne!(one, name("settle@2026-10-25T02:30+02:00[Europe/Paris]"));
    assert_ne!(one, name("set-tle@2026-10-25T02:30+02:00[Europe/Berlin]"));
    let plain = name("pull-it@2026-11-27T02:30:00Z");
    assert_ne!(plain, name("pull-it@2026-11-27T02:30:01Z"));
    assert!(!plain.is_by_hand() && name("a@hand:01ARZ").is_by_hand());
    let texts = [
        (one, "settle@2026-10-25T02:30[Europe/Berlin]"),
        (
            name("a@2026-10-25T02:20+01:00[Europe/Berlin][_fold=2]"),
            "a@2026-10-25T02:20[Europe/Berlin][_fold=2]",
        ),
        (plain, "pull-it@2026-11-27T02:30:00Z"),
    ];
    for (name, text) in texts {
        assert_eq!(name.without_offset(), text);
    }
}

#[test]
fn what_waits_behind_an_open_tick_is_decided_when_the_job_is_switched_off() {
    let mut world = World::new(
        MINUTE,
        rules(|rules| {
            (rules.overlap, rules.missed) = (Overlap::Queue, Missed::Skip);
        }),
    );
    world.go(1.0);
    world.acquire().expect("due");
    world.go(2.1);
    // Nobody has looked since the second was due.
    world.switch(false);
    world.now += SECOND;
    world.end(RunEnd::Stopped, Then::Nothing);
    let look = {
        let clock = world.job.record.clock.as_ref().unwrap();
        clock.next_look(&world.schedule, clock.accounted).expect("something is undecided")
    };
    world.now = world.now.max(look.0);
    world.settle();
    assert_eq!(world.told(), ["1 failed", "2 unwanted"]);
}
