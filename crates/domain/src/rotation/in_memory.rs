//! A rotation kept in memory: what a store does around each transition, and nothing else. It decides nothing and has no clock.
//!
//! The timetables (`tests`), the model (`tests/model`) and the histories that are played on real stores
//! (`tests/it/redis`) all use it.

#![allow(
    missing_docs,
    reason = "only tests use it; each is named after the transition that it carries out"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lease::Token;
use crate::name::{RequestId, TypeName, Waiter, WorkerName};
use crate::rotation::{
    Caller, Change, Kept, Memory, Pass, PastTurn, Queues, Rotation, Round, Rules, TURNS_KEPT,
    Taken, Turn, TurnAsk, UnknownType, Write,
};
use crate::time::Stamp;

/// A waiter in its queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Standing {
    pub waiter: Waiter,
    pub kind: TypeName,
    pub worker: WorkerName,
    pub since: Stamp,
    pub until: Stamp,
}

/// Of which type and worker.
type Request = (TypeName, WorkerName, RequestId);

/// The rotation and all that stands beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Store {
    pub rotation: Rotation,
    /// What the store knows of itself.
    pub memory: Memory,
    /// In the order of their places.
    pub queue: Vec<Standing>,
    pub requests: BTreeMap<Request, (Token, Stamp)>,
    /// Newest first.
    pub past: Vec<PastTurn>,
    pub lost: Vec<Turn>,
    pub woken: Vec<Waiter>,
}

impl Store {
    pub fn new(rules: &Rules, memory: Memory) -> Self {
        Self {
            rotation: Rotation::new(rules.clone(), &memory),
            memory,
            queue: Vec::new(),
            requests: BTreeMap::new(),
            past: Vec::new(),
            lost: Vec::new(),
            woken: Vec::new(),
        }
    }

    pub fn define(&mut self, rules: &Rules, now: Stamp) {
        let act = |round: Round, queues: &Queues| Ok(round.define(rules, queues));
        self.carry_out(Caller::Rules, None, now, act).expect("no type is named");
    }

    pub fn take(&mut self, ask: &TurnAsk, now: Stamp) -> Result<Taken, UnknownType> {
        let request = (ask.kind.clone(), ask.worker.clone(), ask.request.clone());
        let had = self.requests.get(&request).filter(|(_, until)| *until > now).map(|had| had.0);
        let act = |round: Round, queues: &Queues| round.take(ask, had, queues);
        let mut taken = self.carry_out(Caller::Asker(ask), None, now, act)?;
        if let Taken::Waiting { ahead, .. } = &mut taken {
            let mut waiting = BTreeMap::new();
            for one in &self.queue {
                *waiting.entry(one.kind.clone()).or_default() += 1;
            }
            let waits = |one: &Standing| Some(&one.waiter) == ask.waiter();
            let place = self.queue.iter().position(waits).unwrap_or(self.queue.len());
            let before = self.queue[..place].iter().filter(|one| one.kind == ask.kind).count();
            *ahead = self.rotation.ahead(&ask.kind, before as u64, &waiting);
        }
        Ok(taken)
    }

    pub fn extend(&mut self, turn: Token, only: Option<&WorkerName>, now: Stamp) -> Kept {
        let past = self.how(turn);
        let act = |round: Round, queues: &Queues| Ok(round.extend(turn, only, past, queues));
        self.carry_out(Caller::Clock, None, now, act).expect("no type is named")
    }

    pub fn pass(&mut self, pass: &Pass, now: Stamp) -> Result<Kept, UnknownType> {
        let past = self.how(pass.turn);
        let act = |round: Round, queues: &Queues| round.pass(pass, past, queues);
        self.carry_out(Caller::Clock, Some(pass.turn), now, act)
    }

    pub fn give_back(&mut self, turn: Token, now: Stamp) -> bool {
        let act = |round: Round, queues: &Queues| Ok(round.give_back(turn, queues));
        self.carry_out(Caller::Clock, Some(turn), now, act).expect("no type is named")
    }

    pub fn leave(&mut self, waiter: &Waiter, now: Stamp) {
        let act = |round: Round, queues: &Queues| Ok(round.leave(waiter, queues));
        self.carry_out(Caller::Leaver(waiter), None, now, act).expect("no type is named");
    }

    /// The pump of a node incarnation.
    pub fn pump(&mut self, incarnation: &str, now: Stamp) {
        let act = |round: Round, queues: &Queues| Ok(round.pump(queues));
        if self.rotation.due.is_some_and(|due| due <= now) {
            self.carry_out(Caller::Clock, None, now, act).expect("no type is named");
        }
        if self.rotation.silent.contains_key(incarnation) {
            self.carry_out(Caller::Node(incarnation), None, now, act).expect("no type is named");
        }
    }

    fn how(&self, turn: Token) -> Option<PastTurn> {
        self.past.iter().find(|past| past.token == turn).cloned()
    }

    /// Load, decide, write.
    fn carry_out<T>(
        &mut self,
        caller: Caller<'_>,
        ends: Option<Token>,
        now: Stamp,
        act: impl FnOnce(Round, &Queues) -> Result<Change<T>, UnknownType>,
    ) -> Result<T, UnknownType> {
        let round = Round::begin(self.rotation.clone(), &self.memory, caller, now);
        let mut queues = Queues::default();
        if round.looks_at_queues(caller, ends) {
            let asker = if let Caller::Asker(ask) = caller { ask.waiter() } else { None };
            let silent = &round.rotation().silent;
            for one in &self.queue {
                let waits = one.until > now || Some(&one.waiter) == asker;
                let of = queues.0.entry(one.kind.clone()).or_default();
                if waits
                    && !silent.contains_key(one.waiter.incarnation())
                    && of.len() < Queues::FIRST
                {
                    of.push(one.waiter.clone());
                }
            }
        }
        let change = act(round, &queues)?;
        self.rotation = change.rotation;
        for one in change.writes {
            self.write(one, now);
        }
        Ok(change.answer)
    }

    fn write(&mut self, one: Write, now: Stamp) {
        match one {
            Write::Remember(turn) => {
                self.past.insert(0, turn);
                self.past.truncate(TURNS_KEPT);
            }
            Write::Report(turn) => self.lost.push(turn),
            Write::Note(turn, until) => {
                self.requests.insert((turn.kind, turn.worker, turn.request), (turn.token, until));
            }
            Write::Forget(turn) => {
                self.requests.remove(&(turn.kind, turn.worker, turn.request));
            }
            Write::Enter { waiter, kind, worker, until } => {
                match self.queue.iter_mut().find(|one| one.waiter == waiter) {
                    Some(one) => one.until = until,
                    None => self.queue.push(Standing { waiter, kind, worker, since: now, until }),
                }
            }
            Write::Strike(waiter) => self.queue.retain(|one| one.waiter != waiter),
            Write::Dismiss(kind) => {
                let (gone, stay) = self.queue.drain(..).partition(|one| one.kind == kind);
                self.queue = stay;
                let gone: Vec<Standing> = gone;
                self.woken.extend(gone.into_iter().map(|one| one.waiter));
            }
            Write::Wake(waiter) => self.woken.push(waiter),
        }
    }
}

/// A request that waits as `waiter`, or asks for a final answer.
pub fn ask(kind: &str, worker: &str, request: &str, wait: Option<(&str, Duration)>) -> TurnAsk {
    TurnAsk {
        rotation: "supplier".parse().expect("a name"),
        kind: kind.parse().expect("a name"),
        worker: worker.parse().expect("a label"),
        request: request.parse().expect("a label"),
        wait: wait.map(|(waiter, patience)| (Waiter(waiter.to_owned()), patience)),
    }
}
