//! The rules of a source, and what they allow at an instant.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Stamp;

/// At most `count` starts in any stretch of time of length `span`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
        Self {
            gap: Duration::ZERO,
            window: None,
            cap: None,
            lease: Duration::from_secs(60),
            max_attempts: 5,
            backoff: Backoff { first: Duration::from_secs(1), max: Duration::from_secs(300) },
            paused: false,
        }
    }
}

/// Why rules cannot be kept; names the field as in JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
#[expect(missing_docs, reason = "as said above")]
pub struct InvalidRules {
    pub field: &'static str,
    pub problem: &'static str,
}

/// Longest of any duration in rules, delays and blocks: a year.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
const SHORTEST_LEASE: Duration = Duration::from_millis(100);
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);
/// The starts of one window are remembered one by one.
const LARGEST_WINDOW: u32 = 100_000;

impl Rules {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// [`InvalidRules`] for the first field that is wrong.
    pub fn check(&self) -> Result<(), InvalidRules> {
        let wrong = |field, problem| Err(InvalidRules { field, problem });
        if self.gap > LONGEST {
            return wrong("gap_ms", "at most a year");
        }
        if let Some(window) = self.window {
            if !(1..=LARGEST_WINDOW).contains(&window.count) {
                return wrong("window.count", "from 1 to 100000; leave `window` out for none");
            }
            if window.span.is_zero() || window.span > LONGEST {
                return wrong("window.ms", "from 1 to a year; leave `window` out for none");
            }
        }
        if self.cap == Some(0) {
            return wrong("cap", "at least 1; use `paused` to serve nobody");
        }
        if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&self.lease) {
            return wrong("lease_ms", "from 100 to 86400000 (a day)");
        }
        if self.backoff.max > LONGEST {
            return wrong("backoff.max_ms", "at most a year");
        }
        if self.backoff.first > self.backoff.max {
            return wrong("backoff.first_ms", "not more than backoff.max_ms");
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
