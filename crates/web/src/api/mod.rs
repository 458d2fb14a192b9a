//! `/api/v1`: the calls about jobs, nodes, leases, dispatch and rotations, one file per noun.
//!
//! Here only what they share: reading a body and saying precisely what is wrong with it, clamping limits, and
//! answering with a job as the store has it after the caller's own write.

pub mod alerts;
pub mod audit;
pub mod claims;
pub mod collectors;
pub mod dead;
pub mod drill;
mod handing;
pub mod hold;
pub mod jobs;
pub mod leases;
pub mod log;
pub mod me;
pub mod moves;
pub mod nodes;
pub mod participation;
pub mod results;
pub mod rotations;
pub mod runs;
pub mod sessions;
pub mod sources;
pub mod status;
pub mod tasks;
pub mod ticks;
pub mod timeline;
pub mod tokens;
pub mod turns;
pub mod users;

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::web::Query;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Web;
use super::auth::Caller;
use super::error::WebError;
use soloist_config::JobConfig;
use soloist_process::clock;
use soloist_store::feed::Seen;
use soloist_store::jobs::Jobs;
use soloist_view::JobView;

/// Longest wait for work or for a turn.
const LONGEST_WAIT_MS: u64 = 30_000;
/// The largest token that every language reads exactly.
const LARGEST_TOKEN: u64 = (1 << 53) - 1;

/// Reads a JSON body that may be left out: an empty one counts as `{}`.
///
/// # Errors
/// As of [`read`].
pub fn read_if_any<T: DeserializeOwned>(body: &[u8]) -> Result<T, WebError> {
    read(if is_empty(body) { b"{}" } else { body })
}

fn is_empty(body: &[u8]) -> bool {
    body.iter().all(u8::is_ascii_whitespace)
}

/// Reads a JSON body.
///
/// # Errors
/// [`WebError::BadRequest`] that names line, column and field.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, WebError> {
    // Editors and PowerShell put a byte order mark before it; it says nothing (RFC 8259, section 8.1).
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    if is_empty(body) {
        // A PUT whose body was lost on the way would otherwise reset what it should change.
        return Err(WebError::bad(
            "the body is empty (line 1, column 1): send a JSON object, {} to leave everything out",
        ));
    }
    serde_json::from_slice(body).map_err(|error| {
        let mut what = error.to_string();
        if let Some(at) = what.rfind(" at line ") {
            what.truncate(at);
        }
        let (line, column) = (error.line(), error.column());
        let field = match error.classify() {
            // These name the field themselves, and what stands before them is another.
            _ if ["field", "unknown field", "missing field"]
                .iter()
                .any(|own| what.starts_with(own)) =>
            {
                None
            }
            serde_json::error::Category::Data => field_before(body, line, column),
            _ => None,
        };
        let place = match field {
            Some(field) if !what.contains(&format!("`{field}`")) => {
                format!("field {field}, line {line}, column {column}")
            }
            _ => format!("line {line}, column {column}"),
        };
        WebError::bad(format!("the body is not as expected ({place}): {what}"))
    })
}

/// The name of the member whose value ends near `line` and `column` (both from 1).
fn field_before(body: &[u8], line: usize, column: usize) -> Option<String> {
    let begins = body
        .split_inclusive(|byte| *byte == b'\n')
        .take(line.saturating_sub(1))
        .map(<[u8]>::len)
        .sum::<usize>();
    let read = std::str::from_utf8(body.get(..(begins + column).min(body.len()))?).ok()?;
    let colon = read.rfind("\":").or_else(|| read.rfind("\" :"))?;
    let name = &read[..colon];
    Some(name[name.rfind('"')? + 1..].chars().take(64).collect())
}

/// `?force=true`: also with what the refusal said would be lost.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Forced {
    force: Option<bool>,
}

/// `?expires=true`: also how long what was granted or extended lasts.
#[derive(Debug, Default, serde::Deserialize)]
struct Telling {
    expires: Option<bool>,
}

/// Reads the query of an address.
///
/// # Errors
/// [`WebError::BadRequest`].
pub fn query<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, WebError> {
    Query::<T>::from_query(request.query_string())
        .map(Query::into_inner)
        .map_err(|error| WebError::bad(format!("the query is not as expected: {error}")))
}

/// Parameters as they stand in an address, with `&` behind each; those without a text are left out.
#[must_use]
pub fn words<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a Option<String>)>) -> String {
    let given = parameters.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
    given.filter(|(_, text)| !text.is_empty()).fold(String::new(), |words, (name, text)| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
        let text = text.bytes().map(|byte| match byte {
            byte if plain(&byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        });
        format!("{words}{name}={}&", text.collect::<String>())
    })
}

/// `limit` as asked for, inside what is allowed.
#[must_use]
pub fn clamp(asked: Option<u64>, default: usize, most: usize) -> usize {
    asked.map_or(default, |asked| usize::try_from(asked).unwrap_or(most).clamp(1, most))
}

/// How long to wait, as `wait_ms` asks for; at once when it is left out.
fn patience(wait_ms: Option<u64>) -> Result<Duration, &'static str> {
    match wait_ms.unwrap_or(0) {
        ms if ms > LONGEST_WAIT_MS => Err("from 0 to 30000; ask again for longer"),
        ms => Ok(Duration::from_millis(ms)),
    }
}

/// A job as this node sees it.
///
/// # Errors
/// [`WebError::Unavailable`] before the first snapshot.
pub async fn seen(web: &Web, caller: &Caller, job: &JobConfig) -> Result<JobView, WebError> {
    match web.feed.job(&job.name) {
        Some(seen) => Ok(view(web, caller, job, &seen)),
        None => stored(web, caller, job).await,
    }
}

/// A job as the store has it now, so that callers see their own writes.
///
/// # Errors
/// [`WebError::Unavailable`].
pub async fn stored(web: &Web, caller: &Caller, job: &JobConfig) -> Result<JobView, WebError> {
    Ok(view(web, caller, job, &read_now(web, job).await?))
}

/// A record as the store has it now.
pub(crate) async fn read_now(web: &Web, job: &JobConfig) -> Result<Seen, WebError> {
    let confirmed = clock::boot();
    let snapshot = web.store.snapshot(std::slice::from_ref(&job.name)).await?;
    let record = snapshot.jobs.into_iter().next().ok_or_else(|| WebError::Internal {
        detail: format!("the store did not answer for {}", job.name),
    })?;
    let doubted_until = clock::boot() + snapshot.quarantine;
    let record = std::sync::Arc::new(record);
    let (at, progressed, ended_here) = (snapshot.at, None, None);
    let seen = Seen { record, at, confirmed, doubted_until, progressed, ended_here };
    Ok(seen.after(web.feed.job(&job.name).as_ref()))
}

fn view(web: &Web, caller: &Caller, job: &JobConfig, seen: &Seen) -> JobView {
    let (nodes, rotations) = (web.feed.nodes(), web.live.rotations());
    let rotations = rotations.as_ref().map(|views| &views[..]);
    JobView::of(seen, job, &nodes, rotations, caller.language, clock::boot())
        .with_names(&web.live.display_names())
}

/// An answer of nothing but this.
pub type Answer<T> = Result<actix_web::web::Json<T>, WebError>;

/// Wraps an answer.
///
/// # Errors
/// Never; the type is that of handlers.
pub fn answer<T: Serialize>(value: T) -> Answer<T> {
    Ok(actix_web::web::Json(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::participation::Switch;

    fn detail(body: &str) -> String {
        read::<Switch>(body.as_bytes()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_body_is_answered_with_the_place() {
        assert!(detail("{\"on\":}").contains("line 1, column 7"), "{}", detail("{\"on\":}"));
        let wrong = detail("{\n  \"reason\": \"x\",\n  \"on\": \"yes\"\n}");
        assert!(wrong.contains("field on, line 3, column 13"), "{wrong}");
        assert!(wrong.contains("expected a boolean"), "{wrong}");
        let unknown = detail("{\"on\":true,\"onn\":1}");
        assert!(unknown.contains("unknown field `onn`"), "{unknown}");
        assert!(!unknown.contains("(field "), "{unknown}");
        let nested = read::<ticks::RunBody>(br#"{"params":{"need":"1"},"bogus":1}"#);
        let nested = nested.unwrap_err().to_string();
        assert!(nested.contains("unknown field `bogus`") && !nested.contains("need"), "{nested}");
        assert!(detail("{}").contains("missing field `on`"));
        assert!(detail("[]").contains("line 1"));
        assert!(detail("\u{0}").contains("line 1"));
    }

    #[test]
    fn a_byte_order_mark_before_a_body_says_nothing() {
        assert!(read::<Switch>("\u{feff}{\"on\":true}".as_bytes()).unwrap().on);
        assert!(detail("\u{feff}").contains("the body is empty"));
        assert!(detail("\u{feff}\u{feff}{\"on\":true}").contains("line 1, column 1"));
    }

    #[test]
    fn limits_are_clamped() {
        assert_eq!(clamp(None, 50, 500), 50);
        assert_eq!(clamp(Some(0), 50, 500), 1);
        assert_eq!(clamp(Some(u64::MAX), 50, 500), 500);
    }
}
