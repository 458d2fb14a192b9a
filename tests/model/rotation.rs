//! The ring of a rotation in every interleaving of workers who come, take turns, pass them, extend them, die, and are late.
//!
//! `Ring` is the real one. What it is judged by is counted beside it in units of time, and shares nothing with it: how long
//! ago each type started, and whose turn it was last.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use soloist::domain::dispatch::Window;
use soloist::domain::lease::Token;
use soloist::domain::name::{RequestId, TypeName, WorkerName};
use soloist::domain::rotation::{Choice, Ring, Rules, Skip, TypeRules};
use soloist::domain::time::Stamp;

const UNIT: Duration = Duration::from_secs(1);
const NOW: Stamp = Stamp(1_000_000_000);
const TYPES: usize = 3;
const LEASE: u8 = 2;
const MIN_GAP: u8 = 1;
/// Least units between two starts of each type: by its gap, by its quota, and by nothing of its own.
const OWN_GAPS: [u8; TYPES] = [3, 4, 0];
/// Nothing is remembered for longer.
const LONG_AGO: u8 = 5;
/// Units of time within which everybody who waits has a turn, when nobody dies any more.
const PATIENCE: usize = 30;

const GAP: &str = "a turn starts within a gap";
const CYCLE: &str = "a type is passed over that could have had the turn";
const LEASED: &str = "a turn is ended before its lease";
const STALE: &str = "whoever lost a turn ends another's";
const TOKENS: &str = "a token does not exceed every earlier one";
const STARVES: &str = "somebody who waits never has a turn";

/// Broken on purpose, to see that it would be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    Nothing,
    GapsAreForgotten,
    FirstTypeFirst,
    LeasesNeverEnd,
    LeasesEndAtOnce,
    TokensAreNotCompared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Nobody,
    Alive,
    Dead,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    ring: Ring,
    waits: [bool; TYPES],
    holder: Holder,
    /// Somebody lost a turn and does not know it.
    late: bool,
    // What the ring is judged by.
    held_for: u8,
    ages: [u8; TYPES],
    last: Option<usize>,
    next: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Tick,
    Come(usize),
    Take,
    Pass { next: Option<usize>, later: bool },
    LatePass,
    Extend,
    Die,
    Expire,
}

fn name(kind: usize) -> TypeName {
    TypeName::new(["a", "b", "c"][kind]).expect("a good name")
}

fn rules() -> Rules {
    let quota = Some(Window { count: 1, span: UNIT * u32::from(OWN_GAPS[1]) });
    let limits = [(UNIT * u32::from(OWN_GAPS[0]), None), (Duration::ZERO, quota)];
    let limits = limits.into_iter().chain([(Duration::ZERO, None)]);
    let types =
        limits.enumerate().map(|(nth, (gap, quota))| TypeRules { name: name(nth), gap, quota });
    Rules {
        types: types.collect(),
        min_gap: UNIT * u32::from(MIN_GAP),
        lease: UNIT * u32::from(LEASE),
        skip: Skip::Absent,
    }
}

impl World {
    fn new() -> Self {
        Self {
            ring: Ring::default(),
            waits: [false; TYPES],
            holder: Holder::Nobody,
            late: false,
            held_for: 0,
            ages: [LONG_AGO; TYPES],
            last: None,
            next: None,
        }
    }

    fn acts(&self) -> Vec<Act> {
        let mut acts = vec![Act::Tick, Act::Take, Act::Expire];
        acts.extend((0..TYPES).filter(|kind| !self.waits[*kind]).map(Act::Come));
        if self.holder == Holder::Alive {
            acts.extend([Act::Extend, Act::Die]);
            acts.extend([None, Some(0), Some(2)].map(|next| Act::Pass { next, later: false }));
            acts.push(Act::Pass { next: None, later: true });
        }
        if self.late {
            acts.push(Act::LatePass);
        }
        acts
    }

    /// Whether a type may start now, by what is counted beside the ring.
    fn may_start(&self, kind: usize) -> bool {
        self.ages.iter().all(|age| *age >= MIN_GAP) && self.ages[kind] >= OWN_GAPS[kind]
    }

    fn after(&self, act: Act, plant: Plant) -> Result<Self, &'static str> {
        let (mut world, mut rules) = (self.clone(), rules());
        match act {
            Act::Tick => {
                world.shift();
                world.held_for = (world.held_for + 1).min(LONG_AGO);
                world.ages = world.ages.map(|age| (age + 1).min(LONG_AGO));
            }
            Act::Come(kind) => world.waits[kind] = true,
            Act::Take => {
                if plant == Plant::GapsAreForgotten {
                    rules.min_gap = Duration::ZERO;
                    rules.types[0].gap = Duration::ZERO;
                }
                if plant == Plant::FirstTypeFirst {
                    world.ring.after = None;
                }
                let waits = |kind: &TypeName| (0..TYPES).any(|n| name(n) == *kind && self.waits[n]);
                if let Choice::Now(kind) = world.ring.choose(&rules, waits, NOW) {
                    let nth = (0..TYPES).find(|nth| name(*nth) == kind).expect("known");
                    world.start(nth, &rules)?;
                }
            }
            Act::Pass { next, later } => {
                let not_before = later.then(|| NOW + UNIT);
                world.ring.pass(next.map(name), not_before).expect("it is had");
                world.holder = Holder::Nobody;
                world.next = next;
            }
            Act::LatePass => {
                world.late = false;
                let mine = world.ring.turn.as_ref().is_some_and(|turn| turn.token == Token(0));
                if mine || plant == Plant::TokensAreNotCompared && world.ring.turn.is_some() {
                    return Err(STALE);
                }
            }
            Act::Extend => {
                world.ring.extend(NOW).expect("it is had");
                world.held_for = 0;
            }
            Act::Die => world.holder = Holder::Dead,
            Act::Expire => {
                let now = match plant {
                    Plant::LeasesNeverEnd => Stamp(0),
                    Plant::LeasesEndAtOnce => NOW + UNIT * 9,
                    _ => NOW,
                };
                if world.ring.expire(now).is_some() {
                    if world.held_for < LEASE {
                        return Err(LEASED);
                    }
                    world.late |= world.holder == Holder::Alive;
                    world.holder = Holder::Nobody;
                }
            }
        }
        Ok(world)
    }

    /// A turn of that type starts; judges whether it may.
    fn start(&mut self, kind: usize, rules: &Rules) -> Result<(), &'static str> {
        if !self.may_start(kind) {
            return Err(GAP);
        }
        let first = self.next.or(self.last.map(|last| last + 1)).unwrap_or(0);
        let mut before = (0..TYPES).map(|nth| (first + nth) % TYPES).take_while(|nth| *nth != kind);
        if before.any(|other| self.waits[other] && self.may_start(other)) {
            return Err(CYCLE);
        }
        let older = self.ring.token;
        let worker = WorkerName::new("w").expect("a good label");
        let request = RequestId::new("r").expect("a good label");
        let turn = self.ring.start(rules, &name(kind), &worker, &request, NOW);
        if turn.token <= older {
            return Err(TOKENS);
        }
        // Of tokens only the order matters: that of whoever is late is 0.
        self.ring.token = Token(1);
        if let Some(turn) = &mut self.ring.turn {
            turn.token = Token(1);
        }
        self.holder = Holder::Alive;
        (self.held_for, self.ages[kind]) = (0, 0);
        (self.last, self.next) = (Some(kind), None);
        self.waits[kind] = false;
        Ok(())
    }

    /// A unit of time passes: everything is one unit further back, and what is long ago is as long ago as anything.
    fn shift(&mut self) {
        let back = |at: Stamp| Stamp((at.0 - 1_000_000).max(NOW.0 - 5_000_000));
        let ring = &mut self.ring;
        ring.last_start = ring.last_start.map(back);
        ring.not_before =
            if back(ring.not_before) > NOW { back(ring.not_before) } else { Stamp(0) };
        for starts in ring.starts.values_mut() {
            starts.newest = back(starts.newest);
            starts.recent.iter_mut().for_each(|at| *at = back(*at));
        }
        if let Some(turn) = &mut ring.turn {
            (turn.since, turn.until) = (back(turn.since), back(turn.until));
        }
    }

    /// When nobody dies any more, whoever waits has a turn, however many others keep coming.
    fn serves_everybody(&self, plant: Plant) -> Result<(), &'static str> {
        for kind in (0..TYPES).filter(|kind| self.waits[*kind]) {
            let mut world = self.clone();
            let mut units = 0;
            while world.waits[kind] {
                units += 1;
                if units > PATIENCE {
                    return Err(STARVES);
                }
                world = world.after(Act::Expire, plant)?.after(Act::Take, plant)?;
                if world.holder == Holder::Alive {
                    world = world.after(Act::Pass { next: None, later: false }, plant)?;
                }
                for other in (0..TYPES).filter(|other| *other != kind) {
                    world.waits[other] = true;
                }
                world = world.after(Act::Tick, plant)?;
            }
        }
        Ok(())
    }
}

/// Visits every state, breadth-first; how many there are, or what was broken by which acts.
fn explore(plant: Plant) -> Result<usize, (&'static str, Vec<Act>)> {
    let mut parents: HashMap<World, Option<(World, Act)>> = HashMap::new();
    let mut frontier = VecDeque::from([World::new()]);
    parents.insert(World::new(), None);
    while let Some(world) = frontier.pop_front() {
        let mut found = world.serves_everybody(plant).err();
        let mut last = None;
        if found.is_none() {
            for act in world.acts() {
                match world.after(act, plant) {
                    Ok(next) if !parents.contains_key(&next) => {
                        parents.insert(next.clone(), Some((world.clone(), act)));
                        frontier.push_back(next);
                    }
                    Ok(_) => {}
                    Err(promise) => (found, last) = (Some(promise), Some(act)),
                }
            }
        }
        if let Some(promise) = found {
            let mut acts: Vec<Act> = last.into_iter().collect();
            let mut at = &world;
            while let Some((parent, act)) = &parents[at] {
                acts.push(*act);
                at = parent;
            }
            acts.reverse();
            return Err((promise, acts));
        }
    }
    Ok(parents.len())
}

#[test]
fn no_interleaving_breaks_a_promise_of_rotations() {
    match explore(Plant::Nothing) {
        Ok(states) => {
            println!("rotation: {states} states, all there are");
            assert!(states > 1_000, "only {states}");
        }
        Err((promise, acts)) => panic!("{promise}: {acts:#?}"),
    }
}

#[test]
fn every_fault_planted_in_a_rotation_is_found() {
    for (plant, promise) in [
        (Plant::GapsAreForgotten, GAP),
        (Plant::FirstTypeFirst, CYCLE),
        (Plant::LeasesNeverEnd, STARVES),
        (Plant::LeasesEndAtOnce, LEASED),
        (Plant::TokensAreNotCompared, STALE),
    ] {
        let (found, acts) = explore(plant).expect_err(&format!("{plant:?} was not found"));
        println!("{plant:?}: {found} after {acts:?}");
        assert_eq!(found, promise, "{plant:?}: {acts:#?}");
    }
}
