//! The checks of `soloist doctor` on a store: what it is, what it may lose, how fast it answers, whether its clock is right.
//!
//! It reads and changes nothing. What would break the promise is already refused at the start and is found here when it was set later; the rest is
//! advice.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;

use super::jobs::Jobs;
use super::{Store, StoreError};
use soloist_domain::time::{Boot, StoreTime, signed_millis};
use soloist_process::clock;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Allowed, and worth a thought.
    Warn,
    /// Breaks something, or will.
    Bad,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub check: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// What to do, unless all is well.
    pub remedy: Option<String>,
}

impl Finding {
    /// All is well.
    #[must_use]
    pub fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, what: what.into(), remedy: None }
    }

    /// Worth a thought.
    #[must_use]
    pub fn warn(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warn, what: what.into(), remedy: Some(remedy.into()) }
    }

    /// Must be put right.
    #[must_use]
    pub fn bad(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Bad, what: what.into(), remedy: Some(remedy.into()) }
    }
}

/// How many round trips are timed, and the pause between two: a second in all, so that the clocks have time to part.
const TRIPS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// Slower than this, a renewal eats into the lease noticeably.
const SLOW: Duration = Duration::from_millis(50);
/// Both clocks are read in whole milliseconds.
const GRAIN_MS: i64 = 2;

impl Store {
    /// Everything there is to say of this store now. Takes about a second.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it cannot be asked at all.
    pub fn examine(&self) -> BoxFuture<'_, super::Result<Vec<Finding>>> {
        Box::pin(async move {
            let mut findings = self.backend.examine().await?;
            if let Some(locks) = &self.locks {
                findings.extend(locks.examine().await?);
            }
            findings.extend(self.time().await?);
            Ok(findings)
        })
    }

    async fn time(&self) -> super::Result<Vec<Finding>> {
        let mut trips = Vec::new();
        for _ in 0..TRIPS {
            trips.push(self.trip().await?);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(vec![latency(&trips), offset(&trips), rate(&trips)])
    }

    async fn trip(&self) -> Result<Trip, StoreError> {
        let sent = clock::boot();
        let at = self.snapshot(&[]).await?.at;
        let received = clock::boot();
        Ok(Trip { sent, received, at, wall: jiff::Timestamp::now().as_millisecond() })
    }
}

/// One question and its answer.
struct Trip {
    sent: Boot,
    received: Boot,
    /// The store's clock somewhere between the two.
    at: StoreTime,
    /// This machine's wall clock at `received`, for people.
    wall: i64,
}

impl Trip {
    fn took(&self) -> Duration {
        self.received.since(self.sent)
    }
}

fn latency(trips: &[Trip]) -> Finding {
    let mut took: Vec<Duration> = trips.iter().map(Trip::took).collect();
    took.sort();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    let shown = |span: Duration| format!("{:.1} ms", span.as_secs_f64() * 1_000.0);
    let what = format!("{} round trips: p50 {}, p99 {}", took.len(), shown(at(50)), shown(at(99)));
    if at(99) <= SLOW {
        return Finding::ok("latency", what);
    }
    Finding::warn(
        "latency",
        what,
        "put nodes and store closer together, give them time to run, or use a longer `lease_ttl`",
    )
}

fn offset(trips: &[Trip]) -> Finding {
    let offset =
        trips.last().map_or(0, |last| last.at.0 - (last.wall - signed_millis(last.took()) / 2));
    let what = format!("the store's clock is {offset:+} ms from this machine's wall clock");
    if offset.abs() < 1_000 {
        return Finding::ok("clock offset", what);
    }
    Finding::warn(
        "clock offset",
        what,
        "no lease depends on it, but shown times will look odd: let NTP set both clocks",
    )
}

/// The one thing that the promise needs of clocks: that they run at the same rate within 1 %.
fn rate(trips: &[Trip]) -> Finding {
    let check = "clock rate";
    let (Some(first), Some(last)) = (trips.first(), trips.last()) else {
        return Finding::ok(check, "not measured");
    };
    let passed = last.at.0 - first.at.0;
    let least = signed_millis(last.sent.since(first.received)) - GRAIN_MS;
    let most = signed_millis(last.received.since(first.sent)) + GRAIN_MS;
    let here = (least + most) / 2;
    let what = format!("the store counted {passed} ms while this machine counted {here} ms");
    let slack = most / 100;
    if (least - slack..=most + slack).contains(&passed) {
        return Finding::ok(check, what);
    }
    Finding::bad(
        check,
        what,
        "leases are only safe while both clocks run at the same rate within 1 %: look at the time service and the virtual machine's clock source of both",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked every 20 ms, answered after `rtt` ms, by a clock that runs `rate` times as fast.
    fn trips(rtt: u64, rate: f64) -> Vec<Trip> {
        (0..50_u64)
            .map(|n| {
                let sent = Boot(1_000_000_000 + n * 20_000_000);
                #[expect(clippy::cast_possible_truncation, reason = "small numbers of a test")]
                #[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
                let at = StoreTime((n as f64 * 20.0 * rate) as i64 + 5_000);
                let received = sent + Duration::from_millis(rtt);
                Trip { sent, received, at, wall: 5_000 }
            })
            .collect()
    }

    #[test]
    fn a_clock_that_runs_at_the_same_rate_is_well_however_slow_the_answers() {
        for rtt in [0, 3, 400] {
            assert_eq!(rate(&trips(rtt, 1.0)).verdict, Verdict::Ok, "{rtt}");
        }
    }

    #[test]
    fn a_clock_that_runs_faster_or_slower_or_jumps_is_bad() {
        for wrong in [0.9, 1.1, 0.0, 30.0] {
            assert_eq!(rate(&trips(1, wrong)).verdict, Verdict::Bad, "{wrong}");
        }
    }

    #[test]
    fn slow_answers_and_a_wrong_wall_clock_are_warned_of() {
        assert_eq!(latency(&trips(2, 1.0)).verdict, Verdict::Ok);
        assert_eq!(latency(&trips(80, 1.0)).verdict, Verdict::Warn);
        let mut odd = trips(2, 1.0);
        assert_eq!(offset(&odd).verdict, Verdict::Ok);
        for trip in &mut odd {
            trip.wall += 3_600_000;
        }
        assert_eq!(offset(&odd).verdict, Verdict::Warn);
    }
}
