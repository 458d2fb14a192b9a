//! The calls of [`Rotations`] on any [`Records`].

use std::time::Duration;

use async_trait::async_trait;

use super::look::Counts;
use super::{Errand, decide, pump, remove, unknown, view};
use crate::records::Records;
use crate::rotation::{PassedOn, PumpedTurns, RemovedRotation, RotationView, Rotations};
use crate::{Result, StoreError};
use soloist_domain::lease::Token;
use soloist_domain::name::{RotationName, Waiter, WorkerName};
use soloist_domain::rotation::{Caller, Kept, Pass, Round, Rules, Taken, TurnAsk};

/// Of what is due later, a pass says no more: a pump comes by sooner.
const LATEST: Duration = Duration::from_secs(1);

#[async_trait]
impl Rotations for dyn Records + '_ {
    async fn put_rotation(&self, rotation: &RotationName, rules: &Rules) -> Result<RotationView> {
        let errand = Errand { rules: Some(rules), ..Errand::new(rotation, Caller::Rules) };
        let act = |round: Round, queues: &_, _: &_| Ok(Ok(round.define(rules, queues)));
        decide(self, &errand, |()| false, act).await?;
        view::read(self, Some(rotation), 0).await?.pop().ok_or_else(|| unknown(rotation))
    }

    async fn remove_rotation(
        &self,
        rotation: &RotationName,
        force: bool,
    ) -> Result<RemovedRotation> {
        remove::remove(self, rotation, force).await
    }

    async fn rotations(
        &self,
        only: Option<&RotationName>,
        past: usize,
    ) -> Result<Vec<RotationView>> {
        let views = view::read(self, only, past).await?;
        match only {
            Some(rotation) if views.is_empty() => Err(unknown(rotation)),
            _ => Ok(views),
        }
    }

    async fn take_turn(&self, ask: &TurnAsk) -> Result<Taken> {
        let errand = Errand::new(&ask.rotation, Caller::Asker(ask));
        let waits = |taken: &Taken| matches!(taken, Taken::Waiting { .. });
        let outcome = decide(self, &errand, waits, |round, queues, seen| {
            let had = seen.had(&errand)?.filter(|(_, until)| *until > round.now());
            Ok(round.take(ask, had.map(|(token, _)| token), queues))
        })
        .await?;
        let (mut taken, rotation) = (outcome.answer, outcome.rotation);
        if let (Taken::Waiting { ahead, .. }, Some(Counts { waiting, before })) =
            (&mut taken, outcome.counts)
        {
            *ahead = rotation.ahead(&ask.kind, before, &waiting);
        }
        Ok(taken)
    }

    async fn extend_turn(
        &self,
        rotation: &RotationName,
        turn: Token,
        only: Option<&WorkerName>,
    ) -> Result<Kept> {
        let errand = Errand { about: Some(turn), ..Errand::new(rotation, Caller::Clock) };
        let outcome = decide(
            self,
            &errand,
            |_| false,
            |round, queues, seen| Ok(Ok(round.extend(turn, only, seen.past.clone(), queues))),
        );
        Ok(outcome.await?.answer)
    }

    async fn pass_on(&self, pass: &Pass) -> Result<PassedOn> {
        let errand = Errand {
            ends: Some(pass.turn),
            about: Some(pass.turn),
            // Done twice it would say that the turn had ended before.
            once: true,
            ..Errand::new(&pass.rotation, Caller::Clock)
        };
        let outcome = decide(
            self,
            &errand,
            |_| false,
            |round, queues, seen| Ok(round.pass(pass, seen.past.clone(), queues)),
        )
        .await?;
        let due = outcome.rotation.due.map_or(LATEST, |due| due.since(outcome.now).min(LATEST));
        let next_in = matches!(outcome.answer, Kept::Yes(_)).then_some(due);
        Ok(PassedOn { kept: outcome.answer, next_in })
    }

    async fn give_back_unseen_turn(&self, rotation: &RotationName, turn: Token) -> Result<bool> {
        let errand = Errand { ends: Some(turn), ..Errand::new(rotation, Caller::Clock) };
        let outcome = decide(
            self,
            &errand,
            |_| false,
            |round, queues, _| Ok(Ok(round.give_back(turn, queues))),
        );
        Ok(outcome.await?.answer)
    }

    async fn leave_queue(&self, rotation: &RotationName, waiter: &Waiter) -> Result<()> {
        let errand = Errand::new(rotation, Caller::Leaver(waiter));
        let left = decide(
            self,
            &errand,
            |()| false,
            |round, queues, _| Ok(Ok(round.leave(waiter, queues))),
        );
        match left.await {
            Ok(_) => {}
            // A rotation that is not there has no waiters.
            Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        self.turns().put_row(rotation, waiter, None);
        Ok(())
    }

    async fn pump_turns(&self, incarnation: &str) -> Result<PumpedTurns> {
        pump::pump(self, incarnation).await
    }
}
