//! What happens after the end of a run, by the rules of its job. The rules are the same for scripts and for programs that hold a lease
//! themselves.
//!
//! It draws no random number and writes nothing.

use std::time::Duration;

use super::{JobConfig, Repeat};
use soloist_domain::backoff::AfterCrash;
use soloist_domain::job::{LastExit, RunEnd};
use soloist_domain::journal::Then;
use soloist_domain::limits::Limits;
use soloist_domain::time::StoreTime;

impl JobConfig {
    /// What follows a run of length `uptime` that ended so, after so many `crashes` in a row. `jitter` is a random number
    /// from 0 to 1.
    #[must_use]
    pub fn follows(&self, end: RunEnd, crashes: u32, uptime: Duration, jitter: f64) -> Then {
        match end {
            // Of a tick, the record says what follows.
            _ if self.schedule.is_some() => Then::Nothing,
            RunEnd::Stopped | RunEnd::Lost | RunEnd::Died | RunEnd::Fenced => Then::Nothing,
            RunEnd::Exited => match self.repeat {
                Repeat::After(wait) => Then::Repeat(wait),
                Repeat::Never => Then::Done,
            },
            RunEnd::Crashed | RunEnd::TimedOut => {
                match self.backoff.after_crash(crashes, uptime, jitter) {
                    AfterCrash::Retry { crashes, wait } => Then::Retry { crashes, wait },
                    AfterCrash::GiveUp { crashes } => Then::GiveUp { crashes },
                }
            }
        }
    }

    /// What follows the death of a watched program, `uptime` after its grant. It is no crash, unless the run before it (`last`) ended like
    /// that, too: a program that cannot live must not be begun again and again.
    #[must_use]
    pub fn follows_death(
        &self,
        last: Option<&LastExit>,
        crashes: u32,
        uptime: Duration,
        jitter: f64,
    ) -> Then {
        if uptime >= self.backoff.min_uptime {
            Then::Nothing
        } else if last.is_some_and(|last| last.early) {
            self.follows(RunEnd::Crashed, crashes, uptime, jitter)
        } else {
            Then::OnceMore
        }
    }

    /// How long its runs may last, be silent and stand still.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let (runtime, silence) = (self.max_runtime, self.max_silence);
        Limits { runtime, silence, stuck: self.stuck_after }
    }

    /// When a run that began at `started` is stopped at the latest; `None`: it may last.
    #[must_use]
    pub fn must_end_by(&self, started: StoreTime) -> Option<StoreTime> {
        self.max_runtime.map(|longest| started + longest)
    }
}
