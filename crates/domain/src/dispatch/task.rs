//! What becomes of a task that leaves a collector's hands.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rules::Rules;
use crate::fields::LONGEST;
use crate::job::Exit;
use crate::time::Stamp;

/// Where a task is; it is always in exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// May be claimed.
    Ready,
    /// Not before an instant: scheduled, waiting for another try, or for the next crawl.
    Due,
    /// In a collector's hands.
    Leased,
    /// Accepted as done; remembered for a while.
    Done,
    /// Given up; can be revived.
    Dead,
}

impl TaskState {
    /// The word: in records, in JSON and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Due => "due",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::Dead => "dead",
        }
    }
}

impl std::str::FromStr for TaskState {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Ready, Self::Due, Self::Leased, Self::Done, Self::Dead]
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| "use ready, due, leased, done or dead".to_owned())
    }
}

/// What a collector says of a task when it reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOutcome {
    /// Finished.
    Done,
    /// Try again, after `delay_ms` or else after the backoff.
    Retry,
    /// Never try again.
    Dead,
}

/// EX_DATAERR of sysexits.h: the input is wrong, and will be.
const WRONG_INPUT: i32 = 65;

impl TaskOutcome {
    /// What a command says of its task by its end: exit code 0 is done, 65 dead, everything else another try (75, EX_TEMPFAIL
    /// of sysexits.h, is the word for that one).
    #[must_use]
    pub fn of(exit: &Exit) -> Self {
        match exit.code {
            Some(0) => Self::Done,
            Some(WRONG_INPUT) => Self::Dead,
            _ => Self::Retry,
        }
    }
}

/// How a task left a collector's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Departure {
    /// Reported; `delay` is what the collector asked for.
    Reported {
        /// What it says.
        outcome: TaskOutcome,
        /// Instead of the backoff.
        delay: Option<Duration>,
    },
    /// The lease ran out.
    Expired,
    /// Given back unworked: the attempt does not count.
    Returned,
}

/// Where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// At the head of its priority.
    Ready,
    /// At that instant; `attempt` begins anew for a recrawl.
    Due {
        /// When.
        at: Stamp,
        /// A new round of the same task: attempts are counted from zero.
        again: bool,
    },
    /// Out.
    Done,
    /// Out, to be looked at.
    Dead,
}

impl Rules {
    /// Where a task goes that left a collector's hands at `now`, in its `attempt` (from 1). `every` re-arms it after
    /// [`TaskOutcome::Done`].
    #[must_use]
    pub fn after(&self, how: Departure, attempt: u32, every: Option<Duration>, now: Stamp) -> Next {
        let used_up = self.max_attempts > 0 && attempt >= self.max_attempts;
        match how {
            Departure::Returned => Next::Ready,
            Departure::Expired if used_up => Next::Dead,
            Departure::Expired => Next::Ready,
            Departure::Reported { outcome: TaskOutcome::Done, .. } => match every {
                Some(every) => Next::Due { at: now + every, again: true },
                None => Next::Done,
            },
            Departure::Reported { outcome: TaskOutcome::Dead, .. } => Next::Dead,
            Departure::Reported { outcome: TaskOutcome::Retry, .. } if used_up => Next::Dead,
            Departure::Reported { outcome: TaskOutcome::Retry, delay } => {
                let wait = delay.unwrap_or_else(|| self.wait(attempt)).min(LONGEST);
                Next::Due { at: now + wait, again: false }
            }
        }
    }

    /// Backoff after `attempt` tries: without jitter, because the source's own rules spread the starts.
    fn wait(&self, attempt: u32) -> Duration {
        let doubled = self.backoff.first.saturating_mul(1 << attempt.saturating_sub(1).min(20));
        doubled.min(self.backoff.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exit_code_0_is_done_and_only_65_is_dead() {
        for code in 0..=255 {
            let expected = match code {
                0 => TaskOutcome::Done,
                65 => TaskOutcome::Dead,
                _ => TaskOutcome::Retry,
            };
            assert_eq!(
                TaskOutcome::of(&Exit { code: Some(code), signal: None }),
                expected,
                "{code}"
            );
        }
        assert_eq!(TaskOutcome::of(&Exit { code: None, signal: Some(9) }), TaskOutcome::Retry);
        assert_eq!(TaskOutcome::of(&Exit::default()), TaskOutcome::Retry);
    }
}
