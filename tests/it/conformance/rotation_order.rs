//! Laws of whose turn it is, and when: the order of types, gaps, quotas, and what whoever waits is told.

use std::collections::BTreeMap;

use soloist::domain::dispatch::Window;
use soloist::domain::rotation::{Ending, Reason, Rules, Skip, Turn, TurnOutcome, TypeRules};
use soloist::store::Store;
use soloist::store::rotation::{Kept, PROMISE, Pass, Rotations, Taken, TurnAsk};

use super::rotation::*;
use super::{Fresh, LONG, breathe};
use crate::support::machine::stretched;

/// Everybody who waits, named `a1` if it is the first who waits for `a`.
async fn queue(store: &Store, names: &[&str]) -> Vec<TurnAsk> {
    let asks: Vec<_> = names.iter().map(|name| waiting(&name[..1], name)).collect();
    for ask in &asks {
        refused(store, ask).await;
    }
    asks
}

/// Those who wait have a turn after `turn` in this order, each until it passes.
async fn turns_go(store: &Store, mut turn: Turn, asks: &[TurnAsk], order: &[&str]) {
    for name in order {
        finish(store, &turn).await;
        // It is promised to one, so whoever has it now is the one whose turn it is.
        turn = granted(store, of_worker(asks, name)).await;
    }
    finish(store, &turn).await;
}

fn of_worker<'a>(asks: &'a [TurnAsk], name: &str) -> &'a TurnAsk {
    asks.iter().find(|ask| ask.worker == worker(name)).expect("there")
}

pub(super) async fn types_take_turns_among_those_with_somebody_waiting(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b", "c", "d"])).await;
    let turn = granted(&store, &request("b")).await;
    let asks = queue(&store, &["a1", "a2", "b1", "d1", "d2", "a3"]).await;
    turns_go(&store, turn, &asks, &["d1", "a1", "b1", "d2", "a2", "a3"]).await;
}

pub(super) async fn of_one_type_whoever_came_first_is_served_first(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let turn = granted(&store, &request("a")).await;
    let mut asks = queue(&store, &["a1", "a2", "a3"]).await;
    // Asked again, it keeps its place.
    refused(&store, &asks[0]).await;
    finish(&store, &turn).await;
    let promised = view(&store).await.now;
    // Newcomers do not overtake who waits, also those whose type would come first.
    for newcomer in [request("a"), request("b"), waiting("a", "a4")] {
        assert_eq!(refused(&store, &newcomer).await.reason, Reason::Order, "{newcomer:?}");
        asks.push(newcomer);
    }
    if view(&store).await.now < promised + PROMISE {
        let first = granted(&store, &asks[0]).await;
        turns_go(&store, first, &asks, &["a2", "a3", "a4"]).await;
    }
}

pub(super) async fn nobody_overtakes_at_the_end_of_a_gap(fresh: Fresh) {
    let store = ready(&fresh, &Rules { min_gap: MS * 60, ..free(&["a", "b"]) }).await;
    let turn = granted(&store, &request("a")).await;
    let asks = queue(&store, &["a1"]).await;
    finish(&store, &turn).await;
    reach(&store, turn.since + MS * 60).await;
    // Nobody was woken yet.
    assert_eq!(refused(&store, &request("a")).await.reason, Reason::Order);
    granted(&store, &asks[0]).await;
}

pub(super) async fn with_skip_never_everybody_waits_for_the_absent(fresh: Fresh) {
    let never = Rules { skip: Skip::Never, ..free(&["a", "b", "c"]) };
    let store = ready(&fresh, &never).await;
    assert_eq!(refused(&store, &request("b")).await.reason, Reason::Absent);
    let asks = queue(&store, &["b1", "c1", "c2"]).await;
    let a = granted(&store, &request("a")).await;
    turns_go(&store, a, &asks, &["b1", "c1"]).await;
    assert_eq!(refused(&store, &asks[2]).await.reason, Reason::Absent);
    // Of a type that is there but not allowed yet it is not said that it is absent.
    let types = vec![TypeRules { gap: LONG, ..of("a") }, of("b"), of("c")];
    define(&store, &Rules { types, ..never.clone() }).await;
    let late = waiting("a", "a1");
    assert_eq!(refused(&store, &late).await.reason, Reason::Gap);
    assert_eq!(refused(&store, &asks[2]).await.reason, Reason::Order);
    define(&store, &never).await;
    let a = granted(&store, &late).await;
    finish(&store, &a).await;
    assert_eq!(refused(&store, &asks[2]).await.reason, Reason::Absent, "it is the turn of b");
    define(&store, &Rules { skip: Skip::Absent, ..never }).await;
    granted(&store, &asks[2]).await;
}

/// Takes and passes turns of these types with an asker each, as fast as it goes, until `count` were had; their starts.
async fn starts(store: &Store, types: &[&'static str], count: usize) -> Vec<(String, Stamp)> {
    let asking: Vec<_> = types
        .iter()
        .map(|type_| {
            let (store, type_) = (store.clone(), *type_);
            tokio::spawn(async move {
                for nth in 0..20_000 {
                    let Taken::Granted(turn) = take(&store, &request(type_)).await else {
                        breathe(&store).await;
                        continue;
                    };
                    let outcome =
                        [TurnOutcome::Done, TurnOutcome::Empty, TurnOutcome::Failed][nth % 3];
                    say_well(&store, &Pass { outcome, ..done(&turn) }).await;
                    if view(&store).await.past.len() >= count {
                        return;
                    }
                }
                panic!("too few turns");
            })
        })
        .collect();
    for asker in asking {
        asker.await.expect("no panic");
    }
    let past = view(store).await.past;
    assert!(past.iter().all(|turn| turn.ending != Ending::Lost));
    past.into_iter().rev().map(|turn| (turn.kind.to_string(), turn.since)).collect()
}

pub(super) async fn two_starts_are_never_closer_than_the_gap(fresh: Fresh) {
    let gap = MS * 20;
    let store = ready(&fresh, &Rules { min_gap: gap, ..free(&["a", "b", "c"]) }).await;
    for two in starts(&store, &["a", "b", "c"], 12).await.windows(2) {
        assert!(two[0].1 + gap <= two[1].1, "{two:?}");
    }
}

pub(super) async fn gap_and_quota_of_a_type_are_exact(fresh: Fresh) {
    let quota = Window { count: 3, span: MS * 90 };
    let types = vec![
        TypeRules { gap: MS * 40, ..of("a") },
        TypeRules { quota: Some(quota), ..of("b") },
        of("c"),
    ];
    let store = ready(&fresh, &Rules { types, min_gap: MS * 2, ..free(&[]) }).await;
    let mut by_type = BTreeMap::<String, Vec<Stamp>>::new();
    for (type_, start) in starts(&store, &["a", "b", "c"], 40).await {
        by_type.entry(type_).or_default().push(start);
    }
    for two in by_type["a"].windows(2) {
        assert!(two[0] + MS * 40 <= two[1], "{two:?}");
    }
    for four in by_type["b"].windows(4) {
        assert!(four[0] + quota.span <= four[3], "{four:?}");
    }
}

pub(super) async fn a_turn_is_had_at_the_said_instant(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a"])).await;
    let span = stretched(MS * 200);
    let quota = Some(Window { count: 2, span });
    for (reason, rules) in [
        (Reason::Gap, Rules { min_gap: span, ..free(&["a", "b"]) }),
        (Reason::Gap, Rules { types: vec![TypeRules { gap: span, ..of("a") }], ..free(&[]) }),
        (Reason::Quota, Rules { types: vec![TypeRules { quota, ..of("a") }], ..free(&[]) }),
        (Reason::NotBefore, free(&["a"])),
    ] {
        // Gaps and starts of the round before count no more.
        define(&store, &free(&["x"])).await;
        define(&store, &rules).await;
        for round in 0..2 {
            let first = granted(&store, &request("a")).await;
            let mut opens = first.since + span;
            let held = refused(&store, &request("a")).await;
            let gap = reason == Reason::Gap;
            assert_eq!((held.reason, held.holder.as_ref()), (Reason::Held, Some(&first)));
            assert_eq!(held.earliest_at == opens, gap, "{rules:?} {held:?}");
            match reason {
                Reason::NotBefore => {
                    opens = view(&store).await.now + span;
                    say_well(&store, &Pass { not_before: Some(opens), ..done(&first) }).await;
                }
                Reason::Quota => {
                    finish(&store, &first).await;
                    finish(&store, &granted(&store, &request("a")).await).await;
                }
                _ => finish(&store, &first).await,
            }
            let shut = refused(&store, &request("a")).await;
            let expected = Refused { holder: None, earliest_at: opens, ahead: 0, reason };
            assert_eq!(shut, expected, "round {round}, {rules:?}: exactly");
            reach(&store, opens).await;
            let next = granted(&store, &request("a")).await;
            assert!(next.since >= opens);
            say_well(&store, &done(&next)).await;
            // The window of the quota is empty again.
            reach(&store, next.since + span).await;
        }
    }
}

pub(super) async fn whoever_passes_may_say_who_comes_next(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b", "c", "d"])).await;
    let turn = granted(&store, &request("a")).await;
    let asks = queue(&store, &["a1", "b1", "c1", "d1"]).await;
    say_well(&store, &Pass { next: Some(kind("c")), ..done(&turn) }).await;
    let c = granted(&store, &asks[2]).await;
    assert_eq!(view(&store).await.ring.next, None, "it was said of one turn");
    // If nobody waits for that one, whoever comes behind it does.
    say_well(&store, &Pass { next: Some(kind("c")), ..done(&c) }).await;
    let d = granted(&store, &asks[3]).await;
    turns_go(&store, d, &asks, &["a1", "b1"]).await;
}

pub(super) async fn nobody_starts_before_the_instant_that_whoever_passed_named(fresh: Fresh) {
    let store = ready(&fresh, &Rules { min_gap: MS * 20, ..free(&["a", "b"]) }).await;
    let first = granted(&store, &request("a")).await;
    let opens = first.since + MS * 200;
    say_well(&store, &Pass { not_before: Some(opens), ..done(&first) }).await;
    let refused = refused(&store, &request("b")).await;
    assert_eq!((refused.reason, refused.earliest_at), (Reason::NotBefore, opens));
    reach(&store, opens).await;
    let second = granted(&store, &request("b")).await;
    assert_eq!(view(&store).await.ring.not_before, Stamp(0), "it was said of one turn");
    // An instant that is over means nothing.
    say_well(&store, &Pass { not_before: Some(first.since), ..done(&second) }).await;
    reach(&store, second.since + MS * 20).await;
    granted(&store, &request("b")).await;
}

pub(super) async fn how_many_are_ahead_is_how_many_come_before(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b", "c", "d"])).await;
    let turn = granted(&store, &request("b")).await;
    assert_eq!(refused(&store, &request("a")).await.ahead, 0);
    let names = ["b1", "a1", "a2", "d1", "a3", "d2", "b2", "a4", "a5", "b3"];
    let asks = queue(&store, &names).await;
    let mut places = BTreeMap::new();
    for ask in &asks {
        let waits = refused(&store, ask).await;
        assert_eq!((waits.reason, waits.holder.as_ref()), (Reason::Held, Some(&turn)));
        places.insert(waits.ahead, ask.worker.to_string());
    }
    // Whoever has no place in the queue would come behind all of that type.
    let last = refused(&store, &request("d")).await.ahead;
    let order = ["d1", "a1", "b1", "d2", "a2", "b2", "a3", "b3", "a4", "a5"];
    assert_eq!(places.values().collect::<Vec<_>>(), order);
    assert_eq!(places.keys().copied().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(last, 6, "d1 a1 b1 d2 a2 b2");
    turns_go(&store, turn, &asks, &order).await;
}

pub(super) async fn new_rules_keep_the_holder_and_go_on_in_order(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b", "c", "d"])).await;
    let ask = request("c");
    let turn = granted(&store, &ask).await;
    let asks = queue(&store, &["a1", "b1", "c1", "d1"]).await;
    let changed = define(&store, &Rules { min_gap: MS * 1, ..free(&["a", "b", "d", "e"]) }).await;
    assert_eq!(changed.ring.turn, Some(turn.clone()));
    assert_eq!(changed.rules.types.len(), 4);
    // Its type is gone; the turn is not.
    let extended = store.extend_turn(&api(), turn.token, None).await.expect("answered");
    assert!(matches!(extended, Kept::Yes(_)), "{extended:?}");
    assert!(store.take_turn(&ask).await.is_err(), "its type is unknown");
    assert!(store.take_turn(&asks[2]).await.is_err());
    finish(&store, &turn).await;
    reach(&store, turn.since + MS * 2).await;
    // The one behind the type that is gone.
    store.pump_turns(LIFE).await.expect("pumped");
    let d = granted(&store, &asks[3]).await;
    define(&store, &free(&["d", "b", "a"])).await;
    turns_go(&store, d, &asks, &["b1", "a1"]).await;
}

pub(super) async fn gaps_outlast_new_rules(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let a = granted(&store, &request("a")).await;
    finish(&store, &a).await;
    let b = granted(&store, &request("b")).await;
    finish(&store, &b).await;
    let gap = |gap| TypeRules { gap, ..of("a") };
    define(&store, &Rules { types: vec![gap(LONG), of("b")], ..free(&[]) }).await;
    let shut = refused(&store, &request("a")).await;
    assert_eq!((shut.reason, shut.earliest_at), (Reason::Gap, a.since + LONG));
    define(&store, &Rules { min_gap: LONG / 2, ..free(&["a", "b"]) }).await;
    let shut = refused(&store, &request("a")).await;
    assert_eq!((shut.reason, shut.earliest_at), (Reason::Gap, b.since + LONG / 2));
    define(&store, &free(&["a", "b"])).await;
    granted(&store, &request("a")).await;
}
