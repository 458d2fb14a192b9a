//! `GET /api/v1/leases`: everything that is held, whether this node knows the name or not.

use actix_web::web;

use super::{Answer, answer};
use crate::store::leases::Leases as _;
use crate::view::HeldLeaseView;
use crate::view::lists::Held;
use crate::web::Web;
use crate::web::auth::Caller;

/// Everything that is held now: each job that a node has, and each command under `soloist run`, on every machine. `holder`
/// is the node, for jobs and for commands. A lease that the store forgot is missing until its holder renews it. This call
/// reads the whole store and costs more than others: follow jobs on `/live`.
#[utoipa::path(get, path = "/api/v1/leases", tag = "leases", operation_id = "list_leases",
    responses((status = 200, description = "The leases.", body = Held)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<Held> {
    let held = web.store.held().await?;
    let view = |held| HeldLeaseView::of(held, |name| web.live.job_named(name.as_str()).is_some());
    let hidden = web.live.hidden_from(Some(&caller));
    let seen = held.iter().filter(|held| !hidden.has(held.name.as_str()));
    answer(Held { leases: seen.map(view).collect() })
}
