//! The page of an error: what went wrong and what to do.

use askama::Template;

use super::Frame;
use crate::web::parts;
use crate::words::Language;

#[derive(Template)]
#[template(path = "pages/error.html")]
pub(super) struct ErrorPage<'a> {
    pub(super) frame: Frame,
    pub(super) status: u16,
    pub(super) detail: &'a str,
}

/// The page for `status`.
#[must_use]
pub fn render(status: u16, title: &str, detail: &str, lang: Language) -> String {
    let frame = Frame::open(lang, None, title.to_owned());
    parts::render(&ErrorPage { frame, status, detail })
}
