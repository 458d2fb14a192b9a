//! How long a run may last, and how long it may say nothing.
//!
//! It only decides: the watcher of a run asks often, by a clock that also runs while the machine sleeps.

use std::fmt;
use std::time::Duration;

use humantime::format_duration;

use super::job::RunRecord;
use super::time::{Boot, StoreTime};

/// `max_runtime` and `max_silence` of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// A run that lasts longer is stopped.
    pub runtime: Option<Duration>,
    /// So is one that wrote no line and no progress for so long.
    pub silence: Option<Duration>,
}

/// The limit for which a run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `max_runtime`.
    Runtime(Duration),
    /// `max_silence`.
    Silence(Duration),
}

impl Limits {
    /// The limit that a run has reached at `now`. It began at `began`, and said something at `heard` for the last time.
    #[must_use]
    pub fn reached(&self, began: Boot, heard: Boot, now: Boot) -> Option<Limit> {
        let over = |limit: &Duration, since: Boot| now.since(since) >= *limit;
        let runtime = self.runtime.filter(|limit| over(limit, began)).map(Limit::Runtime);
        let silence = self.silence.filter(|limit| over(limit, heard.max(began)));
        runtime.or(silence.map(Limit::Silence))
    }

    /// When a run will be stopped for its silence, once half of that time has gone by: somebody may want to look before. Of a run
    /// that tells its progress nobody but its own node knows when that changed last.
    #[must_use]
    pub fn quiet_until(&self, run: &RunRecord, now: StoreTime) -> Option<StoreTime> {
        let limit = self.silence.filter(|_| run.progress.is_none())?;
        let said = run.last_output.unwrap_or(run.started);
        (now >= said + limit / 2).then(|| said + limit)
    }
}

/// `stopped after 2h: max_runtime`, with the length as a configuration has it.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(limit) => {
                write!(f, "stopped after {}: max_runtime", format_duration(*limit))
            }
            Self::Silence(limit) => {
                let limit = format_duration(*limit);
                write!(f, "stopped after {limit} without output or progress: max_silence")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn whatever_is_heard_puts_the_silence_off_and_never_the_end() {
        let limits = Limits { runtime: Some(SECOND * 60), silence: Some(SECOND * 10) };
        let began = Boot(1_000);
        let at = |seconds: u32| began + SECOND * seconds;
        assert_eq!(limits.reached(began, began, at(9)), None);
        assert_eq!(limits.reached(began, began, at(10)), Some(Limit::Silence(SECOND * 10)));
        assert_eq!(limits.reached(began, at(9), at(18)), None);
        assert_eq!(limits.reached(began, at(9), at(19)), Some(Limit::Silence(SECOND * 10)));
        assert_eq!(limits.reached(began, at(59), at(60)), Some(Limit::Runtime(SECOND * 60)));
        assert_eq!(Limit::Runtime(SECOND * 7_200).to_string(), "stopped after 2h: max_runtime");
        assert_eq!(Limits::default().reached(began, began, at(1_000_000)), None);
    }
}
