//! The audit, a page at a time; and all of it.

use serde::Deserialize;

use super::Office;
use soloist_remote::{Call, Stream, address};
use soloist_store::journal::{AuditFilter, Journal as _};
use soloist_view::AuditView;
use soloist_view::words::iso;

use super::super::Failure;

/// From where a page is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AuditFrom {
    /// The newest, or those before this id; newest first.
    Before(Option<u64>),
    /// Those after this id; oldest first.
    After(u64),
}

/// A page.
#[derive(Deserialize)]
pub(crate) struct AuditPage {
    pub(crate) entries: Vec<AuditView>,
    /// Where the next one begins, as the last one did; `None`: there is none.
    pub(crate) next: Option<u64>,
}

/// The most entries of one page.
pub(crate) const AT_ONCE: usize = 500;

/// A filter as the parameters of an address.
pub(crate) fn query(filter: &AuditFilter) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("who", filter.who.clone()),
        ("act", filter.act.clone()),
        ("target", filter.target.clone()),
        ("kind", filter.kinds.first().map(|kind| kind.as_str().to_owned())),
        ("from", filter.from.map(iso)),
        ("to", filter.to.map(iso)),
    ]
}

impl Office {
    /// A page of what `filter` lets through.
    pub(crate) async fn audit(
        &self,
        filter: &AuditFilter,
        from: AuditFrom,
        limit: usize,
    ) -> Result<AuditPage, Failure> {
        match self {
            Self::Store(context) => {
                let page = match from {
                    AuditFrom::Before(before) => {
                        context.store.audit_page(filter, before, limit).await?
                    }
                    AuditFrom::After(after) => {
                        context.store.audit_after(filter, after, limit).await?
                    }
                };
                let entries = page.entries.into_iter().map(AuditView::from).collect();
                Ok(AuditPage { entries, next: page.next })
            }
            Self::Server(server) => {
                let mut query = query(filter);
                query.push(("limit", Some(limit.clamp(1, AT_ONCE).to_string())));
                query.push(match from {
                    AuditFrom::Before(before) => ("before", before.map(|id| id.to_string())),
                    AuditFrom::After(after) => ("after", Some(after.to_string())),
                });
                let mut page: AuditPage = server.get(address("/api/v1/audit", &query)).await?;
                if let AuditFrom::After(_) = from {
                    page.entries.reverse();
                    // `next` of this call leads back; forward there is more after a full page.
                    let newest = page.entries.last().map(|entry| entry.id);
                    page.next = newest.filter(|_| page.entries.len() >= limit);
                }
                Ok(page)
            }
        }
    }
}

impl super::Server {
    /// All of it as JSON lines with their chain.
    pub(crate) async fn audit_export(
        &self,
        filter: &AuditFilter,
        since_hash: Option<&str>,
    ) -> Result<Stream, Failure> {
        let mut query = query(filter);
        query.push(("since_hash", since_hash.map(str::to_owned)));
        let call = Call::get(address("/api/v1/audit", &query));
        let call = call.accepting("application/x-ndjson");
        Ok(self.client.stream(call.within(std::time::Duration::from_secs(3_600))).await?)
    }
}
