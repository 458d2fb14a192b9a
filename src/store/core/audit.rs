//! What people and programs did, on any [`Records`].

use super::shared::{AUDIT, noted, parsed};
use crate::store::Result;
use crate::store::journal::AuditEntry;
use crate::store::records::{Found, Look, Plan, Records};

/// Entries read at once while looking for those on one target.
const STRETCH: usize = 1_000;

pub(super) async fn add<R: Records>(records: &R, entry: &AuditEntry) -> Result<()> {
    let plan = Plan { writes: vec![noted(entry)?], once: true, ..Plan::default() };
    records.change(&plan).await.map(drop)
}

pub(super) async fn newest<R: Records>(
    records: &R,
    target: Option<&str>,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>> {
    let stretch = if target.is_some() { STRETCH } else { limit };
    let (mut found, mut before) = (Vec::new(), before);
    while found.len() < limit {
        let look = Look::Log(AUDIT.to_owned(), before, stretch);
        let looked = records.look(&[look]).await?.found.into_iter().next();
        let Some(Found::Log(texts)) = looked.filter(|found| *found != Found::Log(Vec::new()))
        else {
            break;
        };
        for text in &texts {
            let entry: AuditEntry = parsed(AUDIT, text)?;
            before = Some(entry.id);
            if target.is_none_or(|target| entry.target == target) {
                found.push(entry);
            }
        }
    }
    found.truncate(limit);
    Ok(found)
}
