//! Results taken, then tasks handed out, source by source in turn.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::fault::Outcome;
use super::super::row::{find, int};
use super::super::step::Step;
use super::desk::Desk;
use super::source::{Source, source_name};
use super::task::{self, Task};
use super::{claims, overdue, waiters};
use crate::domain::dispatch::{Departure, Reason, TaskState, share};
use crate::domain::name::{CollectorName, SourceName};
use crate::domain::time::Stamp;
use crate::store::dispatch::{
    ClaimAsk, Claimed, Exchange, Exchanged, Handed, Report, Reported, TaskId,
};

/// Most overdue leases, tasks and sources that one exchange acts on.
const OVERDUE: u32 = 64;
/// How many sources at their cap are asked which of them can be served the soonest.
const CAPPED: u32 = 16;

/// Takes results, then grants what was asked.
pub(super) fn exchange(step: &Step<'_>, ask: &Exchange) -> Outcome<Exchanged> {
    let mut desk = Desk::open(step)?;
    // Whatever is wrong with the request is said before anything is done.
    for source in ask.claim.iter().flat_map(|claim| &claim.sources) {
        desk.look(source)?;
    }
    overdue::act(&mut desk, OVERDUE)?;
    let mut reporting = BTreeSet::new();
    let mut reports = Vec::with_capacity(ask.reports.len());
    for one in &ask.reports {
        reports.push(report(&mut desk, one, ask.only.as_ref(), &mut reporting)?);
    }
    reporting.extend(ask.only.clone());
    reporting.extend(ask.claim.as_ref().map(|claim| claim.collector.clone()));
    for collector in &reporting {
        claims::seen(&desk, collector)?;
    }
    let claimed = ask.claim.as_ref().map(|claim| answer(&mut desk, claim)).transpose()?;
    desk.close()?;
    Ok(Exchanged { reports, claimed })
}

fn report(
    desk: &mut Desk<'_>,
    report: &Report,
    only: Option<&CollectorName>,
    reporting: &mut BTreeSet<CollectorName>,
) -> Outcome<Reported> {
    let Some(task) = Task::find(desk.step, &report.id)? else { return Ok(Reported::Unknown) };
    if let Some(only) = only
        && !task::ever_held(desk.step, &task, only)?
    {
        return Ok(Reported::Unknown);
    }
    if task.accepted == report.token && report.token.0 > 0 {
        return Ok(Reported::Ok);
    }
    let theirs = only.is_none_or(|only| task.collector.as_ref() == Some(only));
    if task.token != report.token || !theirs || !task.is_held(task.claim, desk.now) {
        return Ok(Reported::Stale);
    }
    let how = Departure::Reported { outcome: report.outcome, delay: report.delay };
    task.leave(desk, how, report.error.as_deref())?;
    claims::strike(desk.step, task.claim, task.n)?;
    reporting.extend(task.collector);
    Ok(Reported::Ok)
}

fn answer(desk: &mut Desk<'_>, ask: &ClaimAsk) -> Outcome<Claimed> {
    if let Some(known) = claims::answered(desk, ask)? {
        if let (Claimed::Granted { .. }, Some((waiter, _))) = (&known, &ask.wait) {
            waiters::leave(desk.step, waiter)?;
        }
        return Ok(known);
    }
    desk.settle()?;
    desk.open_sources(OVERDUE)?;
    let mut grant = Grant::default();
    serve(desk, ask, &mut grant)?;
    if let (Some((first, _)), Some((last, lease))) = (grant.ends.first(), grant.ends.last()) {
        claims::lasts(desk, grant.claim, *last, *lease)?;
        if let Some((waiter, _)) = &ask.wait {
            waiters::leave(desk.step, waiter)?;
        }
        let (claim, lease_until) = (ask.claim.clone(), *first);
        return Ok(Claimed::Granted { claim, lease_until, tasks: grant.tasks });
    }
    let (reason, next_at) = why_nothing(desk, &ask.sources)?;
    match &ask.wait {
        Some((waiter, long)) => {
            waiters::enter(desk.step, waiter, &ask.sources, desk.now + *long)?;
        }
        None => claims::got_nothing(desk, ask, reason, next_at)?,
    }
    Ok(Claimed::Nothing { reason, next_at })
}

/// What a claim gets.
#[derive(Default)]
struct Grant {
    /// Its number.
    claim: i64,
    tasks: Vec<Handed>,
    /// The ends of its leases, and how long each lasts.
    ends: BTreeSet<(Stamp, Duration)>,
}

/// Goes round the ring until the claim has all it wants or nobody can be served.
fn serve(desk: &mut Desk<'_>, ask: &ClaimAsk, grant: &mut Grant) -> Outcome<()> {
    let mut wanted = ask.max;
    while wanted > 0 {
        let round = ring(desk, &ask.sources, wanted)?;
        let each = share(wanted, u32::try_from(round.len()).unwrap_or(u32::MAX));
        let before = wanted;
        for name in round {
            wanted -= serve_from(desk, &name, each.min(wanted), ask, grant)?;
        }
        if wanted == before {
            break;
        }
    }
    Ok(())
}

/// The first of the ring: `most`, or all of `sources` that are in it.
fn ring(desk: &mut Desk<'_>, sources: &[SourceName], most: u32) -> Outcome<Vec<SourceName>> {
    if sources.is_empty() {
        let names: Vec<String> = desk
            .step
            .prepare_cached(
                "SELECT name FROM sources WHERE turn IS NOT NULL ORDER BY turn LIMIT ?",
            )?
            .query_map([most], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        return names.iter().map(|name| source_name(name)).collect();
    }
    let mut turns = BTreeSet::new();
    for name in sources {
        desk.open_source(name)?;
        turns.extend(desk.look(name)?.ring.turn.map(|turn| (turn, name.clone())));
    }
    Ok(turns.into_iter().map(|(_, name)| name).collect())
}

/// Hands out at most `most` tasks of a source, which then goes to the end of the ring.
fn serve_from(
    desk: &mut Desk<'_>,
    name: &SourceName,
    most: u32,
    ask: &ClaimAsk,
    grant: &mut Grant,
) -> Outcome<u32> {
    let (step, now) = (desk.step, desk.now);
    let source = desk.source(name)?;
    // It was in the ring a moment ago; its room may be less than what is ready.
    let count = match source.room(step, now)? {
        Ok(room) => room.min(most),
        Err(_) => 0,
    };
    let tasks: Vec<(i64, Handed)> = step
        .prepare_cached(
            "SELECT t.n, t.id, p.key, p.payload, t.attempt FROM tasks t JOIN payloads p ON p.task = t.n \
             WHERE t.source = ? AND t.state = 'ready' ORDER BY t.place LIMIT ?",
        )?
        .query_map((name.as_str(), count), |row| {
            let task = Handed {
                id: TaskId(row.get(1)?),
                key: row.get(2)?,
                source: name.clone(),
                payload: row.get(3)?,
                token: Default::default(),
                attempt: row.get::<_, u32>(4)? + 1,
            };
            Ok((row.get(0)?, task))
        })?
        .collect::<Result<_, _>>()?;
    let served = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
    if served > 0 {
        let first = note_start(step, source, now, served)?;
        if grant.tasks.is_empty() {
            grant.claim = claims::begin(desk, ask)?;
        }
        grant.ends.insert(first);
        for (n, mut task) in tasks {
            task.token = desk.mint();
            lease(desk, n, &task, ask, grant.claim, first.0)?;
            grant.tasks.push(task);
        }
    }
    desk.settle()?;
    Ok(u32::try_from(served).unwrap_or(u32::MAX))
}

/// Notes `served` starts of a source; when their lease ends and how long it lasts.
fn note_start(
    step: &Step<'_>,
    source: &mut Source,
    now: Stamp,
    served: u64,
) -> Outcome<(Stamp, Duration)> {
    if let Some(window) = source.rules.window {
        let span = i64::try_from(window.span.as_micros()).unwrap_or(i64::MAX);
        step.prepare_cached("DELETE FROM starts WHERE source = ? AND at <= ?")?
            .execute((source.name.as_str(), now.0.saturating_sub(span)))?;
        step.prepare_cached("INSERT INTO starts (source, at, n) VALUES (?, ?, ?)")?.execute((
            source.name.as_str(),
            now.0,
            int(source.started + 1),
        ))?;
    }
    source.last_start = Some(now);
    source.started += served;
    source.ready = source.ready.saturating_sub(served);
    source.in_flight += served;
    source.promised = source.promised.saturating_sub(served);
    source.ring.turn = None;
    Ok((now + source.rules.lease, source.rules.lease))
}

fn lease(
    desk: &Desk<'_>,
    n: i64,
    task: &Handed,
    ask: &ClaimAsk,
    claim: i64,
    until: Stamp,
) -> Outcome<()> {
    desk.step
        .prepare_cached(
            "UPDATE tasks SET state = 'leased', place = NULL, until = ?, attempt = ?, token = ?, collector = ?, \
             claim = ?, changed = ? WHERE n = ?",
        )?
        .execute((
            until.0,
            task.attempt,
            int(task.token.0),
            ask.collector.as_str(),
            claim,
            desk.now.0,
            n,
        ))?;
    desk.step
        .prepare_cached("INSERT INTO grants (claim, task) VALUES (?, ?)")?
        .execute((claim, n))?;
    Ok(())
}

impl Task {
    /// Whether it is in hand under `claim`.
    pub(super) fn is_held(&self, claim: i64, now: Stamp) -> bool {
        self.state == TaskState::Leased && self.claim == claim && self.until > now
    }
}

/// Why nothing was granted: of the source that can be served the soonest.
fn why_nothing(desk: &mut Desk<'_>, only: &[SourceName]) -> Outcome<(Reason, Option<Stamp>)> {
    let (step, now) = (desk.step, desk.now);
    let candidates = if only.is_empty() { soonest(desk)? } else { only.to_vec() };
    let mut shuts = Vec::new();
    let mut due = Vec::new();
    for name in &candidates {
        let source = desk.look(name)?;
        if source.ready > 0 {
            shuts.extend(source.room(step, now)?.err());
        } else {
            due.extend(source.first_due(step)?);
        }
    }
    // One that opens by nobody's doing comes last.
    let first = shuts.into_iter().min_by_key(|shut| (shut.until.is_none(), shut.until));
    if let Some(shut) = first {
        return Ok((shut.reason, shut.until));
    }
    if only.is_empty() {
        let first = "SELECT at FROM tasks WHERE state = 'due' ORDER BY at LIMIT 1";
        due.extend(find(step, first, [])?.map(Stamp));
    }
    Ok((Reason::Empty, due.into_iter().min()))
}

/// Of all sources that have ready tasks and are shut, those that may open first.
fn soonest(desk: &Desk<'_>) -> Outcome<Vec<SourceName>> {
    let mut names: Vec<String> = Vec::new();
    for (sql, most) in [
        ("SELECT name FROM sources WHERE opens IS NOT NULL ORDER BY opens LIMIT ?", 1),
        ("SELECT name FROM sources WHERE shut = 'cap' LIMIT ?", CAPPED),
        ("SELECT name FROM sources WHERE shut = 'paused' LIMIT ?", 1),
    ] {
        let found = desk
            .step
            .prepare_cached(sql)?
            .query_map([most], |row| row.get(0))?
            .collect::<Result<Vec<String>, _>>()?;
        names.extend(found);
    }
    names.iter().map(|name| source_name(name)).collect()
}
