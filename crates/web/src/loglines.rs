//! The newest output of a followed job, rendered once for all who follow it.
//!
//! A ring of at most [`LogRing::KEPT`] lines: a reader that falls behind it is told how many lines were skipped and goes
//! on from what is kept.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;

use super::frames::{self, Protocol};
use super::parts::output::{Piecewise, looks};
use soloist_store::journal::LogLine;
use soloist_view::LogLineView;

/// Most bytes of lines in one frame, unless a single line is longer.
const FRAME_MAX: usize = 32 * 1024;

/// The ring of one job.
#[derive(Default)]
pub struct LogRing {
    lines: VecDeque<Line>,
    newest: Option<u64>,
}

/// A line as each protocol has it.
struct Line {
    seq: u64,
    json: Arc<str>,
    /// With the looks of its pieces, if it has any.
    html: Option<Arc<str>>,
}

/// A line with its text in pieces, as our page shows it.
#[derive(Serialize)]
struct Pieces {
    #[serde(flatten)]
    view: LogLineView,
    looks: Piecewise,
}

impl Line {
    fn of(line: LogLine) -> Self {
        let (seq, view) = (line.seq, LogLineView::from(line));
        let json = Arc::from(frames::text(&view));
        let looks = looks(&view.text);
        let plain = matches!(&looks[..], [(look, text)] if look.is_empty() && *text == view.text);
        let html = (!plain).then(|| Arc::from(frames::text(&Pieces { view, looks })));
        Self { seq, json, html }
    }

    fn text(&self, protocol: Protocol) -> &Arc<str> {
        match &self.html {
            Some(html) if protocol == Protocol::Html => html,
            _ => &self.json,
        }
    }
}

/// Some lines for one follower.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk {
    /// JSON texts.
    pub lines: Vec<Arc<str>>,
    /// The last one's number.
    pub newest: u64,
    /// Lines between what the follower has read and the first of these.
    pub skipped: u64,
    /// More are there.
    pub more: bool,
}

impl LogRing {
    /// How many lines are kept.
    pub const KEPT: usize = 200;

    /// The newest line it knows; `None` before the first reading.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Whether the store has lines that the ring has not.
    #[must_use]
    pub fn lacks(&self, seq: u64) -> bool {
        self.newest.is_none_or(|newest| newest < seq)
    }

    /// Empties the ring when the store's numbering began anew.
    pub fn forget_if_newer_than(&mut self, seq: u64) {
        if self.newest.is_some_and(|newest| newest > seq) {
            *self = Self::default();
        }
    }

    /// Adds lines that were read after [`LogRing::newest`] when the job's newest line was `seq`.
    pub fn add(&mut self, lines: Vec<LogLine>, seq: u64) {
        let full = lines.len() >= Self::KEPT;
        for line in lines {
            if self.newest.is_some_and(|newest| line.seq <= newest) {
                continue;
            }
            self.newest = Some(line.seq);
            self.lines.push_back(Line::of(line));
        }
        if !full {
            // The store may keep fewer lines than were written: what it did not give does not exist.
            self.newest = self.newest.max(Some(seq));
        }
        while self.lines.len() > Self::KEPT {
            self.lines.pop_front();
        }
    }

    /// What follows line `told`, as much as fits into a frame; `None` when there is nothing.
    #[must_use]
    pub fn after(&self, told: Option<u64>, protocol: Protocol) -> Option<Chunk> {
        // A follower ahead of the ring followed a numbering that is gone.
        let told = told.filter(|told| self.newest.is_some_and(|newest| *told <= newest));
        let start = self.lines.partition_point(|line| told.is_some_and(|told| line.seq <= told));
        let first = self.lines.get(start)?.seq;
        let mut bytes = 0;
        let mut lines = Vec::new();
        let mut newest = first;
        for line in self.lines.range(start..) {
            let text = line.text(protocol);
            if bytes > 0 && bytes + text.len() > FRAME_MAX {
                break;
            }
            bytes += text.len();
            newest = line.seq;
            lines.push(Arc::clone(text));
        }
        Some(Chunk {
            skipped: told.map_or(0, |told| first.saturating_sub(told + 1)),
            more: start + lines.len() < self.lines.len(),
            newest,
            lines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::name::{NodeName, RunId};
    use soloist_domain::time::StoreTime;
    use soloist_store::journal::Stream;

    fn lines(numbers: std::ops::RangeInclusive<u64>, length: usize) -> Vec<LogLine> {
        numbers
            .map(|seq| LogLine {
                seq,
                at: StoreTime(0),
                run: RunId("r".to_owned()),
                node: NodeName::new("node-a").unwrap(),
                stream: Stream::Stdout,
                text: "x".repeat(length),
            })
            .collect()
    }

    #[test]
    fn a_follower_who_lags_is_told_what_was_skipped() {
        let mut ring = LogRing::default();
        ring.add(lines(1..=150, 10), 150);
        let first = ring.after(None, Protocol::Json).unwrap();
        assert_eq!(
            (first.lines.len(), first.newest, first.skipped, first.more),
            (150, 150, 0, false)
        );
        ring.add(lines(151..=350, 10), 400);
        let next = ring.after(Some(100), Protocol::Json).unwrap();
        assert_eq!((next.lines.len(), next.newest, next.skipped), (200, 350, 50));
        assert!(ring.after(Some(350), Protocol::Json).is_none());
        assert!(ring.lacks(400) && !ring.lacks(350));
    }

    #[test]
    fn long_lines_are_spread_over_frames() {
        let mut ring = LogRing::default();
        ring.add(lines(1..=40, 4_000), 40);
        let mut told = None;
        let mut frames = 0;
        while let Some(chunk) = ring.after(told, Protocol::Json) {
            assert!(chunk.lines.iter().map(|line| line.len()).sum::<usize>() <= FRAME_MAX);
            told = Some(chunk.newest);
            frames += 1;
        }
        assert_eq!(told, Some(40));
        assert!(frames >= 5, "{frames}");
    }

    #[test]
    fn only_our_page_is_told_how_a_line_looks() {
        let mut ring = LogRing::default();
        let mut both = lines(1..=2, 3);
        both[1].text = "\u{1b}[31mred".to_owned();
        ring.add(both, 2);
        let said = |protocol| ring.after(None, protocol).unwrap().lines;
        let (json, html) = (said(Protocol::Json), said(Protocol::Html));
        assert!(json[0] == html[0] && !json[1].contains("looks"));
        assert!(html[1].contains(r#""looks":[["f1","red"]]"#), "{}", html[1]);
    }

    #[test]
    fn a_store_that_forgot_begins_anew() {
        let mut ring = LogRing::default();
        ring.add(lines(1..=10, 1), 10);
        ring.forget_if_newer_than(3);
        assert!(ring.lacks(3));
        ring.add(lines(1..=3, 1), 3);
        assert_eq!(ring.after(Some(10), Protocol::Json).unwrap().lines.len(), 3);
    }
}
