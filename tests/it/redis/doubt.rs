//! A store that forgot whose turn it was gives nobody a turn before the forgotten one has run out.

use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::name::RotationName;
use soloist::domain::rotation::{Reason, Rules, Skip, Turn, TurnOutcome, TypeRules};
use soloist::domain::time::Boot;
use soloist::store::Store;
use soloist::store::dispatch::Waiter;
use soloist::store::rotation::{Kept, Pass, Rotations, Taken, TurnAsk};

use super::{RedisServer, connect, in_the_end};
use crate::support::machine::{holds, judged};
use crate::support::wait::until_async;

judged! {
    a_turn_that_a_restart_forgot_is_waited_for_and_its_holder_hears_so
    a_turn_that_a_restart_remembers_goes_on_and_nobody_follows_within_a_lease
    a_rotation_defined_again_after_flushall_waits_for_the_turns_of_before
    a_promise_of_before_a_restart_is_no_turn
    a_rotation_on_a_store_that_forgot_nothing_begins_at_once
}

const LEASE: Duration = Duration::from_millis(1_500);

fn supplier() -> RotationName {
    "supplier".parse().expect("a name")
}

async fn define(store: &Store) {
    let kind = |name: &str| TypeRules {
        name: name.parse().expect("a name"),
        gap: Duration::ZERO,
        quota: None,
    };
    let types = vec![kind("apple"), kind("berry")];
    let rules = Rules { types, min_gap: Duration::ZERO, lease: LEASE, skip: Skip::Absent };
    let name = supplier();
    in_the_end(|| store.put_rotation(&name, &rules)).await;
}

fn ask(kind: &str) -> TurnAsk {
    TurnAsk {
        rotation: supplier(),
        kind: kind.parse().expect("a name"),
        worker: format!("{kind}-worker").parse().expect("a label"),
        request: format!("for-{kind}").parse().expect("a label"),
        wait: None,
    }
}

async fn granted(store: &Store, kind: &str) -> Turn {
    let ask = ask(kind);
    match in_the_end(|| store.take_turn(&ask)).await {
        Taken::Granted(turn) => turn,
        other => panic!("{other:?}"),
    }
}

/// The berry is refused for now, and has its turn when a lease since `forgot` is over.
async fn only_after_a_lease(store: &Store, forgot: Boot) -> Turn {
    let ask = ask("berry");
    let answer = in_the_end(|| store.take_turn(&ask)).await;
    let waits = matches!(answer, Taken::Waiting { reason: Reason::Recovery, .. });
    assert!(waits, "{answer:?}");
    let turn = until_async("it has its turn", async || {
        match store.take_turn(&ask).await.expect("an answer") {
            Taken::Granted(turn) => Some(turn),
            Taken::Waiting { reason: Reason::Recovery, .. } => None,
            other => panic!("{other:?}"),
        }
    })
    .await;
    let waited = boot().since(forgot);
    holds(waited >= LEASE, || format!("granted after {waited:?}"));
    turn
}

async fn extend(store: &Store, turn: &Turn) -> Kept {
    let name = supplier();
    in_the_end(|| store.extend_turn(&name, turn.token, None)).await
}

async fn pass(store: &Store, turn: &Turn) -> Kept {
    let pass = Pass {
        rotation: supplier(),
        turn: turn.token,
        only: None,
        outcome: TurnOutcome::Done,
        next: None,
        not_before: None,
    };
    store.pass_turn(&pass).await.expect("an answer")
}

async fn a_turn_that_a_restart_forgot_is_waited_for_and_its_holder_hears_so() {
    let mut server = RedisServer::start(&[]);
    let store = connect(&server).await;
    define(&store).await;
    // What is on disk knows the rotation and nothing of its turn.
    server.run::<()>(&["SAVE"]);
    let forgotten = granted(&store, "apple").await;
    let restarted = boot();
    server.restart();
    let next = only_after_a_lease(&store, restarted).await;
    assert!(next.token > forgotten.token);
    assert!(matches!(extend(&store, &forgotten).await, Kept::Stale { past: None, .. }));
}

async fn a_turn_that_a_restart_remembers_goes_on_and_nobody_follows_within_a_lease() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = connect(&server).await;
    define(&store).await;
    let turn = granted(&store, "apple").await;
    let restarted = boot();
    server.restart();
    assert!(matches!(extend(&store, &turn).await, Kept::Yes(_)));
    assert!(matches!(pass(&store, &turn).await, Kept::Yes(_)));
    let next = only_after_a_lease(&store, restarted).await;
    assert!(matches!(pass(&store, &next).await, Kept::Yes(_)));
    // Once is enough.
    let again = TurnAsk { request: "again".parse().expect("a label"), ..ask("apple") };
    let answer = store.take_turn(&again).await.expect("an answer");
    assert!(matches!(answer, Taken::Granted(_)), "{answer:?}");
}

async fn a_rotation_defined_again_after_flushall_waits_for_the_turns_of_before() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    define(&store).await;
    let forgotten = granted(&store, "apple").await;
    let emptied = boot();
    server.run::<()>(&["FLUSHALL"]);
    define(&store).await;
    let next = only_after_a_lease(&store, emptied).await;
    assert!(next.token > forgotten.token);
    assert!(matches!(extend(&store, &forgotten).await, Kept::Stale { past: None, .. }));
}

/// It may have lapsed, and another may have the turn: only the store that forgot does not know.
async fn a_promise_of_before_a_restart_is_no_turn() {
    let mut server = RedisServer::start(&[]);
    let store = connect(&server).await;
    define(&store).await;
    let turn = granted(&store, "apple").await;
    let wait = Some((Waiter("node-b/life/1".to_owned()), Duration::from_secs(30)));
    let waits = TurnAsk { wait, ..ask("berry") };
    let answer = store.take_turn(&waits).await.expect("an answer");
    assert!(matches!(answer, Taken::Waiting { reason: Reason::Held, .. }), "{answer:?}");
    assert!(matches!(pass(&store, &turn).await, Kept::Yes(_)));
    server.run::<()>(&["SAVE"]);
    server.restart();
    let answer = in_the_end(|| store.take_turn(&waits)).await;
    assert!(matches!(answer, Taken::Waiting { reason: Reason::Recovery, .. }), "{answer:?}");
}

async fn a_rotation_on_a_store_that_forgot_nothing_begins_at_once() {
    let server = RedisServer::start(&[]);
    server.run::<()>(&["FLUSHALL"]);
    let store = connect(&server).await;
    define(&store).await;
    granted(&store, "apple").await;
}
