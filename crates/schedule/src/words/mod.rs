//! A schedule in words: common forms as people say them, everything else field by field.

mod en;
mod zh;

use crate::cron::Cron;
use crate::{Schedule, Times};

/// So many times of a day are named one by one.
const TIMES: u32 = 6;
/// So many instants are named one by one.
const INSTANTS: usize = 4;

/// The shape of a set of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    /// Every number of the field.
    All,
    /// Each `step`, from `from` on, and evenly over the end of the field, too.
    Even { step: i64, from: i64 },
    /// Whatever else, as first and last of what hangs together.
    Runs(Vec<(i64, i64)>),
}

/// The numbers of a mask.
fn numbers(mask: u64) -> Vec<i64> {
    (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
}

/// First and last of each row of neighbours; two neighbours are named apart.
fn runs(numbers: &[i64]) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let apart = |(first, last): (i64, i64)| {
        if last == first + 1 { vec![(first, first), (last, last)] } else { vec![(first, last)] }
    };
    runs.into_iter().flat_map(apart).collect()
}

/// `size` is how many numbers, from 0, the field has.
fn shape(mask: u64, size: i64) -> Shape {
    let numbers = numbers(mask);
    let count = i64::try_from(numbers.len()).unwrap_or(0);
    if count == size {
        return Shape::All;
    }
    if let [from, second, _, ..] = numbers.as_slice() {
        let step = second - from;
        let even = step > 1
            && size % step == 0
            && count == size / step
            && numbers.windows(2).all(|two| two[1] - two[0] == step);
        if even {
            return Shape::Even { step, from: *from };
        }
    }
    Shape::Runs(runs(&numbers))
}

/// The times of a day of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Clock {
    /// At these: hour, minute, second.
    At(Vec<[i64; 3]>),
    /// Every hour, from the first to the last: `0 9-17 * * *`.
    Hourly { minute: i64, from: i64, to: i64 },
    /// `30 */2 * * *`.
    Hours { step: i64, hour: i64, minute: i64 },
    /// `*/15 9-17 * * *`; a step of 1 is every minute.
    Minutes { step: i64, from: (i64, i64), to: (i64, i64) },
    /// Field by field.
    Fields { seconds: Shape, minutes: Shape, hours: Shape },
}

fn clock(cron: &Cron) -> Clock {
    let (seconds, minutes, hours) =
        (shape(cron.seconds, 60), shape(cron.minutes, 60), shape(cron.hours, 24));
    let count = cron.seconds.count_ones() * cron.minutes.count_ones() * cron.hours.count_ones();
    if count <= TIMES {
        let mut times = Vec::new();
        for hour in numbers(cron.hours) {
            for minute in numbers(cron.minutes) {
                times.extend(numbers(cron.seconds).into_iter().map(|s| [hour, minute, s]));
            }
        }
        return Clock::At(times);
    }
    if cron.seconds == 1 {
        let one = match numbers(cron.minutes).as_slice() {
            [minute] => Some(*minute),
            _ => None,
        };
        let range = match &hours {
            Shape::Runs(runs) => match runs.as_slice() {
                [run] => Some(*run),
                _ => None,
            },
            _ => None,
        };
        let every = match minutes {
            Shape::All => Some((1, 0)),
            Shape::Even { step, from } => Some((step, from)),
            Shape::Runs(_) => None,
        };
        match (one, &hours, range, every) {
            (Some(minute), Shape::Even { step, from }, _, _) => {
                return Clock::Hours { step: *step, hour: *from, minute };
            }
            (Some(minute), _, Some((from, to)), _) => return Clock::Hourly { minute, from, to },
            (_, _, Some((from, to)), Some((step, first))) => {
                let (from, to) = ((from, first), (to, 60 - step + first));
                return Clock::Minutes { step, from, to };
            }
            _ => {}
        }
    }
    Clock::Fields { seconds, minutes, hours }
}

/// A weekday mask with Monday as 0 and Sunday as 6, as weeks are named.
fn from_monday(weekdays: u64) -> Vec<(i64, i64)> {
    runs(&numbers(weekdays >> 1 | (weekdays & 1) << 6))
}

/// One expression.
pub(crate) fn cron(cron: &Cron, zh: bool) -> String {
    if zh { zh::cron(cron) } else { en::cron(cron) }
}

/// An interval, as number and unit: 0 second, 1 minute, 2 hour, 3 day.
fn unit(seconds: i64) -> (i64, usize) {
    let units = [(86_400, 3), (3_600, 2), (60, 1)];
    // A day of an interval is no day of a calendar: one is 24 hours.
    let found = units
        .into_iter()
        .find(|(size, unit)| seconds % size == 0 && seconds > 0 && (*unit < 3 || seconds > *size));
    found.map_or((seconds, 0), |(size, unit)| (seconds / size, unit))
}

impl Schedule {
    /// In words, English or Chinese: "at 02:30 on Monday to Friday", without the zone.
    #[must_use]
    pub fn words(&self, zh: bool) -> String {
        match &self.times {
            Times::Cron { lines, .. } => {
                let mut said: Vec<String> = Vec::new();
                for words in lines.iter().map(|line| cron(line, zh)) {
                    if !said.contains(&words) {
                        said.push(words);
                    }
                }
                let lines = said;
                lines.join(if zh { "；" } else { "; " })
            }
            Times::Every { every, offset } if zh => zh::every(*every, *offset),
            Times::Every { every, offset } => en::every(*every, *offset),
            Times::At(_) => {
                let named = &self.expressions[..self.expressions.len().min(INSTANTS)];
                let more = self.expressions.len() - named.len();
                if zh { zh::at(named, more) } else { en::at(named, more) }
            }
        }
    }
}
