//! `/api/v1/claims`: ask for work, keep it, give it back.

use std::time::Duration;

use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::handing::handed;
use super::tasks::raw;
use super::{Answer, Telling, answer, patience, query, read};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_desk::dispatch;
use soloist_domain::name::{CollectorName, RequestId, SourceName};
use soloist_domain::time::Stamp;
use soloist_store::StoreError;
use soloist_store::dispatch::{
    BATCH, ClaimAsk, ClaimId, Claimed, Dispatch as _, Exchange, Sources as _, TaskId,
};
use soloist_view::json::{not_after, not_before};
use soloist_view::words::At;
use soloist_view::{millis, whole};

/// Most sources in one claim.
const SOURCES_AT_ONCE: usize = 100;

/// A request for work.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    /// For whom: 1 to 128 printable ASCII characters without spaces.
    #[schema(example = "host-1/3", format = "label")]
    pub collector: String,
    /// Chosen anew for each request, and repeated when its answer did not arrive: the same one gets the same answer.
    #[schema(example = "01J8Z", format = "label")]
    pub request_id: String,
    /// At most so many tasks.
    #[schema(default = 1, minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub max: Option<u32>,
    /// From these sources only, at most 100; from all when empty or left out.
    #[schema(max_items = 100)]
    pub sources: Option<Vec<String>>,
    /// How long to wait for work.
    #[schema(default = 0, minimum = 0, maximum = 30_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub wait_ms: Option<u64>,
}

/// A task in a collector's hands.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct HandedTask {
    /// Made of source and key.
    pub id: String,
    /// As put.
    pub key: String,
    /// As put.
    pub source: String,
    /// As put.
    #[schema(value_type = serde_json::Value)]
    pub payload: Box<RawValue>,
    /// To be sent with the result; any sink can refuse an older one.
    pub token: u64,
    /// From 1.
    pub attempt: u32,
}

/// Work.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Granted {
    /// To extend and to give back.
    pub claim: String,
    /// Until then the tasks are this collector's alone, by the store's clock: the earliest end, should they differ.
    pub lease_until: At,
    /// The tasks.
    pub tasks: Vec<HandedTask>,
}

/// No work now.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct NoWork {
    /// Empty.
    #[schema(max_items = 0)]
    pub tasks: Vec<HandedTask>,
    /// `empty`, `gap`, `cap`, `paused` or `blocked`: of the source that can be served the soonest.
    #[schema(example = "gap")]
    pub reason: &'static str,
    /// When asking again may help; null when that is not known.
    pub next_at: Option<At>,
}

/// The answer to a request for work.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "what is inside says it")]
pub enum ClaimAnswer {
    Granted(Granted),
    NoWork(NoWork),
}

impl TryFrom<Claimed> for ClaimAnswer {
    type Error = WebError;

    fn try_from(claimed: Claimed) -> Result<Self, WebError> {
        match claimed {
            Claimed::Granted { claim, lease_until, tasks } => {
                let tasks = tasks.into_iter().map(|task| {
                    Ok(HandedTask {
                        id: task.id.0,
                        key: task.key,
                        source: task.source.to_string(),
                        payload: raw(task.payload)?,
                        token: task.token.0,
                        attempt: task.attempt,
                    })
                });
                Ok(Self::Granted(Granted {
                    claim: claim.0,
                    lease_until: not_after(lease_until),
                    tasks: tasks.collect::<Result<_, WebError>>()?,
                }))
            }
            Claimed::Nothing { reason, next_at } => Ok(Self::NoWork(NoWork {
                tasks: Vec::new(),
                reason: dispatch::word(reason),
                next_at: next_at.map(not_before),
            })),
        }
    }
}

/// A request for work as the store wants it, and how long it may wait; `at` is where it stands in the body (`claim.`).
pub(super) fn asked(
    body: ClaimBody,
    caller: &Caller,
    at: &str,
) -> Result<(ClaimAsk, Duration), WebError> {
    let bad = |field: &str, problem: &str| WebError::bad(format!("{at}{field}: {problem}"));
    let collector = CollectorName::new(&body.collector)
        .map_err(|error| bad("collector", &error.to_string()))?;
    let request =
        RequestId::new(&body.request_id).map_err(|error| bad("request_id", &error.to_string()))?;
    let max = body.max.unwrap_or(1);
    if !(1..=BATCH).contains(&max) {
        return Err(bad("max", "from 1 to 100"));
    }
    let wait = patience(body.wait_ms).map_err(|problem| bad("wait_ms", problem))?;
    let named = body.sources.unwrap_or_default();
    if named.len() > SOURCES_AT_ONCE {
        return Err(bad("sources", "at most 100; leave it out for all"));
    }
    let mut sources = Vec::with_capacity(named.len());
    for (nth, name) in named.iter().enumerate() {
        let source = SourceName::new(name)
            .map_err(|error| bad(&format!("sources[{nth}]"), &error.to_string()))?;
        caller.bound.check_source(&source)?;
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    caller.bound.check_collector(&collector)?;
    if sources.is_empty() {
        sources = caller.bound.all_sources()?;
    }
    let owner = caller.claim_owner();
    let ask = ClaimAsk { owner, collector, request, max, sources, wait: None };
    Ok((ask, wait))
}

/// Asks for work: one that is ready, or an answer why there is none, at once or after waiting for it.
#[utoipa::path(post, path = "/api/v1/claims", tag = "dispatch", operation_id = "claim_tasks",
    request_body = ClaimBody,
    responses((status = 200, description = "Tasks, or why there are none.", body = ClaimAnswer)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let (ask, wait) = asked(read(&body)?, &caller, "")?;
    let exchange = Exchange { claim: Some(ask), only: None, reports: Vec::new() };
    let done = web.desk.exchange(exchange, wait).await.map_err(acts::source::trouble)?;
    let claimed = done.claimed.ok_or_else(|| WebError::Internal {
        detail: "the store did not answer the claim".to_owned(),
    })?;
    Ok(handed(&ClaimAnswer::try_from(claimed)?, done.hand))
}

/// What became of a claim's tasks.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ExtendAnswer {
    /// Ids still held, for another lease from now.
    pub kept: Vec<String>,
    /// Ids not held any more: stop working on them. Finished ones are in neither.
    pub lost: Vec<String>,
    /// With `expires=true`: how long the first of what is kept is kept at least, from now; null when nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// Keeps what is still held of a claim, each task from now for as long as it was granted, whatever its source's `lease_ms` is by then. Only the token or session that made a
/// claim can extend it, give it back and report its tasks; to others it is unknown.
#[utoipa::path(post, path = "/api/v1/claims/{claim}/extend", tag = "dispatch", operation_id = "extend_claim",
    params(
        ("claim" = String, Path, description = "As the claim was answered."),
        ("expires" = Option<bool>, Query, description = "Also says for how long.")),
    responses((status = 200, description = "What is kept and what is lost.", body = ExtendAnswer)))]
pub async fn extend(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    claim: web::Path<String>,
) -> Answer<ExtendAnswer> {
    let over = || {
        WebError::not_found(
            "this claim is unknown or over: stop working on its tasks, and ask for work again",
        )
    };
    let Telling { expires } = query(&request)?;
    let claim = shaped(claim.into_inner()).ok_or_else(over)?;
    let only = caller.claim_owner();
    let extended =
        web.desk.store()?.extend(&claim, Some(&only)).await.map_err(|error| match error {
            StoreError::NotFound(_) => over(),
            error => acts::source::trouble(error),
        })?;
    let ids = |all: Vec<TaskId>| all.into_iter().map(|id| id.0).collect();
    let expires_in_ms = match expires.unwrap_or(false) {
        true => expiry(&web, &extended.kept).await?,
        false => None,
    };
    answer(ExtendAnswer { kept: ids(extended.kept), lost: ids(extended.lost), expires_in_ms })
}

/// How long the first of `kept` is kept: its end, by the store's clock as it is after that was read. So it is never said too
/// long.
async fn expiry(web: &Web, kept: &[TaskId]) -> Result<Option<u64>, WebError> {
    let store = web.desk.store()?;
    let mut first: Option<(Stamp, SourceName)> = None;
    for id in kept {
        let Some(task) = store.task(id).await.map_err(acts::source::trouble)? else { continue };
        if let Some((_, _, until)) = task.held
            && first.as_ref().is_none_or(|(before, _)| until < *before)
        {
            first = Some((until, task.source));
        }
    }
    let Some((until, source)) = first else { return Ok(None) };
    let views = store.sources(Some(&source)).await.map_err(acts::source::trouble)?;
    Ok(views.first().map(|view| millis(until.since(view.now))))
}

/// How many tasks went back.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct GivenBack {
    /// Ready again, the attempt not counted; 0 for a claim that is unknown or over.
    pub returned: u64,
}

/// Gives back what is still held of a claim, unworked: others get it at once, and the attempt does not count.
#[utoipa::path(delete, path = "/api/v1/claims/{claim}", tag = "dispatch", operation_id = "give_back_claim",
    params(("claim" = String, Path, description = "As the claim was answered.")),
    responses((status = 200, description = "How many went back.", body = GivenBack)))]
pub async fn give_back(
    web: web::Data<Web>,
    caller: Caller,
    claim: web::Path<String>,
) -> Answer<GivenBack> {
    let store = web.desk.store()?;
    let Some(claim) = shaped(claim.into_inner()) else { return answer(GivenBack { returned: 0 }) };
    let only = caller.claim_owner();
    let returned = store.give_back(&claim, Some(&only)).await.map_err(acts::source::trouble)?;
    answer(GivenBack { returned })
}

/// An id that may be one of a claim.
fn shaped(text: String) -> Option<ClaimId> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (plain && (1..=64).contains(&text.len())).then_some(ClaimId(text))
}
