//! What was found when crates for cron were compared, row by row: dialects, fixed times, gap and fold.

use soloist_domain::tick::{Note, TickName};

use super::*;

const BERLIN: &str = "Europe/Berlin";

#[test]
fn a_fixed_time_in_the_gap_is_due_once_at_its_end() {
    let daily = cron("30 2 * * *", BERLIN);
    let gap = daily.after(at("2026-03-28T12:00:00Z")).unwrap();
    assert_eq!(gap.name.0, "job@2026-03-29T02:30+01:00[Europe/Berlin]");
    assert_eq!((gap.due, gap.note), (at("2026-03-29T01:00:00Z"), Some(Note::Gap)));
    assert_eq!(daily.until(gap.due), Some(gap.clone()));
    assert_eq!(daily.named(&gap.name), Some(gap));
    let next = names(&daily, "2026-03-27T23:00:00Z", 3);
    assert_eq!(
        next,
        ["2026-03-28T02:30+01:00", "2026-03-29T02:30+01:00", "2026-03-30T02:30+02:00"]
    );
}

#[test]
fn a_fixed_time_in_the_fold_is_due_once_the_first_time() {
    let daily = cron("30 2 * * *", BERLIN);
    let fold = daily.after(at("2026-10-24T12:00:00Z")).unwrap();
    assert_eq!(fold.name.0, "job@2026-10-25T02:30+02:00[Europe/Berlin]");
    assert_eq!((fold.due, fold.note), (at("2026-10-25T00:30:00Z"), Some(Note::Fold)));
    assert_eq!(daily.after(fold.due).unwrap().due, at("2026-10-26T01:30:00Z"));
    // In the middle of the second time, the first was the last.
    assert_eq!(daily.until(at("2026-10-25T01:10:00Z")), Some(fold));
}

#[test]
fn lists_and_ranges_are_fixed_times_each_for_itself() {
    let gap = "2026-03-28T23:00:00Z";
    let fold = "2026-10-24T22:00:00Z";
    let list = cron("30 2,14 * * *", BERLIN);
    assert_eq!(names(&list, gap, 1), ["2026-03-29T02:30+01:00", "2026-03-29T14:30+02:00"]);
    assert_eq!(names(&list, fold, 1), ["2026-10-25T02:30+02:00", "2026-10-25T14:30+01:00"]);
    let range = cron("30 1-3 * * *", BERLIN);
    let expected = ["2026-03-29T01:30+01:00", "2026-03-29T02:30+01:00", "2026-03-29T03:30+02:00"];
    assert_eq!(names(&range, gap, 1), expected);
    let expected = ["2026-10-25T01:30+02:00", "2026-10-25T02:30+02:00", "2026-10-25T03:30+01:00"];
    assert_eq!(names(&range, fold, 1), expected);
    // Two of one expression in the gap: one tick, named by the first.
    let two = cron("0,30 2 * * *", BERLIN);
    assert_eq!(names(&two, gap, 1), ["2026-03-29T02:00+01:00"]);
    assert_eq!(names(&two, fold, 1), ["2026-10-25T02:00+02:00", "2026-10-25T02:30+02:00"]);
    // The end of the gap is wanted, too: still one tick.
    let end = cron("0,30 2-3 * * *", BERLIN);
    assert_eq!(names(&end, gap, 1), ["2026-03-29T02:00+01:00", "2026-03-29T03:30+02:00"]);
    // With a step, the minute field changes nothing: the hour holds no star.
    let steps = cron("*/15 2 * * *", BERLIN);
    assert_eq!(names(&steps, gap, 1), ["2026-03-29T02:00+01:00"]);
    assert_eq!(names(&steps, fold, 1).len(), 4);
}

#[test]
fn a_star_in_the_hours_keeps_the_real_interval() {
    let twenty = cron("*/20 * * * *", BERLIN);
    for day in ["2026-03-28T23:00:00Z", "2026-10-24T22:00:00Z"] {
        let from = at(day);
        let ticks = between(&twenty, from, StoreTime(from.0 + 86_400_000));
        assert_eq!(ticks.len(), 72);
        assert!(ticks.windows(2).all(|two| two[1].due.0 - two[0].due.0 == 1_200_000));
        let mut known: Vec<TickName> = Vec::new();
        for tick in ticks {
            assert!(!known.contains(&tick.name), "{}", tick.name);
            assert_eq!(twenty.named(&tick.name), Some(tick.clone()));
            known.push(tick.name);
        }
    }
    let again = twenty.after(at("2026-10-25T01:00:00Z")).unwrap();
    assert_eq!(again.name.0, "job@2026-10-25T02:20+01:00[Europe/Berlin][_fold=2]");
    // Every other hour, too: 02:00 is skipped in March and comes twice in October.
    let hours = cron("0 */2 * * *", BERLIN);
    let expected = ["2026-03-29T00:00+01:00", "2026-03-29T04:00+02:00"];
    assert_eq!(names(&hours, "2026-03-28T23:00:00Z", 1)[..2], expected);
    let expected = ["2026-10-25T00:00+02:00", "2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"];
    assert_eq!(names(&hours, "2026-10-24T22:00:00Z", 1)[..3], expected);
}

#[test]
fn times_in_the_fold_come_in_order() {
    let halves = cron("*/30 2-3 * * *", BERLIN);
    let expected = [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T03:00+01:00",
        "2026-10-25T03:30+01:00",
    ];
    assert_eq!(names(&halves, "2026-10-24T22:00:00Z", 1), expected);
}

#[test]
fn clocks_that_jump_by_half_an_hour_at_midnight_or_over_a_day_are_known() {
    let lord_howe = cron("15 2 * * *", "Australia/Lord_Howe");
    let gap = lord_howe.after(at("2026-10-03T00:00:00Z")).unwrap();
    assert_eq!(gap.name.0, "job@2026-10-04T02:15+10:30[Australia/Lord_Howe]");
    assert_eq!((gap.due, gap.note), (at("2026-10-03T15:30:00Z"), Some(Note::Gap)));
    let cairo = cron("0 0 * * *", "Africa/Cairo");
    let gap = cairo.after(at("2026-04-23T12:00:00Z")).unwrap();
    assert_eq!(gap.name.0, "job@2026-04-24T00:00+02:00[Africa/Cairo]");
    assert_eq!(gap.due, at("2026-04-23T22:00:00Z"));
    // A jump over the date line is a correction: nothing of 2011-12-30 is due.
    let apia = cron("0 12 * * *", "Pacific/Apia");
    let expected = ["2011-12-29T12:00-10:00", "2011-12-31T12:00+14:00", "2012-01-01T12:00+14:00"];
    assert_eq!(names(&apia, "2011-12-29T12:00:00Z", 3), expected);
    let before = apia.until(at("2011-12-30T15:00:00Z")).unwrap();
    assert_eq!(before.name.0, "job@2011-12-29T12:00-10:00[Pacific/Apia]");
}

/// Casey went from +08:00 to +11:00 at 02:00: three hours are the longest gap, and no correction yet.
#[test]
fn a_jump_of_three_hours_is_a_gap() {
    let casey = cron("30 3 * * *", "Antarctica/Casey");
    let gap = casey.after(at("2009-10-17T12:00:00Z")).unwrap();
    assert_eq!(gap.name.0, "job@2009-10-18T03:30+08:00[Antarctica/Casey]");
    assert_eq!((gap.due, gap.note), (at("2009-10-17T18:00:00Z"), Some(Note::Gap)));
}

/// In Havana, 00:00 to 01:00 comes twice, and this expression has nothing later and nothing earlier on the calendar.
#[test]
fn the_last_civil_time_of_all_may_come_again() {
    let last = quartz("0 30 */24 1 11 ? 2026", "America/Havana");
    let all = between(&last, at("2020-01-01T00:00:00Z"), at("2030-01-01T00:00:00Z"));
    let names: Vec<_> = all.iter().map(|tick| tick.name.0.as_str()).collect();
    let expected = [
        "job@2026-11-01T00:30-04:00[America/Havana]",
        "job@2026-11-01T00:30-05:00[America/Havana][_fold=2]",
    ];
    assert_eq!(names, expected);
    assert_eq!(last.until(at("2026-11-01T05:10:00Z")).as_ref(), Some(&all[0]));
    assert_eq!(last.until(at("2026-11-01T04:29:59Z")), None);
}

#[test]
fn day_or_weekday_must_match_but_a_star_in_front_wants_both() {
    let friday = cron("0 0 13 * 5", "UTC");
    let expected = ["2026-02-06", "2026-02-13", "2026-02-20", "2026-02-27", "2026-03-06"];
    assert_eq!(days(&friday, "2026-02-01T00:00:00Z", 35), expected);
    let thirteenth = days(&friday, "2026-01-10T00:00:00Z", 7);
    assert_eq!(thirteenth, ["2026-01-13", "2026-01-16"]);
    let odd_mondays = cron("0 0 */2 * 1", "UTC");
    assert_eq!(
        days(&odd_mondays, "2026-06-01T00:00:00Z", 30),
        ["2026-06-01", "2026-06-15", "2026-06-29"]
    );
    let steps = cron("0 0 13 * */2", "UTC");
    assert_eq!(days(&steps, "2026-01-01T00:00:00Z", 90), ["2026-01-13"], "a Tuesday");
    let or = cron("0 0 1/2 * 1", "UTC");
    assert!(days(&or, "2026-06-01T00:00:00Z", 30).len() > 15, "1/2 does not begin with a star");
}

/// The days of the ticks.
fn days(schedule: &Schedule, from: &str, count: i64) -> Vec<String> {
    names(schedule, from, count).iter().map(|name| name[..10].to_owned()).collect()
}

#[test]
fn days_from_the_end_near_a_day_and_the_second_monday_are_found() {
    let year = |line: &str| days(&cron(line, "UTC"), "2028-01-01T00:00:00Z", 120);
    assert_eq!(year("0 0 L * *"), ["2028-01-31", "2028-02-29", "2028-03-31"]);
    assert_eq!(year("0 0 15W * *"), ["2028-01-14", "2028-02-15", "2028-03-15", "2028-04-14"]);
    // Never in another month: the 1st is a Saturday in January and April.
    assert_eq!(year("0 0 1W * *"), ["2028-01-03", "2028-02-01", "2028-03-01", "2028-04-03"]);
    assert_eq!(year("0 0 * * MON#2"), ["2028-01-10", "2028-02-14", "2028-03-13", "2028-04-10"]);
    assert_eq!(year("0 0 * * 1#5"), ["2028-01-31"]);
    assert_eq!(year("0 0 * * 5L"), ["2028-01-28", "2028-02-25", "2028-03-31", "2028-04-28"]);
    assert_eq!(year("0 0 31 * *"), ["2028-01-31", "2028-03-31"]);
    assert_eq!(year("0 0 29 2 *"), ["2028-02-29"]);
    assert_eq!(year("0 0 * JAN sun"), year("0 0 * 1 7"));
    assert_eq!(year("0 0 * JAN 0"), year("0 0 * 1 7"));
    assert_eq!(year("0 0 * 1 SAT-SUN"), year("0 0 * 1 6,0"));
    let leap = cron("0 0 29 2 *", "UTC");
    assert_eq!(leap.after(at("2096-03-01T00:00:00Z")).unwrap().due, at("2104-02-29T00:00:00Z"));
}

#[test]
fn strings_of_quartz_are_read_as_quartz_reads_them() {
    let year = |line: &str| days(&quartz(line, "UTC"), "2028-01-01T00:00:00Z", 95);
    assert_eq!(year("0 15 10 ? * 6L"), ["2028-01-28", "2028-02-25", "2028-03-31"]);
    assert_eq!(year("0 15 10 ? * 6#3"), ["2028-01-21", "2028-02-18", "2028-03-17"]);
    assert_eq!(year("0 0 12 LW * ?"), ["2028-01-31", "2028-02-29", "2028-03-31"]);
    assert_eq!(year("0 0 12 ? * L")[0], "2028-01-01", "Saturday");
    assert_eq!(year("0 0 12 ? 1 MON-FRI"), year("0 0 12 ? 1 2-6"));
    assert_eq!(year("0 0 12 ? 1 SAT-SUN"), year("0 0 12 ? 1 7,1"));
    let ten = quartz("0/10 * * * * ?", "UTC");
    let tick = ten.after(at("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(tick.name.0, "job@2026-01-01T00:00:10+00:00[UTC]");
    assert_eq!(names(&ten, "2026-01-01T00:00:00Z", 1).len(), 8_640);
    assert_eq!(ten.shortest(), Duration::from_secs(10));
    let five = quartz("0 0/5 14 * * ?", "UTC");
    let found = names(&five, "2026-01-01T00:00:00Z", 1);
    assert_eq!((found.len(), found[11].as_str()), (12, "2026-01-01T14:55+00:00"));
    let year = quartz("0 0 12 1 * ? 2026-2027", "UTC");
    let last = year.until(at("2090-01-01T00:00:00Z")).unwrap();
    assert_eq!(last.due, at("2027-12-01T12:00:00Z"));
    assert_eq!(year.after(last.due), None, "no more ticks");
    assert_eq!(year.until(at("2026-01-01T11:59:59.999Z")), None);
    // 02:30:15, in the gap.
    let seconds = quartz("15 30 2 * * ?", BERLIN);
    assert_eq!(names(&seconds, "2026-03-28T23:00:00Z", 1), ["2026-03-29T02:30:15+01:00"]);
}

#[test]
fn intervals_count_from_1970_and_are_named_in_utc() {
    let every = |every: u64, offset: u64| {
        let (every, offset) = (Duration::from_secs(every), Duration::from_secs(offset));
        let kind = Kind::Every { every, offset };
        let spec = Spec { kind, zone: None, jitter: Duration::ZERO };
        Schedule::read(&JobName::new("pull").unwrap(), &spec).unwrap()
    };
    let quarter = every(900, 0);
    let tick = quarter.after(at("2026-11-27T02:15:00Z")).unwrap();
    assert_eq!(tick.name.0, "pull@2026-11-27T02:30:00Z");
    assert_eq!(quarter.named(&tick.name), Some(tick.clone()));
    assert_eq!(quarter.until(tick.due), Some(tick));
    assert_eq!(
        quarter.after(at("1960-01-01T00:00:00.001Z")).unwrap().due,
        at("1960-01-01T00:15:00Z")
    );
    assert_eq!(every(3_600, 3_900).after(StoreTime(0)).unwrap().due, StoreTime(300_000));
    let once = Kind::At(vec![
        "2026-12-01T08:00:00+08:00".to_owned(),
        "2026-11-01T00:00:00Z".to_owned(),
        "2026-12-01T00:00:00Z".to_owned(),
    ]);
    let spec = Spec { kind: once, zone: Some("Asia/Shanghai".to_owned()), jitter: Duration::ZERO };
    let once = Schedule::read(&JobName::new("pull").unwrap(), &spec).unwrap();
    let ticks = between(&once, at("2020-01-01T00:00:00Z"), at("2030-01-01T00:00:00Z"));
    let names: Vec<_> = ticks.iter().map(|tick| tick.name.0.as_str()).collect();
    assert_eq!(names, ["pull@2026-11-01T00:00:00Z", "pull@2026-12-01T00:00:00Z"]);
}

#[test]
fn ticks_of_a_list_that_start_at_one_instant_are_one_named_by_the_first() {
    let lists = [["0 2 * * *", "0 3 * * *"], ["0 3 * * *", "0 2 * * *"]];
    let expected = ["2026-03-29T02:00+01:00", "2026-03-29T03:00+02:00"];
    for (list, expected) in lists.iter().zip(expected) {
        let list = read(list, BERLIN, false).unwrap();
        assert_eq!(names(&list, "2026-03-28T23:00:00Z", 1), [expected]);
        let found = list.until(at("2026-03-29T01:00:00Z")).unwrap();
        assert_eq!(list.after(at("2026-03-29T00:59:59Z")), Some(found.clone()));
        assert_eq!(list.named(&found.name), Some(found));
    }
}

#[test]
fn h_is_a_number_of_the_job_s_name() {
    let minute = |job: &str, line: &str| {
        let kind = Kind::Cron { lines: vec![line.to_owned()], quartz: false };
        let spec = Spec { kind, zone: Some("UTC".to_owned()), jitter: Duration::ZERO };
        let schedule = Schedule::read(&JobName::new(job).unwrap(), &spec).unwrap();
        names_of(&schedule)
    };
    // Other numbers in a later version would move everybody's ticks.
    assert_eq!(minute("settle", "H 2 * * *")[0], "2026-01-01T02:03");
    assert_eq!(minute("settle", "H H * * *")[0], "2026-01-01T11:03");
    let jobs: std::collections::BTreeSet<_> =
        (0..40).map(|job| minute(&format!("job{job}"), "H 2 * * *")[0].clone()).collect();
    assert!(jobs.len() > 20, "spread: {jobs:?}");
    for job in 0..40 {
        let found = minute(&format!("job{job}"), "H(0-29) 2 * * *");
        assert!(found[0][14..16].parse::<u32>().unwrap() < 30);
        let quarters = minute(&format!("job{job}"), "H/15 2 * * *");
        assert!(quarters.len() == 4 && quarters[0][14..16].parse::<u32>().unwrap() < 15);
    }
}

/// Of the first day of 2026.
fn names_of(schedule: &Schedule) -> Vec<String> {
    let names = names(schedule, "2026-01-01T00:00:00Z", 1);
    names.iter().map(|name| name[..16].to_owned()).collect()
}
