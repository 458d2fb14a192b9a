//! Computed from spans and participations: why the job had no holder at a time, and how long a take-over took.

use std::time::Duration;

use super::{Present, Span, Timeline, WantKind};
use crate::job::RunEnd;
use crate::lease::Token;
use crate::name::NodeName;
use crate::tick::Schedule;
use crate::time::StoreTime;

/// From an end on one node to the start on another is a take-over if it is not longer: after a longer rest it is another start.
const AT_MOST: Duration = Duration::from_secs(600);

/// A tick that was taken within so long was not waited for.
const IN_TIME: Duration = Duration::from_secs(2);

/// Why the job had no holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// No user wanted it.
    Off,
    /// A user forbade it.
    Held,
    /// Between two runs of `repeat`.
    Resting,
    /// Between two ticks.
    Scheduled,
    /// After a crash.
    BackingOff,
    /// A node was lost or gave it up, and none had taken it yet.
    TakingOver,
    /// Wanted, and no node took it.
    Waiting,
    /// It is not known who wanted it then.
    Unknown,
}

impl Why {
    /// All of them, in the order of a legend.
    pub const ALL: [Self; 8] = [
        Self::Resting,
        Self::Scheduled,
        Self::Off,
        Self::Held,
        Self::BackingOff,
        Self::TakingOver,
        Self::Waiting,
        Self::Unknown,
    ];

    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Held => "held",
            Self::Resting => "resting",
            Self::Scheduled => "scheduled",
            Self::BackingOff => "backing_off",
            Self::TakingOver => "taking_over",
            Self::Waiting => "waiting",
            Self::Unknown => "unknown",
        }
    }
}

/// A time in which the job had no holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Gap {
    pub from: StoreTime,
    pub to: StoreTime,
    pub why: Why,
}

/// Another node took over, or the same one started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takeover {
    /// When it started.
    pub at: StoreTime,
    /// Which span or run it begins.
    pub token: Token,
    /// Who held it before.
    pub before: NodeName,
    /// How that ended.
    pub end: RunEnd,
    /// From the recorded end to the start. If only the next holder could report the end (the machine was gone), it is recorded
    /// when the lease has run out.
    pub took: Duration,
}

/// What a continuous job does after such an end.
fn after(end: Option<RunEnd>) -> Why {
    match end {
        Some(RunEnd::Exited) => Why::Resting,
        Some(RunEnd::Crashed | RunEnd::TimedOut) => Why::BackingOff,
        Some(RunEnd::Lost | RunEnd::Died | RunEnd::Fenced | RunEnd::Stopped) => Why::TakingOver,
        None => Why::Waiting,
    }
}

/// Since when a tick was due that nobody took, in a time without a holder.
fn late(schedule: &Schedule, from: StoreTime, to: StoreTime) -> Option<StoreTime> {
    let due = schedule.ticks.after(from)?.starts;
    (due <= to && to.since(due) > IN_TIME).then_some(due)
}

impl Timeline {
    /// The same, without what was over before `from` or begins after `to`.
    #[must_use]
    pub fn within(&self, from: StoreTime, to: StoreTime) -> Self {
        let has = |begins: StoreTime, ends: Option<StoreTime>| {
            begins < to && ends.is_none_or(|ends| ends > from)
        };
        Self {
            since: self.since,
            spans: self.spans.iter().filter(|s| has(s.from, Some(s.to))).cloned().collect(),
            present: self.present.clone().filter(|p| has(p.from, None)),
            wants: self.wants.iter().filter(|w| has(w.from, w.to)).cloned().collect(),
            schedule: self.schedule.clone(),
            again: self.again,
        }
    }

    /// Each take-over, oldest first.
    #[must_use]
    pub fn takeovers(&self) -> Vec<Takeover> {
        let spans = self.spans.iter().map(|s| (&s.node, s.first, s.from));
        let begun = spans.chain(self.present.iter().map(|p| (&p.node, p.token, p.from)));
        let pairs = self.spans.iter().zip(begun.skip(1));
        pairs.filter_map(|(before, after)| self.takeover(before, after)).collect()
    }

    fn takeover(
        &self,
        before: &Span,
        (node, token, at): (&NodeName, Token, StoreTime),
    ) -> Option<Takeover> {
        let took = at.since(before.to);
        let passed_on = before.end == RunEnd::Stopped && before.node != *node;
        if !(before.end.is_loss() || passed_on) || took > AT_MOST {
            return None;
        }
        let next = self.schedule.as_ref().and_then(|schedule| schedule.ticks.after(before.to));
        if next.is_some_and(|tick| tick.starts <= at) {
            // Its next tick.
            return None;
        }
        let wanted = self.parts(before.to, at).iter().all(|(_, _, bar)| bar.is_none());
        let known = self.since.is_some_and(|since| since <= before.to);
        let is_one = if known { wanted } else { before.end.is_loss() };
        let before = (before.node.clone(), before.end);
        is_one.then_some(Takeover { at, token, before: before.0, end: before.1, took })
    }

    /// When the job had no holder between `from` and `to`, and why.
    #[must_use]
    pub fn gaps(&self, from: StoreTime, to: StoreTime) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let (mut free, mut end) = (from, None);
        for span in &self.spans {
            if span.to <= from {
                end = Some(span.end);
                continue;
            }
            self.gap(free, span.from.min(to), end, true, &mut gaps);
            (free, end) = (free.max(span.to), Some(span.end));
        }
        let present = self.present.as_ref().map_or(to, |run: &Present| run.from.min(to));
        self.gap(free, present, end, self.present.is_some(), &mut gaps);
        gaps
    }

    /// `followed`: a run begins at its end.
    fn gap(
        &self,
        from: StoreTime,
        to: StoreTime,
        end: Option<RunEnd>,
        followed: bool,
        gaps: &mut Vec<Gap>,
    ) {
        let mut put = |from: StoreTime, to: StoreTime, why: Why| match gaps
            .last_mut()
            .filter(|last| last.to == from && last.why == why)
        {
            Some(last) => last.to = to,
            None => gaps.push(Gap { from, to, why }),
        };
        for (from, to, bar) in self.parts(from, to) {
            match (bar, &self.schedule) {
                (Some(why), _) => put(from, to, why),
                (None, None) => put(from, to, after(end)),
                (None, Some(schedule)) => {
                    let late = late(schedule, from, to);
                    let due = schedule.ticks.after(from).filter(|tick| tick.starts <= to);
                    // Else that end was the last of its tick.
                    let goes_on = match followed {
                        true => end.is_some_and(RunEnd::is_failure),
                        false => self.again,
                    };
                    if goes_on && (due.is_none() || late.is_some()) {
                        put(from, to, after(end));
                        continue;
                    }
                    let until = late.unwrap_or(to);
                    if from < until {
                        put(from, until, Why::Scheduled);
                    }
                    if until < to {
                        put(until, to, Why::Waiting);
                    }
                }
            }
        }
    }

    /// The time from `from` to `to`, cut where a participation or a hold began or ended; each part with what barred the job from
    /// running.
    fn parts(&self, from: StoreTime, to: StoreTime) -> Vec<(StoreTime, StoreTime, Option<Why>)> {
        let edges = self.wants.iter().flat_map(|want| [Some(want.from), want.to]);
        if from >= to {
            return Vec::new();
        }
        let mut cuts: Vec<StoreTime> = edges.chain([self.since]).flatten().collect();
        cuts.retain(|cut| from < *cut && *cut < to);
        cuts.extend([from, to]);
        cuts.sort_unstable();
        cuts.dedup();
        let parts = cuts.windows(2).filter(|pair| pair[0] < pair[1]);
        parts.map(|pair| (pair[0], pair[1], self.bar(pair[0]))).collect()
    }

    fn bar(&self, at: StoreTime) -> Option<Why> {
        let is_on = |kind: WantKind| {
            let on = |to: Option<StoreTime>| to.is_none_or(|to| at < to);
            self.wants.iter().any(|want| want.kind == kind && want.from <= at && on(want.to))
        };
        if is_on(WantKind::Hold) {
            return Some(Why::Held);
        }
        if is_on(WantKind::Participation) {
            return None;
        }
        let known = self.since.is_some_and(|since| since <= at);
        Some(if known { Why::Off } else { Why::Unknown })
    }
}
