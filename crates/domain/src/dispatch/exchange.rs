//! Results are taken, then tasks are handed out: the one act that most calls are.
//!
//! The laws:
//!
//! - **Only the present lease counts**, and only for its owner. A result is accepted under the token of a lease that lasts, once. A report that is
//!   repeated is accepted again and changes nothing; any other changes nothing either, and is told so.
//! - **The same request has the same answer**: while anything of it is held, or its last lease would last; an answer that
//!   gave nothing, for [`REMEMBERED`]. After that it is a new request.
//! - **Before a grant the clock is looked at**: leases that are over, tasks that are due, sources that open. What was in hand
//!   and is over comes before all others of its priority, in its old order. Sources that can be served again because of it
//!   enter the ring in the order of those instants.
//! - **Sources take turns** ([`share`]): in each round every source of the ring gives the same number, and what one cannot
//!   give is divided among the others in the next. A source that gave goes to the end of the ring.
//! - Results make room for the claim in the same step, and the claim comes before the waiters.

use std::collections::{BTreeMap, BTreeSet};

use super::asks::{ClaimAsk, ClaimOwner, Exchange, Report, Reported, TaskId};
use super::order::share;
use super::record::{Answer, Change, Claim, Kept, REMEMBERED, Task, Write};
use super::round::{Out, Round};
use super::sets::{Halt, Need, Sets, Wanted};
use super::task::{Departure, TaskState};
use crate::lease::Token;
use crate::name::{CollectorName, SourceName};
use crate::time::Stamp;

/// Most of each kind that one exchange acts on although its caller did not ask for them.
const OVERDUE: u32 = 64;
/// Which of several things that the clock changes at one instant comes first: tasks that are due, leases, sources.
const KINDS: [u8; 3] = [0, 1, 2];

/// What an exchange answers: of each report, in order; and to the claim, if something was asked.
pub type Exchanged = (Vec<Reported>, Option<Answer>);

/// Takes results, then grants what was asked.
///
/// # Errors
/// [`Halt::Need`]; [`Halt::NoSource`] when a source named by the claim is missing:
/// then nothing is done.
pub fn exchange(sets: &Sets, ask: &Exchange, now: Stamp) -> Out<Change<Exchanged>> {
    let mut round = Round::begin(sets, now);
    let claim = ask.claim.as_ref();
    round.look_ahead(ask)?;
    for name in claim.iter().flat_map(|claim| &claim.sources) {
        round.source(name)?;
    }
    let mut heard: BTreeSet<CollectorName> = BTreeSet::new();
    let mut reports = Vec::with_capacity(ask.reports.len());
    for one in &ask.reports {
        reports.push(round.report(one, ask.only.as_ref(), &mut heard)?);
    }
    heard.extend(claim.map(|claim| claim.collector.clone()));
    round.writes.extend(heard.into_iter().map(Write::Seen));
    let answer = claim.map(|claim| round.answer(claim)).transpose()?;
    round.close((reports, answer))
}

impl Round<'_> {
    /// Asks at once for all that is needed in any case, and for what a claim mostly comes to.
    fn look_ahead(&self, ask: &Exchange) -> Out<()> {
        let claim = ask.claim.as_ref();
        let records = Wanted {
            sources: claim.iter().flat_map(|claim| claim.sources.iter().cloned()).collect(),
            tasks: ask.reports.iter().map(|report| report.id.clone()).collect(),
            claims: claim.iter().map(|claim| claim.id()).collect(),
        };
        let mut needs: Vec<Need> = self.missing(records).into_iter().collect();
        if claim.is_some() && self.sets.overdue.is_none() {
            needs.push(Need::Overdue(OVERDUE));
        }
        if let Some(claim) = claim.filter(|claim| claim.sources.is_empty())
            && self.sets.ring.is_none()
        {
            let most = usize::try_from(claim.max).unwrap_or(usize::MAX);
            needs.push(Need::Ring(most.saturating_add(ask.reports.len())));
        }
        if needs.is_empty() { Ok(()) } else { Err(Halt::Need(needs)) }
    }

    fn report(
        &mut self,
        report: &Report,
        only: Option<&ClaimOwner>,
        heard: &mut BTreeSet<CollectorName>,
    ) -> Out<Reported> {
        let Some(task) = self.task(&report.id)?.cloned() else { return Ok(Reported::Unknown) };
        if task.accepted == report.token && report.token.0 > 0 {
            return Ok(Reported::Ok);
        }
        let theirs =
            only.is_none_or(|only| task.claim.as_ref().is_some_and(|claim| claim.is_of(only)));
        if !theirs || !task.is_held(report.token, self.now) {
            return Ok(Reported::Stale);
        }
        let how = Departure::Reported { outcome: report.outcome, delay: report.delay };
        self.leave(&task, how, report.error.as_deref())?;
        if let Some(claim) = &task.claim {
            self.strike_task(claim, &task.id)?;
        }
        heard.extend(task.collector);
        Ok(Reported::Ok)
    }

    fn answer(&mut self, ask: &ClaimAsk) -> Out<Answer> {
        let waiter = ask.wait.as_ref().map(|(waiter, _)| waiter);
        let known = self.claim(&ask.id())?.cloned();
        if let Some(known) = &known
            && let Some(answer) = self.repeat(known)?
        {
            self.strike(waiter);
            return Ok(answer);
        }
        // The same request is a new one, and the same claim: the node that granted the older one may still want it back.
        let repeated = known.is_some_and(|known| matches!(known.kept, Kept::Granted { .. }));
        self.overdue(OVERDUE)?;
        for name in &ask.sources {
            if self.source(name)?.seat.opens.is_some_and(|opens| opens <= self.now) {
                self.judge(name)?;
            }
        }
        let served = self.divide(ask)?;
        if served.is_empty() {
            return self.refuse(ask);
        }
        let answer = self.hand_out(ask, &served, repeated)?;
        self.strike(waiter);
        Ok(answer)
    }

    /// The answer of before, if it holds.
    fn repeat(&mut self, known: &Claim) -> Out<Option<Answer>> {
        let (tasks, until) = match &known.kept {
            Kept::Nothing { reason, next_at } => {
                return Ok(Some(Answer::Nothing { reason: *reason, next_at: *next_at }));
            }
            Kept::Granted { tasks, until, .. } => (tasks, *until),
        };
        let ids = tasks.iter().map(|(id, _)| id.clone()).collect();
        self.want(Wanted { tasks: ids, ..Wanted::default() })?;
        let mut held = Vec::new();
        for (id, token) in tasks {
            let task = self.task(id)?.filter(|task| task.is_held(*token, self.now));
            held.extend(task.cloned());
        }
        if held.is_empty() && until <= self.now {
            return Ok(None);
        }
        let mut claim = known.clone();
        if let Kept::Granted { repeated, .. } = &mut claim.kept {
            *repeated = true;
        }
        self.set_claim(&known.id, Some(claim));
        let first = held.iter().filter_map(|task| task.until).min();
        let (claim, lease_until) = (known.id.clone(), first.unwrap_or(until));
        Ok(Some(Answer::Granted { claim, lease_until, tasks: held }))
    }

    /// Does what the clock has made due, at most so many of each kind. Returns how many leases ran out.
    pub(super) fn overdue(&mut self, most: u32) -> Out<u64> {
        let Some(overdue) = &self.sets.overdue else { return Err(Need::Overdue(most).into()) };
        // What was touched before enters the ring before.
        self.settle()?;
        let mut opened = BTreeMap::<SourceName, (Stamp, u8)>::new();
        let mut open = |source: &SourceName, at: Option<Stamp>, kind: u8| {
            let first = (at.unwrap_or_default(), kind);
            let known = opened.entry(source.clone()).or_insert(first);
            *known = first.min(*known);
        };
        let mut expired = 0;
        // The last first, so that they come before all others in their old order.
        for id in overdue.leases.iter().rev() {
            // It may have been reported in this very step.
            let task = self.task(id)?.filter(|task| task.state == TaskState::Leased).cloned();
            if let Some(task) = task {
                open(&task.source, task.until, KINDS[1]);
                self.leave(&task, Departure::Expired, None)?;
                expired += 1;
            }
        }
        for id in &overdue.due {
            let task = self.task(id)?.filter(|task| task.state == TaskState::Due).cloned();
            if let Some(task) = task {
                open(&task.source, task.at, KINDS[0]);
                let source = self.touch(&task.source)?;
                source.due = source.due.saturating_sub(1);
                self.make_ready(task)?;
            }
        }
        for name in &overdue.opens {
            open(name, self.source(name)?.seat.opens, KINDS[2]);
        }
        let mut opened: Vec<_> = opened.into_iter().map(|(name, first)| (first, name)).collect();
        opened.sort();
        for (_, name) in opened {
            self.judge(&name)?;
        }
        for name in &overdue.lapsed {
            self.judge(name)?;
        }
        Ok(expired)
    }

    /// Sources that can be served now, in their order: those that the claim names, or the first of all.
    fn ring(&self, ask: &ClaimAsk, most: u32) -> Out<Vec<SourceName>> {
        let mut turns = BTreeSet::new();
        if ask.sources.is_empty() {
            // Some may have left it in this transition.
            let most = usize::try_from(ask.max).unwrap_or(usize::MAX);
            let most = most.saturating_add(self.sources.len());
            let known = self.sets.ring.as_ref();
            let enough = |(asked, ring): &&(usize, Vec<SourceName>)| {
                ring.len() >= most || ring.len() < *asked
            };
            let Some((_, ring)) = known.filter(enough) else { return Err(Need::Ring(most).into()) };
            for name in ring.iter().chain(self.sources.keys()) {
                turns.extend(self.source(name)?.seat.turn.map(|turn| (turn, name.clone())));
            }
        } else {
            for name in &ask.sources {
                turns.extend(self.source(name)?.seat.turn.map(|turn| (turn, name.clone())));
            }
        }
        let most = if ask.sources.is_empty() { most } else { u32::MAX };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(turns.into_iter().take(most).map(|(_, name)| name).collect())
    }

    /// Goes round the ring until the claim has all it wants or no source can give more: which source gives how many, in the
    /// order in which they do.
    fn divide(&mut self, ask: &ClaimAsk) -> Out<Vec<(SourceName, usize)>> {
        let mut served = Vec::new();
        let mut wanted = ask.max;
        while wanted > 0 {
            let ring = self.ring(ask, wanted)?;
            let each = share(wanted, u32::try_from(ring.len()).unwrap_or(u32::MAX));
            let before = wanted;
            for name in ring {
                let room = self.room(&name, None)?.unwrap_or(0).min(each).min(wanted);
                let count = self.source(&name)?.ready.min(u64::from(room));
                if count > 0 {
                    self.start(&name, count)?;
                    let count = u32::try_from(count).unwrap_or(u32::MAX);
                    wanted = wanted.saturating_sub(count);
                    served.push((name.clone(), usize::try_from(count).unwrap_or(usize::MAX)));
                }
                self.judge(&name)?;
            }
            if wanted == before {
                break;
            }
        }
        Ok(served)
    }

    /// Leases the first tasks of each source that was served.
    fn hand_out(
        &mut self,
        ask: &ClaimAsk,
        served: &[(SourceName, usize)],
        repeated: bool,
    ) -> Out<Answer> {
        let (id, now) = (ask.id(), self.now);
        let mut heads = self.heads(served)?;
        let (mut leased, mut ends) = (Vec::new(), BTreeSet::new());
        for (name, count) in served {
            let lease = self.source(name)?.rules.lease;
            let until = now + lease;
            ends.insert(until);
            let first = heads.get_mut(name).map(|all| all.drain(..(*count).min(all.len())));
            for task in first.into_iter().flatten().collect::<Vec<Task>>() {
                let task = Task {
                    state: TaskState::Leased,
                    place: None,
                    until: Some(until),
                    lease: Some(lease),
                    attempt: task.attempt + 1,
                    token: self.mint(),
                    collector: Some(ask.collector.clone()),
                    claim: Some(id.clone()),
                    changed: now,
                    ..task
                };
                self.tasks.insert(task.id.clone(), task.clone());
                leased.push(task);
            }
        }
        let last = ends.last().copied().unwrap_or(now);
        let tasks: Vec<(TaskId, Token)> =
            leased.iter().map(|task| (task.id.clone(), task.token)).collect();
        let claim = Claim {
            id: id.clone(),
            collector: ask.collector.clone(),
            request: ask.request.clone(),
            kept: Kept::Granted { tasks, until: last, repeated },
            forget: last + REMEMBERED,
        };
        self.set_claim(&id, Some(claim));
        let lease_until = ends.first().copied().unwrap_or(now);
        Ok(Answer::Granted { claim: id, lease_until, tasks: leased })
    }

    /// The first ready tasks of each source, as many as it gives.
    fn heads(&mut self, served: &[(SourceName, usize)]) -> Out<BTreeMap<SourceName, Vec<Task>>> {
        let mut counts = BTreeMap::<SourceName, usize>::new();
        for (name, count) in served {
            *counts.entry(name.clone()).or_default() += count;
        }
        let mut need = counts.clone();
        need.retain(|name, _| !self.sets.heads.contains_key(name));
        if !need.is_empty() {
            // Nothing that is judged changes any more.
            self.settle()?;
            return Err(Halt::Need([Need::Heads(need)].into_iter().chain(self.queues()).collect()));
        }
        let mut heads = BTreeMap::new();
        for name in counts.into_keys() {
            let mut ready = BTreeMap::new();
            let stored = self.sets.heads.get(&name).into_iter().flatten();
            let came = self.tasks.values().filter(|task| task.source == name).map(|task| &task.id);
            for id in stored.chain(came) {
                let task = self.task(id)?.filter(|task| task.state == TaskState::Ready);
                ready.extend(task.and_then(|task| task.place.map(|place| (place, task.clone()))));
            }
            heads.insert(name, ready.into_values().collect());
        }
        Ok(heads)
    }
}
