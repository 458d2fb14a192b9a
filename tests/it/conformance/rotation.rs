//! What the laws of rotations have in common: rules, requests, turns and readings in few words.

use std::time::Duration;

use soloist::domain::name::{RequestId, RotationName, TypeName, WorkerName};
use soloist::domain::rotation::{Reason, Rules, Skip, Turn, TurnOutcome, TypeRules};
use soloist::store::Store;
use soloist::store::dispatch::Waiter;
use soloist::store::rotation::{Kept, Pass, PastTurn, RotationView, Rotations, Taken, TurnAsk};

pub(super) use super::dispatch::{MS, Stamp};
use super::ear::Ear;
use super::{Fresh, LONG, eventually, jump, nap, unique};

pub(super) fn rotation(name: &str) -> RotationName {
    RotationName::new(name).expect("a good name")
}

/// The one that most laws are about.
pub(super) fn api() -> RotationName {
    rotation("supplier-api")
}

pub(super) fn kind(name: &str) -> TypeName {
    TypeName::new(name).expect("a good name")
}

pub(super) fn worker(name: &str) -> WorkerName {
    WorkerName::new(name).expect("a good label")
}

/// No gaps, no quotas, and a lease that outlasts the test.
pub(super) fn free(types: &[&str]) -> Rules {
    let types = types.iter().map(|name| of(name)).collect();
    Rules { types, min_gap: Duration::ZERO, lease: LONG, skip: Skip::Absent }
}

/// A type without limits of its own.
pub(super) fn of(name: &str) -> TypeRules {
    TypeRules { name: kind(name), gap: Duration::ZERO, quota: None }
}

pub(super) async fn define(store: &Store, rules: &Rules) -> RotationView {
    rules.check().expect("good rules");
    store.put_rotation(&api(), rules).await.expect("defined")
}

/// A store with that rotation under `rules`.
pub(super) async fn ready(fresh: &Fresh, rules: &Rules) -> Store {
    let store = fresh.connect().await;
    define(&store, rules).await;
    store
}

/// A new request, final if the turn cannot be had now.
pub(super) fn request(type_: &str) -> TurnAsk {
    TurnAsk {
        rotation: api(),
        kind: kind(type_),
        worker: worker("w"),
        request: RequestId::new(&unique("request")).expect("a good label"),
        wait: None,
    }
}

pub(super) fn waiter(incarnation: &str, name: &str) -> Waiter {
    Waiter(format!("{incarnation}/{name}"))
}

/// Where waiters wait unless it is said otherwise.
pub(super) const LIFE: &str = "node-a/x";

/// The request of the worker `name`, who waits for it.
pub(super) fn waiting(type_: &str, name: &str) -> TurnAsk {
    waiting_at(LIFE, type_, name)
}

/// The same at another node, or at another incarnation of it.
pub(super) fn waiting_at(incarnation: &str, type_: &str, name: &str) -> TurnAsk {
    let wait = Some((waiter(incarnation, name), LONG));
    TurnAsk { worker: worker(name), wait, ..request(type_) }
}

pub(super) async fn take(store: &Store, ask: &TurnAsk) -> Taken {
    store.take_turn(ask).await.expect("the store answers")
}

/// Takes what must be to be had.
pub(super) async fn granted(store: &Store, ask: &TurnAsk) -> Turn {
    match take(store, ask).await {
        Taken::Granted(turn) => {
            assert_eq!((&turn.kind, &turn.worker), (&ask.kind, &ask.worker));
            assert_eq!(turn.request, ask.request);
            turn
        }
        other => panic!("{ask:?} was not granted: {other:?}"),
    }
}

/// Why a turn is not to be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) holder: Option<Turn>,
    pub(super) earliest_at: Stamp,
    pub(super) ahead: u64,
    pub(super) reason: Reason,
}

/// Asks where the turn must not be had.
pub(super) async fn refused(store: &Store, ask: &TurnAsk) -> Refused {
    match take(store, ask).await {
        Taken::Waiting { holder, earliest_at, ahead, reason } => {
            Refused { holder, earliest_at, ahead, reason }
        }
        other => panic!("{ask:?} was answered {other:?}"),
    }
}

pub(super) fn done(turn: &Turn) -> Pass {
    Pass {
        rotation: api(),
        turn: turn.token,
        only: None,
        outcome: TurnOutcome::Done,
        next: None,
        not_before: None,
    }
}

pub(super) async fn say(store: &Store, pass: &Pass) -> Kept {
    store.pass_turn(pass).await.expect("the store answers")
}

/// Passes a turn that is had.
pub(super) async fn finish(store: &Store, turn: &Turn) {
    say_well(store, &done(turn)).await;
}

/// The same in other words.
pub(super) async fn say_well(store: &Store, pass: &Pass) {
    match say(store, pass).await {
        Kept::Yes(turn) => assert_eq!(turn.token, pass.turn),
        stale @ Kept::Stale { .. } => panic!("{pass:?}: {stale:?}"),
    }
}

/// What a stale extension or pass is told.
pub(super) fn stale(kept: Kept) -> (Option<PastTurn>, Option<Turn>) {
    match kept {
        Kept::Stale { past, holder } => (past, holder),
        Kept::Yes(turn) => panic!("it counted: {turn:?}"),
    }
}

/// The rotation with all it remembers.
pub(super) async fn view(store: &Store) -> RotationView {
    let mut views = store.rotations(Some(&api()), usize::MAX).await.expect("known");
    assert_eq!(views.len(), 1);
    views.remove(0)
}

/// Returns when the store's clock shows `at` or later.
pub(super) async fn reach(store: &Store, at: Stamp) {
    if jump(store, at) {
        return;
    }
    eventually(store, "the store's clock gets there", async || {
        let views = store.rotations(None, 0).await.expect("rotations");
        (views.first().expect("a rotation").now >= at).then_some(())
    })
    .await;
}

impl Ear {
    /// Lets the pump of `incarnation` run until somebody is woken; who.
    pub(super) async fn after_pump(&mut self, store: &Store, incarnation: &str) -> Vec<String> {
        for _ in 0..6_000 {
            store.pump_turns(incarnation).await.expect("pumped");
            let woken = self.woken(store).await;
            if !woken.is_empty() {
                return woken;
            }
            nap(store).await;
        }
        panic!("nobody was woken");
    }
}
