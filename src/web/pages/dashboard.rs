//! `GET /`: every job, one row each.

use actix_web::{HttpResponse, web};
use askama::Template;

use super::{Frame, html, picture, rings, viewer};
use crate::web::Web;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::web::parts::{Row, Summary};
use crate::words::say;

#[derive(Template)]
#[template(path = "pages/dashboard.html")]
pub(super) struct Dashboard<'a> {
    pub(super) frame: Frame,
    pub(super) epoch: String,
    pub(super) summary: Summary,
    pub(super) rows: Vec<Row<'a>>,
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
    let rows = views
        .iter()
        .map(|(job, view)| {
            Row::new(view, viewer(&caller, job, view), caller.language)
                .with_ring(rings.remove(&job.name))
        })
        .collect();
    let jobs: Vec<_> = views.iter().map(|(_, view)| view.clone()).collect();
    Ok(html(&Dashboard {
        epoch: web.feed.epoch(),
        summary: Summary::new(&jobs, caller.language),
        rows,
        frame,
    }))
}
