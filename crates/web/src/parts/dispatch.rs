//! Fragments of dispatch: the row of a source, the table of collectors, the line of counters above them.
//!
//! They stand in the page and in every push. Lists are cut here: a page shows what a person can look through, or more
//! when it is asked for all; the API lists all.

use std::fmt::Write as _;

use askama::Template;

use super::render;
use crate::assets;
use soloist_store::dispatch::{CollectorView, SourceView};
use soloist_view::pace::Pace;
use soloist_view::source::{SourceWords, ago};
use soloist_view::words::{
    Arg, Language, Piece, duration, exactly, grouped, phrase, say, until, visible,
};

/// How much a page shows of its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What a person can look through.
    Some,
    /// All, as far as a browser bears it.
    All,
}

impl Extent {
    /// Sources on the page.
    #[must_use]
    pub fn sources(self) -> usize {
        if self == Self::All { MOST } else { 60 }
    }

    /// Collectors on the page.
    #[must_use]
    pub fn collectors(self) -> usize {
        if self == Self::All { MOST } else { 50 }
    }
}

/// Rows that a browser bears.
const MOST: usize = 1_000;
/// How many of the tasks that a collector holds are shown.
const HOLDS_SHOWN: usize = 3;
/// Characters of a key in a list.
const KEY_SHOWN: usize = 60;
/// The box of a sparkline.
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 28.0;

/// A source.
#[derive(Template)]
#[template(path = "parts/source_row.html")]
pub struct SourceRow<'a> {
    source: &'a SourceView,
    shown: SourceWords,
    pace: Option<Sparkline>,
    lang: Language,
    /// Whether the reader may act.
    operator: bool,
}

/// The rate of a source as a picture and in words.
struct Sparkline {
    /// Path data in a box of [`WIDTH`] by [`HEIGHT`].
    area: String,
    line: String,
    starts: String,
    rate: String,
    label: String,
}

impl<'a> SourceRow<'a> {
    /// Puts the row together.
    #[must_use]
    pub fn new(
        source: &'a SourceView,
        pace: Option<&Pace>,
        lang: Language,
        operator: bool,
    ) -> Self {
        let pace = pace.map(|pace| Sparkline::of(source.name.as_str(), pace, lang));
        Self { source, shown: SourceWords::of(source, lang), pace, lang, operator }
    }

    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }

    /// A message about this source.
    fn of(&self, id: &str) -> String {
        say(self.lang, id, &[("source", Arg::from(self.source.name.as_str()))])
    }

    fn icon(&self) -> String {
        format!("{}#source-{}", assets::url("icons.svg"), self.shown.state)
    }

    fn number(&self, n: &u64) -> String {
        grouped(*n)
    }

    fn of_cap(&self) -> Option<String> {
        let cap = grouped(self.source.rules.cap?.into());
        Some(say(self.lang, "figure-of-cap", &[("cap", Arg::from(cap))]))
    }

    fn blocked(&self) -> bool {
        self.source.blocked_until > self.source.now
    }

    /// For how long a source can be blocked from the row: the value, and in words.
    fn blocks(&self) -> Vec<(&'static str, String)> {
        [("1m", 60), ("10m", 600), ("1h", 3_600), ("1d", 86_400)]
            .map(|(value, seconds)| {
                (value, exactly(self.lang, std::time::Duration::from_secs(seconds)))
            })
            .to_vec()
    }
}

impl Sparkline {
    fn of(source: &str, pace: &Pace, lang: Language) -> Self {
        let most = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
        let (finished, started) = (most(&pace.finished), most(&pace.started));
        let top = finished.max(started).max(f64::MIN_POSITIVE);
        let line = path(&pace.finished, top);
        let label = [
            ("source", Arg::from(source)),
            ("rate", Arg::from(rate(pace.now))),
            ("span", Arg::from(duration(lang, pace.span))),
            ("most", Arg::from(rate(finished))),
            ("starts", Arg::from(rate(started))),
        ];
        Self {
            area: format!("{line}V{HEIGHT}H0Z"),
            starts: path(&pace.started, top),
            rate: say(lang, "pace-now", &[("rate", Arg::from(rate(pace.now)))]),
            label: say(lang, "pace-label", &label),
            line,
        }
    }
}

/// A line through `rates`, the greatest of which may be `top`, over the whole width.
fn path(rates: &[f64], top: f64) -> String {
    let mut path = String::new();
    let steps = u32::try_from(rates.len().saturating_sub(1)).unwrap_or(u32::MAX).max(1);
    for (nth, rate) in (0..).zip(rates) {
        let x = WIDTH * f64::from(nth) / f64::from(steps);
        // Half a stroke stays inside of the box.
        let y = HEIGHT - 1.0 - (HEIGHT - 2.0) * rate / top;
        let command = if nth == 0 { 'M' } else { 'L' };
        // Writing to a String cannot fail.
        write!(path, "{command}{x:.1} {y:.1}").ok();
    }
    if rates.len() == 1 {
        write!(path, "H{WIDTH}").ok();
    }
    path
}

/// `0.4`, `12.3`, `1,204`: no more digits than can be told apart.
fn rate(rate: f64) -> String {
    if rate < 99.95 {
        let text = format!("{rate:.1}");
        return text.strip_suffix(".0").unwrap_or(&text).to_owned();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded for people"
    )]
    grouped(rate.round() as u64)
}

/// A key as lists show it.
pub(crate) fn short_key(key: &str) -> String {
    let short: String = key.chars().take(KEY_SHOWN).collect();
    let cut = if short.len() < key.len() { "…" } else { "" };
    format!("{}{cut}", visible(&short))
}

/// All collectors that ask for work.
#[derive(Template)]
#[template(path = "parts/collectors.html")]
pub struct Collectors {
    rows: Vec<CollectorRow>,
    more: Option<String>,
    lang: Language,
}

struct CollectorRow {
    name: String,
    seen: Vec<Piece>,
    /// Id, key and source of a few.
    holds: Vec<(String, String, String)>,
    more: Option<String>,
    end: Option<Vec<Piece>>,
}

impl Collectors {
    /// Collectors that hold something come first, then the latest.
    #[must_use]
    pub fn new(
        collectors: &[CollectorView],
        now: soloist_domain::time::Stamp,
        lang: Language,
        extent: Extent,
    ) -> Self {
        let mut order: Vec<&CollectorView> = collectors.iter().collect();
        order.sort_by_key(|c| (c.in_flight == 0, if c.in_flight == 0 { -c.seen.0 } else { 0 }));
        let left = order.len().saturating_sub(extent.collectors());
        let rows = order.iter().take(extent.collectors()).map(|collector| {
            let shown = collector.holds.iter().take(HOLDS_SHOWN);
            let hidden = collector.in_flight.saturating_sub(shown.len() as u64);
            let end = collector.holds.first().map(|(_, _, _, end)| {
                let left = until(lang, end.floor(), now.floor());
                phrase(lang, "collector-ends-in", &[("left", left)])
            });
            CollectorRow {
                name: collector.name.to_string(),
                seen: ago(lang, collector.seen, now),
                holds: shown
                    .map(|(id, key, source, _)| (id.0.clone(), short_key(key), source.to_string()))
                    .collect(),
                more: (hidden > 0)
                    .then(|| say(lang, "collector-more", &[("n", Arg::from(grouped(hidden)))])),
                end,
            }
        });
        Self { rows: rows.collect(), more: more(lang, "collectors-more", left), lang }
    }

    fn say(&self, id: &str) -> String {
        say(self.lang, id, &[])
    }
}

/// How many a list leaves out.
#[must_use]
pub fn more(lang: Language, id: &str, left: usize) -> Option<String> {
    let n = i64::try_from(left).unwrap_or(i64::MAX);
    (n > 0).then(|| say(lang, id, &[("n", Arg::from(n))]))
}

/// The line above the rows.
#[derive(Template)]
#[template(path = "parts/summary.html")]
pub struct Totals {
    counters: Vec<super::Counter>,
}

impl Totals {
    /// Counts over all sources.
    #[must_use]
    pub fn new(sources: &[&SourceView], lang: Language) -> Self {
        let sum = |count: fn(&SourceView) -> u64| sources.iter().map(|source| count(source)).sum();
        let totals: [(&str, &str, u64); 6] = [
            ("sources", "count-sources", sources.len() as u64),
            ("ready", "count-ready", sum(|source| source.ready)),
            ("flight", "count-flight", sum(|source| source.in_flight)),
            ("due", "count-due", sum(|source| source.due)),
            ("dead", "count-dead", sum(|source| source.dead)),
            ("done", "count-done", sum(|source| source.done)),
        ];
        let counter = |(state, id, n): (&'static str, &str, u64)| {
            let count = Piece::Number(i64::try_from(n).unwrap_or(i64::MAX));
            let args = [("n", Piece::strong(grouped(n))), ("count", count)];
            super::Counter::plain(state, phrase(lang, id, &args))
        };
        Self { counters: totals.map(counter).into() }
    }
}

/// A row, as text for a push.
#[must_use]
pub fn source_row(
    source: &SourceView,
    pace: Option<&Pace>,
    lang: Language,
    operator: bool,
) -> String {
    render(&SourceRow::new(source, pace, lang, operator))
}

/// The table, as text for a push.
#[must_use]
pub fn collectors(
    collectors: &[CollectorView],
    now: soloist_domain::time::Stamp,
    lang: Language,
    extent: Extent,
) -> String {
    render(&Collectors::new(collectors, now, lang, extent))
}

/// The line, as text for a push.
#[must_use]
pub fn totals(sources: &[&SourceView], lang: Language) -> String {
    render(&Totals::new(sources, lang))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_digits_that_matter() {
        for (r, text) in [(0.0, "0"), (0.04, "0"), (0.36, "0.4"), (12.0, "12"), (99.96, "100")] {
            assert_eq!(rate(r), text);
        }
        assert_eq!(rate(4_321.4), "4,321");
    }

    #[test]
    fn a_line_stays_inside_of_its_box_and_spans_it() {
        assert_eq!(path(&[0.0, 5.0, 10.0], 10.0), "M0.0 27.0L60.0 14.0L120.0 1.0");
        assert_eq!(path(&[0.0], f64::MIN_POSITIVE), "M0.0 27.0H120");
    }

    #[test]
    fn a_long_key_is_cut_between_characters() {
        let long = "键".repeat(100);
        assert_eq!(short_key(&long).chars().count(), KEY_SHOWN + 1);
        assert_eq!(short_key("a"), "a");
    }
}
