//! Everything there is at one instant, and everything that may happen next.
//!
//! Instants are kept relative to a fixed `NOW`, tokens and attempts as ranks, so that histories that differ in nothing
//! that matters meet in one state.

mod calls;
mod canon;

use std::time::Duration;

use soloist::domain::job::{State, Viewpoint, state};
use soloist::domain::lease::{Timing, Token};
use soloist::domain::supervise::{Attempt, Doing, Effect, Facts, Input, JobSlot, step};
use soloist::domain::time::Boot;

use super::rules::{self, Rules};
use super::store::{Answer, Owner, Store, TTL, UNIT, now};

const NOW: Boot = Boot(1_000_000_000_000);
const NEVER: Boot = Boot(u64::MAX);
const NODES: u8 = 2;
/// "Three leases": further grants are not looked at.
pub(crate) const GRANTS: u8 = 3;

/// The proportions of any lease: trust ends one unit, the time for killing, before the lease.
const TIMING: Timing = Timing {
    ttl: Duration::from_secs(TTL as u64),
    renew_every: UNIT,
    store_timeout: Duration::from_millis(300),
    kill_time: UNIT,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Node {
    pub up: bool,
    pub slot: JobSlot,
    /// The record has changed since this node read it. Time alone changes no record.
    news: bool,
    /// When the supervisor asked to be woken.
    wake: Option<Boot>,
    /// The lease that its keeper renews, when it is due, and whether an answer is awaited.
    kept: Option<(u64, Boot, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    /// Until the guard's deadline.
    Alive,
    /// Dies within the unit.
    Dying,
    /// Proved gone; its guard waits to be dismissed.
    Dead,
    /// Proved gone, and the node knows.
    Reported,
}

/// A script with its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tree {
    pub owner: Owner,
    pub token: u64,
    pub life: Life,
    deadline: Boot,
    /// Its node is dead: the guard records the end.
    orphan: bool,
    /// It ended by itself.
    crashed: bool,
}

impl Tree {
    pub(crate) fn lives(&self) -> bool {
        matches!(self.life, Life::Alive | Life::Dying)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Ask {
    Acquire,
    Renew { token: u64 },
    End { token: u64, crashed: bool },
    Release,
}

/// A request on its way, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Flight {
    ask: Ask,
    owner: Owner,
    sent: Boot,
    answer: Option<Answer>,
    /// Somebody still waits for the answer.
    awaited: bool,
}

/// What people and scripts do in a world. The more they may do, the shallower the same number of states reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Leases alone: switches, faults, fail-overs.
    Leases,
    /// And all that lapses by itself: moves, backoffs, courtesies.
    Lapses,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    scope: Scope,
    pub store: Store,
    /// A replica that hears nothing any more; `None` while it follows.
    replica: Option<Store>,
    pub nodes: [Node; NODES as usize],
    pub trees: Vec<Tree>,
    flights: Vec<Flight>,
    highest: u64,
    pub grants: u8,
    /// How much may still go wrong or be decided: lost or late messages, crashes, fail-overs, switches.
    faults: u8,
}

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Tick,
    Hear(u8),
    Wake(u8),
    Renew(u8),
    Execute(usize),
    Answer(usize),
    Lose(usize),
    Late(usize),
    Dies(usize),
    ScriptEnds(usize),
    Report(usize),
    GuardRecords(usize),
    Crash(u8),
    Restart(u8),
    Switch,
    /// An operator asks for a hand-over.
    Move(Option<u8>),
    /// A client sends a secret that it made up, under the newest token or so many above it.
    Forge(u8),
    /// The replica hears nothing any more.
    Cut,
    /// The replica is promoted, as it is.
    FailOver,
    /// The store is emptied.
    Empty,
}

impl World {
    pub(crate) fn new(scope: Scope, faults: u8) -> Self {
        let mut world = Self {
            scope,
            store: Store { wanted: true, ..Store::default() },
            replica: None,
            nodes: [Node::default(), Node::default()],
            trees: Vec::new(),
            flights: Vec::new(),
            highest: 0,
            grants: 0,
            faults,
        };
        for node in &mut world.nodes {
            (node.up, node.news) = (true, true);
            node.slot = fresh(0);
        }
        world.normalise();
        world
    }

    /// Everything that may happen now, faults included.
    pub(crate) fn acts(&self) -> Vec<Act> {
        let mut acts = self.helpful_acts();
        acts.extend((0..=2).map(Act::Forge));
        if self.replica.is_some() {
            acts.push(Act::FailOver);
        }
        if self.faults == 0 {
            return acts;
        }
        for (i, flight) in self.flights.iter().enumerate() {
            if flight.awaited {
                acts.push(Act::Lose(i));
                if flight.answer.is_none() {
                    acts.push(Act::Late(i));
                }
            }
        }
        for (i, tree) in self.trees.iter().enumerate() {
            if tree.life == Life::Alive {
                acts.push(Act::ScriptEnds(i));
            }
        }
        for node in 0..NODES {
            if self.nodes[usize::from(node)].up {
                acts.push(Act::Crash(node));
            }
        }
        acts.extend([Act::Switch, Act::Empty]);
        if self.scope == Scope::Lapses {
            let holder = self.store.lease.map(|lease| lease.owner.node);
            acts.extend(holder.map(|_| Act::Move(None)));
            acts.extend((0..NODES).filter(|n| holder != Some(*n)).map(|n| Act::Move(Some(n))));
        }
        if self.replica.is_none() {
            acts.extend([Act::Cut, Act::FailOver]);
        }
        acts
    }

    /// What happens by itself when nothing goes wrong, time last.
    pub(crate) fn helpful_acts(&self) -> Vec<Act> {
        let mut acts = Vec::new();
        for (i, flight) in self.flights.iter().enumerate() {
            acts.push(if flight.answer.is_some() { Act::Answer(i) } else { Act::Execute(i) });
        }
        for (i, tree) in self.trees.iter().enumerate() {
            match tree.life {
                Life::Dying => acts.push(Act::Dies(i)),
                Life::Dead if tree.orphan => acts.push(Act::GuardRecords(i)),
                Life::Dead => acts.push(Act::Report(i)),
                Life::Alive | Life::Reported => {}
            }
        }
        for n in 0..NODES {
            let node = &self.nodes[usize::from(n)];
            if !node.up {
                acts.push(Act::Restart(n));
                continue;
            }
            if node.news {
                acts.push(Act::Hear(n));
            }
            if node.wake.is_some_and(|at| at <= NOW) {
                acts.push(Act::Wake(n));
            }
            if node.kept.is_some_and(|(_, due, asked)| due <= NOW && !asked) {
                acts.push(Act::Renew(n));
            }
        }
        acts.push(Act::Tick);
        acts
    }

    /// What happens when `act` does; `Err` is the promise that it breaks. `None`: nothing worth looking at.
    pub(crate) fn after(&self, act: Act, rules: Rules) -> Result<Option<World>, &'static str> {
        let mut next = self.clone();
        if !next.perform(act, rules)? {
            return Ok(None);
        }
        next.tell_news(self, act);
        next.check(rules)?;
        next.normalise();
        Ok(Some(next))
    }

    /// Whose picture of the job is old now. What only lapses is nobody's news: it must be known before.
    fn tell_news(&mut self, before: &World, act: Act) {
        let lease = |world: &World| world.store.lease.map(|lease| (lease.owner, lease.token));
        let asked = |world: &World| {
            let moving = world.store.moving.map(|moving| (moving.from, moving.to));
            (world.store.wanted, moving, world.store.due)
        };
        let up = |world: &World| world.nodes.each_ref().map(|node| node.up);
        let changed = lease(self) != lease(before)
            || (act != Act::Tick && asked(self) != asked(before))
            || up(self) != up(before)
            || matches!(act, Act::FailOver | Act::Empty);
        for node in self.nodes.iter_mut().filter(|node| node.up) {
            node.news |= changed;
        }
    }

    fn perform(&mut self, act: Act, rules: Rules) -> Result<bool, &'static str> {
        match act {
            Act::Tick => self.tick(),
            Act::Hear(n) => {
                let facts = self.facts(n, rules);
                self.nodes[usize::from(n)].news = false;
                self.step(n, Input::Facts(facts), rules)?;
            }
            Act::Wake(n) => {
                if rules.no_wake {
                    return Ok(false);
                }
                self.nodes[usize::from(n)].wake = None;
                self.step(n, Input::Tick, rules)?;
            }
            Act::Renew(n) => {
                let attempt = self.nodes[usize::from(n)].slot.attempt.0;
                if let Some((token, due, asked)) = &mut self.nodes[usize::from(n)].kept {
                    (*asked, *due) = (true, NOW + UNIT);
                    let ask = Ask::Renew { token: *token };
                    self.send(Owner { node: n, attempt }, ask);
                }
            }
            Act::Execute(i) => return self.execute(i, rules),
            Act::Answer(i) => {
                let flight = self.flights.remove(i);
                self.answered(flight, rules)?;
            }
            Act::Lose(i) => {
                self.faults -= 1;
                let flight = self.flights.remove(i);
                self.unanswered(flight, rules)?;
            }
            Act::Late(i) => {
                self.faults -= 1;
                self.flights[i].awaited = false;
                let flight = self.flights[i];
                self.unanswered(flight, rules)?;
            }
            Act::Dies(i) => self.trees[i].life = Life::Dead,
            Act::ScriptEnds(i) => {
                self.faults -= 1;
                self.trees[i].life = Life::Dead;
                self.trees[i].crashed = self.scope == Scope::Lapses;
            }
            Act::Report(i) => {
                self.trees[i].life = Life::Reported;
                let n = self.trees[i].owner.node;
                self.nodes[usize::from(n)].kept = None;
                self.step(n, Input::Gone, rules)?;
            }
            Act::GuardRecords(i) => {
                let tree = self.trees.remove(i);
                self.store.end(tree.owner, tree.token, tree.crashed, rules);
            }
            Act::Crash(n) => {
                self.faults -= 1;
                self.crash(n);
            }
            Act::Restart(n) => {
                let node = &mut self.nodes[usize::from(n)];
                let slot = fresh(node.slot.attempt.0);
                *node = Node { up: true, slot, news: true, ..Node::default() };
            }
            Act::Switch => {
                self.faults -= 1;
                self.store.switch();
            }
            Act::Move(to) => {
                self.faults -= 1;
                self.store.request_move(to);
            }
            Act::Forge(above) => {
                let token = self.highest + u64::from(above);
                // Nothing else follows from it.
                return if self.store.forge(token, rules) {
                    Err(rules::GRANTED)
                } else {
                    Ok(false)
                };
            }
            Act::Cut => {
                self.faults -= 1;
                self.replica = Some(self.store);
            }
            Act::FailOver => {
                if self.replica.is_none() {
                    self.faults -= 1;
                }
                self.store = self.replica.take().unwrap_or(self.store).promoted();
            }
            Act::Empty => {
                self.faults -= 1;
                self.store = Store::emptied();
            }
        }
        Ok(true)
    }

    fn tick(&mut self) {
        let back = |at: &mut Boot| *at = (*at - UNIT).max(NOW - UNIT * 20);
        // First who had to die, then what runs out: the time for killing is a part of every lease.
        for tree in &mut self.trees {
            back(&mut tree.deadline);
            if tree.life == Life::Dying {
                tree.life = Life::Dead;
            }
        }
        self.store.tick();
        self.replica.iter_mut().for_each(Store::tick);
        for tree in &mut self.trees {
            if tree.life == Life::Alive && tree.deadline <= NOW {
                tree.life = Life::Dying;
            }
        }
        for flight in &mut self.flights {
            back(&mut flight.sent);
        }
        for node in &mut self.nodes {
            if let Some((_, due, _)) = &mut node.kept {
                back(due);
            }
            let facts = &mut node.slot.facts;
            let instants =
                [&mut facts.held_until, &mut facts.reserved_until, &mut facts.not_before];
            instants.into_iter().flatten().filter(|at| **at < NEVER).for_each(back);
            node.wake.iter_mut().for_each(back);
            if let Doing::Idle { pause_until, free_since } = &mut node.slot.doing {
                back(pause_until);
                free_since.iter_mut().for_each(back);
            }
        }
    }

    fn crash(&mut self, n: u8) {
        let node = &mut self.nodes[usize::from(n)];
        node.up = false;
        (node.kept, node.wake, node.news) = (None, None, false);
        for flight in &mut self.flights {
            flight.awaited &= flight.owner.node != n;
        }
        self.flights.retain(|flight| flight.awaited || flight.answer.is_none());
        for tree in self.trees.iter_mut().filter(|tree| tree.owner.node == n) {
            tree.orphan = true;
            tree.life = match tree.life {
                Life::Alive | Life::Dying => Life::Dying,
                Life::Dead | Life::Reported => Life::Dead,
            };
        }
    }

    /// What the feed would say now. Every node lets the other go first, as if it were always later in line; a node that
    /// is down may still be believed alive, so a move to it keeps the job until it lapses.
    fn facts(&self, n: u8, rules: Rules) -> Facts {
        let attempt = self.nodes[usize::from(n)].slot.attempt.0;
        let theirs = self.store.lease.filter(|lease| lease.owner != Owner { node: n, attempt });
        let at = |left: u8| NOW + UNIT * u32::from(left);
        let moving = self.store.moving.filter(|moving| moving.is_for_another(n));
        Facts {
            wanted: self.store.wanted,
            eligible: true,
            reserved_until: moving
                .map(|moving| if rules.lapse_unseen { NEVER } else { at(moving.left) }),
            not_before: (self.store.due > 0).then(|| at(self.store.due)),
            held_until: theirs.map(|lease| at(lease.left)),
            courtesy: match self.scope {
                Scope::Lapses if self.nodes.iter().all(|node| node.up) => UNIT,
                Scope::Lapses | Scope::Leases => Duration::ZERO,
            },
        }
    }

    fn send(&mut self, owner: Owner, ask: Ask) {
        self.flights.push(Flight { ask, owner, sent: NOW, answer: None, awaited: true });
    }

    /// Lets the supervisor decide and carries out what it says.
    fn step(&mut self, n: u8, input: Input, rules: Rules) -> Result<(), &'static str> {
        let index = usize::from(n);
        let told = matches!(input, Input::Facts(_));
        let known = self.nodes[index].slot.facts.wanted;
        let deadline = match input {
            Input::Granted { trusted_until, .. } => trusted_until,
            _ => NOW,
        };
        let granted = matches!(input, Input::Granted { .. });
        if rules.start_although_unwanted && granted {
            self.nodes[index].slot.facts.wanted = true;
        }
        let effects = step(&mut self.nodes[index].slot, input, NOW);
        let wanted = if told { self.nodes[index].slot.facts.wanted } else { known };
        if rules.start_although_unwanted && granted {
            self.nodes[index].slot.facts.wanted = known;
        }
        let attempt = self.nodes[index].slot.attempt.0;
        let owner = Owner { node: n, attempt };
        for effect in effects {
            match effect {
                Effect::Wake(at) => self.nodes[index].wake = Some(at),
                Effect::Acquire(_) | Effect::Start(_) if !wanted => return Err(rules::STOP),
                Effect::Acquire(_) => self.send(owner, Ask::Acquire),
                Effect::Release(_) => self.send(owner, Ask::Release),
                Effect::Start(_) => self.start(owner, deadline),
                Effect::Stop => {
                    self.signal(owner);
                    let tree = self.trees.iter().find(|tree| tree.owner == owner);
                    if let (Some(tree), true) = (tree, rules.release_before_proof) {
                        self.send(owner, Ask::End { token: tree.token, crashed: false });
                    }
                }
                Effect::Kill => self.signal(owner),
                Effect::RecordEnd(_) => {
                    let tree = self.trees.iter().find(|tree| tree.owner == owner);
                    let (token, crashed) =
                        tree.map_or((0, false), |tree| (tree.token, tree.crashed));
                    self.send(owner, Ask::End { token, crashed });
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, owner: Owner, deadline: Boot) {
        let node = &mut self.nodes[usize::from(owner.node)];
        let Doing::Holding { token: Token(token), .. } = node.slot.doing else { return };
        let sent = deadline - (TIMING.ttl - TIMING.kill_time);
        node.kept = Some((token, sent + TIMING.renew_every, false));
        self.trees.push(Tree {
            owner,
            token,
            life: Life::Alive,
            deadline,
            orphan: false,
            crashed: false,
        });
    }

    fn signal(&mut self, owner: Owner) {
        for tree in self.trees.iter_mut().filter(|tree| tree.owner == owner) {
            if tree.life == Life::Alive {
                tree.life = Life::Dying;
            }
        }
    }

    fn check(&self, rules: Rules) -> Result<(), &'static str> {
        let living = self.trees.iter().filter(|tree| tree.lives()).count();
        if living > 1 {
            return Err(rules::ONE);
        }
        if self.store.lease.is_some_and(|lease| lease.token <= self.store.released) {
            return Err(rules::HOLDER);
        }
        if living > 0 && self.word(rules) == State::Off {
            return Err(rules::OFF);
        }
        Ok(())
    }

    /// The word that a page shows which has just read the store.
    pub(crate) fn word(&self, rules: Rules) -> State {
        let at = now(0);
        let mut record = self.store.job(at).record;
        if rules.off_too_early {
            record.lease = None;
        }
        let view = Viewpoint {
            ticks: None,
            now: at.at,
            age: Duration::ZERO,
            stale_after: TIMING.ttl + Duration::from_millis(500),
            min_uptime: Duration::ZERO,
            takes_turns: false,
            turn_barred: false,
            can_run: true,
            silent_after: TIMING.silent_after(),
            quarantine: UNIT * u32::from(self.store.quarantine),
            ended_here: None,
        };
        state(&record, &view)
    }

    /// A tree runs under the lease that the store knows.
    pub(crate) fn runs(&self) -> bool {
        let lease = self.store.lease.map(|lease| lease.owner);
        self.trees.iter().any(|tree| tree.life == Life::Alive && Some(tree.owner) == lease)
    }

    /// Nothing is left of the job.
    pub(crate) fn is_over(&self) -> bool {
        self.trees.is_empty() && self.store.lease.is_none()
    }

    /// From now on nothing goes wrong; leases are counted no more.
    pub(crate) fn heal(&mut self) {
        (self.faults, self.grants, self.replica) = (0, GRANTS + 1, None);
    }
}

fn fresh(attempt: u64) -> JobSlot {
    let doing = Doing::Idle { pause_until: NOW, free_since: None };
    // Owners are random: those of a process that was started again are not those of its earlier life.
    JobSlot { doing, attempt: Attempt(attempt), ..JobSlot::default() }
}
