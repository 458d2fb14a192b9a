//! Dispatch kept in memory: what a store does around each transition, and nothing else. It decides nothing and has no clock.
//!
//! The timetables (`tests`), the model (`tests/model`) and the histories that are played on real stores
//! (`tests/it/redis`) all use it. It loads exactly what is asked for, so that a transition which looks at more fails.

#![allow(
    missing_docs,
    reason = "only tests use it; each is named after the transition that it carries out"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::dispatch::{
    self, Answer, Book, Change, Claim, ClaimAsk, ClaimId, ClaimOwner, DONE_KEPT, Exchange,
    Exchanged, Extended, HISTORY_KEPT, Halt, Kept, Need, NewTask, Overdue, Past, Recent, Report,
    Reported, Rules, Sets, Shut, Source, Task, TaskId, TaskState, Waiting, Wanted, Write,
};
use crate::name::{CollectorName, SourceName, Waiter};
use crate::time::Stamp;

/// A waiter in its queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Standing {
    pub waiter: Waiter,
    /// None: any.
    pub sources: Vec<SourceName>,
    pub until: Stamp,
}

/// Everything that a store keeps of dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Store {
    pub book: Book,
    pub sources: BTreeMap<SourceName, Source>,
    pub tasks: BTreeMap<TaskId, Task>,
    /// In the order in which they were put.
    pub order: Vec<TaskId>,
    pub texts: BTreeMap<TaskId, (String, String)>,
    pub pasts: BTreeMap<TaskId, Vec<Past>>,
    pub claims: BTreeMap<ClaimId, Claim>,
    /// When tasks started, and the number of the first of them.
    pub starts: BTreeMap<SourceName, Vec<(Stamp, u64)>>,
    /// Oldest first.
    pub done: Vec<TaskId>,
    /// In the order of their places.
    pub queue: Vec<Standing>,
    pub seen: BTreeMap<CollectorName, Stamp>,
    pub woken: Vec<Waiter>,
}

impl Store {
    pub fn define(&mut self, name: &SourceName, rules: &Rules, now: Stamp) {
        let act = |sets: &Sets| dispatch::define(sets, name, rules, now);
        self.carry_out(now, &[], act).expect("a source may be new");
    }

    pub fn pause(&mut self, name: &SourceName, paused: bool, now: Stamp) -> Result<(), Halt> {
        self.carry_out(now, &[], |sets| dispatch::pause(sets, name, paused, now))
    }

    pub fn block(&mut self, name: &SourceName, lasting: Duration, now: Stamp) -> Result<(), Halt> {
        self.carry_out(now, &[], |sets| dispatch::block(sets, name, lasting, now))
    }

    pub fn put(&mut self, tasks: &[NewTask], now: Stamp) -> Result<Vec<bool>, Halt> {
        self.carry_out(now, tasks, |sets| dispatch::put(sets, tasks, now))
    }

    pub fn exchange(&mut self, ask: &Exchange, now: Stamp) -> Result<Exchanged, Halt> {
        self.carry_out(now, &[], |sets| dispatch::exchange(sets, ask, now))
    }

    pub fn claim(&mut self, ask: &ClaimAsk, now: Stamp) -> Answer {
        let ask = Exchange { claim: Some(ask.clone()), ..Exchange::default() };
        self.exchange(&ask, now).expect("known sources").1.expect("something was asked")
    }

    pub fn report(&mut self, report: &Report, now: Stamp) -> Reported {
        let ask = Exchange { reports: vec![report.clone()], ..Exchange::default() };
        self.exchange(&ask, now).expect("nothing is missing").0[0]
    }

    pub fn extend(
        &mut self,
        claim: &ClaimId,
        only: Option<&ClaimOwner>,
        now: Stamp,
    ) -> Result<Extended, Halt> {
        self.carry_out(now, &[], |sets| dispatch::extend(sets, claim, only, now))
    }

    pub fn give_back(
        &mut self,
        claim: &ClaimId,
        only: Option<&ClaimOwner>,
        unseen: bool,
        now: Stamp,
    ) -> u64 {
        let act = |sets: &Sets| dispatch::give_back(sets, claim, only, unseen, now);
        self.carry_out(now, &[], act).expect("an unknown claim is no error")
    }

    pub fn leave_queues(&mut self, waiter: &Waiter, now: Stamp) {
        for one in dispatch::leave_queues(waiter) {
            self.write(one, &[], now);
        }
    }

    pub fn pump(&mut self, now: Stamp) -> u64 {
        let expired = self.carry_out(now, &[], |sets| dispatch::pump(sets, now));
        self.queue.retain(|one| one.until > now);
        self.claims.retain(|_, claim| claim.forget > now);
        expired.expect("nothing is missing")
    }

    pub fn revive(&mut self, id: &TaskId, now: Stamp) -> Result<(), Halt> {
        self.carry_out(now, &[], |sets| dispatch::revive(sets, id, now))
    }

    /// When the clock alone changes something.
    pub fn next(&self) -> Option<Stamp> {
        let leases = self.tasks.values().filter_map(|task| task.until);
        let due = self.tasks.values().filter_map(|task| task.at);
        let opens = self.sources.values().filter_map(|source| source.seat.opens);
        let promised = self.sources.values().filter(|source| source.promised > 0);
        leases.chain(due).chain(opens).chain(promised.map(|source| source.promised_until)).min()
    }

    /// Why no claim is served from a source.
    pub fn shut(&self, name: &SourceName, now: Stamp) -> Option<Shut> {
        let source = &self.sources[name];
        let of = |task: &&Task| task.source == *name;
        let first_end = self.tasks.values().filter(of).filter_map(|task| task.until).min();
        let first_due = self.tasks.values().filter(of).filter_map(|task| task.at).min();
        let span = source.rules.window.map_or(Duration::ZERO, |window| window.span);
        source.shut(self.recent(name, span, now), first_end, first_due, now)
    }

    fn recent(&self, name: &SourceName, span: Duration, now: Stamp) -> Recent {
        let starts = self.starts.get(name).into_iter().flatten();
        let first = starts.copied().filter(|(at, _)| *at + span > now).min();
        let started = self.sources.get(name).map_or(0, |source| source.started);
        first.map_or_else(Recent::default, |(oldest, nth)| Recent {
            count: u32::try_from(started + 1 - nth).expect("few"),
            oldest,
        })
    }

    /// Load what is needed until there is an answer, then write.
    fn carry_out<T>(
        &mut self,
        now: Stamp,
        put: &[NewTask],
        act: impl Fn(&Sets) -> Result<Change<T>, Halt>,
    ) -> Result<T, Halt> {
        let (change, _) = self.decide(now, act)?;
        Ok(self.commit(change, put, now))
    }

    /// What a transition says, and what it looked at.
    pub fn decide<T>(
        &self,
        now: Stamp,
        act: impl Fn(&Sets) -> Result<Change<T>, Halt>,
    ) -> Result<(Change<T>, Sets), Halt> {
        let mut sets = Sets { book: self.book, ..Sets::default() };
        for _ in 0..20 {
            match act(&sets) {
                Err(Halt::Need(needs)) => {
                    needs.into_iter().for_each(|need| self.load(&mut sets, need, now));
                }
                Err(halt) => return Err(halt),
                Ok(change) => return Ok((change, sets)),
            }
        }
        panic!("it asks for ever more");
    }

    fn commit<T>(&mut self, change: Change<T>, put: &[NewTask], now: Stamp) -> T {
        self.book = change.book;
        for source in change.sources {
            self.sources.insert(source.name.clone(), source);
        }
        for task in change.tasks {
            let known = self.tasks.insert(task.id.clone(), task);
            assert!(known.is_some(), "a new task is put");
        }
        for (id, claim) in change.claims {
            match claim {
                Some(claim) => self.claims.insert(id, claim),
                None => self.claims.remove(&id),
            };
        }
        for one in change.writes {
            self.write(one, put, now);
        }
        change.answer
    }

    fn write(&mut self, one: Write, put: &[NewTask], now: Stamp) {
        match one {
            Write::Put(task, number) => {
                let text = (put[number].key.clone(), put[number].payload.clone());
                self.texts.insert(task.id.clone(), text);
                self.order.push(task.id.clone());
                let known = self.tasks.insert(task.id.clone(), *task);
                assert!(known.is_none(), "it is new");
            }
            Write::Finished(id) => {
                self.texts.get_mut(&id).expect("known").1 = "null".to_owned();
                self.done.push(id);
                if self.done.len() as u64 > DONE_KEPT {
                    let oldest = self.done.remove(0);
                    self.tasks.remove(&oldest);
                    self.texts.remove(&oldest);
                    self.pasts.remove(&oldest);
                    self.order.retain(|id| *id != oldest);
                }
            }
            Write::Remove(id, was_done) => {
                self.tasks.remove(&id);
                self.texts.remove(&id);
                self.pasts.remove(&id);
                self.order.retain(|one| *one != id);
                if was_done {
                    self.done.retain(|one| *one != id);
                }
            }
            Write::Note(id, past) => {
                let pasts = self.pasts.entry(id).or_default();
                pasts.push(past);
                let over = pasts.len().saturating_sub(HISTORY_KEPT);
                pasts.drain(..over);
            }
            Write::Start { source, nth, span } => {
                let starts = self.starts.entry(source).or_default();
                starts.retain(|(at, _)| *at + span > now);
                starts.push((now, nth));
            }
            Write::ForgetStarts(source) => {
                self.starts.remove(&source);
            }
            Write::Seen(collector) => {
                self.seen.insert(collector, now);
            }
            Write::Enter { waiter, sources, until } => {
                match self.queue.iter_mut().find(|one| one.waiter == waiter) {
                    Some(one) => one.until = until,
                    None => self.queue.push(Standing { waiter, sources, until }),
                }
            }
            Write::Strike(waiter) => self.queue.retain(|one| one.waiter != waiter),
            Write::Wake(waiter) => {
                self.queue.retain(|one| one.waiter != waiter);
                self.woken.push(waiter);
            }
        }
    }

    fn load(&self, sets: &mut Sets, need: Need, now: Stamp) {
        match need {
            Need::Records(wanted) => self.load_records(sets, wanted, now),
            Need::Recent(keys) => {
                for (name, span) in keys {
                    let recent = self.recent(&name, span, now);
                    sets.recent.insert((name, span), recent);
                }
            }
            Need::Overdue(most) => self.load_overdue(sets, most as usize, now),
            Need::Ring(most) => {
                let turn = |source: &Source| source.seat.turn;
                let ring = self.first_sources(sets, turn, most);
                sets.ring = Some((most, ring));
            }
            Need::Heads(counts) => {
                for (name, count) in counts {
                    let place = |task: &Task| task.place.filter(|_| task.source == name);
                    let heads = self.first_tasks(sets, place, count);
                    sets.heads.insert(name, heads);
                }
            }
            Need::Shut(most) => {
                let mut shut = self.first_sources(sets, |source| source.seat.opens, most);
                for why in [dispatch::Reason::Cap, dispatch::Reason::Paused] {
                    let most = if why == dispatch::Reason::Cap { 16 } else { 1 };
                    let is = |source: &Source| (source.seat.shut == Some(why)).then_some(());
                    shut.extend(self.first_sources(sets, is, most));
                }
                sets.shut = Some(shut);
            }
            Need::Firsts { ends, dues } => {
                for (name, count) in ends {
                    let end = |task: &Task| task.until.filter(|_| task.source == name);
                    let first = self.first_tasks(sets, end, count);
                    sets.ends.insert(name, first);
                }
                for (name, count) in dues {
                    let of = |task: &Task| name.as_ref().is_none_or(|name| task.source == *name);
                    let first = self.first_tasks(sets, |task| task.at.filter(|_| of(task)), count);
                    sets.dues.insert(name, first);
                }
            }
            Need::Queues(counts) => {
                for (name, count) in counts {
                    let waits = |one: &Standing| match &name {
                        Some(name) => one.sources.contains(name),
                        None => one.sources.is_empty(),
                    };
                    let stand = self.queue.iter().enumerate();
                    let stand = stand.filter(|(_, one)| one.until > now && waits(one)).take(count);
                    let waiting = stand.map(|(place, one)| Waiting {
                        place: place as u64,
                        waiter: one.waiter.clone(),
                    });
                    sets.queues.insert(name.clone(), waiting.collect());
                }
            }
        }
    }

    fn load_records(&self, sets: &mut Sets, wanted: Wanted, now: Stamp) {
        for name in wanted.sources {
            self.load_source(sets, &name, now);
        }
        for id in wanted.tasks {
            sets.tasks.insert(id.clone(), self.tasks.get(&id).cloned());
        }
        for id in wanted.claims {
            sets.claims.insert(id.clone(), self.claims.get(&id).cloned());
        }
    }

    fn load_source(&self, sets: &mut Sets, name: &SourceName, now: Stamp) {
        let source = self.sources.get(name);
        sets.sources.insert(name.clone(), source.cloned());
        if let Some(window) = source.and_then(|source| source.rules.window) {
            let recent = self.recent(name, window.span, now);
            sets.recent.insert((name.clone(), window.span), recent);
        }
    }

    fn load_overdue(&self, sets: &mut Sets, most: usize, now: Stamp) {
        let over = |at: Option<Stamp>| at.filter(|at| *at <= now);
        let end = |task: &Task| over(task.until).map(|until| (until, task.token));
        let leases = self.first_tasks(sets, end, most);
        let due = self.first_tasks(sets, |task| over(task.at), most);
        let opens = self.first_sources(sets, |source| over(source.seat.opens), most);
        let lapsed = |source: &Source| over((source.promised > 0).then_some(source.promised_until));
        let lapsed = self.first_sources(sets, lapsed, most);
        for id in leases.iter().chain(&due) {
            let source = self.tasks[id].source.clone();
            self.load_source(sets, &source, now);
        }
        for name in opens.iter().chain(&lapsed) {
            self.load_source(sets, name, now);
        }
        sets.overdue = Some(Overdue { leases, due, opens, lapsed });
    }

    /// By some key, with their records; of one key the oldest first.
    fn first_tasks<K: Ord>(
        &self,
        sets: &mut Sets,
        key: impl Fn(&Task) -> Option<K>,
        most: usize,
    ) -> Vec<TaskId> {
        let tasks = self.order.iter().map(|id| &self.tasks[id]);
        let mut found: Vec<_> =
            tasks.filter_map(|task| key(task).map(|key| (key, task.id.clone()))).collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found.truncate(most);
        for (_, id) in &found {
            sets.tasks.insert(id.clone(), self.tasks.get(id).cloned());
        }
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// By some key, with their records; of one key by name.
    fn first_sources<K: Ord>(
        &self,
        sets: &mut Sets,
        key: impl Fn(&Source) -> Option<K>,
        most: usize,
    ) -> Vec<SourceName> {
        let sources = self.sources.values();
        let mut found: Vec<_> =
            sources.filter_map(|one| key(one).map(|key| (key, one.name.clone()))).collect();
        found.sort();
        found.truncate(most);
        for (_, name) in &found {
            sets.sources.insert(name.clone(), self.sources.get(name).cloned());
        }
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// What must hold at any instant: one state, and counts that say so; what is held is named by its claim.
    pub fn is_sound(&self, now: Stamp) -> Result<(), String> {
        for source in self.sources.values() {
            let count = |state| {
                let is = |task: &&Task| task.source == source.name && task.state == state;
                self.tasks.values().filter(is).count() as u64
            };
            let states = [TaskState::Ready, TaskState::Due, TaskState::Leased, TaskState::Dead];
            let counts = [source.ready, source.due, source.in_flight, source.dead];
            if states.map(count) != counts {
                return Err(format!("counts of {source:?}"));
            }
        }
        for task in self.tasks.values() {
            let fits = (task.place.is_some(), task.at.is_some(), task.until.is_some())
                == match task.state {
                    TaskState::Ready => (true, false, false),
                    TaskState::Due => (false, true, false),
                    TaskState::Leased => (false, false, true),
                    TaskState::Done | TaskState::Dead => (false, false, false),
                };
            let claim = task.claim.as_ref().and_then(|claim| self.claims.get(claim));
            let named = claim.is_some_and(|claim| match &claim.kept {
                Kept::Granted { tasks, .. } => tasks.contains(&(task.id.clone(), task.token)),
                Kept::Nothing { .. } => false,
            });
            if !fits || task.is_held(task.token, now) && !named {
                return Err(format!("{task:?} {claim:?}"));
            }
        }
        Ok(())
    }
}
