//! What people see while the store is away and it is not known whether they may see more: what is wrong, and that the page
//! tries again by itself.
//!
//! Sessions are in the store. A person who was seen here in the last minutes is known and goes on looking at the old
//! picture (`auth`); to all others nothing is shown of jobs, nodes or addresses.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;

use super::{Frame, preferences, whole};
use crate::{Web, auth};
use soloist_view::words::{Language, say};

/// How soon the page tries again.
const AGAIN_SECONDS: u32 = 3;

#[derive(Template)]
#[template(path = "pages/away.html")]
pub(super) struct Away {
    pub(super) frame: Frame,
}

/// The page; 503, so that no program takes it for what was asked for.
#[must_use]
pub fn answer(web: &Web, request: &HttpRequest) -> HttpResponse {
    let lang = auth::preferred_language(request);
    let mut frame = of(lang, preferences::theme(request));
    frame.truth = web.live.bar_for_strangers(lang);
    HttpResponse::ServiceUnavailable()
        .insert_header((header::RETRY_AFTER, AGAIN_SECONDS))
        .content_type("text/html; charset=utf-8")
        .body(whole(&Away { frame }))
}

pub(super) fn of(lang: Language, theme: Option<String>) -> Frame {
    let mut frame = Frame::open(lang, theme, say(lang, "away-title", &[]));
    frame.refresh = Some(AGAIN_SECONDS);
    frame
}
