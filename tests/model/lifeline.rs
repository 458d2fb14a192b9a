//! Programs on a life line: two that take one lease, never look at a clock, and work for as long as they live. What keeps them apart is what
//! the watcher does: the kill in time, and a lease that is given back when the kernel says that its process is dead.
//!
//! The law is `domain::lifeline`. Around it stand a store with one lease, a node that may be away, answers that are lost, and pauses: who is not
//! scheduled while time passes is paused.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use soloist::domain::lifeline::Process;
use soloist::domain::time::Boot;

/// Half a second; a lease lasts six of them.
const UNIT: Duration = Duration::from_millis(500);
const LEASE: u8 = 6;
/// So long it goes on, with so many grants, and a node that comes and goes so often.
const END: u8 = 13;
const GRANTS: u8 = 3;
const ABSENCES: u8 = 1;
const NAME: &str = "ship";

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plant {
    Nothing,
    /// The end of a connection counts as a death.
    ConnectionEnds,
    /// A process is killed by the end of the lease, not before it.
    KillsLate,
    /// A death gives back whatever lease there is.
    AnyLease,
    /// A program works before the watcher has answered.
    WorksUnwatched,
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Program {
    alive: bool,
    /// 0: none.
    token: u8,
    /// When the request was sent that was answered last.
    sent: u8,
    works: bool,
    /// What the watcher knows, as pairs of token, instant and whether a node checked it.
    armed: Vec<(u8, u8, bool)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    now: u8,
    /// Token and end of the lease.
    lease: Option<(u8, u8)>,
    newest: u8,
    programs: [Program; 2],
    /// Tokens of dead processes that no node has taken yet.
    deaths: Vec<u8>,
    node: bool,
    absences: u8,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Tick,
    Acquire(usize),
    Renew { who: usize, heard: bool },
    Say { who: usize, late: bool },
    Disconnect(usize),
    Dies(usize),
    Starts(usize),
    Ends(usize),
    TakeDeath,
    Node,
}

fn at(unit: u8) -> Boot {
    // No instant is 0, and none is taken for one that has passed.
    Boot(1_000_000_000_000) + UNIT * u32::from(unit)
}

fn secret(token: u8) -> String {
    let ttl = (UNIT * u32::from(LEASE)).as_millis();
    format!("{token}.{ttl}.p.00000000000000000000000000000000")
}

/// The watcher's memory of a process, by the real law.
fn process(armed: &[(u8, u8, bool)]) -> Process {
    let mut process = Process::default();
    for (token, until, checked) in armed {
        // As early as this lease lets it be said.
        let said = at(*until) - UNIT * u32::from(LEASE);
        process.under(NAME, &secret(*token), at(*until), true, said).expect("it was taken before");
        if *checked {
            process.check(NAME, &secret(*token), true);
        }
    }
    process
}

impl World {
    fn begin() -> Self {
        let program = Program { alive: true, ..Program::default() };
        let programs = [program.clone(), program];
        Self {
            now: 1,
            lease: None,
            newest: 0,
            programs,
            deaths: Vec::new(),
            node: true,
            absences: 0,
        }
    }

    fn is_free(&self) -> bool {
        self.lease.is_none_or(|(_, until)| until <= self.now)
    }

    fn acts(&self) -> Vec<Act> {
        let mut acts = vec![Act::Node];
        if self.now < END {
            acts.push(Act::Tick);
        }
        if self.node && !self.deaths.is_empty() {
            acts.push(Act::TakeDeath);
        }
        for (who, program) in self.programs.iter().enumerate() {
            if !program.alive {
                acts.push(Act::Starts(who));
                continue;
            }
            acts.push(Act::Dies(who));
            if program.token == 0 {
                acts.push(Act::Acquire(who));
                continue;
            }
            acts.extend([true, false].map(|heard| Act::Renew { who, heard }));
            acts.extend([true, false].map(|late| Act::Say { who, late }));
            acts.extend([Act::Disconnect(who), Act::Ends(who)]);
        }
        acts
    }

    fn bury(&mut self, who: usize) {
        let works = process(&self.programs[who].armed);
        for (_, work) in works.works().filter(|(_, work)| work.release) {
            self.deaths.push(u8::try_from(work.token().0).expect("small"));
        }
        self.programs[who] = Program { alive: false, ..Program::default() };
    }

    fn go(&self, act: Act, plant: Plant) -> Option<Self> {
        let mut next = self.clone();
        match act {
            Act::Tick => {
                next.now += 1;
                for who in 0..2 {
                    let mut kill = process(&next.programs[who].armed).kill_at();
                    if plant == Plant::KillsLate {
                        kill = kill.map(|kill| kill + UNIT * 3);
                    }
                    if next.programs[who].alive && kill.is_some_and(|kill| kill <= at(next.now)) {
                        next.bury(who);
                    }
                }
            }
            Act::Acquire(who) => {
                // The first one is the first to be granted; the other order is the same.
                (self.newest > 0 || who == 0).then_some(())?;
                (self.node && self.is_free() && self.newest < GRANTS).then_some(())?;
                next.newest += 1;
                next.lease = Some((next.newest, self.now + LEASE));
                let program = &mut next.programs[who];
                (program.token, program.sent) = (next.newest, self.now);
                program.works = plant == Plant::WorksUnwatched;
            }
            Act::Renew { who, heard } => {
                let token = self.programs[who].token;
                let mine =
                    self.lease.is_some_and(|(held, until)| held == token && until > self.now);
                (self.node && mine).then_some(())?;
                next.lease = Some((token, self.now + LEASE));
                if heard {
                    next.programs[who].sent = self.now;
                }
                (next != *self).then_some(())?;
            }
            Act::Say { who, late } => {
                let Program { token, sent, armed, .. } = &self.programs[who];
                // 99 % of the lease, in whole units; what was written before a pause may come after it.
                let until = sent + LEASE - 1 - u8::from(late);
                let mut watched = process(armed);
                let under = watched.under(NAME, &secret(*token), at(until), true, at(self.now));
                under.ok()?;
                let holds = self.lease.is_some_and(|(held, end)| held == *token && end > self.now);
                let known = armed.iter().find(|(of, ..)| of == token);
                let checked = known.is_some_and(|(.., checked)| *checked);
                if self.node && !checked && !holds {
                    // Refused: all is as it was.
                    return None;
                }
                let until = known.map_or(until, |(_, before, _)| until.max(*before));
                let checked = checked || self.node;
                next.programs[who].armed = vec![(*token, until, checked)];
                next.programs[who].works = true;
            }
            Act::Disconnect(who) => {
                (plant == Plant::ConnectionEnds).then_some(())?;
                next.deaths.extend(self.programs[who].armed.iter().map(|(token, ..)| *token));
            }
            Act::Dies(who) => next.bury(who),
            Act::Starts(who) => next.programs[who].alive = true,
            Act::Ends(who) => {
                let token = self.programs[who].token;
                next.programs[who] = Program { alive: true, ..Program::default() };
                if self.node && self.lease.is_some_and(|(held, _)| held == token) {
                    next.lease = None;
                }
            }
            Act::TakeDeath => {
                let token = next.deaths.remove(0);
                let its = self.lease.is_some_and(|(held, _)| held == token);
                if its || plant == Plant::AnyLease {
                    next.lease = None;
                }
            }
            Act::Node => {
                (!self.node || self.absences < ABSENCES).then_some(())?;
                next.absences += u8::from(self.node);
                next.node = !self.node;
            }
        }
        Some(next)
    }

    /// No two programs are alive that work under a lease, one of them under an older token.
    fn is_broken(&self) -> bool {
        self.programs.iter().all(|program| program.alive && program.works)
    }
}

/// Looks at so many states, breadth-first; the steps to the first broken one, and how many were seen.
fn explore(plant: Plant, most: usize) -> (Option<Vec<Act>>, usize) {
    let mut seen = HashSet::from([World::begin()]);
    let mut next = VecDeque::from([(World::begin(), Vec::new())]);
    while let Some((world, trace)) = next.pop_front() {
        for act in world.acts() {
            let Some(after) = world.go(act, plant) else { continue };
            if seen.len() >= most || !seen.insert(after.clone()) {
                continue;
            }
            let mut steps = trace.clone();
            steps.push(act);
            if after.is_broken() {
                return (Some(steps), seen.len());
            }
            next.push_back((after, steps));
        }
    }
    (None, seen.len())
}

#[test]
fn no_two_programs_on_a_life_line_work_at_one_time() {
    let (broken, seen) = explore(Plant::Nothing, super::states());
    println!("programs on a life line: {seen} states");
    assert!(broken.is_none(), "{broken:?}");
}

#[test]
fn what_is_wrong_with_a_life_line_is_found() {
    for plant in [Plant::ConnectionEnds, Plant::KillsLate, Plant::AnyLease, Plant::WorksUnwatched] {
        let (broken, seen) = explore(plant, super::STATES_FOR_A_FAULT);
        let steps = broken.unwrap_or_else(|| panic!("{plant:?} was not found in {seen} states"));
        println!("{plant:?}: found after {seen} states, {} steps", steps.len());
    }
}
