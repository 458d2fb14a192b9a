//! Who held a job, and who wanted it, over weeks: what is stored, and what is computed from it.
//!
//! | file | what |
//! | --- | --- |
//! | `fold` | ended runs become spans, few enough to be kept |
//! | `tell` | gaps with their reason, take-overs with their milliseconds |
//! | `follow` | a timeline of before and the newest record of the job |
//!
//! The history of runs keeps the newest 1,000, which a job that runs each second fills in a quarter of an hour. Spans are bounded
//! in another way: neighbours alike are one span (ADR 0021).

pub mod fold;
mod follow;
pub mod tell;

use serde::{Deserialize, Serialize};

use super::job::RunEnd;
use super::lease::Token;
use super::name::{NodeName, UserName};
use super::tick::Schedule;
use super::time::StoreTime;

/// How many spans are kept of a job, at most.
pub const SPANS_KEPT: usize = 1_000;
/// How many switchings off and ends of holds are kept of a job, at most.
pub const WANTS_KEPT: usize = 1_000;

/// One node held the job: in one run, or in several alike, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Where; the holder's name if a program held it.
    pub node: NodeName,
    /// Of the first run; spans are in the order of these.
    pub first: Token,
    /// Of the last run.
    pub token: Token,
    /// When the first run began.
    pub from: StoreTime,
    /// When the last run ended.
    pub to: StoreTime,
    /// How the last run ended.
    pub end: RunEnd,
    /// How many runs this is.
    pub runs: u32,
    /// How many of them crashed, were lost, fenced or timed out.
    pub failed: u32,
    /// How long the runs lasted together, in milliseconds. Idle runs that the history has folded count with the rests between them.
    pub held_ms: u64,
}

/// What a user did to a job for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WantKind {
    /// Wanted it.
    Participation,
    /// Forbade it.
    Hold,
}

/// A participation or a hold that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// Which of the two.
    pub kind: WantKind,
    /// Whose.
    pub who: UserName,
    /// Since when.
    pub from: StoreTime,
    /// Until when.
    pub to: StoreTime,
}

/// A participation or a hold, also a current one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Want")]
pub struct Wanted {
    pub kind: WantKind,
    pub who: UserName,
    pub from: StoreTime,
    /// `None`: it is current.
    pub to: Option<StoreTime>,
}

/// The run under way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in RunRecord")]
pub struct Present {
    pub node: NodeName,
    pub token: Token,
    pub from: StoreTime,
}

/// Everything that is known of a job's past.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// Participations and holds are known from here on; before it, only spans. `None`: they are known of no time yet.
    pub since: Option<StoreTime>,
    /// Oldest first.
    pub spans: Vec<Span>,
    /// The run under way.
    pub present: Option<Present>,
    /// In the order of their beginnings.
    pub wants: Vec<Wanted>,
    /// It has one now: without a holder it waits for its next tick, whatever became of the last.
    pub schedule: Option<Schedule>,
    /// Its open tick waits for the next attempt.
    pub again: bool,
}

impl RunEnd {
    /// Something went wrong. An end that a person wanted is none.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Exited | Self::Stopped => false,
            Self::Crashed | Self::Lost | Self::Died | Self::Fenced | Self::TimedOut => true,
        }
    }

    /// The lease was taken from its holder.
    #[must_use]
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Lost | Self::Died | Self::Fenced)
    }
}

#[cfg(test)]
mod tests;
