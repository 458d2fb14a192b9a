//! `GET /api/v1/audit`: who did what, when, from where, why.

use actix_web::{HttpRequest, web};
use serde::{Deserialize, Serialize};

use super::{Answer, answer, clamp, query};
use crate::store::journal::Journal;
use crate::view::AuditView;
use crate::web::Web;

/// Acts, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Audit {
    /// The acts.
    pub entries: Vec<AuditView>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<u64>,
    before: Option<u64>,
    target: Option<String>,
}

/// The audit.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", operation_id = "list_audit",
    params(
        ("limit" = Option<u64>, Query, description = "How many: 1 to 500, 50 when absent; what is outside is moved inside."),
        ("before" = Option<u64>, Query, description = "Only acts with a smaller id."),
        ("target" = Option<String>, Query, description = "Only acts on this job, node or account.")),
    responses((status = 200, description = "The acts.", body = Audit)))]
pub async fn list(web: web::Data<Web>, request: HttpRequest) -> Answer<Audit> {
    let page: Page = query(&request)?;
    let limit = clamp(page.limit, 50, 500);
    let entries = web.store.audits(page.target.as_deref(), page.before, limit).await?;
    answer(Audit { entries: entries.into_iter().map(AuditView::from).collect() })
}
