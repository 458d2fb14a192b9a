//! Chinese, by sense.

use super::{Clock, Shape, clock, from_monday, numbers, runs, unit};
use crate::cron::{Cron, Days, Weekdays, span};

const WEEKDAYS: [&str; 7] = ["周一", "周二", "周三", "周四", "周五", "周六", "周日"];
const ORDER: [&str; 5] = ["第一个", "第二个", "第三个", "第四个", "第五个"];
const UNITS: [&str; 4] = ["秒", "分钟", "小时", "天"];

fn weekday(day: i64) -> String {
    WEEKDAYS[usize::try_from(day).unwrap_or(0)].to_owned()
}

fn named(runs: &[(i64, i64)], name: impl Fn(i64) -> String) -> String {
    let part = |(first, last): &(i64, i64)| {
        if first == last { name(*first) } else { format!("{}至{}", name(*first), name(*last)) }
    };
    runs.iter().map(part).collect::<Vec<_>>().join("、")
}

/// `5、10 至 15`.
fn plain(runs: &[(i64, i64)]) -> String {
    let part = |(first, last): &(i64, i64)| {
        if first == last { first.to_string() } else { format!("{first} 至 {last}") }
    };
    runs.iter().map(part).collect::<Vec<_>>().join("、")
}

fn time(hour: i64, minute: i64) -> String {
    format!("{hour:02}:{minute:02}")
}

fn each(count: i64, unit: usize) -> String {
    match (count, unit) {
        (1, 3) => "每天".to_owned(),
        (1, _) => format!("每{}", UNITS[unit]),
        _ => format!("每 {count} {}", UNITS[unit]),
    }
}

fn from_there(unit: &str, from: i64) -> String {
    if from == 0 { String::new() } else { format!("（从第 {from} {unit}开始）") }
}

/// The time of the day, and whether a day belongs to it.
fn times(cron: &Cron) -> (String, bool) {
    match clock(cron) {
        Clock::At(times) => {
            let text = times.iter().map(|[hour, minute, second]| match second {
                0 => time(*hour, *minute),
                _ => format!("{}:{second:02}", time(*hour, *minute)),
            });
            (text.collect::<Vec<_>>().join("、"), true)
        }
        Clock::Hourly { minute, from, to } => {
            (format!("{} 至 {} 每小时一次", time(from, minute), time(to, minute)), true)
        }
        Clock::Hours { step, hour, minute } => {
            (format!("从 {} 起{}一次", time(hour, minute), each(step, 2)), true)
        }
        Clock::Minutes { step, from, to } => {
            (format!("{} 至 {} {}", time(from.0, from.1), time(to.0, to.1), each(step, 1)), true)
        }
        Clock::Fields { seconds, minutes, hours } => (fields(&seconds, &minutes, &hours), false),
    }
}

/// All numbers of an even shape.
fn all(shape: &Shape, size: i64) -> Vec<(i64, i64)> {
    match shape {
        Shape::All => vec![(0, size - 1)],
        Shape::Even { step, from } => {
            (0..size / step).map(|count| (from + count * step, from + count * step)).collect()
        }
        Shape::Runs(runs) => runs.clone(),
    }
}

fn fields(seconds: &Shape, minutes: &Shape, hours: &Shape) -> String {
    let full = *seconds == Shape::Runs(vec![(0, 0)]);
    let hour = match hours {
        Shape::All => String::new(),
        _ => format!("{} 点", plain(&all(hours, 24))),
    };
    if full {
        return match minutes {
            Shape::All => hour + &each(1, 1),
            Shape::Even { step, from } => hour + &each(*step, 1) + &from_there("分", *from),
            Shape::Runs(runs) if *hours == Shape::All && *runs == [(0, 0)] => {
                "每小时整点".to_owned()
            }
            Shape::Runs(runs) if *hours == Shape::All => format!("每小时的第 {} 分", plain(runs)),
            Shape::Runs(runs) => format!("{hour}的第 {} 分", plain(runs)),
        };
    }
    let minute = match (minutes, hours) {
        (Shape::All, _) => String::new(),
        (_, Shape::All) => format!("每小时的第 {} 分内", plain(&all(minutes, 60))),
        _ => format!("第 {} 分内", plain(&all(minutes, 60))),
    };
    let second = match seconds {
        Shape::All => each(1, 0),
        Shape::Even { step, from } => each(*step, 0) + &from_there("秒", *from),
        Shape::Runs(runs) if minute.is_empty() => format!("每分钟的第 {} 秒", plain(runs)),
        Shape::Runs(runs) => format!("第 {} 秒", plain(runs)),
    };
    format!("{hour}{minute}{second}")
}

fn days(days: &Days) -> String {
    let mut parts = Vec::new();
    let plain = runs(&numbers(days.mask));
    let part = |(first, last): &(i64, i64)| {
        if first == last { format!("{first} 日") } else { format!("{first} 至 {last} 日") }
    };
    parts.extend(plain.iter().map(part));
    parts.extend(
        numbers(days.nearest).iter().map(|day| format!("离 {day} 日最近的工作日（周一至周五）")),
    );
    if days.last_working {
        parts.push("最后一个工作日（周一至周五）".to_owned());
    }
    if days.last {
        parts.push("最后一天".to_owned());
    }
    parts.join("、")
}

/// Weekdays of every week, and those of the month.
fn weekdays(weekdays: &Weekdays) -> (String, String) {
    let mut parts = Vec::new();
    for (order, mask) in ORDER.iter().zip(weekdays.nth) {
        parts.extend(from_monday(mask).iter().flat_map(|(first, last)| {
            (*first..=*last).map(|day| format!("{order}{}", weekday(day)))
        }));
    }
    parts.extend(
        from_monday(weekdays.last).iter().flat_map(|(first, last)| {
            (*first..=*last).map(|day| format!("最后一个{}", weekday(day)))
        }),
    );
    (named(&from_monday(weekdays.mask), weekday), parts.join("、"))
}

/// `每月 13 日`, `每年 2 月 29 日`; begins with a number or not.
fn of_month(month: &str, what: &str) -> String {
    let blank = if what.starts_with(|c: char| c.is_ascii_digit()) { " " } else { "" };
    format!("{month}{blank}{what}")
}

/// One expression.
pub(super) fn cron(cron: &Cron) -> String {
    let (time, at) = times(cron);
    let every_month = cron.months.count_ones() == 12;
    let months = named(&runs(&numbers(cron.months)), |month| format!(" {month} 月"));
    let months = months.trim().to_owned();
    let month = if every_month { "每月".to_owned() } else { format!("每年 {months}") };
    let any_day = cron.days.mask == span(1, 31);
    let any_weekday = cron.weekdays.mask == span(0, 6);
    let or = !cron.days.star && !cron.weekdays.star;
    let of_weeks = || {
        let (weekly, monthly) = weekdays(&cron.weekdays);
        let weekly = match (weekly.is_empty(), every_month) {
            (true, _) => None,
            (_, true) => Some(format!("每{weekly}")),
            _ => Some(format!("每年 {months}的每{weekly}")),
        };
        let monthly = (!monthly.is_empty()).then(|| of_month(&month, &monthly));
        weekly.into_iter().chain(monthly).collect::<Vec<_>>().join("和")
    };
    let date = match (any_day, any_weekday) {
        (true, true) => String::new(),
        _ if or && (any_day || any_weekday) => String::new(),
        (false, true) => of_month(&month, &days(&cron.days)),
        (true, false) => of_weeks(),
        (false, false) if or => format!("{}或{}", of_month(&month, &days(&cron.days)), of_weeks()),
        _ => {
            let weeks = of_weeks();
            let weeks = weeks.strip_prefix('每').unwrap_or(&weeks);
            format!("{}（须同时为{weeks}）", of_month(&month, &days(&cron.days)))
        }
    };
    let date = match (date.is_empty(), every_month, at) {
        (false, _, _) => date,
        (_, true, true) => "每天".to_owned(),
        (_, true, false) => String::new(),
        (_, false, _) => format!("每年 {months}的每天"),
    };
    let year = cron.years.as_ref().map(|years| {
        let years: Vec<i64> = years.iter().map(|year| i64::from(*year)).collect();
        format!("{} 年", plain(&runs(&years)))
    });
    let parts = year.into_iter().chain(Some(date).filter(|date| !date.is_empty()));
    let date = parts.collect::<Vec<_>>().join("，");
    let close = date.ends_with('）') || !time.starts_with(|c: char| c.is_ascii_digit());
    match (date.is_empty(), at) {
        (true, _) => time,
        (_, true) if close => format!("{date}{time}"),
        (_, true) => format!("{date} {time}"),
        _ => format!("{date}，{time}"),
    }
}

/// An interval.
pub(super) fn every(every: i64, offset: i64) -> String {
    let (count, size) = unit(every);
    let text = each(count, size);
    if offset == 0 {
        return text;
    }
    let (count, size) = unit(offset);
    format!("{text}，偏移 {count} {}", UNITS[size])
}

/// Instants, and how many more there are.
pub(super) fn at(named: &[String], more: usize) -> String {
    match more {
        0 => named.join("、"),
        _ => format!("{} 等 {} 个时刻", named.join("、"), named.len() + more),
    }
}
