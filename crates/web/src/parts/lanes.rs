//! The last turns of a rotation as a picture: a lane for each type, a bar for each turn, and the gaps between them.
//!
//! Places are percentages of the width, so that one rendering fits a phone and a wide window without stretching words.
//! A silence much longer than a turn usually takes is cut out, and the cut is shown: else a night would squeeze the turns
//! of a day into nothing. It decides no words beyond durations and outcomes; instants are said beside the picture, where a
//! browser can say them in its own zone.

use std::time::Duration;

use askama::Template;

use soloist_domain::name::TypeName;
use soloist_domain::time::Stamp;
use soloist_store::rotation::RotationView;
use soloist_view::words::{Arg, Language, exactly, say};

/// Turns that are shown, the present one besides.
pub const TURNS_SHOWN: usize = 40;
/// With more types than this only those that have held a turn get a lane.
const LANES: usize = 12;
/// Heights, in pixels.
const LANE: usize = 38;
const AXIS: usize = 20;
/// A bar is never narrower, in thousandths of a per cent.
const NARROWEST: i128 = 300;
/// A silence longer than this many usual turns is cut out.
const CUT_AT: i64 = 8;
/// Distances of the marks below the lanes, in milliseconds.
const STEPS: [u64; 22] = [
    1, 5, 10, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000,
    300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000,
];

/// A turn to draw, or to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) token: u64,
    pub(super) kind: TypeName,
    pub(super) worker: String,
    pub(super) since: Stamp,
    /// `None`: it is held now.
    pub(super) ended: Option<Stamp>,
    /// `now`, `done`, `empty`, `failed` or `lost`.
    pub(super) outcome: &'static str,
}

impl Drawn {
    /// How it ended, in words.
    pub(super) fn word(&self, lang: Language) -> String {
        let id = match self.outcome {
            "done" => "turn-done",
            "empty" => "turn-empty",
            "failed" => "turn-failed",
            "lost" => "turn-lost",
            _ => "turn-had",
        };
        say(lang, id, &[])
    }

    fn end(&self, now: Stamp) -> Stamp {
        self.ended.unwrap_or(now).max(self.since)
    }
}

/// The newest `most` turns of `view` that have ended, and the present one; oldest first.
pub(super) fn turns(view: &RotationView, most: usize) -> Vec<Drawn> {
    let past = view.past.iter().take(most).rev().map(|turn| Drawn {
        token: turn.token.0,
        kind: turn.kind.clone(),
        worker: turn.worker.to_string(),
        since: turn.since,
        ended: Some(turn.ended),
        outcome: turn.ending.as_str(),
    });
    let present = view.ring.turn.iter().map(|turn| Drawn {
        token: turn.token.0,
        kind: turn.kind.clone(),
        worker: turn.worker.to_string(),
        since: turn.since,
        ended: None,
        outcome: "now",
    });
    past.chain(present).collect()
}

/// The picture.
#[derive(Template)]
#[template(path = "parts/lanes.html")]
pub(super) struct Lanes {
    label: String,
    gap_label: String,
    height: usize,
    bottom: usize,
    lanes: Vec<Lane>,
    gaps: Vec<Bar>,
    bars: Vec<Bar>,
    cuts: Vec<Mark>,
    ticks: Vec<Mark>,
}

struct Lane {
    name: String,
    text: usize,
    rail: usize,
}

struct Bar {
    token: u64,
    outcome: &'static str,
    x: String,
    width: String,
    y: usize,
    title: String,
}

struct Mark {
    x: String,
    text: String,
}

impl Lanes {
    /// Draws `turns` (oldest first) of `view` as they were at `now`; `None` when there is nothing to draw.
    pub(super) fn of(
        view: &RotationView,
        turns: &[Drawn],
        now: Stamp,
        lang: Language,
    ) -> Option<Self> {
        let scale = Scale::of(turns, now)?;
        let kinds = kinds(view, turns);
        let top = |kind: &TypeName| kinds.iter().position(|k| k == kind).unwrap_or_default() * LANE;
        let lanes = kinds.iter().enumerate().map(|(nth, kind)| Lane {
            name: kind.to_string(),
            text: nth * LANE + 12,
            rail: nth * LANE + 25,
        });
        let bars = turns.iter().map(|turn| {
            let lasted = turn.end(now).since(turn.since);
            let title = [
                ("kind", Arg::from(turn.kind.as_str())),
                ("ended", Arg::from(turn.word(lang))),
                ("lasted", Arg::from(about(lang, lasted))),
                ("worker", Arg::from(turn.worker.as_str())),
            ];
            let (x, width) = scale.span(turn.since, turn.end(now));
            Bar {
                token: turn.token,
                outcome: turn.outcome,
                x,
                width,
                y: top(&turn.kind) + 18,
                title: say(lang, "turn-bar", &title),
            }
        });
        let gap = view.rules.min_gap;
        let gaps = turns.iter().filter(|_| !gap.is_zero()).map(|turn| {
            let (x, width) = scale.span(turn.since, turn.since + gap);
            let y = top(&turn.kind) + 34;
            Bar { token: turn.token, outcome: "gap", x, width, y, title: String::new() }
        });
        let n = i64::try_from(turns.len()).unwrap_or(i64::MAX);
        let name = ("rotation", Arg::from(view.name.as_str()));
        let bottom = kinds.len() * LANE + 4;
        Some(Self {
            label: say(lang, "turns-picture", &[("n", Arg::from(n)), name]),
            gap_label: say(lang, "turn-least-gap", &[]),
            height: bottom + AXIS,
            bottom,
            lanes: lanes.collect(),
            gaps: gaps.collect(),
            bars: bars.collect(),
            cuts: scale.cuts(lang),
            ticks: scale.ticks(lang),
        })
    }
}

/// Which types have a lane: those of the rules in their order, then those that are gone.
fn kinds(view: &RotationView, turns: &[Drawn]) -> Vec<TypeName> {
    let had = |kind: &TypeName| turns.iter().any(|turn| turn.kind == *kind);
    let few = view.rules.types.len() <= LANES;
    let ruled = view.rules.types.iter().map(|kind| &kind.name);
    let mut kinds: Vec<TypeName> = ruled.filter(|kind| few || had(kind)).cloned().collect();
    for turn in turns {
        if !kinds.contains(&turn.kind) {
            kinds.push(turn.kind.clone());
        }
    }
    kinds
}

/// A duration that was measured: no more digits than matter.
pub(super) fn about(lang: Language, length: Duration) -> String {
    let micros = length.as_micros();
    let unit = match micros {
        0..1_000 => return exactly(lang, Duration::from_millis(u64::from(micros > 0))),
        1_000..1_000_000 => 1_000,
        1_000_000..10_000_000 => 10_000,
        10_000_000..60_000_000 => 100_000,
        _ => 1_000_000,
    };
    let rounded = Duration::from_micros(u64::try_from(micros / unit * unit).unwrap_or(u64::MAX));
    match unit {
        1_000_000 => soloist_view::words::duration(lang, rounded),
        _ => exactly(lang, rounded),
    }
}

/// Where instants are on a line that leaves out long silences.
struct Scale {
    /// From, to, and where it begins on the line; in microseconds.
    stretches: Vec<(i64, i64, i64)>,
    length: i64,
}

impl Scale {
    fn of(turns: &[Drawn], now: Stamp) -> Option<Self> {
        let first = turns.first()?.since.0;
        let mut between: Vec<i64> =
            turns.windows(2).map(|pair| pair[1].since.0 - pair[0].since.0).collect();
        between.sort_unstable();
        let usual = between.get(between.len() / 2).copied().unwrap_or(0).max(1_000);
        // Two or three do not show what is usual.
        let longest = if between.len() < 3 { i64::MAX } else { usual.saturating_mul(CUT_AT) };
        let (mut stretches, mut from, mut begins) = (Vec::new(), first, 0);
        for pair in turns.windows(2) {
            let (end, next) = (pair[0].end(now).0, pair[1].since.0);
            if next.saturating_sub(end) > longest {
                stretches.push((from, end, begins));
                begins += end - from + usual;
                from = next;
            }
        }
        let end = turns.last()?.end(now).0;
        stretches.push((from, end, begins));
        Some(Self { stretches, length: (begins + end - from).max(1) })
    }

    fn at(&self, instant: Stamp) -> i64 {
        let before = self.stretches.iter().rev().find(|(from, ..)| *from <= instant.0);
        before.map_or(0, |(from, to, begins)| begins + instant.0.min(*to) - from)
    }

    /// In thousandths of a per cent.
    fn place(&self, at: i64) -> i128 {
        i128::from(at) * 100_000 / i128::from(self.length)
    }

    /// Where something begins, and how wide it is.
    fn span(&self, from: Stamp, to: Stamp) -> (String, String) {
        let (begins, ends) = (self.place(self.at(from)), self.place(self.at(to)));
        let width = (ends - begins).max(NARROWEST);
        (percent(begins.min(100_000 - width)), percent(width))
    }

    /// The middle of each cut.
    fn cuts(&self, lang: Language) -> Vec<Mark> {
        let cut = |pair: &[(i64, i64, i64)]| {
            let (from, to, begins) = pair[0];
            let (next, _, resumes) = pair[1];
            let silence = Stamp(next).since(Stamp(to));
            Mark {
                x: percent(self.place((begins + to - from + resumes) / 2)),
                text: say(lang, "turn-silence", &[("time", Arg::from(about(lang, silence)))]),
            }
        };
        self.stretches.windows(2).map(cut).collect()
    }

    /// Marks before the end of the line, as far as nothing is cut out.
    fn ticks(&self, lang: Language) -> Vec<Mark> {
        let Some((from, to, _)) = self.stretches.last() else { return Vec::new() };
        let step = STEPS.iter().find(|step| self.length / micros(**step) < 7);
        let step = step.copied().unwrap_or(STEPS[STEPS.len() - 1]);
        let places = (1..7).map(|nth| (nth * step, self.length - micros(nth * step)));
        places
            .take_while(|(back, _)| to - micros(*back) >= *from)
            .map(|(back, at)| (back, self.place(at)))
            // Words at the very edge would be cut.
            .filter(|(_, place)| (5_000..96_000).contains(place))
            .map(|(back, place)| Mark {
                x: percent(place),
                text: format!("−{}", exactly(lang, Duration::from_millis(back))),
            })
            .collect()
    }
}

fn micros(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000)
}

fn percent(place: i128) -> String {
    format!("{}.{:03}%", place / 1_000, place % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_view::fixtures::rotation::{NOW, every_state};

    fn drawn(begins: i64, ends: i64) -> Drawn {
        let kind = TypeName::new("a").expect("a valid name");
        let (since, ended) = (Stamp(begins * 1_000), Some(Stamp(ends * 1_000)));
        Drawn { token: 1, kind, worker: "w".to_owned(), since, ended, outcome: "done" }
    }

    #[test]
    fn places_are_shares_of_the_time_from_the_first_start_to_the_last_end() {
        let scale = Scale::of(&[drawn(1_000, 1_100), drawn(1_500, 2_000)], Stamp(0)).expect("one");
        assert_eq!(scale.span(Stamp(1_000_000), Stamp(1_100_000)).0, "0.000%");
        assert_eq!(
            scale.span(Stamp(1_500_000), Stamp(2_000_000)),
            ("50.000%".to_owned(), "50.000%".to_owned())
        );
        assert!(scale.cuts(Language::En).is_empty());
        let ticks: Vec<_> =
            scale.ticks(Language::En).into_iter().map(|tick| (tick.x, tick.text)).collect();
        assert_eq!(ticks[0], ("75.000%".to_owned(), "−250 ms".to_owned()));
        assert_eq!(ticks.len(), 3);
    }

    #[test]
    fn a_night_between_turns_is_cut_out_and_said() {
        let day = 86_400_000;
        let turns = [drawn(0, 10), drawn(100, 110), drawn(200, 210), drawn(day, day + 10)];
        let scale = Scale::of(&turns, Stamp(0)).expect("one");
        assert_eq!(scale.length, 210_000 + 100_000 + 10_000);
        assert_eq!(scale.at(Stamp(day * 1_000)), 310_000);
        let cuts = scale.cuts(Language::En);
        assert_eq!(cuts.len(), 1);
        assert_eq!(cuts[0].text, "no turn for 23 h 59 min");
        // An instant in the silence is where the cut begins.
        assert_eq!(scale.at(Stamp(1_000_000)), 210_000);
    }

    #[test]
    fn a_short_turn_at_the_end_is_still_to_be_seen() {
        let scale = Scale::of(&[drawn(0, 1_000_000), drawn(1_000_000, 1_000_000)], Stamp(0));
        let (x, width) = scale.expect("one").span(Stamp(1_000_000_000), Stamp(1_000_000_000));
        assert_eq!((x.as_str(), width.as_str()), ("99.700%", "0.300%"));
    }

    #[test]
    fn every_type_has_a_lane_and_every_turn_a_bar() {
        let view = every_state().remove(0);
        let turns = turns(&view, TURNS_SHOWN);
        let lanes = Lanes::of(&view, &turns, NOW, Language::En).expect("a picture");
        let names: Vec<_> = lanes.lanes.iter().map(|lane| lane.name.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!(lanes.bars.len(), turns.len());
        assert_eq!(lanes.bars.last().expect("the present").outcome, "now");
        assert_eq!(lanes.cuts.len(), 1);
    }

    #[test]
    fn measured_times_have_the_digits_that_matter() {
        for (micros, text) in [
            (0, "0 s"),
            (400, "1 ms"),
            (1_234, "1 ms"),
            (1_234_567, "1.23 s"),
            (12_345_678, "12.3 s"),
            (125_000_000, "2 min"),
        ] {
            assert_eq!(about(Language::En, Duration::from_micros(micros)), text);
        }
    }
}
