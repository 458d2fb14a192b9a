//! Ticks: the instants at which a job with a schedule runs.
//!
//! This room knows no calendar and no zone: the crate `schedule` makes [`Ticks`] from expressions. It decides the outcome of each tick.

mod account;
mod ask;
mod grant;
mod record;
mod rules;
mod sight;
mod tally;
mod trouble;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use self::account::shifted;
pub use self::ask::Refused;
pub(crate) use self::ask::{ask, reset, take_back};
pub use self::grant::{Granted, Upcoming, granted, next_tick, settle, upcoming};
pub(crate) use self::grant::{ended, grant, started, unused};
pub use self::record::{
    Asked, By, Clock, ENTRIES_KEPT, Entry, MOST_ASKED, Open, Outcome, Params, Pending, Phase,
    RECENT, Standing, Taken, Why, each,
};
pub use self::rules::{GRACE, Missed, OnLoss, Overlap, Rules, Schedule};
pub(crate) use self::sight::learn;
pub use self::sight::{Forgot, Sight};
pub use self::tally::News;
pub use self::trouble::{Kind, Obstacle, Overdue, Trouble, unfinished, unstarted};
use super::time::StoreTime;

/// The name of a tick: job, civil time, offset and zone (`settle@2026-11-27T02:30+08:00[Asia/Shanghai]`); of an interval or one
/// instant in UTC (`pull@2026-11-27T02:30:00Z`); by hand `settle@hand:ULID`.
///
/// Two names that differ by their offset alone are equal: one civil time of one zone is one tick, also for two nodes with other zone tables.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TickName(pub String);

impl TickName {
    /// The parts of the name that count: what stands before the offset, and the zone.
    fn key(&self) -> (&str, &str) {
        let text = self.0.as_str();
        let Some((before, zone)) = text.split_once('[') else { return (text, "") };
        let time = before.find('@').map_or(0, |at| at + 1);
        // Behind the `T` a `+` or `-` can only begin the offset.
        let hour = before[time..].find('T').map_or(before.len(), |at| time + at);
        let end = before[hour..].find(['+', '-']).map_or(before.len(), |at| hour + at);
        (&before[..end], zone)
    }

    /// Whether this is the civil time of `earlier`, or one before it, in the same zone: then it is decided, also for a node whose zone table
    /// says that it comes later. The second pass of a fold says so in its zone.
    fn is_not_after(&self, earlier: &Self) -> bool {
        let ((mine, zone), (other, its_zone)) = (self.key(), earlier.key());
        let its_zone = its_zone.split(']').next().unwrap_or_default();
        !zone.is_empty() && zone.strip_suffix(']') == Some(its_zone) && mine <= other
    }

    /// The name without its offset: the same text for every node, whatever its zone table says.
    #[must_use]
    pub fn without_offset(&self) -> String {
        match self.key() {
            (before, "") => before.to_owned(),
            (before, zone) => format!("{before}[{zone}"),
        }
    }

    /// The instant in the name, as RFC 3339 with seconds; `None`: it has none.
    #[must_use]
    pub fn time(&self) -> Option<String> {
        let (_, rest) = self.0.split_once('@').filter(|_| !self.is_by_hand())?;
        let time = rest.split('[').next()?;
        let hour = time.find('T')?;
        let offset = time[hour..].find(['+', '-', 'Z']).map(|at| hour + at)?;
        let seconds = if time[hour..offset].len() > "T02:30".len() { "" } else { ":00" };
        Some(format!("{}{seconds}{}", &time[..offset], &time[offset..]))
    }

    /// Somebody asked for it; no clock did.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        self.0.split_once('@').is_some_and(|(_, rest)| rest.starts_with("hand:"))
    }
}

impl PartialEq for TickName {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for TickName {}

impl std::hash::Hash for TickName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for TickName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a tick is not at its plain civil time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The clocks skip its civil time: it is due at the end of the gap.
    Gap,
    /// Its civil time comes twice: it is due the first time.
    Fold,
}

/// One tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tick {
    /// Its name.
    pub name: TickName,
    /// When the schedule says.
    pub due: StoreTime,
    /// `due` and the jitter: all times count from here.
    pub starts: StoreTime,
    /// What the list of next times says beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// The ticks of a job, each once, in the order of their starts.
pub trait Ticks: fmt::Debug + Send + Sync {
    /// The first tick that starts later than `instant`; `None`: no more come.
    fn after(&self, instant: StoreTime) -> Option<Tick>;

    /// The newest tick that starts at `instant` or earlier.
    fn until(&self, instant: StoreTime) -> Option<Tick>;

    /// The ticks of expressions that the same job had before, as their text says; `None`: this program cannot read it.
    fn former(&self, text: &str) -> Option<std::sync::Arc<dyn Ticks>>;
}

/// The parameters that a run gets.
pub trait Fill: fmt::Debug + Send + Sync {
    /// The values for `tick`, from those that were given and the defaults.
    fn fill(&self, tick: &Tick, given: &Params) -> Params;
}

#[cfg(test)]
mod forgotten;
#[cfg(test)]
mod tests;
