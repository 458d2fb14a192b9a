//! Ticks of a job, the form of a run, and a day, with made-up data.

use super::*;
use crate::pages::run::{Field, RunPage};
use crate::pages::schedule::{Bar, Hour, Line, Often, SchedulePage};
use crate::parts::ticks::{Coming, Ticks};
use soloist_config::JobConfig;
use soloist_config::params::{Param, ParamKind};
use soloist_domain::job::JobRecord;
use soloist_domain::tick::{Entry, Outcome, Tick, TickName, Why};
use soloist_view::words::Piece;

fn tick(seconds: i64, name: &str) -> Tick {
    let at = before(seconds);
    Tick { name: TickName(name.to_owned()), due: at, starts: at, note: None }
}

/// One entry of each outcome, of the first job with a schedule.
pub(super) fn ticks(jobs: &[(JobConfig, JobView)], lang: Language) -> Ticks {
    let (job, _) = jobs.iter().find(|(job, _)| job.schedule.is_some()).expect("one");
    let entries: Vec<Entry> = Outcome::ALL
        .into_iter()
        .enumerate()
        .map(|(nth, outcome)| {
            let nth = i64::try_from(nth).expect("small");
            let name = format!("statements@2026-05-04T18:{:02}+08:00[Asia/Shanghai]", 40 - nth);
            let why = (outcome == Outcome::Missed).then_some(Why::NoNode);
            Entry::of(tick(nth * 60, &name), outcome, why)
        })
        .collect();
    let record = JobRecord::untouched(job.name.clone());
    let scheduled = job.schedule.as_ref().expect("it has one");
    let of = ("statements", scheduled, &record);
    Ticks::of(of, Some(&entries), (lang, NOW, Zone::here()), true)
}

/// The form with a parameter of each kind.
pub(super) fn run(lang: Language, theme: &str) -> String {
    let kinds = [
        ("day", ParamKind::Date),
        ("mode", ParamKind::Choice(vec!["fast".to_owned(), "full".to_owned()])),
        ("n", ParamKind::Int { min: Some(0), max: Some(9) }),
        ("note", ParamKind::Text { pattern: Some("[a-z ]*".to_owned()), most: 200 }),
    ];
    let field = |(name, kind): (&str, ParamKind)| {
        let param = Param { name: name.to_owned(), kind, default: None };
        Field::new(&param, String::new(), name == "n", lang)
    };
    whole(&RunPage {
        frame: frame(lang, theme, "jobs", &say(lang, "run-now", &[])),
        error: Some("n: 12".to_owned()),
        back: "/jobs/statements".to_owned(),
        waits: Some(say(lang, "run-waits", &[("tick", Arg::from("2026-05-04 18:40 +08:00"))])),
        seen: String::new(),
        request: "one".to_owned(),
        tick: None,
        fields: kinds.map(field).into(),
        reason: String::new(),
    })
}

/// A day with a tick, and a job that runs often.
pub(super) fn day(lang: Language, theme: &str) -> String {
    let at = tick(-3_600, "statements@2026-05-04T19:40+08:00[Asia/Shanghai]");
    let line = Line {
        job: "statements".to_owned(),
        title: "Statements".to_owned(),
        coming: Coming::of(&at, Zone::here(), NOW, lang),
        passes: None,
    };
    let title = vec![Piece::text("19:00")];
    let bar = Bar { kind: "due", x: 10, y: 0, height: 64, title: title.clone() };
    let often = Often {
        job: "pull".to_owned(),
        title: "Pull".to_owned(),
        words: "every 5 s".to_owned(),
        runs: say(lang, "schedule-often-many", &[("n", Arg::from("500"))]),
        passes: Some(say(lang, "schedule-passes", &[("state", Arg::from("off"))])),
    };
    whole(&SchedulePage {
        frame: frame(lang, theme, "schedule", &say(lang, "schedule-title", &[])),
        any: true,
        about: vec![Piece::text("18:40 – 18:40")],
        offset: "UTC+08:00".to_owned(),
        earlier: "2026-05-03".to_owned(),
        later: "2026-05-05".to_owned(),
        is_day: false,
        bars: vec![bar],
        width: 240,
        said: title.clone(),
        hours: vec![Hour { title, lines: vec![line] }],
        more: None,
        often: vec![often],
    })
}
