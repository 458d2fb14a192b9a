//! Calls between a node and the store: carried out, answered, or never answered.

use soloist::domain::lease::Token;
use soloist::domain::supervise::Input;

use super::{Ask, Flight, GRANTS, Life, NOW, TIMING, Tree, UNIT, World};
use crate::rules::{self, Rules};
use crate::store::Answer;

impl World {
    pub(super) fn execute(&mut self, i: usize, rules: Rules) -> Result<bool, &'static str> {
        let Flight { ask, owner, .. } = self.flights[i];
        let clock = self.highest + 1;
        let before = self.store.lease;
        let answer = match ask {
            Ask::Acquire => self.store.acquire(owner, clock, rules),
            Ask::Renew { token } => self.store.renew(owner, token, rules),
            Ask::End { token, crashed } => self.store.end(owner, token, crashed, rules),
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

    pub(super) fn answered(&mut self, flight: Flight, rules: Rules) -> Result<(), &'static str> {
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
    pub(super) fn unanswered(&mut self, flight: Flight, rules: Rules) -> Result<(), &'static str> {
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
}
