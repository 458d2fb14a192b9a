//! A store that forgot, or was restored: a living node reports again what it saw of the ticks of a job.
//!
//! The newest record that a living node saw replaces an older one. What no node saw stays unknown: a tick that started after the last look
//! of every living node and before the change may have been granted to a dead holder. It does not run again, and its entry says why.

use serde::{Deserialize, Serialize};

use super::account::{Books, order, shifted};
use super::record::{Clock, Outcome, Phase, Why};
use super::rules::Schedule;
use crate::job::JobRecord;
use crate::lease::Token;
use crate::time::StoreTime;
use crate::transition::Write;

/// What a node saw last of the ticks of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// As the record said.
    pub clock: Box<Clock>,
    /// Of that record.
    pub version: u64,
    /// When it said so, by the store's clock.
    pub at: StoreTime,
    /// The store has changed since: it restarted, was replaced, restored or emptied. The node noticed it then, and the store was still in
    /// doubt.
    pub changed: Option<StoreTime>,
}

/// Ticks that start later than `seen` and up to `until` may have been granted, and the store does not know it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Forgot {
    /// A node that lives saw the record then.
    pub seen: StoreTime,
    /// When the change was noticed.
    pub until: StoreTime,
}

/// Gives a store that forgot what a node saw. One that knows as much, or more, learns nothing. `released` is the newest token whose lease
/// was released.
pub(crate) fn learn(
    record: &mut JobRecord,
    released: Token,
    schedule: &Schedule,
    sight: &Sight,
    now: StoreTime,
) -> Vec<Write> {
    let version = record.version;
    let newest = record.clock.as_ref().map(|clock| clock.newest());
    let older = version < sight.version
        || sight.changed.is_some() && newest.is_none_or(|newest| newest < sight.clock.newest());
    let mut writes = Vec::new();
    if older {
        let before = record.clock.replace(sight.clock.clone());
        let (known, gap) = before.map_or_else(Default::default, |old| (old.recent, old.forgot));
        // The list of entries is as old as the record was.
        for entry in &sight.clock.recent {
            let old = known.iter().find(|old| old.tick.name == entry.tick.name);
            if old != Some(entry) {
                let (entry, instead) = (Box::new(entry.clone()), old.cloned().map(Box::new));
                writes.push(Write::KeepTick { entry, instead });
            }
        }
        if let Some(clock) = &mut record.clock {
            clock.forgot = clock.forgot.max(gap);
            // Another node that told of it before may have had its entry written: there is one for each tick.
            if let Some(open) = &mut clock.open {
                let told = known.iter().find(|entry| entry.tick.name == open.tick.name);
                open.known = told.cloned().map(Box::new).or(open.known.take());
            }
        }
        shifted(record, now);
    }
    let Some(until) = sight.changed.or(older.then_some(now)) else { return writes };
    let Some(clock) = &mut record.clock else { return writes };
    clock.attempts = clock.attempts.max(sight.clock.attempts);
    if let Some(seen) = &sight.clock.taken
        && clock.taken.as_ref().is_none_or(|taken| taken.starts < seen.starts)
    {
        clock.taken = Some(seen.clone());
    }
    let gap = clock.forgot.get_or_insert(Forgot { seen: sight.at, until });
    (gap.seen, gap.until) = (gap.seen.max(sight.at), gap.until.max(until));
    let over =
        clock.open().is_some_and(|open| open.phase == Phase::Granted && open.token <= released);
    if over {
        // Its end was reported to a store that did not know it.
        let mut books = Books { clock, order: Some(order(schedule)), writes, now };
        books.end_open(now, Outcome::Lost, Why::Forgot);
        return books.writes;
    }
    writes
}

impl Clock {
    /// The newest instant at which anything of it changed, as far as it says.
    fn newest(&self) -> StoreTime {
        let open = self.open.iter().flat_map(|open| {
            let phase = match open.phase {
                Phase::Granted => open.granted,
                Phase::Again { since, .. } => since,
                Phase::Ended { at } => at,
            };
            [open.granted, phase].into_iter().chain(open.started)
        });
        let asked = self.asked.iter().map(|asked| asked.at);
        let shifts = self.shifts.iter().map(|shift| shift.at);
        let recent = self.recent.iter().filter_map(|entry| entry.ended);
        let all = open.chain(asked).chain(shifts).chain(recent);
        all.chain([self.accounted]).max().unwrap_or_default()
    }

    /// Whether the store may have forgotten the outcome of a tick that starts then: it was granted, or no living node saw that it was not.
    pub(super) fn may_have_forgotten(&self, starts: StoreTime) -> bool {
        let taken = self.taken.as_ref().is_some_and(|taken| starts <= taken.starts);
        self.forgot.is_some_and(|gap| starts <= gap.until && (taken || starts > gap.seen))
    }
}
