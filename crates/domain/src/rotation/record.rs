//! A rotation as its transitions see it: what comes in and what goes out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::turns::PastTurn;
use super::{Ring, Rules, Turn};
use crate::name::{TypeName, Waiter, WorkerName};
use crate::time::Stamp;

/// The record: bounded by the types of its rules, their quotas, and the nodes that fell silent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rotation {
    /// Its rules.
    pub rules: Rules,
    /// How far it has come, and who has the turn.
    pub ring: Ring,
    /// The waiter that the turn is promised to; never while the turn is held.
    pub promise: Option<Promise>,
    /// The present turn was answered more than once, so a worker may know of it.
    pub seen: bool,
    /// Node incarnations (`NODE/RANDOM`) whose waiters are suspended, each until it renews itself or asks, or until then.
    pub silent: BTreeMap<String, Stamp>,
    /// The store's memory when it was looked at last.
    pub known: Memory,
    /// When the clock alone changes something: a transition of [`super::Caller::Clock`] is due then.
    pub due: Option<Stamp>,
}

/// A waiter that was woken for the turn: no other waiter gets it meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Promise {
    pub waiter: Waiter,
    pub kind: TypeName,
    pub until: Stamp,
}

/// How far the memory of a store reaches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Memory {
    /// The process that remembers; what another one wrote last may be missing. A store that cannot forget names none.
    pub server: String,
    /// When it was found last that something may be missing.
    pub forgot: Option<Stamp>,
}

/// Who waits, as far as a transition looks: of each type the first ones, in the order of their places.
///
/// They wait still (their time is not over; that of a [`TurnAsk`](super::TurnAsk) that is just being answered does not count).
/// There must be the first [three](Self::FIRST) of each type that are not of a [silent](Rotation::silent) incarnation, if there
/// are so many. More do no harm.
#[derive(Debug, Clone, Default)]
pub struct Queues(pub BTreeMap<TypeName, Vec<Waiter>>);

impl Queues {
    /// Two may leave in a transition: whose promise lapsed, and who calls.
    pub const FIRST: usize = 3;
}

impl Rotation {
    /// A new one.
    #[must_use]
    pub fn new(rules: Rules, memory: &Memory) -> Self {
        Self {
            rules,
            ring: Ring::default(),
            promise: None,
            seen: false,
            silent: BTreeMap::new(),
            // A rotation that is new in a store that forgot may be an old one, and a worker may hold its turn: the next
            // transition looks at that.
            known: Memory { server: memory.server.clone(), forgot: None },
            due: None,
        }
    }

    /// Every instant that a transition compares its own with: between two of them the same is decided.
    pub fn edges(&self) -> impl Iterator<Item = Stamp> {
        let promised = self.promise.iter().map(|promise| promise.until);
        self.ring
            .edges(&self.rules)
            .chain(promised)
            .chain(self.silent.values().copied())
            .chain(self.due)
    }

    /// How many waiters have a turn before a waiter for `kind`, if all take theirs.
    ///
    /// `before` wait for that type and came earlier; `waiting` is how many there are of each type. Counted and not decided: a
    /// store counts after it has written.
    #[must_use]
    pub fn ahead(&self, kind: &TypeName, before: u64, waiting: &BTreeMap<TypeName, u64>) -> u64 {
        let mut ahead = before;
        let mut comes_first = true;
        for other in self.ring.order(&self.rules) {
            if other.name == *kind {
                comes_first = false;
                continue;
            }
            let waiting = waiting.get(&other.name).copied().unwrap_or(0);
            ahead += waiting.min(before + u64::from(comes_first));
        }
        ahead
    }
}

/// What a transition leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<T> {
    /// For the caller.
    pub answer: T,
    /// The record from now on.
    pub rotation: Rotation,
    /// What is to be written beside it.
    pub writes: Vec<Write>,
}

impl<T> Change<T> {
    /// The answer, and the rest of it.
    pub fn apart(self) -> (T, Change<()>) {
        let Self { answer, rotation, writes } = self;
        (answer, Change { answer: (), rotation, writes })
    }
}

/// What is to be written beside the rotation, in this order, in the same atomic step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A turn ended: it is the newest that is remembered ([`super::TURNS_KEPT`]), and counted for its type and ending.
    Remember(PastTurn),
    /// Its lease ran out: the next pump reports it.
    Report(Turn),
    /// Its request (of its type and worker) has this turn, as a repetition is told until then.
    Note(Turn, Stamp),
    /// Its request had no turn.
    Forget(Turn),
    /// It waits, behind all others of its type, from now and until then; one that waits already keeps its place and
    /// its beginning.
    Enter {
        /// Who.
        waiter: Waiter,
        /// For what.
        kind: TypeName,
        /// Its worker.
        worker: WorkerName,
        /// Not counted any more from then on.
        until: Stamp,
    },
    /// It waits no more, if it did.
    Strike(Waiter),
    /// All who wait for that type wait no more, and are woken: it is gone.
    Dismiss(TypeName),
    /// It is woken.
    Wake(Waiter),
}
