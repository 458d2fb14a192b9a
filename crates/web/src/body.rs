//! The body of a request: it must come in time, whichever handler reads it.
//!
//! The door puts a clock around every body, so no handler needs one. What a handler leaves unread is kept until the answer
//! is out: then the framework closes the connection and does not wait for the rest. It reads nothing by itself.

use std::cell::RefCell;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::HttpMessage as _;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::connections::Connections;
use super::error::WebError;
use soloist_config::Doors;

/// When places run out, a body may pause this long...
const CROWDED_IDLE: Duration = Duration::from_secs(1);
/// ...and must be there after this long.
const CROWDED_TOTAL: Duration = Duration::from_secs(5);
/// How often a body that is waited for looks whether places run out.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the door keeps of a body.
pub(super) struct Watch(Rc<RefCell<Body>>);

struct Body {
    payload: Payload,
    connections: Connections,
    idle: Duration,
    total: Duration,
    begun: Instant,
    heard: Instant,
    /// Once the body was waited for: mostly it is there with the head.
    timer: Option<Pin<Box<Sleep>>>,
    whole: bool,
    late: bool,
}

impl Watch {
    /// Puts a clock around the body of `request`, if it has one.
    pub(super) fn of(
        request: &mut ServiceRequest,
        connections: &Connections,
        doors: &Doors,
    ) -> Option<Self> {
        let payload = request.take_payload();
        if matches!(payload, Payload::None) {
            return None;
        }
        // A live socket has no end; the hub knows its own clocks.
        if request.path() == "/live" && request.head().upgrade() {
            request.set_payload(payload);
            return None;
        }
        let now = Instant::now();
        let body = Rc::new(RefCell::new(Body {
            payload,
            connections: connections.clone(),
            idle: doors.body_idle,
            total: doors.body_total,
            begun: now,
            heard: now,
            timer: None,
            whole: false,
            late: false,
        }));
        let reading: Pin<Box<dyn Stream<Item = _>>> = Box::pin(Reading(Rc::clone(&body)));
        request.set_payload(Payload::Stream { payload: reading });
        Some(Self(body))
    }

    /// What to answer when it did not come in time.
    pub(super) fn too_late(&self) -> Option<WebError> {
        let body = self.0.borrow();
        body.late.then(|| {
            let (idle, total) = (body.idle.as_secs().max(1), body.total.as_secs().max(1));
            let times = [("idle", &*idle.to_string()), ("total", &*total.to_string())];
            WebError::told(StatusCode::REQUEST_TIMEOUT, "error-body-slow", &times)
        })
    }

    /// The answer's body, which keeps what was not read of the request until it is sent.
    pub(super) fn keep(self, answer: BoxBody) -> BoxBody {
        match self.0.borrow().whole {
            true => answer,
            false => BoxBody::new(Keeping { answer, _unread: Rc::clone(&self.0) }),
        }
    }
}

impl Body {
    /// Until when the next byte must be there.
    fn deadline(&self) -> Instant {
        let (idle, total) = match self.connections.is_crowded() {
            true => (self.idle.min(CROWDED_IDLE), self.total.min(CROWDED_TOTAL)),
            false => (self.idle, self.total),
        };
        (self.heard + idle).min(self.begun + total)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        if self.late {
            return Poll::Ready(None);
        }
        let next = Pin::new(&mut self.payload).poll_next(context);
        let now = Instant::now();
        match &next {
            Poll::Ready(None) => self.whole = true,
            Poll::Ready(Some(Ok(_))) => self.heard = now,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        // A body that trickles is never without a byte.
        let trickles = now >= self.begun + self.total && !self.whole;
        if next.is_ready() && !trickles {
            return next;
        }
        loop {
            let (now, deadline) = (Instant::now(), self.deadline());
            if now >= deadline {
                self.late = true;
                let late = io::Error::new(io::ErrorKind::TimedOut, "the body came too slowly");
                return Poll::Ready(Some(Err(PayloadError::Io(late))));
            }
            let wakes = deadline.min(now + LOOK_EVERY);
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(wakes)));
            timer.as_mut().reset(wakes);
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// What a handler reads.
struct Reading(Rc<RefCell<Body>>);

impl Stream for Reading {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.borrow_mut().poll(context)
    }
}

/// An answer to a request whose body was not read to its end.
struct Keeping {
    answer: BoxBody,
    _unread: Rc<RefCell<Body>>,
}

impl MessageBody for Keeping {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.answer.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.answer).poll_next(context)
    }
}
