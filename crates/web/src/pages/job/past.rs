//! `GET /jobs/{job}/audit`: what people and programs did to one job, in sentences.

use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::super::audit::{Entry, of_job};
use super::super::{Frame, html};
use super::tabs::Tabs;
use crate::Web;
use crate::api::audit::sight;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_store::StoreError;
use soloist_store::journal::{AuditFilter, AuditPage, Journal as _};
use soloist_view::words::Piece;

/// Entries on a page.
const ENTRIES: usize = 50;

#[derive(Template)]
#[template(path = "pages/job_audit.html")]
pub(in crate::pages) struct PastPage {
    pub(in crate::pages) frame: Frame,
    pub(in crate::pages) tabs: Tabs,
    /// It could not be read.
    pub(in crate::pages) unread: bool,
    pub(in crate::pages) entries: Vec<Entry>,
    pub(in crate::pages) older: Option<String>,
    /// This is not the first page.
    pub(in crate::pages) paged: bool,
    pub(in crate::pages) csv: String,
}

/// `?before=`: only entries older than this one.
#[derive(Debug, Deserialize)]
pub struct Wanted {
    before: Option<u64>,
}

/// Shows what was done to a job.
///
/// # Errors
/// [`WebError::NotFound`]; none of the store's being away: that is shown, not failed on.
pub async fn past(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    wanted: web::Query<Wanted>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &name)?;
    let (lang, path) = (caller.language, format!("/jobs/{}/audit", job.name));
    let tabs = Tabs::new(&job, "audit", lang);
    let frame = Frame::of(&web, &caller, "jobs", path.clone(), tabs.title.clone());
    let sight = sight(&web, &caller).await;
    let target = Some(job.name.to_string());
    let filter = sight.narrow(AuditFilter { target, ..AuditFilter::default() })?;
    let (page, unread) = match web.store.audit_page(&filter, wanted.before, ENTRIES).await {
        Ok(page) => (page, false),
        Err(StoreError::Unavailable(_)) => (AuditPage::default(), true),
        Err(error) => return Err(error.into()),
    };
    // Something else may have the name of the job.
    let own = page.entries.into_iter().filter(|entry| of_job(&entry.act));
    let entries = own.map(|entry| Entry::seen(entry, Some(&tabs.title), &sight, lang));
    Ok(html(&PastPage {
        entries: entries.collect(),
        older: page.next.map(|next| format!("{path}?before={next}")),
        paged: wanted.before.is_some(),
        csv: format!("/api/v1/audit?target={}&format=csv", job.name),
        unread,
        tabs,
        frame,
    }))
}
