//! Laws that hold for every schedule.

use std::collections::HashSet;

use soloist_domain::tick::TickName;

use super::*;

fn jittered(lines: &[&str], zone: &str, jitter: u64) -> Schedule {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    let kind = Kind::Cron { lines, quartz: false };
    let jitter = Duration::from_secs(jitter);
    let spec = Spec { kind, zone: Some(zone.to_owned()), jitter };
    Schedule::read(&JobName::new("job").unwrap(), &spec).unwrap()
}

/// Numbers without a clock and without a crate: xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

/// Forward and back give the same ticks, in order, no name twice, and each is found by its name.
fn agree(schedule: &Schedule, from: StoreTime, to: StoreTime) -> usize {
    let forward = between(schedule, from, to);
    let mut back = Vec::new();
    let mut instant = StoreTime(to.0 - 1);
    while let Some(tick) = schedule.until(instant).filter(|tick| tick.starts >= from) {
        instant = StoreTime(tick.starts.0 - 1);
        back.push(tick);
    }
    back.reverse();
    assert_eq!(forward, back, "{}", schedule.text());
    let names: HashSet<&TickName> = forward.iter().map(|tick| &tick.name).collect();
    assert_eq!(names.len(), forward.len(), "a name twice: {}", schedule.text());
    for two in forward.windows(2) {
        assert!(two[0].starts < two[1].starts, "{two:?}");
        let middle = StoreTime((two[0].starts.0 + two[1].starts.0) / 2);
        assert_eq!(schedule.until(middle).as_ref(), Some(&two[0]));
        assert_eq!(schedule.after(middle).as_ref(), Some(&two[1]));
    }
    for tick in &forward {
        assert_eq!(schedule.until(tick.starts).as_ref(), Some(tick));
        assert_eq!(schedule.named(&tick.name).as_ref(), Some(tick), "{}", schedule.text());
    }
    forward.len()
}

#[test]
fn forward_and_back_agree_with_jitter_and_lists_over_changes_of_the_clocks() {
    let lists: [(&[&str], u64); 7] = [
        (&["30 2 * * *"], 3_600),
        (&["0,30 1-3 * * *"], 1_500),
        (&["*/20 * * * *"], 1_200),
        (&["30 2 * * *", "*/30 * * * *"], 1_700),
        (&["0 */2 * * *", "0,30 2 * * 0", "15 0-4 * * *"], 600),
        (&["H H(0-3) * * *", "H/20 2 * * *", "0 3 L * *"], 0),
        (&["* * * * *", "30 2 * * *"], 60),
    ];
    // Where and when the clocks change within two days.
    let changes = [
        ("Europe/Berlin", ["2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"]),
        ("Australia/Lord_Howe", ["2026-04-04T00:00:00Z", "2026-10-03T00:00:00Z"]),
        ("Africa/Cairo", ["2026-04-23T00:00:00Z", "2026-10-29T00:00:00Z"]),
        ("Pacific/Apia", ["2011-12-29T00:00:00Z", "2012-03-31T00:00:00Z"]),
    ];
    for (lines, jitter) in lists {
        for (zone, dates) in changes {
            for jitter in [0, jitter] {
                let schedule = jittered(lines, zone, jitter);
                for date in dates {
                    assert!(agree(&schedule, at(date), StoreTime(at(date).0 + 2 * 86_400_000)) > 0);
                }
            }
        }
    }
}

#[test]
fn jitter_stays_below_its_bound_is_spread_and_the_same_on_every_node() {
    let plain = cron("0 4 * * *", "Europe/Berlin");
    let later = jittered(&["0 4 * * *"], "Europe/Berlin", 300);
    let (from, to) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
    let ticks = between(&later, from, to);
    assert_eq!(ticks, between(&jittered(&["0 4 * * *"], "Europe/Berlin", 300), from, to));
    let mut sum = 0;
    for (tick, plain) in ticks.iter().zip(between(&plain, from, to)) {
        assert_eq!((&tick.name, tick.due), (&plain.name, plain.due));
        let late = tick.starts.0 - tick.due.0;
        assert!((0..300_000).contains(&late));
        sum += late;
    }
    assert!((100_000..200_000).contains(&(sum / 365)), "{sum}");
}

/// An interval between two ticks can be shorter than anything that was looked at. Then jitter may change their order;
/// forward and back agree all the same.
#[test]
fn ticks_that_jitter_brings_out_of_order_are_one_row_all_the_same() {
    let mut schedule = jittered(&["*/5 * * * *", "7 3 * * *"], "Europe/Berlin", 0);
    schedule.jitter = 1_800_000;
    let from = at("2026-03-28T00:00:00Z");
    agree(&schedule, from, StoreTime(from.0 + 3 * 86_400_000));
}

#[test]
fn no_instant_is_too_early_or_too_late() {
    let daily = cron("30 2 * * *", "Europe/Berlin");
    assert_eq!(daily.until(StoreTime(i64::MIN)), None);
    assert_eq!(daily.after(StoreTime(i64::MAX)), None);
    assert!(daily.after(StoreTime(i64::MIN)).unwrap().name.0.starts_with("job@1900-01-01"));
    assert!(daily.until(StoreTime(i64::MAX)).unwrap().name.0.starts_with("job@2399-12-31"));
    let second = quartz("* * * * * *", "Africa/Monrovia");
    assert!(second.after(at("1950-01-01T00:00:00Z")).unwrap().name.0.contains("-00:44:30"));
    for name in [
        "",
        "job",
        "job@",
        "job@x",
        "job@hand:01ARZ",
        "job@2026-13-01T02:30+01:00[Europe/Berlin]",
        "other@2026-03-01T02:30+01:00[Europe/Berlin]",
        "job@2026-03-01T02:30+01:00[Europe/Paris]",
        "job@2026-03-01T02:31+01:00[Europe/Berlin]",
        "job@2026-03-01[Europe/Berlin]",
        "job@-009999-01-01T00:00+00:00[Europe/Berlin]",
    ] {
        assert_eq!(daily.named(&TickName(name.to_owned())), None, "{name}");
    }
    let other = TickName("job@2026-03-01T02:30+09:00[Europe/Berlin]".to_owned());
    assert_eq!(
        daily.named(&other).unwrap().due,
        at("2026-03-01T01:30:00Z"),
        "offsets are not compared"
    );
    for (every, offset) in [(u64::MAX, 0), (1, u64::MAX), (0, 0)] {
        let kind =
            Kind::Every { every: Duration::from_secs(every), offset: Duration::from_secs(offset) };
        let spec = Spec { kind, zone: None, jitter: Duration::MAX };
        assert!(Schedule::read(&JobName::new("job").unwrap(), &spec).is_err());
    }
}

#[test]
fn the_changes_of_a_zone_are_told_apart() {
    let from = at("2026-01-15T00:00:00Z");
    let hash = |zone: &str, days| cron("0 0 * * *", zone).zone_changes(from, days);
    assert_eq!(hash("Europe/Berlin", 400), hash("Europe/Berlin", 400));
    assert_ne!(hash("Europe/Berlin", 400), hash("Europe/Paris", 400));
    assert_ne!(hash("Europe/Berlin", 400), hash("Europe/Berlin", 30), "two changes less");
    let evening = cron("0 0 * * *", "Europe/Berlin").zone_changes(at("2026-01-15T22:00:00Z"), 400);
    assert_eq!(hash("Europe/Berlin", 400), evening, "nodes ask at other times of the day");
    // The same picture a day later, while no change comes into view.
    let later = cron("0 0 * * *", "Europe/Berlin").zone_changes(at("2026-01-16T00:00:00Z"), 30);
    assert_eq!(hash("Europe/Berlin", 30), later);
    assert_eq!(hash("Europe/Berlin", 30).len(), 16);
}

#[test]
fn no_text_panics() {
    let mut numbers = Numbers(0x5010_1157);
    let parts = [
        "*",
        "?",
        "0",
        "5",
        "30",
        "59",
        "60",
        "7",
        "1-5",
        "22-2",
        "*/15",
        "*/0",
        "0/10",
        "/",
        "-",
        ",",
        "L",
        "LW",
        "15W",
        "32W",
        "W",
        "5L",
        "5#3",
        "#",
        "MON",
        "MON#2",
        "SAT-SUN",
        "jan",
        "H",
        "H(0-29)",
        "H(",
        "H(5-1)/3",
        "H/7",
        "2027",
        "2027-2030",
        "99999999999999999999",
        "é",
        "\u{0}",
        "@daily",
        "@",
        "1,2,3",
        "~",
        "L-3",
        "1-5/2",
        "FRI-MON",
        "H(0-99)",
        "31",
        "2",
        "\t",
    ];
    let (mut read_well, mut refused) = (0, 0);
    for round in 0..3_000_u64 {
        let quartz = round % 2 == 0;
        let mut text = String::new();
        if round % 3 == 0 {
            // As many fields as there must be, most of them right.
            let fields = [
                ["0", "0/10", "*"],
                ["H", "*/20", "5,30"],
                ["*/2", "2", "H(1-3)"],
                ["L", "*", "13,15W"],
                ["*", "JAN", "2-12/5"],
                ["MON#2", "*/2", "2-6"],
            ];
            for field in &fields[usize::from(!quartz)..] {
                let right = numbers.below(12) > 0;
                text.push_str(if right { numbers.one(field) } else { numbers.one(&parts) });
                text.push(' ');
            }
        } else {
            for _ in 0..=numbers.below(8) {
                text.push_str(numbers.one(&parts));
                if numbers.below(12) > 0 {
                    text.push(' ');
                } else if numbers.below(2) > 0 {
                    let any = char::from_u32(u32::try_from(numbers.below(0x3000)).unwrap());
                    text.push(any.unwrap_or('x'));
                }
            }
        }
        match read(&[&text], "Australia/Lord_Howe", quartz) {
            Ok(schedule) => {
                read_well += 1;
                assert!(!schedule.words(false).is_empty() && !schedule.words(true).is_empty());
                let instant = StoreTime(i64::try_from(numbers.below(4_000_000_000_000)).unwrap());
                if let Some(tick) = schedule.after(instant) {
                    assert_eq!(schedule.until(tick.starts).as_ref(), Some(&tick), "{text}");
                    assert_eq!(schedule.named(&tick.name).as_ref(), Some(&tick), "{text}");
                }
                // What it says of itself is read as the same again.
                let again = schedule.text();
                let again = again.split(" [").next().unwrap();
                let quartz = again.split(' ').count() > 5;
                let again = read(&[again], "Australia/Lord_Howe", quartz).unwrap();
                assert_eq!(again.after(instant), schedule.after(instant), "{text}");
            }
            Err(wrong) => {
                refused += 1;
                assert!(
                    wrong.iter().all(|wrong| !wrong.text.contains(['\n', '\u{0}'])),
                    "{wrong:?}"
                );
            }
        }
    }
    assert!(read_well > 100 && refused > 1_000, "{read_well} {refused}");
}
