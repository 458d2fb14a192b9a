//! A year of 200 jobs in virtual time with the real rules, compared with arithmetic.

use std::time::Duration;

use jiff::civil::date;
use jiff::tz::TimeZone;

use super::{Kind, Schedule, Spec, tick};
use soloist_domain::grant::{Acquire, Acquired, Condition};
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::journal::{Ended, Then};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist_domain::tick::{Fill, Outcome, Params, Rules, Tick, Ticks as _};
use soloist_domain::time::{Boot, StoreTime};
use soloist_domain::transition::history::Past;
use soloist_domain::transition::{Job, Now, Write, participation, run, tick as law};

#[derive(Debug)]
struct Nothing;

impl Fill for Nothing {
    fn fill(&self, _: &Tick, given: &Params) -> Params {
        given.clone()
    }
}

/// How often an expression of this kind comes from one midnight of the zone to that of the next year.
#[derive(Clone, Copy)]
enum Comes {
    /// At a fixed time of each day.
    Daily,
    /// From Monday to Friday.
    Workdays,
    /// On the 13th.
    Monthly,
    /// So many times in each real hour.
    Hourly(i64),
}

impl Comes {
    fn times(self, zone: &TimeZone, year: i16) -> i64 {
        let (first, last) = (date(year, 1, 1), date(year + 1, 1, 1));
        let days = first.until(last).expect("a year").get_days();
        match self {
            Self::Daily => i64::from(days),
            Self::Workdays => (0..days)
                .filter(|day| {
                    let day = first.checked_add(jiff::Span::new().days(*day)).expect("a day");
                    day.weekday().to_monday_zero_offset() < 5
                })
                .count()
                .try_into()
                .expect("small"),
            Self::Monthly => 12,
            Self::Hourly(times) => {
                let at = |day: jiff::civil::Date| {
                    day.to_zoned(zone.clone()).expect("a midnight").timestamp().as_second()
                };
                (at(last) - at(first)) / 3_600 * times
            }
        }
    }
}

fn grants_in_a_year(plan: &std::sync::Arc<Schedule>, from: StoreTime, to: StoreTime) -> i64 {
    let law_of = tick::Schedule {
        ticks: plan.clone(),
        rules: Rules::default(),
        text: plan.text(),
        params: std::sync::Arc::new(Nothing),
        lacks: Default::default(),
    };
    let mut job = Job::untouched(JobName::new("settle").expect("a name"));
    let now = |at| Now { at, boot: Boot(0) };
    let li = UserName::new("li").expect("a name");
    participation::switch(&mut job, &li, true, None, now(from));
    law::settle(&mut job, &Past::default(), &law_of, None, Duration::ZERO, now(from));
    let (mut at, mut done, mut owners) = (from, 0, 0_u64);
    loop {
        owners += 1;
        let ask = Acquire {
            job: job.record.name.clone(),
            owner: Owner(owners.to_string()),
            node: NodeName::new(["node-a", "node-b"][owners as usize % 2]).expect("a name"),
            ttl: Duration::from_secs(5),
            condition: Condition::Wanted,
            seen: Token(0),
        };
        let (answer, granted, _) =
            law::acquire(&mut job, &Past::default(), &ask, &law_of, None, Duration::ZERO, now(at));
        match answer {
            Acquired::NotYet { wait } => {
                at = at + wait;
                if at >= to {
                    return done;
                }
            }
            Acquired::Granted { token, .. } => {
                let granted = granted.expect("a tick");
                assert_eq!((granted.tick.starts, granted.attempt), (at, 1));
                let ended = Ended {
                    job: job.record.name.clone(),
                    owner: ask.owner.clone(),
                    token,
                    run: RunId(owners.to_string()),
                    exit: Exit { code: Some(0), signal: None },
                    end: RunEnd::Exited,
                    processes_killed: 0,
                    then: Then::Nothing,
                    began: None,
                };
                let writes = run::ended(&mut job, &Past::default(), &ended, now(at));
                done += i64::from(writes.expect("not stale").iter().any(|write| {
                    matches!(write, Write::KeepTick { entry, .. } if entry.outcome == Outcome::Done)
                }));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_year_of_two_hundred_jobs_runs_each_tick_once() {
    let zones =
        ["Asia/Shanghai", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"];
    let kinds = [
        ("M 2 * * *", Comes::Daily),
        ("M 0 * * *", Comes::Daily),
        ("M 9 * * 1-5", Comes::Workdays),
        ("M 3 13 * *", Comes::Monthly),
        ("M * * * *", Comes::Hourly(1)),
    ];
    let mut jobs = 0;
    for name in zones {
        let zone = TimeZone::get(name).expect("a zone");
        for (text, comes) in kinds {
            for minute in [0, 1, 7, 15, 29, 30, 45, 59] {
                // Where the clocks change by half an hour an hour's minutes do not come once an hour.
                if matches!(comes, Comes::Hourly(_)) && name == "Australia/Lord_Howe" {
                    continue;
                }
                let lines = vec![text.replace('M', &minute.to_string())];
                let kind = Kind::Cron { lines, quartz: false };
                let spec = Spec { kind, zone: Some(name.to_owned()), jitter: Duration::ZERO };
                let job = JobName::new("settle").expect("a name");
                let plan = std::sync::Arc::new(Schedule::read(&job, &spec).expect("a schedule"));
                let at = |year| {
                    let day = date(year, 1, 1).to_zoned(zone.clone()).expect("a midnight");
                    StoreTime(day.timestamp().as_millisecond() - 1)
                };
                let done = grants_in_a_year(&plan, at(2026), at(2027));
                assert_eq!(done, comes.times(&zone, 2026), "{name} {text} {minute}");
                jobs += 1;
            }
        }
    }
    assert_eq!(jobs, 192);
    let every = Spec {
        kind: Kind::Every { every: Duration::from_secs(3_600), offset: Duration::ZERO },
        zone: None,
        jitter: Duration::ZERO,
    };
    let plan = std::sync::Arc::new(
        Schedule::read(&JobName::new("settle").expect("a name"), &every).expect("a schedule"),
    );
    assert!(plan.after(StoreTime(0)).is_some());
    for _ in jobs..200 {
        assert_eq!(grants_in_a_year(&plan, StoreTime(-1), StoreTime(365 * 86_400_000 - 1)), 8_760);
    }
}
