//! The ticks of a whole schedule: entries of a list as one set, jitter, names.

use jiff::Timestamp;
use jiff::tz::Offset;
use soloist_domain::tick::{Tick, TickName, Ticks};
use soloist_domain::time::StoreTime;

use crate::walk::{self, EARLIEST, LATEST};
use crate::{Schedule, Times, hash};

/// A time at which one entry of the list is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    /// In seconds.
    pub(crate) at: i64,
    line: usize,
    civil: Option<walk::Hit>,
}

impl Due {
    fn instant(at: i64, line: usize) -> Self {
        Self { at, line, civil: None }
    }
}

/// A tick, and which entry named it.
type Candidate = (Tick, usize);

impl Schedule {
    /// The first time later than `instant`, in seconds; of several entries the first.
    pub(crate) fn due_after(&self, instant: i64) -> Option<Due> {
        match &self.times {
            Times::Cron { lines, zone, .. } => {
                let due = |(line, cron)| {
                    let hit = walk::after(cron, zone, instant)?;
                    Some(Due { at: hit.due, line, civil: Some(hit) })
                };
                lines.iter().enumerate().filter_map(due).min_by_key(|due| (due.at, due.line))
            }
            Times::Every { every, offset } => {
                let count = (walk::clamp(instant) - offset).div_euclid(*every) + 1;
                let at = count.checked_mul(*every)?.checked_add(*offset)?;
                (EARLIEST..=LATEST).contains(&at).then(|| Due::instant(at, 0))
            }
            Times::At(instants) => {
                let index = instants.partition_point(|at| *at <= instant);
                instants.get(index).map(|at| Due::instant(*at, index))
            }
        }
    }

    /// The last time that is not later than `instant`.
    pub(crate) fn due_until(&self, instant: i64) -> Option<Due> {
        match &self.times {
            Times::Cron { lines, zone, .. } => {
                let due = |(line, cron)| {
                    let hit = walk::until(cron, zone, instant)?;
                    Some(Due { at: hit.due, line, civil: Some(hit) })
                };
                let found = lines.iter().enumerate().filter_map(due);
                found.min_by_key(|due| (std::cmp::Reverse(due.at), due.line))
            }
            Times::Every { every, offset } => {
                let count = (walk::clamp(instant) - offset).div_euclid(*every);
                let at = count.checked_mul(*every)?.checked_add(*offset)?;
                (EARLIEST..=LATEST).contains(&at).then(|| Due::instant(at, 0))
            }
            Times::At(instants) => {
                let index = instants.partition_point(|at| *at <= instant).checked_sub(1)?;
                instants.get(index).map(|at| Due::instant(*at, index))
            }
        }
    }

    /// The first tick that starts later than `instant`.
    fn seek(&self, instant: StoreTime) -> Option<Tick> {
        let mut from = instant.0.saturating_sub(self.jitter).div_euclid(1_000);
        let mut best: Option<Candidate> = None;
        while let Some(due) = self.due_after(from) {
            if best.as_ref().is_some_and(|(best, _)| due.at * 1_000 > best.starts.0) {
                break;
            }
            let found = self.tick(due);
            let better = best
                .as_ref()
                .is_none_or(|(tick, line)| (found.0.starts, found.1) < (tick.starts, *line));
            if better && found.0.starts > instant {
                best = Some(found);
            }
            if self.jitter == 0 && best.is_some() {
                break;
            }
            from = due.at;
        }
        best.map(|(tick, _)| tick)
    }

    fn tick(&self, due: Due) -> Candidate {
        let time = |seconds: i64| {
            let stamp = Timestamp::from_second(seconds).unwrap_or_default();
            let shown = Offset::UTC.to_datetime(stamp);
            match shown.second() {
                0 => shown.strftime("%Y-%m-%dT%H:%M").to_string(),
                _ => shown.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
            }
        };
        // Jitter is made without the offset, so that nodes with other zone tables agree.
        let (wanted, offset, zone, note) = match (due.civil, &self.times) {
            (Some(hit), Times::Cron { name, .. }) => {
                let again = if hit.again { AGAIN } else { "" };
                (time(hit.civil), shown(hit.offset), format!("[{name}]{again}"), hit.note)
            }
            _ => {
                let stamp = Timestamp::from_second(due.at).unwrap_or_default();
                (stamp.to_string(), String::new(), String::new(), None)
            }
        };
        let at = StoreTime(due.at * 1_000);
        let bound = u64::try_from(self.jitter).unwrap_or(0);
        let later = match bound {
            0 => 0,
            _ => hash::number(&["jitter", self.job.as_str(), &wanted, &zone], bound),
        };
        let starts = StoreTime(at.0 + i64::try_from(later).unwrap_or(0));
        let name = TickName(format!("{}@{wanted}{offset}{zone}", self.job));
        (Tick { name, due: at, starts, note }, due.line)
    }

    /// The tick of that name; offsets are not compared. `None`: no clock makes such a tick.
    #[must_use]
    pub fn named(&self, name: &TickName) -> Option<Tick> {
        let (job, rest) = name.0.split_once('@')?;
        if job != self.job.as_str() || name.is_by_hand() {
            return None;
        }
        let candidates = match &self.times {
            Times::Cron { zone, .. } => {
                let wanted = rest.split_once('[')?.0;
                let hour = wanted.find('T')?;
                let end = wanted[hour..].find(['+', '-']).map_or(wanted.len(), |at| hour + at);
                let civil: jiff::civil::DateTime = wanted[..end].parse().ok()?;
                let civil = Offset::UTC.to_timestamp(civil).ok()?.as_second();
                walk::instants(zone, civil)
            }
            _ => vec![rest.parse::<Timestamp>().ok()?.as_second()],
        };
        candidates.into_iter().find_map(|at| {
            let due = self.due_until(at).filter(|due| due.at == at)?;
            let (tick, _) = self.tick(due);
            (tick.name == *name).then_some(tick)
        })
    }
}

/// Stands behind the zone in the name of a tick whose civil time comes for the second time: offsets are not compared,
/// so without it the name would be that of the first.
const AGAIN: &str = "[_fold=2]";

/// An offset as in names: `+08:00`.
fn shown(offset: i64) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes, seconds) =
        (offset.abs() / 3_600, offset.abs() / 60 % 60, offset.abs() % 60);
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// Jitter can only then put a tick behind the next one, when a change of the clocks brings them closer than they ever
/// were in the time that was looked at. So both look as far as jitter reaches; of several that start at one instant,
/// the first entry gives the name.
impl Ticks for Schedule {
    fn former(&self, text: &str) -> Option<std::sync::Arc<dyn Ticks>> {
        Some(std::sync::Arc::new(Schedule::of_text(&self.job, text)?))
    }

    fn after(&self, instant: StoreTime) -> Option<Tick> {
        self.latest.after(instant, || self.seek(instant))
    }

    fn until(&self, instant: StoreTime) -> Option<Tick> {
        let mut to = instant.0.div_euclid(1_000);
        let mut best: Option<Candidate> = None;
        while let Some(due) = self.due_until(to) {
            let reach = (due.at * 1_000).saturating_add(self.jitter);
            if best.as_ref().is_some_and(|(best, _)| reach <= best.starts.0) {
                break;
            }
            let found = self.tick(due);
            let better = best.as_ref().is_none_or(|(tick, line)| {
                found.0.starts > tick.starts || (found.0.starts == tick.starts && found.1 < *line)
            });
            if better && found.0.starts <= instant {
                best = Some(found);
            }
            if self.jitter == 0 && best.is_some() {
                break;
            }
            to = due.at - 1;
        }
        best.map(|(tick, _)| tick)
    }
}
