//! Laws of schedules, and a second computation of them.

mod laws;
mod table;
mod words;
mod zones;

use std::time::Duration;

use soloist_domain::name::JobName;
use soloist_domain::tick::{Tick, Ticks as _};
use soloist_domain::time::StoreTime;

use crate::{Kind, Schedule, Spec, Wrong};

fn read(lines: &[&str], zone: &str, quartz: bool) -> Result<Schedule, Vec<Wrong>> {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    let kind = Kind::Cron { lines, quartz };
    let spec = Spec { kind, zone: Some(zone.to_owned()), jitter: Duration::ZERO };
    Schedule::read(&JobName::new("job").unwrap(), &spec)
}

fn cron(line: &str, zone: &str) -> Schedule {
    read(&[line], zone, false).unwrap()
}

fn quartz(line: &str, zone: &str) -> Schedule {
    read(&[line], zone, true).unwrap()
}

fn at(text: &str) -> StoreTime {
    StoreTime(text.parse::<jiff::Timestamp>().expect("an instant").as_millisecond())
}

/// The ticks that start from `from` on and before `to`.
fn between(schedule: &Schedule, from: StoreTime, to: StoreTime) -> Vec<Tick> {
    let mut ticks = Vec::new();
    let mut instant = StoreTime(from.0 - 1);
    while let Some(tick) = schedule.after(instant).filter(|tick| tick.starts < to) {
        instant = tick.starts;
        ticks.push(tick);
    }
    ticks
}

/// The names of the ticks of some civil days, without the job and the zone.
fn names(schedule: &Schedule, from: &str, days: i64) -> Vec<String> {
    let from = at(from);
    let to = StoreTime(from.0 + days * 86_400_000);
    let short = |tick: &Tick| {
        let name = tick.name.0.split_once('@').expect("a name").1;
        name.split('[').next().unwrap_or_default().to_owned()
    };
    between(schedule, from, to).iter().map(short).collect()
}
