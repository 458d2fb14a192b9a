//! The ticks in the record of a job: the last granted one, the open one, the waiting ones, and the outcomes of the newest.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rules::{OnLoss, Schedule};
use super::sight::Forgot;
use super::trouble::Trouble;
use super::{Tick, TickName, Ticks};
use crate::job::{Hold, JobRecord};
use crate::lease::Token;
use crate::name::{NodeName, RunId, UserName};
use crate::time::StoreTime;

/// How many of the newest entries are in the record itself.
pub const RECENT: usize = 10;
/// At least so many entries of a job are kept.
pub const ENTRIES_KEPT: usize = 1_000;
/// So many earlier expressions are remembered.
pub(super) const FORMER: usize = 20;
/// So many runs can be asked for and wait.
pub const MOST_ASKED: usize = 100;

/// Values of parameters, by name.
pub type Params = BTreeMap<String, String>;

/// The schedule of a job, as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Clock {
    /// The expressions in force.
    pub text: String,
    /// Hashes of earlier ones, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<String>,
    /// The newest tick that the clock granted. It only grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// The newest tick of the schedule that is decided, open or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<TickName>,
    /// Every tick that starts up to here has its entry, is open or waits.
    pub accounted: StoreTime,
    /// The tick in hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// Ticks that are due and undecided, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
    /// Runs that somebody asked for, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// Since when it was wanted, held or off: what was before `accounted` is left out, but for the newest.
    pub shifts: Vec<Shift>,
    /// The newest entries, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<Entry>,
    /// The greatest attempt that any tick had: one whose entry is no longer kept gets a greater one.
    #[serde(default)]
    pub attempts: u32,
    /// Newest requests, each with the tick that was its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<(String, TickName)>,
    /// What became of ticks and may need a person: at most one of each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<Trouble>,
    /// The store may have forgotten the outcome of some ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgot: Option<Forgot>,
}

/// A tick that was granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in Tick")]
pub struct Taken {
    pub tick: TickName,
    pub starts: StoreTime,
}

/// Who starts a tick.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The schedule.
    Clock,
    /// A person.
    User(UserName),
}

/// The tick that was granted, until its last attempt has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Open {
    /// Which.
    pub tick: Tick,
    /// Counts the grants of it.
    pub attempt: u32,
    /// Of the newest grant.
    pub token: Token,
    /// Who started it.
    pub by: By,
    /// What its script gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: Params,
    /// When it was granted last.
    pub granted: StoreTime,
    /// How long after its start the first attempt was granted, in milliseconds.
    pub late_ms: u64,
    /// When the newest run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<StoreTime>,
    /// The newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Crashes of it so far.
    #[serde(default)]
    pub crashes: u32,
    /// Losses in a row.
    #[serde(default)]
    pub losses: u32,
    /// The tick that replaces it: its run is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<TickName>,
    /// The entry that it has already, if that was not among the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Box<Entry>>,
    /// The rules under which it was granted.
    pub rules: OpenRules,
    /// How far it is.
    pub phase: Phase,
}

/// The rules that an open tick has with it: who records its end may know no schedule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as in Rules, in milliseconds")]
pub struct OpenRules {
    pub on_loss: OnLoss,
    pub retries: u32,
    pub backoff_ms: u64,
    pub backoff_max_ms: u64,
    /// For so long it may be without a run.
    pub window_ms: u64,
    /// A run that ends well in less is too quick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_ms: Option<u64>,
}

impl OpenRules {
    pub(super) fn of(schedule: &Schedule, tick: &Tick) -> Self {
        let rules = &schedule.rules;
        let ms = crate::time::millis;
        Self {
            on_loss: rules.on_loss,
            retries: rules.retries,
            backoff_ms: ms(rules.backoff),
            backoff_max_ms: ms(rules.backoff_max),
            window_ms: ms(schedule.window(tick)),
            at_least_ms: rules.at_least.map(ms),
        }
    }

    /// The wait before the `nth` attempt in a row, from 1.
    pub(super) fn wait(&self, nth: u32) -> Duration {
        let doubled = self.backoff_ms.saturating_mul(1 << (nth.max(1) - 1).min(20));
        Duration::from_millis(doubled.min(self.backoff_max_ms))
    }
}

/// How far an open tick is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Phase {
    /// A holder has it.
    Granted,
    /// It is run again.
    Again {
        /// Not before.
        at: StoreTime,
        /// Since when it has no run.
        since: StoreTime,
        /// Its last attempt was lost; else it crashed.
        lost: bool,
        /// Why that attempt ended.
        why: Why,
    },
    /// It has its entry. What was due until then met an open tick.
    Ended {
        /// When.
        at: StoreTime,
    },
}

/// A tick that is due and undecided.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pending {
    /// Which.
    pub tick: Tick,
    /// Its time counts from here: its start, or the end of the tick that it waited for.
    pub since: StoreTime,
    /// It waits until the open tick has ended.
    #[serde(default)]
    pub behind: bool,
    /// What was in the way at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Older ticks, for which this one is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<Entry>,
}

/// A run that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Asked {
    /// By hand, or the name of a tick of the schedule.
    pub tick: Tick,
    /// Who.
    pub by: UserName,
    /// What its script gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: Params,
    /// When.
    pub at: StoreTime,
    /// The same request gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Attempts of that tick before.
    #[serde(default)]
    pub attempts: u32,
    /// The entry that it has already, if that is not among the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Box<Entry>>,
}

/// Whether a job was wanted from an instant on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Shift {
    pub at: StoreTime,
    pub to: Standing,
}

/// Whether ticks of the clock are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Somebody wants it.
    On,
    /// Nobody does; who switched it off last.
    Off(Option<UserName>),
    /// An operator forbids it.
    Held(UserName, String),
    /// Nobody wants it, and an operator forbids it, too: who switched it off last, who holds it, and why.
    OffAndHeld(Option<UserName>, UserName, String),
}

impl Standing {
    /// What the record says now.
    #[must_use]
    pub fn of(record: &JobRecord) -> Self {
        let last = record.last_switch.as_ref().filter(|last| !last.on);
        let off = || last.map(|last| last.user.clone());
        match (&record.hold, record.participants.is_empty()) {
            (None, false) => Self::On,
            (None, true) => Self::Off(off()),
            (Some(Hold { by, reason, .. }), false) => Self::Held(by.clone(), reason.clone()),
            (Some(Hold { by, reason, .. }), true) => {
                Self::OffAndHeld(off(), by.clone(), reason.clone())
            }
        }
    }

    /// Nobody wants it. Off decides before a hold.
    #[must_use]
    pub fn is_off(&self) -> bool {
        matches!(self, Self::Off(_) | Self::OffAndHeld(..))
    }

    /// What is in the way of a tick of the clock, if something is.
    #[must_use]
    pub fn why(&self) -> Option<Why> {
        self.stops(true)
    }

    /// What is in the way of a tick, if something is. Off stops those of the clock alone.
    pub(super) fn stops(&self, by_clock: bool) -> Option<Why> {
        match self {
            Self::Off(by) | Self::OffAndHeld(by, ..) if by_clock => {
                Some(Why::Off { by: by.clone() })
            }
            Self::On | Self::Off(_) => None,
            Self::Held(by, reason) | Self::OffAndHeld(_, by, reason) => {
                Some(Why::Held { by: by.clone(), reason: reason.clone() })
            }
        }
    }
}

/// What became of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "contract 13 has the words")]
pub enum Outcome {
    Running,
    Done,
    Failed,
    Lost,
    Missed,
    Skipped,
    Unwanted,
    Covered,
    Dropped,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Lost,
        Self::Missed,
        Self::Skipped,
        Self::Unwanted,
        Self::Covered,
        Self::Dropped,
    ];

    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Missed => "missed",
            Self::Skipped => "skipped",
            Self::Unwanted => "unwanted",
            Self::Covered => "covered",
            Self::Dropped => "dropped",
        }
    }
}

impl std::str::FromStr for Outcome {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.as_str() == word).ok_or_else(|| {
            format!("{word:?} is none of {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Why {
    Off { by: Option<UserName> },
    Held { by: UserName, reason: String },
    NoNode,
    Unfit { lacks: BTreeMap<NodeName, String> },
    Open { tick: TickName },
    Replaced { by: TickName },
    CoveredBy { tick: TickName },
    TooMany { kept: usize },
    Changed,
    Code { code: i32 },
    Signal { signal: i32 },
    NotStarted,
    TimedOut,
    Stopped { node: NodeName },
    Gone { node: NodeName },
    Died { node: NodeName, guard: bool },
    Fenced { node: NodeName },
    TakenBack { by: UserName },
    Forgot,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off { by: Some(by) } => write!(f, "nobody wanted it: {by} switched it off"),
            Self::Off { by: None } => write!(f, "nobody wanted it"),
            Self::Held { by, reason } => write!(f, "held by {by}: {reason}"),
            Self::NoNode => write!(f, "nobody took it in time"),
            Self::Unfit { lacks } => write!(f, "it could not be started: {}", each(lacks)),
            Self::Open { tick } => write!(f, "{tick} was still open"),
            Self::Replaced { by } => write!(f, "{by} replaced it"),
            Self::CoveredBy { tick } => write!(f, "{tick} was run for it"),
            Self::TooMany { kept } => {
                write!(f, "more than {kept} were missed, and the newest are run")
            }
            Self::Changed => write!(f, "the schedule was changed"),
            Self::Code { code } => write!(f, "it ended with exit code {code}"),
            Self::Signal { signal } => write!(f, "signal {signal} ended it"),
            Self::NotStarted => write!(f, "it could not be started"),
            Self::TimedOut => write!(f, "it took too long, or was silent for too long"),
            Self::Stopped { node } => write!(f, "it was stopped on {node}"),
            Self::Gone { node } => write!(f, "{node} was lost"),
            // Of a script, or else the program that held the lease.
            Self::Died { node, guard: true } => write!(f, "its guard on {node} died"),
            Self::Died { node, guard: false } => write!(f, "the program {node} died"),
            Self::Fenced { node } => write!(f, "{node} lost the lease"),
            Self::TakenBack { by } => write!(f, "{by} took it back"),
            Self::Forgot => write!(f, "the store forgot whether it ran"),
        }
    }
}

/// What each machine lacks: `node-a: no python9; node-b: ...`.
#[must_use]
pub fn each(lacks: &BTreeMap<NodeName, String>) -> String {
    let each = lacks.iter().map(|(node, what)| format!("{node}: {what}"));
    each.collect::<Vec<_>>().join("; ")
}

/// What became of a tick, or of several in a row that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The first.
    pub tick: Tick,
    /// What became of it.
    pub outcome: Outcome,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Its newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The newest attempt; 0: it was never granted.
    #[serde(default)]
    pub attempt: u32,
    /// Of the newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<StoreTime>,
    /// When the tick was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<StoreTime>,
    /// How long after its start the first attempt was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<u64>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserName>,
    /// What its script was told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: Params,
    /// How many ticks this stands for.
    pub count: u32,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Tick>,
}

/// Which tick comes after which.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) ticks: &'a dyn Ticks,
}

impl Order<'_> {
    fn is_next(self, last: StoreTime, later: StoreTime) -> bool {
        self.ticks.after(last).is_some_and(|next| next.starts == later)
    }
}

impl Entry {
    /// Of one tick that never ran.
    #[must_use]
    pub fn of(tick: Tick, outcome: Outcome, why: Option<Why>) -> Self {
        Self {
            tick,
            outcome,
            why,
            run: None,
            attempt: 0,
            started: None,
            ended: None,
            late_ms: None,
            by: None,
            params: Params::new(),
            count: 1,
            until: None,
        }
    }

    /// The last tick that it stands for.
    #[must_use]
    pub fn last(&self) -> &Tick {
        self.until.as_ref().unwrap_or(&self.tick)
    }

    /// Whether this is the entry of the tick called `name`, which starts then.
    #[must_use]
    pub fn is_of(&self, name: &TickName, starts: StoreTime) -> bool {
        let among = self.tick.starts <= starts && starts <= self.last().starts;
        self.tick.name == *name || self.count > 1 && among && !name.is_by_hand()
    }

    /// Takes in the entry of the ticks that come next, if both tell alike gaps.
    pub(super) fn join(&mut self, later: &Entry, order: Order<'_>) -> bool {
        let gap = |entry: &Entry| entry.attempt == 0 && entry.by.is_none();
        let alike = self.outcome == later.outcome && self.why == later.why;
        let last = self.last().starts;
        if !alike || !gap(self) || !gap(later) || later.tick.starts <= last {
            return false;
        }
        if !order.is_next(last, later.tick.starts) {
            return false;
        }
        self.count = self.count.saturating_add(later.count);
        self.until = Some(later.last().clone());
        true
    }
}

impl Open {
    /// The entry that it leaves, or has while it lasts.
    #[must_use]
    pub fn entry(&self, outcome: Outcome, why: Option<Why>, ended: Option<StoreTime>) -> Entry {
        Entry {
            run: self.run.clone(),
            attempt: self.attempt,
            started: self.started,
            ended,
            late_ms: Some(self.late_ms),
            by: match &self.by {
                By::Clock => None,
                By::User(user) => Some(user.clone()),
            },
            params: self.params.clone(),
            ..Entry::of(self.tick.clone(), outcome, why)
        }
    }

    /// Whether it has its entry already.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }

    /// Whether the clock started it.
    #[must_use]
    pub fn is_by_clock(&self) -> bool {
        self.by == By::Clock
    }
}

impl Clock {
    /// Of a schedule that is seen for the first time: nothing of the past is made up for.
    #[must_use]
    pub fn begin(text: &str, record: &JobRecord, now: StoreTime) -> Self {
        Self {
            text: text.to_owned(),
            former: Vec::new(),
            taken: None,
            last: None,
            accounted: now,
            open: None,
            pending: Vec::new(),
            asked: Vec::new(),
            shifts: vec![Shift { at: now, to: Standing::of(record) }],
            recent: Vec::new(),
            attempts: 0,
            answered: Vec::new(),
            troubles: Vec::new(),
            forgot: None,
        }
    }

    /// Whether nothing was decided since [`Clock::begin`].
    pub(crate) fn is_blank(&self) -> bool {
        let decided = self.taken.is_some() || self.last.is_some() || self.open.is_some();
        let empty = self.pending.is_empty() && self.asked.is_empty() && self.recent.is_empty();
        empty && !decided && self.forgot.is_none()
    }

    /// Whether these expressions are in force, or were: making them so decides nothing.
    #[must_use]
    pub fn knows(&self, text: &str) -> bool {
        self.text == text || self.former.contains(&super::account::hash(text))
    }

    /// The open tick, if it has no entry yet.
    #[must_use]
    pub fn open(&self) -> Option<&Open> {
        self.open.as_ref().filter(|open| !open.is_over())
    }

    /// Whether the open tick waits for its next attempt.
    #[must_use]
    pub fn waits_again(&self) -> bool {
        self.open().is_some_and(|open| matches!(open.phase, Phase::Again { .. }))
    }

    /// When off or hold ends the open tick that has no run, and why.
    pub(super) fn given_up(&self) -> Option<(StoreTime, Why)> {
        let open = self.open()?;
        let Phase::Again { since, .. } = open.phase else { return None };
        let now = self.shifts.iter().rposition(|shift| shift.at <= since).unwrap_or(0);
        self.shifts
            .iter()
            .skip(now)
            .find_map(|shift| Some((shift.at.max(since), shift.to.stops(open.is_by_clock())?)))
    }

    /// Whether the job is wanted although nobody has it on: a person asked for a run. `None`: that is no question.
    #[must_use]
    pub(crate) fn wanted_for(&self, on: bool) -> bool {
        match self.open() {
            Some(Open { replaced_by: Some(_), phase: Phase::Granted, .. }) => false,
            Some(open) if !open.is_by_clock() => true,
            Some(_) => on,
            None => on || !self.asked.is_empty(),
        }
    }

    /// What was the matter at `at`.
    pub(super) fn standing(&self, at: StoreTime) -> &Standing {
        let known = self.shifts.iter().rev().find(|shift| shift.at <= at);
        known.or(self.shifts.first()).map_or(&Standing::On, |shift| &shift.to)
    }

    /// What is known of the tick called `name`, which starts then, among the newest.
    #[must_use]
    pub fn recent(&self, name: &TickName, starts: StoreTime) -> Option<&Entry> {
        self.recent.iter().rev().find(|entry| entry.is_of(name, starts))
    }
}
