//! `GET /api/v1/jobs/{job}/log`: the output of a job, across runs and nodes; a page of it, or all of it as text.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use serde::Deserialize;

use super::audit::instant;
use super::{clamp, query, words};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_domain::name::{JobName, RunId};
use soloist_domain::terminal;
use soloist_store::journal::{Journal, LOG_LINES, LogFilter, LogFrom, LogLine};
use soloist_store::{Store, StoreError};
use soloist_view::LogLineView;
use soloist_view::lists::Log;
use soloist_view::words::{iso, visible};

/// Which lines are sought, as in the address.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "as in the OpenAPI document")]
pub struct Sought {
    pub run: Option<String>,
    pub grep: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
}

impl Sought {
    /// The lines sought; empty words ask for nothing, as those of an empty form.
    ///
    /// # Errors
    /// [`WebError::BadRequest`] that names the parameter.
    pub fn filter(&self) -> Result<LogFilter, WebError> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let (since, until) =
            (instant("since", given(&self.since))?, instant("until", given(&self.until))?);
        if since.zip(until).is_some_and(|(since, until)| since > until) {
            return Err(WebError::bad(
                "parameter since is later than parameter until: exchange them",
            ));
        }
        Ok(LogFilter { run: given(&self.run).map(RunId), grep: given(&self.grep), since, until })
    }

    /// As it stands in an address, with `&` at the end if there is anything.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { run, grep, since, until } = self;
        words([("run", run), ("grep", grep), ("since", since), ("until", until)])
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<u64>,
    before: Option<u64>,
    limit: Option<u64>,
    run: Option<String>,
    grep: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    run: Option<String>,
    grep: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

/// Output of a job, oldest first.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/log", tag = "jobs", operation_id = "get_log",
    description = "Output of a job, oldest first, as much of it as `log_lines` and `log_bytes` of the configuration keep. Without `after` \
        these are the newest lines, with `before` the newest of those with a smaller seq.\n\nFor one answer at most 5,000 lines are looked at. So one to `run`, \
        `grep`, `since` or `until` may have fewer lines than `limit`, even none, and still say where to go on: `next_before`, or `next_after` if `after` was \
        given.\n\nWith `Accept: text/plain` all lines that are asked for are answered, as by `log.txt`; `limit`, `before` and `after` are left aside.",
    params(
        ("job" = String, Path, description = "Its name."),
        ("after" = Option<u64>, Query, description = "Only lines with a greater seq; the newest lines when absent."),
        ("before" = Option<u64>, Query, description = "Only lines with a smaller seq, the newest of them."),
        ("limit" = Option<u64>, Query, description = "How many: 1 to 2000, 200 when absent; what is outside is moved inside."),
        ("run" = Option<String>, Query, description = "Only of the run with this id."),
        ("grep" = Option<String>, Query, description = "Only lines with this in their text, in capitals or not; colours and other sequences for terminals are no text."),
        ("since" = Option<String>, Query, description = "RFC 3339: not before this."),
        ("until" = Option<String>, Query, description = "RFC 3339: before this.")),
    responses((status = 200, description = "The lines.", content((Log = "application/json"), (String = "text/plain")))))]
pub async fn list(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &job)?;
    let Page { after, before, limit, run, grep, since, until } = query(&request)?;
    let filter = Sought { run, grep, since, until }.filter()?;
    if asks_for_text(&request) {
        return download(&web.store, &job.name, filter, false).await;
    }
    let from = match (before, after) {
        (Some(_), Some(_)) => {
            return Err(WebError::bad("parameters before and after: give one of them"));
        }
        (before, None) => LogFrom::Before(before),
        (None, Some(after)) => LogFrom::After(after),
    };
    let page = web.store.log_page(&job.name, &filter, from, clamp(limit, 200, LOG_LINES)).await?;
    let (next_before, next_after) = match from {
        LogFrom::Before(_) => (page.next, None),
        LogFrom::After(_) => (None, page.next),
    };
    let lines = page.lines.into_iter().map(LogLineView::from).collect();
    Ok(HttpResponse::Ok().json(Log { lines, next_before, next_after }))
}

/// All output of a job, as text.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/log.txt", tag = "jobs", operation_id = "download_log",
    description = "What is kept of it, or all of it that is asked for, oldest first: each line is its instant (RFC 3339, UTC), its node, its stream and its \
        text, without colours. A line that begins with `#` stands before the first line of each run and names it.",
    params(
        ("job" = String, Path, description = "Its name."),
        ("run" = Option<String>, Query, description = "Only of the run with this id."),
        ("grep" = Option<String>, Query, description = "Only lines with this in their text, in capitals or not."),
        ("since" = Option<String>, Query, description = "RFC 3339: not before this."),
        ("until" = Option<String>, Query, description = "RFC 3339: before this.")),
    responses((status = 200, description = "The lines.", body = String, content_type = "text/plain")))]
pub async fn text(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    job: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &job)?;
    let Whole { run, grep, since, until } = query(&request)?;
    let filter = Sought { run, grep, since, until }.filter()?;
    download(&web.store, &job.name, filter, true).await
}

/// Whether `Accept` names text before JSON.
fn asks_for_text(request: &HttpRequest) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let mut named = accept.unwrap_or_default().split(',').filter_map(|range| {
        match range.split(';').next()?.trim() {
            "text/plain" => Some(true),
            "application/json" => Some(false),
            _ => None,
        }
    });
    named.next().unwrap_or(false)
}

async fn download(
    store: &Store,
    job: &JobName,
    filter: LogFilter,
    as_file: bool,
) -> Result<HttpResponse, WebError> {
    // Lines that come from now on are left for the next time: so it ends.
    let newest = store.log(job, None, 1).await?.last().map_or(0, |line| line.seq);
    let whole = Download {
        store: store.clone(),
        job: job.clone(),
        filter,
        newest,
        after: Some(0),
        run: None,
    };
    let parts = stream::unfold(whole, |mut whole| async move {
        match whole.next().await {
            Ok(None) => None,
            Ok(Some(text)) => Some((Ok(web::Bytes::from(text)), whole)),
            Err(error) => {
                tracing::warn!(%error, job = %whole.job, "a download of output was cut off");
                whole.after = None;
                Some((Err(WebError::from(error)), whole))
            }
        }
    });
    let mut answer = HttpResponse::Ok();
    answer.content_type("text/plain; charset=utf-8");
    if as_file {
        let name = format!("attachment; filename=\"{job}.log.txt\"");
        answer.insert_header((header::CONTENT_DISPOSITION, name));
    }
    Ok(answer.streaming(parts))
}

struct Download {
    store: Store,
    job: JobName,
    filter: LogFilter,
    /// The last line that is written.
    newest: u64,
    /// All lines up to this are written; `None`: nothing else is.
    after: Option<u64>,
    /// The run of the line that was written last.
    run: Option<RunId>,
}

impl Download {
    /// The next lines; `None` behind the last.
    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        while let Some(after) = self.after {
            let from = LogFrom::After(after);
            let page = self.store.log_page(&self.job, &self.filter, from, LOG_LINES).await?;
            self.after = page.next.filter(|next| *next < self.newest);
            let newest = self.newest;
            let lines = page.lines.iter().filter(|line| line.seq <= newest);
            let text = lines.fold(String::new(), |text, line| text + &self.line(line));
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    fn line(&mut self, line: &LogLine) -> String {
        let mut text = String::new();
        if self.run.as_ref() != Some(&line.run) {
            text = format!("# run {} on {}\n", visible(line.run.as_str()), line.node);
            self.run = Some(line.run.clone());
        }
        let plain = terminal::plain(&line.text);
        let (at, stream) = (iso(line.at), line.stream.as_str());
        text + &format!("{at} {} {stream:7} {}\n", line.node, visible(&plain))
    }
}
