//! What dispatch keeps, as its transitions see it, and what they write.
//!
//! Keys and payloads of tasks are not here: nothing is decided by them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::asks::{ClaimId, Past, TaskId};
use super::order::Place;
use super::rules::{Reason, Rules, Shut, Standing};
use super::task::TaskState;
use crate::lease::Token;
use crate::name::{CollectorName, RequestId, SourceName, Waiter};
use crate::time::Stamp;

/// How long a task is promised to the waiter that was woken for it: meanwhile no other waiter is woken for it.
pub const PROMISE: Duration = Duration::from_millis(100);
/// How long an answer that gave nothing is remembered, and a claim after the last of its leases.
pub const REMEMBERED: Duration = Duration::from_secs(60);
/// How often it is noted that a collector called.
pub const SEEN_EVERY: Duration = Duration::from_secs(1);

/// What grows over all sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Book {
    /// The newest token: of all sources, or at least of each that is loaded, because tokens grow within a source.
    pub token: Token,
    /// The newest turn that a source got.
    pub turn: u64,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    /// Its name.
    pub name: SourceName,
    /// Its rules.
    pub rules: Rules,
    /// No claim is served before this.
    pub blocked_until: Stamp,
    /// The newest start.
    pub last_start: Option<Stamp>,
    /// Counts places of tasks: grows whenever a task gets one.
    pub nth: u64,
    /// Tasks in each state; of `done`, all that were ever accepted as done for good.
    pub ready: u64,
    /// See `ready`.
    pub due: u64,
    /// See `ready`.
    pub in_flight: u64,
    /// See `ready`.
    pub dead: u64,
    /// See `ready`.
    pub done: u64,
    /// Since the source exists: starts, accepted `done` (recrawls too), reported for another try, leases run out.
    pub started: u64,
    /// See `started`.
    pub finished: u64,
    /// See `started`.
    pub retried: u64,
    /// See `started`.
    pub expired: u64,
    /// Waiters who were woken for it and have not claimed yet.
    pub promised: u64,
    /// How long they are counted.
    pub promised_until: Stamp,
    /// Where it stands among the others.
    pub seat: Seat,
}

/// Where a source stands among the others. One without ready tasks has none of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Seat {
    /// It can be served: its turn in the ring, lower is sooner.
    pub turn: Option<u64>,
    /// It has ready tasks, and cannot be served all the same.
    pub shut: Option<Reason>,
    /// When that ends by itself.
    pub opens: Option<Stamp>,
}

/// The starts that a window counts at an instant: those later than `now - span`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Recent {
    /// How many.
    pub count: u32,
    /// The oldest of them.
    pub oldest: Stamp,
}

impl Source {
    /// A new one.
    #[must_use]
    pub fn new(name: &SourceName, rules: &Rules) -> Self {
        Self {
            name: name.clone(),
            rules: rules.clone(),
            blocked_until: Stamp(0),
            last_start: None,
            nth: 0,
            ready: 0,
            due: 0,
            in_flight: 0,
            dead: 0,
            done: 0,
            started: 0,
            finished: 0,
            retried: 0,
            expired: 0,
            promised: 0,
            promised_until: Stamp(0),
            seat: Seat::default(),
        }
    }

    /// As the rules look at it. `first_end` is asked for only when as many are in flight as allowed.
    #[must_use]
    pub fn standing(&self, recent: Recent, first_end: Option<Stamp>) -> Standing {
        Standing {
            blocked_until: self.blocked_until,
            last_start: self.last_start,
            recent: recent.count,
            oldest_recent: recent.oldest,
            in_flight: u32::try_from(self.in_flight).unwrap_or(u32::MAX),
            first_end,
        }
    }

    /// Whether as many are in flight as allowed: then when the first lease ends is of interest.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rules.cap.is_some_and(|cap| u64::from(cap) <= self.in_flight)
    }

    /// Why no claim is served from it at `now`; `None` if one can be. `first_due` is the instant of its first due task.
    #[must_use]
    pub fn shut(
        &self,
        recent: Recent,
        first_end: Option<Stamp>,
        first_due: Option<Stamp>,
        now: Stamp,
    ) -> Option<Shut> {
        if self.ready == 0 {
            return Some(Shut { reason: Reason::Empty, until: first_due });
        }
        self.rules.room(&self.standing(recent, first_end), now).err()
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Made of source and key.
    pub id: TaskId,
    /// To which it belongs for good.
    pub source: SourceName,
    /// Where it is.
    pub state: TaskState,
    /// 0 to 9; 9 is the most urgent.
    pub priority: u8,
    /// Its place among the ready ones of its source, if it is ready.
    pub place: Option<Place>,
    /// When it becomes ready, if it is due.
    pub at: Option<Stamp>,
    /// When its lease ends, if it is leased.
    pub until: Option<Stamp>,
    /// How long it lasts from its grant, and from each extension, if it is leased: the rules of its source may say something else by then.
    pub lease: Option<Duration>,
    /// Tries so far, the present one counted.
    pub attempt: u32,
    /// Of the newest lease; 0 before the first.
    pub token: Token,
    /// Of the newest accepted result: a report that is repeated is known by it.
    pub accepted: Token,
    /// The newest to hold it.
    pub collector: Option<CollectorName>,
    /// The newest claim that it was in, while that is remembered.
    pub claim: Option<ClaimId>,
    /// Again, this long after each `done`.
    pub every: Option<Duration>,
    /// When it was put.
    pub created: Stamp,
    /// Of the newest change of state.
    pub changed: Stamp,
    /// The newest error that was reported; none once it is done or revived.
    pub error: Option<String>,
}

impl Task {
    /// Whether it is in hand under `token`, and its lease is not over.
    #[must_use]
    pub fn is_held(&self, token: Token, now: Stamp) -> bool {
        let lives = self.until.is_some_and(|until| until > now);
        self.state == TaskState::Leased && self.token == token && lives
    }
}

/// What was answered to a request, remembered so that asking again gets the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Made of owner, collector and request.
    pub id: ClaimId,
    /// Who asked.
    pub collector: CollectorName,
    /// What it called its request.
    pub request: RequestId,
    /// The answer.
    pub kept: Kept,
    /// Not known any more from then on.
    pub forget: Stamp,
}

/// See [`Claim`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kept {
    /// Tasks.
    Granted {
        /// Those that were neither reported nor given back, held or lost, in the order in which they were granted.
        tasks: Vec<(TaskId, Token)>,
        /// The last end of their leases.
        until: Stamp,
        /// A collector may have it in hand although the node that granted it thinks otherwise: the request was answered
        /// again, or before.
        repeated: bool,
    },
    /// Nothing.
    Nothing {
        /// Why.
        reason: Reason,
        /// When asking again may help.
        next_at: Option<Stamp>,
    },
}

/// What a claim gets. The store adds keys and payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yours until then (the earliest end, should the sources' leases differ).
    Granted {
        /// To extend and to give back.
        claim: ClaimId,
        /// The earliest end.
        lease_until: Stamp,
        /// As leased.
        tasks: Vec<Task>,
    },
    /// Nothing now.
    Nothing {
        /// Of the source that can be served the soonest.
        reason: Reason,
        /// When asking again may help, as far as is known.
        next_at: Option<Stamp>,
    },
}

/// What a transition leaves: every record that changed, once, and what else is to be written. All of it is one atomic
/// step, on condition that nothing which was loaded has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<T> {
    /// For the caller.
    pub answer: T,
    /// From now on.
    pub book: Book,
    /// Sources that are new or changed.
    pub sources: Vec<Source>,
    /// Tasks that changed; new ones are in [`Write::Put`].
    pub tasks: Vec<Task>,
    /// Claims that are new or changed; `None`: it is forgotten.
    pub claims: Vec<(ClaimId, Option<Claim>)>,
    /// In this order.
    pub writes: Vec<Write>,
}

impl<T> Change<T> {
    /// The answer, and the rest of it.
    pub fn apart(self) -> (T, Change<()>) {
        let Self { answer, book, sources, tasks, claims, writes } = self;
        (answer, Change { answer: (), book, sources, tasks, claims, writes })
    }
}

/// What is to be written beside the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new task: key and payload are those of that number in the batch that was put.
    Put(Box<Task>, usize),
    /// It is the newest done task: its payload is needed no more, and the oldest beyond [`super::DONE_KEPT`] are
    /// forgotten, perhaps [several together](super::DONE_BEYOND).
    Finished(TaskId),
    /// It has one more entry in its history, of which the newest [`super::HISTORY_KEPT`] are kept.
    Note(TaskId, Past),
    /// It is there no more, with its history; it was `done` before, and counted as such, or not.
    Remove(TaskId, bool),
    /// Tasks of a source started now; `nth` is the number of the first of them, counted since the source exists. Those
    /// that are `span` ago, or longer, are counted by no window.
    Start {
        /// Of which source.
        source: SourceName,
        /// From 1.
        nth: u64,
        /// How far the window looks back.
        span: Duration,
    },
    /// No window counts the starts of that source so far.
    ForgetStarts(SourceName),
    /// This collector called now. A store that has noted the same less than [`SEEN_EVERY`] ago may leave it out.
    Seen(CollectorName),
    /// It waits behind all others, until then; one that waits already keeps its place.
    Enter {
        /// Who.
        waiter: Waiter,
        /// For tasks of these; none: of any.
        sources: Vec<SourceName>,
        /// Not counted any more from then on.
        until: Stamp,
    },
    /// It waits no more, if it did.
    Strike(Waiter),
    /// It waits no more, and is woken.
    Wake(Waiter),
}
