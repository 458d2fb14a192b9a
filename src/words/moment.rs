//! Instants and durations in words.
//!
//! Text is in the zone of this machine; pages carry the instant beside it, so that a browser elsewhere can
//! say it in its own. The script `static/js/clock.js` follows the same rules.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Arg, Language, Piece, say};
use crate::domain::time::StoreTime;

fn zone() -> &'static TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    ZONE.get_or_init(TimeZone::system)
}

fn timestamp(at: StoreTime) -> Timestamp {
    Timestamp::from_millisecond(at.0).unwrap_or_default()
}

/// RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn iso(at: StoreTime) -> String {
    timestamp(at).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Minutes east of UTC in this machine's zone at `at`.
#[must_use]
pub fn zone_minutes(at: StoreTime) -> i32 {
    zone().to_offset(timestamp(at)).seconds() / 60
}

/// The instant that `2026-05-04T18:00` is in this machine's zone, as a form sends it; `None`: it is none,
/// or says its zone itself.
#[must_use]
pub fn local(text: &str) -> Option<StoreTime> {
    if text.trim().parse::<Timestamp>().is_ok() {
        return None;
    }
    let wall: jiff::civil::DateTime = text.trim().parse().ok()?;
    let at = wall.to_zoned(zone().clone()).ok()?;
    Some(StoreTime(at.timestamp().as_millisecond()))
}

/// `2026-05-04T18:00` in this machine's zone, as a form takes it: what [`local`] reads, without seconds.
#[must_use]
pub fn wall(at: StoreTime) -> String {
    timestamp(at).to_zoned(zone().clone()).strftime("%Y-%m-%dT%H:%M").to_string()
}

/// Eight in the morning of the next day in this machine's zone.
#[must_use]
pub fn next_morning(now: StoreTime) -> StoreTime {
    let today = timestamp(now).to_zoned(zone().clone());
    let morning = today
        .date()
        .tomorrow()
        .ok()
        .and_then(|day| day.at(8, 0, 0, 0).to_zoned(zone().clone()).ok());
    morning.map_or(now, |at| StoreTime(at.timestamp().as_millisecond()))
}

/// `09:12`, with the day in front when that is not today.
#[must_use]
pub fn minute(lang: Language, at: StoreTime, now: StoreTime) -> Piece {
    piece(lang, at, now, "minute", "%H:%M")
}

/// `09:12:03`, with the day in front when that is not today.
#[must_use]
pub fn clock(lang: Language, at: StoreTime, now: StoreTime) -> Piece {
    piece(lang, at, now, "clock", "%H:%M:%S")
}

/// `2026-05-04 09:12:03`, for tables that span days.
#[must_use]
pub fn day_clock(at: StoreTime) -> Piece {
    let text = timestamp(at).to_zoned(zone().clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
    Piece::Time { ms: at.0, iso: iso(at), form: "day", text }
}

/// `09:12:03`, whatever the day.
#[must_use]
pub fn second(at: StoreTime) -> Piece {
    let text = timestamp(at).to_zoned(zone().clone()).strftime("%H:%M:%S").to_string();
    Piece::Time { ms: at.0, iso: iso(at), form: "second", text }
}

fn piece(
    lang: Language,
    at: StoreTime,
    now: StoreTime,
    form: &'static str,
    pattern: &str,
) -> Piece {
    let then = timestamp(at).to_zoned(zone().clone());
    let today = timestamp(now).to_zoned(zone().clone()).date();
    let hour = then.strftime(pattern).to_string();
    let text = if then.date() == today {
        hour
    } else if today.yesterday().is_ok_and(|yesterday| yesterday == then.date()) {
        say(lang, "time-yesterday", &[("time", Arg::from(hour))])
    } else {
        then.strftime(&format!("%Y-%m-%d {pattern}")).to_string()
    };
    Piece::Time { ms: at.0, iso: iso(at), form, text }
}

/// A duration in at most two units: `4 s`, `6 min`, `1 h 29 min`, `3 d 2 h`.
#[must_use]
pub fn duration(lang: Language, length: Duration) -> String {
    let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    let two = |id: &str, big: i64, small: i64| {
        say(lang, id, &[("a", Arg::Number(big)), ("b", Arg::Number(small))])
    };
    match seconds {
        0..60 => say(lang, "time-seconds", &[("a", Arg::Number(seconds))]),
        60..3_600 => say(lang, "time-minutes", &[("a", Arg::Number(seconds / 60))]),
        3_600..86_400 => two("time-hours", seconds / 3_600, seconds / 60 % 60),
        _ => two("time-days", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A duration of rules, which is said as it was given: `250 ms`, `1.5 s`, `90 s`, `5 min`.
#[must_use]
pub fn exactly(lang: Language, length: Duration) -> String {
    let ms = length.as_millis();
    if (1..1_000).contains(&ms) {
        return say(lang, "time-milliseconds", &[("a", Arg::from(ms.to_string()))]);
    }
    if (ms > 0 && ms.is_multiple_of(60_000)) || length >= Duration::from_secs(600) {
        return duration(lang, length);
    }
    // Formatting a float drops what is not there: 90 and not 90.0.
    let seconds = length.as_secs_f64().to_string();
    say(lang, "time-seconds", &[("a", Arg::from(seconds))])
}

/// How long something took that is over: to the tenth of a second below ten seconds.
#[must_use]
pub fn lasted(lang: Language, length: Duration) -> String {
    match length.as_millis() {
        ms @ 0..100 => say(lang, "time-milliseconds", &[("a", Arg::from(ms.to_string()))]),
        ms @ 100..10_000 => {
            let tenths = (ms + 50) / 100;
            let text = match tenths % 10 {
                0 => (tenths / 10).to_string(),
                tenth => format!("{}.{tenth}", tenths / 10),
            };
            say(lang, "time-seconds", &[("a", Arg::from(text))])
        }
        _ => duration(lang, length),
    }
}

/// The time left until `at`, shrinking on the page.
#[must_use]
pub fn until(lang: Language, at: StoreTime, now: StoreTime) -> Piece {
    // Rounded up: "in 0 s" for something that has not happened yet would be false.
    let left = at.since(now) + Duration::from_millis(999);
    Piece::Until { ms: at.0, text: duration(lang, left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_form_sends_is_an_instant_of_this_machine_and_the_morning_is_that_of_tomorrow() {
        let now = StoreTime(1_777_852_800_000);
        let morning = next_morning(now);
        assert!(morning > now && morning.since(now) <= Duration::from_secs(33 * 3_600));
        let text = day_clock(morning).to_string();
        assert!(text.ends_with(" 08:00:00"), "{text}");
        assert_eq!(local(&text.replace(' ', "T")), Some(morning));
        assert_eq!(local(&wall(morning)), Some(morning));
        assert_eq!(local(" 2026-05-04T18:00 "), local("2026-05-04T18:00:00"));
        for wrong in
            ["", "soon", "2026-13-04T18:00", "2026-05-04T18:00:00Z", "2026-05-04T18:00+08:00"]
        {
            assert_eq!(local(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let say = |lang, seconds| duration(lang, Duration::from_secs(seconds));
        for (seconds, en, zh) in [
            (0, "0 s", "0 秒"),
            (59, "59 s", "59 秒"),
            (360, "6 min", "6 分钟"),
            (5_340, "1 h 29 min", "1 小时 29 分"),
            (266_400, "3 d 2 h", "3 天 2 小时"),
        ] {
            assert_eq!(say(Language::En, seconds), en);
            assert_eq!(say(Language::Zh, seconds), zh);
        }
    }

    #[test]
    fn a_rule_is_said_exactly() {
        for (ms, en) in [
            (0, "0 s"),
            (1, "1 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_500, "1.5 s"),
            (60_000, "1 min"),
            (90_000, "90 s"),
            (5_400_000, "1 h 30 min"),
        ] {
            assert_eq!(exactly(Language::En, Duration::from_millis(ms)), en);
        }
    }

    #[test]
    fn what_took_less_than_a_second_did_not_take_none() {
        for (ms, en) in [
            (4, "4 ms"),
            (100, "0.1 s"),
            (449, "0.4 s"),
            (960, "1 s"),
            (2_000, "2 s"),
            (9_940, "9.9 s"),
            (10_900, "10 s"),
            (90_000, "1 min"),
        ] {
            assert_eq!(lasted(Language::En, Duration::from_millis(ms)), en);
        }
    }

    #[test]
    fn an_instant_is_written_in_utc_with_milliseconds() {
        assert_eq!(iso(StoreTime(1_777_856_523_004)), "2026-05-04T01:02:03.004Z");
    }
}
