//! Laws of waiting for a turn: exactly one is woken for each, and nobody who is dead holds up the others.

use soloist::domain::rotation::{Reason, Rules, Skip, TypeRules};
use soloist::store::Store;
use soloist::store::rotation::{PROMISE, Rotations, Taken, TurnAsk};

use super::ear::Ear;
use super::rotation::*;
use super::{Fresh, LONG};
use crate::support::machine::in_time;

const OTHER: &str = "node-b/y";

/// They wait, in this order: `a1` for type `a`, and so on.
async fn queue(store: &Store, incarnation: &str, names: &[&str]) -> Vec<TurnAsk> {
    let asks: Vec<_> = names.iter().map(|name| waiting_at(incarnation, &name[..1], name)).collect();
    for ask in &asks {
        refused(store, ask).await;
    }
    asks
}

/// Returns when a promise that was made before this has lapsed, but for somebody noticing.
async fn outwait_a_promise(store: &Store) {
    reach(store, view(store).await.now + PROMISE).await;
}

pub(super) async fn a_pass_wakes_exactly_one(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let mut turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["a1", "a2", "b1", "a3", "b2"]).await;
    assert!(ear.woken(&store).await.is_empty(), "the turn is held");
    for expected in ["b1", "a1", "b2", "a2", "a3"] {
        finish(&store, &turn).await;
        assert_eq!(ear.woken(&store).await, [expected]);
        let ask = asks.iter().find(|ask| ask.worker.as_str() == expected).expect("there");
        turn = granted(&store, ask).await;
        assert!(ear.woken(&store).await.is_empty(), "nobody for {expected}'s turn");
    }
    finish(&store, &turn).await;
    assert!(ear.woken(&store).await.is_empty(), "nobody waits");
    assert_eq!(store.pump_turns(LIFE).await.expect("pumped").next, None);
}

pub(super) async fn while_the_turn_is_promised_nobody_else_is_woken(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["a1", "a2", "b1"]).await;
    finish(&store, &turn).await;
    let promised = view(&store).await.now;
    let mut answers = Vec::new();
    for _ in 0..3 {
        store.pump_turns(LIFE).await.expect("pumped");
        store.pump_turns(OTHER).await.expect("pumped");
        answers.push(take(&store, &asks[0]).await);
        answers.push(take(&store, &request("a")).await);
    }
    let asked = view(&store).await.now;
    let woken = ear.woken(&store).await;
    in_time(asked < promised + PROMISE, || {
        format!("the promise lapsed before all had asked: {answers:?}")
    });
    for answer in answers {
        assert!(matches!(answer, Taken::Waiting { .. }), "{answer:?}");
    }
    assert_eq!(woken, ["b1"]);
    granted(&store, &asks[2]).await;
}

pub(super) async fn the_end_of_a_gap_wakes_one(fresh: Fresh) {
    let gap = MS * 150;
    let types = vec![TypeRules { gap: LONG, ..of("a") }, of("b")];
    let store = ready(&fresh, &Rules { types, min_gap: gap, ..free(&[]) }).await;
    let mut turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["a1", "b1", "b2"]).await;
    finish(&store, &turn).await;
    for ask in &asks[1..] {
        let pumped = store.pump_turns(LIFE).await.expect("pumped");
        let opens = turn.since + gap;
        assert!(pumped.now >= opens || pumped.next == Some(opens), "{pumped:?}");
        let mut woken = ear.woken(&store).await;
        if woken.is_empty() {
            woken = ear.after_pump(&store, LIFE).await;
        }
        assert_eq!(woken, [ask.worker.as_str()]);
        let next = granted(&store, ask).await;
        assert!(next.since >= opens);
        finish(&store, &next).await;
        turn = next;
    }
    assert_eq!(refused(&store, &asks[0]).await.reason, Reason::Gap);
}

pub(super) async fn a_dead_holders_turn_goes_on_without_a_client(fresh: Fresh) {
    let store = ready(&fresh, &Rules { lease: MS * 400, ..free(&["a", "b"]) }).await;
    let lost = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["a1", "b1"]).await;
    let mut woken = ear.woken(&store).await;
    if woken.is_empty() {
        woken = ear.after_pump(&store, OTHER).await;
    }
    assert_eq!(woken, ["b1"]);
    let next = granted(&store, &asks[1]).await;
    assert!(next.since >= lost.until);
    let past = view(&store).await.past;
    assert_eq!((past[0].token, past[0].ended), (lost.token, lost.until));
}

pub(super) async fn a_promise_nobody_takes_up_goes_to_the_next(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    queue(&store, LIFE, &["b1"]).await;
    let other = queue(&store, OTHER, &["a1"]).await;
    finish(&store, &turn).await;
    let due = store.pump_turns(OTHER).await.expect("pumped");
    assert!(due.next.is_some_and(|next| next <= due.now + PROMISE), "{due:?}");
    let mut woken = ear.woken(&store).await;
    while woken.len() < 2 {
        woken.extend(ear.after_pump(&store, OTHER).await);
    }
    assert_eq!(woken, ["b1", "a1"]);
    granted(&store, &other[0]).await;
    let waiters = view(&store).await.waiters;
    assert_eq!(waiters, [], "whoever did not come has lost its place");
}

pub(super) async fn a_silent_life_is_passed_over_until_it_is_heard_of(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a"])).await;
    let mut ear = Ear::new(&store).await;
    for heard_by_asking in [false, true] {
        let turn = granted(&store, &request("a")).await;
        let silent = queue(&store, LIFE, &["a1", "a2"]).await;
        let other = queue(&store, OTHER, &["a3"]).await;
        let late = queue(&store, LIFE, &["a4", "a5"]).await;
        finish(&store, &turn).await;
        assert_eq!(ear.woken(&store).await, ["a1"]);
        outwait_a_promise(&store).await;
        assert_eq!(
            ear.after_pump(&store, OTHER).await,
            ["a3"],
            "a2 is of the same incarnation as a1"
        );
        let turn = granted(&store, &other[0]).await;
        finish(&store, &turn).await;
        assert!(ear.woken(&store).await.is_empty());
        store.pump_turns(OTHER).await.expect("pumped");
        assert!(ear.woken(&store).await.is_empty(), "they may be dead");
        if heard_by_asking {
            assert_eq!(refused(&store, &late[0]).await.reason, Reason::Order);
        } else {
            store.pump_turns(LIFE).await.expect("pumped");
        }
        assert_eq!(ear.woken(&store).await, ["a2"], "everybody has the old place");
        let mut turn = granted(&store, &silent[1]).await;
        for ask in &late {
            finish(&store, &turn).await;
            assert_eq!(ear.woken(&store).await, [ask.worker.as_str()]);
            turn = granted(&store, ask).await;
        }
        finish(&store, &turn).await;
    }
}

pub(super) async fn a_life_that_pumps_is_not_silent(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["a1", "a2"]).await;
    finish(&store, &turn).await;
    assert_eq!(ear.woken(&store).await, ["a1"]);
    outwait_a_promise(&store).await;
    store.pump_turns(LIFE).await.expect("pumped");
    assert_eq!(ear.woken(&store).await, ["a2"]);
    granted(&store, &asks[1]).await;
}

pub(super) async fn whoever_comes_late_has_the_turn_if_nobody_asked_meanwhile(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["a1", "a2"]).await;
    finish(&store, &turn).await;
    outwait_a_promise(&store).await;
    let turn = granted(&store, &asks[0]).await;
    assert_eq!(ear.woken(&store).await, ["a1"]);
    finish(&store, &turn).await;
    assert_eq!(ear.woken(&store).await, ["a2"], "it is not silent");
}

pub(super) async fn whoever_stopped_waiting_is_not_woken(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    queue(&store, LIFE, &["b1", "b2", "a1", "a2"]).await;
    let brief = TurnAsk { wait: Some((waiter(LIFE, "b3"), MS * 20)), ..waiting("b", "b3") };
    refused(&store, &brief).await;
    queue(&store, LIFE, &["b4"]).await;
    for gone in ["b1", "b2", "b9"] {
        store.leave_queue(&api(), &waiter(LIFE, gone)).await.expect("left");
    }
    reach(&store, view(&store).await.now + MS * 20).await;
    assert!(ear.woken(&store).await.is_empty());
    finish(&store, &turn).await;
    // It is promised to another.
    store.leave_queue(&api(), &waiter(LIFE, "a2")).await.expect("left");
    assert_eq!(ear.woken(&store).await, ["b4"]);
    store.leave_queue(&api(), &waiter(LIFE, "b4")).await.expect("left");
    assert_eq!(ear.woken(&store).await, ["a1"], "whoever was promised the turn makes way");
    store.leave_queue(&api(), &waiter(LIFE, "a1")).await.expect("left");
    assert!(ear.woken(&store).await.is_empty());
    granted(&store, &request("b")).await;
}

pub(super) async fn whoever_has_an_answer_waits_no_more(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let first = waiting("a", "w1");
    // The same request, by the same worker, at another node.
    let second = TurnAsk { wait: Some((waiter(OTHER, "again"), LONG)), ..first.clone() };
    for ask in [&first, &second] {
        refused(&store, ask).await;
    }
    queue(&store, LIFE, &["a1"]).await;
    finish(&store, &turn).await;
    assert_eq!(ear.woken(&store).await, ["w1"]);
    let turn = granted(&store, &first).await;
    assert_eq!(granted(&store, &second).await, turn);
    finish(&store, &turn).await;
    assert_eq!(ear.woken(&store).await, ["a1"]);
}

pub(super) async fn a_turn_that_goes_back_wakes_the_next(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    queue(&store, LIFE, &["a1", "b1"]).await;
    assert!(store.give_back_unseen_turn(&api(), turn.token).await.expect("given back"));
    assert_eq!(ear.woken(&store).await, ["b1"]);
}

pub(super) async fn new_rules_wake_whom_they_concern(fresh: Fresh) {
    let never = Rules { skip: Skip::Never, min_gap: LONG, ..free(&["a", "b", "c"]) };
    let store = ready(&fresh, &never).await;
    let turn = granted(&store, &request("a")).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["b1", "c1", "c2", "a1"]).await;
    finish(&store, &turn).await;
    assert!(ear.woken(&store).await.is_empty());
    define(&store, &Rules { types: vec![of("a"), of("b"), of("d")], ..never.clone() }).await;
    let mut woken = ear.woken(&store).await;
    woken.sort();
    assert_eq!(woken, ["c1", "c2"], "their type is gone");
    assert_eq!(view(&store).await.waiters.len(), 2);
    define(&store, &free(&["d", "a", "b"])).await;
    assert_eq!(ear.woken(&store).await, ["b1"], "the gap is lifted");
    define(&store, &free(&["a", "d"])).await;
    let mut woken = ear.woken(&store).await;
    woken.sort();
    assert_eq!(woken, ["a1", "b1"], "what was promised to b1 is a1's now");
    granted(&store, &asks[3]).await;
}

pub(super) async fn an_absent_type_that_comes_wakes_nobody_else(fresh: Fresh) {
    let store = ready(&fresh, &Rules { skip: Skip::Never, ..free(&["a", "b"]) }).await;
    let mut ear = Ear::new(&store).await;
    let asks = queue(&store, LIFE, &["b1", "b2"]).await;
    assert_eq!(store.pump_turns(LIFE).await.expect("pumped").next, None, "it waits for a client");
    let a = granted(&store, &waiting("a", "a1")).await;
    assert!(ear.woken(&store).await.is_empty());
    finish(&store, &a).await;
    assert_eq!(ear.woken(&store).await, ["b1"]);
    finish(&store, &granted(&store, &asks[0]).await).await;
    assert!(ear.woken(&store).await.is_empty(), "it is the turn of a");
}
