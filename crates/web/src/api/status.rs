//! `GET /api/v1/status`: the rows of `soloist status`, as this node sees them.

use actix_web::web;

use super::{Answer, answer, read_now};
use crate::Web;
use crate::auth::Caller;
use soloist_process::clock;
use soloist_store::jobs::Jobs as _;
use soloist_view::status::{Status, StatusRow};
use soloist_view::words::At;

/// All jobs, a line each: what `soloist status` prints. Everything that is known of a job is in `GET /api/v1/jobs`.
#[utoipa::path(get, path = "/api/v1/status", tag = "jobs", operation_id = "get_status",
    responses((status = 200, description = "A row for each job.", body = Status)))]
pub async fn get(web: web::Data<Web>, caller: Caller) -> Answer<Status> {
    let (nodes, rotations) = (web.feed.nodes(), web.live.rotations());
    let rotations = rotations.as_ref().map(|views| &views[..]);
    let mut rows = Vec::new();
    for job in web.live.jobs_for(&caller) {
        let seen = match web.feed.job(&job.name) {
            Some(seen) => seen,
            None => read_now(&web, &job).await?,
        };
        rows.push(StatusRow::of(&seen, &job, &nodes, rotations, clock::boot()));
    }
    let now = match web.feed.store_now() {
        Some(now) => Some(now),
        // A node without jobs follows nothing.
        None => web.store.snapshot(&[]).await.ok().map(|snapshot| snapshot.at),
    };
    answer(Status { rows, now: now.map(At) })
}
