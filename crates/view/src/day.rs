//! What sources did in the last day, as pages show it: what all nodes remember ([`soloist_domain::throughput`]) with the counters of now.

use std::collections::HashMap;

use soloist_domain::name::SourceName;
use soloist_domain::throughput::{Count, Counts, Past, begins, step_of};
use soloist_domain::time::StoreTime;
use soloist_store::dispatch::SourceView;

/// The newest counters, and what was before them.
#[derive(Debug, Default)]
pub struct Days {
    /// As it was read while this step was under way.
    past: Option<(i64, Past)>,
    now: HashMap<SourceName, (i64, Count)>,
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

fn count(source: &SourceView) -> Count {
    Count { finished: source.finished, failed: source.retried + source.expired }
}

/// The step that is under way, and how far all counters are; `None` without a source.
pub fn counted(sources: &[SourceView]) -> Option<(i64, Counts)> {
    let step = step_of(sources.first()?.now);
    Some((step, sources.iter().map(|source| (source.name.clone(), count(source))).collect()))
}

impl Days {
    /// Notes a reading of all sources; those that are gone are forgotten.
    pub fn note(&mut self, sources: &[SourceView]) {
        let now = |source: &SourceView| (source.name.clone(), (step_of(source.now), count(source)));
        self.now = sources.iter().map(now).collect();
    }

    /// Whether what was before has not been read since `step` began.
    pub fn lacks(&self, step: i64) -> bool {
        self.past.as_ref().is_none_or(|(read, _)| *read != step)
    }

    /// Takes over what was read while `step` was under way.
    pub fn learn(&mut self, step: i64, past: Option<Past>) {
        self.past = past.map(|past| (step, past));
    }

    /// The steps of the last day in which a source did anything, the first of which anything is known, and the one that is under way;
    /// oldest first. None until all of it was read.
    #[must_use]
    pub fn of(&self, source: &SourceName) -> Vec<Step> {
        let (Some((_, past)), Some((step, count))) = (&self.past, self.now.get(source)) else {
            return Vec::new();
        };
        let told = past.day(source, *step, *count).into_iter();
        told.map(|(step, Count { finished, failed })| Step { from: begins(step), finished, failed })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::source::source;
    use soloist_domain::throughput::Mark;
    use soloist_domain::time::Stamp;

    #[test]
    fn a_day_is_shown_once_both_the_past_and_the_counters_are_known() {
        let mut view = source("pages");
        view.now = Stamp(31 * 60_000_000);
        (view.finished, view.retried, view.expired) = (53, 1, 1);
        let (step, counts) = counted(std::slice::from_ref(&view)).expect("a source");
        assert_eq!(step, 2);
        let mut days = Days::default();
        days.note(std::slice::from_ref(&view));
        assert!(days.lacks(2) && days.of(&view.name).is_empty());
        let mark = Mark::begin(1, &[(view.name.clone(), Count { finished: 50, failed: 0 })].into());
        days.learn(2, Some(Past { mark, steps: [(1, counts)].into() }));
        let told = days.of(&view.name);
        let told: Vec<_> =
            told.iter().map(|step| (step.from, step.finished, step.failed)).collect();
        assert_eq!(told, [(StoreTime(900_000), 53, 2), (StoreTime(1_800_000), 3, 2)]);
        assert!(!days.lacks(2) && days.lacks(3), "it is read once a step");
        days.note(&[]);
        assert_eq!(days.of(&view.name), [], "a source that is gone");
    }
}
