//! `GET /audit`: who did what, when, from where, why.

use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::{Frame, html};
use crate::store::journal::{AuditEntry, Journal};
use crate::web::Web;
use crate::web::auth::Caller;
use crate::web::error::WebError;
use crate::words::{Piece, day_clock, say};

/// Entries on a page.
const ENTRIES: usize = 50;

#[derive(Template)]
#[template(path = "pages/audit.html")]
pub(super) struct AuditPage {
    pub(super) frame: Frame,
    pub(super) entries: Vec<Entry>,
    /// Where the next page begins.
    pub(super) older: Option<u64>,
    /// This is not the first page.
    pub(super) paged: bool,
}

/// One act.
pub(super) struct Entry {
    pub(super) at: Vec<Piece>,
    pub(super) who: String,
    pub(super) from: String,
    pub(super) act: String,
    pub(super) target: String,
    pub(super) reason: String,
}

impl From<AuditEntry> for Entry {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: vec![day_clock(entry.at)],
            who: entry.who,
            from: entry.from,
            act: entry.act,
            target: entry.target,
            reason: entry.reason.unwrap_or_default(),
        }
    }
}

/// `?before=`.
#[derive(Debug, Deserialize)]
pub struct Query {
    /// Only entries with a lower id.
    pub before: Option<u64>,
}

/// Shows a page of the audit.
///
/// # Errors
/// [`WebError::Unavailable`].
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    query: web::Query<Query>,
) -> Result<HttpResponse, WebError> {
    let mut entries = web.store.audits(None, query.before, ENTRIES + 1).await?;
    let more = entries.len() > ENTRIES;
    entries.truncate(ENTRIES);
    let title = say(caller.language, "audit-title", &[]);
    Ok(html(&AuditPage {
        frame: Frame::of(&web, &caller, "audit", "/audit".to_owned(), title),
        older: entries.last().filter(|_| more).map(|entry| entry.id),
        paged: query.before.is_some(),
        entries: entries.into_iter().map(Entry::from).collect(),
    }))
}
