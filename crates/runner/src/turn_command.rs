//! `soloist turn`: one turn of a rotation around a command, guarded as a job's run is.
//!
//! It waits at a desk of its own until it is its turn, runs the command, and passes the turn once the whole tree is proved
//! gone. While it waits and while the command runs this process does what the store's clock makes due, as nodes do, so
//! turns need no node. The command's output, input and signals are as of `soloist run`.
//!
//! What becomes of a turn that is held is in `turn_run`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::child::become_subreaper;
use super::command::{ASK_AGAIN, LAST_WORDS, NOT_HAD, Patience, SIGNALLED, connect, rounded};
use super::signals::Signals;
use super::trouble::Trouble;
pub use super::turn_ask::TurnCommand;
use super::turn_at_node::turn_of_node;
use super::turn_run::{Extending, Held};
use soloist_desk::rotation::{Answer, TurnDesk};
use soloist_desk::waiting::{DeskError, WaitingRoom};
use soloist_domain::rotation::Reason;
use soloist_domain::time::{Boot, Stamp};
use soloist_process::telemetry::Metrics;
use soloist_remote::Client;
use soloist_store::feed::Feed;
use soloist_store::rotation::Taken;
use soloist_store::{Options, StoreError};

/// Runs the command for one turn; returns its exit code, 128 + signal, 75 when the turn was not granted in time, 76 when
/// it was lost and the command was killed.
///
/// # Errors
/// A rotation or a type that is not defined, a lease too short for a guard, a store that cannot be used, a guard that
/// cannot be started.
pub async fn run(with: TurnCommand) -> anyhow::Result<i32> {
    let mut signals = Signals::listen()?;
    // This process starts one guard and nothing else.
    become_subreaper();
    with.program.sweep()?;
    let what = format!("a turn of {} in rotation {}", with.kind, with.rotation);
    let mut patience = Patience::new(what, with.wait);
    if let Some(access) = &with.program.server {
        let client = Client::new(access.clone())?;
        // A request that is dropped gives its turn back: the node sees that the connection is closed.
        let had = tokio::select! {
            had = turn_of_node(&client, &with, &mut patience) => had?,
            signal = signals.next() => return Ok(SIGNALLED + signal),
        };
        let Some((turn, sent)) = had else { return Ok(NOT_HAD) };
        return Held::keep(with, turn, sent).run(&mut signals).await;
    }
    let seat = tokio::select! {
        seat = Seat::take(with, &mut patience) => seat?,
        signal = signals.next() => return Ok(SIGNALLED + signal),
    };
    let Some(seat) = seat else { return Ok(NOT_HAD) };
    let had = tokio::select! {
        had = seat.turn(&mut patience) => had,
        signal = signals.next() => {
            seat.leave().await;
            return Ok(SIGNALLED + signal);
        }
    };
    match had {
        Ok(Some((turn, sent))) => Held::keep(seat.with, turn, sent).run(&mut signals).await,
        other => {
            seat.leave().await;
            other.map(|_| NOT_HAD)
        }
    }
}

/// Where this process waits.
struct Seat {
    with: TurnCommand,
    room: WaitingRoom,
    desk: TurnDesk,
}

impl Seat {
    /// Opens the store and reads the rotation; retried while the patience lasts.
    async fn take(with: TurnCommand, patience: &mut Patience) -> anyhow::Result<Option<Self>> {
        let options = Options { make: false, ..with.program.options(with.longest_lease) };
        let Some(store) = connect(with.open, &with.program.store_url, &options, patience).await?
        else {
            return Ok(None);
        };
        let feed = Feed::start(store.clone(), Vec::new()).await;
        let room = WaitingRoom::open(store, &feed, &with.program.node);
        let desk = TurnDesk::start(room.clone(), Arc::new(Metrics::default()));
        loop {
            match with.look(&desk).await {
                Ok(()) => return Ok(Some(Self { with, room, desk })),
                Err(error) => {
                    let Some(left) = patience.left(&Trouble::from(error).passing()?) else {
                        return Ok(None);
                    };
                    sleep(left.min(ASK_AGAIN)).await;
                }
            }
        }
    }

    /// Waits for the turn; `None` when the patience is over.
    async fn turn(&self, patience: &mut Patience) -> anyhow::Result<Option<(Extending, Boot)>> {
        let mut ask = self.with.ask();
        // First without a place in the queue, to say who is in the way.
        let mut wait = Duration::ZERO;
        loop {
            let (pause, why) = match self.desk.take(ask.clone(), wait).await {
                Ok(Answer { taken: Taken::Granted(turn), hand, .. }) => {
                    let turn = Extending::of(&self.desk, &self.with, &turn)?;
                    match turn.begin(patience).await? {
                        Some(Some(sent)) => {
                            hand.into_iter().for_each(|hand| hand.delivered());
                            return Ok(Some((turn, sent)));
                        }
                        Some(None) => {}
                        None => return Ok(None),
                    }
                    ask = self.with.ask();
                    (Duration::ZERO, "it came too late to be trusted".to_owned())
                }
                // Granted by an answer that never came.
                Ok(Answer { taken: Taken::Over(_), .. }) => {
                    ask = self.with.ask();
                    (Duration::ZERO, "it ended before its grant arrived".to_owned())
                }
                Ok(Answer { taken: waiting @ Taken::Waiting { .. }, .. }) => {
                    (Duration::ZERO, self.why(&waiting))
                }
                // The rotation or the type is gone.
                Err(DeskError::Store(StoreError::NotFound(_))) => {
                    match self.with.look(&self.desk).await {
                        Ok(()) => (ASK_AGAIN, "its rules are being changed".to_owned()),
                        Err(error) => (ASK_AGAIN, Trouble::from(error).passing()?),
                    }
                }
                // What came of it is unknown: the same is asked again, which is the same request.
                Err(error) => (ASK_AGAIN, Trouble::from(error).passing()?),
            };
            let Some(left) = patience.left(&why) else { return Ok(None) };
            wait = left;
            sleep(pause.min(left)).await;
        }
    }

    /// Who or what is in the way, as it was just said.
    fn why(&self, waiting: &Taken) -> String {
        let Taken::Waiting { holder, earliest_at, ahead, reason } = waiting else {
            return String::new();
        };
        let kind = &self.with.kind;
        let more = |at: Stamp| match self.room.until(at) {
            Some(left) => format!("for another {}", rounded(left)),
            None => "for now".to_owned(),
        };
        let why = match (reason, holder) {
            (_, Some(turn)) => format!(
                "{} has it as {}, {} until its lease ends",
                turn.worker,
                turn.kind,
                more(turn.until)
            ),
            (Reason::Gap, None) => format!("the gap lasts {}", more(*earliest_at)),
            (Reason::Quota, None) => {
                format!("the quota of {kind} is used up {}", more(*earliest_at))
            }
            (Reason::NotBefore, None) => {
                format!("whoever had the last turn wants none to start {}", more(*earliest_at))
            }
            (Reason::Recovery, None) => {
                format!("the store may have forgotten a turn that lasts {}", more(*earliest_at))
            }
            (Reason::Absent, None) => {
                "a type comes first that nobody waits for, and none is skipped".to_owned()
            }
            (Reason::Order | Reason::Held | Reason::Idle, None) => "another comes first".to_owned(),
        };
        match ahead {
            0 => why,
            1 => format!("{why}; one waits before this one"),
            n => format!("{why}; {n} wait before this one"),
        }
    }

    /// No worker shall wait for this process: neither for its place in the queue nor for a turn that came too late.
    async fn leave(&self) {
        drop(timeout(LAST_WORDS, self.room.cleared()).await);
    }
}
