//! The last hour of a job in its row: a bar for each node that held it, and where no node did although one should.
//!
//! Places are seconds since `base`, so that a script moves the picture by its view box alone while time passes.

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;

use super::holders::{Bar, hue, joined};
use soloist_domain::time::StoreTime;
use soloist_domain::timeline::Timeline;
use soloist_domain::timeline::tell::Why;
use soloist_view::words::{Arg, Language, duration, say};

/// The whole width, in seconds.
const HOUR: i64 = 3_600;
/// What goes on is drawn far beyond now, where it comes into sight later.
const BEYOND: i64 = 24 * HOUR;
/// Bars of one kind that lie closer are one: the difference cannot be seen.
const CLOSE: i64 = 15_000;

/// The picture.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/strip_svg.html")]
pub struct Strip {
    /// Where zero is, in milliseconds since 1970.
    base: i64,
    label: String,
    bars: Vec<Bar>,
}

/// The picture, as text for a push.
#[must_use]
pub fn svg(strip: &Strip) -> String {
    super::render(strip)
}

impl Strip {
    /// Draws the last hour before `now`.
    #[must_use]
    pub fn of(line: &Timeline, now: StoreTime, lang: Language) -> Self {
        let base = now.0 - HOUR * 1_000;
        let begins = |at: StoreTime| (at.0 - base).clamp(0, HOUR * 1_000);
        let spans = line.spans.iter().map(|span| {
            let kind = if span.failed > 0 { "bad" } else { "ok" };
            (begins(span.from), begins(span.to), hue(span.node.as_str()), kind)
        });
        let present = line.present.iter().map(|run| {
            let end = (HOUR + BEYOND) * 1_000;
            (begins(run.from), end, hue(run.node.as_str()), "ok")
        });
        let gaps = line.gaps(StoreTime(base), now);
        let bad = |why: Why| matches!(why, Why::BackingOff | Why::TakingOver | Why::Waiting);
        let gaps = gaps
            .iter()
            .filter(|gap| bad(gap.why))
            .map(|gap| (begins(gap.from), begins(gap.to), gap.why.as_str(), "gap"));
        let held = joined(spans.chain(present).collect(), CLOSE);
        let bars = held.into_iter().chain(joined(gaps.collect(), CLOSE));
        let bars = bars.map(|(from, to, hue, kind)| Bar {
            x: tenths(from),
            width: tenths((to - from).max(4_000)),
            hue,
            kind,
            title: String::new(),
        });
        Self { base, label: label(line, now, lang), bars: bars.collect() }
    }
}

/// Milliseconds as seconds with one digit behind the point.
fn tenths(ms: i64) -> String {
    match ms / 100 {
        all if all % 10 == 0 => format!("{}", all / 10),
        all => format!("{}.{}", all / 10, all % 10),
    }
}

/// For those who hear the page: how long each node held it.
fn label(line: &Timeline, now: StoreTime, lang: Language) -> String {
    let from = StoreTime(now.0 - HOUR * 1_000);
    let mut held: BTreeMap<&str, Duration> = BTreeMap::new();
    for span in &line.spans {
        *held.entry(span.node.as_str()).or_default() += span.to.since(span.from.max(from));
    }
    if let Some(run) = &line.present {
        *held.entry(run.node.as_str()).or_default() += now.since(run.from.max(from));
    }
    if held.is_empty() {
        return say(lang, "strip-nobody", &[]);
    }
    let each: Vec<String> = held
        .into_iter()
        .map(|(node, time)| {
            let time = ("time", Arg::from(duration(lang, time)));
            say(lang, "strip-node", &[("node", Arg::from(node)), time])
        })
        .collect();
    let all = each.join(&say(lang, "list-separator", &[]));
    say(lang, "strip-label", &[("nodes", Arg::from(all))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::holders::tests::span;
    use crate::parts::render;
    use soloist_domain::lease::Token;
    use soloist_domain::name::NodeName;
    use soloist_domain::timeline::Present;

    const NOW: StoreTime = StoreTime(10_000_000);

    fn drawn(line: &Timeline) -> String {
        render(&Strip::of(line, NOW, Language::En))
    }

    #[test]
    fn a_thousand_short_runs_are_one_bar_and_a_failure_stands_out() {
        let mut spans: Vec<_> = (0..1_000_i64)
            .map(|nth| span(nth as u64 + 1, "node-a", 7_000_000 + nth * 2_000, 1_000, 1, 0))
            .collect();
        spans.push(span(2_000, "node-b", 9_500_000, 60_000, 1, 1));
        let line = Timeline { since: Some(StoreTime(0)), spans, ..Timeline::default() };
        let html = drawn(&line);
        assert_eq!(html.matches("<rect").count(), 2, "{html}");
        assert_eq!(html.matches("class=\"stint bad ").count(), 1, "{html}");
        assert!(html.contains("node-a 16 min") && html.contains("node-b 1 min"), "{html}");
    }

    #[test]
    fn what_goes_on_reaches_beyond_now() {
        let node = NodeName::new("node-a").expect("a valid name");
        let present = Some(Present { node, token: Token(1), from: StoreTime(9_000_000) });
        let line = Timeline { since: Some(StoreTime(0)), present, ..Timeline::default() };
        let html = drawn(&line);
        assert!(html.contains("x=\"2600\" y=\"0\" width=\"87400\""), "{html}");
        assert!(html.contains("viewBox=\"0 0 3600 10\""), "{html}");
    }
}
