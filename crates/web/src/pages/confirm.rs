//! The page between a form and an act that ends something, for those without JavaScript.

use actix_web::HttpResponse;
use askama::Template;

use super::{Frame, html, local};

/// A question and the form that answers it.
#[derive(Template)]
#[template(path = "pages/confirm.html")]
pub(super) struct Confirm {
    pub(super) frame: Frame,
    pub(super) text: String,
    /// Where the form goes again, with `confirm=yes` and these fields.
    pub(super) action: String,
    pub(super) fields: Vec<(&'static str, String)>,
    /// Asks why.
    pub(super) asks: bool,
    pub(super) yes: String,
    pub(super) no: String,
    /// Where "no" goes.
    pub(super) back: String,
}

impl Confirm {
    /// Only a page of ours, whatever the form said.
    fn no_goes(&self) -> &str {
        local(&self.back)
    }

    pub(super) fn answer(&self) -> HttpResponse {
        html(self)
    }
}
