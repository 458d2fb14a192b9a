//! A rotation in every interleaving of workers who come, wait, take turns, pass them, extend them, die, and are late;
//! of nodes that fall silent; and of a store that forgets whose turn it was.
//!
//! Everything that is decided is decided by the transitions of `domain::rotation`, the very ones that stores carry
//! out. What they are judged by is counted beside them in units of time and shares nothing with them: how long ago
//! each type started, whose turn it was last, who came before whom, and who may count on a promise.

use std::time::Duration;

use soloist::domain::dispatch::Window;
use soloist::domain::lease::Token;
use soloist::domain::rotation::{
    Kept, Memory, PROMISE, Pass, Rules, SILENT_FOR, Skip, Taken, TurnAsk, TurnOutcome, TypeRules,
};
use soloist::domain::time::Stamp;

use soloist::domain::rotation::in_memory::{Store, ask};

use super::search::{self, is_found, keeps_every_promise};

/// A promise lasts for one.
const UNIT: Duration = PROMISE;
const NOW: Stamp = Stamp(1_000_000_000);
const KINDS: [&str; 3] = ["a", "b", "c"];
const INCARNATIONS: [&str; 2] = ["n/x", "m/y"];
const LEASE: u8 = 2;
const MIN_GAP: u8 = 1;
/// Nothing is remembered for longer.
const LONG_AGO: u8 = 5;
/// Units of time within which everybody who waits has a turn, when nobody dies any more.
const PATIENCE: usize = 40;

const GAP: &str = "a turn starts within a gap";
const CYCLE: &str = "a type is passed over that could have had the turn";
const QUEUE: &str = "who came later has the turn first";
const PROMISED: &str = "a turn is had that was promised to another";
const OVERLAP: &str = "a turn starts while a forgotten one may last";
const LEASED: &str = "a turn is ended before its lease";
const STALE: &str = "whoever lost a turn ends another's";
const SAME: &str = "the same request has another turn";
const TOKENS: &str = "a token does not exceed every earlier one";
const STARVES: &str = "somebody who waits never has a turn";

/// Broken on purpose, to see that it would be noticed: transitions are shown less than the store knows, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    Nothing,
    GapsAreForgotten,
    FirstTypeFirst,
    LastWaiterFirst,
    LeasesNeverEnd,
    LeasesEndAtOnce,
    TokensAreNotCompared,
    PromisesAreNotKept,
    PromisesNeverLapse,
    NobodyIsHeardOf,
    NothingIsDoubted,
}

/// What is explored together; all of it at once would be too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Three types with gaps and a quota at one node, and what holders say when they pass.
    Order,
    /// Two types at two nodes, one of which dies, and a store that forgets.
    Nodes,
}

impl Scope {
    /// Least units between two starts of each type: in `Order` by its gap, by its quota, and by nothing of its own.
    fn gaps(self) -> &'static [u8] {
        match self {
            Self::Order => &[3, 4, 0],
            Self::Nodes => &[0, 0],
        }
    }

    /// Type and node of each waiter.
    fn waiters(self) -> &'static [(usize, usize)] {
        match self {
            Self::Order => &[(0, 0), (1, 0), (2, 0)],
            Self::Nodes => &[(0, 0), (0, 1), (1, 0), (1, 1)],
        }
    }

    fn rules(self) -> Rules {
        let types = self.gaps().iter().enumerate().map(|(nth, gap)| {
            let span = UNIT * u32::from(*gap);
            let quota = (nth == 1 && *gap > 0).then_some(Window { count: 1, span });
            let gap = if nth == 0 { span } else { Duration::ZERO };
            TypeRules { name: KINDS[nth].parse().expect("a name"), gap, quota }
        });
        let (min_gap, lease) = (UNIT * u32::from(MIN_GAP), UNIT * u32::from(LEASE));
        Rules { types: types.collect(), min_gap, lease, skip: Skip::Absent }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Nobody,
    Alive,
    Dead,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    store: Store,
    holder: Holder,
    /// Somebody lost a turn and does not know it.
    late: bool,
    /// The second node died.
    dead: bool,
    restarted: bool,
    // What transitions are judged by.
    held_for: u8,
    /// Units for which a turn may last that the store forgot.
    ghost: u8,
    ages: [u8; 3],
    last: Option<usize>,
    next: Option<usize>,
    /// Who waits, in the order in which they came; without those who let a promise go by.
    line: Vec<usize>,
    /// Woken within this unit.
    promised: Option<usize>,
    /// Woken earlier: has the turn still if nobody called meanwhile.
    overdue: Option<usize>,
    /// Let a promise go by, and may have lost the place or not.
    unsure: [bool; 4],
    /// Let a promise go by and were not heard of since.
    quiet: [bool; 2],
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Tick,
    Ask(usize),
    AskOnce(usize),
    Leave(usize),
    TimeOut(usize),
    Pump(usize),
    Pass { next: Option<usize>, later: bool },
    LatePass,
    Extend,
    HolderDies,
    NodeDies,
    Restart { forgets: bool },
}

fn name(waiter: usize) -> String {
    format!("w{waiter}")
}

fn waiter(scope: Scope, nth: usize) -> String {
    format!("{}/{nth}", INCARNATIONS[scope.waiters()[nth].1])
}

/// A game under some rules.
#[derive(Clone, Copy)]
struct Game {
    scope: Scope,
    plant: Plant,
}

impl search::Game for Game {
    type World = World;
    type Act = Act;
    const LOOKED_AT: usize = 20;

    fn begin(&self) -> World {
        let memory = Memory { server: "first".to_owned(), forgot: None };
        World {
            store: Store::new(&self.scope.rules(), memory),
            holder: Holder::Nobody,
            late: false,
            dead: false,
            restarted: false,
            held_for: 0,
            ghost: 0,
            ages: [LONG_AGO; 3],
            last: None,
            next: None,
            line: Vec::new(),
            promised: None,
            overdue: None,
            unsure: [false; 4],
            quiet: [false; 2],
        }
    }

    fn acts(&self, world: &World) -> Vec<Act> {
        let mut acts = vec![Act::Tick, Act::Pump(0)];
        acts.extend((0..self.scope.gaps().len()).map(Act::AskOnce));
        for nth in 0..self.scope.waiters().len() {
            match (self.lives(world, nth), self.stands(world, nth)) {
                (true, true) => acts.extend([Act::Ask(nth), Act::Leave(nth)]),
                (true, false) => acts.push(Act::Ask(nth)),
                (false, true) => acts.push(Act::TimeOut(nth)),
                (false, false) => {}
            }
        }
        if world.holder == Holder::Alive {
            acts.extend([Act::Extend, Act::HolderDies, Act::Pass { next: None, later: false }]);
            if self.scope == Scope::Order {
                acts.extend([0, 2].map(|next| Act::Pass { next: Some(next), later: false }));
                acts.push(Act::Pass { next: None, later: true });
            }
        }
        if world.late {
            acts.push(Act::LatePass);
        }
        if self.scope == Scope::Nodes && !world.dead {
            acts.extend([Act::Pump(1), Act::NodeDies]);
        }
        if self.scope == Scope::Nodes && !world.restarted {
            acts.extend([false, true].map(|forgets| Act::Restart { forgets }));
        }
        acts
    }

    fn after(&self, before: &World, act: Act) -> Result<World, &'static str> {
        let mut world = before.clone();
        self.mislead(&mut world, act);
        match act {
            Act::Tick | Act::HolderDies | Act::NodeDies | Act::TimeOut(_) => {}
            Act::Ask(nth) if world.overdue == Some(nth) => {}
            _ => world.overdue = None,
        }
        match act {
            Act::Tick => self.tick(&mut world),
            Act::Ask(nth) => {
                let (kind, node) = self.scope.waiters()[nth];
                let (waiter, name) = (waiter(self.scope, nth), name(nth));
                let wait = Some((waiter.as_str(), SILENT_FOR));
                let granted = self.ask(&mut world, &ask(KINDS[kind], &name, "r", wait))?;
                world.quiet[node] = false;
                if granted {
                    self.started(&mut world, kind, Some(nth))?;
                } else if !world.line.contains(&nth) {
                    world.line.push(nth);
                }
            }
            Act::AskOnce(kind) => {
                if self.ask(&mut world, &ask(KINDS[kind], "once", "r", None))? {
                    self.started(&mut world, kind, None)?;
                }
            }
            Act::Leave(nth) => {
                let waiter = waiter(self.scope, nth);
                world.store.leave(&soloist::domain::name::Waiter(waiter), NOW);
                world.gone(nth);
            }
            Act::TimeOut(nth) => {
                let waiter = waiter(self.scope, nth);
                let stands = world.store.queue.iter_mut().find(|one| one.waiter.0 == waiter);
                stands.expect("it stands").until = NOW;
                world.line.retain(|one| *one != nth);
            }
            Act::Pump(node) => {
                let unheard = self.plant == Plant::NobodyIsHeardOf;
                world.store.pump(if unheard { "another/z" } else { INCARNATIONS[node] }, NOW);
            }
            Act::Pass { next, later } => {
                let pass = Pass {
                    next: next.map(|kind| KINDS[kind].parse().expect("a name")),
                    not_before: later.then(|| NOW + UNIT),
                    ..pass(Token(1))
                };
                let kept = world.store.pass(&pass, NOW).expect("a type");
                if matches!(kept, Kept::Yes(_)) {
                    (world.holder, world.next) = (Holder::Nobody, next);
                }
            }
            Act::LatePass => {
                world.late = false;
                let compared = self.plant != Plant::TokensAreNotCompared;
                let token = if compared { Token(0) } else { Token(1) };
                if let Ok(Kept::Yes(_)) = world.store.pass(&pass(token), NOW) {
                    return Err(STALE);
                }
            }
            Act::Extend => {
                if let Kept::Yes(_) = world.store.extend(Token(1), None, NOW) {
                    world.held_for = 0;
                }
            }
            Act::HolderDies => world.holder = Holder::Dead,
            Act::NodeDies => world.dead = true,
            Act::Restart { forgets } => {
                world.restarted = true;
                if self.plant != Plant::NothingIsDoubted {
                    world.store.memory.server = "second".to_owned();
                }
                world.promised = None;
                if forgets && world.store.rotation.ring.turn.take().is_some() {
                    world.ghost = LEASE.saturating_sub(world.held_for);
                    world.lost();
                }
            }
        }
        self.conclude(&mut world)?;
        if let Act::Pump(node) = act {
            // What it let lapse itself went to another before.
            world.quiet[node] = false;
        }
        Ok(world)
    }

    /// When nobody dies any more, whoever waits has a turn, however many others keep coming, if only those ask who are woken.
    fn ends_well(&self, world: &World) -> Result<(), &'static str> {
        let waiters = 0..self.scope.waiters().len();
        let alive = |nth: &usize| self.lives(world, *nth);
        for one in waiters.clone().filter(|nth| alive(nth) && world.line.contains(nth)) {
            let mut world = world.clone();
            let mut units = 0;
            while world.line.contains(&one) {
                units += 1;
                if units > PATIENCE {
                    return Err(STARVES);
                }
                for act in [Act::Pump(0), Act::Pump(1)] {
                    if matches!(act, Act::Pump(0)) || !world.dead {
                        world = self.after(&world, act)?;
                    }
                }
                if let Some(nth) = world.promised.filter(alive) {
                    world = self.after(&world, Act::Ask(nth))?;
                }
                if world.holder == Holder::Alive {
                    world = self.after(&world, Act::Pass { next: None, later: false })?;
                }
                for other in waiters.clone().filter(|other| *other != one && alive(other)) {
                    if !world.line.contains(&other) {
                        world = self.after(&world, Act::Ask(other))?;
                    }
                }
                world = self.after(&world, Act::Tick)?;
            }
        }
        Ok(())
    }
}

impl Game {
    fn lives(self, world: &World, nth: usize) -> bool {
        !world.dead || self.scope.waiters()[nth].1 == 0
    }

    fn stands(self, world: &World, nth: usize) -> bool {
        let waiter = waiter(self.scope, nth);
        world.store.queue.iter().any(|one| one.waiter.0 == waiter && one.until > NOW)
    }

    /// Whether a type may start now, by what is counted beside the ring.
    fn may_start(self, world: &World, kind: usize) -> bool {
        let gaps = self.scope.gaps();
        world.ages[..gaps.len()].iter().all(|age| *age >= MIN_GAP) && world.ages[kind] >= gaps[kind]
    }

    /// What a planted fault does to what the store shows.
    fn mislead(self, world: &mut World, act: Act) {
        let rotation = &mut world.store.rotation;
        match self.plant {
            Plant::GapsAreForgotten => {
                rotation.rules.min_gap = Duration::ZERO;
                rotation.rules.types[0].gap = Duration::ZERO;
            }
            Plant::FirstTypeFirst => rotation.ring.after = None,
            Plant::LastWaiterFirst if matches!(act, Act::Pass { .. } | Act::Pump(_)) => {
                world.store.queue.reverse();
            }
            Plant::LeasesEndAtOnce if !matches!(act, Act::Pass { .. }) => {
                if let Some(turn) = &mut rotation.ring.turn {
                    turn.until = NOW;
                }
            }
            Plant::PromisesAreNotKept if matches!(act, Act::Ask(_)) => rotation.promise = None,
            _ => {}
        }
    }

    /// Whether that one has the turn now. Asked again, it has the same; and when that is over, no other.
    fn ask(self, world: &mut World, ask: &TurnAsk) -> Result<bool, &'static str> {
        let older = world.store.rotation.ring.token;
        let Taken::Granted(turn) = world.store.take(ask, NOW).expect("a type") else {
            return Ok(false);
        };
        if turn.token <= older {
            return Err(TOKENS);
        }
        let mut again = world.store.clone();
        if again.take(ask, NOW) != Ok(Taken::Granted(turn.clone())) {
            return Err(SAME);
        }
        again.pass(&pass(turn.token), NOW).expect("a type");
        if again.take(ask, NOW) != Ok(Taken::Over(turn.token)) {
            return Err(SAME);
        }
        Ok(true)
    }

    /// A turn of that type started, had by that waiter if it is one; judges whether it might.
    fn started(
        self,
        world: &mut World,
        kind: usize,
        waiter: Option<usize>,
    ) -> Result<(), &'static str> {
        if world.ghost > 0 {
            return Err(OVERLAP);
        }
        self.has_lost(world)?;
        if !self.may_start(world, kind) {
            return Err(GAP);
        }
        if world.promised.is_some_and(|promised| Some(promised) != waiter) {
            return Err(PROMISED);
        }
        let in_order = world.promised.is_none() && (waiter.is_none() || world.overdue != waiter);
        let waiters = self.scope.waiters();
        let counts = |nth: &usize| !world.quiet[waiters[*nth].1];
        let mut before = world.line.iter().take_while(|nth| Some(**nth) != waiter);
        let unsure = waiter.is_some_and(|nth| world.unsure[nth]);
        if in_order && !unsure && before.any(|nth| waiters[*nth].0 == kind && counts(nth)) {
            return Err(QUEUE);
        }
        let types = self.scope.gaps().len();
        let first = world.next.or(world.last.map(|last| last + 1)).unwrap_or(0);
        let mut before = (0..types).map(|nth| (first + nth) % types).take_while(|nth| *nth != kind);
        let waits =
            |kind: usize| world.line.iter().any(|nth| waiters[*nth].0 == kind && counts(nth));
        if in_order && before.any(|other| waits(other) && self.may_start(world, other)) {
            return Err(CYCLE);
        }
        world.holder = Holder::Alive;
        (world.held_for, world.ages[kind]) = (0, 0);
        (world.last, world.next) = (Some(kind), None);
        if let Some(nth) = waiter {
            world.gone(nth);
        }
        Ok(())
    }

    /// If it was had until now, its time is over.
    fn has_lost(self, world: &mut World) -> Result<(), &'static str> {
        if world.holder != Holder::Nobody {
            if world.held_for < LEASE {
                return Err(LEASED);
            }
            world.lost();
        }
        Ok(())
    }

    /// Who was woken; and all that is remembered is made alike.
    fn conclude(self, world: &mut World) -> Result<(), &'static str> {
        if world.store.rotation.ring.turn.is_none() {
            self.has_lost(world)?;
        }
        let woken = std::mem::take(&mut world.store.woken);
        for woken in woken {
            let waiters = 0..self.scope.waiters().len();
            let nth = waiters.into_iter().find(|nth| waiter(self.scope, *nth) == woken.0);
            let nth = nth.expect("a waiter");
            if world.promised.is_some() {
                return Err(PROMISED);
            }
            let of = |nth: usize| self.scope.waiters()[nth];
            let mut before = world.line.iter().take_while(|one| **one != nth);
            let counts = |one: &usize| of(*one).0 == of(nth).0 && !world.quiet[of(*one).1];
            if !world.unsure[nth] && before.any(counts) {
                return Err(QUEUE);
            }
            world.promised = Some(nth);
        }
        world.normalize(self.scope);
        Ok(())
    }

    /// A unit of time passes: everything is one unit further back.
    fn tick(self, world: &mut World) {
        world.held_for = (world.held_for + 1).min(LONG_AGO);
        world.ghost = world.ghost.saturating_sub(1);
        world.ages = world.ages.map(|age| (age + 1).min(LONG_AGO));
        if let Some(nth) = world.promised {
            world.gone(nth);
            world.overdue = Some(nth);
            world.unsure[nth] = true;
            world.quiet[self.scope.waiters()[nth].1] = true;
        }
        let unit = i64::try_from(UNIT.as_micros()).expect("short");
        let back = |at: &mut Stamp| at.0 -= unit;
        let rotation = &mut world.store.rotation;
        let ring = &mut rotation.ring;
        ring.last_start.iter_mut().for_each(back);
        back(&mut ring.not_before);
        back(&mut ring.recovered_at);
        for starts in ring.starts.values_mut() {
            back(&mut starts.newest);
            starts.recent.iter_mut().for_each(back);
        }
        if let Some(turn) = ring.turn.as_mut().filter(|_| self.plant != Plant::LeasesNeverEnd) {
            back(&mut turn.until);
        }
        if self.plant != Plant::PromisesNeverLapse {
            rotation.promise.iter_mut().for_each(|promise| back(&mut promise.until));
        }
        rotation.due.iter_mut().for_each(back);
    }
}

impl World {
    /// Waits no more, and is promised nothing.
    fn gone(&mut self, waiter: usize) {
        self.line.retain(|one| *one != waiter);
        self.promised.take_if(|one| *one == waiter);
        self.overdue.take_if(|one| *one == waiter);
        self.unsure[waiter] = false;
    }

    fn lost(&mut self) {
        self.late |= self.holder == Holder::Alive;
        self.holder = Holder::Nobody;
    }

    /// What is long ago is as long ago as anything; of tokens only the order matters, and that of whoever is late is 0.
    fn normalize(&mut self, scope: Scope) {
        let oldest = Stamp(NOW.0 - i64::from(LONG_AGO) * 100_000);
        let store = &mut self.store;
        store.requests.clear();
        store.past.clear();
        store.lost.clear();
        store.rotation.rules = scope.rules();
        store.rotation.known.forgot = None;
        store.rotation.silent.values_mut().for_each(|until| *until = NOW + SILENT_FOR);
        // Nobody sees who came before whom for another type.
        store.queue.retain(|one| one.until > NOW);
        store.queue.sort_by(|one, other| one.kind.cmp(&other.kind));
        for one in &mut store.queue {
            (one.since, one.until) = (Stamp(0), NOW + SILENT_FOR);
        }
        let kind = |nth: &usize| scope.waiters()[*nth].0;
        self.line.sort_by_key(kind);
        if let Some(due) = &mut store.rotation.due {
            *due = (*due).max(NOW);
        }
        let ring = &mut store.rotation.ring;
        ring.last_start = ring.last_start.map(|at| at.max(oldest));
        for at in [&mut ring.not_before, &mut ring.recovered_at] {
            if *at <= NOW {
                *at = Stamp(0);
            }
        }
        for starts in ring.starts.values_mut() {
            starts.newest = starts.newest.max(oldest);
            starts.recent.iter_mut().for_each(|at| *at = (*at).max(oldest));
        }
        if ring.token > Token(0) {
            ring.token = Token(1);
        }
        if let Some(turn) = &mut ring.turn {
            (turn.token, turn.since) = (Token(1), Stamp(0));
            turn.until = turn.until.max(NOW);
        }
    }
}

fn pass(turn: Token) -> Pass {
    Pass {
        rotation: "supplier".parse().expect("a name"),
        turn,
        only: None,
        outcome: TurnOutcome::Done,
        next: None,
        not_before: None,
    }
}

#[test]
fn no_interleaving_breaks_a_promise_of_rotations() {
    for scope in [Scope::Order, Scope::Nodes] {
        let game = Game { scope, plant: Plant::Nothing };
        keeps_every_promise(&format!("rotation, {scope:?}"), &game, crate::states() / 4);
    }
}

#[test]
fn every_fault_planted_in_a_rotation_is_found() {
    for (scope, plant, promises) in [
        (Scope::Order, Plant::GapsAreForgotten, &[GAP][..]),
        (Scope::Order, Plant::FirstTypeFirst, &[CYCLE]),
        (Scope::Nodes, Plant::LastWaiterFirst, &[QUEUE]),
        (Scope::Order, Plant::LeasesNeverEnd, &[STARVES]),
        (Scope::Order, Plant::LeasesEndAtOnce, &[LEASED]),
        (Scope::Order, Plant::TokensAreNotCompared, &[STALE]),
        (Scope::Nodes, Plant::PromisesAreNotKept, &[PROMISED, QUEUE]),
        (Scope::Nodes, Plant::PromisesNeverLapse, &[STARVES, QUEUE]),
        (Scope::Nodes, Plant::NobodyIsHeardOf, &[STARVES, QUEUE]),
        (Scope::Nodes, Plant::NothingIsDoubted, &[OVERLAP]),
    ] {
        let game = Game { scope, plant };
        is_found(&format!("{plant:?}"), &game, crate::STATES_FOR_A_FAULT, promises);
    }
}
