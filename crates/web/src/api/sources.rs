//! `/api/v1/sources`: where work comes from, and by which rules it is served.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::web::{self, Bytes};
use serde::{Deserialize, Serialize};

use super::{Answer, Forced, answer, query, read};
use crate::Web;
use crate::acts;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::dispatch::Rules;
use soloist_domain::fields::{self, Field, Fields as _, Given};
use soloist_domain::name::SourceName;
use soloist_ops::quota::LONGEST_BLOCK;
use soloist_store::StoreError;
use soloist_store::dispatch::Sources as _;
use soloist_view::json::{Source, SourceList};
use soloist_view::rules::sent;
use soloist_view::{mended, whole};

/// All rules of a source; what is left out gets its default.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub struct RulesBody {
    /// They.
    #[serde(flatten, deserialize_with = "fields::strict")]
    #[schema(schema_with = sent::<Rules>)]
    pub rules: Given<Rules>,
    /// Why, for the audit; at most 500 characters. When left out the audit says which the rules are now.
    #[serde(default, deserialize_with = "mended::optional")]
    pub reason: Option<String>,
}

/// The name in an address; what cannot be a name is not found.
fn named(text: &str) -> Result<SourceName, WebError> {
    SourceName::new(text)
        .map_err(|wrong| WebError::not_found(format!("there is no source {wrong}")))
}

/// All sources.
#[utoipa::path(get, path = "/api/v1/sources", tag = "dispatch", operation_id = "list_sources",
    responses((status = 200, description = "The sources.", body = SourceList)))]
pub async fn list(web: web::Data<Web>, caller: Caller) -> Answer<SourceList> {
    let mut views = web.desk.store()?.sources(None).await.map_err(acts::source::trouble)?;
    views.retain(|view| caller.bound.reads_source(view.name.as_str()));
    answer(SourceList::from(views))
}

/// One source.
#[utoipa::path(get, path = "/api/v1/sources/{source}", tag = "dispatch", operation_id = "get_source",
    params(("source" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The source.", body = Source)))]
pub async fn one(web: web::Data<Web>, caller: Caller, source: web::Path<String>) -> Answer<Source> {
    let source = named(&source)?;
    caller.bound.check_source(&source)?;
    let views = web.desk.store()?.sources(Some(&source)).await.map_err(acts::source::trouble)?;
    let view = views.into_iter().next().ok_or_else(|| acts::source::no_source(&source))?;
    answer(Source::from(view))
}

/// Makes a source, or changes its rules: all of them, so what is left out gets its default. Its tasks, starts and
/// blocks are kept. A body that names no rule makes a new source with the defaults; one that exists it would only wipe, so
/// then it is refused.
#[utoipa::path(put, path = "/api/v1/sources/{source}", tag = "dispatch", operation_id = "put_source",
    params(("source" = String, Path, description = "Its name: 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit.")),
    request_body = RulesBody,
    responses((status = 200, description = "The source.", body = Source)))]
pub async fn put(
    web: web::Data<Web>,
    caller: Caller,
    source: web::Path<String>,
    body: Bytes,
) -> Answer<Source> {
    let source = SourceName::new(&source)?;
    let RulesBody { rules, reason } = read(&body)?;
    if rules.is_empty() && exists(&web, &source).await? {
        let mut names: Vec<&str> = Rules::FIELDS.iter().map(Field::member).collect();
        names.dedup();
        let names = names.join(", ");
        return Err(WebError::bad(format!(
            "the body names no rule, and {source} exists: a PUT replaces all its rules, so send at least one of {names} (lease_ms 60000 and paused false are what is left out)"
        )));
    }
    let rules = rules.onto(Rules::default()).map_err(|wrong| WebError::bad(wrong.to_string()))?;
    let reason = reason.as_deref();
    answer(Source::from(acts::source::put(&web, &caller, &source, &rules, reason).await?))
}

async fn exists(web: &Web, source: &SourceName) -> Result<bool, WebError> {
    match web.desk.store()?.sources(Some(source)).await {
        Ok(found) => Ok(!found.is_empty()),
        Err(StoreError::NotFound(_)) => Ok(false),
        Err(error) => Err(acts::source::trouble(error)),
    }
}

/// For how long.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// From now; 0 lifts a block.
    #[schema(minimum = 0, maximum = 86_400_000_u64)]
    #[serde(deserialize_with = "whole::number")]
    pub for_ms: u64,
}

/// Serves no collector from a source for a while: for one that was told 429.
#[utoipa::path(post, path = "/api/v1/sources/{source}/block", tag = "dispatch", operation_id = "block_source",
    params(("source" = String, Path, description = "Its name.")),
    request_body = Block,
    responses((status = 200, description = "The source.", body = Source)))]
pub async fn block(
    web: web::Data<Web>,
    caller: Caller,
    source: web::Path<String>,
    body: Bytes,
) -> Answer<Source> {
    let source = named(&source)?;
    let lasting = Duration::from_millis(read::<Block>(&body)?.for_ms);
    if lasting > LONGEST_BLOCK {
        return Err(WebError::bad(
            "for_ms: at most 86400000, a day: use `paused` for longer, or block again",
        ));
    }
    answer(Source::from(acts::source::block(&web, &caller, &source, lasting, None).await?))
}

/// Serves no collector from a source until it is resumed; all else of its rules stays.
#[utoipa::path(put, path = "/api/v1/sources/{source}/pause", tag = "dispatch", operation_id = "pause_source",
    params(("source" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The source.", body = Source)))]
pub async fn pause(
    web: web::Data<Web>,
    caller: Caller,
    source: web::Path<String>,
) -> Answer<Source> {
    set_paused(web, caller, source, true).await
}

/// Serves collectors from a source again.
#[utoipa::path(delete, path = "/api/v1/sources/{source}/pause", tag = "dispatch", operation_id = "resume_source",
    params(("source" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The source.", body = Source)))]
pub async fn resume(
    web: web::Data<Web>,
    caller: Caller,
    source: web::Path<String>,
) -> Answer<Source> {
    set_paused(web, caller, source, false).await
}

async fn set_paused(
    web: web::Data<Web>,
    caller: Caller,
    source: web::Path<String>,
    on: bool,
) -> Answer<Source> {
    acts::source::pause(&web, &caller, &source, on, None).await?;
    one(web, caller, source).await
}

/// What went with a source.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RemovedSource {
    /// Its name.
    pub source: String,
    /// Tasks that were not done.
    pub tasks: u64,
    /// Of them, those in a collector's hands: a collector that reports one is told `unknown`.
    pub in_flight: u64,
}

/// Removes a source with all its tasks. One that has tasks which are not done is removed with `force=true` only: the refusal
/// says what would be lost. Who waits for its work is told at once that it is gone.
#[utoipa::path(delete, path = "/api/v1/sources/{source}", tag = "dispatch", operation_id = "remove_source",
    params(
        ("source" = String, Path, description = "Its name."),
        ("force" = Option<bool>, Query, description = "Also with what would be lost.")),
    responses((status = 200, description = "It is gone.", body = RemovedSource)))]
pub async fn remove(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    source: web::Path<String>,
) -> Answer<RemovedSource> {
    let (source, Forced { force }) = (named(&source)?, query(&request)?);
    let lost = acts::source::remove(&web, &caller, &source, force.unwrap_or(false)).await?;
    let source = source.to_string();
    answer(RemovedSource { source, tasks: lost.tasks, in_flight: lost.in_flight })
}
