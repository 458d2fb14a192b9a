//! The page of an error: what went wrong and what to do, in the reader's language, with the way back.

use actix_web::{HttpRequest, ResponseError as _};
use askama::Template;

use super::{Frame, preferences, whole};
use crate::Web;
use crate::auth::{self, Caller};
use crate::error::WebError;
use soloist_view::words::say;

#[derive(Template)]
#[template(path = "pages/error.html")]
pub(super) struct ErrorPage {
    pub(super) frame: Frame,
    pub(super) status: u16,
    pub(super) text: String,
    /// What is known in English only.
    pub(super) detail: Option<String>,
}

/// The page for `error`; with the navigation for a person who is signed in.
#[must_use]
pub fn render(
    web: &Web,
    request: &HttpRequest,
    reader: Option<&Caller>,
    error: &WebError,
) -> String {
    let lang = reader.map_or_else(|| auth::preferred_language(request), |reader| reader.language);
    let title = say(lang, error.heading(), &[]);
    let frame = match reader {
        // Not the address itself: it may be that of a form.
        Some(reader) => Frame::of(web, reader, "", "/".to_owned(), title),
        None => Frame::open(lang, preferences::theme(request), title),
    };
    whole(&of(frame, error))
}

pub(super) fn of(frame: Frame, error: &WebError) -> ErrorPage {
    let (text, detail) = error.for_people(frame.lang);
    ErrorPage { status: error.status_code().as_u16(), text, detail, frame }
}
