//! What operators do to a source as a whole from its page: pause it, revive what died of it.

use super::dispatch::{no_source, trouble};
use crate::domain::name::SourceName;
use crate::store::dispatch::{BATCH, Dispatch as _, SourceView, Sources as _};
use crate::web::Web;
use crate::web::auth::Caller;
use crate::web::error::WebError;

/// Most tasks that [`revive_all`] revives in one step.
pub const REVIVED_AT_ONCE: usize = 500;

/// A source that a page's address names.
///
/// # Errors
/// [`WebError::NotFound`], also for what cannot be a name; [`WebError::Unavailable`].
pub async fn named(web: &Web, name: &str) -> Result<SourceView, WebError> {
    let name = SourceName::new(name)
        .map_err(|wrong| WebError::not_found(format!("there is no source {wrong}")))?;
    let found = web.store.sources(Some(&name)).await.map_err(trouble)?;
    found.into_iter().next().ok_or_else(|| no_source(&name))
}

/// Serves nobody from a source, or serves again.
///
/// # Errors
/// [`WebError::NotFound`], [`WebError::Unavailable`].
pub async fn pause(web: &Web, caller: &Caller, source: &str, on: bool) -> Result<(), WebError> {
    let name = named(web, source).await?.name;
    caller.bound.check_source(&name)?;
    web.desk.store()?.pause_source(&name, on).await.map_err(trouble)?;
    web.desk.expect(None);
    let act = if on { "source.pause" } else { "source.resume" };
    web.audit(caller, act, name.as_str(), None).await
}

/// Makes the newest dead tasks of a source ready again, at most [`REVIVED_AT_ONCE`]; says how many, and whether there
/// may be more.
///
/// # Errors
/// As [`pause`].
pub async fn revive_all(
    web: &Web,
    caller: &Caller,
    source: &str,
) -> Result<(usize, bool), WebError> {
    let name = named(web, source).await?.name;
    let store = web.desk.store()?;
    let (mut revived, mut more) = (0, true);
    while more && revived < REVIVED_AT_ONCE {
        let some = (BATCH as usize).min(REVIVED_AT_ONCE - revived);
        let dead = store.dead(Some(&name), 0, some).await.map_err(trouble)?;
        more = dead.len() == some;
        for task in dead {
            store.revive(&task.id).await.map_err(trouble)?;
            revived += 1;
        }
    }
    web.desk.expect(None);
    let said = format!("{revived} tasks");
    web.audit(caller, "source.revive", name.as_str(), Some(&said)).await?;
    Ok((revived, more))
}
