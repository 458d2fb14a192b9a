//! What sources did in the last day, by quarters of an hour: one memory for all nodes.
//!
//! A source counts for as long as it exists and keeps no history. At the end of a quarter one node records what each source did in it, and
//! how far its counters have come ([`Mark::next`]). A quarter without activity costs no write. What was done while no node looked belongs to
//! the quarter at whose end a node looks again. The store decides who writes, and where.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::SourceName;
use super::time::{Stamp, StoreTime};

/// How long a step is.
pub const STEP: Duration = Duration::from_secs(15 * 60);
/// Steps of a day.
pub const STEPS: i64 = 96;

/// Counters of a source, or what was added to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Count {
    /// Tasks that were reported as done.
    pub finished: u64,
    /// Tries that were reported for another one, and leases that ran out.
    pub failed: u64,
}

/// By source.
pub type Counts = BTreeMap<SourceName, Count>;

/// The number of a step since 1970.
#[must_use]
pub fn step_of(at: Stamp) -> i64 {
    at.0.div_euclid(i64::try_from(STEP.as_micros()).unwrap_or(i64::MAX))
}

/// When a step begins.
#[must_use]
pub fn begins(step: i64) -> StoreTime {
    StoreTime(step.saturating_mul(crate::time::signed_millis(STEP)))
}

impl Count {
    /// What was added since `before`. A source that was made anew, or whose store was emptied, counts from zero again.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let added =
            self.finished.checked_sub(before.finished).zip(self.failed.checked_sub(before.failed));
        added.map_or(self, |(finished, failed)| Self { finished, failed })
    }
}

/// How far the counters had come when they were written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The first step of which anything is known.
    pub since: i64,
    /// The step that was under way then.
    pub until: i64,
    /// The counters.
    pub counted: Counts,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// From now on.
    pub mark: Mark,
    /// A step that is over, and what was done in it.
    pub over: Option<(i64, Counts)>,
    /// Steps that are no longer kept.
    pub forgotten: Range<i64>,
}

impl Mark {
    /// The first one, while `step` is under way: what was counted before is of no step.
    #[must_use]
    pub fn begin(step: i64, counted: &Counts) -> Self {
        Self { since: step, until: step, counted: counted.clone() }
    }

    /// What is to be written while `step` is under way and the counters are these; `None`: nothing was done, or it is written already.
    #[must_use]
    pub fn next(&self, step: i64, counted: &Counts) -> Option<Next> {
        let oldest = self.until.saturating_sub(STEPS + 1);
        if step < self.until.saturating_sub(1) {
            // The store's clock was set back: all that is known lies in its future.
            let mark = Self::begin(step, counted);
            return Some(Next { mark, over: None, forgotten: oldest..self.until });
        }
        let over = self.added(counted);
        if step <= self.until || over.is_empty() {
            return None;
        }
        Some(Next {
            mark: Self { since: self.since, until: step, counted: counted.clone() },
            over: Some((step - 1, over)),
            forgotten: oldest..self.until.min(step.saturating_sub(STEPS)),
        })
    }

    /// What each source did since then; those that did nothing are left out.
    fn added(&self, counted: &Counts) -> Counts {
        let of = |name| self.counted.get(name).copied().unwrap_or_default();
        let added = counted.iter().map(|(name, count)| (name.clone(), count.since(of(name))));
        added.filter(|(_, count)| *count != Count::default()).collect()
    }
}

/// All that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// How far it goes.
    pub mark: Mark,
    /// Steps that are over and in which anything was done.
    pub steps: BTreeMap<i64, Counts>,
}

impl Past {
    /// What one source did in the last day, oldest first, while `step` is under way and its counters are at `count`: every step in which
    /// it did anything, the first of which anything is known, and `step`.
    #[must_use]
    pub fn day(&self, source: &SourceName, step: i64, count: Count) -> Vec<(i64, Count)> {
        let oldest = self.mark.since.max(step.saturating_sub(STEPS - 1));
        let mut day: BTreeMap<i64, Count> = [(oldest.min(step), Count::default())].into();
        let kept = self.steps.range(oldest.min(step)..=step);
        day.extend(kept.filter_map(|(nth, counts)| Some((*nth, *counts.get(source)?))));
        let now = day.entry(step).or_default();
        let added = count.since(self.mark.counted.get(source).copied().unwrap_or_default());
        *now = Count { finished: now.finished + added.finished, failed: now.failed + added.failed };
        day.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SourceName {
        SourceName::new(text).expect("a name")
    }

    fn counts(finished: u64, failed: u64) -> Counts {
        [(name("shop"), Count { finished, failed })].into()
    }

    fn carry_out(past: &mut Past, next: Next) {
        past.mark = next.mark;
        past.steps.extend(next.over);
        past.steps.retain(|step, _| !next.forgotten.contains(step));
    }

    fn begun(step: i64, counted: &Counts) -> Past {
        Past { mark: Mark::begin(step, counted), steps: BTreeMap::new() }
    }

    #[test]
    fn a_step_is_written_once_it_is_over_and_only_if_anything_was_done() {
        let mark = Mark::begin(10, &counts(50, 2));
        assert_eq!(mark.next(10, &counts(53, 2)), None, "it is under way");
        assert_eq!(mark.next(11, &counts(50, 2)), None, "nothing was done");
        let next = mark.next(11, &counts(53, 3)).expect("something was done");
        assert_eq!(next.over, Some((10, counts(3, 1))));
        assert_eq!((next.mark.since, next.mark.until), (10, 11));
        assert_eq!(next.mark.next(11, &counts(54, 3)), None, "another node has written it");
    }

    #[test]
    fn what_nobody_saw_is_told_with_the_step_at_whose_end_somebody_looks() {
        let next = Mark::begin(10, &counts(5, 0)).next(30, &counts(9, 0)).expect("news");
        assert_eq!(next.over, Some((29, counts(4, 0))));
    }

    #[test]
    fn a_source_that_was_made_anew_counts_from_zero_and_one_that_is_gone_is_forgotten() {
        let mark = Mark::begin(10, &counts(50, 2));
        let next = mark.next(11, &counts(1, 0)).expect("news");
        assert_eq!(next.over, Some((10, counts(1, 0))));
        assert_eq!(next.mark.next(12, &Counts::new()), None);
    }

    #[test]
    fn a_clock_that_was_set_back_begins_anew() {
        let next = Mark::begin(500, &counts(5, 0)).next(20, &counts(6, 0)).expect("news");
        assert_eq!(next.mark, Mark::begin(20, &counts(6, 0)));
        assert_eq!((next.over, next.forgotten), (None, 403..500));
        assert_eq!(Mark::begin(500, &counts(5, 0)).next(499, &counts(6, 0)), None, "by a little");
    }

    #[test]
    fn a_day_has_what_is_written_and_what_has_been_done_since() {
        let mut past = begun(10, &counts(50, 2));
        let (shop, count) = (name("shop"), |finished, failed| Count { finished, failed });
        assert_eq!(past.day(&shop, 10, count(50, 2)), [(10, count(0, 0))]);
        let next = past.mark.next(11, &counts(53, 2)).expect("news");
        carry_out(&mut past, next);
        let told = past.day(&shop, 13, count(54, 3));
        assert_eq!(told, [(10, count(3, 0)), (13, count(1, 1))]);
        assert_eq!(past.day(&name("new"), 13, count(2, 0)), [(10, count(0, 0)), (13, count(2, 0))]);
    }

    #[test]
    fn a_day_is_kept_and_no_more() {
        let mut past = begun(0, &Counts::new());
        for step in 1..300_i64 {
            let counted = counts(step.unsigned_abs(), 0);
            let next = past.mark.next(step, &counted).expect("something was done");
            carry_out(&mut past, next);
            let told =
                past.day(&name("shop"), step, Count { finished: step.unsigned_abs(), failed: 0 });
            let length = i64::try_from(told.len()).expect("small");
            assert_eq!(length, STEPS.min(step + 1), "at {step}");
        }
        assert!(past.steps.len() <= 97, "{}", past.steps.len());
    }
}
