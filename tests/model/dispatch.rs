//! Dispatch in every interleaving of two collectors who ask, report, extend, give back, fall silent and are late; of answers
//! that are lost and asked for again; and of nodes that take back what they believe nobody saw.
//!
//! Everything that is decided is decided by the transitions of `domain::dispatch`, the very ones that stores carry out. What they
//! are judged by is counted beside them in units of time and shares nothing with them: who was given which task how long
//! ago, how often it was tried, and how long ago its source started one.

use std::collections::BTreeSet;
use std::time::Duration;

use soloist::domain::dispatch::{
    Answer, ClaimAsk, ClaimOwner, Exchange, Kept, NewTask, PROMISE, Place, REMEMBERED, Report,
    Reported, Rules, Task, TaskId, TaskOutcome, TaskState,
};
use soloist::domain::lease::Token;
use soloist::domain::name::{SourceName, Waiter};
use soloist::domain::time::Stamp;

use soloist::domain::dispatch::in_memory::Store;

use super::search::{self, is_found, keeps_every_promise};

/// A promise lasts for one.
const UNIT: Duration = PROMISE;
const NOW: Stamp = Stamp(1_000_000_000);
const PATIENCE: Duration = Duration::from_secs(3_600);
const LEASE: u8 = 2;
const GAP: u8 = 3;
const ATTEMPTS: u32 = 2;
/// Source of each task: `a` is free, `b` has a gap.
const TASKS: [usize; 3] = [0, 0, 1];
const SOURCES: [&str; 2] = ["a", "b"];
const COLLECTORS: [&str; 2] = ["c", "d"];
/// Units of time within which everything is done when one collector goes on.
const SOON: usize = 30;

const TWO_HANDS: &str = "a task is in two hands at once";
const LOST: &str = "a task is lost";
const STALE: &str = "a stale result changes something";
const REFUSED: &str = "a result within its lease is refused";
const SAME: &str = "the same request has another answer while its lease lasts";
const TRIES: &str = "a task is not tried as often as is counted";
const TOO_SOON: &str = "a task starts within the gap";
const SLEEPS: &str = "somebody waits although a task may start";
const STARVES: &str = "a task is never done";

/// Broken on purpose, to see that it would be noticed: transitions are shown less than the store knows, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    Nothing,
    LeasesEndAtOnce,
    LeasesNeverEnd,
    TokensAreNotCompared,
    AnswersAreForgotten,
    WhatIsUnseenIsNotMarked,
    GapsAreForgotten,
    PromisesNeverLapse,
    TriesAreForgotten,
}

/// A lease as a collector knows it, or should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Grant {
    to: usize,
    token: Token,
    age: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    store: Store,
    /// What each collector believes to hold.
    hands: [Vec<(usize, Token)>; 2],
    /// A node believes that the newest answer to this collector was never seen.
    unseen: [bool; 2],
    // What transitions are judged by.
    grants: [Option<Grant>; 3],
    tries: [u32; 3],
    done: [bool; 3],
    /// Units since `b` started a task.
    rested: u8,
    woken: BTreeSet<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Tick,
    Pump,
    Ask { who: usize, lost: bool },
    Report { who: usize, outcome: TaskOutcome, asks: bool },
    Extend(usize),
    GiveBack(usize),
    TakeBackUnseen(usize),
    Revive(usize),
}

fn source(nth: usize) -> SourceName {
    SOURCES[nth].parse().expect("a name")
}

fn id(task: usize) -> TaskId {
    TaskId::of(&source(TASKS[task]), &task.to_string())
}

fn number(task: &TaskId) -> usize {
    (0..TASKS.len()).find(|nth| id(*nth) == *task).expect("one of them")
}

fn waiter(who: usize) -> Waiter {
    Waiter(format!("n/x/{who}"))
}

/// The one request of each collector: asked again it is the same, until it is over.
fn ask(who: usize) -> ClaimAsk {
    ClaimAsk {
        owner: ClaimOwner::of("test"),
        collector: COLLECTORS[who].parse().expect("a label"),
        request: "r".parse().expect("a label"),
        max: 2,
        sources: Vec::new(),
        wait: Some((waiter(who), PATIENCE)),
    }
}

fn rules(nth: usize) -> Rules {
    let gap = if nth == 1 { UNIT * u32::from(GAP) } else { Duration::ZERO };
    let lease = UNIT * u32::from(LEASE);
    Rules { gap, lease, max_attempts: ATTEMPTS, ..Rules::default() }
}

/// A game under some rules.
#[derive(Clone, Copy)]
struct Game(Plant);

impl search::Game for Game {
    type World = World;
    type Act = Act;
    const LOOKED_AT: usize = 20;

    fn begin(&self) -> World {
        let mut store = Store::default();
        for nth in 0..SOURCES.len() {
            store.define(&source(nth), &rules(nth), NOW);
        }
        let task = |(nth, of): (usize, &usize)| NewTask {
            key: nth.to_string(),
            source: source(*of),
            payload: "null".to_owned(),
            priority: 0,
            at: None,
            every: None,
        };
        let tasks: Vec<NewTask> = TASKS.iter().enumerate().map(task).collect();
        store.put(&tasks, NOW).expect("known sources");
        let mut world = World {
            store,
            hands: [Vec::new(), Vec::new()],
            unseen: [false; 2],
            grants: [None; 3],
            tries: [0; 3],
            done: [false; 3],
            rested: GAP,
            woken: BTreeSet::new(),
        };
        world.normalize();
        world
    }

    fn acts(&self, world: &World) -> Vec<Act> {
        let mut acts = vec![Act::Tick, Act::Pump];
        for who in 0..COLLECTORS.len() {
            acts.extend([false, true].map(|lost| Act::Ask { who, lost }));
            if !world.hands[who].is_empty() {
                acts.extend([Act::Extend(who), Act::GiveBack(who)]);
                for outcome in [TaskOutcome::Done, TaskOutcome::Retry] {
                    acts.extend([false, true].map(|asks| Act::Report { who, outcome, asks }));
                }
            }
            if world.unseen[who] {
                acts.push(Act::TakeBackUnseen(who));
            }
        }
        let dead = |nth: &usize| world.store.tasks[&id(*nth)].state == TaskState::Dead;
        acts.extend((0..TASKS.len()).find(dead).map(Act::Revive));
        acts
    }

    fn after(&self, before: &World, act: Act) -> Result<World, &'static str> {
        let mut world = before.clone();
        self.mislead(&mut world, act);
        match act {
            Act::Tick => self.tick(&mut world),
            Act::Pump => {
                world.store.pump(NOW);
            }
            Act::Ask { who, lost } => {
                let exchange = Exchange { claim: Some(ask(who)), ..Exchange::default() };
                self.exchange(&mut world, who, &exchange, lost)?;
            }
            Act::Report { who, outcome, asks } => {
                self.report(&mut world, who, outcome, asks)?;
            }
            Act::Extend(who) => {
                if let Ok(extended) = world.store.extend(&ask(who).id(), None, NOW) {
                    for task in extended.kept {
                        let grant = world.grants[number(&task)].as_mut().ok_or(STALE)?;
                        if grant.to != who || grant.age >= LEASE {
                            return Err(STALE);
                        }
                        grant.age = 0;
                    }
                }
            }
            Act::GiveBack(who) => {
                world.store.give_back(&ask(who).id(), None, false, NOW);
                world.hands[who].clear();
                world.gave_back(who);
            }
            Act::TakeBackUnseen(who) => {
                world.unseen[who] = false;
                if world.store.give_back(&ask(who).id(), None, true, NOW) > 0 {
                    if !world.hands[who].is_empty() && self.has_in_hand(&world, who) {
                        return Err(TWO_HANDS);
                    }
                    world.gave_back(who);
                }
            }
            Act::Revive(nth) => {
                world.store.revive(&id(nth), NOW).expect("known");
                world.tries[nth] = 0;
            }
        }
        self.conclude(&mut world, act)?;
        Ok(world)
    }

    /// When one collector goes on and everybody else is silent, every task is done.
    fn ends_well(&self, world: &World) -> Result<(), &'static str> {
        let mut world = world.clone();
        for _ in 0..SOON {
            if world.done == [true; 3] {
                return Ok(());
            }
            world = self.after(&world, Act::Pump)?;
            world = self.after(&world, Act::Ask { who: 0, lost: false })?;
            while !world.hands[0].is_empty() {
                let report = Act::Report { who: 0, outcome: TaskOutcome::Done, asks: false };
                world = self.after(&world, report)?;
            }
            if let Some(Act::Revive(nth)) = self.acts(&world).pop() {
                world = self.after(&world, Act::Revive(nth))?;
            }
            world = self.after(&world, Act::Tick)?;
        }
        Err(STARVES)
    }
}

impl Game {
    /// A collector knows of a lease that lasts.
    fn has_in_hand(self, world: &World, who: usize) -> bool {
        world.hands[who].iter().any(|(nth, token)| {
            world.grants[*nth].is_some_and(|grant| grant.token == *token && grant.age < LEASE)
        })
    }

    /// What a planted fault does to what the store shows.
    fn mislead(self, world: &mut World, act: Act) {
        let store = &mut world.store;
        match self.0 {
            Plant::LeasesEndAtOnce if matches!(act, Act::Ask { .. }) => {
                for task in store.tasks.values_mut() {
                    task.until.iter_mut().for_each(|until| *until = NOW);
                }
            }
            Plant::AnswersAreForgotten if matches!(act, Act::Ask { .. }) => store.claims.clear(),
            Plant::WhatIsUnseenIsNotMarked if matches!(act, Act::TakeBackUnseen(_)) => {
                for claim in store.claims.values_mut() {
                    if let Kept::Granted { repeated, .. } = &mut claim.kept {
                        *repeated = false;
                    }
                }
            }
            Plant::GapsAreForgotten => {
                for source in store.sources.values_mut() {
                    source.last_start = None;
                }
            }
            Plant::TriesAreForgotten if act == Act::Pump => {
                store.tasks.values_mut().for_each(|task| task.attempt = task.attempt.min(1));
            }
            _ => {}
        }
    }

    fn report(
        self,
        world: &mut World,
        who: usize,
        outcome: TaskOutcome,
        asks: bool,
    ) -> Result<(), &'static str> {
        let (nth, token) = world.hands[who].remove(0);
        let task = &world.store.tasks[&id(nth)];
        let compared = self.0 != Plant::TokensAreNotCompared;
        let report = Report {
            id: id(nth),
            token: if compared { token } else { task.token },
            outcome,
            delay: Some(Duration::ZERO),
            error: None,
        };
        let known = task.accepted == token;
        let grant = world.grants[nth];
        let counts =
            grant.is_some_and(|grant| grant.to == who && grant.token == token && grant.age < LEASE);
        let before = world.store.clone();
        let answer = world.store.report(&report, NOW);
        match answer {
            Reported::Ok if counts => {
                world.grants[nth] = None;
                world.done[nth] |= outcome == TaskOutcome::Done;
            }
            Reported::Stale if counts => return Err(REFUSED),
            Reported::Unknown => return Err(LOST),
            Reported::Ok | Reported::Stale => {
                let same = before.tasks == world.store.tasks && before.claims == world.store.claims;
                if !same || (answer == Reported::Ok) != known {
                    return Err(STALE);
                }
            }
        }
        // The same again, with the next request in the same step: the answer to the first may have been lost.
        if asks {
            let reports = vec![report];
            let exchange = Exchange { reports, claim: Some(ask(who)), only: None };
            self.exchange(world, who, &exchange, false)?;
        }
        Ok(())
    }

    /// A collector asks; whoever loses the answer knows nothing of it.
    fn exchange(
        self,
        world: &mut World,
        who: usize,
        exchange: &Exchange,
        lost: bool,
    ) -> Result<(), &'static str> {
        if !world.store.claims.contains_key(&ask(who).id()) {
            world.unseen[who] = false;
        }
        world.woken.remove(&who);
        let live = |grant: &Grant| grant.to == who && grant.age < LEASE;
        let held: BTreeSet<usize> =
            (0..TASKS.len()).filter(|nth| world.grants[*nth].as_ref().is_some_and(live)).collect();
        let (_, answer) = world.store.exchange(exchange, NOW).expect("known sources");
        let tasks = match answer.expect("something was asked") {
            Answer::Granted { tasks, .. } => tasks,
            Answer::Nothing { .. } => Vec::new(),
        };
        let given: BTreeSet<usize> = tasks.iter().map(|task| number(&task.id)).collect();
        let again = |task: &Task| {
            world.grants[number(&task.id)].is_some_and(|grant| grant.token == task.token)
        };
        if !held.is_empty() && (given != held || !tasks.iter().all(again)) {
            return Err(SAME);
        }
        for task in &tasks {
            self.granted(world, who, task)?;
        }
        world.unseen[who] |= lost && !tasks.is_empty();
        if !lost {
            for task in tasks {
                let nth = number(&task.id);
                world.hands[who].retain(|(one, _)| *one != nth);
                world.hands[who].push((nth, task.token));
            }
            world.hands[who].sort_unstable();
        }
        Ok(())
    }

    /// Judges whether a task might be handed out.
    fn granted(self, world: &mut World, to: usize, task: &Task) -> Result<(), &'static str> {
        let (nth, token) = (number(&task.id), task.token);
        if let Some(grant) = world.grants[nth] {
            if grant.to == to && grant.token == token {
                return Ok(());
            }
            if grant.age < LEASE {
                return Err(TWO_HANDS);
            }
        }
        if world.done[nth] {
            return Err(TWO_HANDS);
        }
        if TASKS[nth] == 1 {
            if world.rested < GAP {
                return Err(TOO_SOON);
            }
            world.rested = 0;
        }
        world.tries[nth] += 1;
        world.grants[nth] = Some(Grant { to, token, age: 0 });
        Ok(())
    }

    /// Who was woken, whether anything is lost; and all that is remembered is made alike.
    fn conclude(self, world: &mut World, act: Act) -> Result<(), &'static str> {
        for woken in std::mem::take(&mut world.store.woken) {
            world.woken.extend((0..COLLECTORS.len()).find(|who| waiter(*who) == woken));
        }
        if world.store.is_sound(NOW).is_err() || world.store.tasks.len() != TASKS.len() {
            return Err(LOST);
        }
        for nth in 0..TASKS.len() {
            let task = &world.store.tasks[&id(nth)];
            let dies = task.state == TaskState::Dead;
            if task.attempt != world.tries[nth] || dies && world.tries[nth] < ATTEMPTS {
                return Err(TRIES);
            }
            if world.done[nth] != (task.state == TaskState::Done) {
                return Err(LOST);
            }
        }
        if act == Act::Pump && !world.store.queue.is_empty() && world.woken.is_empty() {
            let open = |nth: usize| world.store.shut(&source(nth), NOW).is_none();
            if (0..SOURCES.len()).any(open) {
                return Err(SLEEPS);
            }
        }
        world.normalize();
        Ok(())
    }

    /// A unit of time passes: everything is one unit further back.
    fn tick(self, world: &mut World) {
        world.rested = (world.rested + 1).min(GAP);
        world.woken.clear();
        for grant in world.grants.iter_mut().flatten() {
            grant.age = (grant.age + 1).min(LEASE);
        }
        let unit = i64::try_from(UNIT.as_micros()).expect("short");
        let back = |at: &mut Stamp| at.0 -= unit;
        for task in world.store.tasks.values_mut() {
            if self.0 != Plant::LeasesNeverEnd {
                task.until.iter_mut().for_each(back);
            }
        }
        for source in world.store.sources.values_mut() {
            source.last_start.iter_mut().for_each(back);
            source.seat.opens.iter_mut().for_each(back);
            if self.0 != Plant::PromisesNeverLapse {
                back(&mut source.promised_until);
            }
        }
        for claim in world.store.claims.values_mut() {
            if let Kept::Granted { until, .. } = &mut claim.kept {
                back(until);
            }
        }
    }
}

impl World {
    /// Its claim went back: what lasted was not tried.
    fn gave_back(&mut self, who: usize) {
        for nth in 0..TASKS.len() {
            if self.grants[nth].is_some_and(|grant| grant.to == who && grant.age < LEASE) {
                self.grants[nth] = None;
                self.tries[nth] -= 1;
            }
        }
    }

    /// What is long ago is as long ago as anything; of tokens, turns and places only the order matters.
    fn normalize(&mut self) {
        let store = &mut self.store;
        store.seen.clear();
        store.pasts.clear();
        store.done.sort();
        store.queue.iter_mut().for_each(|one| one.until = NOW + PATIENCE);
        for task in store.tasks.values_mut() {
            (task.created, task.changed) = (Stamp(0), Stamp(0));
            task.until = task.until.map(|until| until.max(NOW));
            if task.state != TaskState::Leased {
                (task.collector, task.claim) = (None, None);
            }
        }
        store.claims.retain(|_, claim| match &mut claim.kept {
            Kept::Granted { until, .. } => {
                *until = (*until).max(NOW);
                claim.forget = NOW + REMEMBERED;
                true
            }
            Kept::Nothing { .. } => true,
        });
        let mut turns: Vec<u64> = store.sources.values().filter_map(|one| one.seat.turn).collect();
        turns.sort_unstable();
        store.book.turn = turns.len() as u64;
        for (nth, source) in store.sources.values_mut().enumerate() {
            source.rules = rules(nth);
            (source.started, source.finished, source.retried, source.expired) = (0, 0, 0, 0);
            let oldest = Stamp((NOW + UNIT).0 - 1_000_000);
            source.last_start = source.last_start.filter(|_| nth == 1).map(|at| at.max(oldest));
            source.seat.opens = source.seat.opens.map(|at| at.max(NOW));
            let rank = |turn: u64| 1 + turns.iter().filter(|other| **other < turn).count() as u64;
            source.seat.turn = source.seat.turn.map(rank);
            source.promised_until = source.promised_until.max(NOW);
            if source.promised == 0 {
                source.promised_until = Stamp(0);
            }
            source.nth = 0;
            let of = |task: &&mut Task| task.source == source.name && task.place.is_some();
            let mut ready: Vec<&mut Task> = store.tasks.values_mut().filter(of).collect();
            ready.sort_by_key(|task| task.place);
            let returned = |task: &&&mut Task| task.place < Some(Place::behind(0, 0));
            let before = ready.iter().filter(returned).count();
            for (at, task) in ready.into_iter().enumerate() {
                let (place, far) = if at < before {
                    (Place::before(0, (before - at) as u64), before - at)
                } else {
                    (Place::behind(0, (at - before + 1) as u64), at - before + 1)
                };
                task.place = Some(place);
                source.nth = source.nth.max(far as u64);
            }
        }
        self.rank_tokens();
    }

    fn rank_tokens(&mut self) {
        let store = &mut self.store;
        let mut all: BTreeSet<Token> = BTreeSet::new();
        let mut each = |act: &mut dyn FnMut(&mut Token)| {
            for task in store.tasks.values_mut() {
                act(&mut task.token);
                act(&mut task.accepted);
            }
            for claim in store.claims.values_mut() {
                if let Kept::Granted { tasks, .. } = &mut claim.kept {
                    tasks.iter_mut().for_each(|(_, token)| act(token));
                }
            }
            for hands in &mut self.hands {
                hands.iter_mut().for_each(|(_, token)| act(token));
            }
            for grant in self.grants.iter_mut().flatten() {
                act(&mut grant.token);
            }
        };
        each(&mut |token| {
            all.insert(*token);
        });
        all.remove(&Token(0));
        let base = u64::try_from(NOW.floor().0).expect("after 1970") * 1_024;
        let rank = |token: Token| all.iter().take_while(|other| **other < token).count() as u64;
        each(&mut |token| {
            if *token > Token(0) {
                *token = Token(base + rank(*token));
            }
        });
        self.store.book.token = Token(base + all.len() as u64);
    }
}

#[test]
fn no_interleaving_breaks_a_promise_of_dispatch() {
    keeps_every_promise("dispatch", &Game(Plant::Nothing), crate::states() / 12);
}

#[test]
fn every_fault_planted_in_dispatch_is_found() {
    for (plant, promises) in [
        (Plant::LeasesEndAtOnce, &[TWO_HANDS, SAME][..]),
        (Plant::LeasesNeverEnd, &[STARVES, STALE]),
        (Plant::TokensAreNotCompared, &[STALE]),
        (Plant::AnswersAreForgotten, &[SAME, LOST]),
        (Plant::WhatIsUnseenIsNotMarked, &[TWO_HANDS]),
        (Plant::GapsAreForgotten, &[TOO_SOON]),
        (Plant::PromisesNeverLapse, &[SLEEPS]),
        (Plant::TriesAreForgotten, &[TRIES]),
    ] {
        is_found(&format!("{plant:?}"), &Game(plant), crate::STATES_FOR_A_FAULT / 8, promises);
    }
}
