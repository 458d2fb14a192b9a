//! What may happen besides an exchange: sources are defined and limited, tasks are put and revived, claims extended and given
//! back, and the clock makes things due.
//!
//! Each is one transition on what is loaded ([`Sets`]): it says what is missing, or what changes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::asks::{ClaimId, ClaimOwner, Extended, NewTask, Past, PastEvent, TaskId};
use super::order::Place;
use super::record::{Change, Claim, Kept, REMEMBERED, Source, Task, Write};
use super::round::{Out, Round};
use super::rules::Rules;
use super::sets::{Halt, Sets, Wanted};
use super::task::{Departure, TaskState};
use crate::lease::Token;
use crate::name::{CollectorName, SourceName, Waiter};
use crate::time::Stamp;

/// Most of each kind in one [`pump`].
const PUMPED: u32 = 256;

/// Makes a source, or changes its rules; tasks, starts and blocks are kept. The rules were checked.
///
/// # Errors
/// [`Halt::Need`].
pub fn define(sets: &Sets, name: &SourceName, rules: &Rules, now: Stamp) -> Out<Change<()>> {
    let mut round = Round::begin(sets, now);
    let known = match round.source(name) {
        Err(Halt::NoSource(_)) => None,
        known => Some(known?.clone()),
    };
    let mut source = known.unwrap_or_else(|| Source::new(name, rules));
    if source.rules.window.is_some() && rules.window.is_none() {
        round.writes.push(Write::ForgetStarts(name.clone()));
    }
    source.rules = rules.clone();
    round.set_source(source);
    round.close(())
}

/// Serves no claim from a source until it is resumed, or serves again; the rest of its rules stays.
///
/// # Errors
/// [`Halt::Need`], [`Halt::NoSource`].
pub fn pause(sets: &Sets, name: &SourceName, paused: bool, now: Stamp) -> Out<Change<()>> {
    let mut round = Round::begin(sets, now);
    round.touch(name)?.rules.paused = paused;
    round.close(())
}

/// Serves no claim from a source for so long from now; zero lifts a block.
///
/// # Errors
/// [`Halt::Need`], [`Halt::NoSource`].
pub fn block(sets: &Sets, name: &SourceName, lasting: Duration, now: Stamp) -> Out<Change<()>> {
    let mut round = Round::begin(sets, now);
    round.touch(name)?.blocked_until = now + lasting;
    round.close(())
}

/// Puts tasks; says of each whether it is new. One that exists is left as it is, whatever its state.
///
/// # Errors
/// [`Halt::Need`]; [`Halt::NoSource`]: then none is put.
pub fn put(sets: &Sets, tasks: &[NewTask], now: Stamp) -> Out<Change<Vec<bool>>> {
    let mut round = Round::begin(sets, now);
    let ids: Vec<TaskId> = tasks.iter().map(|new| TaskId::of(&new.source, &new.key)).collect();
    round.want(Wanted {
        sources: tasks.iter().map(|new| new.source.clone()).collect(),
        tasks: ids.iter().cloned().collect(),
        ..Wanted::default()
    })?;
    let mut put = Vec::with_capacity(tasks.len());
    let mut added = BTreeSet::new();
    for (number, (id, new)) in ids.iter().zip(tasks).enumerate() {
        let fresh = round.task(id)?.is_none() && added.insert(id);
        put.push(fresh);
        let source = round.edit(&new.source)?;
        if !fresh {
            continue;
        }
        source.nth += 1;
        let task = new_task(id, new, source.nth, now);
        if task.state == TaskState::Due {
            source.due += 1;
        } else {
            round.touch(&new.source)?.ready += 1;
        }
        round.writes.push(Write::Put(Box::new(task), number));
    }
    round.close(put)
}

fn new_task(id: &TaskId, new: &NewTask, nth: u64, now: Stamp) -> Task {
    let at = new.at.filter(|at| *at > now);
    Task {
        id: id.clone(),
        source: new.source.clone(),
        state: if at.is_some() { TaskState::Due } else { TaskState::Ready },
        priority: new.priority,
        place: at.is_none().then(|| Place::behind(new.priority, nth)),
        at,
        until: None,
        lease: None,
        attempt: 0,
        token: Token(0),
        accepted: Token(0),
        collector: None,
        claim: None,
        every: new.every,
        created: now,
        changed: now,
        error: None,
    }
}

/// Extends what is still held of a claim, each task by the lease that it was granted for, whatever the rules of its source say by now: an answer
/// may be lost, and then its collector trusts what it was told before. What was reported is in neither list.
///
/// # Errors
/// [`Halt::Need`]; [`Halt::NoClaim`] for an unknown or finished claim, or another's when `only` is given.
pub fn extend(
    sets: &Sets,
    id: &ClaimId,
    only: Option<&ClaimOwner>,
    now: Stamp,
) -> Out<Change<Extended>> {
    let mut round = Round::begin(sets, now);
    let Some((collector, mut claim, granted)) = round.granted(id, only)? else {
        return Err(Halt::NoClaim(id.clone()));
    };
    round.writes.push(Write::Seen(collector));
    let mut extended = Extended::default();
    let mut last = None;
    for (id, token) in granted {
        let Some(task) = round.task(&id)?.cloned() else { continue };
        let held = task.is_held(token, now);
        let Some(lease) = task.lease.filter(|_| held) else {
            extended.lost.push(id);
            continue;
        };
        let until = now + lease;
        round.tasks.insert(id.clone(), Task { until: Some(until), ..task });
        last = last.max(Some(until));
        extended.lease_until = Some(extended.lease_until.map_or(until, |first| first.min(until)));
        extended.kept.push(id);
    }
    if let (Some(last), Kept::Granted { until, .. }) = (last, &mut claim.kept) {
        *until = last;
        claim.forget = last + REMEMBERED;
        round.set_claim(id, Some(claim));
    }
    round.close(extended)
}

/// Gives what is still held of a claim back at once, unworked: the attempt does not count, and each task comes before all
/// others of its priority, in the old order. The request is forgotten. Says how many; an unknown claim is no error.
///
/// `unseen`: it never left the node. Then nothing is done if a collector may have it in hand all the same.
///
/// # Errors
/// [`Halt::Need`].
pub fn give_back(
    sets: &Sets,
    id: &ClaimId,
    only: Option<&ClaimOwner>,
    unseen: bool,
    now: Stamp,
) -> Out<Change<u64>> {
    let mut round = Round::begin(sets, now);
    let Some((collector, claim, granted)) = round.granted(id, only)? else {
        return round.close(0);
    };
    if unseen && matches!(claim.kept, Kept::Granted { repeated: true, .. }) {
        return round.close(0);
    }
    if !unseen {
        round.writes.push(Write::Seen(collector));
    }
    let mut held = Vec::new();
    for (id, token) in granted {
        held.extend(round.task(&id)?.filter(|task| task.is_held(token, now)).cloned());
    }
    held.sort_by_key(|task| task.token);
    // The last first, so that the head of the queue is again as it was.
    for task in held.iter().rev() {
        round.leave(task, Departure::Returned, None)?;
    }
    round.set_claim(id, None);
    round.close(held.len() as u64)
}

type Granted = (CollectorName, Claim, Vec<(TaskId, Token)>);

impl Round<'_> {
    fn remove(&mut self, id: &TaskId, force: bool) -> Out<bool> {
        let Some(task) = self.task(id)?.cloned() else { return Err(Halt::NoTask(id.clone())) };
        if task.state == TaskState::Leased && !force {
            return Ok(false);
        }
        if task.state != TaskState::Done {
            let source = self.touch(&task.source)?;
            let count = match task.state {
                TaskState::Ready => &mut source.ready,
                TaskState::Due => &mut source.due,
                TaskState::Leased => &mut source.in_flight,
                TaskState::Done | TaskState::Dead => &mut source.dead,
            };
            *count = count.saturating_sub(1);
        }
        if let Some(claim) = &task.claim {
            self.strike_task(claim, id)?;
        }
        let was_done = task.state == TaskState::Done;
        // In no queue and held by no collector, whatever else this step looks at.
        let gone = Task {
            state: TaskState::Done,
            place: None,
            at: None,
            until: None,
            lease: None,
            ..task
        };
        self.tasks.insert(id.clone(), gone);
        self.writes.push(Write::Remove(id.clone(), was_done));
        Ok(true)
    }

    /// A claim that granted something, with its tasks, if `only` may touch it.
    fn granted(&self, id: &ClaimId, only: Option<&ClaimOwner>) -> Out<Option<Granted>> {
        self.want(Wanted { claims: [id.clone()].into(), ..Wanted::default() })?;
        let Some(claim) = self.claim(id)? else { return Ok(None) };
        let Kept::Granted { tasks, .. } = &claim.kept else { return Ok(None) };
        if only.is_some_and(|only| !id.is_of(only)) {
            return Ok(None);
        }
        let ids = tasks.iter().map(|(id, _)| id.clone()).collect();
        self.want(Wanted { tasks: ids, ..Wanted::default() })?;
        Ok(Some((claim.collector.clone(), claim.clone(), tasks.clone())))
    }
}

/// A waiter waits no more. What was promised to it lapses by itself.
#[must_use]
pub fn leave_queues(waiter: &Waiter) -> Vec<Write> {
    vec![Write::Strike(waiter.clone())]
}

/// Does what is due: leases that ran out, due tasks, sources whose gap, window or block is over, promises that lapsed.
/// Says how many leases ran out. Done twice it does no more than once.
///
/// # Errors
/// [`Halt::Need`].
pub fn pump(sets: &Sets, now: Stamp) -> Out<Change<u64>> {
    let mut round = Round::begin(sets, now);
    let expired = round.overdue(PUMPED)?;
    round.close(expired)
}

/// Removes a task; says whether it did. Without `force` not one that is in a collector's hands.
///
/// # Errors
/// [`Halt::Need`], [`Halt::NoTask`].
pub fn remove(sets: &Sets, id: &TaskId, force: bool, now: Stamp) -> Out<Change<bool>> {
    let mut round = Round::begin(sets, now);
    let removed = round.remove(id, force)?;
    round.close(removed)
}

/// Removes tasks, whichever collectors hold them.
///
/// # Errors
/// [`Halt::Need`], [`Halt::NoTask`]: then none is removed.
pub fn remove_all(sets: &Sets, ids: &BTreeSet<TaskId>, now: Stamp) -> Out<Change<()>> {
    let mut round = Round::begin(sets, now);
    round.want(Wanted { tasks: ids.clone(), ..Wanted::default() })?;
    for id in ids {
        round.remove(id, true)?;
    }
    round.close(())
}

/// Makes a dead task ready again, behind all others, its attempts counted from zero; one that is not dead is left as it is.
///
/// # Errors
/// [`Halt::Need`], [`Halt::NoTask`].
pub fn revive(sets: &Sets, id: &TaskId, now: Stamp) -> Out<Change<()>> {
    let mut round = Round::begin(sets, now);
    let Some(task) = round.task(id)?.cloned() else { return Err(Halt::NoTask(id.clone())) };
    if task.state == TaskState::Dead {
        let source = round.touch(&task.source)?;
        source.dead = source.dead.saturating_sub(1);
        let past = Past {
            at: now,
            event: PastEvent::Revived,
            attempt: task.attempt,
            collector: None,
            error: None,
        };
        round.writes.push(Write::Note(id.clone(), past));
        round.make_ready(Task { attempt: 0, error: None, ..task })?;
    }
    round.close(())
}
