//! The last day of a source: a bar for each quarter of an hour, as high as what was done in it, and what failed on top.

use askama::Template;

use soloist_domain::throughput::{STEP, STEPS};
use soloist_domain::time::{StoreTime, signed_millis};
use soloist_view::day::Step;
use soloist_view::words::{Language, Piece, grouped, minute, phrase};

/// The box of the picture: [`STEPS`] bars, each so wide.
const WIDE: u64 = 10;
const HEIGHT: u64 = 64;

/// The picture and what it says.
#[derive(Template)]
#[template(path = "parts/day.html")]
pub struct Day {
    bars: Vec<Bar>,
    /// When the picture begins and ends.
    from: Vec<Piece>,
    to: Vec<Piece>,
    /// How much was done, and since when that is known.
    said: Vec<Piece>,
}

struct Bar {
    kind: &'static str,
    x: u64,
    y: u64,
    width: u64,
    height: u64,
    title: Vec<Piece>,
}

impl Day {
    /// Draws `steps`, of which the last is under way at `now`; `None` if there are none.
    #[must_use]
    pub fn of(steps: &[Step], now: StoreTime, lang: Language) -> Option<Self> {
        let (first, last) = (steps.first()?, steps.last()?);
        let length = signed_millis(STEP);
        let begins = last.from.0 - length * (STEPS - 1);
        let top = steps.iter().map(|step| step.finished + step.failed).max().unwrap_or(0).max(1);
        let mut bars = Vec::new();
        for step in steps {
            let nth = u64::try_from((step.from.0 - begins) / length).unwrap_or(0);
            let number = |n: u64| Piece::text(grouped(n));
            let at = minute(lang, step.from, now);
            let args = [("at", at), ("n", number(step.finished)), ("m", number(step.failed))];
            let title = phrase(lang, "day-step", &args);
            // What is there is seen.
            let high = |n: u64| if n == 0 { 0 } else { (n * HEIGHT / top).max(2) };
            let (done, failed) = (high(step.finished), high(step.failed));
            let bar = |kind, y, height| Bar {
                kind,
                x: nth * WIDE,
                y,
                width: WIDE - 2,
                height,
                title: title.clone(),
            };
            bars.extend((done > 0).then(|| bar("done", HEIGHT - done.min(HEIGHT), done)));
            let y = HEIGHT.saturating_sub(done + failed);
            bars.extend((failed > 0).then(|| bar("failed", y, failed)));
        }
        let sum = |of: fn(&Step) -> u64| grouped(steps.iter().map(of).sum::<u64>());
        let args = [
            ("done", Piece::strong(sum(|step| step.finished))),
            ("failed", Piece::strong(sum(|step| step.failed))),
            ("since", minute(lang, first.from, now)),
        ];
        let said = phrase(lang, "day-said", &args);
        Some(Self {
            bars,
            from: vec![minute(lang, StoreTime(begins), now)],
            to: vec![minute(lang, now, now)],
            said,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_view::words::plain;

    #[test]
    fn the_highest_bar_fills_the_picture_and_little_is_still_seen() {
        let step =
            |nth: i64, finished, failed| Step { from: StoreTime(nth * 900_000), finished, failed };
        let steps = [step(1_000, 990, 10), step(1_001, 1, 0), step(1_003, 0, 0)];
        let day = Day::of(&steps, StoreTime(1_003 * 900_000 + 5_000), Language::En).expect("a day");
        let told: Vec<_> =
            day.bars.iter().map(|bar| (bar.kind, bar.x, bar.y, bar.height)).collect();
        assert_eq!(told, [("done", 920, 1, 63), ("failed", 920, 0, 2), ("done", 930, 62, 2)]);
        let said = plain(&day.said);
        assert!(said.contains("991") && said.contains("10"), "{said}");
        assert_eq!(
            plain(&day.bars[2].title).split_once(": ").expect("an instant").1,
            "1 done, 0 tries failed"
        );
        assert!(Day::of(&[], StoreTime(0), Language::En).is_none());
    }
}
