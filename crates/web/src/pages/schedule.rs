//! `GET /schedule`: what is due in a day, of all jobs that the reader may see. A crowd at one hour is seen.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use super::{Frame, html, picture};
use crate::Web;
use crate::api::query;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::ticks::Coming;
use soloist_config::JobConfig;
use soloist_domain::job::State;
use soloist_domain::tick::Tick;
use soloist_domain::time::StoreTime;
use soloist_view::tick_words::zone_of;
use soloist_view::words::{Arg, Language, Piece, clock, minute, phrase, say};
use soloist_view::{JobView, state_word};

/// Ticks of a job are counted up to here; one with more than [`OFTEN`] is one line.
const COUNTED: usize = 500;
const OFTEN: usize = 24;
/// No page has more lines.
const LINES: usize = 1_000;
const HOUR: i64 = 3_600_000;
/// The picture: height, and the width of an hour.
const HEIGHT: usize = 64;
const WIDE: usize = 10;

/// The page.
#[derive(Template)]
#[template(path = "pages/schedule.html")]
pub(super) struct SchedulePage {
    pub(super) frame: Frame,
    /// There are jobs with a schedule.
    pub(super) any: bool,
    pub(super) about: Vec<Piece>,
    pub(super) offset: String,
    /// Days beside, as `2026-05-04`.
    pub(super) earlier: String,
    pub(super) later: String,
    /// Not from now on.
    pub(super) is_day: bool,
    pub(super) bars: Vec<Bar>,
    pub(super) width: usize,
    pub(super) said: Vec<Piece>,
    pub(super) hours: Vec<Hour>,
    pub(super) more: Option<String>,
    pub(super) often: Vec<Often>,
}

/// A bar of the picture.
pub(super) struct Bar {
    pub(super) kind: &'static str,
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) height: usize,
    pub(super) title: Vec<Piece>,
}

/// An hour with ticks.
pub(super) struct Hour {
    pub(super) title: Vec<Piece>,
    pub(super) lines: Vec<Line>,
}

/// A tick.
pub(super) struct Line {
    pub(super) job: String,
    pub(super) title: String,
    pub(super) coming: Coming,
    /// Nobody wants it, or it is held.
    pub(super) passes: Option<String>,
}

/// A job that runs often.
pub(super) struct Often {
    pub(super) job: String,
    pub(super) title: String,
    pub(super) words: String,
    pub(super) runs: String,
    pub(super) passes: Option<String>,
}

/// What somebody wants to see.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    /// A day, `2026-05-04`.
    from: Option<String>,
}

/// A job, how it stands, and its ticks: one more than are counted says that there are more.
type Due = (Arc<JobConfig>, JobView, Vec<Tick>);

fn due(jobs: Vec<(Arc<JobConfig>, JobView)>, from: StoreTime, to: StoreTime) -> Vec<Due> {
    let of = |(job, view): (Arc<JobConfig>, JobView)| {
        let ticks = job.schedule.as_ref().map(|scheduled| {
            let law = &scheduled.law;
            let first = law.ticks.after(StoreTime(from.0 - 1));
            let all = std::iter::successors(first, |tick| law.ticks.after(tick.starts));
            all.take_while(|tick| tick.starts < to).take(COUNTED + 1).collect()
        });
        (job, view, ticks.unwrap_or_default())
    };
    jobs.into_iter().map(of).collect()
}

/// Why ticks of a job pass.
fn passes(view: &JobView, lang: Language) -> Option<String> {
    let state = match (&view.hold, view.participants.is_empty()) {
        (Some(_), _) => State::Held,
        (None, true) => State::Off,
        (None, false) => return None,
    };
    Some(say(lang, "schedule-passes", &[("state", Arg::from(state_word(lang, state)))]))
}

/// Hours from `begins` on: how many runs are wanted and how many pass in each.
fn bars(counts: &[(usize, usize)], begins: StoreTime, now: StoreTime, lang: Language) -> Vec<Bar> {
    let top = counts.iter().map(|(wanted, passing)| wanted + passing).max().unwrap_or(0).max(1);
    let mut bars = Vec::new();
    for (nth, (wanted, passing)) in counts.iter().enumerate() {
        let at = StoreTime(begins.0 + HOUR * i64::try_from(nth).unwrap_or(0));
        let n = i64::try_from(wanted + passing).unwrap_or(i64::MAX);
        let runs = say(lang, "schedule-hour", &[("n", Arg::Number(n))]);
        let facts = [("at", minute(lang, at, now)), ("n", Piece::text(runs))];
        let title = phrase(lang, "schedule-hour-title", &facts);
        let high = |n: usize| if n == 0 { 0 } else { (n * HEIGHT / top).max(2) };
        let (wanted, passing) = (high(*wanted), high(*passing));
        let mut bar = |kind, y, height| {
            if height > 0 {
                bars.push(Bar { kind, x: nth * WIDE, y, height, title: title.clone() });
            }
        };
        bar("due", HEIGHT - wanted, wanted);
        bar("passes", HEIGHT.saturating_sub(wanted + passing), passing);
    }
    bars
}

/// Shows the day.
///
/// # Errors
/// [`WebError::BadRequest`] for a `from` that is no day.
pub async fn page(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    let (lang, zone) = (caller.language, caller.zone());
    let Wanted { from } = query(&request)?;
    let path = from.as_ref().map_or("/schedule".to_owned(), |day| format!("/schedule?from={day}"));
    let title = say(lang, "schedule-title", &[]);
    let frame = Frame::of(&web, &caller, "schedule", path, title);
    let now = frame.now.unwrap_or_else(|| StoreTime(jiff::Timestamp::now().as_millisecond()));
    let is_day = from.is_some();
    let (from, to) = match &from {
        None => (now, StoreTime(now.0 + 24 * HOUR)),
        Some(day) => {
            let wrong = || WebError::bad(format!("from: {day:?} is no day: write 2026-05-04"));
            let begins = zone.read(&format!("{day}T00:00")).ok_or_else(wrong)?;
            (begins, zone.day(begins, 1).ok_or_else(wrong)?.1)
        }
    };
    let jobs = web.live.jobs_for(&caller).into_iter().filter(|job| job.schedule.is_some());
    let with_view = |job: Arc<JobConfig>| {
        let view = picture(&web, &caller, &job);
        (job, view)
    };
    let jobs: Vec<_> = jobs.map(with_view).collect();
    let any = !jobs.is_empty();
    let counted = web::block(move || due(jobs, from, to)).await;
    let counted = counted.map_err(|error| WebError::Internal { detail: error.to_string() })?;

    let begins = zone.hour(from);
    let hours = usize::try_from((to.0 - begins.0 + HOUR - 1) / HOUR).unwrap_or(24);
    let mut counts = vec![(0, 0); hours];
    let (mut lines, mut often) = (Vec::new(), Vec::new());
    for (job, view, ticks) in &counted {
        let Some(scheduled) = &job.schedule else { continue };
        let passes = passes(view, lang);
        let whole = ticks.len() <= COUNTED;
        let hour = |tick: &Tick| usize::try_from((tick.starts.0 - begins.0) / HOUR).unwrap_or(0);
        for count in ticks.iter().filter(|_| whole).map(hour) {
            let Some((wanted, passing)) = counts.get_mut(count) else { continue };
            *(if passes.is_none() { wanted } else { passing }) += 1;
        }
        if ticks.len() > OFTEN {
            let n = |n: usize| [("n", Arg::from(n.to_string()))];
            often.push(Often {
                job: view.name.clone(),
                title: view.title.clone(),
                words: scheduled.plan.words(lang == Language::Zh),
                runs: match whole {
                    true => say(lang, "schedule-often-runs", &n(ticks.len())),
                    false => say(lang, "schedule-often-many", &n(COUNTED)),
                },
                passes,
            });
            continue;
        }
        let own = zone_of(scheduled);
        for tick in ticks {
            let line = Line {
                job: view.name.clone(),
                title: view.title.clone(),
                coming: Coming::in_day(tick, &own, now, lang),
                passes: passes.clone(),
            };
            lines.push((tick.starts, hour(tick), line));
        }
    }
    lines.sort_by_key(|(starts, ..)| *starts);
    let left_out = lines.len().saturating_sub(LINES);
    let at = |nth: usize| StoreTime(begins.0 + HOUR * i64::try_from(nth).unwrap_or(0));
    let mut listed: Vec<(usize, Hour)> = Vec::new();
    for (_, nth, line) in lines.into_iter().take(LINES) {
        if listed.last().is_none_or(|(last, _)| *last != nth) {
            let n = counts.get(nth).map_or(0, |(wanted, passing)| wanted + passing);
            let n = Arg::Number(i64::try_from(n).unwrap_or(i64::MAX));
            let runs = Piece::text(say(lang, "schedule-hour", &[("n", n)]));
            let facts = [("at", minute(lang, at(nth), now)), ("n", runs)];
            let title = phrase(lang, "schedule-hour-title", &facts);
            listed.push((nth, Hour { title, lines: Vec::new() }));
        }
        if let Some((_, hour)) = listed.last_mut() {
            hour.lines.push(line);
        }
    }
    let sums = counts.iter().map(|(wanted, passing)| wanted + passing).enumerate();
    let top = sums.rev().max_by_key(|(_, sum)| *sum).filter(|(_, sum)| *sum > 0);
    let said = top.map(|(nth, sum)| {
        let facts = [("most", Piece::strong(sum)), ("at", minute(lang, at(nth), now))];
        phrase(lang, "schedule-picture", &facts)
    });
    let day = |days| zone.day(from, days).map(|(day, _)| day).unwrap_or_default();
    let about = [("from", clock(lang, from, now)), ("to", clock(lang, to, now))];
    Ok(html(&SchedulePage {
        any,
        about: phrase(lang, "schedule-about", &about),
        offset: zone.offset(now),
        earlier: day(if is_day { -1 } else { 0 }),
        later: day(1),
        is_day,
        bars: bars(&counts, begins, now, lang),
        width: hours * WIDE,
        said: said.unwrap_or_default(),
        hours: listed.into_iter().map(|(_, hour)| hour).collect(),
        more: (left_out > 0).then(|| {
            let n = i64::try_from(left_out).unwrap_or(i64::MAX);
            say(lang, "schedule-more", &[("n", Arg::Number(n))])
        }),
        often,
        frame,
    }))
}

impl SchedulePage {
    fn yours(&self) -> String {
        say(self.frame.lang, "ticks-yours", &[("zone", Arg::from(self.offset.as_str()))])
    }

    fn often_about(&self) -> String {
        let n = Arg::from(OFTEN.to_string());
        say(self.frame.lang, "schedule-often-about", &[("n", n)])
    }
}
