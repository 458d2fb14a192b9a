//! Laws of waiting: whoever finds nothing is woken when it is its turn, once, and nobody else is.

use std::time::Duration;

use soloist::domain::dispatch::{Reason, Rules};
use soloist::store::dispatch::{
    ClaimAsk, Claimed, Dispatch, Exchange, NewTask, Reported, Sources, Waiter,
};
use soloist::store::events::StoreEvent;

use super::dispatch::*;
use super::ear::Ear;
use super::*;

fn waiter(name: &str) -> Waiter {
    Waiter(format!("node-a/x/{name}"))
}

/// A request that waits at `name` for tasks of `sources` (none: any).
fn waiting(name: &str, sources: &[&str]) -> ClaimAsk {
    ClaimAsk {
        sources: sources.iter().map(|name| source(name)).collect(),
        wait: Some((waiter(name), LONG)),
        ..request_by(name, 1)
    }
}

impl Ear {
    /// Pumps until somebody is woken; who.
    async fn pumped(&mut self, store: &Store) -> Vec<String> {
        for _ in 0..6_000 {
            store.pump().await.expect("pumped");
            let woken = self.woken(store).await;
            if !woken.is_empty() {
                return woken;
            }
            nap(store).await;
        }
        panic!("nobody was woken");
    }
}

pub(super) async fn new_tasks_wake_as_many_as_can_be_served_the_oldest_first(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let mut ear = Ear::new(&store).await;
    let asks: Vec<_> = ["w1", "w2", "w3", "w4", "w5"].map(|name| waiting(name, &[])).into();
    for ask in &asks {
        assert_eq!(nothing(&store, ask).await, (Reason::Empty, None));
    }
    // Asked again it keeps its place.
    nothing(&store, &asks[0]).await;
    assert!(ear.woken(&store).await.is_empty());
    put(&store, &[task("shop", "a"), task("shop", "b")]).await;
    assert_eq!(ear.woken(&store).await, ["w1", "w2"]);
    for ask in &asks[..2] {
        handed(&store, ask).await;
    }
    put(&store, &[task("shop", "a")]).await;
    assert!(ear.woken(&store).await.is_empty(), "it is no new task");
    put(&store, &[task("shop", "c")]).await;
    assert_eq!(ear.woken(&store).await, ["w3"]);
    handed(&store, &asks[2]).await;
    put_many(&store, "shop", 10).await;
    assert_eq!(ear.woken(&store).await, ["w4", "w5"]);
}

pub(super) async fn every_subscriber_hears_who_is_woken(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let other = fresh.connect().await;
    let mut ears = [Ear::new(&store).await, Ear::new(&other).await];
    nothing(&store, &waiting("w1", &[])).await;
    put_many(&other, "shop", 1).await;
    for ear in &mut ears {
        match events::next(&mut ear.heard).await {
            StoreEvent::Wake(woken) => assert_eq!(woken, [waiter("w1")]),
            other => panic!("{other:?}"),
        }
    }
}

/// Where a commit tells whom it wakes: it does not matter what becomes of the process after it. Nothing looks for such a hint that is lost.
pub(crate) async fn whoever_is_woken_by_a_last_act_is_told(url: &str) {
    let store = soloist::stores::connect(url, &Options::default()).await.expect("it opens");
    define(&store, "shop", &free()).await;
    let mut ear = Ear::new(&store).await;
    for nth in 0..5 {
        nothing(&store, &waiting(&format!("w{nth}"), &[])).await;
        let url = url.to_owned();
        let last = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // With it ends every task of its store, as with a process.
            runtime.expect("a runtime").block_on(async {
                let store =
                    soloist::stores::connect(&url, &Options::default()).await.expect("it opens");
                put(&store, &[task("shop", &format!("task-{nth}"))]).await;
            });
        });
        last.join().expect("it was put");
        assert_eq!(ear.woken(&store).await, [format!("w{nth}")]);
        handed(&store, &waiting(&format!("w{nth}"), &[])).await;
    }
}

pub(super) async fn only_those_are_woken_whose_sources_fit(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    define(&store, "other", &free()).await;
    let mut ear = Ear::new(&store).await;
    nothing(&store, &waiting("w1", &["other"])).await;
    nothing(&store, &waiting("w2", &["other", "shop"])).await;
    nothing(&store, &waiting("w3", &[])).await;
    nothing(&store, &waiting("w4", &["shop"])).await;
    put_many(&store, "shop", 1).await;
    assert_eq!(ear.woken(&store).await, ["w2"]);
    put(&store, &[task("shop", "b"), task("shop", "c"), task("shop", "d")]).await;
    assert_eq!(ear.woken(&store).await, ["w3", "w4"], "one task is promised to w2 still");
    put_many(&store, "other", 5).await;
    assert_eq!(ear.woken(&store).await, ["w1"], "w2 was woken already");
}

pub(super) async fn a_second_pump_wakes_nobody(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let mut ear = Ear::new(&store).await;
    for name in ["w1", "w2"] {
        nothing(&store, &waiting(name, &[])).await;
    }
    let at = view(&store, "shop").await.now + MS * 40;
    put(&store, &[NewTask { at: Some(at), ..task("shop", "later") }]).await;
    let next = store.pump().await.expect("pumped").next;
    assert!(next.is_some_and(|next| next <= at), "{next:?} is not before {at:?}");
    assert!(ear.woken(&store).await.is_empty());
    reach(&store, at).await;
    // As often as it goes while the task is promised.
    let pumped = store.pump().await.expect("pumped").now;
    while store.pump().await.expect("pumped").now < pumped + MS * 60 {}
    let woken = ear.woken(&store).await;
    if view(&store, "shop").await.now < pumped + MS * 100 {
        assert_eq!(woken, ["w1"]);
    }
}

pub(super) async fn a_waiter_who_does_not_come_leaves_its_task_to_the_next(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let mut ear = Ear::new(&store).await;
    let asks = ["w1", "w2", "w3"].map(|name| waiting(name, &[]));
    for ask in &asks {
        nothing(&store, ask).await;
    }
    put_many(&store, "shop", 1).await;
    assert_eq!(ear.woken(&store).await, ["w1"]);
    let pumped = store.pump().await.expect("pumped");
    assert!(pumped.next.is_some_and(|next| next <= pumped.now + MS * 100), "{pumped:?}");
    // The node of `w1` is gone.
    assert_eq!(ear.pumped(&store).await, ["w2"]);
    handed(&store, &asks[1]).await;
}

pub(super) async fn whoever_stopped_waiting_is_not_woken(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let mut ear = Ear::new(&store).await;
    nothing(&store, &waiting("w1", &[])).await;
    nothing(&store, &waiting("w2", &["shop"])).await;
    let brief = ClaimAsk { wait: Some((waiter("w3"), MS * 20)), ..waiting("w3", &["shop"]) };
    nothing(&store, &brief).await;
    nothing(&store, &waiting("w4", &[])).await;
    store.leave_queues(&waiter("w1"), &[]).await.expect("stopped");
    store.leave_queues(&waiter("w2"), &[source("shop")]).await.expect("stopped");
    store.leave_queues(&waiter("w9"), &[source("shop")]).await.expect("harmless");
    reach(&store, view(&store, "shop").await.now + MS * 25).await;
    put_many(&store, "shop", 1).await;
    assert_eq!(ear.woken(&store).await, ["w4"]);
}

pub(super) async fn whoever_is_served_waits_no_more(fresh: Fresh) {
    let store = shop(&fresh, &Rules { gap: MS * 60, ..free() }).await;
    put_many(&store, "shop", 3).await;
    let mut ear = Ear::new(&store).await;
    take(&store).await;
    let asks = ["w1", "w2"].map(|name| waiting(name, &[]));
    let (_, opens) = nothing(&store, &asks[0]).await;
    reach(&store, opens.expect("known")).await;
    // Nobody woke it; it asks again by itself.
    handed(&store, &asks[0]).await;
    nothing(&store, &asks[1]).await;
    assert_eq!(ear.pumped(&store).await, ["w2"]);
}

pub(super) async fn a_result_that_makes_room_wakes_the_next(fresh: Fresh) {
    let store = shop(&fresh, &Rules { cap: Some(1), ..free() }).await;
    put_many(&store, "shop", 4).await;
    let mut ear = Ear::new(&store).await;
    let first = take(&store).await;
    let asks = ["w1", "w2"].map(|name| waiting(name, &[]));
    for ask in &asks {
        assert_eq!(nothing(&store, ask).await.0, Reason::Cap);
    }
    assert_eq!(say_one(&store, done(&first)).await, Reported::Ok);
    assert_eq!(ear.woken(&store).await, ["w1"]);
    let second = handed(&store, &asks[0]).await;
    assert!(ear.woken(&store).await.is_empty());
    let claim = waiting("w1", &[]).id();
    assert_eq!(store.give_back(&claim, None).await.expect("unknown"), 0);
    assert_eq!(store.give_back(&asks[0].id(), None).await.expect("given back"), 1);
    assert_eq!(ear.woken(&store).await, ["w2"]);
    assert_eq!(handed(&store, &asks[1]).await[0].id, second[0].id);
}

pub(super) async fn whoever_reports_and_asks_in_one_step_comes_before_who_waits(fresh: Fresh) {
    let store = shop(&fresh, &Rules { cap: Some(1), ..free() }).await;
    put_many(&store, "shop", 3).await;
    let mut ear = Ear::new(&store).await;
    let first = take(&store).await;
    assert_eq!(nothing(&store, &waiting("w1", &[])).await.0, Reason::Cap);
    let reports = vec![done(&first)];
    let next = Exchange { reports, claim: Some(request_by("c-2", 1)), only: None };
    let answer = store.exchange(&next).await.expect("exchanged");
    let Some(Claimed::Granted { tasks, .. }) = answer.claimed else { panic!("{answer:?}") };
    assert!(ear.woken(&store).await.is_empty(), "there is nothing left for it");
    assert_eq!(say_one(&store, done(&tasks[0])).await, Reported::Ok);
    assert_eq!(ear.woken(&store).await, ["w1"]);
}

pub(super) async fn the_end_of_a_gap_wakes_one(fresh: Fresh) {
    let store = shop(&fresh, &Rules { gap: MS * 150, ..free() }).await;
    put_many(&store, "shop", 9).await;
    let mut ear = Ear::new(&store).await;
    let first = take(&store).await;
    let opens = look(&store, &first.id).await.changed + MS * 150;
    let asks = ["w1", "w2", "w3"].map(|name| waiting(name, &[]));
    for ask in &asks {
        nothing(&store, ask).await;
    }
    for ask in &asks {
        let woken = ear.pumped(&store).await;
        assert_eq!(woken, [ask.collector.as_str()]);
        handed(&store, ask).await;
    }
    assert!(view(&store, "shop").await.now >= opens + MS * 300);
}

pub(super) async fn a_lost_lease_wakes_one(fresh: Fresh) {
    let store = shop(&fresh, &Rules { lease: SHORT, ..free() }).await;
    put_many(&store, "shop", 1).await;
    let mut ear = Ear::new(&store).await;
    let lost = take(&store).await;
    let end = look(&store, &lost.id).await.held.expect("held").2;
    let asks = ["w1", "w2"].map(|name| waiting(name, &[]));
    for ask in &asks {
        nothing(&store, ask).await;
    }
    let pumped = store.pump().await.expect("pumped");
    assert!(pumped.now >= end || pumped.next.is_some_and(|next| next <= end), "{pumped:?}");
    let woken =
        if pumped.expired == 0 { ear.pumped(&store).await } else { ear.woken(&store).await };
    assert_eq!(woken, ["w1"]);
    assert_eq!(handed(&store, &asks[0]).await[0].id, lost.id);
}

pub(super) async fn operators_wake_too(fresh: Fresh) {
    let paused = Rules { paused: true, max_attempts: 1, ..free() };
    let store = shop(&fresh, &paused).await;
    put_many(&store, "shop", 1).await;
    let mut ear = Ear::new(&store).await;
    let ask = |n: u32| waiting(&format!("w{n}"), &["shop"]);
    assert_eq!(nothing(&store, &ask(1)).await.0, Reason::Paused);
    define(&store, "shop", &Rules { paused: false, ..paused }).await;
    assert_eq!(ear.woken(&store).await, ["w1"]);
    let task = handed(&store, &ask(1)).await.remove(0);
    assert_eq!(
        say_one(&store, report(&task, soloist::domain::dispatch::TaskOutcome::Dead)).await,
        Reported::Ok
    );
    nothing(&store, &ask(2)).await;
    store.revive(&task.id).await.expect("revived");
    assert_eq!(ear.woken(&store).await, ["w2"]);
    store.block_source(&source("shop"), LONG).await.expect("blocked");
    nothing(&store, &ask(3)).await;
    assert!(ear.woken(&store).await.is_empty());
    // Longer than w2 has the task promised.
    reach(&store, view(&store, "shop").await.now + MS * 110).await;
    store.block_source(&source("shop"), Duration::ZERO).await.expect("lifted");
    assert_eq!(ear.woken(&store).await, ["w3"]);
}
