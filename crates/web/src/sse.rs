//! `GET /api/v1/live`: the frames of `/live` as Server-Sent Events (HTML standard, 9.2), for clients without WebSockets.
//!
//! A stream has a seat at the hub as a socket has, and asks for one frame after the other, only when the one before it was
//! taken: a slow reader costs one frame and gets the newest state. The client sends nothing; what is
//! followed stands in the address.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, header};
use actix_web::web::{Bytes, Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::auth::Caller;
use super::error::WebError;
use super::frames::Protocol;
use super::hub::{Admission, Seat, Work, check};
use super::sieve::Sieve;
use super::{Web, csrf};
use soloist_process::clock;

/// How often a comment is written: proxies cut what is silent, and a client that does not take it is gone.
const COMMENT_EVERY: Duration = Duration::from_secs(15);
/// After how many of them the session is checked again, because it may have grown too old.
const COMMENTS_PER_CHECK: u64 = 2;
/// After how many milliseconds a client comes back; each another number, or all would come at once.
const RETRY_MS: std::ops::RangeInclusive<u64> = 1_000..=5_000;

/// What happens, as it happens: `hello`, a `snapshot`, then `job`, `nodes`, `log` and `store` as on the WebSocket `/live`
/// (GET /api/v1/asyncapi.json has their schemas). Each event is one frame of JSON in `data`; its `id` is the epoch
/// and a number. `Last-Event-ID` is accepted, and a snapshot comes in any case.
#[utoipa::path(get, path = "/api/v1/live", tag = "live", operation_id = "stream_live",
    params(("follow" = Option<Vec<String>>, Query, description = "Jobs whose output is told too, at most 16; repeated, or with commas between.")),
    responses((status = 200, description = "Events, until the client hangs up, its login ends, or the node shuts down.", body = String, content_type = "text/event-stream")))]
pub async fn connect(
    web: Data<Web>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    if caller.by_session() {
        // A page of another site could not read it, but would use up the places of the person who is signed in.
        csrf::check_source(&web.config().public_url, request.headers())?;
    }
    let follows = follows(&request)?;
    for job in &follows {
        web.job(&caller, job)?;
    }
    let mut answer = HttpResponse::Ok();
    answer
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(("x-accel-buffering", "no"));
    if request.method() == Method::HEAD {
        return Ok(answer.finish());
    }
    let events = Events::open(web, caller)?;
    for job in &follows {
        events.web.live.follow(&events.seat, job, None)?;
    }
    Ok(answer.streaming(stream::unfold(events, |mut events| async move {
        let text = events.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), events))
    })))
}

/// The jobs that the address names.
fn follows(request: &HttpRequest) -> Result<Vec<String>, WebError> {
    let pairs = Query::<Vec<(String, String)>>::from_query(request.query_string())
        .map_err(|error| WebError::bad(format!("the query is not as expected: {error}")))?;
    let mut jobs = Vec::new();
    for (name, value) in pairs.into_inner() {
        if name != "follow" {
            let name: String = name.chars().take(64).collect();
            return Err(WebError::bad(format!(
                "the query is not as expected: unknown field {name:?}: use follow=JOB"
            )));
        }
        jobs.extend(
            value.split(',').map(|job| job.trim().to_owned()).filter(|job| !job.is_empty()),
        );
    }
    Ok(jobs)
}

/// One stream; its place and seat go with it.
struct Events {
    web: Data<Web>,
    seat: Arc<Seat>,
    woken: Arc<Notify>,
    caller: Caller,
    /// Events so far.
    number: u64,
    /// When the next comment is due.
    due: Instant,
    comments: u64,
    over: bool,
    _admission: Admission,
}

impl Drop for Events {
    /// Also when the client hung up.
    fn drop(&mut self) {
        self.web.live.leave(&self.seat);
    }
}

impl Events {
    fn open(web: Data<Web>, caller: Caller) -> Result<Self, WebError> {
        let admission = web.live.admit(&caller)?;
        let woken = Arc::new(Notify::new());
        let bell = Arc::clone(&woken);
        let wake = Box::new(move || {
            bell.notify_one();
            true
        });
        let seat = web.live.sit(caller.clone(), Protocol::Json, Sieve::default(), wake);
        Ok(Self {
            web,
            seat,
            woken,
            caller,
            number: 0,
            due: Instant::now() + COMMENT_EVERY,
            comments: 0,
            over: false,
            _admission: admission,
        })
    }

    /// What is written next; waits until there is something. `None`: the stream is over.
    async fn next(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        if self.number == 0 {
            let hello = self.web.live.hello();
            return Some(format!("{}{}", retry(), self.event(&hello)));
        }
        loop {
            if Instant::now() >= self.due {
                return Some(self.comment());
            }
            match self.web.live.next(&self.seat) {
                Some(Work::Frame { text, changed }) => {
                    if let Some(changed) = changed {
                        self.web.metrics.live_pushed(clock::boot().since(changed));
                    }
                    return Some(self.event(&text));
                }
                Some(Work::Close(goodbye)) => {
                    self.over = true;
                    return Some(format!(": {}\n{}\n", goodbye.reason, retry()));
                }
                None => tokio::select! {
                    () = self.woken.notified() => {}
                    () = sleep_until(self.due) => {}
                },
            }
        }
    }

    fn event(&mut self, frame: &str) -> String {
        self.number += 1;
        format!("id: {}:{}\ndata: {frame}\n\n", self.web.live.epoch(), self.number)
    }

    fn comment(&mut self) -> String {
        self.due = Instant::now() + COMMENT_EVERY;
        self.comments += 1;
        if self.comments.is_multiple_of(COMMENTS_PER_CHECK) {
            self.check_again();
        }
        ": still here\n\n".to_owned()
    }

    /// Whether the account still is what it was when it connected. The store may take its time: no request waits for it here.
    fn check_again(&self) {
        let (web, caller, seat) = (self.web.clone(), self.caller.clone(), Arc::clone(&self.seat));
        tokio::spawn(async move {
            if let Err(Some(goodbye)) = check(&web.identities, &web.store, &caller).await {
                web.live.dismiss(&seat, goodbye);
            }
        });
    }
}

fn retry() -> String {
    format!("retry: {}\n", rand::random_range(RETRY_MS))
}
