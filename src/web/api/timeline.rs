//! `GET /api/v1/jobs/{job}/timeline`: who held a job when.

use actix_web::{HttpRequest, web};
use serde::{Deserialize, Serialize};

use super::{Answer, answer, query};
use crate::domain::name::RunId;
use crate::store::journal::{Journal, RunEntry};
use crate::view::SpanView;
use crate::web::Web;
use crate::web::auth::Caller;
use crate::web::error::WebError;

/// Most spans in one answer.
const MOST: usize = 2_000;
const AT_ONCE: usize = 500;

/// Spans, oldest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Timeline {
    /// The spans.
    pub spans: Vec<SpanView>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    from: Option<String>,
    to: Option<String>,
}

fn instant(name: &str, text: Option<&str>) -> Result<Option<i64>, WebError> {
    text.map(|text| {
        text.parse::<jiff::Timestamp>().map(|at| at.as_millisecond()).map_err(|_| {
            WebError::bad(format!(
                "parameter {name}: {text:?} is no instant: use RFC 3339, as in 2026-05-04T01:02:03Z"
            ))
        })
    })
    .transpose()
}

fn overlaps(run: &RunEntry, from: Option<i64>, to: Option<i64>) -> bool {
    from.is_none_or(|from| run.ended.is_none_or(|ended| ended.0 > from))
        && to.is_none_or(|to| run.started.0 < to)
}

/// The spans that touch the time from `from` to `to`, from the kept history.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/timeline", tag = "jobs", operation_id = "get_timeline",
    params(
        ("job" = String, Path, description = "Its name."),
        ("from" = Option<String>, Query, description = "RFC 3339; the oldest kept run when absent."),
        ("to" = Option<String>, Query, description = "RFC 3339; now when absent.")),
    responses((status = 200, description = "The newest 2000 spans of that time, oldest first. A span that goes on has no `to`.", body = Timeline)))]
pub async fn list(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Answer<Timeline> {
    let job = web.job(&caller, &job)?;
    let window: Window = query(&request)?;
    let from = instant("from", window.from.as_deref())?;
    let to = instant("to", window.to.as_deref())?;
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        return Err(WebError::bad("parameter from is later than parameter to: exchange them"));
    }
    let mut runs: Vec<RunEntry> = Vec::new();
    let mut before: Option<RunId> = None;
    loop {
        let page = web.store.runs(&job.name, before.as_ref(), AT_ONCE).await?;
        let full = page.len() == AT_ONCE;
        before = page.last().map(|run| run.id.clone());
        // Runs of one job never overlap: once one ended before the window, so did all older ones.
        let past = page.last().is_some_and(|run| !overlaps(run, from, None));
        runs.extend(page.into_iter().filter(|run| overlaps(run, from, to)));
        if !full || past || runs.len() >= MOST {
            break;
        }
    }
    runs.truncate(MOST);
    answer(Timeline { spans: runs.into_iter().rev().map(SpanView::from).collect() })
}
