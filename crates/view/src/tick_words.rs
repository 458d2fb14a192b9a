//! Ticks in words of the reader's language: what each is called, what became of it, and why. What the API says in English stands
//! in `domain/tick`.

use crate::words::{Arg, Language, Zone, say, visible};
use soloist_config::Scheduled;
use soloist_domain::tick::{Note, Outcome, Tick, TickName, Why, each};

/// The zone in which the times of a schedule are said: its own, or UTC for `every` and `at`.
#[must_use]
pub fn zone_of(scheduled: &Scheduled) -> Zone {
    let own = scheduled.plan.zone().and_then(Zone::known);
    own.or_else(|| Zone::known("UTC")).unwrap_or_else(|| Zone::here().clone())
}

/// The civil time in the name of a tick, `2026-11-27 02:30 +08:00`, or that somebody asked for it.
#[must_use]
pub fn called(lang: Language, name: &TickName) -> String {
    let Some(time) = name.time() else { return say(lang, "tick-by-hand", &[]) };
    let Some((day, time)) = time.split_once('T') else { return name.0.clone() };
    let end = time.find(['+', '-', 'Z']).unwrap_or(time.len());
    let (clock, offset) = time.split_at(end);
    let offset = if offset == "Z" { "+00:00" } else { offset };
    format!("{day} {} {offset}", clock.strip_suffix(":00").unwrap_or(clock))
}

/// As [`called`], in the zone of the schedule also where the name is an instant in UTC.
#[must_use]
pub fn called_in(lang: Language, tick: &Tick, zone: &Zone) -> String {
    let in_utc = tick.name.time().is_some_and(|time| time.ends_with('Z'));
    if in_utc { zone.stamped(tick.due) } else { called(lang, &tick.name) }
}

/// The run of a tick within a sentence; of one that somebody asked for there is no time to say.
#[must_use]
pub fn run_of(lang: Language, name: &TickName) -> String {
    match name.is_by_hand() {
        true => say(lang, "run-of-hand", &[]),
        false => say(lang, "run-of-tick", &[("tick", Arg::from(called(lang, name)))]),
    }
}

/// What became of it.
#[must_use]
pub fn outcome(lang: Language, outcome: Outcome) -> String {
    let id = match outcome {
        Outcome::Running => "tick-running",
        Outcome::Done => "tick-done",
        Outcome::Failed => "tick-failed",
        Outcome::Lost => "tick-lost",
        Outcome::Missed => "tick-missed",
        Outcome::Skipped => "tick-skipped",
        Outcome::Unwanted => "tick-unwanted",
        Outcome::Covered => "tick-covered",
        Outcome::Dropped => "tick-dropped",
    };
    say(lang, id, &[])
}

/// What is odd about the time at which it is due.
#[must_use]
pub fn note(lang: Language, tick: &Tick) -> Option<String> {
    let time = tick.name.time().unwrap_or_default();
    let time = time.split_once('T').map_or("", |(_, time)| time.get(..5).unwrap_or(time));
    let args = [("time", Arg::from(time))];
    Some(match tick.note? {
        Note::Gap => say(lang, "tick-gap", &args),
        Note::Fold => say(lang, "tick-fold", &args),
    })
}

/// What was in the way, or how the run ended.
#[must_use]
pub fn why(lang: Language, why: &Why) -> String {
    let named = |id: &str, user: &dyn std::fmt::Display| {
        say(lang, id, &[("user", Arg::from(user.to_string()))])
    };
    let on = |id: &str, node: &dyn std::fmt::Display| {
        say(lang, id, &[("node", Arg::from(node.to_string()))])
    };
    let tick = |id: &str, tick| say(lang, id, &[("tick", Arg::from(called(lang, tick)))]);
    let run = |id: &str, tick| say(lang, id, &[("run", Arg::from(run_of(lang, tick)))]);
    let number =
        |id: &str, n: &dyn std::fmt::Display| say(lang, id, &[("n", Arg::from(n.to_string()))]);
    match why {
        Why::Off { by: Some(by) } => named("tick-why-off-by", by),
        Why::Off { by: None } => say(lang, "tick-why-off", &[]),
        Why::Held { by, reason } => {
            let args = [("user", Arg::from(by.as_str())), ("reason", Arg::from(reason.as_str()))];
            say(lang, "tick-why-held", &args)
        }
        Why::NoNode => say(lang, "tick-why-no-node", &[]),
        Why::Unfit { lacks } => {
            let whys = visible(&each(lacks)).into_owned();
            say(lang, "tick-why-unfit", &[("whys", Arg::from(whys))])
        }
        Why::Open { tick } => run("tick-why-open", tick),
        Why::Replaced { by } => run("tick-why-replaced", by),
        Why::CoveredBy { tick: name } => tick("tick-why-covered-by", name),
        Why::TooMany { kept } => number("tick-why-too-many", kept),
        Why::Changed => say(lang, "tick-why-changed", &[]),
        Why::Code { code } => number("tick-why-code", code),
        Why::Signal { signal } => number("tick-why-signal", signal),
        Why::NotStarted => say(lang, "tick-why-not-started", &[]),
        Why::TimedOut => say(lang, "tick-why-timed-out", &[]),
        Why::Stopped { node } => on("tick-why-stopped", node),
        Why::Gone { node } => on("tick-why-gone", node),
        Why::Died { node, guard: true } => on("after-guard-died", node),
        Why::Died { node, guard: false } => on("after-died", node),
        Why::Fenced { node } => on("tick-why-fenced", node),
        Why::TakenBack { by } => named("tick-why-taken-back", by),
        Why::Forgot => say(lang, "tick-why-forgot", &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::name::NodeName;
    use soloist_domain::time::StoreTime;

    #[test]
    fn a_tick_is_called_by_its_civil_time() {
        let told = |name: &str| called(Language::En, &TickName(name.to_owned()));
        assert_eq!(told("a-b@2026-11-27T02:30+08:00[Asia/Shanghai]"), "2026-11-27 02:30 +08:00");
        assert_eq!(
            told("a@2026-11-27T02:30:05-03:30[America/St_Johns]"),
            "2026-11-27 02:30:05 -03:30"
        );
        assert_eq!(told("a@2026-11-27T02:30:00Z"), "2026-11-27 02:30 +00:00");
        assert_eq!(told("a@hand:01ARZ"), "by hand");
        let berlin = Zone::known("Europe/Berlin").expect("a zone");
        let tick = |name: &str| Tick {
            name: TickName(name.to_owned()),
            due: StoreTime(1_780_000_000_000 / 60_000 * 60_000),
            starts: StoreTime(0),
            note: None,
        };
        let instant = tick("a@2026-05-28T20:26:00Z");
        assert_eq!(called_in(Language::En, &instant, &berlin), "2026-05-28 22:26 +02:00");
        let by = tick("a@hand:01ARZ");
        assert_eq!(called_in(Language::En, &by, &berlin), "by hand");
        let by = TickName("a@hand:01ARZ".to_owned());
        let lacks = [(NodeName::new("node-a").unwrap(), "no python9\u{1b}".to_owned())];
        let unfit = Why::Unfit { lacks: lacks.into_iter().collect() };
        assert_eq!(why(Language::Zh, &unfit), "无法启动：node-a: no python9\u{fffd}");
        let open = why(Language::En, &Why::Open { tick: by.clone() });
        assert_eq!(open, "the run by hand was still open");
        assert_eq!(why(Language::Zh, &Why::Replaced { by }), "被手动的那次取代");
        assert_eq!(told("a@hand:01M8HMQTHTBQJKXWNEEZK23S14"), "by hand", "letters of a time in it");
    }
}
