//! How `soloist turn` gets its turn from a node (`--server`): by a request that waits there.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::command::{ASK_AGAIN, LAST_WORDS, Patience};
use super::trouble::Trouble;
use super::turn_ask::{TurnCommand, too_short};
use super::turn_place::{Place, at};
use super::turn_run::Extending;
use soloist_domain::lease::{Timing, Token};
use soloist_domain::rotation::TurnOutcome;
use soloist_domain::time::{Boot, millis};
use soloist_process::clock;
use soloist_remote::{Call, Client, RemoteError};
use soloist_store::StoreError;
use soloist_store::rotation::Pass;

/// How long a request for a turn waits at a node, which allows 30 s.
const LONGEST_POLL: Duration = Duration::from_secs(20);
/// Beyond the wait that was asked for, an answer may take this long.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What a node answers to a request for a turn.
#[derive(Deserialize)]
struct Answer {
    turn: Option<String>,
    token: Option<Token>,
    lease_ms: Option<u64>,
    reason: Option<String>,
    holder: Option<Holder>,
    #[serde(default)]
    ahead: u64,
}

#[derive(Deserialize)]
struct Holder {
    worker: String,
    r#type: String,
}

/// Waits at a node for a turn, and extends it once: the request that got it may have waited for long, so it is no measure for
/// trust. Returns the turn and when the extension was sent; `None` when the patience is over.
///
/// # Errors
/// As [`super::turn_command::run`].
pub(super) async fn turn_of_node(
    client: &Client,
    with: &TurnCommand,
    patience: &mut Patience,
) -> anyhow::Result<Option<(Extending, Boot)>> {
    let (mut request, mut wait) = (with.ask().request, Duration::ZERO);
    loop {
        let ms = millis(wait.min(LONGEST_POLL));
        let body = json!({
            "type": with.kind, "worker": with.worker, "request_id": request, "wait_ms": ms,
        });
        let call = Call::post(at(&with.rotation, "?expires=true")).with(&body).repeatable();
        let asked = clock::boot();
        let answer = client.ask::<Answer>(call.within(LONGEST_POLL + ANSWER_MAX)).await;
        let (pause, why) = match answer {
            Ok(Answer { turn: Some(name), token: Some(token), lease_ms, .. }) => {
                let lease = lease_ms.map(Duration::from_millis).ok_or_else(|| {
                    anyhow::anyhow!("the node does not say how long a turn lasts: upgrade it")
                })?;
                let timing = Timing::from_ttl(lease)
                    .map_err(|error| StoreError::Unsupported(too_short(&with.rotation, &error)));
                let place = Place::Server(client.clone(), name);
                let timing = match timing {
                    Ok(timing) => timing,
                    Err(error) => {
                        leave(&place, with, token).await;
                        return Err(error.into());
                    }
                };
                let turn = Extending::new(place.clone(), with, token, timing);
                match turn.begin(patience).await? {
                    Some(Some(sent)) => return Ok(Some((turn, sent))),
                    Some(None) => {}
                    None => {
                        leave(&place, with, token).await;
                        return Ok(None);
                    }
                }
                request = with.ask().request;
                (Duration::ZERO, "it came too late to be trusted".to_owned())
            }
            Ok(waiting) => {
                // A node that is shutting down answers at once.
                let soon = !wait.is_zero() && clock::boot().since(asked) < ASK_AGAIN;
                (if soon { ASK_AGAIN } else { Duration::ZERO }, in_the_way(&waiting))
            }
            // Granted by an answer that never came, and over.
            Err(RemoteError::Refused { status: 409, .. }) => {
                request = with.ask().request;
                (Duration::ZERO, "it ended before its grant arrived".to_owned())
            }
            // What came of it is unknown: the same is asked again, which is the same request.
            Err(error) => (ASK_AGAIN, Trouble::from(error).passing()?),
        };
        let Some(left) = patience.left(&why) else { return Ok(None) };
        wait = left;
        sleep(pause.min(left)).await;
    }
}

/// No worker shall wait for a turn under which nothing is done.
async fn leave(place: &Place, with: &TurnCommand, token: Token) {
    let pass = Pass {
        rotation: with.rotation.clone(),
        turn: token,
        only: None,
        outcome: TurnOutcome::Failed,
        next: None,
        not_before: None,
    };
    drop(timeout(LAST_WORDS, place.pass(&pass)).await);
}

/// Who or what is in the way, as it was just said.
fn in_the_way(answer: &Answer) -> String {
    let why = match (&answer.holder, answer.reason.as_deref()) {
        (Some(turn), _) => format!("{} has it as {}", turn.worker, turn.r#type),
        (None, Some("gap")) => "the gap is not over".to_owned(),
        (None, Some("quota")) => "the quota is used up".to_owned(),
        (None, Some("not_before")) => {
            "whoever had the last turn wants none to start yet".to_owned()
        }
        (None, Some("recovery")) => "the store may have forgotten a turn that lasts".to_owned(),
        (None, Some("absent")) => {
            "a type comes first that nobody waits for, and none is skipped".to_owned()
        }
        (None, _) => "another comes first".to_owned(),
    };
    match answer.ahead {
        0 => why,
        1 => format!("{why}; one waits before this one"),
        n => format!("{why}; {n} wait before this one"),
    }
}
