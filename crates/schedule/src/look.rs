//! Properties of a schedule: its canonical text, its shortest interval, and what that refuses.

use std::time::Duration;

use soloist_domain::name::JobName;
use soloist_domain::tick::Ticks as _;
use soloist_domain::time::StoreTime;

use crate::walk::{self, EARLIEST, Segment};
use crate::{Kind, Schedule, Spec, Times, Wrong};

/// 2026-01-01T00:00Z: intervals are computed from here, the same on every node.
const FROM: i64 = 1_767_225_600;
/// For so long around changes of the clocks.
const YEARS: i64 = 2 * 366 * 86_400;
/// So long before and after each.
const HOURS: i64 = 4 * 3_600;
/// So many ticks in a row.
const TICKS: usize = 500;

/// A length in the form of the configuration: `1h 30m`.
pub(crate) fn length(mut seconds: i64) -> String {
    let mut parts = Vec::new();
    for (size, unit) in [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")] {
        if seconds >= size {
            parts.push(format!("{}{unit}", seconds / size));
            seconds %= size;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// The length of such a text.
fn of_length(text: &str) -> Option<Duration> {
    text.split(' ').try_fold(Duration::ZERO, |all, part| {
        let unit = part.find(|one: char| !one.is_ascii_digit())?;
        let number: u64 = part[..unit].parse().ok()?;
        let ms: u64 = match &part[unit..] {
            "d" => 86_400_000,
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            _ => return None,
        };
        Some(all + Duration::from_millis(number.checked_mul(ms)?))
    })
}

fn millis(milliseconds: i64) -> String {
    match milliseconds % 1_000 {
        0 => length(milliseconds / 1_000),
        _ => format!("{milliseconds}ms"),
    }
}

/// An interval as an expression.
pub(crate) fn interval(times: &Times) -> String {
    match times {
        Times::Every { every, offset: 0 } => format!("every {}", length(*every)),
        Times::Every { every, offset } => {
            format!("every {} offset {}", length(*every), length(*offset))
        }
        _ => String::new(),
    }
}

/// Two ticks in a row, in seconds.
type Pair = (i64, i64);

impl Schedule {
    /// The text for the record: what is equal here is due at the same times and starts at the same times.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = match &self.times {
            Times::Cron { lines, quartz, name, .. } => {
                let lines: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
                let dialect = if *quartz { " quartz" } else { "" };
                format!("{} [{name}]{dialect}", lines.join("; "))
            }
            Times::Every { .. } => interval(&self.times),
            Times::At(instants) => {
                let shown = instants.iter().map(|at| {
                    jiff::Timestamp::from_second(*at).map(|at| at.to_string()).unwrap_or_default()
                });
                format!("at {}", shown.collect::<Vec<_>>().join("; "))
            }
        };
        if self.jitter > 0 {
            text += &format!(" jitter {}", millis(self.jitter));
        }
        text
    }

    /// The schedule of a text that [`Self::text`] made; `None`: this program cannot read it.
    #[must_use]
    pub fn of_text(job: &JobName, text: &str) -> Option<Self> {
        let (text, jitter) = match text.rsplit_once(" jitter ") {
            Some((text, jitter)) => (text, of_length(jitter)?),
            None => (text, Duration::ZERO),
        };
        let mut zone = None;
        let kind = if let Some(every) = text.strip_prefix("every ") {
            let (every, offset) = every.split_once(" offset ").unwrap_or((every, "0s"));
            Kind::Every { every: of_length(every)?, offset: of_length(offset)? }
        } else if let Some(instants) = text.strip_prefix("at ") {
            Kind::At(instants.split("; ").map(ToOwned::to_owned).collect())
        } else {
            let (text, quartz) = match text.strip_suffix(" quartz") {
                Some(text) => (text, true),
                None => (text, false),
            };
            let (lines, name) = text.strip_suffix(']')?.rsplit_once(" [")?;
            zone = Some(name.to_owned());
            Kind::Cron { lines: lines.split("; ").map(ToOwned::to_owned).collect(), quartz }
        };
        Self::read(job, &Spec { kind, zone, jitter }).ok()
    }

    /// The shortest interval between two ticks, as far as is looked: some hundred ticks in a row, some of each entry,
    /// and two years of changes of the clocks. [`Duration::MAX`]: there is only one tick.
    #[must_use]
    pub fn shortest(&self) -> Duration {
        let seconds = |(one, next): Pair| u64::try_from(next - one).unwrap_or(0);
        self.closest().map_or(Duration::MAX, |pair| Duration::from_secs(seconds(pair)))
    }

    fn closest(&self) -> Option<Pair> {
        match &self.times {
            Times::Every { every, .. } => Some((0, *every)),
            Times::At(instants) => {
                let pairs = instants.windows(2).map(|two| (two[0], two[1]));
                pairs.min_by_key(|(one, next)| next - one)
            }
            Times::Cron { lines, zone, .. } => {
                let mut best = None;
                self.closer(&mut best, FROM, i64::MAX, TICKS);
                let mut segment = Some(Segment::at(zone, FROM));
                while let Some(now) = segment.filter(|s| s.start.is_none_or(|s| s < FROM + YEARS)) {
                    if let Some(start) = now.start.filter(|start| *start > FROM) {
                        self.closer(&mut best, start - HOURS, start + HOURS, 100);
                    }
                    segment = now.next(zone);
                }
                for line in lines.iter().filter(|_| lines.len() > 1) {
                    let mut at = FROM;
                    for _ in 0..20 {
                        let Some(hit) = walk::after(line, zone, at) else { break };
                        at = hit.due;
                        let before = self.due_until(at - 1).map_or(at - 1, |due| due.at);
                        self.closer(&mut best, before - 1, at, 3);
                    }
                }
                if best.is_none() {
                    self.closer(&mut best, EARLIEST, i64::MAX, TICKS);
                }
                best
            }
        }
    }

    /// Looks at the ticks later than `from` and, but for the last, not later than `to`.
    fn closer(&self, best: &mut Option<Pair>, from: i64, to: i64, most: usize) {
        let Times::Cron { lines, .. } = &self.times else { return };
        // Nothing of five fields comes more often.
        let least = if lines.iter().all(|line| line.seconds == 1) { 60 } else { 1 };
        let mut last = None;
        for _ in 0..most {
            let shortest = best.map_or(i64::MAX, |(one, next)| next - one);
            let at = last.unwrap_or(from);
            if shortest <= least || at > to {
                return;
            }
            let Some(next) = self.due_after(at) else { return };
            if last.is_some() && next.at - at < shortest {
                *best = Some((at, next.at));
            }
            last = Some(next.at);
        }
    }

    /// What only the whole can be refused for.
    pub(crate) fn check(&self, wrong: &mut Vec<Wrong>) {
        if let Times::Cron { lines, zone, .. } = &self.times {
            for (line, cron) in lines.iter().enumerate() {
                if walk::after(cron, zone, EARLIEST).is_none() {
                    let text = format!(
                        "{}: this never comes, no such day and time exists: correct the day, the month or the year",
                        self.expressions[line]
                    );
                    wrong.push(Wrong { line: Some(line), text });
                }
            }
        }
        if self.jitter == 0 || !wrong.is_empty() {
            return;
        }
        let Some(pair) = self.closest().filter(|(one, next)| self.jitter > (next - one) * 1_000)
        else {
            return;
        };
        let plain = Self { jitter: 0, ..self.clone() };
        let name = plain.after(StoreTime(pair.1 * 1_000 - 1)).map(|tick| tick.name.0);
        let at = match (&self.times, name) {
            (Times::Every { .. }, _) | (_, None) => String::new(),
            (_, Some(name)) => format!(" (before {name})"),
        };
        let shortest = length(pair.1 - pair.0);
        let text = format!(
            "jitter = {:?} is longer than the shortest interval of this schedule, {shortest}{at}: write a jitter of at most {shortest}",
            millis(self.jitter)
        );
        wrong.push(Wrong { line: None, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_again_from_its_text() {
        let job = JobName::new("settle").expect("a name");
        let zone = Some("Europe/Berlin".to_owned());
        let cron = |lines: &[&str], quartz| Kind::Cron {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            quartz,
        };
        let minutes = |count: u64| Duration::from_secs(count * 60);
        for (kind, zone, jitter) in [
            (cron(&["30 2 * * 1-5", "H 9 L * *"], false), zone.clone(), minutes(5)),
            (cron(&["0 15 10 ? * 6L"], true), zone, Duration::ZERO),
            (Kind::Every { every: minutes(1_530), offset: minutes(7) }, None, minutes(1)),
            (Kind::At(vec!["2026-12-01T08:00:00+08:00".to_owned()]), None, Duration::ZERO),
        ] {
            let made = Schedule::read(&job, &Spec { kind, zone, jitter }).expect("a schedule");
            let again = Schedule::of_text(&job, &made.text()).expect("its text");
            assert_eq!(again.text(), made.text());
            let from = StoreTime(1_764_000_000_000);
            assert_eq!(again.after(from), made.after(from), "{}", made.text());
        }
        assert!(Schedule::of_text(&job, "whatever").is_none());
    }
}
