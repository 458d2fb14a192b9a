//! Instants and durations in words.
//!
//! Text is in the zone of this machine. Pages carry the instant beside it, so that it can be said again in the zone of the
//! reader: by the server when the account has one, else by the browser.

use std::fmt;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::zone::{Zone, timestamp};
use super::{Arg, Language, Piece, say};
use soloist_domain::time::StoreTime;

/// RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn iso(at: StoreTime) -> String {
    timestamp(at).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// An instant of an answer: in JSON, and where it is shown, as [`iso`] writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At(pub StoreTime);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&iso(self.0))
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let at: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
        Ok(Self(StoreTime(at.as_millisecond())))
    }
}

impl PartialSchema for At {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for At {}

/// `09:12`, with the day in front when that is not today.
#[must_use]
pub fn minute(lang: Language, at: StoreTime, now: StoreTime) -> Piece {
    piece(lang, at, now, "minute")
}

/// `09:12:03`, with the day in front when that is not today.
#[must_use]
pub fn clock(lang: Language, at: StoreTime, now: StoreTime) -> Piece {
    piece(lang, at, now, "clock")
}

/// When something is to happen, with the offset of this machine: `Mon 02:30 +08:00`; who reads it on a page is told as by [`clock`].
#[must_use]
pub fn planned(lang: Language, at: StoreTime, now: StoreTime) -> Piece {
    let text = Zone::here().planned(lang, at, Some(now));
    Piece::Time { ms: at.0, iso: iso(at), form: "clock", text }
}

/// `2026-05-04 09:12:03`, for tables that span days.
#[must_use]
pub fn day_clock(at: StoreTime) -> Piece {
    piece(Language::En, at, at, "day")
}

/// `09:12:03`, whatever the day.
#[must_use]
pub fn second(at: StoreTime) -> Piece {
    piece(Language::En, at, at, "second")
}

fn piece(lang: Language, at: StoreTime, now: StoreTime, form: &'static str) -> Piece {
    let text = Zone::here().told(lang, at, now, form);
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
    fn an_instant_of_an_answer_is_read_as_it_was_written_and_nothing_else_is_one() {
        let text = "\"2023-11-14T22:13:20.040Z\"";
        let at: At = serde_json::from_str(text).expect("an instant");
        assert_eq!(at, At(StoreTime(1_700_000_000_040)));
        assert_eq!(serde_json::to_string(&at).expect("JSON"), text);
        for wrong in ["\"soon\"", "\"\\u001b[2J\"", "1700000000040", "null"] {
            assert!(serde_json::from_str::<At>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_instant_is_written_in_utc_with_milliseconds() {
        assert_eq!(iso(StoreTime(1_777_856_523_004)), "2026-05-04T01:02:03.004Z");
    }
}
