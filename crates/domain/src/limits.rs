//! How long a run may last, how long it may be silent, and since when it is stuck.
//!
//! It only decides: the watcher of a run asks often, by a clock that also runs while the machine sleeps. One rule says when a run is stuck,
//! for the alert `stuck` and for pages, so that both say it at the same moment.

use std::fmt;
use std::time::Duration;

use super::alert::When;
use super::job::{JobRecord, RunRecord};
use super::time::{Boot, StoreTime, format_duration};

/// `max_runtime` and `max_silence` of a job, and when its runs count as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// A run that lasts longer is stopped.
    pub runtime: Option<Duration>,
    /// So is one that wrote nothing for so long, not one byte.
    pub silence: Option<Duration>,
    /// One that stands still for so long is stuck: the shortest time of its rules of [`When::Stuck`]. Nothing stops it.
    pub stuck: Option<Duration>,
}

/// Why a run that is well otherwise needs somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// It is stopped at that instant, unless it says something before.
    StopsAt(StoreTime),
    /// It has been stuck since then, and nothing stops it.
    StuckSince(StoreTime),
}

/// When the progress of the present run became what it is, as a process saw it that follows the job: at `at`, unless it was so
/// `before`. The record does not say it. `None` without progress.
#[must_use]
pub fn progressed(
    record: &JobRecord,
    before: Option<(&JobRecord, Option<StoreTime>)>,
    at: StoreTime,
) -> Option<StoreTime> {
    let run = record.run.as_ref().filter(|run| run.progress.is_some())?;
    let is_same = |old: &RunRecord| old.id == run.id && old.progress == run.progress;
    let known = before.filter(|(old, _)| old.run.as_ref().is_some_and(is_same));
    known.and_then(|(_, since)| since).or(Some(at))
}

/// Since when `run` stands still: no output, and its progress, if it tells any, as it was; `progressed` as above. Who
/// does not follow the job does not know when its progress changed, and has it changed `now`.
#[must_use]
pub fn still_since(run: &RunRecord, progressed: Option<StoreTime>, now: StoreTime) -> StoreTime {
    let said = run.last_output.unwrap_or(run.started);
    match run.progress {
        Some(_) => said.max(progressed.unwrap_or(now)),
        None => said,
    }
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

    /// Whether `run`, which is running, needs somebody at `now`: it will be stopped for its silence, or it is stuck.
    #[must_use]
    pub fn quiet(
        &self,
        run: &RunRecord,
        progressed: Option<StoreTime>,
        now: StoreTime,
    ) -> Option<Quiet> {
        if let Some(at) = self.quiet_until(run, now) {
            return Some(Quiet::StopsAt(at));
        }
        let since = still_since(run, progressed, now);
        (now.since(since) >= self.patience(run)?).then_some(Quiet::StuckSince(since))
    }

    /// How long `run` may stand still. Where nobody said it, a run may, unless it told that it is on its way.
    fn patience(&self, run: &RunRecord) -> Option<Duration> {
        let on_its_way = run.progress.as_ref().is_some_and(|told| told.done < told.total);
        let usual = on_its_way && self.silence.is_none();
        self.stuck.or_else(|| usual.then(|| When::Stuck.lasting()))
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
        let (runtime, silence) = (Some(SECOND * 60), Some(SECOND * 10));
        let limits = Limits { runtime, silence, stuck: Some(SECOND) };
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
