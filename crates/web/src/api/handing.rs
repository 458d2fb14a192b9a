//! Answers that carry something only their client has: tasks, a turn.
//!
//! Whether an answer left this node is known only to its body: the connection drops it before its end when the client is
//! gone. Then what it carries goes back.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use serde::Serialize;

use soloist_desk::waiting::{Errand, Hand};

/// An answer that carries a grant, unless it never leaves this node: then that goes back.
pub(super) fn handed<E: Errand>(value: &impl Serialize, hand: Option<Hand<E>>) -> HttpResponse {
    let json = serde_json::to_vec(value).map(Bytes::from);
    match (json, hand) {
        (Ok(json), Some(hand)) => {
            HttpResponse::Ok().content_type("application/json").body(Handing {
                length: json.len() as u64,
                json: Some(json),
                rested: false,
                delivered: Some(Box::new(|| hand.delivered())),
            })
        }
        (Ok(json), None) => HttpResponse::Ok().content_type("application/json").body(json),
        (Err(error), _) => {
            tracing::error!(%error, "an answer could not be written");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// A body that knows whether it was sent.
struct Handing {
    length: u64,
    json: Option<Bytes>,
    rested: bool,
    /// Says that it was; dropped unsaid, the grant goes back.
    delivered: Option<Box<dyn FnOnce()>>,
}

impl MessageBody for Handing {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.length)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        if let Some(json) = self.json.take() {
            return Poll::Ready(Some(Ok(json)));
        }
        // One round of the connection between the bytes and the end: it writes them, and learns of a client that is
        // gone. Then this is dropped before its end.
        if !std::mem::replace(&mut self.rested, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(delivered) = self.delivered.take() {
            delivered();
        }
        Poll::Ready(None)
    }
}
