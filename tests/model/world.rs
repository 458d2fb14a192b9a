//! Everything there is at one instant, and everything that may happen next.
//!
//! Instants are kept relative to a fixed `NOW`, tokens and attempts as ranks, so that histories that differ in nothing
//! that matters meet in one state.

use std::iter;
use std::time::Duration;

use soloist::domain::job::{JobRecord, LeaseRecord, Participant, State, Viewpoint, state};
use soloist::domain::lease::{Timing, Token};
use soloist::domain::name::{JobName, NodeName, Owner as OwnerName, UserName};
use soloist::domain::supervise::{Attempt, Doing, Effect, Facts, Input, Slot, step};
use soloist::domain::time::{Boot, StoreTime};

use super::rules::{self, Rules};
use super::store::{Answer, Lease, Owner, Store, TTL};

/// One unit of time.
const UNIT: Duration = Duration::from_secs(1);
const NOW: Boot = Boot(1_000_000_000_000);
const NODES: u8 = 2;
/// "Three leases": further grants are not looked at.
pub const GRANTS: u8 = 3;

/// The proportions of any lease: trust ends one unit, the time for killing, before the lease.
const TIMING: Timing = Timing {
    ttl: Duration::from_secs(TTL as u64),
    renew_every: UNIT,
    store_timeout: Duration::from_millis(300),
    kill_time: UNIT,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Node {
    pub up: bool,
    pub slot: Slot,
    /// The lease that its keeper renews, when it is due, and whether an answer is awaited.
    kept: Option<(u64, Boot, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Life {
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
pub struct Tree {
    pub owner: Owner,
    pub token: u64,
    pub life: Life,
    deadline: Boot,
    /// Its node is dead: the guard records the end.
    orphan: bool,
}

impl Tree {
    pub fn lives(&self) -> bool {
        matches!(self.life, Life::Alive | Life::Dying)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Ask {
    Acquire,
    Renew { token: u64 },
    End { token: u64 },
    Release,
}

/// A request on its way, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flight {
    ask: Ask,
    owner: Owner,
    sent: Boot,
    answer: Option<Answer>,
    /// Somebody still waits for the answer.
    awaited: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
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
pub enum Act {
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
    /// The replica hears nothing any more.
    Cut,
    /// The replica is promoted, as it is.
    FailOver,
    /// The store is emptied.
    Empty,
}

impl World {
    pub fn new(faults: u8) -> Self {
        let mut world = Self {
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
            node.up = true;
            node.slot = fresh(0);
        }
        world.normalise();
        world
    }

    /// Everything that may happen now, faults included.
    pub fn acts(&self) -> Vec<Act> {
        let mut acts = self.helpful_acts();
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
        if self.replica.is_none() {
            acts.extend([Act::Cut, Act::FailOver]);
        }
        acts
    }

    /// What happens by itself when nothing goes wrong, time last.
    pub fn helpful_acts(&self) -> Vec<Act> {
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
            if self.facts(n) != node.slot.facts {
                acts.push(Act::Hear(n));
            }
            let asks = |f: &Flight| f.awaited && f.owner.node == n && matches!(f.ask, Ask::Acquire);
            if !self.flights.iter().any(asks) {
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
    pub fn after(&self, act: Act, rules: Rules) -> Result<Option<World>, &'static str> {
        let mut next = self.clone();
        if !next.perform(act, rules)? {
            return Ok(None);
        }
        next.check(rules)?;
        next.normalise();
        Ok(Some(next))
    }

    fn perform(&mut self, act: Act, rules: Rules) -> Result<bool, &'static str> {
        match act {
            Act::Tick => self.tick(),
            Act::Hear(n) => {
                let facts = self.facts(n);
                self.step(n, Input::Facts(facts), rules)?;
            }
            Act::Wake(n) => {
                if rules.no_wake {
                    return Ok(false);
                }
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
            }
            Act::Report(i) => {
                self.trees[i].life = Life::Reported;
                let n = self.trees[i].owner.node;
                self.nodes[usize::from(n)].kept = None;
                self.step(n, Input::Gone, rules)?;
            }
            Act::GuardRecords(i) => {
                let tree = self.trees.remove(i);
                self.store.end(tree.token, rules);
            }
            Act::Crash(n) => {
                self.faults -= 1;
                self.crash(n);
            }
            Act::Restart(n) => {
                let node = &mut self.nodes[usize::from(n)];
                *node = Node { up: true, slot: fresh(node.slot.attempt.0), ..Node::default() };
            }
            Act::Switch => {
                self.faults -= 1;
                self.store.wanted = !self.store.wanted;
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
                self.store = Store::default().promoted();
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
            node.slot.facts.held_until.iter_mut().for_each(back);
            if let Doing::Idle { pause_until, .. } = &mut node.slot.doing {
                back(pause_until);
            }
        }
    }

    fn crash(&mut self, n: u8) {
        let node = &mut self.nodes[usize::from(n)];
        node.up = false;
        node.kept = None;
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

    /// What the feed would say now.
    fn facts(&self, n: u8) -> Facts {
        let attempt = self.nodes[usize::from(n)].slot.attempt.0;
        let theirs = self.store.lease.filter(|lease| lease.owner != Owner { node: n, attempt });
        Facts {
            wanted: self.store.wanted,
            eligible: true,
            held_until: theirs.map(|lease| NOW + UNIT * u32::from(lease.left)),
            ..Facts::default()
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
                Effect::Wake(_) => {}
                Effect::Acquire(_) | Effect::Start(_) if !wanted => return Err(rules::STOP),
                Effect::Acquire(_) => self.send(owner, Ask::Acquire),
                Effect::Release(_) => self.send(owner, Ask::Release),
                Effect::Start(_) => self.start(owner, deadline),
                Effect::Stop => {
                    self.signal(owner);
                    let tree = self.trees.iter().find(|tree| tree.owner == owner);
                    if let (Some(tree), true) = (tree, rules.release_before_proof) {
                        self.send(owner, Ask::End { token: tree.token });
                    }
                }
                Effect::Kill => self.signal(owner),
                Effect::RecordEnd(_) => {
                    let tree = self.trees.iter().find(|tree| tree.owner == owner);
                    let token = tree.map_or(0, |tree| tree.token);
                    self.send(owner, Ask::End { token });
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
        self.trees.push(Tree { owner, token, life: Life::Alive, deadline, orphan: false });
    }

    fn signal(&mut self, owner: Owner) {
        for tree in self.trees.iter_mut().filter(|tree| tree.owner == owner) {
            if tree.life == Life::Alive {
                tree.life = Life::Dying;
            }
        }
    }

    fn execute(&mut self, i: usize, rules: Rules) -> Result<bool, &'static str> {
        let Flight { ask, owner, .. } = self.flights[i];
        let clock = self.highest + 1;
        let before = self.store.lease;
        let answer = match ask {
            Ask::Acquire => self.store.acquire(owner, clock, rules),
            Ask::Renew { token } => self.store.renew(owner, token, rules),
            Ask::End { token } => self.store.end(token, rules),
            Ask::Release => self.store.release(owner),
        };
        if let (Answer::Granted(token), true) =
            (answer, before != self.store.lease && before.is_none())
        {
            if self.grants == GRANTS {
                return Ok(false);
            }
            self.grants += 1;
            if token <= self.highest {
                return Err(rules::TOKENS);
            }
            self.highest = token;
        }
        if self.flights[i].awaited && ask != Ask::Release {
            self.flights[i].answer = Some(answer);
        } else {
            self.flights.remove(i);
        }
        Ok(true)
    }

    fn answered(&mut self, flight: Flight, rules: Rules) -> Result<(), &'static str> {
        let Flight { ask, owner, sent, answer, .. } = flight;
        let node = &mut self.nodes[usize::from(owner.node)];
        if node.slot.attempt.0 != owner.attempt {
            return Ok(());
        }
        let trusted_until = TIMING.trusted_until(if rules.trust_from_reply { NOW } else { sent });
        match (ask, answer) {
            (Ask::Acquire, Some(Answer::Granted(token))) => {
                self.step(
                    owner.node,
                    Input::Granted { token: Token(token), trusted_until },
                    rules,
                )?;
            }
            (Ask::Acquire, Some(Answer::Refused(units))) => {
                let wait = UNIT * u32::from(units);
                self.step(owner.node, Input::Refused { wait }, rules)?;
            }
            (Ask::Renew { token }, Some(Answer::Kept)) => {
                if let Some((kept, _, asked)) = &mut node.kept
                    && *kept == token
                {
                    *asked = false;
                }
                let mine = |tree: &&mut Tree| tree.owner == owner && !tree.orphan;
                for tree in self.trees.iter_mut().filter(mine) {
                    tree.deadline = tree.deadline.max(trusted_until);
                }
            }
            (Ask::Renew { .. }, Some(Answer::Lost)) => {
                node.kept = None;
                self.step(owner.node, Input::LeaseLost, rules)?;
            }
            (Ask::End { .. }, _) => {
                let reported = |tree: &Tree| tree.owner == owner && tree.life == Life::Reported;
                if self.trees.iter().any(reported) {
                    self.trees.retain(|tree| !reported(tree));
                    self.step(owner.node, Input::Recorded, rules)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Nobody waits for the answer any more.
    fn unanswered(&mut self, flight: Flight, rules: Rules) -> Result<(), &'static str> {
        let Flight { ask, owner, .. } = flight;
        let node = &mut self.nodes[usize::from(owner.node)];
        if !node.up || node.slot.attempt.0 != owner.attempt {
            return Ok(());
        }
        match ask {
            Ask::Acquire => self.step(owner.node, Input::AcquireUnknown, rules)?,
            Ask::Renew { .. } => {
                if let Some((_, _, asked)) = &mut node.kept {
                    *asked = false;
                }
            }
            Ask::End { .. } => self.send(owner, ask),
            Ask::Release => {}
        }
        Ok(())
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
    pub fn word(&self, rules: Rules) -> State {
        let name = "job".parse::<JobName>().expect("a name");
        let mut record = JobRecord::untouched(name);
        if self.store.wanted {
            let user = "li".parse::<UserName>().expect("a name");
            record.participants.push(Participant { user, since: StoreTime(0) });
        }
        let node = "node".parse::<NodeName>().expect("a name");
        record.lease = self.store.lease.filter(|_| !rules.off_too_early).map(
            |Lease { token, left, .. }| LeaseRecord {
                node,
                owner: OwnerName(String::new()),
                token: Token(token),
                since: StoreTime(0),
                expires_in: UNIT * u32::from(left),
                ttl: TIMING.ttl,
            },
        );
        let view = Viewpoint {
            now: StoreTime(0),
            age: Duration::ZERO,
            stale_after: TIMING.ttl + Duration::from_millis(500),
            min_uptime: Duration::ZERO,
            takes_turns: false,
            silent_after: TIMING.silent_after(),
            quarantine: UNIT * u32::from(self.store.quarantine),
        };
        state(&record, &view)
    }

    /// Makes states that differ in nothing that matters equal.
    fn normalise(&mut self) {
        for node in &mut self.nodes {
            // What lies in the past is as good as now, and without a courtesy nothing counts from it.
            let facts = &mut node.slot.facts;
            facts.held_until = facts.held_until.filter(|at| *at > NOW);
            if let Doing::Idle { pause_until, free_since } = &mut node.slot.doing {
                *pause_until = (*pause_until).max(NOW);
                *free_since = None;
            }
            if let Some((_, due, _)) = &mut node.kept {
                *due = (*due).max(NOW);
            }
        }
        for tree in &mut self.trees {
            if tree.life != Life::Alive {
                tree.deadline = NOW;
            }
        }
        for flight in &mut self.flights {
            // Past this no answer to it is worth anything.
            flight.sent = flight.sent.max(NOW - TIMING.ttl);
            if matches!(flight.ask, Ask::End { .. } | Ask::Release) || !flight.awaited {
                flight.sent = NOW;
            }
        }
        self.rank_tokens();
        self.rank_attempts();
        self.sort();
    }

    fn sort(&mut self) {
        self.flights.sort_unstable();
        self.trees.sort_unstable_by_key(|tree| tree.owner);
    }

    /// The same with the nodes' names exchanged: what may happen in one may happen in the other.
    pub fn mirrored(&self) -> World {
        let mut other = self.clone();
        other.nodes.reverse();
        let owners = (other.flights.iter_mut().map(|flight| &mut flight.owner))
            .chain(other.trees.iter_mut().map(|tree| &mut tree.owner))
            .chain(other.store.lease.iter_mut().map(|lease| &mut lease.owner))
            .chain(other.replica.iter_mut().filter_map(|r| Some(&mut r.lease.as_mut()?.owner)));
        for owner in owners {
            owner.node = NODES - 1 - owner.node;
        }
        other.sort();
        other
    }

    fn rank_tokens(&mut self) {
        let mut tokens: Vec<&mut u64> = vec![&mut self.highest];
        for store in iter::once(&mut self.store).chain(&mut self.replica) {
            tokens.extend([&mut store.minted, &mut store.released]);
            tokens.extend(store.lease.iter_mut().map(|lease| &mut lease.token));
        }
        for node in &mut self.nodes {
            tokens.extend(node.kept.iter_mut().map(|(token, ..)| token));
            if let Doing::Holding { token, .. } = &mut node.slot.doing {
                tokens.push(&mut token.0);
            }
        }
        tokens.extend(self.trees.iter_mut().map(|tree| &mut tree.token));
        for flight in &mut self.flights {
            match &mut flight.ask {
                Ask::Renew { token } | Ask::End { token } => tokens.push(token),
                Ask::Acquire | Ask::Release => {}
            }
            if let Some(Answer::Granted(token)) = &mut flight.answer {
                tokens.push(token);
            }
        }
        rank(tokens);
    }

    fn rank_attempts(&mut self) {
        for n in 0..NODES {
            let mut attempts = vec![&mut self.nodes[usize::from(n)].slot.attempt.0];
            let owners = self
                .flights
                .iter_mut()
                .map(|flight| &mut flight.owner)
                .chain(self.trees.iter_mut().map(|tree| &mut tree.owner))
                .chain(self.store.lease.iter_mut().map(|lease| &mut lease.owner))
                .chain(self.replica.iter_mut().filter_map(|r| Some(&mut r.lease.as_mut()?.owner)));
            attempts.extend(owners.filter(|owner| owner.node == n).map(|owner| &mut owner.attempt));
            rank(attempts);
        }
    }

    /// A tree runs under the lease that the store knows.
    pub fn runs(&self) -> bool {
        let lease = self.store.lease.map(|lease| lease.owner);
        self.trees.iter().any(|tree| tree.life == Life::Alive && Some(tree.owner) == lease)
    }

    /// Nothing is left of the job.
    pub fn is_over(&self) -> bool {
        self.trees.is_empty() && self.store.lease.is_none()
    }

    /// From now on nothing goes wrong; leases are counted no more.
    pub fn heal(&mut self) {
        (self.faults, self.grants, self.replica) = (0, 0, None);
    }
}

/// Replaces numbers by their rank; zero stays zero.
fn rank(mut numbers: Vec<&mut u64>) {
    let mut sorted: Vec<u64> = numbers.iter().map(|number| **number).collect();
    sorted.push(0);
    sorted.sort_unstable();
    sorted.dedup();
    for number in &mut numbers {
        **number = sorted.binary_search(*number).unwrap_or(0) as u64;
    }
}

fn fresh(attempt: u64) -> Slot {
    let doing = Doing::Idle { pause_until: NOW, free_since: None };
    // Owners are random: those of a process that was started again are not those of its earlier life.
    Slot { doing, attempt: Attempt(attempt), ..Slot::default() }
}
