//! `GET /rotations`: whose turn it is, who waits for what and why, and how the last turns went.
//!
//! It only shows, and removes (`remove.rs`): rules are defined by the forms of `ring.rs`, over HTTP or by `soloist rotation set`.
//! A turn ends by its holder's word or its lease, never by a button.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::{Frame, html};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::dispatch::more;
use crate::parts::rotation::{ROTATIONS_SHOWN, RotationRow, TURNS_SHOWN, TurnTotals};
use soloist_store::StoreError;
use soloist_store::rotation::Rotations;
use soloist_view::words::{Arg, say};

#[derive(Template)]
#[template(path = "pages/rotations.html")]
pub(super) struct RotationsPage<'a> {
    pub(super) frame: Frame,
    pub(super) trouble: Option<String>,
    pub(super) totals: TurnTotals,
    pub(super) rows: Vec<RotationRow<'a>>,
    /// How many rotations are left out.
    pub(super) more: Option<String>,
    /// Whether the reader may remove rotations.
    pub(super) removes: bool,
    /// The address in the commands of the empty page.
    pub(super) url: String,
    /// Whose token they make.
    pub(super) user: String,
}

/// Shows every rotation.
///
/// # Errors
/// [`WebError::Internal`]; a store out of reach is shown, not failed on.
pub async fn page(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let title = say(lang, "rotations-title", &[]);
    let mut frame = Frame::of(&web, &caller, "rotations", "/rotations".to_owned(), title);
    let (mut views, failed) = match web.store.rotations(None, TURNS_SHOWN).await {
        Ok(views) => (views, None),
        Err(error @ StoreError::Unavailable(_)) => {
            (web.live.last_rotations(), Some(error.to_string()))
        }
        Err(error) => return Err(error.into()),
    };
    let hidden = web.live.hidden_from(Some(&caller));
    views.retain(|view| !hidden.has_ring(view));
    // The clock that every countdown of this page was made by.
    if let Some(view) = views.first().filter(|_| failed.is_none()) {
        frame.now = Some(view.now.floor());
    }
    let refused = || web.turns.store().err().map(|refusal| refusal.to_string());
    let trouble = failed.or_else(|| web.feed.trouble()).or_else(refused);
    let rows = views.iter().take(ROTATIONS_SHOWN).map(|view| RotationRow::new(view, lang));
    Ok(html(&RotationsPage {
        trouble: trouble.map(|detail| say(lang, "store-trouble", &[("detail", Arg::from(detail))])),
        totals: TurnTotals::new(views.iter(), lang),
        rows: rows.collect(),
        more: more(lang, "rotations-more", views.len().saturating_sub(ROTATIONS_SHOWN)),
        removes: caller.is_operator(),
        url: web.config().public_url.clone(),
        user: caller.user.to_string(),
        frame,
    }))
}
