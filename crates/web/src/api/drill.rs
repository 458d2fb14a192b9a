//! `GET` and `POST /api/v1/jobs/{job}/drill`: crash the holder of a job on purpose; what the newest drill measured.

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use serde::{Deserialize, Serialize};

use super::{Answer, answer, read_if_any};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_ops::jobs;
use soloist_store::jobs::Jobs;
use soloist_view::drill::DrillView;
use soloist_view::mended;

/// How.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Also when no other node can take over; the job then stays down.
    #[serde(default)]
    pub force: bool,
    /// For the audit; up to 500 characters.
    #[schema(max_length = 500)]
    #[serde(default, deserialize_with = "mended::optional")]
    pub reason: Option<String>,
}

/// The newest drill.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Newest {
    /// Null when there was none, or when the run ended before the order came.
    pub drill: Option<DrillView>,
}

/// Kills the node process that holds the job with kill -9. All its jobs move; it comes back only if a service manager
/// starts it again. The take-over is measured from the order to the start of the next run.
#[utoipa::path(post, path = "/api/v1/jobs/{job}/drill", tag = "jobs", operation_id = "start_drill",
    params(("job" = String, Path, description = "Its name.")),
    request_body = Option<Crash>,
    responses((status = 202, description = "Ordered; the same address answers what came of it.", body = DrillView)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let config = web.job(&caller, &job)?;
    let Crash { force, reason } = read_if_any(&body)?;
    let force = (force, "force");
    let ordered =
        jobs::drill(&web.store, &caller.actor(), &config, force, reason.as_deref(), |_| {}).await?;
    Ok(HttpResponse::Accepted().json(DrillView::of(&config.name, &ordered.drill)))
}

/// The newest drill and what it measured.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/drill", tag = "jobs", operation_id = "get_drill",
    params(("job" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The newest drill.", body = Newest)))]
pub async fn get(web: web::Data<Web>, caller: Caller, job: web::Path<String>) -> Answer<Newest> {
    let config = web.job(&caller, &job)?;
    let jobs = web.store.snapshot(std::slice::from_ref(&config.name)).await?.jobs;
    let drill = jobs.first().and_then(|record| record.drill.as_ref());
    answer(Newest { drill: drill.map(|drill| DrillView::of(&config.name, drill)) })
}
