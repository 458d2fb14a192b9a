//! One transition of one rotation: the instant, how far it has come, and to whom the turn is promised.

use std::time::Duration;

use rusqlite::OptionalExtension;

use super::super::clock;
use super::super::fault::Outcome;
use super::super::row::{corrupt, text};
use super::super::step::Step;
use super::{past, queue};
use crate::domain::lease::Token;
use crate::domain::name::{RotationName, TypeName, WorkerName};
use crate::domain::rotation::{Choice, Ending, Reason, Ring, Rules, Skip, Turn};
use crate::domain::time::Stamp;
use crate::store::StoreError;
use crate::store::dispatch::Waiter;
use crate::store::rotation::{Kept, PROMISE, Pass, Taken, TurnAsk};

/// A silent life is silent for no longer than a waiter may wait.
const SILENT_FOR: Duration = Duration::from_secs(35);

/// Who was woken for the turn.
struct Promise {
    waiter: Waiter,
    kind: TypeName,
    until: Stamp,
}

/// What a transition works on.
pub(super) struct Round<'s> {
    step: &'s Step<'s>,
    now: Stamp,
    name: RotationName,
    rules: Rules,
    ring: Ring,
    promise: Option<Promise>,
    seen: bool,
    woken: Vec<Waiter>,
}

impl<'s> Round<'s> {
    /// Reads a rotation.
    pub(super) fn load(step: &'s Step<'s>, name: &RotationName) -> Outcome<Option<Self>> {
        type Row = (String, String, Option<String>, Option<String>, i64, bool, i64);
        let found: Option<Row> = step
            .prepare_cached(
                "SELECT rules, ring, promised, promised_kind, promised_until, seen, d.newest \
                 FROM rotations, dispatch d WHERE name = ?",
            )?
            .query_row([name.as_str()], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?, r.get(6)?))
            })
            .optional()?;
        let Some((rules, ring, waiter, kind, until, seen, newest)) = found else {
            return Ok(None);
        };
        let bad = |column: &str, why: String| corrupt(&format!("rotation {name}, {column}"), &why);
        let kind = kind.map(|kind| TypeName::new(&kind)).transpose();
        let kind = kind.map_err(|why| bad("promised_kind", why.to_string()))?;
        Ok(Some(Self {
            step,
            now: clock::take(step, newest)?,
            name: name.clone(),
            rules: serde_json::from_str(&rules).map_err(|why| bad("rules", why.to_string()))?,
            ring: serde_json::from_str(&ring).map_err(|why| bad("ring", why.to_string()))?,
            promise: waiter.zip(kind).map(|(waiter, kind)| Promise {
                waiter: Waiter(waiter),
                kind,
                until: Stamp(until),
            }),
            seen,
            woken: Vec::new(),
        }))
    }

    /// The same.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub(super) fn open(step: &'s Step<'s>, name: &RotationName) -> Outcome<Self> {
        Self::load(step, name)?.ok_or_else(|| unknown(name).into())
    }

    /// The same under these rules; made if it is new.
    pub(super) fn define(step: &'s Step<'s>, name: &RotationName, rules: &Rules) -> Outcome<Self> {
        let Some(mut round) = Self::load(step, name)? else {
            let newest: i64 = step.query_row("SELECT newest FROM dispatch", [], |r| r.get(0))?;
            return Ok(Self {
                step,
                now: clock::take(step, newest)?,
                name: name.clone(),
                rules: rules.clone(),
                ring: Ring::default(),
                promise: None,
                seen: false,
                woken: Vec::new(),
            });
        };
        round.ring.adapt(&round.rules, rules);
        let old = std::mem::replace(&mut round.rules, rules.clone());
        for kind in old.types.iter().filter(|kind| rules.of(&kind.name).is_none()) {
            round.woken.extend(queue::clear(step, name, &kind.name)?);
        }
        // Under other rules it may be another's turn, or nobody's yet.
        round.promise = None;
        Ok(round)
    }

    /// Refuses a type that this rotation does not have.
    pub(super) fn check(&self, kind: Option<&TypeName>) -> Outcome<()> {
        match kind {
            Some(kind) if self.rules.of(kind).is_none() => {
                Err(StoreError::NotFound(format!("a type {kind} of rotation {}", self.name)).into())
            }
            _ => Ok(()),
        }
    }

    /// Ends a turn whose lease has run out.
    pub(super) fn expire(&mut self) -> Outcome<()> {
        let turn = self.ring.expire(self.now);
        if let Some(turn) = &turn {
            past::remember(self.step, &self.name, turn, turn.until, Ending::Lost)?;
            past::report(self.step, &self.name, turn)?;
        }
        Ok(())
    }

    /// Whether that turn is the present one, and this worker's.
    pub(super) fn own(&self, turn: Token, only: Option<&WorkerName>) -> Outcome<Kept> {
        match &self.ring.turn {
            Some(own) if own.token == turn && only.is_none_or(|only| *only == own.worker) => {
                Ok(Kept::Yes(own.clone()))
            }
            holder => {
                let past = past::of(self.step, &self.name, turn)?;
                Ok(Kept::Stale { past, holder: holder.clone() })
            }
        }
    }

    /// The present turn lasts for another lease.
    pub(super) fn extend(&mut self) -> Outcome<Turn> {
        // Asked only of a turn that is had.
        let turn = self.ring.extend(self.now).ok_or_else(|| unknown(&self.name))?;
        past::renew(self.step, &self.name, turn)?;
        Ok(turn.clone())
    }

    /// The present turn ends.
    pub(super) fn pass(&mut self, pass: &Pass) -> Outcome<()> {
        if let Some(turn) = self.ring.pass(pass.next.clone(), pass.not_before) {
            past::remember(self.step, &self.name, &turn, self.now, pass.outcome.into())?;
        }
        Ok(())
    }

    /// That turn ends, if nobody but its node knows of it; its request can be made again.
    pub(super) fn give_back(&mut self, turn: Token) -> Outcome<bool> {
        let unseen = self.ring.turn.as_ref().is_some_and(|own| own.token == turn) && !self.seen;
        if unseen && let Some(turn) = self.ring.pass(None, None) {
            past::remember(self.step, &self.name, &turn, self.now, Ending::Lost)?;
            past::undo(self.step, &self.name, &turn)?;
        }
        Ok(unseen)
    }

    /// A waiter waits no more, and makes way if it was promised the turn.
    pub(super) fn leave(&mut self, waiter: &Waiter) -> Outcome<()> {
        self.promise.take_if(|promise| promise.waiter == *waiter);
        queue::leave(self.step, &self.name, waiter)
    }

    /// Answers a request for a turn.
    pub(super) fn take(&mut self, ask: &TurnAsk) -> Outcome<Taken> {
        self.check(Some(&ask.kind))?;
        let waiter = ask.wait.as_ref().map(|(waiter, _)| waiter);
        // Whoever comes late for what it was promised has it still, if nobody asked for it meanwhile.
        if self.promise.as_ref().is_some_and(|promise| waiter != Some(&promise.waiter)) {
            self.lapse()?;
        }
        if let Some(waiter) = waiter {
            queue::hear(self.step, &self.name, waiter.life())?;
        }
        if let Some(token) = past::had(self.step, ask, self.now)? {
            if let Some(waiter) = waiter {
                self.leave(waiter)?;
            }
            return Ok(match self.ring.turn.clone().filter(|turn| turn.token == token) {
                Some(turn) => {
                    self.seen = true;
                    Taken::Granted(turn)
                }
                None => Taken::Over(token),
            });
        }
        if let Some((waiter, patience)) = &ask.wait {
            let span = (self.now, self.now + *patience);
            queue::enter(self.step, &self.name, &ask.kind, waiter, &ask.worker, span)?;
        }
        if self.is_turn_of(&ask.kind, waiter)? {
            if let Some(waiter) = waiter {
                self.leave(waiter)?;
            }
            self.seen = false;
            let turn = self.ring.start(&self.rules, &ask.kind, &ask.worker, &ask.request, self.now);
            past::note(self.step, ask, turn)?;
            return Ok(Taken::Granted(turn.clone()));
        }
        self.outlook(&ask.kind, waiter)
    }

    /// Whether whoever asks for `kind` now has the turn.
    fn is_turn_of(&self, kind: &TypeName, waiter: Option<&Waiter>) -> Outcome<bool> {
        if self.ring.turn.is_some() {
            return Ok(false);
        }
        if let Some(promise) = &self.promise {
            return Ok(waiter == Some(&promise.waiter) && promise.kind == *kind);
        }
        let firsts = self.firsts()?;
        let waits = |one: &TypeName| one == kind || firsts.iter().any(|(of, _)| of == one);
        let first = firsts.iter().find(|(of, _)| of == kind).map(|(_, waiter)| waiter);
        Ok(self.ring.choose(&self.rules, waits, self.now) == Choice::Now(kind.clone())
            && first.is_none_or(|first| Some(first) == waiter))
    }

    fn firsts(&self) -> Outcome<Vec<(TypeName, Waiter)>> {
        let mut firsts = Vec::new();
        for kind in &self.rules.types {
            if let Some(first) = queue::first(self.step, &self.name, &kind.name, self.now)? {
                firsts.push((kind.name.clone(), first));
            }
        }
        Ok(firsts)
    }

    /// What somebody who does not have the turn waits for.
    fn outlook(&self, kind: &TypeName, waiter: Option<&Waiter>) -> Outcome<Taken> {
        let rules = self.rules.of(kind).ok_or_else(|| unknown(&self.name))?;
        let (earliest_at, blocked) = self.ring.earliest(&self.rules, rules, self.now);
        let before = queue::count(self.step, &self.name, kind, waiter)?;
        let mut ahead = before;
        let mut comes_first = true;
        for other in self.ring.order(&self.rules) {
            if other.name == *kind {
                comes_first = false;
                continue;
            }
            let waiting = queue::count(self.step, &self.name, &other.name, None)?;
            ahead += waiting.min(before + u64::from(comes_first));
        }
        let reason = match blocked {
            _ if self.ring.turn.is_some() => Reason::Held,
            Reason::Order if self.waits_for_an_absent_type(kind)? => Reason::Absent,
            blocked => blocked,
        };
        Ok(Taken::Waiting { holder: self.ring.turn.clone(), earliest_at, ahead, reason })
    }

    /// Whether nobody waits for the type that comes first, and none is skipped.
    fn waits_for_an_absent_type(&self, kind: &TypeName) -> Outcome<bool> {
        let first = self.ring.order(&self.rules).next().filter(|first| first.name != *kind);
        Ok(match first {
            Some(first) if self.rules.skip == Skip::Never => {
                queue::first(self.step, &self.name, &first.name, self.now)?.is_none()
            }
            _ => false,
        })
    }

    /// A promise that was not taken up in time lapses with the place of its waiter, and its life is silent.
    fn lapse(&mut self) -> Outcome<()> {
        if let Some(promise) = self.promise.take_if(|promise| promise.until <= self.now) {
            queue::leave(self.step, &self.name, &promise.waiter)?;
            let until = self.now + SILENT_FOR;
            queue::silence(self.step, &self.name, promise.waiter.life(), until)?;
        }
        Ok(())
    }

    /// Promises the turn to whom it belongs, and writes down what is left.
    pub(super) fn close(mut self) -> Outcome<()> {
        self.lapse()?;
        let firsts = match (&self.ring.turn, &self.promise) {
            (None, None) => self.firsts()?,
            _ => Vec::new(),
        };
        let waits = |kind: &TypeName| firsts.iter().any(|(of, _)| of == kind);
        let due = match (self.ring.choose(&self.rules, waits, self.now), &self.promise) {
            (_, Some(promise)) => Some(promise.until),
            (Choice::Later { until, .. }, None) => until,
            (Choice::Now(kind), None) => {
                let until = self.now + PROMISE;
                let first = firsts.into_iter().find(|(of, _)| *of == kind);
                self.promise = first.map(|(kind, waiter)| Promise { waiter, kind, until });
                self.woken.extend(self.promise.as_ref().map(|promise| promise.waiter.clone()));
                Some(until)
            }
        };
        let promise = self.promise.as_ref();
        self.step
            .prepare_cached(
                "INSERT OR REPLACE INTO rotations \
                 (name, rules, ring, promised, promised_kind, promised_until, seen, due) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute((
                self.name.as_str(),
                text(&self.rules)?,
                text(&self.ring)?,
                promise.map(|promise| &promise.waiter.0),
                promise.map(|promise| promise.kind.as_str()),
                promise.map_or(0, |promise| promise.until.0),
                self.seen,
                due.map(|due| due.0),
            ))?;
        clock::keep(self.step, self.now)?;
        if self.woken.is_empty() { Ok(()) } else { self.step.publish_wake(&self.woken) }
    }
}

/// No such rotation.
pub(super) fn unknown(name: &RotationName) -> StoreError {
    StoreError::NotFound(format!("rotation {name}"))
}
