//! The rules of a source, and what they allow at an instant.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fields::{
    DAY, Field, Fields, Given, InvalidRules, Lists, MILLISECOND, Unit, YEAR, length, micros, small,
};
use crate::time::Stamp;

/// At most `count` starts in any stretch of time of length `span`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[expect(missing_docs, reason = "as said above")]
pub struct Window {
    pub count: u32,
    pub span: Duration,
}

/// How long a task waits after it was reported for another try: `first`, then twice as long each time, at most `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as said above")]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
}

/// How a source wants to be served: over all collectors together, by the store's clock.
///
/// What a store kept before there was a rule reads as its default.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Least time between two starts; zero for none.
    pub gap: Duration,
    /// Most starts in a sliding window.
    pub window: Option<Window>,
    /// Most tasks in collectors' hands at once.
    pub cap: Option<u32>,
    /// How long a collector may keep a task unextended.
    pub lease: Duration,
    /// Attempts after which a task is dead; 0 never.
    pub max_attempts: u32,
    /// Before another try that the collector asked for.
    pub backoff: Backoff,
    /// No claim is served.
    pub paused: bool,
}

impl Default for Rules {
    fn default() -> Self {
        let zero = Duration::ZERO;
        Self {
            gap: zero,
            window: None,
            cap: None,
            lease: zero,
            max_attempts: 0,
            backoff: Backoff { first: zero, max: zero },
            paused: false,
        }
        .filled()
    }
}

/// The starts of one window are remembered one by one.
const LARGEST_WINDOW: u64 = 100_000;
/// Leases of tasks and of turns.
pub(crate) const LEASES: (u64, u64) = (100 * MILLISECOND, DAY);

impl Fields for Rules {
    const BESIDE: &'static [&'static str] = &["reason"];
    const FIELDS: &'static [Field<Self>] = &[
        Field::<Self>::new(
            "gap_ms",
            Unit::Length,
            (0, YEAR),
            |rules| Some(micros(rules.gap)),
            |rules, gap| rules.gap = length(gap),
        )
        .default(0)
        .kept("gap")
        .option("gap", "Least time between two starts")
        .form("rules-pace", "field-gap", "means-gap")
        .said("rule-gap", "time", Lists::All),
        Field::<Self>::new(
            "window.count",
            Unit::Count,
            (1, LARGEST_WINDOW),
            |rules| rules.window.map(|window| window.count.into()),
            |rules, count| rules.window.get_or_insert_default().count = small(count),
        )
        .kept("count")
        .option("window", "Most starts in any stretch of time")
        .form("rules-pace", "field-window-count", "means-window-count")
        .said("rule-window", "n", Lists::All),
        Field::<Self>::new(
            "window.ms",
            Unit::Length,
            (MILLISECOND, YEAR),
            |rules| rules.window.map(|window| micros(window.span)),
            |rules, span| rules.window.get_or_insert_default().span = length(span),
        )
        .kept("span")
        .option("window", "That stretch of time")
        .form("rules-pace", "field-window-span", "means-window-span")
        .said("rule-window", "time", Lists::All),
        Field::<Self>::new(
            "cap",
            Unit::Count,
            (1, u32::MAX as u64),
            |rules| rules.cap.map(Into::into),
            |rules, cap| rules.cap = Some(small(cap)),
        )
        .kept("cap")
        .option("cap", "Most tasks in collectors' hands at once")
        .form("rules-pace", "field-cap", "means-cap")
        .said("rule-cap", "n", Lists::All),
        Field::<Self>::new(
            "lease_ms",
            Unit::Length,
            LEASES,
            |rules| Some(micros(rules.lease)),
            |rules, lease| rules.lease = length(lease),
        )
        .default(60_000 * MILLISECOND)
        .kept("lease")
        .option("lease", "How long a collector may keep a task that it does not extend")
        .form("rules-tries", "field-lease", "means-lease")
        .said("rule-lease", "time", Lists::All),
        Field::<Self>::new(
            "max_attempts",
            Unit::Count,
            (0, u32::MAX as u64),
            |rules| Some(rules.max_attempts.into()),
            |rules, attempts| rules.max_attempts = small(attempts),
        )
        .default(5)
        .kept("attempts")
        .option("max-attempts", "Attempts after which a task is dead; 0 never")
        .form("rules-tries", "field-attempts", "means-attempts")
        .said("rule-attempts", "n", Lists::Page),
        // Where only the first is said, it may be more than the default of the longest.
        Field::<Self>::new(
            "backoff.first_ms",
            Unit::Length,
            (0, YEAR),
            |rules| Some(micros(rules.backoff.first)),
            |rules, first| {
                rules.backoff.first = length(first);
                rules.backoff.max = rules.backoff.max.max(rules.backoff.first);
            },
        )
        .default(1_000 * MILLISECOND)
        .kept("first")
        .option("backoff", "Before the second attempt; doubled each time")
        .form("rules-tries", "field-backoff-first", "means-backoff-first")
        .said("rule-backoff", "first", Lists::None),
        Field::<Self>::new(
            "backoff.max_ms",
            Unit::Length,
            (0, YEAR),
            |rules| Some(micros(rules.backoff.max)),
            |rules, max| rules.backoff.max = length(max),
        )
        .default(300_000 * MILLISECOND)
        .kept("max")
        .option("backoff-max", "Most that the backoff grows to")
        .form("rules-tries", "field-backoff-max", "means-backoff-max")
        .said("rule-backoff", "most", Lists::None),
        Field::<Self>::new(
            "paused",
            Unit::Flag,
            (0, 1),
            |rules| Some(rules.paused.into()),
            |rules, paused| rules.paused = paused > 0,
        )
        .default(0)
        .kept("paused")
        .option("paused", "Serve no collector")
        .said("rule-paused", "", Lists::Terminal),
    ];
}

impl Rules {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// [`InvalidRules`] for the first field that is wrong.
    pub fn check(&self) -> Result<(), InvalidRules> {
        Given::of(self).check()?;
        if self.backoff.first > self.backoff.max {
            return Err(InvalidRules::new("backoff.first_ms", "not more than backoff.max_ms"));
        }
        Ok(())
    }
}

/// What the store knows of a source when a claim asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// No claim is served before this.
    pub blocked_until: Stamp,
    /// The newest start; `None` before the first.
    pub last_start: Option<Stamp>,
    /// Starts later than `now - window.span` (all that a window must count).
    pub recent: u32,
    /// The oldest of those.
    pub oldest_recent: Stamp,
    /// Tasks in collectors' hands.
    pub in_flight: u32,
    /// When the first of their leases ends.
    pub first_end: Option<Stamp>,
}

/// Why no claim is served now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// No task is ready.
    Empty,
    /// Too soon after an earlier start: by the gap or by the window.
    Gap,
    /// As many in flight as allowed.
    Cap,
    /// By an operator.
    Paused,
    /// For a while, by a collector that was told 429 or by an operator.
    Blocked,
}

/// A refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shut {
    /// Why.
    pub reason: Reason,
    /// When asking again may help; for [`Reason::Cap`] the latest that may be (a result may come sooner).
    pub until: Option<Stamp>,
}

impl Rules {
    /// How many tasks may start at `now` (at least one), or why none. Whether any is ready is the caller's business.
    ///
    /// # Errors
    /// [`Shut`], with the first that holds of: paused, blocked, cap, gap or window.
    pub fn room(&self, standing: &Standing, now: Stamp) -> Result<u32, Shut> {
        if self.paused {
            return Err(Shut { reason: Reason::Paused, until: None });
        }
        if standing.blocked_until > now {
            return Err(Shut { reason: Reason::Blocked, until: Some(standing.blocked_until) });
        }
        let mut room = u32::MAX;
        if let Some(cap) = self.cap {
            room = cap.saturating_sub(standing.in_flight);
            if room == 0 {
                return Err(Shut { reason: Reason::Cap, until: standing.first_end });
            }
        }
        let next = self.next_start(standing, now);
        if next > now {
            return Err(Shut { reason: Reason::Gap, until: Some(next) });
        }
        if !self.gap.is_zero() {
            room = 1;
        }
        if let Some(window) = self.window {
            room = room.min(window.count.saturating_sub(standing.recent).max(1));
        }
        Ok(room)
    }

    /// The earliest start that gap and window allow.
    fn next_start(&self, standing: &Standing, now: Stamp) -> Stamp {
        let by_gap =
            standing.last_start.filter(|_| !self.gap.is_zero()).map(|last| last + self.gap);
        let by_window = self
            .window
            .filter(|window| standing.recent >= window.count)
            .map(|window| standing.oldest_recent + window.span);
        by_gap.max(by_window).map_or(now, |next| next.max(now))
    }
}
