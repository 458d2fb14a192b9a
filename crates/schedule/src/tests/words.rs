//! Words, canonical texts, and what is refused.

use super::*;

fn words(line: &str) -> (String, String) {
    let fields = line.split_whitespace().count();
    let schedule = read(&[line], "UTC", fields > 5).unwrap();
    (schedule.words(false), schedule.words(true))
}

#[test]
fn common_expressions_are_said_as_people_say_them() {
    let rows = [
        ("30 2 * * 1-5", "at 02:30 on Monday to Friday", "每周一至周五 02:30"),
        ("0 9,18 * * *", "at 09:00 and 18:00 every day", "每天 09:00、18:00"),
        ("@hourly", "every hour", "每小时整点"),
        ("* * * * *", "every minute", "每分钟"),
        ("*/20 * * * *", "every 20 minutes", "每 20 分钟"),
        ("5/20 * * * *", "every 20 minutes from minute 5 on", "每 20 分钟（从第 5 分开始）"),
        ("30 * * * *", "at minute 30 of every hour", "每小时的第 30 分"),
        (
            "0 9-17 * * 1-5",
            "every hour from 09:00 to 17:00 on Monday to Friday",
            "每周一至周五 09:00 至 17:00 每小时一次",
        ),
        (
            "*/15 9-17 * * *",
            "every 15 minutes from 09:00 to 17:45",
            "每天 09:00 至 17:45 每 15 分钟",
        ),
        ("30 */2 * * *", "every 2 hours from 00:30 on", "每天从 00:30 起每 2 小时一次"),
        ("0 0 1 * *", "at 00:00 on day 1 of the month", "每月 1 日 00:00"),
        ("0 8 1,15 * *", "at 08:00 on days 1 and 15 of the month", "每月 1 日、15 日 08:00"),
        ("0 0 29 2 *", "at 00:00 on 29 February", "每年 2 月 29 日 00:00"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday", "每月 13 日或每周五 00:00"),
        (
            "0 0 */16 * 1",
            "at 00:00 on days 1 and 17 of the month, if it is also on Monday",
            "每月 1 日、17 日（须同时为周一）00:00",
        ),
        ("0 0 L * *", "at 00:00 on the last day of the month", "每月最后一天 00:00"),
        (
            "0 0 15W * *",
            "at 00:00 on the working day (Monday to Friday) nearest to day 15 of the month",
            "每月离 15 日最近的工作日（周一至周五）00:00",
        ),
        ("0 0 * * MON#2", "at 00:00 on the second Monday of the month", "每月第二个周一 00:00"),
        (
            "0 0 * 3 6,0",
            "at 00:00 on Saturday and Sunday in March",
            "每年 3 月的每周六、周日 00:00",
        ),
        ("0 15 10 ? * 6L", "at 10:15 on the last Friday of the month", "每月最后一个周五 10:15"),
        ("0/10 * * * * ?", "every 10 seconds", "每 10 秒"),
        ("0 0/5 14 * * ?", "every 5 minutes from 14:00 to 14:55", "每天 14:00 至 14:55 每 5 分钟"),
        (
            "15 0 12 ? * 2-6 2027-2029",
            "at 12:00:15 on Monday to Friday, in 2027 to 2029",
            "2027 至 2029 年，每周一至周五 12:00:15",
        ),
        (
            "*/7 1,3 * 1-3 *",
            "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 in the hours 1 and 3 in January to March",
            "每年 1 月至 3 月的每天，1、3 点的第 0、7、14、21、28、35、42、49、56 分",
        ),
    ];
    for (line, en, zh) in rows {
        let (said, zh_said) = words(line);
        assert_eq!((said.as_str(), zh_said.as_str()), (en, zh), "{line}");
    }
}

#[test]
fn intervals_and_instants_are_said_in_words() {
    let every = |every: u64, offset: u64| {
        let kind =
            Kind::Every { every: Duration::from_secs(every), offset: Duration::from_secs(offset) };
        let spec = Spec { kind, zone: None, jitter: Duration::ZERO };
        let schedule = Schedule::read(&JobName::new("job").unwrap(), &spec).unwrap();
        (schedule.words(false), schedule.words(true))
    };
    let said = |en: &str, zh: &str| (en.to_owned(), zh.to_owned());
    assert_eq!(every(900, 0), said("every 15 minutes", "每 15 分钟"));
    assert_eq!(every(3_600, 0), said("every hour", "每小时"));
    assert_eq!(every(86_400, 0), said("every 24 hours", "每 24 小时"));
    assert_eq!(
        every(5_400, 300),
        said("every 90 minutes, shifted by 5 minutes", "每 90 分钟，偏移 5 分钟")
    );
    let at = Kind::At(vec!["2026-12-01T08:00:00+08:00".to_owned()]);
    let spec = Spec { kind: at, zone: None, jitter: Duration::ZERO };
    let once = Schedule::read(&JobName::new("job").unwrap(), &spec).unwrap();
    assert_eq!(once.words(false), "at 2026-12-01T08:00:00+08:00");
    assert_eq!(once.text(), "at 2026-12-01T00:00:00Z");
}

#[test]
fn what_is_equal_in_the_record_is_due_at_the_same_times() {
    let text = |lines: &[&str]| read(lines, "asia/shanghai", false).unwrap().text();
    assert_eq!(text(&["30 2  * * mon-fri"]), "30 2 * * MON-FRI [Asia/Shanghai]");
    assert_eq!(text(&["@daily", "0 9 * * *"]), "0 0 * * *; 0 9 * * * [Asia/Shanghai]");
    let kind = Kind::Every { every: Duration::from_secs(900), offset: Duration::from_secs(1_200) };
    let spec = Spec { kind, zone: Some("UTC".to_owned()), jitter: Duration::from_secs(90) };
    let every = Schedule::read(&JobName::new("job").unwrap(), &spec).unwrap();
    assert_eq!(every.text(), "every 15m offset 5m jitter 1m 30s");
    assert_eq!(every.expressions(), ["every 15m offset 5m"]);
    assert_eq!(every.shortest(), Duration::from_secs(900));
}

fn refused(line: &str, quartz: bool) -> String {
    let wrong = read(&[line], "Asia/Shanghai", quartz).expect_err(line);
    assert_eq!((wrong.len(), wrong[0].line), (1, Some(0)), "{line}: {wrong:?}");
    wrong[0].text.clone()
}

#[test]
fn six_fields_without_a_dialect_are_refused_with_both_readings() {
    assert_eq!(
        refused("0 0 9 ? * 2-6", false),
        "0 0 9 ? * 2-6: six fields can be read in two ways. Quartz reads \"at 09:00 on Monday to Friday\". Cron with a field for seconds reads \"at 09:00 on Tuesday to Saturday\". Write dialect = \"quartz\" for what Quartz reads, or the five fields 0 9 * * 2-6 for what cron reads"
    );
    assert!(
        refused("0 0 9 * * MON-FRI", false)
            .contains("for seconds read \"at 09:00 on Monday to Friday\"")
    );
    assert!(refused("0 0 9 * * X", false).contains("has six"));
    assert!(refused("0 0 9 ? * 0-4", false).contains("Quartz reads nothing (0 is no weekday"));
    assert!(
        refused("0 15 10 ? * 6L 2027", false)
            .contains("Quartz reads \"at 10:15 on the last Friday of the month, in 2027\"")
    );
    assert!(refused("30 2 * * 1-5", true).contains("0 30 2 * * 1-5"));
}

#[test]
fn what_is_refused_says_what_to_write_instead() {
    let rows = [
        ("0 0 30 2 *", "never comes"),
        ("30 2 30 2 *", "never comes"),
        ("0 0 31 4,6,9,11 *", "never comes"),
        ("0 22-2 * * *", "write 22-23,0-2"),
        ("0 0 * * FRI-MON", "write FRI-SAT,SUN-MON"),
        ("0 0 L-3 * *", "is not supported: write L"),
        ("0 0 ? * 2-6", "1 = Sunday: write * here"),
        ("60 * * * *", "60 is no minute: write 0 to 59"),
        ("0 0 * * 8", "8 is no weekday: write 0 to 7, where 0 and 7 are Sunday"),
        ("*/90 * * * *", "every = \"90m\" is an interval"),
        ("*/0 * * * *", "a step of 1 to 60"),
        ("0 0 * * L", "write 5L"),
        ("0 0 * * MON#6", "1 to 5"),
        ("@reboot", "no time"),
        ("@every 15m", "write every = \"15m\""),
        ("0 0 * *", "this one has 4"),
        ("", "empty"),
        ("~ 2 * * *", "write H"),
        ("H(30-5) 2 * * *", "write H(5-30)"),
        ("-5 2 * * *", "cannot be read"),
        ("+5 2 * * *", "cannot be read"),
        ("5, 2 * * *", "cannot be read"),
    ];
    for (line, remedy) in rows {
        let text = refused(line, false);
        assert!(text.contains(remedy), "{line}: {text}");
    }
    assert!(refused("0 0 9 ? * 0", true).contains("where 1 is Sunday"));
    assert!(refused("0 0 9 ? * ?", true).contains("only one"));
    assert!(refused("0 0 0 29 2 ? 2027", true).contains("never comes"));
    // The clocks of Apia had no such day.
    let apia = read(&["0 0 12 30 12 ? 2011"], "Pacific/Apia", true);
    assert!(apia.unwrap_err()[0].text.contains("never comes"));
}

#[test]
fn zones_are_named_and_the_machine_s_is_never_taken() {
    for zone in [
        "localtime",
        "posix/Europe/Berlin",
        "right/UTC",
        "Moon/Base",
        "",
        "+08:00",
        "../etc/passwd",
    ] {
        let wrong = read(&["0 0 * * *"], zone, false).expect_err(zone);
        assert!(wrong[0].text.contains("IANA name"), "{zone}: {wrong:?}");
    }
    let kind = Kind::Cron { lines: vec!["0 0 * * *".to_owned()], quartz: false };
    let spec = Spec { kind, zone: None, jitter: Duration::ZERO };
    let wrong = Schedule::read(&JobName::new("job").unwrap(), &spec).unwrap_err();
    assert!(wrong[0].text.contains("needs a zone"), "{wrong:?}");
    assert!(crate::tzdb_version().is_none_or(|version| version.starts_with("20")));
}

#[test]
fn an_instant_needs_an_offset_and_whole_seconds() {
    let at = |text: &str| {
        let spec =
            Spec { kind: Kind::At(vec![text.to_owned()]), zone: None, jitter: Duration::ZERO };
        Schedule::read(&JobName::new("job").unwrap(), &spec).map_err(|wrong| wrong[0].text.clone())
    };
    assert!(at("2026-12-01T08:00:00").unwrap_err().contains("no offset"));
    assert!(at("2026-12-01T08:00:00.5Z").unwrap_err().contains("whole seconds"));
    assert!(at("tomorrow").unwrap_err().contains("not an instant"));
    assert!(at("2026-02-30T08:00:00Z").unwrap_err().contains("not an instant"));
    assert!(at("2001-12-01T08:00:00Z").is_ok(), "past ones are fine");
    assert!(at("2026-12-01T08:00+08:00").is_ok());
}

#[test]
fn a_jitter_longer_than_the_shortest_interval_is_refused() {
    let jitter = |lines: &[&str], zone: &str, minutes: u64| {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        let kind = Kind::Cron { lines, quartz: false };
        let jitter = Duration::from_secs(minutes * 60);
        let spec = Spec { kind, zone: Some(zone.to_owned()), jitter };
        Schedule::read(&JobName::new("job").unwrap(), &spec).map_err(|wrong| wrong[0].text.clone())
    };
    assert!(jitter(&["*/15 * * * *"], "UTC", 15).is_ok());
    assert!(jitter(&["*/15 * * * *"], "UTC", 16).unwrap_err().contains("at most 15m"));
    // Rare, but five minutes apart.
    let rare = ["*/10 * * * *", "5 0 29 2 *"];
    assert!(jitter(&rare, "UTC", 6).unwrap_err().contains("before job@2028-02-29T00:"));
    // Only where the clocks change: 02:30 comes at 03:00, five minutes before the next.
    assert!(jitter(&["30 2 * * *", "5 3 * * *"], "UTC", 30).is_ok());
    let gap = jitter(&["30 2 * * *", "5 3 * * *"], "Europe/Berlin", 30).unwrap_err();
    assert!(gap.contains("at most 5m"), "{gap}");
}

#[test]
fn what_two_entries_of_a_list_say_alike_is_said_once() {
    let schedule = read(&["30 2 * * *", "0 9 * * *", "30 2 * * *"], "UTC", false).unwrap();
    assert_eq!(schedule.words(false), "at 02:30 every day; at 09:00 every day");
    assert_eq!(schedule.words(true), "每天 02:30；每天 09:00");
}
