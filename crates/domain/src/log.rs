//! How much output of a job is kept, and which lines a reader asks for.
//!
//! Data and arithmetic only. The bytes of the kept lines are counted in *stretches* of about a sixteenth of the bound. So the record of a
//! job says which lines to drop, and no line must be read for that. A line costs the same however many are kept.

use serde::{Deserialize, Serialize};

use super::journal::LogLine;
use super::name::RunId;
use super::terminal;
use super::time::StoreTime;

/// The bound of bytes is counted in so many parts; the oldest goes as a whole.
const STRETCHES: u64 = 16;
/// What a line takes beside its text, its run and its node: the names of its members, number, instant and stream.
const BESIDE: usize = 96;

/// How much output of a job is kept: whichever bound is reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// At most so many lines.
    pub lines: u64,
    /// At most so many bytes, as [`weight`] counts them.
    pub bytes: u64,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self { lines: 20_000, bytes: 4 << 20 }
    }
}

impl LogBounds {
    /// What `lines` may be.
    pub const LINES: std::ops::RangeInclusive<u64> = 100..=1_000_000;
    /// What `bytes` may be. A stretch of the smallest has room for the longest line.
    pub const BYTES: std::ops::RangeInclusive<u64> = (1 << 20)..=(1 << 30);
}

/// The bytes of a line as JSON, to within a few. How a store allocates them is not counted: docs/configuration.md.
#[must_use]
pub fn weight(line: &LogLine) -> u64 {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    let text: usize = line.text.bytes().map(escaped).sum();
    (BESIDE + line.run.as_str().len() + line.node.as_str().len() + text) as u64
}

/// The kept lines of a job, counted: for each stretch the number of its first line, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogKept(Vec<(u64, u64)>);

impl LogKept {
    /// Counts the newest line.
    pub fn add(&mut self, line: &LogLine, bounds: LogBounds) {
        let more = weight(line);
        match self.0.last_mut() {
            Some((_, bytes)) if *bytes + more <= bounds.bytes / STRETCHES => *bytes += more,
            _ => self.0.push((line.seq, more)),
        }
    }

    /// The number of the newest line that goes; 0 when all stay. `newest` is that of the newest line of all.
    ///
    /// Lines that are in no stretch weigh nothing, and go with the first one.
    pub fn trim(&mut self, newest: u64, bounds: LogBounds) -> u64 {
        let mut gone = newest.saturating_sub(bounds.lines);
        let mut bytes: u64 = self.0.iter().map(|(_, bytes)| bytes).sum();
        let mut past = 0;
        while let Some([(_, oldest), (next, _)]) = self.0.get(past..past + 2) {
            if bytes > bounds.bytes {
                gone = gone.max(next - 1);
            } else if *next > gone + 1 {
                break;
            }
            bytes -= oldest;
            past += 1;
        }
        self.0.drain(..past);
        gone
    }

    /// Nothing is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Which lines are asked for: those that everything here admits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFilter {
    /// Of this run.
    pub run: Option<RunId>,
    /// With this in their text as people see it, in capitals or not.
    pub grep: Option<String>,
    /// Not before this.
    pub since: Option<StoreTime>,
    /// Before this.
    pub until: Option<StoreTime>,
}

impl LogFilter {
    /// Whether it asks for every line.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it asks for this line.
    #[must_use]
    pub fn admits(&self, line: &LogLine) -> bool {
        let has = |sought: &String| {
            terminal::plain(&line.text).to_lowercase().contains(&sought.to_lowercase())
        };
        self.run.as_ref().is_none_or(|run| *run == line.run)
            && self.since.is_none_or(|since| line.at >= since)
            && self.until.is_none_or(|until| line.at < until)
            && self.grep.as_ref().is_none_or(has)
    }
}

/// Where to begin among the lines, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFrom {
    /// The newest ones with a smaller number; `None`: the newest of all.
    Before(Option<u64>),
    /// The oldest ones with a greater number.
    After(u64),
}

/// Some lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// Oldest first.
    pub lines: Vec<LogLine>,
    /// Where to continue in the same direction: the number of the last line that was examined. `None`: there is nothing else.
    pub next: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Stream;
    use crate::name::NodeName;

    fn line(seq: u64, text: &str) -> LogLine {
        LogLine {
            seq,
            at: StoreTime(i64::try_from(seq).expect("small")),
            run: RunId("r".to_owned()),
            node: NodeName::new("a").expect("a name"),
            stream: Stream::Stdout,
            text: text.to_owned(),
        }
    }

    /// Writes lines of these lengths and says after each which number is the first kept, and how many bytes are.
    fn keep(lengths: impl Iterator<Item = usize>, bounds: LogBounds) -> Vec<(u64, u64)> {
        let (mut kept, mut weights, mut gone) = (LogKept::default(), vec![0], 0);
        lengths
            .map(|length| {
                let next = line(weights.len() as u64, &"x".repeat(length));
                weights.push(weight(&next));
                kept.add(&next, bounds);
                gone = kept.trim(next.seq, bounds).max(gone);
                assert!(kept.0.len() <= 40, "{} stretches", kept.0.len());
                let from = usize::try_from(gone + 1).expect("small");
                (gone + 1, weights[from..].iter().sum())
            })
            .collect()
    }

    #[test]
    fn neither_bound_is_passed_and_no_more_than_a_stretch_goes_too_early() {
        let bounds = LogBounds { lines: 1_000, bytes: 1 << 20 };
        let short = keep((0..3_000).map(|_| 10), bounds);
        assert_eq!(short.last().map(|(first, _)| *first), Some(2_001));
        let mixed = keep((0..9_000).map(|nth| nth * 7_919 % 4_096), bounds);
        for (nth, (first, bytes)) in (1_u64..).zip(&mixed) {
            assert!(*bytes <= bounds.bytes && nth - first < 1_000, "line {nth}: {first}, {bytes}");
        }
        let (_, least) = mixed.iter().skip(1_000).min_by_key(|(_, bytes)| bytes).expect("some");
        assert!(*least >= bounds.bytes / 16 * 14, "{least} bytes");
    }

    #[test]
    fn lines_of_an_older_version_go_with_the_first_stretch() {
        let bounds = LogBounds { lines: 1_000, bytes: 1 << 20 };
        let mut kept = LogKept::default();
        kept.add(&line(501, "new"), bounds);
        assert_eq!(kept.trim(501, bounds), 0);
        let mut seq = 501;
        while kept.trim(seq, bounds) == 0 {
            seq += 1;
            kept.add(&line(seq, &"x".repeat(4_000)), bounds);
        }
        assert!((700..900).contains(&seq), "{seq}");
    }

    #[test]
    fn smaller_bounds_count_from_the_next_line_on() {
        let wide = LogBounds { lines: 10_000, bytes: 16 << 20 };
        let narrow = LogBounds { lines: 100, bytes: 1 << 20 };
        let mut kept = LogKept::default();
        for seq in 1..=3_000 {
            kept.add(&line(seq, &"x".repeat(4_000)), wide);
            kept.trim(seq, wide);
        }
        kept.add(&line(3_001, ""), narrow);
        assert!(kept.trim(3_001, narrow) >= 2_901);
    }

    #[test]
    fn a_filter_sees_what_people_see() {
        let shown = line(7, "\u{1b}[31mFai\u{1b}[0mled: ÄRGER");
        let grep = |text: &str| LogFilter { grep: Some(text.to_owned()), ..LogFilter::default() };
        assert!(grep("failed").admits(&shown) && grep("ärger").admits(&shown));
        assert!(!grep("[31m").admits(&shown) && !grep("fai.ed").admits(&shown));
        let at = |since, until| LogFilter {
            since: Some(StoreTime(since)),
            until: Some(StoreTime(until)),
            ..LogFilter::default()
        };
        assert!(at(7, 8).admits(&shown) && !at(8, 9).admits(&shown) && !at(6, 7).admits(&shown));
        let other = LogFilter { run: Some(RunId("s".to_owned())), ..LogFilter::default() };
        assert!(!other.admits(&shown) && LogFilter::default().admits(&shown));
    }
}
