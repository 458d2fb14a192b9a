//! The rules of a schedule in the file: for a tick that was missed, that meets another, whose run was lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Fill, Tick, Ticks};
use crate::name::NodeName;
use crate::time::StoreTime;

/// A tick without a grant for so long is past its time, unless the lease is longer.
pub const GRACE: Duration = Duration::from_secs(3);
/// The longest window that nobody chose.
const LONGEST_WINDOW: Duration = Duration::from_secs(3_600);

/// What becomes of ticks that are past their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They are never run.
    Skip,
    /// The newest is run, for all of them.
    Once,
    /// Each is run, the oldest first.
    All,
}

/// What becomes of a tick that is due while another is open. Two at once do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is not run.
    Skip,
    /// The newest waits.
    Queue,
    /// The open one is stopped.
    Replace,
}

/// What becomes of a tick whose holder was lost in mid run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLoss {
    /// It is run again, under the next attempt.
    Again,
    /// It counts as used: a person decides.
    Spent,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rules {
    /// See there.
    pub missed: Missed,
    /// How long after its start a missed tick may run; `None`: half the interval to the next tick, at most an hour.
    pub missed_window: Option<Duration>,
    /// With [`Missed::All`]: so many of the newest.
    pub missed_most: usize,
    /// See there.
    pub overlap: Overlap,
    /// See there.
    pub on_loss: OnLoss,
    /// How often a crashed tick is run again.
    pub retries: u32,
    /// The wait before the first retry.
    pub backoff: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
    /// A tick without a grant for so long is past its time.
    pub grace: Duration,
    /// The alert `not_started` begins for a tick that has not begun this long after its start.
    pub start_within: Option<Duration>,
    /// `not_finished` of one that has not ended.
    pub finish_within: Option<Duration>,
    /// `too_quick` of a run that ended with exit code 0 sooner.
    pub at_least: Option<Duration>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            missed: Missed::Once,
            missed_window: None,
            missed_most: 10,
            overlap: Overlap::Skip,
            on_loss: OnLoss::Again,
            retries: 0,
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            grace: GRACE,
            start_within: None,
            finish_within: None,
            at_least: None,
        }
    }
}

/// A schedule: its ticks, its rules, and the text of its expressions.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// By the zone table of this machine.
    pub ticks: Arc<dyn Ticks>,
    /// As the file says.
    pub rules: Rules,
    /// The same text is the same expressions.
    pub text: String,
    /// The parameters of the job.
    pub params: Arc<dyn Fill>,
    /// Why each living machine that should start it cannot, as whoever settles its ticks sees it; empty when one can.
    pub lacks: BTreeMap<NodeName, String>,
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.rules == other.rules
    }
}

impl Eq for Schedule {}

impl Schedule {
    /// Until when `tick` may be run if it was missed.
    #[must_use]
    pub fn window_end(&self, tick: &Tick) -> StoreTime {
        tick.starts + self.window(tick)
    }

    /// How long after its start `tick` may be run if it was missed.
    #[must_use]
    pub fn window(&self, tick: &Tick) -> Duration {
        self.rules.missed_window.unwrap_or_else(|| {
            let next = self.ticks.after(tick.starts).map(|next| next.starts.since(tick.starts) / 2);
            next.map_or(LONGEST_WINDOW, |half| half.min(LONGEST_WINDOW))
        })
    }
}
