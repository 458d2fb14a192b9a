//! `POST /api/v1/results`: how tasks ended, and the next request for work in the same round trip.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use serde::{Deserialize, Serialize};

use super::claims::{ClaimAnswer, ClaimBody, asked};
use super::handing::handed;
use super::{LARGEST_TOKEN, read};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::dispatch::{LONGEST, TaskOutcome};
use soloist_domain::lease::Token;
use soloist_store::dispatch::{BATCH, Exchange, LONGEST_ERROR, Report, Reported, TaskId};
use soloist_view::{mended, whole};

/// No id of a task is longer.
const LONGEST_ID: usize = 64;

/// How a task ended.
#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Finished.
    Done,
    /// Try again, after `delay_ms` or else after the source's backoff.
    Retry,
    /// Never try again.
    Dead,
}

/// The result of one task.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultBody {
    /// As claimed.
    pub id: String,
    /// As claimed.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    #[serde(deserialize_with = "whole::exact")]
    pub token: u64,
    /// How it ended.
    pub outcome: Ending,
    /// For `retry`: instead of the backoff.
    #[schema(minimum = 0, maximum = 31_622_400_000_u64)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub delay_ms: Option<u64>,
    /// What went wrong; kept as one line of at most 1000 bytes.
    #[serde(default, deserialize_with = "mended::optional")]
    pub error: Option<String>,
}

/// Results, and perhaps the next request for work.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultsBody {
    /// At most 100.
    #[schema(max_items = 100)]
    pub results: Vec<ResultBody>,
    /// Asked after the results have counted.
    pub claim: Option<ClaimBody>,
}

/// What came of one result.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ResultStatus {
    /// As given.
    pub id: String,
    /// `ok`: accepted (also when it was before). `stale`: the lease had ended, nothing was changed. `unknown`: no such
    /// task, or none that this collector ever held.
    #[schema(example = "ok")]
    pub status: &'static str,
}

/// What came of results, in their order.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ResultsAnswer {
    /// One for each.
    pub results: Vec<ResultStatus>,
    /// If work was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimAnswer>,
}

/// Reports results, and may ask for the next work. The results count at once, however long that waits.
#[utoipa::path(post, path = "/api/v1/results", tag = "dispatch", operation_id = "report_results",
    request_body = ResultsBody,
    responses((status = 200, description = "What came of each.", body = ResultsAnswer)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let ResultsBody { results, claim } = read(&body)?;
    if results.len() > BATCH as usize {
        return Err(WebError::bad(format!(
            "results: at most {BATCH} at a time, not {}: send them in several calls",
            results.len()
        )));
    }
    let (claim, wait) = match claim {
        Some(claim) => {
            let (ask, wait) = asked(claim, &caller, "claim.")?;
            (Some(ask), wait)
        }
        None => (None, Duration::ZERO),
    };
    let ids: Vec<String> = results.iter().map(|result| result.id.clone()).collect();
    let reports = results.into_iter().enumerate().map(|(nth, result)| {
        checked(result).map_err(|what| WebError::bad(format!("results[{nth}].{what}")))
    });
    let reports = reports.collect::<Result<Vec<Report>, WebError>>()?;
    let exchange = Exchange { reports, only: Some(caller.claim_owner()), claim };
    let done = web.desk.exchange(exchange, wait).await.map_err(acts::source::trouble)?;
    let results = ids.into_iter().zip(done.reports).map(|(id, reported)| ResultStatus {
        id,
        status: match reported {
            Reported::Ok => "ok",
            Reported::Stale => "stale",
            Reported::Unknown => "unknown",
        },
    });
    let claim = done.claimed.map(ClaimAnswer::try_from).transpose()?;
    Ok(handed(&ResultsAnswer { results: results.collect(), claim }, done.hand))
}

fn checked(result: ResultBody) -> Result<Report, &'static str> {
    if result.token > LARGEST_TOKEN {
        return Err("token: at most 9007199254740991; send it as it was claimed");
    }
    let delay = result.delay_ms.map(Duration::from_millis);
    if delay.is_some_and(|delay| delay > LONGEST) {
        return Err("delay_ms: at most a year");
    }
    Ok(Report {
        // What is longer is none of ours, and need not be looked for at its full length.
        id: TaskId(result.id.chars().take(LONGEST_ID).collect()),
        token: Token(result.token),
        outcome: match result.outcome {
            Ending::Done => TaskOutcome::Done,
            Ending::Retry => TaskOutcome::Retry,
            Ending::Dead => TaskOutcome::Dead,
        },
        delay,
        error: result.error.as_deref().and_then(one_line),
    })
}

/// A result is not refused for its words: they are cut instead.
fn one_line(text: &str) -> Option<String> {
    let mut line = text.trim().replace(|c: char| c.is_control(), " ");
    let end = (0..=LONGEST_ERROR.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    line.truncate(end.unwrap_or(0));
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_of_whole_characters() {
        assert_eq!(one_line(" a\nb\u{1b} "), Some("a b ".to_owned()));
        assert_eq!(one_line("\n"), None);
        let long = one_line(&"号".repeat(400)).unwrap();
        assert_eq!((long.len(), long.chars().count()), (999, 333));
    }
}
