//! Ticks, on any [`Engine`].
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `ticks:JOB` | list | what became of ticks, in JSON, by the start of the first |
//!
//! The newest entries are in the record, too: a store that lost the second write of a change shows them from there, and the next change writes them
//! again.

use async_trait::async_trait;

use super::record::Case;
use super::shared::{json, parsed};
use super::{Kind, decide, reach, settled};
use crate::Result;
use crate::engine::{Engine, Unsafe, Way};
use crate::leases::{Acquire, Acquired};
use crate::records::{Found, Look, Write};
use crate::ticks::TickBook;
use soloist_domain::name::JobName;
use soloist_domain::tick::{
    Asked, ENTRIES_KEPT, Entry, Granted, Refused, Schedule, Sight, TickName,
};
use soloist_domain::transition::tick;

pub(super) fn ticks_of(job: &JobName) -> String {
    format!("ticks:{job}")
}

/// The writes that replace an entry.
///
/// # Errors
/// [`StoreError::Corrupt`](crate::StoreError::Corrupt).
pub(super) fn kept(job: &JobName, entry: &Entry, instead: Option<&Entry>) -> Result<Vec<Write>> {
    let list = ticks_of(job);
    let mut writes = Vec::new();
    if let Some(instead) = instead {
        writes.push(Write::Strike { list: list.clone(), text: json(&list, instead)? });
    }
    let number = u64::try_from(entry.tick.starts.0).unwrap_or(0);
    writes.push(Write::Add { list: list.clone(), number, text: json(&list, entry)? });
    // Some more than are promised: it is cut at each entry.
    writes.push(Write::Cut { list, kept: ENTRIES_KEPT + 100 });
    Ok(writes)
}

async fn listed(engine: &dyn Engine, job: &JobName) -> Result<Vec<Entry>> {
    let list = ticks_of(job);
    let looked = engine.look(&[Look::Last(list.clone(), ENTRIES_KEPT + 100)]).await?;
    let Some(Found::Entries(entries)) = looked.found.into_iter().next() else {
        return Ok(Vec::new());
    };
    entries.iter().map(|(_, text)| parsed(&list, text)).collect()
}

#[async_trait]
impl TickBook for dyn Engine + '_ {
    async fn acquire_tick(
        &self,
        ask: &Acquire,
        schedule: &Schedule,
        seen: Option<&Sight>,
    ) -> Result<(Acquired, Option<Granted>)> {
        let reach = reach(&ask.owner, ask.ttl);
        let kind = Kind { grant: Some(ask.ttl), reach, ..Kind::of(Way::Grant) };
        let ((acquired, granted), unsafe_grant) = decide(self, &ask.job, kind, |job, look| {
            let (answer, granted, writes) =
                tick::acquire(job, look.past, ask, schedule, seen, look.quarantine, look.now);
            Ok(((answer, granted), writes))
        })
        .await?;
        let jumped = matches!(unsafe_grant, Some(Unsafe::Jumped));
        let acquired = settled(self, ask, reach, acquired, unsafe_grant).await?;
        Ok((acquired, granted.filter(|_| !jumped)))
    }

    async fn settle_ticks(
        &self,
        job: &JobName,
        schedule: &Schedule,
        seen: Option<&Sight>,
    ) -> Result<()> {
        decide(self, job, Kind::of(Way::Rest), |job, look| {
            Ok(((), tick::settle(job, look.past, schedule, seen, look.quarantine, look.now)))
        })
        .await
        .map(drop)
    }

    async fn ask_run(
        &self,
        job: &JobName,
        schedule: &Schedule,
        asked: &Asked,
    ) -> Result<std::result::Result<TickName, Refused>> {
        let known = match asked.tick.name.is_by_hand() {
            true => None,
            false => {
                let listed = listed(self, job).await?;
                let (name, starts) = (&asked.tick.name, asked.tick.starts);
                listed.into_iter().rev().find(|entry| entry.is_of(name, starts))
            }
        };
        let decided = decide(self, job, Kind::of(Way::Rest), |job, look| {
            let asked = Asked { at: look.now.at, ..asked.clone() };
            Ok(tick::ask(job, schedule, asked, known.as_ref(), look.now))
        });
        Ok(decided.await?.0)
    }

    async fn take_back_run(&self, job: &JobName, tick: &TickName) -> Result<bool> {
        let decided =
            decide(self, job, Kind::of(Way::Rest), |job, _| Ok(tick::take_back(job, tick)));
        Ok(decided.await?.0)
    }

    async fn reset_taken(&self, job: &JobName) -> Result<bool> {
        let decided =
            decide(self, job, Kind::of(Way::Rest), |job, look| Ok(tick::reset(job, look.now)));
        Ok(decided.await?.0)
    }

    async fn ticks(&self, job: &JobName) -> Result<Vec<Entry>> {
        let mut entries = listed(self, job).await?;
        let reading = self.read(std::slice::from_ref(job), Way::Rest).await?;
        if let Some(stored) = reading.records.into_iter().next() {
            let clock = Case::read(job, stored)?.job.record.clock;
            for entry in clock.iter().flat_map(|clock| &clock.recent) {
                if !entries.contains(entry) {
                    // Its list lags behind: an older wording of the same goes.
                    entries.retain(|old| old.tick.name != entry.tick.name);
                    entries.push(entry.clone());
                }
            }
        }
        entries.sort_by(|one, other| {
            other
                .tick
                .starts
                .cmp(&one.tick.starts)
                .then_with(|| other.tick.name.0.cmp(&one.tick.name.0))
        });
        Ok(entries)
    }
}
