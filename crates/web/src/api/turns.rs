//! `/api/v1/rotations/{rotation}/turns`: take a turn, keep it, pass it on.

use std::time::Duration;

use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};

use super::handing::handed;
use super::rotations::named;
use super::tasks::instant;
use super::{Answer, LARGEST_TOKEN, Telling, answer, patience, query, read, read_if_any};
use crate::Web;
use crate::acts::rotation::{one, over, stale, trouble, trouble_with_type};
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::lease::Token;
use soloist_domain::name::{RequestId, RotationName, TypeName, WorkerName};
use soloist_domain::rotation::{self as turns, Turn};
use soloist_domain::time::Stamp;
use soloist_secrets as secrets;
use soloist_store::rotation::{Kept, Pass, TURNS_KEPT, Taken, TurnAsk};
use soloist_view::json::{Holder, not_after, not_before, word};
use soloist_view::words::At;
use soloist_view::{millis, whole};

/// No rotation is kept waiting for longer by one that passes.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// A request for a turn.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnBody {
    /// For which type of the rotation.
    #[schema(example = "orders", format = "name")]
    pub r#type: String,
    /// For whom: 1 to 128 printable ASCII characters without spaces.
    #[schema(example = "host-1/3", format = "label")]
    pub worker: String,
    /// Chosen anew for each turn, and repeated when the answer did not arrive: the same one, of the same type and worker,
    /// has the same turn.
    #[schema(example = "01J8Z", format = "label")]
    pub request_id: String,
    /// How long to wait for the turn.
    #[schema(default = 0, minimum = 0, maximum = 30_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub wait_ms: Option<u64>,
}

/// A turn.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct GrantedTurn {
    /// To extend and to pass it: text that only the token or session that took it can use.
    #[schema(example = "1835019492704256.5f2a90c3d1e84b7796d03ac8e1f7b264")]
    pub turn: String,
    /// Grows with every turn; any sink can refuse an older one.
    pub token: u64,
    /// Until then no other worker has a turn, by the store's clock.
    pub lease_until: At,
    /// Asked with `expires=true`: how long each extension lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

impl GrantedTurn {
    fn of(rotation: &RotationName, turn: &Turn, caller: &Caller) -> Self {
        Self {
            turn: turn_text(rotation, turn.token, &turn.request, caller),
            token: turn.token.0,
            lease_until: not_after(turn.until),
            lease_ms: None,
        }
    }
}

/// A turn as its caller names it: its number, which is no secret, and what only that caller can repeat. It is made of the request, too,
/// to which the store gave the turn: another caller knows how to make all else for its own token, and does not own the request.
fn turn_text(rotation: &RotationName, turn: Token, request: &RequestId, caller: &Caller) -> String {
    let number = turn.to_string();
    format!("{turn}.{}", caller.seal(&["turn", rotation.as_str(), &number, request.as_str()]))
}

/// No turn now.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct NoTurn {
    /// Who has the turn; null when it has no holder.
    pub holder: Option<Holder>,
    /// The first instant at which this type could start, as far as is known: gaps, quota and `not_before` are over then.
    /// The holder may keep its turn for longer.
    pub earliest_at: At,
    /// How many of those who wait have a turn before this one, if all take theirs.
    pub ahead: u64,
    /// What is waited for: `held`, `gap`, `quota`, `not_before`, `recovery` (the store may have forgotten a turn that
    /// is still held), `order` (another comes first) or `absent` (a type comes first that nobody waits for, and none
    /// is skipped).
    #[schema(example = "held")]
    pub reason: &'static str,
}

/// The answer to a request for a turn.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "what is inside says it")]
pub enum TurnAnswer {
    Granted(GrantedTurn),
    Waiting(NoTurn),
}

fn asked(
    rotation: &RotationName,
    body: TurnBody,
    caller: &Caller,
) -> Result<(TurnAsk, Duration), WebError> {
    let bad = |field: &str, problem: &str| WebError::bad(format!("{field}: {problem}"));
    let kind = TypeName::new(&body.r#type).map_err(|error| bad("type", &error.to_string()))?;
    let worker =
        WorkerName::new(&body.worker).map_err(|error| bad("worker", &error.to_string()))?;
    let request =
        RequestId::new(&body.request_id).map_err(|error| bad("request_id", &error.to_string()))?;
    let wait = patience(body.wait_ms).map_err(|problem| bad("wait_ms", problem))?;
    caller.bound.check_worker(rotation, &worker)?;
    if worker.as_str().starts_with(WorkerName::OF_JOBS) {
        return Err(WebError::Forbidden {
            detail: format!(
                "worker: {worker} is the name under which a job takes its turns: use a name that does not begin with {}",
                WorkerName::OF_JOBS
            )
            .into(),
        });
    }
    // The store tells requests apart by type, worker and this: so the same request of another caller is another one.
    let own = caller.seal(&["request", request.as_str()]);
    let own = format!("{}{own}", caller.claim_owner().as_str());
    let request = RequestId::new(&own).map_err(|error| bad("request_id", &error.to_string()))?;
    Ok((TurnAsk { rotation: rotation.clone(), kind, worker, request, wait: None }, wait))
}

/// Asks for a turn: it is granted, or the answer says why not, at once or after a wait.
#[utoipa::path(post, path = "/api/v1/rotations/{rotation}/turns", tag = "rotations", operation_id = "take_turn",
    params(
        ("rotation" = String, Path, description = "Its name."),
        ("expires" = Option<bool>, Query, description = "Also says how long each extension lasts.")),
    request_body = TurnBody,
    responses((status = 200, description = "The turn, or why it is not had.", body = TurnAnswer)))]
pub async fn take(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    rotation: web::Path<String>,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let rotation = named(&rotation)?;
    let Telling { expires } = query(&request)?;
    let (ask, wait) = asked(&rotation, read(&body)?, &caller)?;
    let kind = ask.kind.clone();
    let taken = match web.turns.take(ask, wait).await {
        Ok(taken) => taken,
        Err(error) => return Err(trouble_with_type(&web, &rotation, Some(&kind), error).await),
    };
    let said = match taken.taken {
        Taken::Granted(turn) => TurnAnswer::Granted(GrantedTurn {
            lease_ms: expires.unwrap_or(false).then(|| millis(turn.lease)),
            ..GrantedTurn::of(&rotation, &turn, &caller)
        }),
        Taken::Waiting { holder, earliest_at, ahead, reason } => TurnAnswer::Waiting(NoTurn {
            holder: holder.map(|turn| Holder::of(&turn, caller.is_operator())),
            earliest_at: not_before(earliest_at),
            ahead,
            reason: word(reason),
        }),
        Taken::Over(turn) => return Err(over(turn)),
    };
    Ok(handed(&said, taken.hand))
}

/// The turn in an address, if it is the caller's: a number can be guessed, what stands behind it cannot. One whose request is not known is
/// not looked for in the store under its number alone, as the next turn may have that number a moment later.
async fn turn_of(
    web: &Web,
    caller: &Caller,
    rotation: &RotationName,
    text: &str,
) -> Result<Token, WebError> {
    let (digits, _) = text.split_once('.').unwrap_or((text, ""));
    let number = digits.parse().ok().filter(|number: &u64| number.to_string() == digits);
    let turn = number.filter(|number| *number <= LARGEST_TOKEN).map(Token).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        WebError::not_found(format!(
            "there is no turn {shown:?}: use the `turn` with which it was granted"
        ))
    })?;
    let request = match web.turns.request(rotation, turn) {
        Some(request) => request,
        None => {
            let view = one(web, rotation, TURNS_KEPT).await?;
            let holder = view.ring.turn.as_ref();
            let Some(present) = holder.filter(|holder| holder.token == turn) else {
                let past = view.past.iter().find(|past| past.token == turn);
                return Err(stale(rotation, turn, past, holder));
            };
            web.turns.note(rotation, present);
            present.request.clone()
        }
    };
    // Who reads the store knows the request, and can make the text of it for its own token.
    let owns = request.as_str().starts_with(caller.claim_owner().as_str());
    if !owns || !secrets::equal(text, &turn_text(rotation, turn, &request, caller)) {
        one(web, rotation, 0).await?;
        return Err(WebError::Conflict {
            detail: format!(
                "the turn {turn} is not one that this token or session took; nothing was changed: send the `turn` with which it was granted, by the same token"
            )
            .into(),
        });
    }
    Ok(turn)
}

/// Refuses a token that is not that of the turn in the address; `None`: it was not sent.
async fn check_token(
    web: &Web,
    rotation: &RotationName,
    turn: Token,
    token: Option<u64>,
) -> Result<(), WebError> {
    match token.map(Token) {
        Some(token) if token.0 > LARGEST_TOKEN => {
            Err(WebError::bad("token: at most 9007199254740991; send it as the turn was granted"))
        }
        Some(token) if token != turn => {
            one(web, rotation, 0).await?;
            let detail = format!(
                "token: {token} is not that of the turn {turn}; nothing was changed: send the token with which that turn was granted"
            );
            Err(WebError::conflict(detail))
        }
        _ => Ok(()),
    }
}

/// What may come with an extension.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendTurnBody {
    /// As granted; looked at if it is sent.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    #[serde(default, deserialize_with = "whole::exact_if_any")]
    pub token: Option<u64>,
}

/// Keeps a turn for another lease from now.
#[utoipa::path(post, path = "/api/v1/rotations/{rotation}/turns/{turn}/extend", tag = "rotations", operation_id = "extend_turn",
    params(
        ("rotation" = String, Path, description = "Its name."),
        ("turn" = String, Path, description = "As it was granted.")),
    request_body = Option<ExtendTurnBody>,
    responses((status = 200, description = "The turn with its new end.", body = GrantedTurn)))]
pub async fn extend(
    web: web::Data<Web>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Bytes,
) -> Answer<GrantedTurn> {
    let rotation = named(&path.0)?;
    let only = caller.bound.check_rotation(&rotation)?;
    let ExtendTurnBody { token } = read_if_any(&body)?;
    let turn = turn_of(&web, &caller, &rotation, &path.1).await?;
    check_token(&web, &rotation, turn, token).await?;
    let kept = web.turns.extend(&rotation, turn, only.as_ref()).await;
    match kept.map_err(|error| trouble(&rotation, error))? {
        Kept::Yes(turn) => answer(GrantedTurn::of(&rotation, &turn, &caller)),
        Kept::Stale { past, holder } => Err(stale(&rotation, turn, past.as_ref(), holder.as_ref())),
    }
}

/// How a turn went.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TurnOutcome {
    /// As it should.
    Done,
    /// There was nothing to do.
    Empty,
    /// It did not.
    Failed,
}

/// The end of a turn.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PassBody {
    /// As granted.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    #[serde(deserialize_with = "whole::exact")]
    pub token: u64,
    /// How it went.
    pub outcome: TurnOutcome,
    /// The type that comes next; when left out or null, the next in order.
    #[schema(format = "name")]
    pub next: Option<String>,
    /// No turn starts before this (RFC 3339, at most a day ahead); what is in the past is now.
    #[schema(format = DateTime)]
    pub not_before: Option<String>,
}

/// A turn that was passed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct PassedTurn {
    /// Its id.
    pub turn: String,
    /// As said.
    pub outcome: TurnOutcome,
}

/// Passes a turn on: its end, and perhaps who comes next and not before when.
#[utoipa::path(post, path = "/api/v1/rotations/{rotation}/turns/{turn}/pass", tag = "rotations", operation_id = "pass_turn",
    params(
        ("rotation" = String, Path, description = "Its name."),
        ("turn" = String, Path, description = "As it was granted.")),
    request_body = PassBody,
    responses((status = 200, description = "It counted.", body = PassedTurn)))]
pub async fn pass(
    web: web::Data<Web>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Bytes,
) -> Answer<PassedTurn> {
    let rotation = named(&path.0)?;
    let only = caller.bound.check_rotation(&rotation)?;
    let body: PassBody = read(&body)?;
    let turn = turn_of(&web, &caller, &rotation, &path.1).await?;
    let next = body.next.as_deref().map(TypeName::new).transpose();
    let next = next.map_err(|error| WebError::bad(format!("next: {error}")))?;
    let not_before = match &body.not_before {
        Some(text) => pause(&web, &rotation, text).await?,
        None => None,
    };
    check_token(&web, &rotation, turn, Some(body.token)).await?;
    let outcome = match body.outcome {
        TurnOutcome::Done => turns::TurnOutcome::Done,
        TurnOutcome::Empty => turns::TurnOutcome::Empty,
        TurnOutcome::Failed => turns::TurnOutcome::Failed,
    };
    let pass = Pass { rotation, turn, only, outcome, next, not_before };
    let kept = match web.turns.pass(&pass).await {
        Ok(kept) => kept,
        Err(error) => {
            return Err(trouble_with_type(&web, &pass.rotation, pass.next.as_ref(), error).await);
        }
    };
    match kept {
        Kept::Yes(turn) => {
            let turn = turn_text(&pass.rotation, turn.token, &turn.request, &caller);
            answer(PassedTurn { turn, outcome: body.outcome })
        }
        Kept::Stale { past, holder } => {
            Err(stale(&pass.rotation, turn, past.as_ref(), holder.as_ref()))
        }
    }
}

/// `not_before`, if it is ahead by the store's clock.
async fn pause(web: &Web, rotation: &RotationName, text: &str) -> Result<Option<Stamp>, WebError> {
    let bad = |problem: &str| WebError::bad(format!("not_before: {problem}"));
    let at = instant(text).map_err(|problem| bad(&problem))?;
    let now = one(web, rotation, 0).await?.now;
    if at > now + LONGEST_PAUSE {
        return Err(bad(&format!(
            "at most a day ahead; it is {} by the store's clock",
            not_after(now)
        )));
    }
    Ok((at > now).then_some(at))
}
