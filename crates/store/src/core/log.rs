//! Output, read in either direction: only the requested lines, with a bounded amount of work for each call.

use crate::engine::{Engine, Part};
use crate::journal::{LOG_LINES, LogLine};
use crate::{Result, StoreError};
use soloist_domain::log::{LogFilter, LogFrom, LogPage};
use soloist_domain::name::JobName;

/// How many lines are read for one page, however few of them are requested.
const LOOKED_AT: usize = 5_000;
/// Of these, so many at once.
const AT_ONCE: usize = 500;

/// At most `limit` lines, oldest first; without a filter.
///
/// # Errors
/// [`StoreError::Unavailable`], [`StoreError::Corrupt`].
pub(super) async fn lines(
    engine: &dyn Engine,
    job: &JobName,
    part: Part,
    limit: usize,
) -> Result<Vec<LogLine>> {
    let texts = engine.lines(job, part, limit.min(LOG_LINES)).await?;
    let parsed = |line: &String| {
        serde_json::from_str(line)
            .map_err(|error| StoreError::Corrupt(format!("log of {job}: {error}")))
    };
    texts.iter().map(parsed).collect()
}

/// As [`Journal::log_page`](crate::journal::Journal::log_page).
///
/// # Errors
/// As [`lines`].
pub(super) async fn page(
    engine: &dyn Engine,
    job: &JobName,
    filter: &LogFilter,
    from: LogFrom,
    limit: usize,
) -> Result<LogPage> {
    let (limit, back) = (limit.clamp(1, LOG_LINES), matches!(from, LogFrom::Before(_)));
    let mut part = match from {
        LogFrom::Before(None) => Part::Newest,
        LogFrom::Before(Some(seq)) => Part::Before(seq),
        LogFrom::After(seq) => Part::After(seq),
    };
    let mut page = LogPage::default();
    let mut looked_at = 0;
    while looked_at < LOOKED_AT {
        // Without a filter one more than is missing tells whether there are others.
        let missing = if filter.is_all() { limit - page.lines.len() + 1 } else { AT_ONCE };
        let most = missing.min(AT_ONCE);
        let mut some = lines(engine, job, part, most).await?;
        let (read, whole) = (some.len(), some.len() < most);
        if back {
            some.reverse();
        }
        page.next = None;
        for (nth, line) in some.into_iter().enumerate() {
            let seq = line.seq;
            part = if back { Part::Before(seq) } else { Part::After(seq) };
            if filter.admits(&line) {
                page.lines.push(line);
            }
            page.next = Some(seq).filter(|_| !(whole && nth + 1 == read));
            if page.lines.len() == limit {
                looked_at = LOOKED_AT;
                break;
            }
        }
        looked_at += read;
        if page.next.is_none() {
            break;
        }
    }
    if back {
        page.lines.reverse();
    }
    Ok(page)
}
