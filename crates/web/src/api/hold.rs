//! `PUT` and `DELETE /api/v1/jobs/{job}/hold`: forbid a job whatever the switches say, and allow it again.

use actix_web::web::{self, Bytes};
use serde::Deserialize;

use super::{Answer, answer, read, stored};
use crate::Web;
use crate::auth::Caller;
use soloist_ops::jobs;
use soloist_view::{JobView, mended};

/// Why a job is held.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldBody {
    /// For others to read; 1 to 500 characters.
    #[serde(deserialize_with = "mended::text")]
    pub reason: String,
}

/// Holds a job: it is stopped and stays stopped.
#[utoipa::path(put, path = "/api/v1/jobs/{job}/hold", tag = "jobs", operation_id = "hold_job",
    params(("job" = String, Path, description = "Its name.")),
    request_body = HoldBody,
    responses((status = 200, description = "The job.", body = JobView)))]
pub async fn put(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
    body: Bytes,
) -> Answer<JobView> {
    let config = web.job(&caller, &job)?;
    let HoldBody { reason } = read(&body)?;
    jobs::hold(&web.store, &caller.actor(), &config, &reason).await?;
    answer(stored(&web, &caller, &config).await?)
}

/// Allows a job again; it also tries again if it had given up.
#[utoipa::path(delete, path = "/api/v1/jobs/{job}/hold", tag = "jobs", operation_id = "resume_job",
    params(("job" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The job.", body = JobView)))]
pub async fn delete(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
) -> Answer<JobView> {
    let config = web.job(&caller, &job)?;
    jobs::resume(&web.store, &caller.actor(), &config).await?;
    answer(stored(&web, &caller, &config).await?)
}
