//! A second computation, by brute force: each civil time of ten years is looked up in jiff's table, and each real
//! instant is shown on the clock of its zone. It shares nothing with the crate.

use std::collections::BTreeMap;

use jiff::civil::{Date, DateTime, Weekday, date};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan as _};

use super::*;

/// Half-hour jumps, jumps at midnight, two hours, three in a year, over the date line, new offsets for good.
const ZONES: [&str; 13] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "Asia/Gaza",
    "America/Santiago",
    "Europe/Dublin",
    "Asia/Pyongyang",
    "Antarctica/Troll",
    "America/Caracas",
];

/// An expression, and the same again by hand.
struct Pattern {
    line: &'static str,
    fixed: bool,
    day: fn(Date) -> bool,
    time: fn(i8, i8) -> bool,
}

const PATTERNS: [Pattern; 9] = [
    Pattern { line: "30 2 * * *", fixed: true, day: |_| true, time: |h, m| h == 2 && m == 30 },
    Pattern { line: "0 0 * * *", fixed: true, day: |_| true, time: |h, m| h == 0 && m == 0 },
    Pattern {
        line: "0,30 1-3 * * *",
        fixed: true,
        day: |_| true,
        time: |h, m| (1..4).contains(&h) && m % 30 == 0,
    },
    Pattern {
        line: "*/10 0,2,23 13 * 5",
        fixed: true,
        day: |d| d.day() == 13 || d.weekday() == Weekday::Friday,
        time: |h, _| [0, 2, 23].contains(&h),
    },
    Pattern {
        line: "20 0-3 */2 * 0",
        fixed: true,
        day: |d| d.day() % 2 == 1 && d.weekday() == Weekday::Sunday,
        time: |h, m| h < 4 && m == 20,
    },
    Pattern {
        line: "0 3 L * *",
        fixed: true,
        day: |d| d.day() == d.days_in_month(),
        time: |h, m| h == 3 && m == 0,
    },
    Pattern { line: "*/20 * * * *", fixed: false, day: |_| true, time: |_, m| m % 20 == 0 },
    Pattern { line: "0 */2 * * *", fixed: false, day: |_| true, time: |h, m| h % 2 == 0 && m == 0 },
    Pattern {
        line: "30 * * * 1#2",
        fixed: false,
        day: |d| d.weekday() == Weekday::Monday && (8..15).contains(&d.day()),
        time: |_, m| m == 30,
    },
];

const FIRST: Date = date(2010, 1, 1);
const LAST: Date = date(2020, 1, 1);

/// When, and the name without job and zone.
type Found = BTreeMap<Timestamp, String>;

fn named(civil: DateTime, offset: jiff::tz::Offset) -> String {
    let (sign, minutes) =
        (if offset.seconds() < 0 { '-' } else { '+' }, offset.seconds().abs() / 60);
    format!("{}{sign}{:02}:{:02}", civil.strftime("%Y-%m-%dT%H:%M"), minutes / 60, minutes % 60)
}

/// The first instant in a gap's neighbourhood at which the new offset holds.
fn end_of_gap(zone: &TimeZone, mut before: Timestamp, mut after: Timestamp) -> Timestamp {
    let new = zone.to_offset(after);
    while after.as_second() - before.as_second() > 1 {
        let middle = Timestamp::from_second((before.as_second() + after.as_second()) / 2).unwrap();
        if zone.to_offset(middle) == new { after = middle } else { before = middle }
    }
    after
}

fn fixed(zone: &TimeZone, pattern: &Pattern) -> Found {
    let slots =
        (0..24_i8).flat_map(|hour| (0..60_i8).step_by(10).map(move |minute| (hour, minute)));
    let slots: Vec<_> = slots.filter(|(hour, minute)| (pattern.time)(*hour, *minute)).collect();
    let mut found = Found::new();
    for day in FIRST.series(1.day()).take_while(|day| *day < LAST).filter(|day| (pattern.day)(*day))
    {
        for (hour, minute) in &slots {
            let civil = day.at(*hour, *minute, 0, 0);
            let looked = zone.to_ambiguous_timestamp(civil);
            let (at, offset) = match looked.offset() {
                AmbiguousOffset::Unambiguous { offset } => (looked.unambiguous().unwrap(), offset),
                AmbiguousOffset::Fold { before, .. } => (looked.earlier().unwrap(), before),
                AmbiguousOffset::Gap { before, after } => {
                    if after.seconds() - before.seconds() > 10_800 {
                        continue;
                    }
                    let (early, late) = (looked.earlier().unwrap(), looked.later().unwrap());
                    (end_of_gap(zone, early.min(late), early.max(late)), before)
                }
            };
            // Several in a gap, and one at its end: the first.
            found.entry(at).or_insert_with(|| named(civil, offset));
        }
    }
    found
}

/// Of each of `patterns`, and when the clocks were changed.
fn real(zone: &TimeZone, patterns: &[&Pattern]) -> (Vec<Found>, Vec<Timestamp>) {
    let mut found = vec![Found::new(); patterns.len()];
    let mut changes = Vec::new();
    let ends = |day: Date| zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0)).compatible().unwrap();
    let (start, end) = (ends(FIRST).as_second(), ends(LAST).as_second());
    let mut last = zone.to_offset(Timestamp::from_second(start).unwrap());
    for second in (start..end).step_by(600) {
        let at = Timestamp::from_second(second).unwrap();
        let offset = zone.to_offset(at);
        if offset != last {
            changes.push(at);
            last = offset;
        }
        let civil = offset.to_datetime(at);
        for (pattern, found) in patterns.iter().zip(&mut found) {
            if !(pattern.time)(civil.hour(), civil.minute()) || !(pattern.day)(civil.date()) {
                continue;
            }
            let looked = zone.to_ambiguous_timestamp(civil);
            let again =
                matches!(looked.offset(), AmbiguousOffset::Fold { after, .. } if after == offset);
            let zone = if again { " again" } else { "" };
            found.insert(at, named(civil, offset) + zone);
        }
    }
    (found, changes)
}

/// The ticks of `schedule` in the form of the second computation.
fn ticks(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Found {
    let stamp = |at: Timestamp| StoreTime(at.as_millisecond());
    let shown = |tick: Tick| {
        let (name, zone) = tick.name.0.split_once('[').expect("a zone");
        let again = if zone.contains("_fold=2") { " again" } else { "" };
        let name = name.strip_prefix("job@").expect("the job").to_owned() + again;
        (Timestamp::from_millisecond(tick.due.0).unwrap(), name)
    };
    between(schedule, stamp(from), stamp(to)).into_iter().map(shown).collect()
}

/// The same, backwards.
fn ticks_back(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut instant = StoreTime(to.as_millisecond() - 1);
    while let Some(tick) =
        schedule.until(instant).filter(|tick| tick.due.0 >= from.as_millisecond())
    {
        instant = StoreTime(tick.due.0 - 1);
        found.push(Timestamp::from_millisecond(tick.due.0).unwrap());
    }
    found.reverse();
    found
}

fn compare(zones: &[&str]) {
    for name in zones {
        let zone = jiff::tz::db().get(name).expect("the zone table of this machine");
        let loose: Vec<&Pattern> = PATTERNS.iter().filter(|pattern| !pattern.fixed).collect();
        let (mut found, changes) = real(&zone, &loose);
        let day = 86_400.seconds();
        let (first, last) = (
            zone.to_ambiguous_timestamp(FIRST.at(0, 0, 0, 0)).compatible().unwrap(),
            zone.to_ambiguous_timestamp(LAST.at(0, 0, 0, 0)).compatible().unwrap(),
        );
        for pattern in &PATTERNS {
            let expected = if pattern.fixed { fixed(&zone, pattern) } else { found.remove(0) };
            let schedule = cron(pattern.line, name);
            // Around each change of the clocks everything, and what is rare everywhere.
            let mut windows: Vec<_> = changes.iter().map(|at| (*at - day, *at + day)).collect();
            if expected.len() < 5_000 {
                windows.push((first, last));
            }
            windows.extend(
                (0..40)
                    .map(|n| (first + (n * 90 * 24).hours(), first + ((n * 90 + 1) * 24).hours())),
            );
            for (from, to) in windows {
                let (from, to) = (from.max(first), to.min(last));
                let expected: Found =
                    expected.range(from..to).map(|(at, name)| (*at, name.clone())).collect();
                assert_eq!(ticks(&schedule, from, to), expected, "{} in {name}", pattern.line);
                let back: Vec<Timestamp> = expected.into_keys().collect();
                assert_eq!(
                    ticks_back(&schedule, from, to),
                    back,
                    "back: {} in {name}",
                    pattern.line
                );
            }
        }
    }
}

#[test]
fn ten_years_of_thirteen_zones_are_what_a_second_computation_says() {
    // Two halves: machines have two cores at least.
    std::thread::scope(|scope| {
        scope.spawn(|| compare(&ZONES[..6]));
        compare(&ZONES[6..]);
    });
}
