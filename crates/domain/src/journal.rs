//! What runs did and printed: the reports of nodes, and the entries made from them.
//!
//! Data only. `transition/run.rs` and `transition/output.rs` decide what a report changes; the history must read the same whichever store
//! kept it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::{Exit, Progress, RunEnd};
use super::lease::Token;
use super::name::{JobName, NodeName, Owner, RunId};
use super::time::{Began, StoreTime};

/// How many lines of output are read at once, and at most wait at a node to be written.
pub const LOG_LINES: usize = 2_000;
/// How many ended runs are kept for a job.
pub const RUNS_KEPT: usize = 1_000;

/// A run that began.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in RunRecord")]
pub struct Started {
    pub job: JobName,
    pub token: Token,
    pub run: RunId,
    pub node: NodeName,
    pub pid: u32,
    pub began: Began,
}

/// What follows a run, decided by the domain; instants are made by the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Stopped, lost or fenced: every node that may try does so at once. `crashes` and `next` are cleared.
    Nothing,
    /// As `Nothing`; but a watched program died soon after its grant, and if the next one does, that is a crash.
    OnceMore,
    /// Given back before anything was started.
    Unused,
    /// Exit 0: again after this long.
    Repeat(Duration),
    /// Exit 0 and `repeat = "never"`: every participation is cleared, the job is off.
    Done,
    /// Crashed: again after `wait`.
    Retry {
        /// In a row, this one counted.
        crashes: u32,
        /// From now.
        wait: Duration,
    },
    /// Crashed, attempts used up.
    GiveUp {
        /// In a row, this one counted.
        crashes: u32,
    },
}

/// A run whose whole process tree is proved gone. Recording it releases the lease in the same step.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in RunRecord")]
pub struct Ended {
    pub job: JobName,
    pub owner: Owner,
    pub token: Token,
    pub run: RunId,
    pub exit: Exit,
    pub end: RunEnd,
    /// Processes that had to be killed in addition to the script's first one.
    pub processes_killed: u32,
    pub then: Then,
    /// When it started, for a store that does not know (any more); `None` when that is not known here either.
    pub began: Option<Began>,
}

/// A run in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the API shows them under the same names")]
pub struct RunEntry {
    pub id: RunId,
    pub job: JobName,
    pub node: NodeName,
    pub token: Token,
    pub started: StoreTime,
    /// `None`: it is under way.
    pub ended: Option<StoreTime>,
    pub exit: Exit,
    pub end: Option<RunEnd>,
    pub processes_killed: u32,
    /// How many runs alike this stands for: one after the other on one node, each with exit code 0, without output and
    /// without progress. It begins with the first and ends with the last of them, and has the id and token of the last.
    /// 0: one run of which more was seen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folded: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like that")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One line of a script's output, before the store has numbered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// `stdout`, `stderr`, or `soloist` for remarks of the node itself.
    pub stream: Stream,
    /// At most 4,096 bytes, valid UTF-8, without the line end.
    pub text: String,
}

impl NewLine {
    /// Longest text, in bytes.
    pub const LONGEST: usize = 4_096;

    /// What a terminal shows of a line at last: a carriage return begins it anew.
    #[must_use]
    pub fn as_shown(line: &str) -> &str {
        let line = line.trim_end_matches('\r');
        line.rsplit_once('\r').map_or(line, |(_, last)| last)
    }

    /// A line of `text`, which is cut and marked if it is too long, or has been cut before.
    #[must_use]
    pub fn cut(stream: Stream, mut text: String, cut_before: bool) -> Self {
        if cut_before || text.len() > Self::LONGEST {
            let mut end = text.len().min(Self::LONGEST - '…'.len_utf8());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push('…');
        }
        Self { stream, text }
    }
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stream {
    Stdout,
    Stderr,
    Soloist,
}

impl Stream {
    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Soloist => "soloist",
        }
    }
}

/// A kept line of output. `seq` grows by one a line, per job, across runs and nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the API shows them under the same names")]
pub struct LogLine {
    pub seq: u64,
    pub at: StoreTime,
    pub run: RunId,
    pub node: NodeName,
    pub stream: Stream,
    pub text: String,
}

/// Output and progress of a run since the last report.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in RunRecord")]
pub struct Output {
    pub job: JobName,
    pub token: Token,
    pub run: RunId,
    pub node: NodeName,
    pub lines: Vec<NewLine>,
    /// Newest progress, if it changed.
    pub progress: Option<Progress>,
    /// It wrote something that is no line yet, and no new progress.
    pub heard: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_bar_in_one_line_the_last_state_is_shown() {
        for (line, shown) in
            [("a", "a"), ("a\r", "a"), ("1 %\r2 %\r\r", "2 %"), ("", ""), ("\r", "")]
        {
            assert_eq!(NewLine::as_shown(line), shown, "{line:?}");
        }
    }
}
