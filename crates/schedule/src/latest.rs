//! The newest answer of a schedule, so that a look at a job that waits reads no calendar.

use parking_lot::Mutex;

use soloist_domain::tick::Tick;
use soloist_domain::time::StoreTime;

/// Which tick was found, and for which instants it is the next one.
#[derive(Debug, Default)]
pub(crate) struct Latest(Mutex<Option<Found>>);

#[derive(Debug)]
struct Found {
    from: StoreTime,
    /// `None`: no tick comes later than `from`.
    next: Option<Tick>,
}

/// A copy has to find its first tick itself.
impl Clone for Latest {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Latest {
    /// The first tick later than `instant`: the remembered one, or else the one that `seek` finds.
    pub(crate) fn after(
        &self,
        instant: StoreTime,
        seek: impl FnOnce() -> Option<Tick>,
    ) -> Option<Tick> {
        let mut found = self.0.lock();
        if let Some(Found { from, next }) = found.as_ref()
            && *from <= instant
            && next.as_ref().is_none_or(|next| instant < next.starts)
        {
            return next.clone();
        }
        let next = seek();
        *found = Some(Found { from: instant, next: next.clone() });
        next
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use soloist_domain::tick::Ticks as _;
    use soloist_domain::time::StoreTime;

    use crate::{Kind, Schedule, Spec};

    fn cron(lines: &[&str], zone: &str, jitter: u64) -> Schedule {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        let kind = Kind::Cron { lines, quartz: false };
        let jitter = Duration::from_secs(jitter);
        let spec = Spec { kind, zone: Some(zone.to_owned()), jitter };
        Schedule::read(&"settle".parse().unwrap(), &spec).unwrap()
    }

    #[test]
    fn a_schedule_that_was_asked_before_answers_as_one_that_was_not() {
        let schedules = [
            cron(&["30 2 * * *"], "Europe/Berlin", 0),
            cron(&["*/20 * * * *", "10 1 * * *"], "America/New_York", 600),
            cron(&["0 0 29 2 *"], "Asia/Shanghai", 0),
        ];
        for asked in schedules {
            let (mut seed, mut at) = (7_u64, StoreTime(1_793_000_000_000));
            for _ in 0..2_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Mostly forwards, by up to three hours; sometimes back.
                let step = i64::try_from(seed >> 40).unwrap() % 10_800_000;
                at = StoreTime(at.0 + if seed >> 60 == 0 { -step } else { step });
                assert_eq!(asked.after(at), asked.clone().after(at), "{at:?}");
                let Some(next) = asked.after(at) else { continue };
                for near in [next.starts.0 - 1, next.starts.0] {
                    let near = StoreTime(near);
                    assert_eq!(asked.after(near), asked.clone().after(near), "{near:?}");
                }
            }
        }
    }
}
