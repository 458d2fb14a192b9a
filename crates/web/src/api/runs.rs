//! `GET /api/v1/jobs/{job}/runs`: the history of a job.

use actix_web::{HttpRequest, web};
use serde::Deserialize;

use super::{Answer, answer, clamp, query};
use crate::Web;
use crate::auth::Caller;
use soloist_domain::name::RunId;
use soloist_store::journal::Journal;
use soloist_view::RunView;
use soloist_view::lists::Runs;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<u64>,
    before: Option<String>,
}

/// Runs of a job, the present one included.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/runs", tag = "jobs", operation_id = "list_runs",
    params(
        ("job" = String, Path, description = "Its name."),
        ("limit" = Option<u64>, Query, description = "How many: 1 to 500, 50 when absent; what is outside is moved inside."),
        ("before" = Option<String>, Query, description = "Only runs older than the one with this id.")),
    responses((status = 200, description = "The runs.", body = Runs)))]
pub async fn list(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Answer<Runs> {
    let job = web.job(&caller, &job)?;
    let page: Page = query(&request)?;
    let before = page.before.map(RunId);
    let runs = web.store.runs(&job.name, before.as_ref(), clamp(page.limit, 50, 500)).await?;
    answer(Runs { runs: runs.into_iter().map(RunView::from).collect() })
}
