//! Ended runs become spans.
//!
//! The bound: [`SPANS_KEPT`](super::SPANS_KEPT). Short runs on one node with one end share a span of at most an hour, so a job that runs each
//! second fills 24 spans a day, 720 in 30 days. Beyond the bound [`thin`] merges the neighbours on one node that take the least time, whatever
//! their ends; only a job that never stays on a node loses its oldest spans.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Span;
use crate::journal::RunEntry;
use crate::lease::Token;
use crate::time::{StoreTime, millis};

/// Runs that last longer have a span of their own, and so has what comes after a longer rest.
const SHORT: Duration = Duration::from_secs(60);
/// A span of several runs is not longer than this, unless room had to be made.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How far ended runs have become spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// When the first were folded: since then all is known.
    pub since: StoreTime,
    /// Of the newest run that is in a span.
    pub token: Token,
    /// When that began and ended, and how many runs its entry stood for ([`RunEntry::folded`]).
    pub started: StoreTime,
    /// As above.
    pub ended: StoreTime,
    /// As above.
    pub folded: u32,
    /// How many spans there are.
    pub spans: usize,
}

impl Mark {
    /// Of a job nothing was folded of before `now`.
    #[must_use]
    pub fn new(now: StoreTime) -> Self {
        Self { since: now, ..Self::default() }
    }
}

/// Appends what `runs` (oldest first) tell beyond `mark`, and moves that. Spans stay in order, and none overlaps another, whatever a
/// store's clock did.
pub fn fold(spans: &mut Vec<Span>, mark: &mut Mark, runs: &[RunEntry]) {
    for run in runs {
        let Some(next) = unseen(mark, run) else { continue };
        match spans.last_mut().filter(|last| last.goes_on_with(&next)) {
            Some(last) => last.append(next),
            None => spans.push(next),
        }
    }
}

/// What of `run` is in no span yet. The entry of idle runs grows, and bears the token of the last of them.
fn unseen(mark: &mut Mark, run: &RunEntry) -> Option<Span> {
    let (ended, end) = (run.ended?, run.end?);
    if run.token <= mark.token {
        return None;
    }
    let grown = mark.folded > 0 && run.folded > mark.folded && run.started == mark.started;
    let runs = run.folded.max(1) - if grown { mark.folded } else { 0 };
    let from = run.started.max(mark.ended);
    let to = ended.max(from);
    (mark.token, mark.started, mark.folded) = (run.token, run.started, run.folded);
    mark.ended = to;
    Some(Span {
        node: run.node.clone(),
        first: run.token,
        token: run.token,
        from,
        to,
        end,
        runs,
        failed: if end.is_failure() { runs } else { 0 },
        held_ms: millis(to.since(from)),
    })
}

impl Span {
    /// Its runs are short, on average.
    fn is_short(&self) -> bool {
        self.held_ms / u64::from(self.runs.max(1)) <= millis(SHORT)
    }

    /// Whether `next` belongs into the same span. A loss never does: what comes after it is a take-over.
    fn goes_on_with(&self, next: &Span) -> bool {
        self.node == next.node
            && self.end == next.end
            && !next.end.is_loss()
            && self.is_short()
            && next.is_short()
            && next.from.since(self.to) <= SHORT
            && next.to.since(self.from) <= LONGEST
    }

    fn append(&mut self, next: Span) {
        (self.token, self.to, self.end) = (next.token, next.to, next.end);
        self.runs = self.runs.saturating_add(next.runs);
        self.failed = self.failed.saturating_add(next.failed);
        self.held_ms = self.held_ms.saturating_add(next.held_ms);
    }
}

/// When there are more than `kept` spans, makes three quarters of that of them.
pub fn thin(spans: &mut Vec<Span>, kept: usize) {
    if spans.len() <= kept {
        return;
    }
    while spans.len() > kept / 4 * 3 {
        let takes = |nth: usize| spans[nth + 1].to.since(spans[nth].from);
        let same = (0..spans.len() - 1).filter(|nth| spans[*nth].node == spans[nth + 1].node);
        // What follows a loss is a take-over: such neighbours come last.
        let Some(nth) = same.min_by_key(|nth| (spans[*nth].end.is_loss(), takes(*nth))) else {
            spans.remove(0);
            continue;
        };
        let next = spans.remove(nth + 1);
        spans[nth].append(next);
    }
}
