//! Places in the picture: thousandths of a per cent of its width.

use std::time::Duration;

use super::super::lanes::about;
use super::{Bar, Extent, Mark};
use soloist_domain::time::StoreTime;
use soloist_view::words::{Arg, Language, say};

/// In thousandths of a per cent: a bar is never narrower, and bars of one kind that lie closer are one.
const NARROWEST: i64 = 250;
const CLOSE: i64 = 120;

/// From, to, hue and kind.
pub(in crate::parts) type Stretch = (i64, i64, &'static str, &'static str);

/// Neighbours alike that lie closer than `close` are one.
pub(in crate::parts) fn joined(all: Vec<Stretch>, close: i64) -> Vec<Stretch> {
    let mut kept: Vec<Stretch> = Vec::new();
    for (from, to, hue, kind) in all {
        match kept.last_mut() {
            Some(last) if (last.2, last.3) == (hue, kind) && from - last.1 <= close => {
                last.1 = last.1.max(to);
            }
            _ => kept.push((from, to, hue, kind)),
        }
    }
    kept
}

/// From one instant to another.
pub(super) struct Scale {
    pub(super) from: StoreTime,
    pub(super) to: StoreTime,
}

impl Scale {
    /// In thousandths of a per cent.
    pub(super) fn place(&self, at: StoreTime) -> i64 {
        let length = (self.to.0 - self.from.0).max(1);
        (at.0 - self.from.0).clamp(0, length).saturating_mul(100_000) / length
    }

    pub(super) fn piece(
        &self,
        from: StoreTime,
        to: Option<StoreTime>,
        hue: &'static str,
        kind: &'static str,
    ) -> Stretch {
        (self.place(from), self.place(to.unwrap_or(self.to)), hue, kind)
    }

    pub(super) fn bars(&self, pieces: Vec<Stretch>, lang: Language) -> Vec<Bar> {
        let length = self.to.0 - self.from.0;
        let bar = |(from, to, hue, kind): Stretch| {
            let width = (to - from).max(NARROWEST);
            let ms = u64::try_from((to - from) * (length / 1_000) / 100).unwrap_or(0);
            Bar {
                x: percent(from.min(100_000 - width)),
                width: percent(width),
                hue,
                kind,
                title: about(lang, Duration::from_millis(ms)),
            }
        };
        joined(pieces, CLOSE).into_iter().map(bar).collect()
    }

    pub(super) fn ticks(&self, extent: Extent, lang: Language) -> Vec<Mark> {
        let (unit, step, id) = extent.steps();
        let mark = |place, text, anchor| Mark {
            place,
            x: percent(place),
            text,
            y: 0,
            title: String::new(),
            anchor,
        };
        let tick = |nth: i64| {
            let at = StoreTime(self.to.0 - nth * step * unit);
            let text = say(lang, id, &[("n", Arg::from(nth * step))]);
            (at > self.from).then(|| mark(self.place(at), text, "middle"))
        };
        let now = mark(100_000, say(lang, "hold-now", &[]), "end");
        (1..4).filter_map(tick).chain([now]).collect()
    }
}

pub(super) fn percent(place: i64) -> String {
    format!("{}.{:03}%", place / 1_000, place % 1_000)
}
