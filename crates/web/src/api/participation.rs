//! `PUT /api/v1/jobs/{job}/participation`: one user's switch for one job.

use actix_web::web::{self, Bytes};
use serde::Deserialize;

use super::{Answer, answer, read, stored};
use crate::Web;
use crate::auth::Caller;
use soloist_ops::jobs;
use soloist_view::{JobView, mended};

/// A switch, on or off.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Take part, or no longer.
    pub on: bool,
    /// Why, for the audit and for others; at most 500 characters.
    #[serde(default, deserialize_with = "mended::optional")]
    pub reason: Option<String>,
    /// Whose switch; only an admin may name another user, who must have an account.
    #[schema(format = "name")]
    pub user: Option<String>,
}

/// Switches the caller's participation, or that of `user`. The answer is the job after the switch.
#[utoipa::path(put, path = "/api/v1/jobs/{job}/participation", tag = "jobs", operation_id = "switch_participation",
    params(("job" = String, Path, description = "Its name.")),
    request_body = Switch,
    responses((status = 200, description = "The job.", body = JobView)))]
pub async fn put(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
    body: Bytes,
) -> Answer<JobView> {
    let config = web.job(&caller, &job)?;
    let Switch { on, reason, user } = read(&body)?;
    let (actor, user, reason) = (caller.actor(), user.as_deref(), reason.as_deref());
    jobs::participate(&web.store, &actor, &config, user, on, reason).await?;
    answer(stored(&web, &caller, &config).await?)
}
