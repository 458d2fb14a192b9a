//! English.

use super::{Clock, Shape, clock, from_monday, numbers, runs, unit};
use crate::cron::{Cron, Days, Weekdays, span};

const MONTHS: [&str; 13] = [
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ORDER: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
const UNITS: [&str; 4] = ["second", "minute", "hour", "day"];

fn index(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// `a, b and c`.
fn listed(parts: &[String], and: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} {and} {last}", some.join(", ")),
    }
}

fn named(runs: &[(i64, i64)], name: impl Fn(i64) -> String) -> String {
    let part = |(first, last): &(i64, i64)| {
        if first == last { name(*first) } else { format!("{} to {}", name(*first), name(*last)) }
    };
    listed(&runs.iter().map(part).collect::<Vec<_>>(), "and")
}

fn plain(runs: &[(i64, i64)]) -> String {
    named(runs, |number| number.to_string())
}

/// `minute 5`, `minutes 5 and 10`.
fn counted(what: &str, runs: &[(i64, i64)]) -> String {
    let many = runs.len() > 1 || runs.iter().any(|(first, last)| first != last);
    format!("{what}{} {}", if many { "s" } else { "" }, plain(runs))
}

fn time(hour: i64, minute: i64) -> String {
    format!("{hour:02}:{minute:02}")
}

/// `every 15 minutes`, `every minute`.
fn each(count: i64, unit: usize) -> String {
    match count {
        1 => format!("every {}", UNITS[unit]),
        _ => format!("every {count} {}s", UNITS[unit]),
    }
}

fn from_there(what: &str, from: i64) -> String {
    if from == 0 { String::new() } else { format!(" from {what} {from} on") }
}

/// The time of the day, and whether a day belongs to it ("at 02:30 every day").
fn times(cron: &Cron) -> (String, bool) {
    match clock(cron) {
        Clock::At(times) => {
            let text = times.iter().map(|[hour, minute, second]| match second {
                0 => time(*hour, *minute),
                _ => format!("{}:{second:02}", time(*hour, *minute)),
            });
            (format!("at {}", listed(&text.collect::<Vec<_>>(), "and")), true)
        }
        Clock::Hourly { minute, from, to } => {
            (format!("every hour from {} to {}", time(from, minute), time(to, minute)), false)
        }
        Clock::Hours { step, hour, minute } => {
            (format!("{} from {} on", each(step, 2), time(hour, minute)), false)
        }
        Clock::Minutes { step, from, to } => {
            let (from, to) = (time(from.0, from.1), time(to.0, to.1));
            (format!("{} from {from} to {to}", each(step, 1)), false)
        }
        Clock::Fields { seconds, minutes, hours } => (fields(&seconds, &minutes, &hours), false),
    }
}

fn fields(seconds: &Shape, minutes: &Shape, hours: &Shape) -> String {
    let full = *seconds == Shape::Runs(vec![(0, 0)]);
    let mut parts = Vec::new();
    match seconds {
        Shape::All => parts.push(each(1, 0)),
        Shape::Even { step, from } => parts.push(each(*step, 0) + &from_there("second", *from)),
        Shape::Runs(_) if full => {}
        Shape::Runs(runs) => parts.push(format!("at {}", counted("second", runs))),
    }
    match minutes {
        Shape::All if full => parts.push(each(1, 1)),
        Shape::All => {
            if matches!(seconds, Shape::Runs(_)) {
                parts.push("of every minute".to_owned());
            }
        }
        Shape::Even { step, from } if full => {
            parts.push(each(*step, 1) + &from_there("minute", *from));
        }
        Shape::Even { step, from } => {
            let which = numbers((0..60 / step).fold(0, |mask, n| mask | 1 << (from + n * step)));
            parts.push(format!("in {}", counted("minute", &runs(&which))));
        }
        Shape::Runs(runs) if full && *hours == Shape::All && *runs == [(0, 0)] => {
            return each(1, 2);
        }
        Shape::Runs(runs) if full => parts.push(format!("at {}", counted("minute", runs))),
        Shape::Runs(runs) => parts.push(format!("in {}", counted("minute", runs))),
    }
    match hours {
        Shape::All if matches!(minutes, Shape::Runs(_)) => parts.push("of every hour".to_owned()),
        Shape::All => {}
        Shape::Even { step, from } => {
            let which = numbers((0..24 / step).fold(0, |mask, n| mask | 1 << (from + n * step)));
            parts.push(format!("in the {}", counted("hour", &runs(&which))));
        }
        Shape::Runs(runs) => parts.push(format!("in the {}", counted("hour", runs))),
    }
    parts.join(" ")
}

fn days(days: &Days, month: &str, one_month: bool) -> String {
    let mut parts = Vec::new();
    let plain = runs(&numbers(days.mask));
    if !plain.is_empty() {
        parts.push(counted("day", &plain));
    }
    parts.extend(
        numbers(days.nearest)
            .iter()
            .map(|day| format!("the working day (Monday to Friday) nearest to day {day}")),
    );
    if days.last_working {
        parts.push("the last working day (Monday to Friday)".to_owned());
    }
    if days.last {
        parts.push("the last day".to_owned());
    }
    if one_month && days.mask != 0 && parts.len() == 1 {
        return format!("on {} {month}", named(&plain, |day| day.to_string()));
    }
    format!("on {} of {month}", listed(&parts, "and"))
}

fn weekdays(weekdays: &Weekdays, month: &str, months: &str) -> String {
    let name = |day: i64| WEEKDAYS[index(day)].to_owned();
    let mut parts = Vec::new();
    for (order, mask) in ORDER.iter().zip(weekdays.nth) {
        parts.extend(from_monday(mask).iter().flat_map(|(first, last)| {
            (*first..=*last).map(|day| format!("the {order} {}", name(day)))
        }));
    }
    parts.extend(
        from_monday(weekdays.last).iter().flat_map(|(first, last)| {
            (*first..=*last).map(|day| format!("the last {}", name(day)))
        }),
    );
    let plain = named(&from_monday(weekdays.mask), name);
    let of_month = format!("{} of {month}", listed(&parts, "and"));
    match (plain.is_empty(), parts.is_empty()) {
        (false, true) => format!("on {plain}{months}"),
        (false, false) => format!("on {plain}{months} and on {of_month}"),
        _ => format!("on {of_month}"),
    }
}

/// One expression.
pub(super) fn cron(cron: &Cron) -> String {
    let (time, at) = times(cron);
    let months = named(&runs(&numbers(cron.months)), |month| MONTHS[index(month)].to_owned());
    let (month, months) = match cron.months.count_ones() {
        12 => ("the month".to_owned(), String::new()),
        _ => (months.clone(), format!(" in {months}")),
    };
    let one_month = cron.months.count_ones() == 1;
    let any_day = cron.days.mask == span(1, 31);
    let any_weekday = cron.weekdays.mask == span(0, 6);
    let or = !cron.days.star && !cron.weekdays.star;
    let date = match (any_day, any_weekday) {
        (true, true) => String::new(),
        _ if or && (any_day || any_weekday) => String::new(),
        (false, true) => days(&cron.days, &month, one_month),
        (true, false) => weekdays(&cron.weekdays, &month, &months),
        (false, false) => {
            let both =
                (days(&cron.days, &month, one_month), weekdays(&cron.weekdays, &month, &months));
            if or {
                format!("{} or {}", both.0, both.1)
            } else {
                format!("{}, if it is also {}", both.0, both.1)
            }
        }
    };
    let mut text = time;
    if !date.is_empty() {
        text += &format!(" {date}");
    } else {
        text += if at { " every day" } else { "" };
        text += &months;
    }
    if let Some(years) = &cron.years {
        let years: Vec<i64> = years.iter().map(|year| i64::from(*year)).collect();
        text += &format!(", in {}", plain(&runs(&years)));
    }
    text
}

/// An interval.
pub(super) fn every(every: i64, offset: i64) -> String {
    let (count, size) = unit(every);
    let text = each(count, size);
    if offset == 0 {
        return text;
    }
    let (count, size) = unit(offset);
    let many = if count == 1 { "" } else { "s" };
    format!("{text}, shifted by {count} {}{many}", UNITS[size])
}

/// Instants, and how many more there are.
pub(super) fn at(named: &[String], more: usize) -> String {
    match more {
        0 => format!("at {}", listed(named, "and")),
        _ => format!("at {} and {more} more", named.join(", ")),
    }
}
