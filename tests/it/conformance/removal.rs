//! What is removed: tasks, sources and rotations, what goes with them, and who is told.

use soloist::domain::dispatch::{TaskOutcome, TaskState};
use soloist::store::StoreError;
use soloist::store::dispatch::{
    ClaimAsk, Dispatch, Lost, RemovedSource, Reported, Sources, TaskFilter, TaskId,
};
use soloist::store::rotation::Rotations;

use super::dispatch::*;
use super::ear::Ear;
use super::rotation as turns;
use super::*;

pub(super) async fn a_source_with_tasks_goes_only_with_force_and_takes_them_along(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    define(&store, "other", &free()).await;
    put_many(&store, "shop", 4).await;
    put_many(&store, "other", 1).await;
    let ask = ClaimAsk { sources: vec![source("shop")], ..request(2) };
    let held = handed(&store, &ask).await;
    assert_eq!(say_one(&store, done(&held[0])).await, Reported::Ok);
    let before = view(&store, "shop").await;
    let lost = Lost { tasks: 3, in_flight: 1 };
    let refused = store.remove_source(&source("shop"), false).await.expect("an answer");
    assert_eq!(refused, RemovedSource::Kept(lost));
    let after = view(&store, "shop").await;
    assert_eq!((&after.rules, after.ready, after.in_flight), (&before.rules, 2, 1));

    let gone = store.remove_source(&source("shop"), true).await.expect("an answer");
    assert_eq!(gone, RemovedSource::Done(lost));
    for again in [
        store.remove_source(&source("shop"), true).await.map(drop),
        store.sources(Some(&source("shop"))).await.map(drop),
    ] {
        assert!(matches!(again, Err(StoreError::NotFound(_))), "{again:?}");
    }
    assert_eq!(say(&store, &[done(&held[0]), done(&held[1])]).await, [Reported::Unknown; 2]);
    for one in &held {
        assert_eq!(store.task(&one.id).await.expect("an answer"), None);
    }
    assert_eq!(counts(&store, "other").await, [1, 0, 0, 0, 0]);
    assert_eq!(handed(&store, &request(9)).await.len(), 1, "the other source is served");

    define(&store, "shop", &free()).await;
    assert_eq!(counts(&store, "shop").await, [0; 5]);
    assert_eq!(
        put(&store, &[task("shop", "shop-0000"), task("shop", "shop-0001")]).await,
        [true; 2]
    );
    assert_eq!(handed(&store, &request(9)).await.len(), 2);
}

pub(super) async fn a_source_of_many_tasks_goes_as_a_whole(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 2_300).await;
    let gone = store.remove_source(&source("shop"), true).await.expect("an answer");
    assert_eq!(gone, RemovedSource::Done(Lost { tasks: 2_300, in_flight: 0 }));
    define(&store, "shop", &free()).await;
    let filter = TaskFilter::default();
    assert_eq!(store.tasks(&filter, None, 9).await.expect("an answer"), []);
    nothing(&store, &request(9)).await;
}

pub(super) async fn who_waits_for_a_source_is_woken_when_it_goes(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let mut ear = Ear::new(&store).await;
    let wait = Some((soloist::store::dispatch::Waiter("n/x/w1".to_owned()), LONG));
    let ask = ClaimAsk { sources: vec![source("shop")], wait, ..request(1) };
    nothing(&store, &ask).await;
    assert_eq!(ear.woken(&store).await, Vec::<String>::new());
    let gone = store.remove_source(&source("shop"), false).await.expect("an answer");
    assert_eq!(gone, RemovedSource::Done(Lost::default()));
    assert_eq!(ear.woken(&store).await, ["w1"]);
}

pub(super) async fn a_task_goes_from_any_state_and_may_be_put_again(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let due = soloist::store::dispatch::NewTask {
        at: Some(view(&store, "shop").await.now + LONG),
        ..task("shop", "due")
    };
    put(&store, &[task("shop", "done")]).await;
    assert_eq!(say_one(&store, done(&take(&store).await)).await, Reported::Ok);
    put(&store, &[task("shop", "dead")]).await;
    assert_eq!(say_one(&store, report(&take(&store).await, TaskOutcome::Dead)).await, Reported::Ok);
    put(&store, &[task("shop", "held")]).await;
    let ask = request(1);
    let held = handed(&store, &ask).await.remove(0);
    put(&store, &[task("shop", "ready"), due]).await;
    assert_eq!(counts(&store, "shop").await, [1, 1, 1, 1, 1]);
    let id = |key: &str| TaskId::of(&source("shop"), key);
    assert!(!store.remove_task(&id("held"), false).await.expect("an answer"));
    assert_eq!(counts(&store, "shop").await, [1, 1, 1, 1, 1]);
    for key in ["done", "dead", "ready", "due"] {
        assert!(store.remove_task(&id(key), false).await.expect("an answer"), "{key}");
        let again = store.remove_task(&id(key), false).await;
        assert!(matches!(again, Err(StoreError::NotFound(_))), "{key}: {again:?}");
    }
    assert!(store.remove_task(&id("held"), true).await.expect("an answer"));
    assert_eq!(counts(&store, "shop").await[..4], [0, 0, 0, 0]);
    assert_eq!(say_one(&store, done(&held)).await, Reported::Unknown);
    if let Ok(extended) = store.extend(&ask.id(), None).await {
        assert_eq!((extended.kept, extended.lost), (Vec::new(), Vec::new()));
    }
    nothing(&store, &request(9)).await;
    let keys = ["done", "dead", "ready", "due", "held"];
    let all: Vec<_> = keys.iter().map(|key| task("shop", key)).collect();
    assert_eq!(put(&store, &all).await, [true; 5]);
    assert_eq!(handed(&store, &request(9)).await.len(), 5);
}

pub(super) async fn a_task_that_goes_makes_room_for_the_next(fresh: Fresh) {
    let rules = soloist::domain::dispatch::Rules { cap: Some(1), ..free() };
    let store = shop(&fresh, &rules).await;
    put_many(&store, "shop", 2).await;
    let held = take(&store).await;
    nothing(&store, &request(1)).await;
    assert!(store.remove_task(&held.id, true).await.expect("an answer"));
    assert_ne!(take(&store).await.id, held.id);
}

pub(super) async fn tasks_are_listed_by_their_last_change_page_by_page(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    define(&store, "other", &free()).await;
    put_many(&store, "shop", 25).await;
    put_many(&store, "other", 3).await;
    assert_eq!(say_one(&store, done(&take(&store).await)).await, Reported::Ok);
    let all = TaskFilter::default();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = store.tasks(&all, before.as_ref(), 10).await.expect("an answer");
        let Some(last) = page.last() else { break };
        before = Some((last.changed, last.id.clone()));
        seen.extend(page);
    }
    let order: Vec<_> = seen.iter().map(|one| (one.changed, one.id.clone())).collect();
    let mut sorted = order.clone();
    sorted.sort();
    sorted.dedup();
    sorted.reverse();
    assert_eq!((order.len(), order), (28, sorted), "each once, newest first");
    assert_eq!(seen[0].state, TaskState::Done);
    let count = async |source: Option<&str>, state| {
        let filter = TaskFilter { source: source.map(dispatch::source), state };
        store.tasks(&filter, None, 100).await.expect("an answer").len()
    };
    assert_eq!(count(Some("other"), None).await + count(Some("shop"), None).await, 28);
    assert_eq!(count(None, Some(TaskState::Done)).await, 1);
    assert_eq!(count(None, Some(TaskState::Ready)).await, 27);
    assert_eq!(count(Some("shop"), Some(TaskState::Dead)).await, 0);
}

pub(super) async fn a_rotation_that_is_held_or_waited_for_goes_only_with_force(fresh: Fresh) {
    let store = turns::ready(&fresh, &turns::free(&["a", "b"])).await;
    let mut ear = Ear::new(&store).await;
    let held = turns::granted(&store, &turns::request("a")).await;
    turns::take(&store, &turns::waiting("b", "w1")).await;
    turns::take(&store, &turns::waiting("a", "w2")).await;
    let kept = store.remove_rotation(&turns::api(), false).await.expect("an answer");
    assert_eq!(
        (kept.done, kept.turn.map(|turn| turn.token), kept.waiting),
        (false, Some(held.token), 2)
    );
    assert_eq!(ear.woken(&store).await, Vec::<String>::new());
    let gone = store.remove_rotation(&turns::api(), true).await.expect("an answer");
    assert_eq!(
        (gone.done, gone.turn.map(|turn| turn.token), gone.waiting),
        (true, Some(held.token), 2)
    );
    let mut woken = ear.woken(&store).await;
    woken.sort();
    assert_eq!(woken, ["w1", "w2"]);
    for refused in [
        store.take_turn(&turns::waiting("b", "w1")).await.map(drop),
        store.extend_turn(&turns::api(), held.token, None).await.map(drop),
        store.pass_turn(&turns::done(&held)).await.map(drop),
        store.rotations(Some(&turns::api()), 9).await.map(drop),
        store.remove_rotation(&turns::api(), true).await.map(drop),
    ] {
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    }
    store.pump_turns("node-a/x").await.expect("pumped");

    // One of the same name is a new one: nobody waits, nothing has ended, and its tokens are greater. They follow the clock, in
    // microseconds, as nothing is known of the ones before.
    if let Some(world) = soloist_store_memory::world(&store) {
        world.pass(Duration::from_micros(1));
    }
    let view = turns::define(&store, &turns::free(&["a", "b"])).await;
    assert!(view.waiters.is_empty() && view.ring.turn.is_none());
    let turn = turns::granted(&store, &turns::request("b")).await;
    assert!(turn.token > held.token);
    turns::finish(&store, &turn).await;
    let view = store.rotations(Some(&turns::api()), 9).await.expect("an answer").remove(0);
    assert_eq!((view.past.len(), view.types.iter().map(|one| one.waiting).sum::<u64>()), (1, 0));
    let gone = store.remove_rotation(&turns::api(), false).await.expect("an answer");
    assert!(gone.done, "nobody has its turn");
}

pub(super) async fn of_collectors_the_last_thousand_are_remembered(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    for n in 0..1_003 {
        nothing(&store, &request_by(&format!("c-{n}"), 1)).await;
    }
    let known = store.collectors().await.expect("an answer");
    assert_eq!(known.len(), 1_000);
    for gone in ["c-0", "c-1", "c-2"] {
        assert!(known.iter().all(|one| one.name != collector(gone)), "{gone}");
    }
}
