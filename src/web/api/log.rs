//! `GET /api/v1/jobs/{job}/log`: the output of a job, across runs and nodes.

use actix_web::{HttpRequest, web};
use serde::Deserialize;

use super::{Answer, answer, clamp, query};
use crate::store::journal::Journal;
use crate::view::LogLineView;
use crate::view::lists::Log;
use crate::web::Web;
use crate::web::auth::Caller;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<u64>,
    limit: Option<u64>,
}

/// Output of a job; the newest 2,000 lines are kept.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/log", tag = "jobs", operation_id = "get_log",
    params(
        ("job" = String, Path, description = "Its name."),
        ("after" = Option<u64>, Query, description = "Only lines with a greater seq; the newest lines when absent."),
        ("limit" = Option<u64>, Query, description = "How many: 1 to 2000, 200 when absent; what is outside is moved inside.")),
    responses((status = 200, description = "The lines.", body = Log)))]
pub async fn list(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Answer<Log> {
    let job = web.job(&caller, &job)?;
    let page: Page = query(&request)?;
    let lines = web.store.log(&job.name, page.after, clamp(page.limit, 200, 2_000)).await?;
    answer(Log { lines: lines.into_iter().map(LogLineView::from).collect() })
}
