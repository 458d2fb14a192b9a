//! What happened to a job, in the words that its channel in Redis carries.
//!
//! An event only saves time: it carries the job's new version, and a process that receives it reads the state. A lost event costs
//! milliseconds, never a wrong state.

use serde::{Deserialize, Serialize};

use super::name::JobName;

/// The kinds of change that are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each word says what happened")]
pub enum EventKind {
    ParticipationChanged,
    LeaseAcquired,
    LeaseReleased,
    LeaseLost,
    RunStarted,
    RunEnded,
    RunProgressed,
    Held,
    Resumed,
    /// A move was asked for.
    MoveRequested,
    /// The holder was ordered to crash.
    DrillRequested,
    /// Something became of its ticks without a run.
    Scheduled,
}

impl EventKind {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ParticipationChanged => "participation_changed",
            Self::LeaseAcquired => "lease_acquired",
            Self::LeaseReleased => "lease_released",
            Self::LeaseLost => "lease_lost",
            Self::RunStarted => "run_started",
            Self::RunEnded => "run_ended",
            Self::RunProgressed => "run_progressed",
            Self::Held => "held",
            Self::Resumed => "resumed",
            Self::MoveRequested => "move_requested",
            Self::DrillRequested => "drill_requested",
            Self::Scheduled => "scheduled",
        }
    }
}

/// One published change: `{"job","version","event",...}`; further members are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEvent {
    /// The job that changed.
    pub job: JobName,
    /// Its version after the change.
    pub version: u64,
    /// What happened.
    pub event: EventKind,
}
