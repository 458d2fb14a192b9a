//! One transition under way: records are looked up in what is loaded, changed in memory, and judged again.
//!
//! Everything here is shared by the acts (`acts.rs`, `exchange.rs`); an act owns the order of what happens. The laws:
//!
//! - **One state.** A task is in exactly one state, and the counts of its source say so.
//! - **The ring.** A source with ready tasks that may start stands in the ring, by turn; one that has them and may not
//!   is shut, and says why and until when. A source that enters the ring, or was just served, comes last.

use std::collections::{BTreeMap, BTreeSet};

use super::asks::{ClaimId, Past, PastEvent, TaskId};
use super::order::Place;
use super::record::{Book, Change, Claim, Kept, Recent, Seat, Source, Task, Write};
use super::rules::{Reason, Shut};
use super::sets::{Halt, Need, Sets, Wanted};
use super::task::{Departure, Next, TaskOutcome, TaskState};
use crate::lease::Token;
use crate::name::{SourceName, Waiter};
use crate::time::Stamp;

pub(super) type Out<T> = Result<T, Halt>;

/// A transition under way.
pub(super) struct Round<'s> {
    pub(super) sets: &'s Sets,
    pub(super) now: Stamp,
    pub(super) book: Book,
    /// As changed.
    pub(super) sources: BTreeMap<SourceName, Source>,
    /// As changed.
    pub(super) tasks: BTreeMap<TaskId, Task>,
    /// As changed.
    claims: BTreeMap<ClaimId, Option<Claim>>,
    /// As changed.
    recent: BTreeMap<SourceName, Recent>,
    /// To be judged again.
    touched: BTreeSet<SourceName>,
    /// How many tasks may start, of each source that was judged.
    pub(super) servable: BTreeMap<SourceName, u64>,
    /// Who entered the queue.
    pub(super) came: Option<(Waiter, Vec<SourceName>)>,
    pub(super) writes: Vec<Write>,
}

impl<'s> Round<'s> {
    pub(super) fn begin(sets: &'s Sets, now: Stamp) -> Self {
        Self {
            sets,
            now,
            book: sets.book,
            sources: BTreeMap::new(),
            tasks: BTreeMap::new(),
            claims: BTreeMap::new(),
            recent: BTreeMap::new(),
            touched: BTreeSet::new(),
            servable: BTreeMap::new(),
            came: None,
            writes: Vec::new(),
        }
    }

    /// Asks for all of these at once that are not loaded.
    pub(super) fn want(&self, wanted: Wanted) -> Out<()> {
        self.missing(wanted).map_or(Ok(()), |need| Err(need.into()))
    }

    /// Those that are not loaded, if any.
    pub(super) fn missing(&self, mut wanted: Wanted) -> Option<Need> {
        let Sets { sources, tasks, claims, .. } = self.sets;
        let changed = &self.sources;
        wanted.sources.retain(|name| !sources.contains_key(name) && !changed.contains_key(name));
        wanted.tasks.retain(|id| !tasks.contains_key(id));
        wanted.claims.retain(|id| !claims.contains_key(id));
        (!wanted.is_empty()).then_some(Need::Records(wanted))
    }

    /// A source as it is now.
    pub(super) fn source(&self, name: &SourceName) -> Out<&Source> {
        if let Some(changed) = self.sources.get(name) {
            return Ok(changed);
        }
        match self.sets.sources.get(name) {
            Some(Some(source)) => Ok(source),
            Some(None) => Err(Halt::NoSource(name.clone())),
            None => {
                let sources = [name.clone()].into();
                Err(Need::Records(Wanted { sources, ..Wanted::default() }).into())
            }
        }
    }

    /// A source to be changed.
    pub(super) fn edit(&mut self, name: &SourceName) -> Out<&mut Source> {
        if !self.sources.contains_key(name) {
            let source = self.source(name)?.clone();
            self.sources.insert(name.clone(), source);
        }
        self.sources.get_mut(name).ok_or_else(|| Halt::NoSource(name.clone()))
    }

    /// A source to be changed, and to be judged again.
    pub(super) fn touch(&mut self, name: &SourceName) -> Out<&mut Source> {
        self.touched.insert(name.clone());
        self.edit(name)
    }

    /// A source that is new or has new rules.
    pub(super) fn set_source(&mut self, source: Source) {
        self.touched.insert(source.name.clone());
        self.sources.insert(source.name.clone(), source);
    }

    /// A task as it is now; `None` when there is no such.
    pub(super) fn task(&self, id: &TaskId) -> Out<Option<&Task>> {
        if let Some(changed) = self.tasks.get(id) {
            return Ok(Some(changed));
        }
        self.sets.tasks.get(id).map(Option::as_ref).ok_or_else(|| {
            Need::Records(Wanted { tasks: [id.clone()].into(), ..Wanted::default() }).into()
        })
    }

    /// A claim as it is now; `None` when there is no such, or it is forgotten.
    pub(super) fn claim(&self, id: &ClaimId) -> Out<Option<&Claim>> {
        let known = match self.claims.get(id) {
            Some(changed) => Some(changed),
            None => self.sets.claims.get(id),
        };
        let known = known.ok_or_else(|| {
            Need::Records(Wanted { claims: [id.clone()].into(), ..Wanted::default() })
        })?;
        Ok(known.as_ref().filter(|claim| claim.forget > self.now))
    }

    pub(super) fn set_claim(&mut self, id: &ClaimId, claim: Option<Claim>) {
        self.claims.insert(id.clone(), claim);
    }

    /// What the window of a source counts.
    fn recent(&self, source: &Source) -> Out<Recent> {
        let Some(window) = source.rules.window else { return Ok(Recent::default()) };
        if let Some(changed) = self.recent.get(&source.name) {
            return Ok(*changed);
        }
        let key = (source.name.clone(), window.span);
        let known = self.sets.recent.get(&key).copied();
        known.ok_or_else(|| Need::Recent([key].into()).into())
    }

    /// How many tasks of a source may start now, or why none; `first_end` as in [`Source::standing`].
    pub(super) fn room(
        &self,
        name: &SourceName,
        first_end: Option<Stamp>,
    ) -> Out<Result<u32, Shut>> {
        let source = self.source(name)?;
        Ok(source.rules.room(&source.standing(self.recent(source)?, first_end), self.now))
    }

    /// Tasks of a source started: limits count them, and it comes last in the ring.
    pub(super) fn start(&mut self, name: &SourceName, count: u64) -> Out<()> {
        let now = self.now;
        let recent = self.recent(self.source(name)?)?;
        let source = self.touch(name)?;
        let nth = source.started + 1;
        source.last_start = Some(now);
        source.started += count;
        source.ready = source.ready.saturating_sub(count);
        source.in_flight += count;
        source.promised = source.promised.saturating_sub(count);
        source.seat.turn = None;
        if let Some(window) = source.rules.window {
            let oldest = if recent.count == 0 { now } else { recent.oldest };
            let more = u32::try_from(count).unwrap_or(u32::MAX);
            let recent = Recent { count: recent.count.saturating_add(more), oldest };
            self.recent.insert(name.clone(), recent);
            self.writes.push(Write::Start { source: name.clone(), nth, span: window.span });
        }
        Ok(())
    }

    /// Judges where a source stands.
    pub(super) fn judge(&mut self, name: &SourceName) -> Out<()> {
        let room = self.room(name, None)?;
        let mut turn = self.book.turn;
        let source = self.edit(name)?;
        let servable = room.map_or(0, |room| source.ready.min(u64::from(room)));
        source.seat = match room {
            _ if source.ready == 0 => Seat::default(),
            Ok(_) => {
                let place = source.seat.turn.unwrap_or_else(|| {
                    turn += 1;
                    turn
                });
                Seat { turn: Some(place), shut: None, opens: None }
            }
            Err(shut) => {
                let by_itself = matches!(shut.reason, Reason::Gap | Reason::Blocked);
                let opens = shut.until.filter(|_| by_itself);
                Seat { turn: None, shut: Some(shut.reason), opens }
            }
        };
        self.book.turn = turn;
        self.touched.remove(name);
        self.servable.insert(name.clone(), servable);
        Ok(())
    }

    /// Judges every source that was touched.
    pub(super) fn settle(&mut self) -> Out<()> {
        while let Some(name) = self.touched.first().cloned() {
            self.judge(&name)?;
        }
        Ok(())
    }

    /// The next token.
    pub(super) fn mint(&mut self) -> Token {
        let clock = u64::try_from(self.now.floor().0).unwrap_or(0).saturating_mul(1_024);
        self.book.token = Token(clock.max(self.book.token.0 + 1));
        self.book.token
    }

    /// Takes a task out of its collector's hands.
    pub(super) fn leave(&mut self, task: &Task, how: Departure, error: Option<&str>) -> Out<()> {
        let now = self.now;
        let source = self.touch(&task.source)?;
        let next = source.rules.after(how, task.attempt, task.every, now);
        let said = match how {
            Departure::Reported { outcome, .. } => Some(outcome),
            Departure::Expired | Departure::Returned => None,
        };
        source.in_flight = source.in_flight.saturating_sub(1);
        source.finished += u64::from(said == Some(TaskOutcome::Done));
        source.expired += u64::from(how == Departure::Expired);
        let mut left =
            Task { place: None, at: None, until: None, lease: None, changed: now, ..task.clone() };
        match next {
            Next::Ready => {
                source.ready += 1;
                source.nth += 1;
                left.state = TaskState::Ready;
                left.place = Some(Place::before(task.priority, source.nth));
                left.attempt = task.attempt.saturating_sub(u32::from(how == Departure::Returned));
            }
            Next::Due { at, again } => {
                source.retried += u64::from(said == Some(TaskOutcome::Retry));
                left.attempt = if again { 0 } else { task.attempt };
                if at <= now {
                    source.ready += 1;
                    source.nth += 1;
                    left.state = TaskState::Ready;
                    left.place = Some(Place::behind(task.priority, source.nth));
                } else {
                    source.due += 1;
                    left.state = TaskState::Due;
                    left.at = Some(at);
                }
            }
            Next::Done => {
                source.done += 1;
                left.state = TaskState::Done;
                self.writes.push(Write::Finished(task.id.clone()));
            }
            Next::Dead => {
                source.dead += 1;
                left.state = TaskState::Dead;
            }
        }
        if said.is_some() {
            left.accepted = task.token;
        }
        if said == Some(TaskOutcome::Done) {
            left.error = None;
        } else if let Some(error) = error {
            left.error = Some(error.to_owned());
        }
        let event = match (how, left.state) {
            (_, TaskState::Dead) => Some(PastEvent::Died),
            (Departure::Expired, _) => Some(PastEvent::Expired),
            (Departure::Reported { outcome: TaskOutcome::Retry, .. }, _) => {
                Some(PastEvent::Retried)
            }
            _ => None,
        };
        if let Some(event) = event {
            let (attempt, collector) = (task.attempt, task.collector.clone());
            let past = Past { at: now, event, attempt, collector, error: error.map(str::to_owned) };
            self.writes.push(Write::Note(task.id.clone(), past));
        }
        self.tasks.insert(task.id.clone(), left);
        Ok(())
    }

    /// Makes a task ready, behind all of its priority.
    pub(super) fn make_ready(&mut self, task: Task) -> Out<()> {
        let source = self.touch(&task.source)?;
        source.ready += 1;
        source.nth += 1;
        let place = Some(Place::behind(task.priority, source.nth));
        let (state, changed) = (TaskState::Ready, self.now);
        self.tasks.insert(task.id.clone(), Task { state, place, at: None, changed, ..task });
        Ok(())
    }

    /// A task of a claim was reported. A claim without any other is forgotten.
    pub(super) fn strike_task(&mut self, claim: &ClaimId, id: &TaskId) -> Out<()> {
        if !self.claims.contains_key(claim) {
            let known = self.claim(claim)?.cloned();
            self.claims.insert(claim.clone(), known);
        }
        if let Some(known) = self.claims.get_mut(claim)
            && let Some(Claim { kept: Kept::Granted { tasks, .. }, .. }) = known
        {
            if let Some(nth) = tasks.iter().position(|(one, _)| one == id) {
                tasks.remove(nth);
            }
            if tasks.is_empty() {
                *known = None;
            }
        }
        Ok(())
    }

    /// The waiter has its answer.
    pub(super) fn strike(&mut self, waiter: Option<&Waiter>) {
        self.writes.extend(waiter.cloned().map(Write::Strike));
    }

    /// It waits.
    pub(super) fn enter(&mut self, waiter: &Waiter, sources: &[SourceName], until: Stamp) {
        self.came = Some((waiter.clone(), sources.to_vec()));
        let (waiter, sources) = (waiter.clone(), sources.to_vec());
        self.writes.push(Write::Enter { waiter, sources, until });
    }

    /// Wakes who can be served now, and says what is to be written.
    pub(super) fn close<T>(mut self, answer: T) -> Out<Change<T>> {
        self.settle()?;
        self.wake()?;
        let Self { sets, book, sources, tasks, claims, writes, .. } = self;
        let sources = sources.into_iter().filter(|(name, source)| {
            sets.sources.get(name).and_then(Option::as_ref) != Some(source)
        });
        let tasks = tasks
            .into_iter()
            .filter(|(id, task)| sets.tasks.get(id).and_then(Option::as_ref) != Some(task));
        let claims = claims.into_iter().filter(|(id, claim)| sets.claims.get(id) != Some(claim));
        Ok(Change {
            answer,
            book,
            sources: sources.map(|(_, source)| source).collect(),
            tasks: tasks.map(|(_, task)| task).collect(),
            claims: claims.collect(),
            writes,
        })
    }
}
