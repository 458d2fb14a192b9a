//! What sources did in the last day, by quarters of an hour.
//!
//! The store keeps counters and no history of them, so this is a memory of one node: it begins when the node starts, is the same
//! size however much is done, and what two nodes remember may differ at its ends. As in [`super::pace`], only counters that never
//! go back are noted.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::domain::name::SourceName;
use crate::domain::time::{Stamp, StoreTime};
use crate::store::dispatch::SourceView;

/// How long a step is.
pub(crate) const STEP: Duration = Duration::from_secs(15 * 60);
/// Steps of a day.
pub(crate) const STEPS: usize = 96;

/// Counters at the end of a step, or as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    /// Number of the step since 1970.
    step: i64,
    finished: u64,
    failed: u64,
}

/// What each source did.
#[derive(Debug, Default)]
pub(crate) struct Days {
    rings: HashMap<SourceName, VecDeque<Reading>>,
}

/// What one source did in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// When it began.
    pub from: StoreTime,
    /// Tasks that were reported as done.
    pub finished: u64,
    /// Tries that were reported for another one, and leases that ran out.
    pub failed: u64,
}

fn step_of(at: Stamp) -> i64 {
    at.0.div_euclid(i64::try_from(STEP.as_micros()).unwrap_or(i64::MAX))
}

impl Days {
    /// Notes a reading of all sources; those that are gone are forgotten.
    pub(crate) fn note(&mut self, sources: &[SourceView]) {
        let names: HashSet<&SourceName> = sources.iter().map(|source| &source.name).collect();
        self.rings.retain(|name, _| names.contains(name));
        for source in sources {
            let ring = self.rings.entry(source.name.clone()).or_default();
            let fresh = Reading {
                step: step_of(source.now),
                finished: source.finished,
                failed: source.retried + source.expired,
            };
            // A store that was emptied counts from zero again, and its clock may be another.
            let follows = |last: &Reading| {
                fresh.step >= last.step
                    && fresh.finished >= last.finished
                    && fresh.failed >= last.failed
            };
            if !ring.back().is_none_or(follows) {
                ring.clear();
            }
            if ring.is_empty() {
                // What was counted before this node looked is of no step.
                ring.push_back(Reading { step: fresh.step - 1, ..fresh });
            }
            match ring.back_mut() {
                Some(last) if last.step == fresh.step => *last = fresh,
                _ => ring.push_back(fresh),
            }
            while ring.len() > STEPS + 1 {
                ring.pop_front();
            }
        }
    }

    /// The steps of the last day in which a source did anything or was looked at, oldest first; none until it was read.
    #[must_use]
    pub(crate) fn of(&self, source: &SourceName) -> Vec<Step> {
        let Some(ring) = self.rings.get(source) else { return Vec::new() };
        let newest = ring.back().map_or(0, |last| last.step);
        let kept = i64::try_from(STEPS).unwrap_or(i64::MAX);
        let steps = ring.iter().zip(ring.iter().skip(1)).filter(|(_, to)| to.step > newest - kept);
        steps
            .map(|(from, to)| Step {
                from: StoreTime(to.step * i64::try_from(STEP.as_millis()).unwrap_or(i64::MAX)),
                finished: to.finished - from.finished,
                failed: to.failed - from.failed,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::source;
    use super::*;

    fn read(days: &mut Days, minute: i64, finished: u64, failed: u64) -> Vec<(u64, u64)> {
        let mut view = source("pages");
        view.now = Stamp(minute * 60_000_000);
        (view.finished, view.retried, view.expired) = (finished, failed, 0);
        days.note(std::slice::from_ref(&view));
        days.of(&view.name).iter().map(|step| (step.finished, step.failed)).collect()
    }

    #[test]
    fn a_step_is_what_was_counted_within_it() {
        let mut days = Days::default();
        assert_eq!(read(&mut days, 1, 50, 2), [(0, 0)], "what was before is of no step");
        assert_eq!(read(&mut days, 14, 53, 2), [(3, 0)]);
        assert_eq!(read(&mut days, 16, 57, 3), [(3, 0), (4, 1)]);
        let told = days.of(&source("pages").name);
        assert_eq!(told[1].from, StoreTime(15 * 60_000));
        assert_eq!(read(&mut days, 17, 1, 0), [(0, 0)], "counters went back");
        days.note(&[]);
        assert_eq!(days.of(&source("pages").name), []);
    }

    #[test]
    fn a_day_is_kept_and_no_more() {
        let mut days = Days::default();
        for n in 0..200_i64 {
            let told = read(&mut days, n * 15, n.unsigned_abs(), 0);
            assert_eq!(told.len(), STEPS.min(usize::try_from(n).expect("small") + 1));
        }
        assert_eq!(read(&mut days, 5_000, 300, 0), [(101, 0)], "a day later all else is old");
    }
}
