//! What people and collectors do to sources and dead tasks at this node; and how the failures of dispatch are worded.

use std::time::Duration;

use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_desk::waiting::DeskError;
use soloist_domain::detail::Detail;
use soloist_domain::dispatch::Rules;
use soloist_domain::name::SourceName;
use soloist_ops::{OpsError, sources};
use soloist_store::StoreError;
use soloist_store::dispatch::{Lost, NewTask, SourceView, Sources as _, TaskId, TaskView};

/// As [`sources::put`].
///
/// # Errors
/// [`WebError::BadRequest`] with the field, [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn put(
    web: &Web,
    caller: &Caller,
    source: &SourceName,
    rules: &Rules,
    reason: Option<&str>,
) -> Result<SourceView, WebError> {
    let view = sources::put(web.desk.store()?, &caller.actor(), source, rules, reason).await?;
    web.desk.expect(None);
    Ok(view)
}

/// As [`sources::block`].
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Forbidden`], [`WebError::Unavailable`].
pub async fn block(
    web: &Web,
    caller: &Caller,
    source: &SourceName,
    lasting: Duration,
    reason: Option<&str>,
) -> Result<SourceView, WebError> {
    let store = web.desk.store()?;
    let view = sources::block(store, &caller.actor(), source, lasting, reason).await?;
    web.desk.expect(Some(view.blocked_until));
    Ok(view)
}

/// As [`sources::pause`].
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn pause(
    web: &Web,
    caller: &Caller,
    source: &str,
    on: bool,
    reason: Option<&str>,
) -> Result<(), WebError> {
    let name = named(web, source).await?.name;
    sources::pause(web.desk.store()?, &caller.actor(), &name, on, reason).await?;
    web.desk.expect(None);
    Ok(())
}

/// As [`sources::put_tasks`].
///
/// # Errors
/// As [`block`], and [`WebError::Conflict`] when a source is full.
pub async fn put_tasks(
    web: &Web,
    caller: &Caller,
    tasks: &[NewTask],
) -> Result<Vec<bool>, WebError> {
    match sources::put_tasks(web.desk.store()?, &caller.actor(), tasks).await {
        Err(OpsError::Store(error)) => Err(trouble(error)),
        put => Ok(put?),
    }
}

/// As [`sources::revive`].
///
/// # Errors
/// As [`block`].
pub async fn revive(web: &Web, caller: &Caller, id: &TaskId) -> Result<TaskView, WebError> {
    Ok(sources::revive(web.desk.store()?, &caller.actor(), id).await?)
}

/// As [`sources::revive_all`].
///
/// # Errors
/// As [`pause`].
pub async fn revive_all(
    web: &Web,
    caller: &Caller,
    source: &str,
) -> Result<(usize, bool), WebError> {
    let name = named(web, source).await?.name;
    let revived = sources::revive_all(web.desk.store()?, &caller.actor(), &name).await?;
    web.desk.expect(None);
    Ok(revived)
}

/// As [`sources::remove`].
///
/// # Errors
/// As [`block`], and [`WebError::Conflict`] with what would be lost.
pub async fn remove(
    web: &Web,
    caller: &Caller,
    source: &SourceName,
    force: bool,
) -> Result<Lost, WebError> {
    let lost = sources::remove(web.desk.store()?, &caller.actor(), source, force).await?;
    web.desk.expect(None);
    Ok(lost)
}

/// As [`sources::remove_task`].
///
/// # Errors
/// As [`remove`].
pub async fn remove_task(
    web: &Web,
    caller: &Caller,
    id: &TaskId,
    force: bool,
) -> Result<TaskView, WebError> {
    let gone = sources::remove_task(web.desk.store()?, &caller.actor(), id, force).await?;
    web.desk.expect(None);
    Ok(gone)
}

/// A source that a page's address names.
///
/// # Errors
/// [`WebError::NotFound`], also for what cannot be a name; [`WebError::Unavailable`].
pub async fn named(web: &Web, name: &str) -> Result<SourceView, WebError> {
    let name = SourceName::new(name).map_err(|wrong| {
        let why = Detail::new(format!("there is no source {wrong}"));
        WebError::not_found(why.told("refused-no-source", &[("source", &wrong.given)]))
    })?;
    let found = web.store.sources(Some(&name)).await.map_err(trouble)?;
    found.into_iter().next().ok_or_else(|| no_source(&name))
}

/// The same, for `caller`: a token that is bound to others learns nothing of it, not even whether it exists.
///
/// # Errors
/// As [`named`], and [`WebError::Forbidden`].
pub async fn seen(web: &Web, caller: &Caller, name: &str) -> Result<SourceView, WebError> {
    if let Ok(name) = SourceName::new(name) {
        caller.bound.check_source(&name)?;
    }
    named(web, name).await
}

/// A failure of dispatch; what is not found is a source.
#[must_use]
pub fn trouble(error: impl Into<DeskError>) -> WebError {
    match error.into() {
        DeskError::Store(StoreError::NotFound(what)) => {
            let name = what.rsplit_once("source ").map_or(what.as_str(), |(_, name)| name);
            WebError::not_found(sources::undefined(name))
        }
        error => error.into(),
    }
}

/// There is no such source.
#[must_use]
pub fn no_source(source: &SourceName) -> WebError {
    WebError::not_found(sources::undefined(source.as_str()))
}

/// There is no such task.
#[must_use]
pub fn no_task(id: &TaskId) -> WebError {
    WebError::not_found(sources::no_task(id))
}
