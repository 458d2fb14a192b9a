//! A turn of `soloist turn`: extended, its command guarded, its end turned into a pass.
//!
//! A turn is trusted as a lease is, from before a request and for less than it lasts. The request that got the turn does not count: it may
//! have waited long or have been answered before; so the turn is extended once before anything starts. The length of an extension was
//! fixed with the turn.

use tokio::time::sleep;

use super::child::{Child, Spec, Streams, Turn, Work};
use super::command::{ASK_AGAIN, Interrupts, LAST_WORDS, Patience, exit_code, say, to_its_end};
use super::hold::{Hold, Renew, Renewed};
use super::signals::Signals;
use super::trouble::Trouble;
use super::turn_ask::{TurnCommand, too_short};
use super::turn_place::{Place, Still};
use soloist_desk::rotation::TurnDesk;
use soloist_domain::job::Exit;
use soloist_domain::lease::{Timing, Token};
use soloist_domain::name::{JobName, Owner, RotationName, RunId, TypeName, WorkerName};
use soloist_domain::rotation::TurnOutcome;
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::StoreError;

/// A turn that is extended.
#[derive(Clone)]
pub(super) struct Extending {
    place: Place,
    rotation: RotationName,
    worker: WorkerName,
    token: Token,
    timing: Timing,
}

impl Extending {
    /// Of a turn that was granted and is not trusted yet.
    ///
    /// # Errors
    /// When nothing could be killed within its lease: the rules were changed since they were read.
    pub(super) fn of(
        desk: &TurnDesk,
        with: &TurnCommand,
        turn: &soloist_domain::rotation::Turn,
    ) -> Result<Self, StoreError> {
        let rotation = &with.rotation;
        let timing = Timing::from_ttl(turn.lease)
            .map_err(|error| StoreError::Unsupported(too_short(rotation, &error)))?;
        Ok(Self::new(Place::Desk(desk.clone()), with, turn.token, timing))
    }

    /// Of the turn `token` at `place`, which follows these times.
    pub(super) fn new(place: Place, with: &TurnCommand, token: Token, timing: Timing) -> Self {
        let (rotation, worker) = (with.rotation.clone(), with.worker.clone());
        Self { place, rotation, worker, token, timing }
    }

    /// Extends the turn by a whole lease; `false` when it has ended.
    async fn extend(&self) -> Result<bool, Trouble> {
        let patience = self.timing.store_timeout;
        let still = self.place.extend(&self.rotation, self.token, &self.worker, patience).await?;
        Ok(still == Still::Had)
    }

    /// The first extension, tried for as long as the patience lasts. When it was sent, if the turn can be trusted from then
    /// on; the outer `None` when the patience is over.
    pub(super) async fn begin(
        &self,
        patience: &mut Patience,
    ) -> anyhow::Result<Option<Option<Boot>>> {
        loop {
            let sent = clock::boot();
            match self.extend().await {
                Ok(kept) => {
                    let in_time = kept && self.timing.trusted_until(sent) > clock::boot();
                    return Ok(Some(in_time.then_some(sent)));
                }
                Err(error) => {
                    let Some(left) = patience.left(&error.passing()?) else { return Ok(None) };
                    sleep(left.min(ASK_AGAIN)).await;
                }
            }
        }
    }
}

impl Renew for Extending {
    async fn renew(&mut self) -> Renewed {
        match self.extend().await {
            Ok(true) => Renewed::Kept(self.timing),
            Ok(false) | Err(Trouble::NotFound(_)) => Renewed::Lost,
            Err(error) => Renewed::Unknown(error.to_string()),
        }
    }

    fn complain(&self, why: &str) {
        say(&format!("cannot extend the turn in rotation {}: {why}", self.rotation));
    }
}

/// A turn under which the command runs.
pub(super) struct Held {
    with: TurnCommand,
    place: Place,
    token: Token,
    timing: Timing,
    hold: Hold,
}

impl Held {
    /// Keeps a turn whose extension was sent at `sent`.
    pub(super) fn keep(with: TurnCommand, turn: Extending, sent: Boot) -> Self {
        let (place, token, timing) = (turn.place.clone(), turn.token, turn.timing);
        Self { with, place, token, timing, hold: Hold::renewed_by(turn, timing, sent) }
    }

    fn turn(&self) -> Turn {
        let TurnCommand { rotation, next, empty_code, .. } = &self.with;
        Turn {
            rotation: rotation.clone(),
            name: self.place.name(),
            next: next.clone(),
            empty_code: *empty_code,
        }
    }

    fn spec(&self) -> Spec {
        let with = &self.with;
        let token = self.token;
        let own = [
            ("SOLOIST_ROTATION", with.rotation.to_string()),
            ("SOLOIST_TYPE", with.kind.to_string()),
            ("SOLOIST_WORKER", with.worker.to_string()),
            ("SOLOIST_TURN", token.to_string()),
        ];
        #[expect(clippy::expect_used, reason = "both follow the same pattern")]
        let job = JobName::new(with.rotation.as_str()).expect("a rotation's name is a name");
        Spec {
            program: with.program.clone().with(own),
            job,
            run: RunId(ulid::Ulid::generate().to_string()),
            token,
            owner: Owner(String::new()),
            timing: self.timing,
            streams: Streams::Inherited,
            work: Work::Turn(self.turn()),
        }
    }

    /// Runs the command to the end of its whole tree, and passes the turn.
    pub(super) async fn run(mut self, signals: &mut Signals) -> anyhow::Result<i32> {
        let spawned = Child::spawn(self.spec(), self.hold.trusted_until());
        let (child, events) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                self.hold.end();
                self.pass(TurnOutcome::Failed, None).await;
                return Err(error.into());
            }
        };
        let turn = format!("the turn in rotation {}", self.with.rotation);
        let mut interrupts = Interrupts::new(signals, self.with.program.stop_grace);
        let ended = to_its_end(&child, events, &mut self.hold, &mut interrupts, &turn).await?;
        self.hold.end();
        let pass = self.turn().pass(self.token, &ended.exit);
        let failed = interrupts.came || ended.is_fenced();
        let outcome = if failed { TurnOutcome::Failed } else { pass.outcome };
        if ended.lost || self.pass(outcome, pass.next).await {
            child.dismiss();
        }
        Ok(exit_code(&ended, &turn, &turn, "not extended in time"))
    }

    /// Whether the turn is passed, or not held any more; otherwise that is left to the guard.
    async fn pass(&self, outcome: TurnOutcome, next: Option<TypeName>) -> bool {
        let rotation = &self.with.rotation;
        let mut pass = self.turn().pass(self.token, &Exit::default());
        pass.only = Some(self.with.worker.clone());
        (pass.outcome, pass.next) = (outcome, next);
        let begun = clock::boot();
        let mut asked_before = false;
        loop {
            match self.place.pass(&pass).await {
                Ok(Still::Had) => return true,
                Ok(Still::Over) => {
                    // Passed by what was asked before and never answered, or by time.
                    if !asked_before {
                        say(&format!(
                            "the turn in rotation {rotation} had ended before it was passed"
                        ));
                    }
                    return true;
                }
                Err(Trouble::NotFound(_)) if pass.next.is_some() => {
                    say(&format!(
                        "rotation {rotation} has no type {} any more: the order goes on as it is",
                        pass.next.take().as_ref().map_or("", TypeName::as_str)
                    ));
                }
                Err(Trouble::Away(_)) if clock::boot().since(begun) < LAST_WORDS => {
                    asked_before = true;
                    sleep(ASK_AGAIN).await;
                }
                Err(error @ Trouble::Away(_)) => {
                    say(&format!(
                        "the turn in rotation {rotation} is not passed yet ({error}): its guard goes on trying, and at the latest its lease runs out"
                    ));
                    return false;
                }
                Err(error) => {
                    say(&format!(
                        "the turn in rotation {rotation} is left to run out by itself: {error}"
                    ));
                    return true;
                }
            }
        }
    }
}
