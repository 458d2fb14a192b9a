//! `/api/v1/dead`: tasks that were given up, and bringing one back.

use actix_web::{HttpRequest, web};
use serde::{Deserialize, Serialize};

use super::tasks::{known, only_source};
use super::{Answer, answer, clamp, query};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::name::SourceName;
use soloist_store::StoreError;
use soloist_store::dispatch::Dispatch as _;
use soloist_view::task::Task;

/// Dead tasks, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct DeadTasks {
    /// The tasks.
    pub tasks: Vec<Task>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    source: Option<String>,
    skip: Option<u64>,
    limit: Option<u64>,
}

/// Tasks that were given up.
#[utoipa::path(get, path = "/api/v1/dead", tag = "dispatch", operation_id = "list_dead_tasks",
    params(
        ("source" = Option<String>, Query, description = "Only of this source."),
        ("skip" = Option<u64>, Query, description = "Without the first so many."),
        ("limit" = Option<u64>, Query, description = "How many: 1 to 500, 50 when absent; what is outside is moved inside.")),
    responses((status = 200, description = "The tasks.", body = DeadTasks)))]
pub async fn list(web: web::Data<Web>, caller: Caller, request: HttpRequest) -> Answer<DeadTasks> {
    let page: Page = query(&request)?;
    let source = page.source.as_deref().map(SourceName::new).transpose();
    let source = source.map_err(|error| WebError::bad(format!("parameter source: {error}")))?;
    let source = only_source(&caller, source)?;
    let most = u64::from(u32::MAX);
    let skip = usize::try_from(page.skip.unwrap_or(0).min(most)).unwrap_or(usize::MAX);
    let limit = clamp(page.limit, 50, 500);
    let store = web.desk.store()?;
    let dead = store.dead(source.as_ref(), skip, limit).await.map_err(acts::source::trouble)?;
    let dead = dead.into_iter().filter(|task| caller.bound.reads_source(task.source.as_str()));
    let tasks = dead.map(Task::try_from).collect::<Result<_, StoreError>>()?;
    answer(DeadTasks { tasks })
}

/// Makes a dead task ready again, its attempts counted from zero; one that is not dead is left as it is.
#[utoipa::path(post, path = "/api/v1/dead/{id}/revive", tag = "dispatch", operation_id = "revive_task",
    params(("id" = String, Path, description = "Of the task.")),
    responses((status = 200, description = "The task.", body = Task)))]
pub async fn revive(web: web::Data<Web>, caller: Caller, id: web::Path<String>) -> Answer<Task> {
    let id = known(id.into_inner())?;
    answer(acts::source::revive(&web, &caller, &id).await?.try_into()?)
}
