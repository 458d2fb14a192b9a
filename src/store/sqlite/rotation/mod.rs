//! Rotations in SQLite: every transition is one transaction around the decisions of `domain::rotation`.
//!
//! `round` is one transition with the rotation it is about, `queue` who waits, `past` what ended, `view` how it is shown.

mod past;
mod queue;
mod round;
mod view;

use super::fault::Outcome;
use super::row::find;
use super::step::Step;
use super::{SqliteStore, clock};
use crate::domain::lease::Token;
use crate::domain::name::{RotationName, WorkerName};
use crate::domain::rotation::Rules;
use crate::domain::time::Stamp;
use crate::store::Result;
use crate::store::dispatch::Waiter;
use crate::store::rotation::{Kept, Pass, PumpedTurns, RotationView, Rotations, Taken, TurnAsk};
use round::Round;

/// Most rotations in one pump.
const MOST: u32 = 64;

impl Rotations for SqliteStore {
    async fn put_rotation(&self, rotation: &RotationName, rules: &Rules) -> Result<RotationView> {
        let (name, rules) = (rotation.clone(), rules.clone());
        self.write(move |step| {
            Round::define(step, &name, &rules)?.close()?;
            view::one(step, &name, clock::now(step, &step.at)?, 0)
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
        self.write(move |step| {
            let mut round = Round::open(step, &ask.rotation)?;
            round.expire()?;
            let taken = round.take(&ask)?;
            round.close()?;
            Ok(taken)
        })
        .await
    }

    async fn extend_turn(
        &self,
        rotation: &RotationName,
        turn: Token,
        only: Option<&WorkerName>,
    ) -> Result<Kept> {
        let (name, only) = (rotation.clone(), only.cloned());
        self.write(move |step| {
            let mut round = Round::open(step, &name)?;
            round.expire()?;
            let kept = match round.own(turn, only.as_ref())? {
                Kept::Yes(_) => Kept::Yes(round.extend()?),
                stale @ Kept::Stale { .. } => stale,
            };
            round.close()?;
            Ok(kept)
        })
        .await
    }

    async fn pass_turn(&self, pass: &Pass) -> Result<Kept> {
        let pass = pass.clone();
        self.write(move |step| {
            let mut round = Round::open(step, &pass.rotation)?;
            round.check(pass.next.as_ref())?;
            round.expire()?;
            let kept = round.own(pass.turn, pass.only.as_ref())?;
            if matches!(kept, Kept::Yes(_)) {
                round.pass(&pass)?;
            }
            round.close()?;
            Ok(kept)
        })
        .await
    }

    async fn give_turn_back(&self, rotation: &RotationName, turn: Token) -> Result<bool> {
        let name = rotation.clone();
        self.write(move |step| {
            let mut round = Round::open(step, &name)?;
            let done = round.give_back(turn)?;
            round.close()?;
            Ok(done)
        })
        .await
    }

    async fn leave_queue(&self, rotation: &RotationName, waiter: &Waiter) -> Result<()> {
        let (name, waiter) = (rotation.clone(), waiter.clone());
        self.write(move |step| {
            // Nobody waits for a rotation that is not there.
            let Some(mut round) = Round::load(step, &name)? else { return Ok(()) };
            round.leave(&waiter)?;
            round.close()
        })
        .await
    }

    async fn pump_turns(&self, life: &str) -> Result<PumpedTurns> {
        let life = life.to_owned();
        self.write(move |step| pump(step, &life)).await
    }
}

fn pump(step: &Step<'_>, life: &str) -> Outcome<PumpedTurns> {
    let now = clock::now(step, &step.at)?;
    let due: Vec<String> = step
        .prepare_cached(
            "SELECT name FROM rotations WHERE due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?",
        )?
        .query_map((now.0, MOST), |row| row.get(0))?
        .collect::<std::result::Result<_, _>>()?;
    let act = |name: &str| -> Outcome<()> {
        let mut round = Round::open(step, &view::name(name)?)?;
        round.expire()?;
        round.close()
    };
    due.iter().try_for_each(|name| act(name))?;
    // Only then: what its own waiters let lapse just now must not make a life silent that calls.
    queue::hear_everywhere(step, life)?.iter().try_for_each(|name| act(name))?;
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
