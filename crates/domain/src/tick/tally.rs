//! Outcomes of ticks between two looks at a job, for metrics.

use super::record::{By, Clock, Entry, Outcome};

/// What is new since an earlier look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct News {
    /// How many ticks came to which end.
    pub ended: Vec<(Outcome, u32)>,
    /// How long after their start ticks of the clock were granted for the first time, in milliseconds.
    pub late_ms: Vec<u64>,
}

impl Clock {
    /// What is new in it since `before`, an earlier state of it. Of more than [`super::RECENT`] entries at once only the newest are.
    #[must_use]
    pub fn news_since(&self, before: &Self) -> News {
        let mut news = News::default();
        for entry in &self.recent {
            // A gap of which one tick is run by name falls into parts, and none of them is new.
            let known = |old: &&Entry| {
                old.outcome == entry.outcome && old.is_of(&entry.tick.name, entry.tick.starts)
            };
            let old = before.recent.iter().filter(known).map(|old| old.count).max();
            let more = entry.count.saturating_sub(old.unwrap_or(0));
            if more == 0 {
                continue;
            }
            news.ended.push((entry.outcome, more));
            let was_open =
                before.open.as_ref().is_some_and(|open| open.tick.name == entry.tick.name);
            if let (Some(late), true) = (entry.late_ms, entry.by.is_none() && !was_open) {
                news.late_ms.push(late);
            }
        }
        let first = self.open().filter(|open| open.by == By::Clock && open.attempt == 1);
        let granted = |of: &Self, token| of.open.as_ref().is_some_and(|open| open.token == token);
        if let Some(open) = first.filter(|open| !granted(before, open.token)) {
            news.late_ms.push(open.late_ms);
        }
        news
    }
}
