//! `POST /api/v1/jobs/{job}/move`: hand a job over to another node now.

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use serde::Deserialize;

use super::{read_if_any, stored};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::name::NodeName;
use soloist_ops::jobs;
use soloist_view::{JobView, mended};

/// Where to.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Moving {
    /// The node that shall run it; any other than the present one when absent.
    #[schema(format = "name")]
    pub to: Option<String>,
    /// For the audit; up to 500 characters.
    #[schema(max_length = 500)]
    #[serde(default, deserialize_with = "mended::optional")]
    pub reason: Option<String>,
}

/// Asks for a hand-over, which happens in the background. The job is kept for the node that it moves to for its
/// `stop_grace` and 10 s at most. If no living node could take it, the request is refused.
#[utoipa::path(post, path = "/api/v1/jobs/{job}/move", tag = "jobs", operation_id = "move_job",
    params(("job" = String, Path, description = "Its name.")),
    request_body = Option<Moving>,
    responses((status = 202, description = "Asked for; the job as it is now.", body = JobView)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let config = web.job(&caller, &job)?;
    let Moving { to, reason } = read_if_any(&body)?;
    let to = to.as_deref().map(NodeName::new).transpose()?;
    let (actor, reason) = (caller.actor(), reason.as_deref());
    jobs::hand_over(&web.store, &actor, &config, to.as_ref(), reason).await?;
    Ok(HttpResponse::Accepted().json(stored(&web, &caller, &config).await?))
}
