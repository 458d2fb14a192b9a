//! Ticks of a job that may need a person: one that has not begun or not ended in time, one that was missed or lost, a run that ended well
//! too quickly.
//!
//! | what | since | until |
//! | --- | --- | --- |
//! | [`unstarted`] | `start_within` after its start | a tick begins, or nobody wants the job |
//! | [`unfinished`] | `finish_within` after its start | no tick is overdue any more, or nobody wants the job |
//! | [`Trouble`] | its entry was written | a run of the job ends well and not too quickly, or nobody wants the job |
//!
//! The first two are computed when they are read. A trouble is in the record, because the next tick may be granted in the same step that
//! writes it: it is shown for [`TOLD_FOR`] in any case.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::Books;
use super::record::{Clock, Entry, Open, Outcome, Why};
use super::rules::Schedule;
use super::{Tick, TickName};
use crate::job::JobRecord;
use crate::name::UserName;
use crate::time::StoreTime;

/// A trouble lasts at least this long: the sender looks twice a second, and another replaces it within ten seconds.
pub(super) const TOLD_FOR: Duration = Duration::from_secs(20);

/// What became of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It is never run by itself: it was missed, or dropped.
    Missed,
    /// Its holder was lost, and it is not done again.
    Lost,
    /// It ended well in less than `at_least`.
    TooQuick,
}

/// Ticks of one kind, until a run ends well.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trouble {
    /// Which kind.
    pub kind: Kind,
    /// The first of them.
    pub tick: Tick,
    /// How many so far.
    pub count: u32,
    /// Why the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// How long the newest run took, in milliseconds, if it was too quick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// When the entry of the first was written.
    pub at: StoreTime,
    /// When a run ended well since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<StoreTime>,
}

impl Trouble {
    /// Whether it is to be reported, at `now`.
    #[must_use]
    pub fn lasts(&self, record: &JobRecord, now: StoreTime) -> bool {
        let open = self.over.is_none() && !record.participants.is_empty();
        open || self.at + TOLD_FOR > now
    }
}

/// A tick that should have begun, or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue {
    /// Which; of several the oldest.
    pub tick: Tick,
    /// When it should have.
    pub since: StoreTime,
    /// What the record shows in its way.
    pub obstacle: Option<Obstacle>,
}

/// What is in the way of a tick. That no node may run it, or none is alive, the record does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// An operator forbids the job.
    Held {
        /// Who.
        by: UserName,
        /// Why.
        reason: String,
    },
    /// Another tick is open.
    Behind(TickName),
    /// It has the lease and no run yet: it waits for its turn, or is being started.
    NotBegun,
}

impl Open {
    /// No attempt of it has begun yet.
    fn has_not_begun(&self) -> bool {
        self.run.is_none() && self.crashes == 0 && self.losses == 0
    }
}

/// A tick of the schedule that has not begun `start_within` after its start.
#[must_use]
pub fn unstarted(record: &JobRecord, schedule: &Schedule, now: StoreTime) -> Option<Overdue> {
    overdue(record, schedule.rules.start_within?, Open::has_not_begun, now)
}

/// A tick of the schedule that has not ended `finish_within` after its start.
#[must_use]
pub fn unfinished(record: &JobRecord, schedule: &Schedule, now: StoreTime) -> Option<Overdue> {
    overdue(record, schedule.rules.finish_within?, |_| true, now)
}

fn overdue(
    record: &JobRecord,
    within: Duration,
    counts: impl Fn(&Open) -> bool,
    now: StoreTime,
) -> Option<Overdue> {
    // Off is no obstacle: then it is unwanted.
    if record.participants.is_empty() {
        return None;
    }
    let clock = record.clock.as_deref()?;
    let open = clock.open().filter(|open| open.is_by_clock() && counts(open));
    let waits = clock.pending.iter().flat_map(|one| {
        // Those for which it is run have waited for longer.
        one.older.iter().map(|entry| &entry.tick).chain([&one.tick])
    });
    let ticks = waits.chain(open.map(|open| &open.tick)).chain(clock.missed_since_taken());
    let tick = ticks.min_by_key(|tick| tick.starts)?.clone();
    let since = tick.starts + within;
    (since <= now).then(|| Overdue { obstacle: obstacle(record, clock, &tick), tick, since })
}

fn obstacle(record: &JobRecord, clock: &Clock, tick: &Tick) -> Option<Obstacle> {
    if let Some(hold) = &record.hold {
        return Some(Obstacle::Held { by: hold.by.clone(), reason: hold.reason.clone() });
    }
    let open = clock.open()?;
    if open.tick.name != tick.name {
        return Some(Obstacle::Behind(open.tick.name.clone()));
    }
    (open.has_not_begun() && record.lease.is_some()).then_some(Obstacle::NotBegun)
}

impl Clock {
    /// The trouble of that kind.
    #[must_use]
    pub fn trouble(&self, kind: Kind) -> Option<&Trouble> {
        self.troubles.iter().find(|trouble| trouble.kind == kind)
    }

    /// The first tick that was missed, if none was granted since.
    fn missed_since_taken(&self) -> Option<&Tick> {
        let missed = self.trouble(Kind::Missed).filter(|trouble| trouble.over.is_none())?;
        let later = self.taken.as_ref().is_some_and(|taken| taken.starts > missed.tick.starts);
        (!later && missed.why != Some(Why::Changed)).then_some(&missed.tick)
    }
}

impl Books<'_> {
    /// Notes what the entry of a tick means for a person. `quick` is how long its run took, in milliseconds, if that was too short: such
    /// a run ends no trouble, however well it ended.
    pub(super) fn note(&mut self, entry: &Entry, quick: Option<u64>) {
        let kind = match entry.outcome {
            Outcome::Missed | Outcome::Dropped => Kind::Missed,
            Outcome::Lost => Kind::Lost,
            Outcome::Done if quick.is_some() => Kind::TooQuick,
            Outcome::Done => return self.end_troubles(),
            _ => return,
        };
        let took_ms = quick.filter(|_| kind == Kind::TooQuick);
        let all = &mut self.clock.troubles;
        if let Some(known) = all.iter_mut().find(|one| one.kind == kind && one.over.is_none()) {
            known.count = known.count.saturating_add(entry.count);
            (known.why, known.took_ms) = (entry.why.clone(), took_ms);
            return;
        }
        all.retain(|one| one.kind != kind);
        all.push(Trouble {
            kind,
            tick: entry.tick.clone(),
            count: entry.count,
            why: entry.why.clone(),
            took_ms,
            at: self.now,
            over: None,
        });
    }

    fn end_troubles(&mut self) {
        let now = self.now;
        self.clock.troubles.retain_mut(|one| {
            let over = *one.over.get_or_insert(now);
            over.max(one.at) + TOLD_FOR > now
        });
    }
}
