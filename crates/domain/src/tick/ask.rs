//! Runs that a person requests: by hand, or of a tick of the schedule by its name.

use super::account::{Books, adopt};
use super::record::{Asked, Clock, Entry, MOST_ASKED, Open, Outcome, Phase};
use super::rules::Schedule;
use super::{Tick, TickName, Ticks};
use crate::detail::Detail;
use crate::job::{Hold, JobRecord};
use crate::name::UserName;
use crate::time::StoreTime;
use crate::transition::Write;

/// So many answers are remembered, so that the same request gets the same.
const ANSWERS: usize = 32;

/// Why a run is not taken in. Each says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// An operator forbids the job.
    #[error("it is held by {by}: {reason}; resume it first")]
    Held {
        /// Who.
        by: UserName,
        /// Why.
        reason: String,
    },
    /// That tick is open.
    #[error("{0} is open: wait until it has ended")]
    Open(TickName),
    /// That tick waits already.
    #[error("{0} was asked for already, and waits")]
    Waits(TickName),
    /// That tick may run by itself.
    #[error("{0} is not decided yet: the schedule may still run it")]
    Undecided(TickName),
    /// That tick went well.
    #[error("{0} is done; to run the job once more, leave the tick out")]
    Done(TickName),
    /// Too many wait.
    #[error("{MOST_ASKED} runs wait already: take one back, or wait")]
    TooMany,
}

impl Refused {
    /// The same, with the message for people.
    #[must_use]
    pub fn detail(&self) -> Detail {
        let detail = Detail::new(self.to_string());
        match self {
            Self::Held { by, reason } => {
                detail.told("refused-run-held", &[("user", by), ("reason", reason)])
            }
            Self::Open(tick) => detail.told("refused-run-open", &[("tick", tick)]),
            Self::Waits(tick) => detail.told("refused-run-waits", &[("tick", tick)]),
            Self::Undecided(tick) => detail.told("refused-run-undecided", &[("tick", tick)]),
            Self::Done(tick) => detail.told("refused-run-done", &[("tick", tick)]),
            Self::TooMany => detail.told("refused-runs-many", &[("most", &MOST_ASKED)]),
        }
    }
}

/// Takes in a run that `asked` wants; the record is settled. Answers the name of its tick. `entry`: what is known of a tick by name
/// whose entry is not in the record.
///
/// # Errors
/// [`Refused`]: nothing was changed.
pub(crate) fn ask(
    record: &mut JobRecord,
    schedule: &Schedule,
    asked: Asked,
    entry: Option<&Entry>,
    now: StoreTime,
) -> Result<TickName, Refused> {
    let hold = record.hold.clone();
    let clock = adopt(record, schedule, now).clock;
    let request = asked.request.as_ref();
    if let Some((_, tick)) = clock.answered.iter().find(|(known, _)| Some(known) == request) {
        return Ok(tick.clone());
    }
    if let Some(Hold { by, reason, .. }) = hold {
        return Err(Refused::Held { by, reason });
    }
    if clock.asked.len() >= MOST_ASKED {
        return Err(Refused::TooMany);
    }
    let name = asked.tick.name.clone();
    let mut attempts = 0;
    if !name.is_by_hand() {
        let known = clock.recent(&name, asked.tick.starts).or(entry);
        if clock.open().is_some_and(|open| open.tick.name == name) {
            return Err(Refused::Open(name));
        }
        if clock.asked.iter().any(|one| one.tick.name == name) {
            return Err(Refused::Waits(name));
        }
        let starts = asked.tick.starts;
        let pending = clock.pending.iter().any(|one| {
            one.tick.name == name || one.older.iter().any(|older| older.is_of(&name, starts))
        });
        if pending || asked.tick.starts > clock.accounted.max(now) {
            return Err(Refused::Undecided(name));
        }
        match known {
            Some(entry) if entry.outcome == Outcome::Done => return Err(Refused::Done(name)),
            Some(entry) => attempts = entry.attempt,
            // No longer kept.
            None => attempts = clock.attempts,
        }
        if clock.forgot.is_some_and(|gap| asked.tick.starts <= gap.until) {
            // Its entry may be older than its last attempt.
            attempts = attempts.max(clock.attempts);
        }
    }
    if let Some(request) = &asked.request {
        clock.answered.push((request.clone(), name.clone()));
        let surplus = clock.answered.len().saturating_sub(ANSWERS);
        clock.answered.drain(..surplus);
    }
    let listed = clock.recent(&name, asked.tick.starts).is_none();
    let known = entry.filter(|_| listed && !name.is_by_hand()).cloned().map(Box::new);
    clock.asked.push(Asked { attempts, known, ..asked });
    Ok(name)
}

/// Takes back a run that waits. Whether there was one.
pub(crate) fn take_back(record: &mut JobRecord, tick: &TickName) -> bool {
    let Some(clock) = record.clock.as_mut() else { return false };
    let before = clock.asked.len();
    clock.asked.retain(|one| one.tick.name != *tick);
    clock.asked.len() < before
}

/// `taken` lies in the future of the store's clock: an operator sets it to now.
pub(crate) fn reset(record: &mut JobRecord, now: StoreTime) -> bool {
    let Some(clock) = record.clock.as_mut() else { return false };
    let ahead = clock.is_ahead(now) || clock.accounted > now;
    if ahead {
        (clock.accounted, clock.last) = (now, None);
        clock.pending.retain(|one| one.tick.starts <= now);
        clock.shifts.iter_mut().for_each(|shift| shift.at = shift.at.min(now));
        if let Some(taken) = &mut clock.taken {
            taken.starts = taken.starts.min(now);
        }
        // What ended later than now would be open until then.
        if clock.open.as_ref().is_some_and(Open::is_over) {
            clock.open = None;
        } else if let Some(Open { phase: Phase::Again { at, since, .. }, .. }) = &mut clock.open {
            (*at, *since) = ((*at).min(now), (*since).min(now));
        }
    }
    ahead
}

impl Clock {
    /// Whether ticks are settled that lie more than a minute ahead of the store's clock: they block all before them.
    #[must_use]
    pub fn is_ahead(&self, now: StoreTime) -> bool {
        self.ahead_until(now).is_some()
    }

    /// If so, up to which instant.
    #[must_use]
    pub fn ahead_until(&self, now: StoreTime) -> Option<StoreTime> {
        let taken = self.taken.as_ref().map(|taken| taken.starts);
        let until = self.accounted.max(taken.unwrap_or_default());
        (until > now + std::time::Duration::from_secs(60)).then_some(until)
    }
}

impl Books<'_> {
    /// The entry of a gap in which `tick` lies no longer stands for it: it is run by name. `known` is that entry, if it is not among the newest.
    /// Gives the entry of the tick alone, if that is not among them either.
    pub(super) fn split(
        &mut self,
        ticks: &dyn Ticks,
        tick: &Tick,
        known: Option<Box<Entry>>,
    ) -> Option<Box<Entry>> {
        let lies = |entry: &Entry| {
            entry.count > 1
                && !tick.name.is_by_hand()
                && entry.tick.starts <= tick.starts
                && tick.starts <= entry.last().starts
        };
        let at = self.clock.recent.iter().position(lies);
        let whole = match (at, known) {
            (Some(at), _) => self.clock.recent.remove(at),
            (None, Some(known)) if known.count > 1 => *known,
            (None, known) => return known,
        };
        // A long gap is counted no further than its entry was.
        let (mut left, mut next) = (0, whole.tick.clone());
        while next.starts < tick.starts && left + 1 < whole.count {
            left += 1;
            let Some(later) = ticks.after(next.starts) else { break };
            next = later;
        }
        let before = ticks.until(StoreTime(tick.starts.0 - 1));
        let before = before.filter(|before| before.starts >= whole.tick.starts);
        let part = |first: Tick, last: Option<Tick>, count: u32| {
            let until = last.filter(|last| last.name != first.name);
            let count = if until.is_some() { count.max(2) } else { 1 };
            Entry { until, tick: first, count, ..whole.clone() }
        };
        let after = ticks.after(tick.starts).filter(|after| after.starts <= whole.last().starts);
        // Of a gap that was not counted to its end the rest counts for one at least.
        let rest = whole.count.saturating_sub(left + 1);
        let right = after.map(|after| part(after, Some(whole.last().clone()), rest));
        let left = before.map(|before| part(whole.tick.clone(), Some(before), left));
        let own = part(tick.clone(), None, 1);
        let parts: Vec<Entry> = left.into_iter().chain([own.clone()]).chain(right).collect();
        // Others that are to be run by name lie in it as well.
        for asked in &mut self.clock.asked {
            if asked.known.as_deref() == Some(&whole) {
                let is_of = |part: &&Entry| part.is_of(&asked.tick.name, asked.tick.starts);
                asked.known = parts.iter().find(is_of).cloned().map(Box::new);
            }
        }
        let mut instead = Some(Box::new(whole.clone()));
        for (nth, entry) in parts.into_iter().enumerate() {
            if let Some(at) = at {
                self.clock.recent.insert(at + nth, entry.clone());
            }
            self.writes.push(Write::KeepTick { entry: Box::new(entry), instead: instead.take() });
        }
        self.trim();
        let listed = self.clock.recent.contains(&own);
        (!listed).then(|| Box::new(own))
    }
}
