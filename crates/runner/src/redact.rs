//! Replaces the values of a script's secrets by `***` in the output that is kept.
//!
//! It finds a value unchanged, and each long line of one that has several. It does not find a secret in another form (base64, in pieces,
//! backwards): docs/configuration.md says so.

use std::fmt;
use std::sync::Arc;

/// A shorter value would be found in innocent words.
const SHORTEST: usize = 8;
/// Its replacement.
const STARS: &[u8] = b"***";

/// The values that are hidden; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Redactor(Arc<[Vec<u8>]>);

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hidden", self.0.len())
    }
}

impl Redactor {
    /// Hides these values; each line of one that has several. What is shorter than eight characters is not hidden.
    #[must_use]
    pub(super) fn of<'a>(values: impl Iterator<Item = &'a String>) -> Self {
        let lines = values.flat_map(|value| value.split(['\n', '\r']));
        let long = lines.filter(|line| line.chars().count() >= SHORTEST);
        let mut all: Vec<Vec<u8>> = long.map(|line| line.as_bytes().to_vec()).collect();
        all.sort_unstable();
        all.dedup();
        Self(all.into())
    }

    /// The length of the longest in bytes.
    pub(super) fn longest(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The first `limit` bytes of `line` with every value replaced that begins in them. Values that overlap are replaced
    /// together.
    pub(super) fn replaced(&self, line: &[u8], limit: usize) -> Vec<u8> {
        let kept = line.get(..limit).unwrap_or(line);
        if self.0.is_empty() {
            return kept.to_vec();
        }
        let mut out = Vec::with_capacity(kept.len());
        let mut covered = 0;
        for (at, byte) in kept.iter().enumerate() {
            let ends = self.0.iter().filter(|value| line[at..].starts_with(value));
            if let Some(end) = ends.map(|value| at + value.len()).max() {
                if at >= covered {
                    out.extend_from_slice(STARS);
                }
                covered = covered.max(end);
            }
            if at >= covered {
                out.push(*byte);
            }
        }
        out
    }

    /// How much of the beginning of `line` may be shown while it goes on: what follows may turn its end into a value.
    pub(super) fn settled(&self, line: &[u8]) -> usize {
        let unfinished = |at: &usize| {
            let rest = &line[*at..];
            self.0.iter().any(|value| value.len() > rest.len() && value.starts_with(rest))
        };
        let from = line.len().saturating_sub(self.longest());
        let mut end = (from..line.len()).find(unfinished).unwrap_or(line.len());
        // No value is cut in two.
        loop {
            let across = |at: &usize| {
                let rest = &line[*at..];
                self.0.iter().any(|value| at + value.len() > end && rest.starts_with(value))
            };
            match (end.saturating_sub(self.longest())..end).find(across) {
                Some(earlier) => end = earlier,
                None => return end,
            }
        }
    }

    /// As [`Self::replaced`], for a text.
    pub(super) fn redacted(&self, text: String) -> String {
        if self.0.is_empty() {
            return text;
        }
        String::from_utf8_lossy(&self.replaced(text.as_bytes(), text.len())).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(values: &[&str], text: &str) -> String {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        Redactor::of(values.iter()).redacted(text.to_owned())
    }

    #[test]
    fn values_are_replaced_wherever_they_stand_and_however_they_overlap() {
        assert_eq!(hidden(&["abcdefgh", "efghijkl"], "1 abcdefghijkl 2"), "1 *** 2");
        assert_eq!(hidden(&["abcdefgh", "abcdefghij"], "abcdefghijk"), "***k");
        assert_eq!(hidden(&["abcdefgh"], "abcdefghabcdefgh"), "******");
        assert_eq!(hidden(&["aaaaaaaa"], "aaaaaaaaaa!"), "***!");
        assert_eq!(hidden(&["abcdefgh"], "abcdefg"), "abcdefg");
    }

    #[test]
    fn a_value_of_several_lines_is_hidden_line_by_line_and_a_short_one_not_at_all() {
        let key = "-----BEGIN KEY-----\r\nMIIEvQIBADAN\nend\n";
        assert_eq!(hidden(&[key], "key: MIIEvQIBADAN end"), "key: *** end");
        assert_eq!(hidden(&["secret7"], "secret7"), "secret7");
        assert_eq!(hidden(&["出库任务出库任务"], "x出库任务出库任务y"), "x***y");
    }

    #[test]
    fn what_may_become_a_value_is_not_shown_before_it_is_known() {
        let values = ["abcdefgh".to_owned(), "efghijkl".to_owned()];
        let hidden = Redactor::of(values.iter());
        let settled = |line: &str| hidden.settled(line.as_bytes());
        assert_eq!(settled("sure? [y/N] "), 12);
        assert_eq!(settled("it is abcd"), 6);
        assert_eq!(settled("it is a"), 6);
        assert_eq!(settled("it is abcdefgh"), 6, "its end may begin the other");
        assert_eq!(settled("it is abcdefgh!"), 15);
        assert_eq!(Redactor::default().settled(b"abc"), 3);
    }

    #[test]
    fn it_does_not_show_itself() {
        let hidden = Redactor::of(["correct horse".to_owned()].iter());
        assert_eq!(format!("{hidden:?}"), "1 hidden");
    }
}
