//! How fast sources go: a short memory of their counters, and the rates that it gives.
//!
//! Only counters that never go back are remembered, with the store's clock of each reading: a reading that came late
//! or not at all makes a point less exact and never wrong. Which readings there are is the caller's business.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use soloist_domain::name::SourceName;
use soloist_domain::time::Stamp;
use soloist_store::dispatch::SourceView;

/// How far apart readings should be.
pub const READ_EVERY: Duration = Duration::from_secs(3);
/// Readings kept of each source: three minutes.
const KEPT: usize = 61;
/// The rate of now is that of so many steps, so that one slow reading does not make it jump.
const NOW: usize = 3;

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Stamp,
    started: u64,
    finished: u64,
}

/// The newest readings of every source.
#[derive(Debug, Default)]
pub struct Paces {
    rings: HashMap<SourceName, VecDeque<Reading>>,
}

/// Rates per second of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// Finished in each step, oldest first; at least one.
    pub finished: Vec<f64>,
    /// Started in each step.
    pub started: Vec<f64>,
    /// Finished in the last few seconds.
    pub now: f64,
    /// From the first reading to the last.
    pub span: Duration,
}

impl Paces {
    /// Adds a reading of all sources; those that are gone are forgotten.
    pub fn note(&mut self, sources: &[SourceView]) {
        let names: HashSet<&SourceName> = sources.iter().map(|source| &source.name).collect();
        self.rings.retain(|name, _| names.contains(name));
        for source in sources {
            let ring = self.rings.entry(source.name.clone()).or_default();
            let fresh =
                Reading { at: source.now, started: source.started, finished: source.finished };
            // A store that was emptied counts from zero again, and its clock may be another.
            let follows = |last: &Reading| {
                fresh.at > last.at
                    && fresh.started >= last.started
                    && fresh.finished >= last.finished
            };
            if !ring.back().is_none_or(follows) {
                ring.clear();
            }
            ring.push_back(fresh);
            while ring.len() > KEPT {
                ring.pop_front();
            }
        }
    }

    /// The rates of a source; `None` until it was read twice.
    #[must_use]
    pub fn of(&self, source: &SourceName) -> Option<Pace> {
        let ring = self.rings.get(source)?;
        let (first, last) = (ring.front()?, ring.back()?);
        if ring.len() < 2 {
            return None;
        }
        let rates = |count: fn(&Reading) -> u64| {
            let steps = ring.iter().zip(ring.iter().skip(1));
            steps.map(|(from, to)| rate(count(to) - count(from), to.at.since(from.at))).collect()
        };
        let recent = &ring[ring.len().saturating_sub(NOW + 1)];
        Some(Pace {
            finished: rates(|reading| reading.finished),
            started: rates(|reading| reading.started),
            now: rate(last.finished - recent.finished, last.at.since(recent.at)),
            span: last.at.since(first.at),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody starts 2^53 tasks between two readings")]
fn rate(count: u64, span: Duration) -> f64 {
    count as f64 / span.as_secs_f64().max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::source::source;

    fn read(paces: &mut Paces, second: i64, started: u64, finished: u64) -> Option<Pace> {
        let mut view = source("pages");
        view.now = Stamp(second * 1_000_000);
        (view.started, view.finished) = (started, finished);
        paces.note(std::slice::from_ref(&view));
        paces.of(&view.name)
    }

    #[test]
    fn a_rate_is_what_was_counted_by_the_time_between_two_readings() {
        let mut paces = Paces::default();
        assert_eq!(read(&mut paces, 10, 5, 0), None, "one reading is no rate");
        read(&mut paces, 12, 25, 4);
        let pace = read(&mut paces, 20, 25, 36).expect("a pace");
        assert_eq!((pace.started, pace.finished), (vec![10.0, 0.0], vec![2.0, 4.0]));
        assert_eq!((pace.now, pace.span), (3.6, Duration::from_secs(10)));
    }

    #[test]
    fn a_store_that_was_emptied_or_set_back_begins_anew() {
        let mut paces = Paces::default();
        read(&mut paces, 10, 50, 50);
        assert_eq!(read(&mut paces, 13, 2, 1), None, "counters went back");
        assert!(read(&mut paces, 16, 3, 3).is_some());
        assert_eq!(read(&mut paces, 12, 4, 4), None, "the clock went back");
        paces.note(&[]);
        assert_eq!(paces.of(&source("pages").name), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut paces = Paces::default();
        let last = (0..1_000).filter_map(|n| read(&mut paces, n, 0, 0)).last().expect("a pace");
        assert_eq!(last.finished.len(), KEPT - 1);
    }
}
