//! `GET /live`: the sockets. The only file that knows which crate speaks WebSocket, so that another
//! crate can take its place.
//!
//! actix-web-actors stops polling a socket, and with it every timer, while its client does not read; its queue and
//! its frame buffer have no bound. So nothing is queued here: a socket asks the hub for one frame after the other,
//! only while little is unconfirmed (pings are the receipts), [`Gate`] refuses a large frame before it is buffered,
//! and TCP_USER_TIMEOUT frees what is jammed.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Handler, Message,
    StreamHandler, WrapFuture as _,
};
use actix_http::ws::Item;
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{StatusCode, Version};
use actix_web::{HttpRequest, HttpResponse, web};
use actix_web_actors::ws::{self, CloseCode, CloseReason, ProtocolError, WebsocketContext};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::BytesMut;
use serde_json::Value;

use super::auth::Caller;
use super::error::WebError;
use super::frames::{self, HTML_PROTOCOL, JSON_PROTOCOL, Protocol};
use super::gate::{FRAME_MAX, Gate};
use super::hub::{Admission, Goodbye, Hub, Look, Seat, Work, check};
use super::parts::dispatch::Extent;
use super::sieve::Sieve;
use super::wire::{Following, Said, Switch};
use super::{Web, cors, csrf, refused};
use soloist_domain::detail::Detail;
use soloist_domain::time::Boot;
use soloist_ops::jobs;
use soloist_process::clock;

/// Most frames a client may send in a second.
const FRAMES_PER_SECOND: u32 = 50;
/// Bytes after which a receipt (a pong) is asked for.
const RECEIPT_AFTER: usize = 16 * 1024;
/// Bytes without a receipt after which nothing more is written.
const CREDIT: usize = 64 * 1024;
/// How often a socket looks after itself.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A client silent for this long is pinged.
const PING_AFTER: Duration = Duration::from_secs(7);
/// A ping unanswered for this long ends the connection. With the two above: gone within 20 s.
const ANSWER_WITHIN: Duration = Duration::from_millis(7_500);
/// How often the session is checked again, because it may have grown too old. What ends it sooner is said by the store.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// How long the client's answer to a close is waited for.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

const TOO_LARGE: Goodbye = Goodbye { code: 1009, reason: "a frame may have at most 4 KiB" };
const TOO_MANY: Goodbye = Goodbye { code: 1008, reason: "at most 50 frames a second" };
const NOT_JSON: Goodbye = Goodbye { code: 1007, reason: "a frame must be a JSON object" };
const NOT_TEXT: Goodbye = Goodbye { code: 1003, reason: "only text frames are understood" };
const UNKNOWN: Goodbye =
    Goodbye { code: 1003, reason: "type must be participation, follow or unfollow" };
const BROKEN: Goodbye = Goodbye { code: 1002, reason: "not WebSocket (RFC 6455)" };
const SILENT: Goodbye = Goodbye { code: 1001, reason: "no answer to a ping" };

/// `GET /live`.
///
/// # Errors
/// [`WebError::Forbidden`] for a foreign origin, [`WebError::TooMany`] and [`WebError::Unavailable`] at a cap,
/// [`WebError::BadRequest`] when it is no WebSocket handshake.
pub async fn connect(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, WebError> {
    check_handshake(&request)?;
    check_origin(&web, &caller, &request)?;
    let admission = web.live.admit(&caller)?;
    let overflow = Rc::new(Cell::new(false));
    let gate = Gate::new(payload, Rc::clone(&overflow));
    let foreign = cors::front_end(&web.config(), request.headers()).is_some();
    // Fragments are of our pages, which neither another origin nor a token for some names may have.
    let known: &[&'static str] = match foreign || caller.bound.names_any() {
        true => &[JSON_PROTOCOL],
        false => &[JSON_PROTOCOL, HTML_PROTOCOL],
    };
    let asked = asked_protocol(&request, known);
    let protocol = if asked == Some(HTML_PROTOCOL) { Protocol::Html } else { Protocol::Json };
    let sieve = Sieve::of(request.query_string());
    let socket = Socket::new(web, caller, (protocol, sieve), admission, overflow);
    let mut answer = ws::WsResponseBuilder::new(socket, &request, gate)
        .frame_size(FRAME_MAX)
        .start()
        .map_err(|error| WebError::bad(format!("this address speaks WebSocket only: {error}")))?;
    if let Some(name) = asked {
        let name = HeaderValue::from_static(name);
        answer.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    }
    Ok(answer)
}

/// What RFC 6455 asks of a handshake and the library does not; what else is wrong with one it says itself.
fn check_handshake(request: &HttpRequest) -> Result<(), WebError> {
    let lines = |name| request.headers().get_all(name).map(|line| line.as_bytes().trim_ascii());
    if lines(header::UPGRADE).next().is_none() {
        return Ok(());
    }
    if request.version() < Version::HTTP_11 {
        return Err(WebError::bad(
            "a WebSocket begins with HTTP/1.1, and this came by HTTP/1.0: have the proxy in between speak HTTP/1.1 (nginx: proxy_http_version 1.1)",
        ));
    }
    // Behind another name in the list the library would speak WebSocket in chunks of HTTP.
    if !lines(header::UPGRADE).all(|line| line.eq_ignore_ascii_case(b"websocket")) {
        return Err(WebError::bad("the header Upgrade must say websocket and nothing else"));
    }
    if lines(header::SEC_WEBSOCKET_VERSION).any(|line| line != b"13") {
        return Err(WebError::told(StatusCode::UPGRADE_REQUIRED, "error-socket-version", &[]));
    }
    let whole = |line: &[u8]| BASE64.decode(line).is_ok_and(|key| key.len() == 16);
    if !lines(header::SEC_WEBSOCKET_KEY).all(whole) {
        return Err(WebError::bad("the header Sec-WebSocket-Key must be 16 bytes in Base64"));
    }
    Ok(())
}

/// Browsers always send an origin, and scripts on foreign pages cannot change it: it is what keeps them from using
/// a session. A program with a token has none; a front end on an origin that is allowed has a token.
fn check_origin(web: &Web, caller: &Caller, request: &HttpRequest) -> Result<(), WebError> {
    match csrf::origin(request.headers()) {
        Some(origin) if csrf::is_ours(&web.config().public_url, origin) => Ok(()),
        None if !caller.by_session() => Ok(()),
        Some(_) if cors::front_end(&web.config(), request.headers()).is_some() => {
            match caller.by_session() {
                false => Ok(()),
                true => Err(WebError::forbidden(
                    "a page of another origin connects with a token, not with a cookie: offer the subprotocols soloist.v1 and bearer.TOKEN",
                )),
            }
        }
        _ => Err(WebError::forbidden(format!(
            "live connections are for pages of {} only: open that address (or correct public_url or allowed_origins)",
            web.config().public_url
        ))),
    }
}

/// The first protocol asked for that is in `known`, in whichever line it stands; JSON when none is.
fn asked_protocol(request: &HttpRequest, known: &[&'static str]) -> Option<&'static str> {
    let lines = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let mut asked = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    asked.find_map(|asked| known.iter().find(|name| **name == asked.trim()).copied())
}

/// There is work at the hub.
#[derive(Message)]
#[rtype(result = "()")]
struct Nudge;

struct Socket {
    web: web::Data<Web>,
    hub: Arc<Hub>,
    caller: Caller,
    protocol: Protocol,
    sieve: Sieve,
    seat: Option<Arc<Seat>>,
    admission: Option<Admission>,
    overflow: Rc<Cell<bool>>,
    /// When the newest frame came from the client.
    heard: Boot,
    /// When the ping was sent that has no answer yet, and what was unconfirmed then.
    ping: Option<(Boot, usize)>,
    /// Bytes written for which there is no receipt.
    unconfirmed: usize,
    second: (Boot, u32),
    fragments: Option<BytesMut>,
    checked: Boot,
    closing: bool,
}

type Ctx = WebsocketContext<Socket>;

impl Socket {
    fn new(
        web: web::Data<Web>,
        caller: Caller,
        (protocol, sieve): (Protocol, Sieve),
        admission: Admission,
        overflow: Rc<Cell<bool>>,
    ) -> Self {
        let now = clock::boot();
        Self {
            hub: Arc::clone(&web.live),
            web,
            caller,
            protocol,
            sieve,
            seat: None,
            admission: Some(admission),
            overflow,
            heard: now,
            ping: None,
            unconfirmed: 0,
            second: (now, 0),
            fragments: None,
            checked: now,
            closing: false,
        }
    }

    /// Writes what there is to tell, as far as the credit reaches.
    fn flush(&mut self, ctx: &mut Ctx) {
        let Some(seat) = self.seat.clone() else { return };
        while !self.closing && self.unconfirmed < CREDIT {
            match self.hub.next(&seat) {
                None => break,
                Some(Work::Close(goodbye)) => self.close(goodbye, ctx),
                Some(Work::Frame { text, changed }) => {
                    self.write(text, ctx);
                    if let Some(changed) = changed {
                        self.web.metrics.live_pushed(clock::boot().since(changed));
                    }
                }
            }
        }
    }

    fn write(&mut self, text: String, ctx: &mut Ctx) {
        self.unconfirmed += text.len();
        ctx.text(text);
        if self.unconfirmed >= RECEIPT_AFTER {
            self.ask_receipt(ctx);
        }
    }

    fn ask_receipt(&mut self, ctx: &mut Ctx) {
        if self.ping.is_none() {
            self.ping = Some((clock::boot(), self.unconfirmed));
            ctx.ping(b"");
        }
    }

    fn close(&mut self, goodbye: Goodbye, ctx: &mut Ctx) {
        if self.closing {
            return;
        }
        self.closing = true;
        let reason = goodbye.reason.to_owned();
        ctx.close(Some(CloseReason {
            code: CloseCode::from(goodbye.code),
            description: Some(reason),
        }));
        // A connection cut at once may lose the close frame; one that lingers for ever costs.
        ctx.run_later(CLOSE_WITHIN, |_, ctx| ctx.stop());
    }

    fn look_after(&mut self, ctx: &mut Ctx) {
        if self.closing {
            return;
        }
        let now = clock::boot();
        match self.ping {
            Some((sent, _)) if now.since(sent) > ANSWER_WITHIN => {
                self.close(SILENT, ctx);
                ctx.stop();
                return;
            }
            None if now.since(self.heard) > PING_AFTER => self.ask_receipt(ctx),
            _ => {}
        }
        if now.since(self.checked) > CHECK_EVERY {
            self.checked = now;
            self.check_again(ctx);
        }
        self.flush(ctx);
    }

    /// Whether the account still is what it was when it connected.
    fn check_again(&mut self, ctx: &mut Ctx) {
        let (web, caller) = (self.web.clone(), self.caller.clone());
        let checked = async move { check(&web.identities, &web.store, &caller).await };
        ctx.spawn(checked.into_actor(self).map(|result, socket, ctx| {
            if let Err(Some(goodbye)) = result {
                socket.close(goodbye, ctx);
            }
        }));
    }

    fn counts(&mut self, ctx: &mut Ctx) -> bool {
        let now = clock::boot();
        if now.since(self.second.0) >= Duration::from_secs(1) {
            self.second = (now, 0);
        }
        self.second.1 += 1;
        if self.second.1 > FRAMES_PER_SECOND {
            self.close(TOO_MANY, ctx);
            return false;
        }
        true
    }

    fn hear(&mut self, text: &[u8], ctx: &mut Ctx) {
        let Ok(value) = serde_json::from_slice::<Value>(text) else {
            return self.close(NOT_JSON, ctx);
        };
        let Some(kind) = value.as_object().map(|object| object.get("type")) else {
            return self.close(NOT_JSON, ctx);
        };
        if !matches!(kind.and_then(Value::as_str), Some("participation" | "follow" | "unfollow")) {
            return self.close(UNKNOWN, ctx);
        }
        let id = value.get("id").cloned().unwrap_or(Value::Null);
        match serde_json::from_value(value) {
            Ok(Said::Participation(switch)) => self.participate(id, switch, ctx),
            Ok(Said::Follow(what)) => self.follow(&id, &what, true, ctx),
            Ok(Said::Unfollow(what)) => self.follow(&id, &what, false, ctx),
            Err(error) => self.reply(&id, Err(WebError::bad(error.to_string())), ctx),
        }
    }

    fn follow(&mut self, id: &Value, what: &Following, on: bool, ctx: &mut Ctx) {
        let done = match (&self.seat, &what.job) {
            (None, _) => Ok(()),
            (Some(seat), _) if what.dispatch => {
                let extent = if what.all { Extent::All } else { Extent::Some };
                self.hub.follow_dispatch(seat, extent, on);
                Ok(())
            }
            (Some(_), _) if what.rings && self.protocol == Protocol::Json => Err(WebError::bad(
                "field rings: only pages have rings: follow with \"rotations\": true",
            )),
            (Some(seat), _) if what.rotations || what.rings => {
                let look = if what.rotations { Look::Whole } else { Look::Rings };
                self.hub.follow_rotations(seat, look, on);
                Ok(())
            }
            (Some(_), None) => Err(WebError::bad("missing field `job`")),
            (Some(seat), Some(job)) if on => self.hub.follow(seat, job, what.after),
            (Some(seat), Some(job)) => self.hub.unfollow(seat, job),
        };
        self.reply_if_asked(id, done, ctx);
    }

    fn participate(&mut self, id: Value, switch: Switch, ctx: &mut Ctx) {
        let (web, caller) = (self.web.clone(), self.caller.clone());
        let act = async move {
            // What counts is who they are now, not who they were when they connected.
            if let Err(goodbye) = check(&web.identities, &web.store, &caller).await {
                return Err((WebError::Unauthorized, goodbye));
            }
            let done = switch_job(&web, &caller, &switch).await;
            if let Err(WebError::Forbidden { detail }) = &done {
                let what = format!("participation {}", switch.job);
                refused::note_frame(&web, &caller, &what, detail.text()).await;
            }
            done.map_err(|error| (error, None))
        };
        ctx.spawn(act.into_actor(self).map(move |result, socket, ctx| match result {
            Ok(()) => socket.reply(&id, Ok(()), ctx),
            Err((_, Some(goodbye))) => socket.close(goodbye, ctx),
            Err((WebError::Unauthorized, None)) => socket.reply(&id, Err(out_of_reach()), ctx),
            Err((error, None)) => socket.reply(&id, Err(error), ctx),
        }));
    }

    fn reply_if_asked(&mut self, id: &Value, result: Result<(), WebError>, ctx: &mut Ctx) {
        if result.is_err() || !id.is_null() {
            self.reply(id, result, ctx);
        }
        self.flush(ctx);
    }

    fn reply(&mut self, id: &Value, result: Result<(), WebError>, ctx: &mut Ctx) {
        if self.closing {
            return;
        }
        if self.unconfirmed > CREDIT * 2 {
            // Asks and asks, and never reads the answers.
            return self.close(TOO_MANY, ctx);
        }
        let detail = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let result = result.map_err(|error| error.word());
        let text = frames::reply_frame(id, result.map_err(|word| (word, detail.as_str())));
        self.write(text, ctx);
    }

    fn fragment(&mut self, item: Item, ctx: &mut Ctx) {
        let (bytes, last) = match item {
            Item::FirstBinary(_) => return self.close(NOT_TEXT, ctx),
            Item::FirstText(bytes) => {
                self.fragments = Some(BytesMut::new());
                (bytes, false)
            }
            Item::Continue(bytes) => (bytes, false),
            Item::Last(bytes) => (bytes, true),
        };
        let Some(fragments) = &mut self.fragments else { return self.close(BROKEN, ctx) };
        if fragments.len() + bytes.len() > FRAME_MAX {
            return self.close(TOO_LARGE, ctx);
        }
        fragments.extend_from_slice(&bytes);
        if last && let Some(whole) = self.fragments.take() {
            self.hear(&whole, ctx);
        }
    }
}

async fn switch_job(web: &Web, caller: &Caller, switch: &Switch) -> Result<(), WebError> {
    let Switch { job, on, reason, user } = switch;
    let (actor, job) = (caller.actor(), web.job(caller, job)?);
    let (user, reason) = (user.as_deref(), reason.as_deref());
    jobs::participate(&web.store, &actor, &job, user, *on, reason).await?;
    Ok(())
}

fn out_of_reach() -> WebError {
    WebError::Unavailable {
        detail: Detail::new("the store is not reachable: try again in a moment")
            .told("refused-store-away", &[]),
        retry_after: 1,
    }
}

impl Actor for Socket {
    type Context = Ctx;

    fn started(&mut self, ctx: &mut Ctx) {
        self.write(self.hub.hello(), ctx);
        let address = ctx.address();
        let wake = Box::new(move || address.try_send(Nudge).is_ok());
        self.seat =
            Some(self.hub.sit(self.caller.clone(), self.protocol, self.sieve.clone(), wake));
        ctx.run_interval(LOOK_EVERY, Self::look_after);
    }
}

impl Drop for Socket {
    /// Also when the connection was cut and the client sent no close.
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.hub.leave(&seat);
        }
        self.admission.take();
    }
}

impl Handler<Nudge> for Socket {
    type Result = ();

    fn handle(&mut self, _: Nudge, ctx: &mut Ctx) {
        self.flush(ctx);
    }
}

impl StreamHandler<Result<ws::Message, ProtocolError>> for Socket {
    fn handle(&mut self, message: Result<ws::Message, ProtocolError>, ctx: &mut Ctx) {
        self.heard = clock::boot();
        if self.closing {
            if matches!(message, Ok(ws::Message::Close(_)) | Err(_)) {
                ctx.stop();
            }
            return;
        }
        match message {
            Ok(ws::Message::Pong(_)) => {
                if let Some((_, confirmed)) = self.ping.take() {
                    self.unconfirmed = self.unconfirmed.saturating_sub(confirmed);
                    if self.unconfirmed >= RECEIPT_AFTER {
                        self.ask_receipt(ctx);
                    }
                }
                self.flush(ctx);
            }
            Ok(_) if !self.counts(ctx) => {}
            Ok(ws::Message::Ping(payload)) => ctx.pong(&payload),
            Ok(ws::Message::Text(text)) => self.hear(text.as_bytes(), ctx),
            Ok(ws::Message::Continuation(item)) => self.fragment(item, ctx),
            Ok(ws::Message::Binary(_)) => self.close(NOT_TEXT, ctx),
            Ok(ws::Message::Close(reason)) => {
                self.closing = true;
                ctx.close(reason);
                ctx.stop();
            }
            Ok(ws::Message::Nop) => {}
            Err(_) if self.overflow.get() => self.close(TOO_LARGE, ctx),
            Err(error) => {
                let goodbye = match error {
                    ProtocolError::Overflow => TOO_LARGE,
                    // The crate reports text that is not UTF-8 as an IO error.
                    ProtocolError::Io(_) => NOT_JSON,
                    _ => BROKEN,
                };
                self.close(goodbye, ctx);
                // The parser does not get past what it could not read.
                ctx.stop();
            }
        }
    }

    fn finished(&mut self, ctx: &mut Ctx) {
        ctx.stop();
    }
}
