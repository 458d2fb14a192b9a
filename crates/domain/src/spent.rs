//! Ticks that callers name themselves: one run of a lease name for each of them (`soloist run --tick`).
//!
//! A tick is spent in the step that grants its lease, before anything starts. So whatever dies when, no tick runs twice. If its holder died
//! between that step and the start, the tick did not run at all, and every later caller learns that.
//!
//! The newest tick of a name is in the record, so that grant and entry are one step on every store. The older ones are rows beside it, each
//! under its own text: a grant reads one of them and never all. Before another replaces the newest, that one must have its row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::{Exit, JobRecord, LeaseRecord, RunEnd};
use super::journal::{Ended, Then};
use super::lease::Token;
use super::name::{NodeName, TickText};
use super::tick::{Tick, Ticks};
use super::time::StoreTime;

/// For so long a tick stays spent.
pub const KEPT: Duration = Duration::from_secs(400 * 86_400);
/// So many of a name are kept at most, the newest.
pub const MOST: usize = 100_000;
/// Those of a name are counted, and the oldest dropped, once for so many new ones: counting takes longer than a grant.
pub const COUNTED_EVERY: u32 = 16;
/// So many are dropped at once: more than come until they are counted again.
pub const DROPPED_AT_ONCE: usize = 32;
/// A tick that is due so soon counts as due: the clocks of hosts differ.
const ABOUT: Duration = Duration::from_secs(60);

/// One run for this tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// What it is for.
    pub tick: TickText,
    /// Also when it was spent, but its work failed or was lost.
    pub retry_failed: bool,
}

/// A tick that was spent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spent {
    /// Which.
    pub tick: TickText,
    /// Of the lease with whose grant it was spent.
    pub token: Token,
    /// To whom that was granted.
    pub by: NodeName,
    /// When.
    pub at: StoreTime,
    /// How its work ended, once that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<SpentEnd>,
}

/// How the work of a tick ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpentEnd {
    /// When.
    pub at: StoreTime,
    /// How.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of the work of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// In a word.
    pub how: How,
    /// Of its process, as far as that is known.
    #[serde(flatten)]
    pub exit: Exit,
}

impl Outcome {
    /// Nothing was started.
    pub const UNUSED: Self = Self { how: How::Unused, exit: Exit { code: None, signal: None } };
}

/// The words of [`Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// As it should.
    Done,
    /// It did not.
    Failed,
    /// Its holder died, or lost the lease.
    Lost,
    /// Nothing was started: the tick is as if it had not been spent.
    Unused,
}

/// How it stands with a tick that is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its work lasts: it holds the lease.
    Running,
    /// Its work was done.
    Done,
    /// Its work failed.
    Failed,
    /// Nobody said how its work ended, and nobody holds the lease for it: whether it was done is not known.
    Lost,
}

/// The newest one of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Newest {
    /// That tick.
    #[serde(flatten)]
    pub spent: Spent,
    /// So many others came since those of the name were counted.
    #[serde(default)]
    pub uncounted: u32,
}

impl Newest {
    /// Whether those of the name are to be counted when another takes its place.
    #[must_use]
    pub fn is_to_count(&self) -> bool {
        self.uncounted == 0
    }
}

impl Once {
    /// Whether a tick in this state does not run for this.
    #[must_use]
    pub fn is_refused(&self, standing: Standing) -> bool {
        match standing {
            Standing::Running | Standing::Done => true,
            Standing::Failed | Standing::Lost => !self.retry_failed,
        }
    }
}

impl Spent {
    /// Whether this says more than `other`, which is of the same tick: a later attempt, or how the same one ended.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let more = self.ended.is_some() && other.ended.is_none();
        self.token > other.token || self.token == other.token && more
    }

    /// How it stands with it at `now`, where `lease` is that of the name; `None`: it is spent no more, or never was.
    #[must_use]
    pub fn standing(&self, lease: Option<&LeaseRecord>, now: StoreTime) -> Option<Standing> {
        let how = self.ended.as_ref().map(|end| end.outcome.how);
        match how {
            None if lease.is_some_and(|lease| lease.token == self.token) => Some(Standing::Running),
            Some(How::Unused) => None,
            _ if self.is_over(now) => None,
            Some(How::Done) => Some(Standing::Done),
            Some(How::Failed) => Some(Standing::Failed),
            None | Some(How::Lost) => Some(Standing::Lost),
        }
    }

    /// Whether it was kept for long enough.
    #[must_use]
    pub fn is_over(&self, now: StoreTime) -> bool {
        now.since(self.at) >= KEPT
    }
}

/// What is known of `tick`: from the record, and from the rows beside it.
#[must_use]
pub fn known<'a>(
    record: &'a JobRecord,
    tick: &TickText,
    beside: Option<&'a Spent>,
) -> Option<&'a Spent> {
    let newest = record.spent.as_ref().map(|newest| &newest.spent);
    let newest = newest.filter(|newest| newest.tick == *tick);
    match (newest, beside) {
        (Some(newest), Some(beside)) if beside.is_newer_than(newest) => Some(beside),
        (newest, beside) => newest.or(beside),
    }
}

/// How many of the `oldest` are dropped, where there are `count` in all: those that are too many, and those that were kept for long enough.
/// `None`: nothing says what it was.
#[must_use]
pub fn dropped(oldest: &[Option<Spent>], count: usize, now: StoreTime) -> usize {
    // Until they are counted again, so many more come.
    let most = MOST - usize::try_from(COUNTED_EVERY).unwrap_or(MOST);
    let over = |one: &&Option<Spent>| one.as_ref().is_none_or(|spent| spent.is_over(now));
    let over = oldest.iter().take_while(over).count();
    count.saturating_sub(most).max(over).min(oldest.len())
}

/// Spends a tick with the lease under `token`.
pub(crate) fn spend(record: &mut JobRecord, spent: Spent) {
    let uncounted = match &record.spent {
        Some(newest) if newest.spent.tick == spent.tick => newest.uncounted,
        Some(newest) => (newest.uncounted + 1) % COUNTED_EVERY,
        None => 0,
    };
    record.spent = Some(Box::new(Newest { spent, uncounted }));
}

/// The work of the tick that was spent with the lease under `token` has ended, if there is one. Whether there was.
pub(crate) fn end(record: &mut JobRecord, token: Token, outcome: Outcome, at: StoreTime) -> bool {
    let newest = record.spent.as_mut().map(|newest| &mut newest.spent);
    let Some(open) = newest.filter(|one| one.token == token && one.ended.is_none()) else {
        return false;
    };
    open.ended = Some(SpentEnd { at, outcome });
    true
}

/// The same of a run that ended.
pub(crate) fn ended(record: &mut JobRecord, ended: &Ended, at: StoreTime) {
    let how = match ended.end {
        _ if ended.then == Then::Unused => How::Unused,
        RunEnd::Exited => How::Done,
        // Its command had come to its end; who held it could not say so.
        RunEnd::Lost if ended.exit.is_success() => How::Done,
        RunEnd::Crashed | RunEnd::Stopped | RunEnd::TimedOut => How::Failed,
        RunEnd::Lost | RunEnd::Died | RunEnd::Fenced => How::Lost,
    };
    end(record, ended.token, Outcome { how, exit: ended.exit }, at);
}

/// The tick that is meant at `now`: the newest one that is due, or the next one if that is due within a minute, or half the interval if
/// that is shorter. `None`: none is due yet.
#[must_use]
pub fn meant(ticks: &dyn Ticks, now: StoreTime) -> Option<Tick> {
    let newest = ticks.until(now);
    let Some(next) = ticks.after(now) else { return newest };
    let interval = match &newest {
        Some(newest) => next.starts.since(newest.starts),
        None => {
            let then = ticks.after(next.starts);
            then.map_or(Duration::MAX, |then| then.starts.since(next.starts))
        }
    };
    let soon = next.starts.since(now) <= ABOUT.min(interval / 2);
    if soon { Some(next) } else { newest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{JobName, Owner};
    use crate::tick::TickName;

    const NOW: StoreTime = StoreTime(1_800_000_000_000);

    fn spent(tick: &str, token: u64, how: Option<How>) -> Spent {
        let exit = Exit::default();
        let ended = how.map(|how| SpentEnd { at: NOW, outcome: Outcome { how, exit } });
        let (tick, by) = (TickText::new(tick).expect("a tick"), NodeName::unknown());
        Spent { tick, token: Token(token), by, at: NOW, ended }
    }

    fn lease(token: u64) -> LeaseRecord {
        LeaseRecord {
            node: NodeName::unknown(),
            owner: Owner("a".to_owned()),
            token: Token(token),
            since: NOW,
            expires_in: KEPT,
            ttl: KEPT,
        }
    }

    fn record() -> JobRecord {
        JobRecord::untouched(JobName::new("nightly").expect("a name"))
    }

    #[test]
    fn a_tick_without_an_end_lasts_as_long_as_its_lease_and_is_lost_then() {
        let open = spent("a", 7, None);
        let stands = |lease: Option<LeaseRecord>| open.standing(lease.as_ref(), NOW);
        assert_eq!(stands(Some(lease(7))), Some(Standing::Running));
        assert_eq!(stands(Some(lease(8))), Some(Standing::Lost), "of another");
        assert_eq!(stands(None), Some(Standing::Lost));
        for (how, stands) in [
            (How::Done, Some(Standing::Done)),
            (How::Failed, Some(Standing::Failed)),
            (How::Lost, Some(Standing::Lost)),
            (How::Unused, None),
        ] {
            assert_eq!(spent("a", 7, Some(how)).standing(Some(&lease(8)), NOW), stands, "{how:?}");
        }
    }

    #[test]
    fn a_tick_is_spent_for_400_days_and_while_it_runs() {
        let (last, over) = (NOW + KEPT - Duration::from_millis(1), NOW + KEPT);
        for how in [None, Some(How::Done), Some(How::Failed), Some(How::Lost)] {
            let one = spent("a", 7, how);
            assert!(one.standing(None, last).is_some(), "{how:?}");
            assert_eq!(one.standing(None, over), None, "{how:?}");
        }
        let running = spent("a", 7, None).standing(Some(&lease(7)), over);
        assert_eq!(running, Some(Standing::Running));
        // A clock that was set back makes nothing spent unspent.
        assert!(spent("a", 7, Some(How::Done)).standing(None, StoreTime(0)).is_some());
    }

    #[test]
    fn only_what_failed_or_was_lost_is_done_again_and_only_if_asked_for() {
        let tick = TickText::new("a").expect("a tick");
        for retry_failed in [false, true] {
            let once = Once { tick: tick.clone(), retry_failed };
            assert!(once.is_refused(Standing::Running) && once.is_refused(Standing::Done));
            for standing in [Standing::Failed, Standing::Lost] {
                assert_eq!(once.is_refused(standing), !retry_failed, "{standing:?}");
            }
        }
    }

    #[test]
    fn what_says_more_counts_whether_it_stands_in_the_record_or_beside_it() {
        let open = spent("a", 7, None);
        let done = spent("a", 7, Some(How::Done));
        let again = spent("a", 8, None);
        assert!(done.is_newer_than(&open) && again.is_newer_than(&done));
        for (old, new) in [(&open, &open), (&open, &done), (&done, &again), (&done, &done)] {
            assert!(!old.is_newer_than(new));
        }
        let mut record = record();
        let tick = open.tick.clone();
        assert_eq!(known(&record, &tick, None), None);
        assert_eq!(known(&record, &tick, Some(&open)), Some(&open));
        spend(&mut record, done.clone());
        assert_eq!(known(&record, &tick, None), Some(&done));
        assert_eq!(known(&record, &tick, Some(&open)), Some(&done));
        assert_eq!(known(&record, &tick, Some(&again)), Some(&again));
        let other = TickText::new("b").expect("a tick");
        assert_eq!(known(&record, &other, None), None);
    }

    #[test]
    fn an_end_is_noted_once_and_under_its_own_token_alone() {
        let mut record = record();
        let outcome = |how| Outcome { how, exit: Exit::default() };
        assert!(!end(&mut record, Token(7), outcome(How::Done), NOW));
        spend(&mut record, spent("a", 7, None));
        for token in [6, 8] {
            assert!(!end(&mut record, Token(token), outcome(How::Done), NOW), "{token}");
        }
        assert!(end(&mut record, Token(7), outcome(How::Failed), NOW));
        assert!(!end(&mut record, Token(7), outcome(How::Done), NOW), "said before");
        let newest = record.spent.expect("the newest");
        assert_eq!(newest.spent, spent("a", 7, Some(How::Failed)));
    }

    #[test]
    fn those_of_a_name_are_counted_now_and_then_and_the_oldest_dropped() {
        let mut record = record();
        let counted = |record: &mut JobRecord, number: u64| {
            spend(record, spent(&format!("{number}"), number, None));
            record.spent.as_ref().expect("the newest").is_to_count()
        };
        let count = (0..3 * u64::from(COUNTED_EVERY)).filter(|n| counted(&mut record, *n)).count();
        assert_eq!(count, 3);
        // Another attempt is no new one.
        assert!(!counted(&mut record, 3 * u64::from(COUNTED_EVERY) - 1));

        let young: Vec<_> =
            (0..DROPPED_AT_ONCE as u64).map(|n| Some(spent("a", n, None))).collect();
        assert_eq!(dropped(&young, 40, NOW), 0);
        let most = MOST - COUNTED_EVERY as usize;
        assert_eq!(dropped(&young, most, NOW), 0);
        assert_eq!(dropped(&young, MOST, NOW), COUNTED_EVERY as usize);
        assert_eq!(dropped(&young, 2 * MOST, NOW), DROPPED_AT_ONCE);
        assert_eq!(dropped(&young, 40, NOW + KEPT), DROPPED_AT_ONCE, "for long enough");
        let mut mixed = young;
        mixed[0] = None;
        mixed[1].as_mut().expect("one").at = StoreTime(0);
        assert_eq!(dropped(&mixed, 40, NOW), 2);
        assert_eq!(dropped(&[], MOST, NOW), 0);
    }

    #[derive(Debug)]
    struct Every(i64, Option<i64>);

    impl Every {
        fn tick(&self, at: i64) -> Option<Tick> {
            let first = self.1.unwrap_or(i64::MIN);
            let tick = |at: i64| {
                let due = StoreTime(at);
                Tick { name: TickName(at.to_string()), due, starts: due, note: None }
            };
            (at >= first).then(|| tick(at))
        }
    }

    impl Ticks for Every {
        fn after(&self, instant: StoreTime) -> Option<Tick> {
            let next = (instant.0.div_euclid(self.0) + 1) * self.0;
            self.tick(next).or_else(|| self.tick(self.1.unwrap_or(next)))
        }

        fn until(&self, instant: StoreTime) -> Option<Tick> {
            self.tick(instant.0.div_euclid(self.0) * self.0)
        }

        fn former(&self, _: &str) -> Option<std::sync::Arc<dyn Ticks>> {
            None
        }
    }

    #[test]
    fn the_tick_that_is_meant_is_the_newest_due_or_one_that_is_due_in_a_minute() {
        let is = |ticks: &Every, now: i64| meant(ticks, StoreTime(now)).map(|tick| tick.due.0);
        let daily = Every(86_400_000, None);
        for (now, due) in [
            (0, 0),
            (1, 0),
            (86_400_000 - 60_001, 0),
            (86_400_000 - 60_000, 86_400_000),
            (86_400_000 - 1, 86_400_000),
            (86_400_000, 86_400_000),
        ] {
            assert_eq!(is(&daily, now), Some(due), "{now}");
        }
        // Half the interval, if that is shorter.
        let often = Every(20_000, None);
        assert_eq!(is(&often, 9_999), Some(0));
        assert_eq!(is(&often, 10_000), Some(20_000));
        let later = Every(86_400_000, Some(86_400_000));
        assert_eq!(is(&later, 0), None, "none is due yet");
        assert_eq!(is(&later, 86_400_000 - 60_000), Some(86_400_000));
    }
}
