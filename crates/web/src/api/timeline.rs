//! `GET /api/v1/jobs/{job}/timeline`: who held a job when, and who wanted it.

use actix_web::{HttpRequest, web};
use serde::Deserialize;

use super::{Answer, answer, query};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::time::StoreTime;
use soloist_store::timeline::{SPANS_KEPT, Timelines};
use soloist_view::TimelineView;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    from: Option<String>,
    to: Option<String>,
}

pub(super) fn instant(name: &str, text: Option<&str>) -> Result<Option<StoreTime>, WebError> {
    text.map(|text| {
        // A `+` that was not escaped arrives as a blank.
        let text = text.replace(' ', "+");
        text.parse::<jiff::Timestamp>().map(|at| StoreTime(at.as_millisecond())).map_err(|_| {
            WebError::bad(format!(
                "parameter {name}: {text:?} is no instant: use RFC 3339, as in 2026-05-04T01:02:03Z"
            ))
        })
    })
    .transpose()
}

/// What touches the time from `from` to `to`.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/timeline", tag = "jobs", operation_id = "get_timeline",
    params(
        ("job" = String, Path, description = "Its name."),
        ("from" = Option<String>, Query, description = "RFC 3339; as far back as it is kept (`history` in the configuration) when absent."),
        ("to" = Option<String>, Query, description = "RFC 3339; now when absent.")),
    responses((status = 200, description = "At most 1000 spans, oldest first. Short runs alike, one after the other on one node, share a span of at most an hour; when there are too many, neighbours on one node share one whatever their ends. What goes on has no `to`.", body = TimelineView)))]
pub async fn list(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Answer<TimelineView> {
    let job = web.job(&caller, &job)?;
    let window: Window = query(&request)?;
    let from = instant("from", window.from.as_deref())?;
    let to = instant("to", window.to.as_deref())?;
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        return Err(WebError::bad("parameter from is later than parameter to: exchange them"));
    }
    let line = web.store.timeline(&job.name, SPANS_KEPT).await?.line;
    let whole = TimelineView::from(&line);
    if from.is_none() && to.is_none() {
        return answer(whole);
    }
    // A take-over is told of the span it begins, also when what it followed is not asked for.
    let asked = line.within(from.unwrap_or(StoreTime(i64::MIN)), to.unwrap_or(StoreTime(i64::MAX)));
    let mut asked = TimelineView::from(&asked);
    asked.spans = whole
        .spans
        .into_iter()
        .filter(|span| asked.spans.iter().any(|one| one.token == span.token))
        .collect();
    answer(asked)
}
