//! `PUT /api/v1/jobs/{job}/participation`: one user's switch for one job.

use actix_web::web::{self, Bytes};
use serde::Deserialize;

use super::{Answer, answer, read, stored};
use crate::picture::JobView;
use crate::web::Web;
use crate::web::acts;
use crate::web::auth::Caller;
use crate::web::error::Problem;

/// A switch, on or off.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Take part, or no longer.
    pub on: bool,
    /// Why, for the audit and for others; at most 500 characters.
    pub reason: Option<String>,
    /// Whose switch; only an admin may name another user, who must have an account.
    #[schema(format = "name")]
    pub user: Option<String>,
}

/// Switches the caller's participation, or that of `user`. The answer is the job after the switch.
#[utoipa::path(put, path = "/api/v1/jobs/{job}/participation", tag = "jobs", operation_id = "switch_participation",
    params(("job" = String, Path, description = "Its name.")),
    request_body = Switch,
    responses(
        (status = 200, description = "The job.", body = JobView),
        (status = 400, description = "The request is malformed; the detail names the place.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No login.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "Not allowed.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "No such job.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "Larger than 64 KiB.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The store is out of reach.", body = Problem, content_type = "application/problem+json")))]
pub async fn put(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
    body: Bytes,
) -> Answer<JobView> {
    let config = web.job(&job)?;
    let Switch { on, reason, user } = read(&body)?;
    acts::participate(&web, &caller, &job, user.as_deref(), on, reason.as_deref()).await?;
    answer(stored(&web, &caller, &config).await?)
}
