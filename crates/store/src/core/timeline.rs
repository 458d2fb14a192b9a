//! Timelines, on any [`Engine`].
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `spans` | table | job: how far its runs are folded, in JSON |
//! | `spans:JOB` | list | spans, in JSON, by the token of their first run |
//! | `wants:JOB` | list | participations and holds that are over, in JSON, by their end |

use std::time::Duration;

use async_trait::async_trait;

use super::shared::{json, look_at, parsed, row, set, still};
use super::{Case, entry};
use crate::Result;
use crate::engine::Engine;
use crate::records::{Changed, Found, Look, Looked, Plan, Write};
use crate::timeline::{Seen, Timelines};
use soloist_domain::job::JobRecord;
use soloist_domain::journal::{RUNS_KEPT, RunEntry};
use soloist_domain::name::{JobName, RunId};
use soloist_domain::time::StoreTime;
use soloist_domain::timeline::fold::{Mark, fold, thin};
use soloist_domain::timeline::{
    Present, SPANS_KEPT, Span, Timeline, WANTS_KEPT, Want, WantKind, Wanted,
};

pub(super) const MARKS: &str = "spans";
/// Runs that are read at once.
const AT_ONCE: usize = 100;
/// What is too old or too much goes in such portions.
const PORTION: usize = 64;
/// How often folding is tried while others fold the same.
const ATTEMPTS: usize = 3;

pub(super) fn spans_of(job: &JobName) -> String {
    format!("spans:{job}")
}

pub(super) fn wants_of(job: &JobName) -> String {
    format!("wants:{job}")
}

fn number(at: StoreTime) -> u64 {
    u64::try_from(at.0).unwrap_or(0)
}

/// What keeps a participation or a hold that is over.
///
/// # Errors
/// [`StoreError::Corrupt`](crate::StoreError::Corrupt).
pub(super) fn kept(job: &JobName, want: &Want) -> Result<Write> {
    let list = wants_of(job);
    let text = json(&list, want)?;
    Ok(Write::Add { list, number: number(want.to), text })
}

/// The texts of the list at `nth` of the results.
fn texts(looked: &Looked, nth: usize) -> impl Iterator<Item = &String> {
    let found = match looked.found.get(nth) {
        Some(Found::Entries(entries)) => Some(entries),
        _ => None,
    };
    found.into_iter().flatten().map(|(_, text)| text)
}

fn read<T: serde::de::DeserializeOwned>(looked: &Looked, nth: usize, what: &str) -> Result<Vec<T>> {
    texts(looked, nth).map(|text| parsed(what, text)).collect()
}

/// The record, and the ended runs that are in no span by `mark`, oldest first.
async fn newer(
    engine: &dyn Engine,
    job: &JobName,
    mark: &Mark,
) -> Result<(JobRecord, Vec<RunEntry>)> {
    let (mut record, mut runs) = (None, Vec::new());
    let mut before: Option<RunId> = None;
    loop {
        let page = engine.history(job, before.as_ref(), AT_ONCE).await?;
        let case = Case::read(job, page.stored)?.job.record;
        let record = record.get_or_insert(case);
        let full = page.entries.len() >= AT_ONCE;
        for text in &page.entries {
            let run = entry(record, text)?;
            before = Some(run.id.clone());
            runs.push(run);
        }
        let is_all = runs.last().is_none_or(|run| run.token <= mark.token);
        if !full || is_all || runs.len() >= RUNS_KEPT {
            let record = record.clone();
            runs.retain(|run| run.token > mark.token);
            runs.reverse();
            return Ok((record, runs));
        }
    }
}

fn wanted(over: Vec<Want>, record: &JobRecord) -> Vec<Wanted> {
    let over = over.into_iter().map(|want| Wanted {
        kind: want.kind,
        who: want.who,
        from: want.from,
        to: Some(want.to),
    });
    let on = record.participants.iter().map(|one| Wanted {
        kind: WantKind::Participation,
        who: one.user.clone(),
        from: one.since,
        to: None,
    });
    let hold = record.hold.iter().map(|hold| Wanted {
        kind: WantKind::Hold,
        who: hold.by.clone(),
        from: hold.since,
        to: None,
    });
    let mut all: Vec<Wanted> = over.chain(on).chain(hold).collect();
    all.sort_by(|one, other| one.from.cmp(&other.from).then_with(|| one.who.cmp(&other.who)));
    all
}

#[async_trait]
impl Timelines for dyn Engine + '_ {
    async fn timeline(&self, job: &JobName, most: usize) -> Result<Seen> {
        let looks = [
            look_at(MARKS, job.as_str()),
            Look::Last(spans_of(job), most.min(SPANS_KEPT)),
            Look::Last(wants_of(job), WANTS_KEPT),
        ];
        let looked = self.look(&looks).await?;
        let at = looked.at.floor();
        let known = row(&looked, 0).map(|text| parsed::<Mark>(MARKS, text)).transpose()?;
        let mut mark = known.unwrap_or_default();
        let mut spans: Vec<Span> = read(&looked, 1, &spans_of(job))?;
        let over: Vec<Want> = read(&looked, 2, &wants_of(job))?;
        // What is folded between the two readings is there twice, and counted once.
        let (record, runs) = newer(self, job, &mark).await?;
        fold(&mut spans, &mut mark, &runs);
        spans.drain(..spans.len().saturating_sub(most));
        // Earlier ones may have been dropped.
        let full = (over.len() == WANTS_KEPT).then(|| over.first().map(|want| want.to)).flatten();
        let since = known.map(|mark| mark.since.max(full.unwrap_or_default()));
        let wants = wanted(over, &record);
        let since = since.or_else(|| wants.first().map(|want| want.from));
        let present = record.run.as_ref().map(|run| Present {
            node: run.node.clone(),
            token: run.token,
            from: run.started,
        });
        let again = record.clock.as_ref().is_some_and(|clock| clock.waits_again());
        let line = Timeline { since, spans, present, wants, again, ..Timeline::default() };
        Ok(Seen { at, line })
    }

    async fn fold_runs(&self, job: &JobName, kept: Duration) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if fold_once(self, job, kept).await? == Changed::Done {
                return Ok(());
            }
        }
        // Another node folds the same.
        Ok(())
    }
}

async fn fold_once(engine: &dyn Engine, job: &JobName, kept: Duration) -> Result<Changed> {
    let (list, wants) = (spans_of(job), wants_of(job));
    let looks = [
        look_at(MARKS, job.as_str()),
        Look::Last(list.clone(), 1),
        Look::First(list.clone(), PORTION),
        Look::First(wants.clone(), PORTION),
        Look::Count(vec![wants.clone()]),
    ];
    let mut looked = engine.look(&looks).await?;
    let now = looked.at.floor();
    let known = row(&looked, 0).map(str::to_owned);
    let was = known.as_deref().map(|text| parsed::<Mark>(MARKS, text)).transpose()?;
    let mut mark = was.unwrap_or_else(|| Mark::new(now));
    let (record, runs) = newer(engine, job, &mark).await?;
    if known.is_none() {
        if record.version == 0 {
            return Ok(Changed::Done);
        }
        let over: Vec<Want> = read(&looked, 3, &wants)?;
        let began = over.iter().map(|want| want.from);
        // Everything is known since the first moment at which a person is known to have wanted it.
        mark.since =
            began.chain(record.participants.iter().map(|one| one.since)).fold(now, Ord::min);
    }
    let before = now - kept;
    let mut writes = too_many(&looked, &wants, before)?;
    // To make room, all of them must be known.
    let crowded = mark.spans + runs.len() > SPANS_KEPT;
    if crowded {
        looked = engine.look(&[looks[0].clone(), Look::Last(list.clone(), 2 * SPANS_KEPT)]).await?;
    }
    let stood: Vec<&String> = texts(&looked, 1).collect();
    let mut spans: Vec<Span> = read(&looked, 1, &list)?;
    fold(&mut spans, &mut mark, &runs);
    if crowded {
        spans.retain(|span| span.to >= before);
        thin(&mut spans, SPANS_KEPT);
        mark.spans = spans.len();
    }
    let now_stand: Vec<String> =
        spans.iter().map(|span| json(&list, span)).collect::<Result<_>>()?;
    let gone = stood.iter().filter(|text| !now_stand.contains(text)).map(|text| (*text).clone());
    let mut gone: Vec<String> = gone.collect();
    if !crowded {
        let first: Vec<Span> = read(&looked, 2, &list)?;
        let old = texts(&looked, 2).zip(&first).filter(|(_, span)| span.to < before);
        // The newest stays: the next run may belong to it.
        gone.extend(old.filter(|(text, _)| !stood.contains(text)).map(|(text, _)| text.clone()));
    }
    let new = spans.iter().zip(now_stand).filter(|(_, text)| !stood.contains(&text));
    let new: Vec<(u64, String)> = new.map(|(span, text)| (span.first.0, text)).collect();
    if !crowded {
        mark.spans = (mark.spans + new.len()).saturating_sub(gone.len());
    }
    writes.extend(gone.into_iter().map(|text| Write::Strike { list: list.clone(), text }));
    let add = |(number, text)| Write::Add { list: list.clone(), number, text };
    writes.extend(new.into_iter().map(add));
    if writes.is_empty() && known.is_some() {
        return Ok(Changed::Done);
    }
    writes.push(set(MARKS, job.as_str(), json(MARKS, &mark)?));
    let checks = vec![still(MARKS, job.as_str(), known.as_deref())];
    engine.change(&Plan { checks, writes, ..Plan::default() }).await
}

/// What drops those participations and holds that are too old, or too many.
fn too_many(looked: &Looked, list: &str, before: StoreTime) -> Result<Vec<Write>> {
    let count = match looked.found.get(4) {
        Some(Found::Count(count)) => usize::try_from(*count).unwrap_or(usize::MAX),
        _ => 0,
    };
    let surplus = count.saturating_sub(WANTS_KEPT);
    let over: Vec<Want> = read(looked, 3, list)?;
    let goes = texts(looked, 3).zip(&over).enumerate();
    let goes = goes.filter(|(nth, (_, want))| *nth < surplus || want.to < before);
    let strike = |text: &String| Write::Strike { list: list.to_owned(), text: text.clone() };
    Ok(goes.map(|(_, (text, _))| strike(text)).collect())
}
