//! Output of a job, a page at a time.

use super::Office;
use super::jobs::at;
use soloist_remote::address;
use soloist_store::journal::{Journal as _, LogFilter, LogFrom};
use soloist_view::LogLineView;
use soloist_view::lists::Log;
use soloist_view::words::iso;

use super::super::Failure;

impl Office {
    /// At most `limit` lines of output that `filter` admits, and where to go on.
    pub(crate) async fn log(
        &self,
        name: &str,
        filter: &LogFilter,
        from: LogFrom,
        limit: usize,
    ) -> Result<Log, Failure> {
        match self {
            Self::Store(context) => {
                let job = &context.job(name)?.name;
                let page = context.store.log_page(job, filter, from, limit).await?;
                let back = matches!(from, LogFrom::Before(_));
                Ok(Log {
                    lines: page.lines.into_iter().map(LogLineView::from).collect(),
                    next_before: page.next.filter(|_| back),
                    next_after: page.next.filter(|_| !back),
                })
            }
            Self::Server(server) => {
                let number = |seq: u64| Some(seq.to_string());
                let (before, after) = match from {
                    LogFrom::Before(before) => (before.and_then(number), None),
                    LogFrom::After(after) => (None, number(after)),
                };
                let query = [
                    ("before", before),
                    ("after", after),
                    ("limit", Some(limit.to_string())),
                    ("run", filter.run.as_ref().map(ToString::to_string)),
                    ("grep", filter.grep.clone()),
                    ("since", filter.since.map(iso)),
                    ("until", filter.until.map(iso)),
                ];
                server.get(address(&at(name, "/log"), &query)).await
            }
        }
    }
}
