//! What people and collectors may do to sources and dead tasks; audited.

use std::time::Duration;

use super::check_reason;
use crate::domain::dispatch::Rules;
use crate::domain::name::SourceName;
use crate::picture::rules::SourceRules;
use crate::store::StoreError;
use crate::store::dispatch::{Dispatch as _, SourceView, Sources as _, TaskId, TaskView};
use crate::waiting::DeskError;
use crate::web::Web;
use crate::web::auth::Caller;
use crate::web::error::WebError;

/// Makes a source, or changes all its rules. The audit says why, or else which they are now.
///
/// # Errors
/// [`WebError::BadRequest`] with the field, [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn put_source(
    web: &Web,
    caller: &Caller,
    source: &SourceName,
    rules: &Rules,
    reason: Option<&str>,
) -> Result<SourceView, WebError> {
    caller.bound.check_source(source)?;
    let reason = check_reason(reason)?;
    rules.check().map_err(|wrong| WebError::bad(wrong.to_string()))?;
    let store = web.desk.store()?;
    let before = match store.sources(Some(source)).await {
        Ok(found) => found.into_iter().next(),
        Err(StoreError::NotFound(_)) => None,
        Err(error) => return Err(trouble(error)),
    };
    let view = store.put_source(source, rules).await.map_err(trouble)?;
    web.desk.expect(None);
    let was_paused = before.as_ref().is_some_and(|before| before.rules.paused);
    let act = match (was_paused, rules.paused) {
        (false, true) => "source.pause",
        (true, false) => "source.resume",
        _ => "source.put",
    };
    let noted = reason.unwrap_or_else(|| SourceRules::noted(rules));
    web.audit(caller, act, source.as_str(), Some(&noted)).await?;
    Ok(view)
}

/// Serves nobody from a source for so long; zero lifts a block.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn block(
    web: &Web,
    caller: &Caller,
    source: &SourceName,
    lasting: Duration,
) -> Result<SourceView, WebError> {
    caller.bound.check_source(source)?;
    let view = web.desk.store()?.block_source(source, lasting).await.map_err(trouble)?;
    web.desk.expect(Some(view.blocked_until));
    let (act, said) = if lasting.is_zero() {
        ("source.unblock", None)
    } else {
        ("source.block", Some(format!("for {} ms", lasting.as_millis())))
    };
    web.audit(caller, act, source.as_str(), said.as_deref()).await?;
    Ok(view)
}

/// Makes a dead task ready again.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn revive(web: &Web, caller: &Caller, id: &TaskId) -> Result<TaskView, WebError> {
    let store = web.desk.store()?;
    if !caller.bound.sources.is_empty()
        && let Some(task) = store.task(id).await.map_err(trouble)?
    {
        caller.bound.check_source(&task.source)?;
    }
    let view = store.revive(id).await.map_err(|error| match error {
        StoreError::NotFound(_) => no_task(id),
        error => trouble(error),
    })?;
    web.audit(caller, "task.revive", &view.id.0, Some(view.source.as_str())).await?;
    Ok(view)
}

/// A failure of dispatch; what is not found is a source.
#[must_use]
pub fn trouble(error: impl Into<DeskError>) -> WebError {
    match error.into() {
        DeskError::Store(StoreError::NotFound(what)) => undefined(&what),
        error => error.into(),
    }
}

/// There is no such source.
#[must_use]
pub fn no_source(source: &SourceName) -> WebError {
    undefined(&format!("source {source}"))
}

fn undefined(what: &str) -> WebError {
    let name = what.rsplit_once("source ").map_or("{source}", |(_, name)| name);
    WebError::not_found(format!(
        "{what} does not exist: define it first with PUT /api/v1/sources/{name}"
    ))
}

/// There is no such task.
#[must_use]
pub fn no_task(id: &TaskId) -> WebError {
    let shown: String = id.0.chars().take(64).collect();
    WebError::not_found(format!(
        "there is no task {shown:?}: POST /api/v1/tasks answers with ids, and a task that was done long ago is forgotten"
    ))
}
