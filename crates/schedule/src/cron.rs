//! The civil days and times that one expression means. It knows no zone.
//!
//! Sets of numbers are masks: bit `n` is the number `n`. Civil times are seconds since 1970-01-01T00:00 on the clock.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::{Timestamp, tz::Offset};

/// Seconds of a day.
pub(crate) const DAY: i64 = 86_400;
/// Years in which days are looked for.
const YEARS: std::ops::RangeInclusive<i16> = 1899..=2400;

/// One expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cron {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u64,
    pub(crate) days: Days,
    pub(crate) months: u64,
    pub(crate) weekdays: Weekdays,
    /// `None`: every year.
    pub(crate) years: Option<BTreeSet<i16>>,
    /// Its hour field holds no `*`: each of its times is due once, whatever the clocks do.
    pub(crate) fixed: bool,
    /// As it is written into the record: one blank between fields, capital letters.
    pub(crate) text: String,
}

/// The field for days of the month.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Days {
    pub(crate) mask: u64,
    /// `L`: the last one.
    pub(crate) last: bool,
    /// `LW`: the last one that is Monday to Friday.
    pub(crate) last_working: bool,
    /// `15W`: the day from Monday to Friday that is nearest, in the same month.
    pub(crate) nearest: u64,
    /// It begins with `*` or `?`, and makes no "or".
    pub(crate) star: bool,
}

/// The field for weekdays; 0 is Sunday.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Weekdays {
    pub(crate) mask: u64,
    /// `5L`: the last one of the month.
    pub(crate) last: u64,
    /// `5#3`: the third of the month is at index 2.
    pub(crate) nth: [u64; 5],
    /// It begins with `*` or `?`, and makes no "or".
    pub(crate) star: bool,
}

fn has(mask: u64, bit: i64) -> bool {
    u32::try_from(bit).is_ok_and(|bit| bit < 64 && mask >> bit & 1 == 1)
}

/// The lowest bit that is `from` or higher.
fn lowest(mask: u64, from: i64) -> Option<i64> {
    let shift = u32::try_from(from.max(0)).ok().filter(|shift| *shift < 64)?;
    let rest = mask >> shift << shift;
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}

/// The highest bit that is `to` or lower.
fn highest(mask: u64, to: i64) -> Option<i64> {
    let shift = u32::try_from(63 - to.min(63)).ok().filter(|shift| *shift < 64)?;
    let rest = mask << shift >> shift;
    (rest != 0).then(|| 63 - i64::from(rest.leading_zeros()))
}

/// The bits from `from` to `to`.
pub(crate) fn span(from: i64, to: i64) -> u64 {
    (from..=to).fold(0, |mask, bit| mask | 1 << bit)
}

/// The day of a civil time.
pub(crate) fn date(civil: i64) -> Date {
    Offset::UTC.to_datetime(Timestamp::from_second(civil).unwrap_or_default()).date()
}

fn midnight(date: Date) -> i64 {
    Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).map_or(0, Timestamp::as_second)
}

impl Days {
    fn of(&self, first: i64, length: i64) -> u64 {
        let working = |day: i64| (1..=5).contains(&((first + day - 1) % 7));
        let mut mask = self.mask;
        if self.last {
            mask |= 1 << length;
        }
        if self.last_working {
            let day = (length - 2..=length).rev().find(|day| working(*day));
            mask |= day.map_or(0, |day| 1 << day);
        }
        let mut next = lowest(self.nearest, 1).filter(|day| *day <= length);
        while let Some(day) = next {
            let near = [day, day - 1, day + 1, day - 2, day + 2];
            let day_of = near.into_iter().find(|day| (1..=length).contains(day) && working(*day));
            mask |= day_of.map_or(0, |day| 1 << day);
            next = lowest(self.nearest, day + 1).filter(|day| *day <= length);
        }
        mask
    }
}

impl Weekdays {
    fn of(&self, first: i64, length: i64) -> u64 {
        let every = |weekdays: u64, from: i64, to: i64| {
            if weekdays == 0 {
                return 0;
            }
            let days = from.max(1)..=to.min(length);
            days.filter(|day| has(weekdays, (first + day - 1) % 7)).fold(0, |mask, d| mask | 1 << d)
        };
        let mut mask = every(self.mask, 1, length) | every(self.last, length - 6, length);
        for (week, weekdays) in (0..).zip(self.nth) {
            mask |= every(weekdays, week * 7 + 1, week * 7 + 7);
        }
        mask
    }
}

impl Cron {
    /// The days of a month on which it is due.
    fn days(&self, year: i16, month: i8) -> u64 {
        let barred = self.years.as_ref().is_some_and(|years| !years.contains(&year));
        if barred || !has(self.months, month.into()) {
            return 0;
        }
        let Ok(begin) = Date::new(year, month, 1) else { return 0 };
        let first = i64::from(begin.weekday().to_sunday_zero_offset());
        let length = i64::from(begin.days_in_month());
        let days = self.days.of(first, length);
        let weekdays = self.weekdays.of(first, length);
        let or = !self.days.star && !self.weekdays.star;
        (if or { days | weekdays } else { days & weekdays }) & span(1, length)
    }

    fn time_from(&self, hour: i64, minute: i64, second: i64) -> Option<i64> {
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = lowest(self.seconds, second)
            {
                return Some(hour * 3_600 + minute * 60 + second);
            }
            if let Some(minute) = lowest(self.minutes, minute + 1) {
                return Some(hour * 3_600 + minute * 60 + lowest(self.seconds, 0)?);
            }
        }
        let hour = lowest(self.hours, hour + 1)?;
        Some(hour * 3_600 + lowest(self.minutes, 0)? * 60 + lowest(self.seconds, 0)?)
    }

    fn time_to(&self, hour: i64, minute: i64, second: i64) -> Option<i64> {
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = highest(self.seconds, second)
            {
                return Some(hour * 3_600 + minute * 60 + second);
            }
            if let Some(minute) = highest(self.minutes, minute - 1) {
                return Some(hour * 3_600 + minute * 60 + highest(self.seconds, 59)?);
            }
        }
        let hour = highest(self.hours, hour - 1)?;
        Some(hour * 3_600 + highest(self.minutes, 59)? * 60 + highest(self.seconds, 59)?)
    }

    /// The first of its civil times that is `from` or later.
    pub(crate) fn next(&self, from: i64) -> Option<i64> {
        let (date, time) = (date(from), from.rem_euclid(DAY));
        let (mut year, mut month) = (date.year(), date.month());
        let mut days = self.days(year, month);
        let today = i64::from(date.day());
        if has(days, today)
            && let Some(found) = self.time_from(time / 3_600, time / 60 % 60, time % 60)
        {
            return Some(from - time + found);
        }
        let mut first = today + 1;
        loop {
            if let Some(day) = lowest(days, first) {
                return Some(at_day(year, month, day)? + self.time_from(0, 0, 0)?);
            }
            first = 1;
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            if !YEARS.contains(&year) {
                return None;
            }
            days = self.days(year, month);
        }
    }

    /// The last of its civil times that is `to` or earlier.
    pub(crate) fn previous(&self, to: i64) -> Option<i64> {
        let (date, time) = (date(to), to.rem_euclid(DAY));
        let (mut year, mut month) = (date.year(), date.month());
        let mut days = self.days(year, month);
        let today = i64::from(date.day());
        if has(days, today)
            && let Some(found) = self.time_to(time / 3_600, time / 60 % 60, time % 60)
        {
            return Some(to - time + found);
        }
        let mut last = today - 1;
        loop {
            if let Some(day) = highest(days, last) {
                return Some(at_day(year, month, day)? + self.time_to(23, 59, 59)?);
            }
            last = 31;
            (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
            if !YEARS.contains(&year) {
                return None;
            }
            days = self.days(year, month);
        }
    }
}

fn at_day(year: i16, month: i8, day: i64) -> Option<i64> {
    Some(midnight(Date::new(year, month, i8::try_from(day).ok()?).ok()?))
}
