//! *Schedule* on a job's page: when it runs in words, the next ticks, what became of the last ones and why, runs that wait.

use std::time::Duration;

use askama::Template;

use soloist_config::Scheduled;
use soloist_domain::job::JobRecord;
use soloist_domain::tick::{Clock, Entry, Outcome, Tick, TickName};
use soloist_domain::time::StoreTime;
use soloist_view::tick_words::{called, called_in, note, outcome, run_of, why, zone_of};
use soloist_view::words::{self, Arg, Language, Piece, Zone, lasted, phrase, say};

/// Ticks to come, and entries that stand open; the strip has a mark for so many.
pub const NEXT: usize = 10;
const LAST: usize = 8;
const MARKS: usize = 40;
/// Height of the strip.
const HEIGHT: u8 = 16;

/// The section.
#[derive(Template)]
#[template(path = "parts/ticks.html")]
pub struct Ticks {
    pub(crate) lang: Language,
    pub(crate) job: String,
    /// In words, as the file has it, and the zone.
    pub(crate) words: String,
    pub(crate) expressions: Vec<String>,
    pub(crate) zone: Option<String>,
    /// How far the reader's clocks are ahead.
    pub(crate) offset: String,
    pub(crate) next: Vec<Coming>,
    /// The oldest first.
    pub(crate) marks: Vec<Mark>,
    /// The newest first; those behind are folded away.
    pub(crate) last: Vec<Row>,
    pub(crate) older: Vec<Row>,
    /// They could not be read.
    pub(crate) unread: bool,
    pub(crate) asked: Vec<Waits>,
    /// The reader may take back a run that waits, and, unless the job is held, ask for one.
    pub(crate) may_act: bool,
    pub(crate) may_run: bool,
    /// What became of the run that was asked for just now.
    pub(crate) said: Option<String>,
}

/// A tick to come.
pub struct Coming {
    /// In the job's zone, with offset.
    pub(crate) own: String,
    pub(crate) yours: Vec<Piece>,
    /// Gap, fold, or that it starts later than it is due.
    pub(crate) note: Option<String>,
}

/// One entry in the strip.
pub struct Mark {
    pub(crate) kind: &'static str,
    pub(crate) x: String,
    pub(crate) y: u8,
    pub(crate) height: u8,
    pub(crate) title: String,
}

/// What became of a tick.
pub struct Row {
    pub(crate) kind: &'static str,
    /// Its name, to run it again; `None`: that is no use.
    pub(crate) again: Option<String>,
    pub(crate) called: String,
    pub(crate) yours: Vec<Piece>,
    pub(crate) word: String,
    /// Why, attempt, how late, by whom, with which parameters, how many more.
    pub(crate) facts: Vec<String>,
}

/// A run that waits.
pub struct Waits {
    pub(crate) tick: String,
    pub(crate) said: Vec<Piece>,
    pub(crate) params: String,
    pub(crate) label: String,
}

/// An instant for the reader; seconds only where there are some.
fn yours(at: StoreTime, now: StoreTime, lang: Language) -> Vec<Piece> {
    let whole = at.0.rem_euclid(60_000) == 0;
    vec![if whole { words::minute(lang, at, now) } else { words::clock(lang, at, now) }]
}

impl Coming {
    /// In a list of a day, which says the day elsewhere.
    pub(crate) fn in_day(tick: &Tick, zone: &Zone, now: StoreTime, lang: Language) -> Self {
        let own = zone.planned(lang, tick.due, Some(now));
        Self { own, yours: vec![words::second(tick.due)], ..Self::of(tick, zone, now, lang) }
    }

    pub(crate) fn of(tick: &Tick, zone: &Zone, now: StoreTime, lang: Language) -> Self {
        let later = (tick.starts != tick.due).then(|| {
            let at = zone.planned(lang, tick.starts, Some(tick.due));
            say(lang, "ticks-starts", &[("at", Arg::from(at))])
        });
        let notes: Vec<String> = note(lang, tick).into_iter().chain(later).collect();
        Self {
            own: zone.planned(lang, tick.due, None),
            yours: yours(tick.due, now, lang),
            note: (!notes.is_empty()).then(|| notes.join(&say(lang, "list-separator", &[]))),
        }
    }
}

fn pairs(params: &std::collections::BTreeMap<String, String>) -> String {
    params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

impl Row {
    fn of(entry: &Entry, zone: &Zone, lang: Language, now: StoreTime) -> Self {
        let text = |id: &str, name: &str, value: String| say(lang, id, &[(name, Arg::from(value))]);
        let mut facts: Vec<String> = entry.why.iter().map(|one| why(lang, one)).collect();
        if entry.attempt > 1 {
            facts.push(text("ticks-attempt", "n", entry.attempt.to_string()));
        }
        if let Some(late) = entry.late_ms.filter(|late| *late >= 2_000) {
            facts.push(text("ticks-late", "late", lasted(lang, Duration::from_millis(late))));
        }
        facts.extend(entry.by.as_ref().map(|by| text("ticks-by", "user", by.to_string())));
        facts.extend((!entry.params.is_empty()).then(|| pairs(&entry.params)));
        if let Some(until) = entry.until.as_ref().filter(|_| entry.count > 1) {
            let tick = Arg::from(called_in(lang, until, zone));
            let n = Arg::from((entry.count - 1).to_string());
            facts.push(say(lang, "ticks-more", &[("n", n), ("tick", tick)]));
        }
        let is_over = !matches!(entry.outcome, Outcome::Running | Outcome::Done);
        let again = is_over && entry.count == 1 && !entry.tick.name.is_by_hand();
        Self {
            kind: entry.outcome.as_str(),
            again: again.then(|| entry.tick.name.0.clone()),
            called: called_in(lang, &entry.tick, zone),
            yours: yours(entry.tick.due, now, lang),
            word: outcome(lang, entry.outcome),
            facts,
        }
    }

    fn mark(&self, nth: usize) -> Mark {
        let height = match self.kind {
            "done" | "failed" | "lost" | "running" => HEIGHT,
            "missed" | "dropped" => HEIGHT / 2,
            _ => HEIGHT / 4,
        };
        let said = std::iter::once(&self.word).chain(self.facts.first());
        let said: Vec<&str> = said.map(String::as_str).collect();
        let thousandth = nth * 100_000 / MARKS;
        Mark {
            kind: self.kind,
            x: format!("{}.{:03}%", thousandth / 1_000, thousandth % 1_000),
            y: HEIGHT - height,
            height,
            title: format!("{} · {}", self.called, said.join(" · ")),
        }
    }
}

impl Ticks {
    /// Of a job with a schedule. `entries`: what became of its ticks, the newest first, or nothing if that could not be read.
    #[must_use]
    pub fn of(
        (job, scheduled, record): (&str, &Scheduled, &JobRecord),
        entries: Option<&[Entry]>,
        (lang, now, reader): (Language, StoreTime, &Zone),
        may_act: bool,
    ) -> Self {
        let zone = zone_of(scheduled);
        let from = record.clock.as_deref().map_or(now, |clock| clock.accounted.max(now));
        let first = scheduled.law.ticks.after(from);
        let ticks = std::iter::successors(first, |tick| scheduled.law.ticks.after(tick.starts));
        let rows = entries.unwrap_or_default().iter().take(MARKS);
        let mut rows: Vec<Row> = rows.map(|entry| Row::of(entry, &zone, lang, now)).collect();
        let marks = rows.iter().rev().enumerate().map(|(nth, row)| row.mark(nth)).collect();
        let older = rows.split_off(rows.len().min(LAST));
        let asked = record.clock.as_deref().map(|clock| &clock.asked[..]).unwrap_or_default();
        let waits = asked.iter().map(|asked| {
            let facts = [
                ("tick", Piece::strong(called(lang, &asked.tick.name))),
                ("user", Piece::text(&asked.by)),
                ("at", words::clock(lang, asked.at, now)),
            ];
            let at = reader.told(lang, asked.at, now, "clock");
            let args = [("user", Arg::from(asked.by.as_str())), ("at", Arg::from(at))];
            Waits {
                tick: asked.tick.name.0.clone(),
                said: phrase(lang, "ticks-asked-line", &facts),
                params: pairs(&asked.params),
                label: say(lang, "ticks-take-back-of", &args),
            }
        });
        Self {
            lang,
            job: job.to_owned(),
            words: scheduled.plan.words(lang == Language::Zh),
            expressions: scheduled.plan.expressions(),
            zone: scheduled.plan.zone().map(ToOwned::to_owned),
            offset: reader.offset(now),
            next: ticks.take(NEXT).map(|tick| Coming::of(&tick, &zone, now, lang)).collect(),
            marks,
            last: rows,
            older,
            unread: entries.is_none(),
            asked: waits.collect(),
            may_act,
            may_run: may_act && record.hold.is_none(),
            said: None,
        }
    }

    /// With what became of the run called `tick`, if the record or `entries` know it.
    #[must_use]
    pub fn saying(self, tick: Option<&TickName>, clock: Option<&Clock>, entries: &[Entry]) -> Self {
        let Some(tick) = tick else { return self };
        let lang = self.lang;
        let args = |more: Option<(&'static str, String)>| {
            let own = [("tick", Arg::from(called(lang, tick)))];
            let more = more.map(|(name, text)| (name, Arg::from(text)));
            own.into_iter().chain(more).collect::<Vec<_>>()
        };
        let open = clock.and_then(Clock::open);
        let waits = clock.is_some_and(|clock| clock.asked.iter().any(|one| one.tick.name == *tick));
        let entry = entries.iter().find(|entry| entry.count == 1 && entry.tick.name == *tick);
        let said = match (open, entry) {
            (Some(open), _) if waits => {
                say(lang, "ticks-said-waits", &args(Some(("run", run_of(lang, &open.tick.name)))))
            }
            _ if waits => say(lang, "ticks-said", &args(None)),
            (_, Some(entry)) if entry.outcome == Outcome::Running => {
                say(lang, "ticks-said-open", &args(None))
            }
            (_, Some(entry)) => {
                let what = outcome(lang, entry.outcome);
                say(lang, "ticks-said-over", &args(Some(("outcome", what))))
            }
            _ => return self,
        };
        Self { said: Some(said), ..self }
    }

    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }

    fn yours(&self) -> String {
        say(self.lang, "ticks-yours", &[("zone", Arg::from(self.offset.as_str()))])
    }

    fn again_label(&self, row: &Row) -> String {
        say(self.lang, "ticks-again-of", &[("tick", Arg::from(row.called.as_str()))])
    }

    /// The address of the form that runs `tick` again.
    fn again(&self, tick: &str) -> String {
        let tick: String = url::form_urlencoded::byte_serialize(tick.as_bytes()).collect();
        format!("/jobs/{}/run?tick={tick}", self.job)
    }
}
