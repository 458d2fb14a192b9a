//! `GET /api/v1/jobs` and `GET /api/v1/jobs/{job}`: what every job is doing, and why.

use actix_web::web;

use super::{Answer, answer, seen};
use crate::Web;
use crate::auth::Caller;
use soloist_view::JobView;
use soloist_view::lists::Jobs;

/// All jobs. Sentences follow the account's language, else `Accept-Language`, else English.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs", operation_id = "list_jobs",
    responses((status = 200, description = "All jobs.", body = Jobs)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<Jobs> {
    let mut jobs = Vec::new();
    for job in web.live.jobs_for(&caller) {
        jobs.push(seen(&web, &caller, &job).await?);
    }
    answer(Jobs { jobs })
}

/// One job.
#[utoipa::path(get, path = "/api/v1/jobs/{job}", tag = "jobs", operation_id = "get_job",
    params(("job" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The job.", body = JobView)))]
pub async fn one(web: web::Data<Web>, caller: Caller, job: web::Path<String>) -> Answer<JobView> {
    let job = web.job(&caller, &job)?;
    answer(seen(&web, &caller, &job).await?)
}
