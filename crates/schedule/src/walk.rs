//! Civil times in a zone, by the rule of Debian's cron.
//!
//! The clocks of a zone are a row of segments of one offset. In each, civil time grows with real time. *Fixed* times
//! belong to the segment that shows them first: what the change before it skipped (the gap) is due at its begin, and
//! what it shows again (the fold) belongs to the segment before. Other times belong to each segment that shows them.
//! All numbers are seconds since 1970-01-01T00:00, real ones in UTC, civil ones on the clock of the zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use soloist_domain::tick::Note;

use crate::cron::Cron;

/// 1900-01-01: no tick is due earlier.
pub(crate) const EARLIEST: i64 = -2_208_988_800;
/// 2400-01-01: no tick is due later. In 400 years, every date has been on every weekday that it can have.
pub(crate) const LATEST: i64 = 13_569_465_600;
/// A longer jump of the clocks is a correction: what it skips is not due.
const CORRECTION: i64 = 3 * 3_600;

/// An instant that is neither long before the first nor long after the last tick.
pub(crate) fn clamp(instant: i64) -> i64 {
    instant.clamp(EARLIEST - 1, LATEST + 1)
}

/// A time between two changes of a zone's clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// When the clocks were changed; `None`: they never were.
    pub(crate) start: Option<i64>,
    /// The offset before.
    before: i64,
    /// The offset in it.
    pub(crate) offset: i64,
    /// When they are changed again.
    end: Option<i64>,
    /// The offset after that.
    after: i64,
}

fn stamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(clamp(seconds)).unwrap_or_default()
}

fn offset(zone: &TimeZone, at: i64) -> i64 {
    i64::from(zone.to_offset(stamp(at)).seconds())
}

/// The first change later than `at`, and the offset from then on.
fn change_after(zone: &TimeZone, at: i64) -> Option<(i64, i64)> {
    let found = zone.following(stamp(at)).next()?;
    let start = found.timestamp().as_second();
    (start <= LATEST).then(|| (start, i64::from(found.offset().seconds())))
}

/// The last change before `at`, or at it.
fn change_until(zone: &TimeZone, at: i64) -> Option<(i64, i64)> {
    let found = zone.preceding(stamp(at + 1)).next()?;
    let start = found.timestamp().as_second();
    (start >= EARLIEST).then(|| (start, i64::from(found.offset().seconds())))
}

impl Segment {
    /// The one that `at` is in.
    pub(crate) fn at(zone: &TimeZone, at: i64) -> Self {
        let (start, now) = match change_until(zone, at) {
            Some((start, now)) => (Some(start), now),
            None => (None, offset(zone, at)),
        };
        let before = start.map_or(now, |start| offset(zone, start - 1));
        let (end, after) = change_after(zone, at).map_or((None, now), |(end, o)| (Some(end), o));
        Self { start, before, offset: now, end, after }
    }

    /// The one after it.
    pub(crate) fn next(&self, zone: &TimeZone) -> Option<Self> {
        let start = self.end?;
        let now = self.after;
        let (end, after) = change_after(zone, start).map_or((None, now), |(e, o)| (Some(e), o));
        Some(Self { start: Some(start), before: self.offset, offset: now, end, after })
    }

    /// The one before it.
    fn previous(&self, zone: &TimeZone) -> Option<Self> {
        let end = self.start?;
        let now = self.before;
        let start = change_until(zone, end - 1).map(|(start, _)| start);
        let before = start.map_or(now, |start| offset(zone, start - 1));
        Some(Self { start, before, offset: now, end: Some(end), after: self.offset })
    }

    /// What its clock shows first.
    fn first(&self) -> i64 {
        self.start.map_or(i64::MIN, |start| start + self.offset)
    }

    /// What the clock would have shown at its begin without the change.
    fn unchanged(&self) -> i64 {
        self.start.map_or(i64::MIN, |start| start + self.before)
    }

    /// What the clock would show at its end without the next change: all of its times are earlier.
    fn limit(&self) -> i64 {
        self.end.map_or(i64::MAX, |end| end + self.offset)
    }

    /// The first civil time that belongs to it.
    fn from(&self, fixed: bool) -> i64 {
        let gap = self.offset - self.before;
        if fixed && gap <= CORRECTION { self.unchanged() } else { self.first() }
    }

    /// The tick of the civil time `civil`, which belongs to this segment.
    fn hit(&self, cron: &Cron, civil: i64) -> Hit {
        if let Some(start) = self.start.filter(|_| civil < self.first()) {
            let (offset, note) = (self.before, Some(Note::Gap));
            return Hit { due: start, civil, offset, note, again: false };
        }
        let twice = self.end.is_some_and(|end| civil >= end + self.after);
        Hit {
            due: civil - self.offset,
            civil,
            offset: self.offset,
            note: (cron.fixed && twice).then_some(Note::Fold),
            again: !cron.fixed && civil < self.unchanged(),
        }
    }
}

/// A time at which an expression is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// When.
    pub(crate) due: i64,
    /// The civil time that was wanted.
    pub(crate) civil: i64,
    /// Its offset; in a gap the one before the change.
    pub(crate) offset: i64,
    /// Why it is not at its plain civil time.
    pub(crate) note: Option<Note>,
    /// The clock shows this civil time for the second time.
    pub(crate) again: bool,
}

/// The first time later than `instant` at which `cron` is due.
pub(crate) fn after(cron: &Cron, zone: &TimeZone, instant: i64) -> Option<Hit> {
    let instant = clamp(instant);
    let mut segment = Segment::at(zone, instant);
    let mut from = (instant + segment.offset + 1).max(segment.from(cron.fixed));
    loop {
        let found = cron.next(from);
        if let Some(civil) = found.filter(|civil| *civil < segment.limit()) {
            return Some(segment.hit(cron, civil)).filter(|hit| hit.due <= LATEST);
        }
        segment = segment.next(zone)?;
        let begins = segment.from(cron.fixed);
        // Nothing later on the calendar, and the clocks show nothing again.
        if found.is_none() && begins >= from {
            return None;
        }
        from = begins;
    }
}

/// The last time at which `cron` is due, not later than `instant`.
pub(crate) fn until(cron: &Cron, zone: &TimeZone, instant: i64) -> Option<Hit> {
    let instant = clamp(instant);
    let mut segment = Segment::at(zone, instant);
    let mut to = instant + segment.offset;
    loop {
        let found = cron.previous(to);
        let from = segment.from(cron.fixed);
        if let Some(civil) = found.filter(|civil| *civil >= from) {
            // Of several in a gap, and at its end, the first gives the name.
            let first = if civil <= segment.first() { cron.next(from) } else { None };
            let hit = segment.hit(cron, first.unwrap_or(civil));
            return Some(hit).filter(|hit| hit.due >= EARLIEST);
        }
        segment = segment.previous(zone)?;
        let ends = segment.limit() - 1;
        if found.is_none() && ends <= to {
            return None;
        }
        to = ends;
    }
}

/// When a clock of `zone` shows `civil`, or the end of the gap that skips it.
pub(crate) fn instants(zone: &TimeZone, civil: i64) -> Vec<i64> {
    // No offset is more than a day.
    let mut segment = Some(Segment::at(zone, civil - 86_400));
    let mut found = Vec::new();
    while let Some(now) = segment.filter(|now| now.start.is_none_or(|s| s <= civil + 86_400)) {
        if civil < now.limit() && civil >= now.first() {
            found.push(civil - now.offset);
        }
        if let Some(start) = now.start.filter(|_| (now.unchanged()..now.first()).contains(&civil)) {
            found.push(start);
        }
        segment = now.next(zone);
    }
    found
}
