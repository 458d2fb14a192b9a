//! Rotations in SQLite: what `domain::rotation` decides, carried out in one transaction each.
//!
//! `record` is the rotation itself and what is decided about it, `queue` who waits, `past` what ended, `view` how it is shown.

mod past;
mod queue;
mod record;
mod view;

use super::fault::Outcome;
use super::row::find;
use super::step::Step;
use super::{SqliteStore, clock};
use crate::domain::lease::Token;
use crate::domain::name::{RotationName, WorkerName};
use crate::domain::rotation::{Caller, Rotation, Rules, UnknownType};
use crate::domain::time::Stamp;
use crate::store::dispatch::Waiter;
use crate::store::rotation::{Kept, Pass, PumpedTurns, RotationView, Rotations, Taken, TurnAsk};
use crate::store::{Result, StoreError};
use record::{carry_out, decide, memory};

/// Most rotations in one pump.
const MOST: u32 = 64;

impl Rotations for SqliteStore {
    async fn put_rotation(&self, rotation: &RotationName, rules: &Rules) -> Result<RotationView> {
        let (name, rules) = (rotation.clone(), rules.clone());
        self.write(move |step| {
            let loaded = match record::load(step, &name)? {
                Some(found) => found,
                None => {
                    let newest = step.query_row("SELECT newest FROM dispatch", [], |r| r.get(0))?;
                    (Rotation::new(rules.clone(), &memory()), clock::take(step, newest)?)
                }
            };
            let now = loaded.1;
            carry_out(step, &name, loaded, Caller::Rules, None, |round, queues| {
                Ok(round.define(&rules, queues))
            })?;
            view::one(step, &name, now, 0)
        })
        .await
    }

    async fn rotations(
        &self,
        only: Option<&RotationName>,
        past: usize,
    ) -> Result<Vec<RotationView>> {
        let only = only.cloned();
        self.read(move |db, at| {
            let now = clock::now(db, at)?;
            match &only {
                Some(name) => Ok(vec![view::one(db, name, now, past)?]),
                None => view::all(db, now, past),
            }
        })
        .await
    }

    async fn take_turn(&self, ask: &TurnAsk) -> Result<Taken> {
        let ask = ask.clone();
        self.write(move |step| take(step, &ask)).await
    }

    async fn extend_turn(
        &self,
        rotation: &RotationName,
        turn: Token,
        only: Option<&WorkerName>,
    ) -> Result<Kept> {
        let (name, only) = (rotation.clone(), only.cloned());
        self.write(move |step| {
            decide(step, &name, Caller::Clock, None, |round, queues| {
                let past = past::of(step, &name, turn)?;
                Ok(round.extend(turn, only.as_ref(), past, queues))
            })
        })
        .await
    }

    async fn pass_turn(&self, pass: &Pass) -> Result<Kept> {
        let pass = pass.clone();
        self.write(move |step| {
            let name = &pass.rotation;
            decide(step, name, Caller::Clock, Some(pass.turn), |round, queues| {
                let past = past::of(step, name, pass.turn)?;
                Ok(round.pass(&pass, past, queues).map_err(|error| no_type(name, &error))?)
            })
        })
        .await
    }

    async fn give_turn_back(&self, rotation: &RotationName, turn: Token) -> Result<bool> {
        let name = rotation.clone();
        self.write(move |step| {
            decide(step, &name, Caller::Clock, Some(turn), |round, queues| {
                Ok(round.give_back(turn, queues))
            })
        })
        .await
    }

    async fn leave_queue(&self, rotation: &RotationName, waiter: &Waiter) -> Result<()> {
        let (name, waiter) = (rotation.clone(), waiter.clone());
        self.write(move |step| {
            // Nobody waits for a rotation that is not there.
            let Some(loaded) = record::load(step, &name)? else { return Ok(()) };
            carry_out(step, &name, loaded, Caller::Leaver(&waiter), None, |round, queues| {
                Ok(round.leave(&waiter, queues))
            })
        })
        .await
    }

    async fn pump_turns(&self, life: &str) -> Result<PumpedTurns> {
        let life = life.to_owned();
        self.write(move |step| pump(step, &life)).await
    }
}

fn take(step: &Step<'_>, ask: &TurnAsk) -> Outcome<Taken> {
    let name = &ask.rotation;
    let mut order = None;
    let mut taken = decide(step, name, Caller::Asker(ask), None, |round, queues| {
        let had = past::had(step, ask, round.now())?;
        let change = round.take(ask, had, queues).map_err(|error| no_type(name, &error))?;
        if matches!(change.answer, Taken::Waiting { .. }) {
            order = Some(change.rotation.clone());
        }
        Ok(change)
    })?;
    if let (Taken::Waiting { ahead, .. }, Some(rotation)) = (&mut taken, order) {
        let before = queue::before(step, name, &ask.kind, ask.waiter())?;
        *ahead = rotation.ahead(&ask.kind, before, &queue::counts(step, name)?);
    }
    Ok(taken)
}

fn pump(step: &Step<'_>, life: &str) -> Outcome<PumpedTurns> {
    let now = clock::now(step, &step.at)?;
    let due: Vec<String> = step
        .prepare_cached(
            "SELECT name FROM rotations WHERE due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?",
        )?
        .query_map((now.0, MOST), |row| row.get(0))?
        .collect::<std::result::Result<_, _>>()?;
    let act = |name: &str, caller: Caller<'_>| -> Outcome<()> {
        let name = view::name(name)?;
        decide(step, &name, caller, None, |round, queues| Ok(round.pump(queues)))
    };
    due.iter().try_for_each(|name| act(name, Caller::Clock))?;
    // Only then: what its own waiters let lapse just now must not make a node incarnation silent that calls.
    let heard = queue::silent_in(step, life)?;
    heard.iter().try_for_each(|name| act(name, Caller::Node(life)))?;
    queue::forget(step, now)?;
    past::forget_requests(step, now)?;
    let lost = past::reported(step, MOST)?;
    let next = find::<i64>(
        step,
        "SELECT due FROM rotations WHERE due IS NOT NULL ORDER BY due LIMIT 1",
        [],
    )?
    .map(Stamp);
    let more = next.is_some_and(|next| next <= now) || lost.len() == MOST as usize;
    Ok(PumpedTurns { now, next, lost, more })
}

/// No such type.
fn no_type(name: &RotationName, UnknownType(kind): &UnknownType) -> StoreError {
    StoreError::NotFound(format!("a type {kind} of rotation {name}"))
}
