//! Rotations in Redis: one script per transition; the decisions of `domain::rotation` stand in `open_rotation.lua` again.
//!
//! # Keys
//!
//! All begin with `soloist:rotation:` (on a cluster `soloist:{~}:rotation:`); R is a rotation, T one of its types.
//!
//! | key | type | holds |
//! | --- | --- | --- |
//! | `rotation:names` | sorted set | every rotation |
//! | `rotation:rules` | hash | their rules as JSON, as they were given |
//! | `rotation:r:R` | hash | the rules again for the scripts (`types min_gap lease skip gap:T count:T span:T`); the ring (`token turn kind worker request since until ttl seen after last next not_before newest:T`); whether the store may have forgotten (`server doubted recovered`, seen with run id `server`); the promise (`promised promised_kind promised_until`); `done:T empty:T failed:T lost:T` |
//! | `rotation:s:R:T` | list | the starts that the quota of T counts, newest first |
//! | `rotation:lives:R` | set | node incarnations (`NODE/RANDOM`, LIFE below) that have waiters |
//! | `rotation:q:R:T:LIFE` | sorted set | who waits there for T, by place |
//! | `rotation:w:R:LIFE` | hash | waiter -> `UNTIL SINCE WORKER` |
//! | `rotation:places` | string | the newest place |
//! | `rotation:silent` | hash | `LIFE R` -> until when no waiter of that node incarnation counts |
//! | `rotation:k:DIGEST` | string, PX | the turn of a request |
//! | `rotation:past:R` | list | turns that ended, `TOKEN TYPE WORKER SINCE ENDED ENDING`, newest first; two hundred count, some more may be there |
//! | `rotation:lost` | list | rotation and turn of each that was lost, as on the line of an answer, until a pump has named it |
//! | `rotation:timers` | sorted set | when the clock alone changes something about R |
//!
//! Instants are microseconds since 1970. Who is woken is said on the channel of dispatch.

mod parse;

use std::time::Duration;

use async_trait::async_trait;

use super::RedisStore;
use super::dispatch::parse::Answer;
use super::lane::Call;
use super::link::Repeat;
use super::scripts::{self, Transition};
use soloist_domain::lease::Token;
use soloist_domain::name::{RotationName, TypeName, WorkerName};
use soloist_domain::rotation::{Rules, Skip, TurnOutcome};
use soloist_domain::time::Stamp;
use soloist_store::dispatch::Waiter;
use soloist_store::rotation::{
    Kept, Pass, PassedOn, PumpedTurns, RemovedRotation, RotationView, Rotations, TURNS_KEPT, Taken,
    TurnAsk, WAITERS_NAMED,
};
use soloist_store::{Result, StoreError};

#[async_trait]
impl Rotations for RedisStore {
    async fn put_rotation(&self, rotation: &RotationName, rules: &Rules) -> Result<RotationView> {
        let json = serde_json::to_string(rules)
            .map_err(|error| StoreError::Corrupt(format!("rules to be kept: {error}")))?;
        let mut call = self.rotation(&scripts::PUT_ROTATION, rotation.as_str());
        call.arg(json).arg(micros(rules.min_gap)).arg(micros(rules.lease)).arg(match rules.skip {
            Skip::Absent => "absent",
            Skip::Never => "never",
        });
        for kind in &rules.types {
            let quota = kind.quota.map_or((0, 0), |quota| (quota.count, micros(quota.span)));
            call.arg(kind.name.as_str()).arg(micros(kind.gap)).arg(quota.0).arg(quota.1);
        }
        let repeat = self.with_note(&mut call)?;
        self.step::<u8>(&call, repeat).await?;
        self.rotations(Some(rotation), 0).await?.pop().ok_or_else(|| unknown(rotation))
    }

    async fn remove_rotation(
        &self,
        rotation: &RotationName,
        force: bool,
    ) -> Result<RemovedRotation> {
        let mut call = self.rotation(&scripts::REMOVE_ROTATION, rotation.as_str());
        call.arg(u8::from(force));
        self.with_note(&mut call)?;
        // Done twice it would say that there is none.
        let mut answer = Answer::of("remove_rotation", self.step(&call, Repeat::Never).await?)?;
        let done = match answer.text()?.as_str() {
            "missing" => return Err(unknown(rotation)),
            word => word == "done",
        };
        let turn = parse::holder(&answer.text()?)?;
        Ok(RemovedRotation { done, turn, waiting: parse::unsigned(answer.number()?) })
    }

    async fn rotations(
        &self,
        only: Option<&RotationName>,
        past: usize,
    ) -> Result<Vec<RotationView>> {
        let mut call =
            self.rotation(&scripts::READ_ROTATIONS, only.map_or("", RotationName::as_str));
        call.arg(past.min(TURNS_KEPT)).arg(WAITERS_NAMED);
        let mut answer = Answer::of("read_rotations", self.step(&call, Repeat::Harmless).await?)?;
        let now = Stamp(answer.number()?);
        let views =
            answer.rest().map(|value| parse::view(value, now)).collect::<Result<Vec<_>>>()?;
        match only {
            Some(rotation) if views.is_empty() => Err(unknown(rotation)),
            _ => Ok(views),
        }
    }

    async fn take_turn(&self, ask: &TurnAsk) -> Result<Taken> {
        let mut call = self.rotation(&scripts::TAKE_TURN, ask.rotation.as_str());
        let (waiter, patience) =
            ask.wait.as_ref().map_or(("", 0), |(waiter, wait)| (&waiter.0, micros(*wait)));
        call.arg(ask.kind.as_str())
            .arg(ask.worker.as_str())
            .arg(ask.request.as_str())
            .arg(waiter)
            .arg(patience);
        let mut answer = Answer::of("take_turn", self.step(&call, Repeat::Harmless).await?)?;
        match answer.text()?.as_str() {
            "missing" => Err(missing(&answer.text()?, &ask.rotation, Some(&ask.kind))),
            "granted" => Ok(Taken::Granted(parse::turn(&answer.text()?)?)),
            "over" => Ok(Taken::Over(Token(parse::unsigned(answer.number()?)))),
            _ => Ok(Taken::Waiting {
                holder: parse::holder(&answer.text()?)?,
                earliest_at: Stamp(answer.number()?),
                ahead: parse::unsigned(answer.number()?),
                reason: parse::reason(&answer.text()?)?,
            }),
        }
    }

    async fn extend_turn(
        &self,
        rotation: &RotationName,
        turn: Token,
        only: Option<&WorkerName>,
    ) -> Result<Kept> {
        let mut call = self.rotation(&scripts::EXTEND_TURN, rotation.as_str());
        call.arg(turn.0).arg(only.map_or("", WorkerName::as_str));
        let mut answer = Answer::of("extend_turn", self.step(&call, Repeat::Harmless).await?)?;
        kept(&mut answer, rotation, None)
    }

    async fn pass_turn(&self, pass: &Pass) -> Result<Kept> {
        self.pass_on(pass).await.map(|passed| passed.kept)
    }

    async fn pass_on(&self, pass: &Pass) -> Result<PassedOn> {
        let mut call = self.rotation(&scripts::PASS_TURN, pass.rotation.as_str());
        call.arg(pass.turn.0)
            .arg(pass.only.as_ref().map_or("", WorkerName::as_str))
            .arg(match pass.outcome {
                TurnOutcome::Done => "done",
                TurnOutcome::Empty => "empty",
                TurnOutcome::Failed => "failed",
            })
            .arg(pass.next.as_ref().map_or("", TypeName::as_str))
            .arg(pass.not_before.map_or(0, |at| at.0.max(0)));
        // Done twice it would say that the turn had ended before.
        let mut answer = Answer::of("pass_turn", self.step(&call, Repeat::Never).await?)?;
        let kept = kept(&mut answer, &pass.rotation, pass.next.as_ref())?;
        let next_in = match kept {
            Kept::Yes(_) => Some(Duration::from_micros(parse::unsigned(answer.number()?))),
            Kept::Stale { .. } => None,
        };
        Ok(PassedOn { kept, next_in })
    }

    async fn give_back_unseen_turn(&self, rotation: &RotationName, turn: Token) -> Result<bool> {
        let mut call = self.rotation(&scripts::RETURN_TURN, rotation.as_str());
        call.arg(turn.0);
        let mut answer = Answer::of("return_turn", self.step(&call, Repeat::Harmless).await?)?;
        match answer.text()?.as_str() {
            "missing" => Err(unknown(rotation)),
            done => Ok(done == "1"),
        }
    }

    async fn leave_queue(&self, rotation: &RotationName, waiter: &Waiter) -> Result<()> {
        let mut call = self.rotation(&scripts::LEAVE_ROTATION, rotation.as_str());
        call.arg(&waiter.0);
        self.step::<u8>(&call, Repeat::Harmless).await.map(drop)
    }

    async fn pump_turns(&self, life: &str) -> Result<PumpedTurns> {
        let call = self.rotation(&scripts::PUMP_TURNS, life);
        let mut answer = Answer::of("pump_turns", self.step(&call, Repeat::Harmless).await?)?;
        let (now, next) = (Stamp(answer.number()?), answer.number()?);
        let more = answer.number()? == 1;
        let mut lost = Vec::new();
        while !answer.is_over() {
            let rotation = parse::word("rotation", &answer.text()?)?;
            lost.push((rotation, parse::turn(&answer.text()?)?));
        }
        Ok(PumpedTurns { now, next: (next > 0).then_some(Stamp(next)), lost, more })
    }
}

impl RedisStore {
    fn rotation(&self, transition: &'static Transition, first: &str) -> Call {
        let mut call = self.call(transition);
        let keys = self.keys();
        call.key(keys.rotation("")).key(keys.dispatch("wake")).key(keys.epoch(None));
        call.arg(first);
        call
    }

    async fn step<T: ::redis::FromRedisValue>(&self, call: &Call, repeat: Repeat) -> Result<T> {
        self.shared.dispatch.script(call, repeat).await
    }
}

fn kept(answer: &mut Answer, rotation: &RotationName, next: Option<&TypeName>) -> Result<Kept> {
    match answer.text()?.as_str() {
        "missing" if answer.is_over() => Err(unknown(rotation)),
        "missing" => Err(missing(&answer.text()?, rotation, next)),
        "yes" => Ok(Kept::Yes(parse::turn(&answer.text()?)?)),
        _ => {
            let past = answer.text()?;
            let past = (!past.is_empty()).then(|| parse::past(&past)).transpose()?;
            Ok(Kept::Stale { past, holder: parse::holder(&answer.text()?)? })
        }
    }
}

fn missing(what: &str, rotation: &RotationName, kind: Option<&TypeName>) -> StoreError {
    match kind {
        Some(kind) if what == "type" => {
            StoreError::NotFound(format!("a type {kind} of rotation {rotation}"))
        }
        _ => unknown(rotation),
    }
}

fn unknown(rotation: &RotationName) -> StoreError {
    StoreError::NotFound(format!("rotation {rotation}"))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
