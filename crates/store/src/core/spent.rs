//! Ticks that callers name, on any [`Engine`].
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `spent:NAME` | list | ticks, by the token of the lease with which each was spent |
//! | `spent:at:NAME` | table | tick: by whom it was spent and how that ended, in JSON |
//!
//! A tick has its row under its text, in which all but plain signs is written as `%` and two digits: stores compare texts by rules of their own. The
//! newest tick of a name is in its record. It moves here before another replaces it, in a step of its own, on condition that the rows here did not
//! change: on a cluster the record is on another master. So the newest entry of each tick is in one of the two places, and a reader who reads the
//! record first sees it.
//!
//! A grant reads two rows. Now and then those of the name are counted, and the oldest dropped.

use std::fmt::Write as _;

use async_trait::async_trait;

use super::record::Case;
use super::shared::{json, look_at, parsed, row, set, still, unset};
use super::{Kind, decide, decide_unlisted, line, reach, settled};
use crate::engine::{Engine, Way};
use crate::leases::{Acquire, Leases as _};
use crate::records::{Changed, Check, Found, Look, Plan, Write};
use crate::spent::SpentTicks;
use crate::{Result, StoreError};
use soloist_domain::name::{JobName, Owner, TickText};
use soloist_domain::spent::{self, DROPPED_AT_ONCE, Newest, Once, Spent, Standing};
use soloist_domain::transition::spend::{self, Answer};

/// How often the newest one is moved while others move it, too.
const ATTEMPTS: usize = 16;

/// Of which tick a decision must know, and for whom.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) tick: &'a TickText,
    /// Who may take the place of the newest.
    pub(super) owner: &'a Owner,
}

pub(super) fn list_of(name: &JobName) -> String {
    format!("spent:{name}")
}

pub(super) fn table_of(name: &JobName) -> String {
    format!("spent:at:{name}")
}

/// How a tick is written as the name of a row.
fn row_of(tick: &TickText) -> String {
    let mut text = String::new();
    for byte in tick.as_str().bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(char::from(byte));
        } else {
            // A string takes everything.
            write!(text, "%{byte:02X}").ok();
        }
    }
    text
}

/// The row beside the record of `of.tick`. If another is the newest of the record, and may have to make room, that is beside it afterwards.
///
/// # Errors
/// [`StoreError::Unavailable`], [`StoreError::Corrupt`].
pub(super) async fn beside(engine: &dyn Engine, case: &Case, of: Of<'_>) -> Result<Option<Spent>> {
    let record = &case.job.record;
    let table = table_of(&record.name);
    let taken = record.lease.as_ref().is_some_and(|lease| lease.owner != *of.owner);
    let newest = record.spent.as_deref().filter(|newest| !taken && newest.spent.tick != *of.tick);
    let Some(newest) = newest else {
        let looked = engine.look(&[look_at(&table, &row_of(of.tick))]).await?;
        return row(&looked, 0).map(|text| parsed(&table, text)).transpose();
    };
    for _ in 0..ATTEMPTS {
        let (this, plan) = moving(engine, &record.name, of.tick, newest).await?;
        let Some(plan) = plan else { return Ok(this) };
        if engine.change(&plan).await? == Changed::Done {
            return Ok(this);
        }
    }
    Err(StoreError::Unavailable(format!("{table} is changed too often at this moment: try again")))
}

/// The row beside the record of `tick`, and what moves the newest there; `None`: it is there.
async fn moving(
    engine: &dyn Engine,
    name: &JobName,
    tick: &TickText,
    newest: &Newest,
) -> Result<(Option<Spent>, Option<Plan>)> {
    let (list, table) = (list_of(name), table_of(name));
    let goes = row_of(&newest.spent.tick);
    let mut looks = vec![look_at(&table, &row_of(tick)), look_at(&table, &goes)];
    if newest.is_to_count() {
        let (list, table) = (list.clone(), table.clone());
        looks.push(Look::Count(vec![list.clone()]));
        looks.push(Look::Described { list, table, most: DROPPED_AT_ONCE });
    }
    let looked = engine.look(&looks).await?;
    let this = row(&looked, 0).map(|text| parsed(&table, text)).transpose()?;
    let there = row(&looked, 1);
    let known: Option<Spent> = there.map(|text| parsed(&table, text)).transpose()?;
    if known.is_some_and(|known| !newest.spent.is_newer_than(&known)) {
        return Ok((this, None));
    }
    let mut checks = vec![still(&table, &goes, there)];
    let mut writes = Vec::new();
    if let (Some(Found::Count(count)), Some(Found::Described(oldest))) =
        (looked.found.get(2), looked.found.get(3))
    {
        let read = |(_, _, text): &(u64, String, Option<String>)| {
            text.as_deref().map(|text| parsed::<Spent>(&table, text)).transpose()
        };
        let known = oldest.iter().map(read).collect::<Result<Vec<_>>>()?;
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let dropped = spent::dropped(&known, count, looked.at.floor());
        let dropped: Vec<&String> = oldest.iter().take(dropped).map(|(_, row, _)| row).collect();
        if !dropped.is_empty() {
            // One of them may be spent again meanwhile: it moves then.
            let are: Vec<String> = dropped.iter().map(|row| (*row).clone()).collect();
            checks.push(Check::First { list: list.clone(), most: are.len(), are });
        }
        for row in dropped {
            writes.push(Write::Strike { list: list.clone(), text: row.clone() });
            writes.push(unset(&table, row));
        }
    }
    writes.push(set(&table, &goes, json(&table, &newest.spent)?));
    writes.push(Write::Add { list, number: newest.spent.token.0, text: goes });
    Ok((this, Some(Plan { checks, writes, ..Plan::default() })))
}

#[async_trait]
impl SpentTicks for dyn Engine + '_ {
    async fn acquire_once(&self, ask: &Acquire, once: &Once) -> Result<Answer> {
        acquire(self, ask, once, None).await?.ok_or_else(|| {
            StoreError::Corrupt(format!("{}: a line that nobody asked about", ask.job))
        })
    }

    async fn acquire_once_if_no_line(&self, ask: &Acquire, once: &Once) -> Result<Option<Answer>> {
        let line = line::list(&ask.job);
        if self.sees_lists() {
            return acquire(self, ask, once, Some(&line)).await;
        }
        match self.look(&[Look::First(line, 1)]).await?.found.as_slice() {
            [Found::Entries(first)] if first.is_empty() => acquire(self, ask, once, None).await,
            _ => Ok(None),
        }
    }

    async fn spent(&self, name: &JobName, tick: &TickText) -> Result<Option<(Spent, Standing)>> {
        // The record first: what leaves it is beside it by then.
        let reading = self.read(std::slice::from_ref(name), Way::Rest).await?;
        let record = match reading.records.into_iter().next() {
            Some(stored) => Case::read(name, stored)?.job.record,
            None => return Ok(None),
        };
        let table = table_of(name);
        let looked = self.look(&[look_at(&table, &row_of(tick))]).await?;
        let beside = row(&looked, 0).map(|text| parsed(&table, text)).transpose()?;
        let known = spent::known(&record, tick, beside.as_ref());
        let standing = known.and_then(|known| {
            let standing = known.standing(record.lease.as_ref(), reading.at)?;
            Some((known.clone(), standing))
        });
        Ok(standing)
    }

    async fn tell_spent(&self, name: &JobName, owner: &Owner, spent: &Spent) -> Result<()> {
        let of = Of { tick: &spent.tick, owner };
        let kind = Kind { tick: Some(of), ..Kind::of(Way::Lease) };
        decide(self, name, kind, |job, _| Ok(((), spend::tell_again(job, owner, spent)?)))
            .await
            .map(drop)
    }
}

/// Acquires a lease for one run of a tick; `None` if something is in the list `unlisted`.
async fn acquire(
    engine: &dyn Engine,
    ask: &Acquire,
    once: &Once,
    unlisted: Option<&str>,
) -> Result<Option<Answer>> {
    let reach = reach(&ask.owner, ask.ttl);
    let of = Of { tick: &once.tick, owner: &ask.owner };
    let grant = Some(ask.ttl);
    let kind = Kind { grant, reach, unlisted, tick: Some(of), ..Kind::of(Way::Grant) };
    let decided = decide_unlisted(engine, &ask.job, kind, |job, look| {
        Ok(spend::acquire(job, look.past, ask, once, look.beside, look.quarantine, look.now))
    })
    .await?;
    let Some((answer, unsafe_grant)) = decided else { return Ok(None) };
    match answer {
        Answer::Lease(acquired) => {
            let acquired = settled(engine, ask, reach, acquired, unsafe_grant).await?;
            Ok(Some(Answer::Lease(acquired)))
        }
        Answer::Spent { spent, standing, own } => {
            if own {
                engine.release(&ask.job, &ask.owner).await?;
            }
            Ok(Some(Answer::Spent { spent, standing, own: false }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tick_has_a_row_of_its_own_whatever_a_store_takes_for_equal() {
        let row = |text: &str| row_of(&TickText::new(text).expect("a tick"));
        assert_eq!(
            row("2026-11-27T02:30+08:00[Asia/Shanghai]"),
            "2026-11-27T02:30+08:00[Asia/Shanghai]"
        );
        assert_eq!(row("a b "), "a%20b%20");
        assert_eq!(row("é%"), "%C3%A9%25");
        assert_eq!(row(&"é".repeat(100)).len(), 600, "what a key of MySQL takes");
        let all = ["a", "A", "a ", " a", "à", "a\u{300}", "%61", "á"];
        let rows: std::collections::BTreeSet<String> = all.map(row).into();
        assert_eq!(rows.len(), all.len());
    }
}
