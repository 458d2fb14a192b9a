//! The newest that this process saw of each rotation: what a transition is decided on first.
//!
//! It may be old, and then the change is refused. So whatever stands here, nothing wrong is ever written; it only saves a reading.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::record::{Case, Standing};
use soloist_domain::name::{RotationName, TypeName, Waiter};
use soloist_domain::rotation::Memory;
use soloist_domain::time::Stamp;

/// More than any store has; what comes and goes must not fill the memory.
const MOST: usize = 20_000;

/// A queue: its type and the node incarnation at which they wait.
pub(super) type Queue = (TypeName, String);

/// A waiter that stands in a queue.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) waiter: Waiter,
    /// Row and its text; `None`: there is none, so its time is over.
    pub(super) standing: Option<(Standing, String)>,
}

/// The first of a queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Heads {
    pub(super) first: Vec<Place>,
    /// There are no others.
    pub(super) all: bool,
}

/// What is remembered of one rotation.
#[derive(Clone)]
pub(super) struct Remembered {
    pub(super) case: Case,
    pub(super) memory: Memory,
    pub(super) heads: Arc<HashMap<Queue, Heads>>,
}

impl Remembered {
    /// Of a queue that was not looked at, what was known of it is known still.
    fn learn(&mut self, newer: Self) {
        let Self { case, memory, heads } = newer;
        let mut all = Arc::unwrap_or_clone(std::mem::replace(&mut self.heads, heads));
        all.retain(|(_, incarnation), _| case.body.incarnations.contains(incarnation));
        let heads = Arc::make_mut(&mut self.heads);
        for (queue, first) in all {
            heads.entry(queue).or_insert(first);
        }
        (self.case, self.memory) = (case, memory);
    }
}

/// What becomes of remembered queues by a change.
#[derive(Debug)]
pub(super) enum News {
    /// They wait no more.
    Left(Waiter),
    /// They are first there.
    Is(Queue, Heads),
    /// It is not known any more who is first there.
    Unknown(Queue),
}

/// What is remembered.
#[derive(Default)]
pub struct KnownTurns {
    rotations: Mutex<HashMap<RotationName, Remembered>>,
    /// Rows of those who wait at this process.
    waiting: Mutex<HashMap<(RotationName, Waiter), String>>,
    swept: Mutex<Option<Stamp>>,
    gates: Mutex<HashMap<RotationName, Arc<tokio::sync::Mutex<()>>>>,
}

impl KnownTurns {
    pub(super) fn of(&self, rotation: &RotationName) -> Option<Remembered> {
        self.rotations.lock().get(rotation).cloned()
    }

    /// All records, without their queues.
    pub(super) fn cases(&self) -> Vec<(RotationName, Case)> {
        let of = |(name, one): (&RotationName, &Remembered)| (name.clone(), one.case.clone());
        self.rotations.lock().iter().map(of).collect()
    }

    /// What was read just now.
    pub(super) fn put(&self, rotation: &RotationName, read: Remembered) {
        let mut rotations = self.rotations.lock();
        if rotations.len() >= MOST && !rotations.contains_key(rotation) {
            rotations.clear();
        }
        match rotations.get_mut(rotation) {
            Some(known) => known.learn(read),
            None => drop(rotations.insert(rotation.clone(), read)),
        }
    }

    /// A change was carried out. `decided` is what it was decided on.
    pub(super) fn done(
        &self,
        rotation: &RotationName,
        decided: Remembered,
        case: Case,
        news: Vec<News>,
    ) {
        let mut rotations = self.rotations.lock();
        let one = rotations.entry(rotation.clone()).or_insert_with(|| decided.clone());
        if one.case.head == decided.case.head {
            one.case = case;
        } else if one.case.written() <= case.written() {
            one.learn(Remembered { case, ..decided });
        }
        for new in news {
            match new {
                News::Left(waiter) => {
                    for heads in Arc::make_mut(&mut one.heads).values_mut() {
                        heads.first.retain(|place| place.waiter != waiter);
                    }
                }
                News::Is(queue, heads) => {
                    Arc::make_mut(&mut one.heads).insert(queue, heads);
                }
                News::Unknown(queue) => {
                    Arc::make_mut(&mut one.heads).remove(&queue);
                }
            }
        }
    }

    /// Held by a change that was refused: hundreds that are decided anew at once would refuse each other, and be too late.
    pub(super) fn gate(&self, rotation: &RotationName) -> Arc<tokio::sync::Mutex<()>> {
        let mut gates = self.gates.lock();
        if gates.len() >= MOST {
            gates.clear();
        }
        Arc::clone(gates.entry(rotation.clone()).or_default())
    }

    pub(super) fn forget(&self, rotation: &RotationName) {
        self.rotations.lock().remove(rotation);
    }

    /// The row of a waiter, as it was written here.
    pub(super) fn row(&self, rotation: &RotationName, waiter: &Waiter) -> Option<String> {
        self.waiting.lock().get(&(rotation.clone(), waiter.clone())).cloned()
    }

    pub(super) fn put_row(&self, rotation: &RotationName, waiter: &Waiter, row: Option<String>) {
        let mut waiting = self.waiting.lock();
        let key = (rotation.clone(), waiter.clone());
        match row {
            Some(row) => {
                if waiting.len() >= MOST && !waiting.contains_key(&key) {
                    waiting.clear();
                }
                waiting.insert(key, row);
            }
            None => drop(waiting.remove(&key)),
        }
    }

    /// There was more than one pump tidies.
    pub(super) fn sweep_at_once(&self) {
        *self.swept.lock() = None;
    }

    /// Whether so much time has passed since it was said last that it has.
    pub(super) fn is_time_to_sweep(&self, now: Stamp, every: Duration) -> bool {
        let mut swept = self.swept.lock();
        // Also when the store's clock was set back.
        let due = swept.is_none_or(|last| now < last || now >= last + every);
        if due {
            *swept = Some(now);
        }
        due
    }
}
