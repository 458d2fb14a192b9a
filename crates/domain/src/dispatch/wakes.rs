//! The end of a transition: who is woken.
//!
//! The laws:
//!
//! - **Waking.** At the end of a transition, each source that was judged in it wakes as many waiters as it has tasks that
//!   may start beyond those promised: of those who wait for it or for any source, the longest first; sources by name.
//! - **A promise** is no reservation: it only keeps others from being woken for the same task. It lapses after [`PROMISE`].

use std::collections::{BTreeMap, BTreeSet};

use super::record::{PROMISE, Write};
use super::round::{Out, Round};
use super::sets::{Need, Sets, Waiting};
use crate::name::{SourceName, Waiter};

impl Round<'_> {
    /// Wakes who can be served now; everything was judged.
    pub(super) fn wake(&mut self) -> Out<()> {
        let calls = self.calls();
        if let Some(need) = self.missing_queues(&calls) {
            return Err(need.into());
        }
        let now = self.now;
        let mut queues = Queues::new(self);
        for (name, servable) in self.servable.clone() {
            let Some(source) = self.sources.get_mut(&name) else { continue };
            if source.promised_until <= now {
                source.promised = 0;
            }
            while source.promised < servable {
                let Some(waiter) = queues.longest(&name) else { break };
                self.writes.push(Write::Wake(waiter));
                source.promised += 1;
                source.promised_until = now + PROMISE;
            }
        }
        Ok(())
    }

    /// For how many tasks of which sources waiters may be woken.
    fn calls(&self) -> Vec<(&SourceName, u64)> {
        let more = |(name, servable): (&'_ SourceName, &u64)| {
            let source = self.sources.get(name)?;
            let promised = if source.promised_until <= self.now { 0 } else { source.promised };
            Some(servable.saturating_sub(promised)).filter(|more| *more > 0)
        };
        self.servable.iter().filter_map(|one| more(one).map(|more| (one.0, more))).collect()
    }

    /// Who waits, if that matters and is not loaded. Everything was judged.
    pub(super) fn queues(&self) -> Option<Need> {
        self.missing_queues(&self.calls())
    }

    /// The first of each queue must be known: as many as are called, and one more, who may leave in this transition.
    fn missing_queues(&self, calls: &[(&SourceName, u64)]) -> Option<Need> {
        let all: u64 = calls.iter().fold(1, |all, (_, more)| all.saturating_add(*more));
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        let own = calls.iter().map(|(name, _)| Some((*name).clone()));
        let any = (!calls.is_empty()).then_some(None);
        let mut need: BTreeMap<_, usize> = own.chain(any).map(|queue| (queue, all)).collect();
        need.retain(|queue, _| !self.sets.queues.contains_key(queue));
        (!need.is_empty()).then_some(Need::Queues(need))
    }
}

/// Who waits, while some of them are woken.
struct Queues<'s> {
    sets: &'s Sets,
    came: Option<(Waiter, Vec<SourceName>)>,
    /// They wait no more.
    gone: BTreeSet<Waiter>,
    /// How many of each queue are gone for sure.
    passed: BTreeMap<Option<SourceName>, usize>,
}

impl<'s> Queues<'s> {
    fn new(round: &Round<'s>) -> Self {
        let gone = round.writes.iter().filter_map(|write| match write {
            Write::Strike(waiter) => Some(waiter.clone()),
            _ => None,
        });
        let (sets, came) = (round.sets, round.came.clone());
        Self { sets, came, gone: gone.collect(), passed: BTreeMap::new() }
    }

    /// The first of a queue who still waits.
    fn first(&mut self, queue: Option<SourceName>) -> Option<&'s Waiting> {
        let waiting = self.sets.queues.get(&queue)?;
        let passed = self.passed.entry(queue).or_default();
        while waiting.get(*passed).is_some_and(|one| self.gone.contains(&one.waiter)) {
            *passed += 1;
        }
        waiting.get(*passed)
    }

    /// Takes out who waits longest for a source.
    fn longest(&mut self, source: &SourceName) -> Option<Waiter> {
        let stand = [self.first(Some(source.clone())), self.first(None)];
        let first = stand.into_iter().flatten().min_by_key(|one| one.place);
        let came = self.came.as_ref().filter(|(waiter, sources)| {
            (sources.is_empty() || sources.contains(source)) && !self.gone.contains(waiter)
        });
        let waiter = first.map(|one| &one.waiter).or_else(|| came.map(|(waiter, _)| waiter));
        let waiter = waiter.cloned();
        self.gone.extend(waiter.clone());
        waiter
    }
}
