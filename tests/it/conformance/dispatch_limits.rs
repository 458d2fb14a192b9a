//! Laws of gap, window, cap, block and pause, and of saying why there is nothing and until when.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist::domain::dispatch::{Reason, Rules, TaskOutcome, Window};
use soloist::store::dispatch::{ClaimAsk, Claimed, Dispatch, Exchange, Handed, Sources};

use super::dispatch::*;
use super::*;
use crate::support::machine::stretched;

/// Claims with `askers` at once, as fast as it goes, until `count` tasks were handed out; when each started, in order.
async fn starts(store: &Store, askers: usize, max: u32, count: usize) -> Vec<Stamp> {
    let asking: Vec<_> = (0..askers)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut mine: Vec<Handed> = Vec::new();
                for _ in 0..20_000 {
                    match claim(&store, &request_by(&format!("c-{n}"), max)).await {
                        Claimed::Granted { tasks, .. } => mine.extend(tasks),
                        Claimed::Nothing { next_at: Some(_), .. } => {
                            breathe(&store).await;
                        }
                        Claimed::Nothing { .. } => break,
                    }
                }
                mine
            })
        })
        .collect();
    let mut starts = Vec::new();
    for asker in asking {
        for task in asker.await.expect("no panic") {
            starts.push(look(store, &task.id).await.changed);
        }
    }
    assert_eq!(starts.len(), count);
    starts.sort_unstable();
    starts
}

pub(super) async fn two_starts_are_never_closer_than_the_gap(fresh: Fresh) {
    let gap = MS * 25;
    let store = shop(&fresh, &Rules { gap, ..free() }).await;
    put_many(&store, "shop", 12).await;
    for two in starts(&store, 3, 5, 12).await.windows(2) {
        assert!(two[0] + gap <= two[1], "{two:?}");
    }
}

pub(super) async fn no_window_holds_more_starts_than_it_may(fresh: Fresh) {
    let window = Window { count: 4, span: MS * 80 };
    let store = shop(&fresh, &Rules { window: Some(window), ..free() }).await;
    put_many(&store, "shop", 18).await;
    let starts = starts(&store, 3, 3, 18).await;
    for five in starts.windows(5) {
        assert!(five[0] + window.span <= five[4], "{five:?}");
    }
}

pub(super) async fn gap_window_and_cap_hold_together(fresh: Fresh) {
    let window = Window { count: 2, span: MS * 90 };
    let rules = Rules { gap: MS * 20, window: Some(window), cap: Some(6), ..free() };
    let store = shop(&fresh, &rules).await;
    put_many(&store, "shop", 7).await;
    let mut starts = Vec::new();
    while starts.len() < 6 {
        match claim(&store, &request(4)).await {
            Claimed::Granted { tasks, .. } => {
                assert_eq!(tasks.len(), 1, "one at a time");
                starts.push(look(&store, &tasks[0].id).await.changed);
            }
            Claimed::Nothing { reason, next_at } => {
                assert_eq!(reason, Reason::Gap);
                reach(&store, next_at.expect("known")).await;
            }
        }
    }
    for two in starts.windows(2) {
        assert!(two[0] + rules.gap <= two[1], "{two:?}");
    }
    for three in starts.windows(3) {
        assert!(three[0] + window.span <= three[2], "{three:?}");
    }
    assert_eq!(nothing(&store, &request(4)).await.0, Reason::Cap, "this one is said first");
}

pub(super) async fn no_more_are_in_flight_than_the_cap(fresh: Fresh) {
    let store = shop(&fresh, &Rules { cap: Some(3), ..free() }).await;
    put_many(&store, "shop", 60).await;
    let claimers: Vec<_> = (0..8)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut finished = 0;
                for _ in 0..5_000 {
                    let ask = request_by(&format!("c-{n}"), 2);
                    match claim(&store, &ask).await {
                        Claimed::Granted { tasks, .. } => {
                            let flying = view(&store, "shop").await.in_flight;
                            assert!(flying <= 3, "{flying} in flight");
                            say(&store, &tasks.iter().map(done).collect::<Vec<_>>()).await;
                            finished += tasks.len();
                        }
                        Claimed::Nothing { reason: Reason::Cap, .. } => {
                            breathe(&store).await;
                        }
                        Claimed::Nothing { .. } => break,
                    }
                }
                finished
            })
        })
        .collect();
    let mut finished = 0;
    for claimer in claimers {
        finished += claimer.await.expect("no panic");
    }
    assert_eq!(finished, 60);
    assert_eq!(counts(&store, "shop").await, [0, 0, 0, 0, 60]);
}

pub(super) async fn a_claim_at_the_said_instant_succeeds(fresh: Fresh) {
    let store = fresh.connect().await;
    let span = stretched(MS * 60);
    let window = Some(Window { count: 1, span });
    for (name, rules, reason) in [
        ("gap", Rules { gap: span, ..free() }, Reason::Gap),
        ("window", Rules { window, ..free() }, Reason::Gap),
        ("cap", Rules { cap: Some(1), lease: stretched(SHORT), ..free() }, Reason::Cap),
    ] {
        define(&store, name, &rules).await;
        put_many(&store, name, 4).await;
        for round in 0..3 {
            let ask = || ClaimAsk { sources: vec![source(name)], ..request(1) };
            let task = handed(&store, &ask()).await.remove(0);
            let seen = look(&store, &task.id).await;
            let (why, next_at) = nothing(&store, &ask()).await;
            assert_eq!(why, reason, "{name} {round}");
            let held = seen.held.expect("held").2;
            let opens = if reason == Reason::Cap { held } else { seen.changed + span };
            assert_eq!(next_at, Some(opens), "{name} {round}: exactly");
            let shut = view(&store, name).await.shut.expect("shut");
            assert_eq!((shut.reason, shut.until), (reason, next_at));
            reach(&store, opens).await;
        }
    }
}

pub(super) async fn the_gap_outlasts_an_empty_queue(fresh: Fresh) {
    let store = shop(&fresh, &Rules { gap: LONG, ..free() }).await;
    put_many(&store, "shop", 1).await;
    let first = take(&store).await;
    let opens = look(&store, &first.id).await.changed + LONG;
    assert_eq!(say_one(&store, done(&first)).await, soloist::store::dispatch::Reported::Ok);
    assert_eq!(nothing(&store, &request(1)).await.0, Reason::Empty);
    put(&store, &[task("shop", "next")]).await;
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Gap, Some(opens)));
    store.pump().await.expect("pumped");
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Gap, Some(opens)));
}

pub(super) async fn a_blocked_source_serves_nobody_until_then(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 3).await;
    let before = view(&store, "shop").await.now;
    let blocked = store.block_source(&source("shop"), LONG).await.expect("blocked");
    assert!(before + LONG <= blocked.blocked_until && blocked.blocked_until <= blocked.now + LONG);
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Blocked, Some(blocked.blocked_until)));
    define(&store, "shop", &Rules { cap: Some(9), ..free() }).await;
    assert_eq!(nothing(&store, &request(1)).await.0, Reason::Blocked, "also under new rules");
    let lifted = store.block_source(&source("shop"), Duration::ZERO).await.expect("lifted");
    assert!(lifted.blocked_until <= lifted.now && lifted.shut.is_none(), "{lifted:?}");
    take(&store).await;
    let short = store.block_source(&source("shop"), MS * 60).await.expect("blocked");
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Blocked, Some(short.blocked_until)));
    reach(&store, short.blocked_until).await;
    let started = look(&store, &take(&store).await.id).await.changed;
    assert!(started >= short.blocked_until);
}

pub(super) async fn a_paused_source_serves_nobody_and_loses_nothing(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 2).await;
    let held = take(&store).await;
    let rules = Rules { cap: Some(7), ..free() };
    define(&store, "shop", &rules).await;
    let paused = store.pause_source(&source("shop"), true).await.expect("paused");
    assert_eq!(paused.rules, Rules { paused: true, ..rules.clone() }, "all else stays");
    assert_eq!(paused.shut.map(|shut| (shut.reason, shut.until)), Some((Reason::Paused, None)));
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Paused, None));
    assert_eq!(
        say_one(&store, report(&held, TaskOutcome::Done)).await,
        soloist::store::dispatch::Reported::Ok
    );
    put(&store, &[task("shop", "more")]).await;
    assert_eq!(counts(&store, "shop").await, [2, 0, 0, 0, 1]);
    let resumed = store.pause_source(&source("shop"), false).await.expect("resumed");
    assert_eq!((resumed.rules, resumed.shut), (rules, None));
    assert_eq!(handed(&store, &request(9)).await.len(), 2);
}

pub(super) async fn changed_rules_count_at_once(fresh: Fresh) {
    let store = shop(&fresh, &Rules { gap: LONG, ..free() }).await;
    put_many(&store, "shop", 9).await;
    take(&store).await;
    assert_eq!(nothing(&store, &request(1)).await.0, Reason::Gap);
    define(&store, "shop", &Rules { cap: Some(3), ..free() }).await;
    assert_eq!(handed(&store, &request(9)).await.len(), 2);
    define(&store, "shop", &Rules { cap: Some(2), ..free() }).await;
    assert_eq!(nothing(&store, &request(1)).await.0, Reason::Cap);
    define(&store, "shop", &Rules { cap: Some(4), ..free() }).await;
    let last = take(&store).await;
    let start = look(&store, &last.id).await.changed;
    define(&store, "shop", &Rules { gap: LONG * 2, ..free() }).await;
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Gap, Some(start + LONG * 2)));
}

pub(super) async fn the_reason_is_of_the_source_that_opens_first(fresh: Fresh) {
    let store = fresh.connect().await;
    let set: BTreeMap<&str, Rules> = [
        ("a-gap", Rules { gap: LONG * 3, ..free() }),
        ("b-cap", Rules { cap: Some(1), ..free() }),
        ("c-free", free()),
        ("d-paused", Rules { paused: true, ..free() }),
    ]
    .into();
    for (name, rules) in &set {
        define(&store, name, rules).await;
    }
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Empty, None));
    put_many(&store, "d-paused", 1).await;
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Paused, None));
    put_many(&store, "a-gap", 2).await;
    put_many(&store, "b-cap", 2).await;
    let tasks = handed(&store, &request(4)).await;
    assert_eq!(tasks.len(), 2);
    let of = |name: &str| {
        let source = source(name);
        tasks.iter().find(|task| task.source == source).expect("granted").id.clone()
    };
    let opens = look(&store, &of("a-gap")).await.changed + LONG * 3;
    let ends = look(&store, &of("b-cap")).await.held.expect("held").2;
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Cap, Some(ends)));
    let only = |names: &[&str]| {
        let sources = names.iter().map(|name| source(name)).collect();
        ClaimAsk { sources, ..request(1) }
    };
    assert_eq!(nothing(&store, &only(&["d-paused", "a-gap"])).await, (Reason::Gap, Some(opens)));
    assert_eq!(nothing(&store, &only(&["c-free"])).await, (Reason::Empty, None));
    assert_eq!(nothing(&store, &only(&["c-free", "d-paused"])).await, (Reason::Paused, None));
    let blocked = store.block_source(&source("c-free"), LONG / 2).await.expect("blocked");
    assert_eq!(nothing(&store, &only(&["c-free"])).await.0, Reason::Empty, "nothing is there");
    put_many(&store, "c-free", 1).await;
    let first = (Reason::Blocked, Some(blocked.blocked_until));
    assert_eq!(nothing(&store, &request(1)).await, first);
}

pub(super) async fn the_next_claim_is_served_when_a_result_makes_room(fresh: Fresh) {
    let store = shop(&fresh, &Rules { cap: Some(1), ..free() }).await;
    put_many(&store, "shop", 3).await;
    let first = take(&store).await;
    assert_eq!(nothing(&store, &request(1)).await.0, Reason::Cap);
    let ask = Exchange { reports: vec![done(&first)], claim: Some(request(5)), only: None };
    let answer = store.exchange(&ask).await.expect("exchanged");
    match answer.claimed {
        Some(Claimed::Granted { tasks, .. }) => assert_eq!(tasks.len(), 1),
        other => panic!("{other:?}"),
    }
}
