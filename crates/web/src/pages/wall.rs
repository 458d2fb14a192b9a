//! `GET /wall`: every job as a tile, for a screen on the wall that is read from five metres. It has no forms: no person acts
//! from there.
//!
//! The tiles are the rows of the dashboard, laid out otherwise, and follow by the same socket; `?group=` and `?state=` choose.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::dashboard::{Placed, placed};
use super::{Frame, html, picture};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::strip::Strip;
use crate::parts::{Row, RowViewer, Summary};
use crate::sieve::Sieve;
use soloist_view::JobView;
use soloist_view::words::say;

#[derive(Template)]
#[template(path = "pages/wall.html")]
pub(super) struct Wall<'a> {
    pub(super) frame: Frame,
    pub(super) epoch: String,
    pub(super) summary: Summary,
    /// What needs somebody and is no job.
    pub(super) needs: String,
    /// There are jobs, shown or not.
    pub(super) any: bool,
    pub(super) rows: Vec<Placed<'a>>,
}

/// Shows the wall.
///
/// # Errors
/// None: a store out of reach is shown, not failed on.
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    let lang = caller.language;
    let sieve = Sieve::of(request.query_string());
    // Before the pictures: what changes meanwhile is told once more.
    let mark = web.live.mark();
    let title = say(lang, "wall-title", &[]);
    let mut frame = Frame::of(&web, &caller, "wall", "/wall".to_owned(), title);
    let chosen = Some(sieve.query(sieve.only)).filter(|chosen| !chosen.is_empty());
    frame.rows = chosen.into_iter().chain([format!("have={mark}")]).collect::<Vec<_>>().join("&");
    let jobs = web.live.jobs_for(&caller);
    let views: Vec<JobView> = jobs.iter().map(|job| picture(&web, &caller, job)).collect();
    let shown = jobs.iter().zip(&views).enumerate().filter(|(_, (_, view))| sieve.shows(view));
    let rows = placed(shown.map(|(nth, (job, view))| {
        let place = sieve.place(view, nth, lang);
        let hour = web.history.hour(&job.name);
        let strip = hour.map(|(hour, now)| Strip::of(&hour, now, lang));
        let row = Row::new(view, RowViewer::default(), lang).with_strip(strip);
        (place.clone(), row.at(place))
    }));
    let (needs, others) = web.live.needs(lang);
    Ok(html(&Wall {
        needs,
        epoch: web.feed.epoch(),
        summary: Summary::new(views.iter(), &sieve, others, lang),
        any: !views.is_empty(),
        rows,
        frame,
    }))
}
