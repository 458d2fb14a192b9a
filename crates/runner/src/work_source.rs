//! Where a collector gets its work: the store itself, or a node over HTTP (`--server`).
//!
//! At the store an idle slot waits for its bell; at a node the request itself waits. Everything else is the same: an unanswered request
//! is repeated unchanged, maybe at another node.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::trouble::Trouble;
use soloist_domain::dispatch::TaskOutcome;
use soloist_domain::lease::Token;
use soloist_domain::name::SourceName;
use soloist_domain::time::{Stamp, StoreTime, millis};
use soloist_remote::{Call, Client, RemoteError, part};
use soloist_store::dispatch::{
    ClaimAsk, ClaimId, ClaimOwner, Claimed, Dispatch as _, Exchange, Exchanged, Handed, Report,
    Reported, Sources as _, TaskId, Waiter,
};
use soloist_store::{Store, StoreError};

/// Beyond the wait that was asked for, an answer may take this long.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// As [`ANSWER_MAX`], for results.
const RESULT_MAX: Duration = Duration::from_secs(3);

/// Who hands out tasks, and takes their results.
#[derive(Clone)]
pub(super) enum WorkSource {
    /// The store; claims are this process's alone.
    Store(Store, ClaimOwner),
    /// A node; claims are the token's.
    Server(Client),
}

/// What came of an extension.
pub(super) enum Extended {
    /// It is kept for this long, counted from before the request was sent; `None`: for as long as it was granted.
    Kept(Option<Duration>),
    /// It is another's.
    Lost,
}

#[derive(Deserialize)]
struct Lease {
    lease_ms: u64,
    ready: u64,
    due: u64,
    in_flight: u64,
}

#[derive(Deserialize)]
struct Answer {
    claim: Option<String>,
    lease_until: Option<String>,
    #[serde(default)]
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    id: String,
    key: String,
    source: SourceName,
    payload: Box<RawValue>,
    token: u64,
    attempt: u32,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Status>,
    claim: Option<Answer>,
}

#[derive(Deserialize)]
struct Status {
    status: String,
}

#[derive(Deserialize)]
struct Kept {
    kept: Vec<String>,
    expires_in_ms: Option<u64>,
}

fn at_source(source: &SourceName) -> String {
    format!("/api/v1/sources/{}", part(source.as_str()))
}

fn at_claim(claim: &ClaimId, what: &str) -> String {
    format!("/api/v1/claims/{}{what}", part(&claim.0))
}

impl WorkSource {
    /// Whether requests for work wait for it by themselves.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// For the store: as whom.
    fn owner(&self) -> Option<ClaimOwner> {
        match self {
            Self::Store(_, owner) => Some(owner.clone()),
            Self::Server(_) => None,
        }
    }

    /// Hands results in and asks for work; a node has the request for work wait for so long.
    pub(super) async fn exchange(
        &self,
        reports: Vec<Report>,
        claim: Option<ClaimAsk>,
        wait: Duration,
    ) -> Result<Exchanged, Trouble> {
        let client = match self {
            Self::Store(store, owner) => {
                let exchange = Exchange { reports, only: Some(owner.clone()), claim };
                return Ok(store.exchange(&exchange).await?);
            }
            Self::Server(client) => client,
        };
        let ms = millis(wait);
        let asked = claim.map(|ask| {
            json!({
                "collector": ask.collector, "request_id": ask.request, "max": ask.max,
                "sources": ask.sources, "wait_ms": ms,
            })
        });
        // The same request gets the same answer, and a result that was accepted is accepted again.
        let call = |path: &str| Call::post(path).repeatable().within(wait + ANSWER_MAX);
        match (reports.is_empty(), asked) {
            (true, None) => Ok(Exchanged { reports: Vec::new(), claimed: None }),
            (true, Some(asked)) => {
                let answer: Answer = client.ask(call("/api/v1/claims").with(&asked)).await?;
                Ok(Exchanged { reports: Vec::new(), claimed: Some(answer.try_into()?) })
            }
            (false, asked) => {
                let results: Vec<Value> = reports.iter().map(result).collect();
                let body = json!({"results": results, "claim": asked});
                // A frozen node must not keep a result until its lease is over.
                let call = call("/api/v1/results").within(wait + RESULT_MAX);
                let answer: Results = client.ask(call.with(&body)).await?;
                let status = |one: &Status| match one.status.as_str() {
                    "ok" => Reported::Ok,
                    "stale" => Reported::Stale,
                    _ => Reported::Unknown,
                };
                let reports = answer.results.iter().map(status).collect();
                let claimed = answer.claim.map(Claimed::try_from).transpose()?;
                Ok(Exchanged { reports, claimed })
            }
        }
    }

    /// Keeps a task for another lease. After `patience` the caller does not wait for the answer any more: until then every node is asked.
    pub(super) async fn extend(
        &self,
        claim: &ClaimId,
        id: &TaskId,
        patience: Duration,
    ) -> Result<Extended, Trouble> {
        match self {
            Self::Store(store, owner) => {
                let extended = store.extend(claim, Some(owner)).await?;
                let kept = extended.kept.contains(id);
                Ok(if kept { Extended::Kept(None) } else { Extended::Lost })
            }
            Self::Server(client) => {
                let call = Call::post(at_claim(claim, "/extend?expires=true")).repeatable();
                let call = call.shared_within(patience, client);
                let Kept { kept, expires_in_ms } = client.ask(call).await?;
                let kept = expires_in_ms.filter(|_| kept.contains(&id.0));
                Ok(kept
                    .map_or(Extended::Lost, |ms| Extended::Kept(Some(Duration::from_millis(ms)))))
            }
        }
    }

    /// Gives a task back as if it had never been claimed.
    pub(super) async fn give_back(&self, claim: &ClaimId) -> Result<(), Trouble> {
        match self {
            Self::Store(store, _) => {
                store.give_back(claim, self.owner().as_ref()).await?;
            }
            Self::Server(client) => {
                client.tell(Call::delete(at_claim(claim, "")).repeatable()).await?;
            }
        }
        Ok(())
    }

    /// How long tasks of a source may be kept, as it is now; `None`: this token may not look at sources.
    pub(super) async fn lease_of(&self, source: &SourceName) -> Result<Option<Duration>, Trouble> {
        match self {
            Self::Store(store, _) => Ok(Some(lease_at(store, source).await?)),
            Self::Server(client) => match client.ask::<Lease>(Call::get(at_source(source))).await {
                Ok(Lease { lease_ms, .. }) => Ok(Some(Duration::from_millis(lease_ms))),
                Err(RemoteError::Refused { status: 403, .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Whether no task is ready, due or leased.
    pub(super) async fn is_empty(&self, sources: &[SourceName]) -> Result<bool, Trouble> {
        for source in sources {
            let left = match self {
                Self::Store(store, _) => {
                    let views = store.sources(Some(source)).await?;
                    views.iter().map(|view| view.ready + view.due + view.in_flight).sum()
                }
                Self::Server(client) => {
                    let asked = client.ask(Call::get(at_source(source))).await;
                    let Lease { ready, due, in_flight, .. } = asked.map_err(|error| match error {
                        RemoteError::Refused { status: 403, detail } => RemoteError::Refused {
                            status: 403,
                            detail: format!(
                                "--until-empty has to look at source {source}, and a collector's token may not: use a token of an operator that is bound to it (soloist token new --user OPERATOR --source {source}). The node says: {detail}"
                            ),
                        },
                        other => other,
                    })?;
                    ready + due + in_flight
                }
            };
            if left > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A waiter waits no more.
    pub(super) async fn leave(&self, waiter: &Waiter, sources: &[SourceName]) {
        if let Self::Store(store, _) = self {
            store.leave_queues(waiter, sources).await.ok();
        }
    }
}

async fn lease_at(store: &Store, source: &SourceName) -> Result<Duration, StoreError> {
    let views = store.sources(Some(source)).await?;
    let lease = views.first().map(|view| view.rules.lease);
    lease.ok_or_else(|| StoreError::NotFound(format!("source {source}")))
}

/// A result as `POST /api/v1/results` takes it.
fn result(report: &Report) -> Value {
    let outcome = match report.outcome {
        TaskOutcome::Done => "done",
        TaskOutcome::Retry => "retry",
        TaskOutcome::Dead => "dead",
    };
    let delay = report.delay.map(millis);
    json!({
        "id": report.id, "token": report.token, "outcome": outcome, "delay_ms": delay,
        "error": report.error,
    })
}

impl TryFrom<Answer> for Claimed {
    type Error = Trouble;

    fn try_from(answer: Answer) -> Result<Self, Trouble> {
        let strange = |what: &str| Trouble::Other(anyhow::anyhow!("the node answered {what}"));
        let Answer { claim: Some(claim), lease_until, tasks } = answer else {
            return Ok(Self::Nothing {
                reason: soloist_domain::dispatch::Reason::Empty,
                next_at: None,
            });
        };
        let until = lease_until.and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let until = until.ok_or_else(|| strange("a claim without the end of its lease"))?;
        let tasks = tasks.into_iter().map(|task| Handed {
            id: TaskId(task.id),
            key: task.key,
            source: task.source,
            payload: task.payload.get().to_owned(),
            token: Token(task.token),
            attempt: task.attempt,
        });
        Ok(Self::Granted {
            claim: ClaimId(claim),
            lease_until: Stamp::from(StoreTime(until.as_millisecond())),
            tasks: tasks.collect(),
        })
    }
}
