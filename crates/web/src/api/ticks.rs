//! `/api/v1/jobs/{job}/next`, `/ticks`, `/runs` and `/taken`: when a job with a schedule runs, what became of its ticks, and runs that
//! people ask for.

use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};

use super::timeline::instant;
use super::{Answer, answer, clamp, query, read_if_any, read_now, stored};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::tick::{Outcome, Params, TickName};
use soloist_domain::time::StoreTime;
use soloist_ops::ticks::{self, RunAsk, schedule};
use soloist_process::clock;
use soloist_store::ticks::TickBook as _;
use soloist_view::ticks::{NextTicks, TickList, all_ticks, next_ticks, older, page};
use soloist_view::{JobView, mended};

/// As far as a schedule looks.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=2399;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Coming {
    count: Option<u64>,
    from: Option<String>,
}

/// The next ticks of a job, also of one that is off.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/next", tag = "jobs", operation_id = "next_ticks",
    params(
        ("job" = String, Path, description = "Its name."),
        ("count" = Option<u64>, Query, description = "How many: 1 to 500, 10 when absent; what is outside is moved inside."),
        ("from" = Option<String>, Query, description = "RFC 3339, of the years 1900 to 2399, that instant included; now when absent.")),
    responses((status = 200, description = "The ticks.", body = NextTicks)))]
pub async fn next(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Answer<NextTicks> {
    let job = web.job(&caller, &job)?;
    let Coming { count, from } = query(&request)?;
    let scheduled = schedule(&job)?;
    let from = match since(from.as_deref())? {
        Some(from) => from,
        None => match web.feed.job(&job.name) {
            Some(seen) => seen.store_now(clock::boot()),
            None => StoreTime(jiff::Timestamp::now().as_millisecond()),
        },
    };
    answer(next_ticks(scheduled, from, clamp(count, 10, 500), caller.language))
}

/// From when on. Years in which no tick is looked for are refused: an empty list would say that none is due.
fn since(from: Option<&str>) -> Result<Option<StoreTime>, WebError> {
    let year = from.and_then(|text| text.trim().split_once('-')?.0.parse::<u32>().ok());
    match (year.filter(|year| !YEARS.contains(year)), from) {
        (Some(_), Some(text)) => Err(WebError::bad(format!(
            "parameter from: {text:?} is outside of the years {} to {}, in which ticks are known",
            YEARS.start(),
            YEARS.end()
        ))),
        _ => instant("from", from),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<u64>,
    before: Option<String>,
    outcome: Option<String>,
}

/// What became of the ticks of a job that were due.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/ticks", tag = "jobs", operation_id = "list_ticks",
    params(
        ("job" = String, Path, description = "Its name."),
        ("limit" = Option<u64>, Query, description = "How many entries: 1 to 500, 50 when absent; what is outside is moved inside."),
        ("before" = Option<String>, Query, description = "Only entries older than this tick, which has one, or is of the schedule."),
        ("outcome" = Option<String>, Query, description = "Only these: `running`, `done`, `failed`, `lost`, `missed`, `skipped`, `unwanted`, `covered` or `dropped`.")),
    responses((status = 200, description = "The newest first. Alike gaps in a row are one entry; at least 1,000 entries are kept.", body = TickList)))]
pub async fn list(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Answer<TickList> {
    let job = web.job(&caller, &job)?;
    let Page { limit, before, outcome } = query(&request)?;
    let outcome = outcome.map(|word| word.parse::<Outcome>()).transpose();
    let outcome = outcome.map_err(|why| WebError::bad(format!("parameter outcome: {why}")))?;
    let before = before.map(|name| TickName(name.trim().replace(' ', "+")));
    let entries = web.store.ticks(&job.name).await?;
    let seen = read_now(&web, &job).await?;
    let now = seen.store_now(clock::boot());
    let all = all_ticks(entries, job.schedule.as_ref(), &seen.record, now);
    let older = match &before {
        None => &all[..],
        Some(name) => older(&all, name, job.schedule.as_ref()).ok_or_else(|| {
            WebError::bad(format!(
                "parameter before: {name} is no tick of {} that is known: leave it out for the newest, or take a name from the list",
                job.name
            ))
        })?,
    };
    answer(page(older, clamp(limit, 50, 500), outcome))
}

/// A run that is wanted now.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBody {
    /// Values of parameters, by name. A number or `true` counts as its text.
    #[serde(default, deserialize_with = "mended::plain")]
    pub params: Params,
    /// For the audit; up to 500 characters.
    #[schema(max_length = 500)]
    #[serde(default, deserialize_with = "mended::optional")]
    pub reason: Option<String>,
    /// The same gets the same answer; 1 to 100 bytes.
    #[schema(max_length = 100)]
    #[serde(default)]
    pub request_id: Option<String>,
    /// A tick of the schedule, by its name; a run by hand when absent.
    #[serde(default)]
    pub tick: Option<String>,
}

/// The tick that was made, or found.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AskedRun {
    /// Its name.
    pub tick: String,
}

/// Runs a job once, now, also when it is off. It waits while a tick is open or no node may run it.
#[utoipa::path(post, path = "/api/v1/jobs/{job}/runs", tag = "jobs", operation_id = "ask_run",
    params(("job" = String, Path, description = "Its name.")),
    request_body = Option<RunBody>,
    responses((status = 202, description = "Taken in.", body = AskedRun)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let config = web.job(&caller, &job)?;
    let RunBody { params, reason, request_id, tick } = read_if_any(&body)?;
    let ask = RunAsk { params, reason, request: request_id, tick };
    let tick = ticks::ask_run(&web.store, &caller.actor(), &config, &ask).await?.0;
    Ok(HttpResponse::Accepted().json(AskedRun { tick }))
}

/// Takes back a run that waits.
#[utoipa::path(delete, path = "/api/v1/jobs/{job}/runs/{tick}", tag = "jobs", operation_id = "take_back_run",
    params(
        ("job" = String, Path, description = "Its name."),
        ("tick" = String, Path, description = "The name of its tick.")),
    responses((status = 200, description = "The job.", body = JobView)))]
pub async fn delete(
    web: web::Data<Web>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Answer<JobView> {
    let (job, tick) = path.into_inner();
    let config = web.job(&caller, &job)?;
    let tick = TickName(tick.trim().replace(' ', "+"));
    ticks::take_back(&web.store, &caller.actor(), &config, &tick).await?;
    answer(stored(&web, &caller, &config).await?)
}

/// Sets a newest tick that lies ahead of the store's clock to now.
#[utoipa::path(delete, path = "/api/v1/jobs/{job}/taken", tag = "jobs", operation_id = "reset_taken",
    params(("job" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The job.", body = JobView)))]
pub async fn reset(web: web::Data<Web>, caller: Caller, job: web::Path<String>) -> Answer<JobView> {
    let config = web.job(&caller, &job)?;
    ticks::reset_taken(&web.store, &caller.actor(), &config).await?;
    answer(stored(&web, &caller, &config).await?)
}
