//! Acts of people and programs, and refusals, on any [`Records`]: one log for each kind, two for refusals, with numbers from one counter, read as
//! one list.

use std::time::Duration;

use super::shared::{AUDIT, noted, parsed, rings};
use crate::Result;
use crate::journal::{AuditEntry, AuditFilter, AuditPage, Kind};
use crate::records::{Found, Look, Plan, Records, Write};

/// Entries of a kind that are read at once while looking for some of them.
const STRETCH: usize = 1_000;
/// Entries that are read for one page.
const LOOKED_AT: usize = 20_000;
/// Entries are in the order of their numbers. Their instants are, too, except for a clock that was set back by less than this.
const SET_BACK: Duration = Duration::from_secs(3_600);

/// In which direction, and from which number.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// To older ones.
    Back(Option<u64>),
    /// To newer ones.
    On(u64),
}

impl Way {
    fn look(self, log: &str, most: usize) -> Look {
        let log = log.to_owned();
        match self {
            Self::Back(before) => Look::Log(log, before, most),
            Self::On(after) => Look::LogAfter(log, after, most),
        }
    }

    fn behind(self, id: u64) -> Self {
        match self {
            Self::Back(_) => Self::Back(Some(id)),
            Self::On(_) => Self::On(id),
        }
    }

    /// Nothing that lies behind `entry` is asked for.
    fn is_over(self, filter: &AuditFilter, entry: &AuditEntry) -> bool {
        match self {
            Self::Back(_) => filter.from.is_some_and(|from| entry.at + SET_BACK < from),
            Self::On(_) => filter.to.is_some_and(|to| entry.at >= to + SET_BACK),
        }
    }
}

/// Writes `entry` down.
///
/// # Errors
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable).
pub async fn add(records: &dyn Records, entry: &AuditEntry) -> Result<()> {
    let write = Write::Log(noted(entry)?);
    let plan = Plan { writes: vec![write], once: true, ..Plan::default() };
    records.change(&plan).await.map(drop)
}

/// The next entries in the order of their numbers, and whether that is all.
async fn stretch(
    records: &dyn Records,
    kinds: &[Kind],
    way: Way,
    most: usize,
) -> Result<(Vec<AuditEntry>, bool)> {
    let logs = kinds.iter().flat_map(|kind| rings(*kind));
    let looks: Vec<Look> = logs.map(|log| way.look(log, most)).collect();
    let (mut entries, mut is_all) = (Vec::new(), true);
    for found in records.look(&looks).await?.found {
        let Found::Log(texts) = found else { continue };
        is_all &= texts.len() < most;
        for text in &texts {
            entries.push(parsed::<AuditEntry>(AUDIT, text)?);
        }
    }
    entries.sort_by_key(|entry| entry.id);
    if let Way::Back(_) = way {
        entries.reverse();
    }
    // What a log has behind its last entry here may come before what another has here.
    is_all &= entries.len() <= most;
    entries.truncate(most);
    Ok((entries, is_all))
}

/// One page of what `filter` asks for, and where the next begins.
///
/// # Errors
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable).
pub async fn page(
    records: &dyn Records,
    filter: &AuditFilter,
    way: Way,
    limit: usize,
) -> Result<AuditPage> {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| filter.has(*kind)).collect();
    let mut most = (limit + 1).min(STRETCH);
    let (mut page, mut way, mut looked_at) = (AuditPage::default(), way, 0);
    loop {
        let (entries, is_all) = stretch(records, &kinds, way, most).await?;
        looked_at += entries.len();
        for entry in entries {
            way = way.behind(entry.id);
            if way.is_over(filter, &entry) {
                return Ok(page);
            }
            if !filter.admits(&entry) {
                continue;
            }
            if page.entries.len() == limit {
                page.next = page.entries.last().map(|last| last.id);
                return Ok(page);
            }
            page.entries.push(entry);
        }
        if is_all {
            return Ok(page);
        }
        // Few of them were asked for: they are looked for among many.
        most = STRETCH;
        if looked_at >= LOOKED_AT {
            page.next = match way {
                Way::Back(next) => next,
                Way::On(next) => Some(next),
            };
            return Ok(page);
        }
    }
}

/// The newest, of one target or of all.
///
/// # Errors
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable).
pub async fn newest(
    records: &dyn Records,
    target: Option<&str>,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>> {
    let filter = AuditFilter { target: target.map(str::to_owned), ..AuditFilter::default() };
    let (mut found, mut before) = (Vec::new(), before);
    loop {
        let page = page(records, &filter, Way::Back(before), limit - found.len()).await?;
        found.extend(page.entries);
        if found.len() >= limit || page.next.is_none() {
            return Ok(found);
        }
        before = page.next;
    }
}
