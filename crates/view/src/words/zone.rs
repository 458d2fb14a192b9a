//! The zone in which instants are said and read: that of this machine, or one that a reader chose by its IANA name.
//!
//! It knows nothing of readers or pages. The script `static/js/clock.js` says instants by the same rules.

use std::sync::OnceLock;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, tz};

use super::{Arg, Language, Piece, day_clock, say};
use soloist_domain::time::StoreTime;

/// Where names of the IANA database begin that stand for a place. All others are old names and offsets; `UTC` is added.
const AREAS: [&str; 10] = [
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Europe",
    "Indian",
    "Pacific",
];

/// A zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone(TimeZone);

pub(super) fn timestamp(at: StoreTime) -> Timestamp {
    Timestamp::from_millisecond(at.0).unwrap_or_default()
}

impl Zone {
    /// That of this machine.
    #[must_use]
    pub fn here() -> &'static Self {
        static HERE: OnceLock<Zone> = OnceLock::new();
        HERE.get_or_init(|| Self(TimeZone::system()))
    }

    /// The one of this name, such as `Asia/Shanghai`; `None` if it is none of [`Self::names`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let known = is_place(name) || name == "UTC";
        let zone = known.then(|| TimeZone::get(name).ok()).flatten()?;
        // A database takes names in any case; browsers and we compare them.
        (zone.iana_name() == Some(name)).then_some(Self(zone))
    }

    /// The one that a configuration names, which was checked there: any name that this machine knows.
    #[must_use]
    pub fn known(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self)
    }

    /// Every name that may be chosen, in order. On a machine without the IANA database there are none but UTC.
    #[must_use]
    pub fn names() -> Vec<String> {
        let all = tz::db().available().map(|name| name.as_str().to_owned());
        let mut names: Vec<String> = all.filter(|name| is_place(name)).collect();
        names.sort_unstable();
        names.dedup();
        names.push("UTC".to_owned());
        names
    }

    /// How far its clocks are ahead at `at`: `UTC+08:00`.
    #[must_use]
    pub fn offset(&self, at: StoreTime) -> String {
        let minutes = self.0.to_offset(timestamp(at)).seconds() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        format!("UTC{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }

    /// The instant `at` in one of the forms of [`Piece::Time`](super::Piece::Time): `minute` (`09:12`) and `clock` (`09:12:03`) with the
    /// day in front when that is not the day of `now`, `second` (`09:12:03`), `day` (`2026-05-04 09:12:03`).
    #[must_use]
    pub fn told(&self, lang: Language, at: StoreTime, now: StoreTime, form: &str) -> String {
        let then = timestamp(at).to_zoned(self.0.clone());
        let hour = then.strftime(if form == "minute" { "%H:%M" } else { "%H:%M:%S" }).to_string();
        let whole = || format!("{} {hour}", then.strftime("%Y-%m-%d"));
        match form {
            "second" => return hour,
            "day" => return whole(),
            _ => {}
        }
        let today = timestamp(now).to_zoned(self.0.clone()).date();
        if then.date() == today {
            hour
        } else if today.yesterday().is_ok_and(|yesterday| yesterday == then.date()) {
            say(lang, "time-yesterday", &[("time", Arg::from(hour))])
        } else {
            whole()
        }
    }

    /// When something is to happen: `Mon 02:30 +08:00` within six days of `now`, else with the day, `Mon 2026-12-07 02:30 +08:00`.
    #[must_use]
    pub fn planned(&self, lang: Language, at: StoreTime, now: Option<StoreTime>) -> String {
        let then = timestamp(at).to_zoned(self.0.clone());
        let n = i64::from(then.weekday().to_monday_one_offset());
        let weekday = say(lang, "weekday", &[("n", Arg::Number(n))]);
        let near = now.is_some_and(|now| (0..6 * 86_400_000).contains(&(at.0 - now.0)));
        let day = if near { String::new() } else { then.strftime("%Y-%m-%d ").to_string() };
        let hour = then.strftime(if then.second() == 0 { "%H:%M" } else { "%H:%M:%S" });
        format!("{weekday} {day}{hour} {}", self.offset(at).trim_start_matches("UTC"))
    }

    /// `2026-05-04 02:30 +08:00`; seconds only where there are some.
    #[must_use]
    pub fn stamped(&self, at: StoreTime) -> String {
        let then = timestamp(at).to_zoned(self.0.clone());
        let form = if then.second() == 0 { "%Y-%m-%d %H:%M %:z" } else { "%Y-%m-%d %H:%M:%S %:z" };
        then.strftime(form).to_string()
    }

    /// The start of the hour of `at`.
    #[must_use]
    pub fn hour(&self, at: StoreTime) -> StoreTime {
        let then = timestamp(at).to_zoned(self.0.clone());
        let into = i64::from(then.minute()) * 60_000 + i64::from(then.second()) * 1_000;
        StoreTime(at.0 - into - i64::from(then.subsec_nanosecond()) / 1_000_000)
    }

    /// The day that comes `days` after that of `at`, as `2026-05-04`, and when it begins.
    #[must_use]
    pub fn day(&self, at: StoreTime, days: i64) -> Option<(String, StoreTime)> {
        let span = jiff::Span::new().try_days(days).ok()?;
        let day = timestamp(at).to_zoned(self.0.clone()).date().checked_add(span).ok()?;
        let begins = day.to_zoned(self.0.clone()).ok()?;
        Some((day.to_string(), StoreTime(begins.timestamp().as_millisecond())))
    }

    /// `UTC`, or how far its clocks are ahead at `at`: what stands behind an instant outside of our pages.
    #[must_use]
    pub fn name(&self, at: StoreTime) -> String {
        let offset = self.offset(at);
        if offset == "UTC+00:00" { "UTC".to_owned() } else { offset }
    }

    /// `2026-05-04 09:12:03 UTC`: an instant that says all by itself, for texts that leave our pages. [`instants`] finds it again.
    #[must_use]
    pub fn whole(&self, at: StoreTime) -> String {
        format!("{} {}", self.told(Language::En, at, at, "day"), self.name(at))
    }

    /// The instant that somebody typed: a wall clock of this zone, or one that says its zone itself. Every form is read by this.
    #[must_use]
    pub fn typed(&self, text: &str) -> Option<StoreTime> {
        let instant = || Some(StoreTime(text.trim().parse::<Timestamp>().ok()?.as_millisecond()));
        self.read(text).or_else(instant)
    }

    /// The instant that `2026-05-04T18:00` is here, as a form sends it; `None`: it is none, or says its zone itself.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<StoreTime> {
        if text.trim().parse::<Timestamp>().is_ok() {
            return None;
        }
        let wall: DateTime = text.trim().parse().ok()?;
        let at = wall.to_zoned(self.0.clone()).ok()?;
        Some(StoreTime(at.timestamp().as_millisecond()))
    }

    /// `2026-05-04T18:00`, as a form takes it: what [`Self::read`] reads, without seconds.
    #[must_use]
    pub fn wall(&self, at: StoreTime) -> String {
        timestamp(at).to_zoned(self.0.clone()).strftime("%Y-%m-%dT%H:%M").to_string()
    }

    /// Eight in the morning of the next day.
    #[must_use]
    pub fn next_morning(&self, now: StoreTime) -> StoreTime {
        let today = timestamp(now).to_zoned(self.0.clone()).date();
        let morning = today.tomorrow().ok();
        let morning = morning.and_then(|day| day.at(8, 0, 0, 0).to_zoned(self.0.clone()).ok());
        morning.map_or(now, |at| StoreTime(at.timestamp().as_millisecond()))
    }
}

/// A text of ours as pieces: what [`Zone::whole`] wrote in it is an instant again, which a page says in the zone of its reader.
#[must_use]
pub fn instants(text: &str) -> Vec<Piece> {
    const WALL: usize = "2026-05-04 09:12:03".len();
    let mut pieces = Vec::new();
    let mut done = 0;
    for (at, zone) in text.match_indices(" UTC") {
        let found = at.checked_sub(WALL).filter(|from| *from >= done).and_then(|from| {
            let wall: DateTime = text.get(from..at)?.replace(' ', "T").parse().ok()?;
            let behind = at + zone.len();
            let (ahead, end) = match text.get(behind..behind + 6).and_then(ahead) {
                Some(minutes) => (minutes, behind + 6),
                None => (0, behind),
            };
            let utc = wall.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond();
            Some((from, end, StoreTime(utc - ahead * 60_000)))
        });
        let Some((from, end, at)) = found else { continue };
        if from > done {
            pieces.push(Piece::text(&text[done..from]));
        }
        pieces.push(day_clock(at));
        done = end;
    }
    if done < text.len() {
        pieces.push(Piece::text(&text[done..]));
    }
    pieces
}

/// The minutes of `+08:00`.
fn ahead(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let number = |text: &str| (text.len() == 2).then(|| text.parse::<i64>().ok()).flatten();
    let hours = number(hours.strip_prefix(['+', '-'])?)?;
    Some(sign * (hours * 60 + number(minutes)?))
}

fn is_place(name: &str) -> bool {
    name.split_once('/').is_some_and(|(area, _)| AREAS.contains(&area))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Eight in the evening of 4 May 2026 in UTC.
    const NOW: StoreTime = StoreTime(1_777_924_800_000);

    fn zone(name: &str) -> Zone {
        Zone::named(name).expect("this machine has the IANA database (Debian: tzdata)")
    }

    #[test]
    fn what_a_form_sends_is_an_instant_of_the_zone_and_the_morning_is_that_of_tomorrow() {
        for zone in [Zone::here().clone(), zone("Asia/Shanghai"), zone("America/New_York")] {
            let morning = zone.next_morning(NOW);
            assert!(morning > NOW && morning.since(NOW) <= Duration::from_secs(33 * 3_600));
            let text = zone.told(Language::En, morning, NOW, "day");
            assert!(text.ends_with(" 08:00:00"), "{text}");
            assert_eq!(zone.read(&text.replace(' ', "T")), Some(morning));
            assert_eq!(zone.read(&zone.wall(morning)), Some(morning));
            assert_eq!(zone.read(" 2026-05-04T18:00 "), zone.read("2026-05-04T18:00:00"));
            for wrong in
                ["", "soon", "2026-13-04T18:00", "2026-05-04T18:00:00Z", "2026-05-04T18:00+08:00"]
            {
                assert_eq!(zone.read(wrong), None, "{wrong}");
            }
        }
    }

    #[test]
    fn the_same_instant_is_another_day_elsewhere() {
        let at = StoreTime(NOW.0 - 3 * 3_600_000);
        for (name, form, told) in [
            ("UTC", "minute", "17:00"),
            ("UTC", "clock", "17:00:00"),
            ("Asia/Shanghai", "minute", "01:00"),
            ("Asia/Shanghai", "day", "2026-05-05 01:00:00"),
            ("Asia/Tokyo", "second", "02:00:00"),
            ("Pacific/Auckland", "clock", "05:00:00"),
            ("Pacific/Honolulu", "clock", "07:00:00"),
        ] {
            assert_eq!(zone(name).told(Language::En, at, NOW, form), told, "{name}");
        }
        let before = StoreTime(NOW.0 - 6 * 3_600_000);
        let told = |name: &str, lang| zone(name).told(lang, before, NOW, "minute");
        assert_eq!(told("Asia/Shanghai", Language::En), "yesterday 22:00");
        assert_eq!(told("Asia/Shanghai", Language::Zh), "昨天 22:00");
        assert_eq!(told("UTC", Language::En), "14:00");
        let long_ago = StoreTime(NOW.0 - 200 * 86_400_000);
        let told = zone("Europe/Berlin").told(Language::En, long_ago, NOW, "minute");
        assert_eq!(told, "2025-10-16 22:00", "with the summer time of that day");
    }

    #[test]
    fn an_instant_in_a_text_of_ours_is_found_again_whatever_zone_wrote_it() {
        for name in ["UTC", "Asia/Shanghai", "America/St_Johns", "Asia/Kathmandu"] {
            let whole = zone(name).whole(NOW);
            let text = format!("missing since {whole}. 任务自 {whole} 起没有运行 UTC");
            let pieces = instants(&text);
            let found = pieces
                .iter()
                .filter(|piece| matches!(piece, Piece::Time { ms, .. } if *ms == NOW.0));
            assert_eq!(found.count(), 2, "{text}: {pieces:?}");
            assert_eq!(pieces.len(), 5, "{pieces:?}");
        }
        assert_eq!(zone("UTC").whole(NOW), "2026-05-04 20:00:00 UTC");
        assert_eq!(zone("Asia/Shanghai").whole(NOW), "2026-05-05 04:00:00 UTC+08:00");
        for text in
            ["", " UTC", "since 16:15:49 UTC", "出库任务 UTC+08:00", "2026-99-04 09:12:03 UTC"]
        {
            let plain: String = instants(text).iter().map(ToString::to_string).collect();
            assert_eq!(plain, text);
        }
        let z = zone("Asia/Shanghai");
        assert_eq!(z.typed("2026-05-05T04:00"), Some(NOW));
        assert_eq!(z.typed(" 2026-05-04T20:00:00Z "), Some(NOW));
        assert_eq!(z.typed("soon"), None);
    }

    #[test]
    fn what_is_planned_is_said_with_its_weekday_and_offset() {
        let z = zone("Asia/Shanghai");
        assert_eq!(z.planned(Language::En, NOW, Some(NOW)), "Tue 04:00 +08:00");
        assert_eq!(z.planned(Language::Zh, NOW, None), "周二 2026-05-05 04:00 +08:00");
        assert_eq!(z.hour(StoreTime(NOW.0 + 3_599_999)), NOW);
        let (day, begins) = z.day(NOW, 1).expect("a day");
        assert_eq!((day.as_str(), begins.0), ("2026-05-06", NOW.0 + 20 * 3_600_000));
    }

    #[test]
    fn only_names_of_places_are_taken_and_each_that_is_offered_is() {
        let names = Zone::names();
        assert!(names.len() > 300 && names.iter().all(|name| Zone::named(name).is_some()));
        for name in ["Asia/Shanghai", "Europe/Berlin", "America/Argentina/Buenos_Aires", "UTC"] {
            assert!(names.iter().any(|one| one == name), "{name}");
        }
        for wrong in [
            "",
            "asia/shanghai",
            "EST",
            "posix/Asia/Shanghai",
            "Asia/Nowhere",
            "../etc/passwd",
            "Asia/../UTC",
        ] {
            assert_eq!(Zone::named(wrong), None, "{wrong}");
        }
        assert_eq!(zone("Asia/Shanghai").offset(NOW), "UTC+08:00");
        assert_eq!(zone("America/St_Johns").offset(NOW), "UTC-02:30");
        assert_eq!(zone("UTC").offset(NOW), "UTC+00:00");
    }
}
