//! `GET /`: every job, one row each.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::{Frame, html, picture, rings, viewer};
use crate::view::JobView;
use crate::web::Web;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::web::parts::strip::Strip;
use crate::web::parts::{Row, Summary};
use crate::words::say;

#[derive(Template)]
#[template(path = "pages/dashboard.html")]
pub(super) struct Dashboard<'a> {
    pub(super) frame: Frame,
    pub(super) epoch: String,
    pub(super) summary: Summary,
    pub(super) rows: Vec<Placed<'a>>,
}

/// A row, and the heading of its group if it is the first of that.
pub(super) struct Placed<'a> {
    pub(super) heading: Option<String>,
    pub(super) row: Row<'a>,
}

/// Rows in the order of their jobs, each with the heading that stands before it.
pub(super) fn placed<'a>(rows: impl Iterator<Item = (&'a JobView, Row<'a>)>) -> Vec<Placed<'a>> {
    let mut last: Option<&String> = None;
    rows.map(|(job, row)| {
        let before = std::mem::replace(&mut last, job.group.as_ref());
        Placed { heading: last.filter(|group| before != Some(*group)).cloned(), row }
    })
    .collect()
}

/// Shows the dashboard.
///
/// # Errors
/// None: a store out of reach is shown, not failed on.
pub async fn page(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    let title = say(caller.language, "nav-jobs", &[]);
    let frame = Frame::of(&web, &caller, "jobs", "/".to_owned(), title);
    let jobs = web.live.jobs_for(&caller);
    let views: Vec<_> = jobs.iter().map(|job| (job, picture(&web, &caller, job))).collect();
    let mut rings = rings(&web, &caller, &jobs).await;
    let rows = placed(views.iter().map(|(job, view)| {
        let row = Row::new(view, viewer(&caller, job, view), caller.language);
        let hour = web.history.hour(&job.name);
        let strip = hour.map(|(hour, now)| Strip::of(&hour, now, caller.language));
        (view, row.with_ring(rings.remove(&job.name)).with_strip(strip))
    }));
    let jobs: Vec<_> = views.iter().map(|(_, view)| view.clone()).collect();
    Ok(html(&Dashboard {
        epoch: web.feed.epoch(),
        summary: Summary::new(&jobs, caller.language),
        rows,
        frame,
    }))
}
