//! Laws of putting tasks, of the order in which a source hands them out, and of looking at them.

use soloist::domain::dispatch::{Reason, Rules, TaskState};
use soloist::domain::lease::Token;
use soloist::store::StoreError;
use soloist::store::dispatch::{
    ClaimAsk, DONE_BEYOND, DONE_KEPT, Dispatch, Exchange, NewTask, Reported, Sources, TaskId,
};

use super::dispatch::*;
use super::*;

pub(super) async fn a_source_is_kept_with_its_rules_and_its_tasks(fresh: Fresh) {
    let store = fresh.connect().await;
    let first = define(&store, "shop", &Rules::default()).await;
    assert_eq!(first.rules, Rules::default());
    put_many(&store, "shop", 3).await;
    take(&store).await;
    let odd = Rules {
        gap: MS * 7,
        cap: Some(3),
        window: Some(soloist::domain::dispatch::Window { count: 2, span: LONG }),
        lease: MS * 12_345,
        max_attempts: 0,
        paused: true,
        ..Rules::default()
    };
    define(&store, "shop", &odd).await;
    define(&store, "a-shop", &free()).await;
    let all = fresh.connect().await.sources(None).await.expect("sources");
    let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a-shop", "shop"]);
    assert_eq!(all[1].rules, odd);
    assert_eq!((all[1].ready, all[1].in_flight, all[1].started), (2, 1, 1));
    let missing = store.sources(Some(&source("none"))).await.expect_err("unknown");
    assert!(matches!(missing, StoreError::NotFound(_)), "{missing}");
}

pub(super) async fn the_same_key_is_the_same_task(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    define(&store, "other", &free()).await;
    let batch = [task("shop", "a"), task("shop", "b"), task("other", "a"), task("shop", "a")];
    assert_eq!(put(&store, &batch).await, [true, true, true, false]);
    assert_eq!(counts(&store, "shop").await, [2, 0, 0, 0, 0]);
    // One that exists is left as it is, whatever its state.
    let changed = NewTask { payload: "7".to_owned(), priority: 9, ..task("shop", "a") };
    assert_eq!(put(&store, std::slice::from_ref(&changed)).await, [false]);
    let id = TaskId::of(&source("shop"), "a");
    let seen = look(&store, &id).await;
    assert_eq!((seen.payload.as_str(), seen.priority), ("{\"key\":\"a\"}", 0));
    assert_eq!((seen.state, seen.attempt, seen.token), (TaskState::Ready, 0, Token(0)));
    let held = handed(&store, &ClaimAsk { sources: vec![source("shop")], ..request(2) }).await;
    assert_eq!(put(&store, std::slice::from_ref(&changed)).await, [false], "leased");
    assert_eq!(say(&store, &[done(&held[0]), done(&held[1])]).await, [Reported::Ok; 2]);
    assert_eq!(put(&store, &[changed]).await, [false], "done");
    let seen = look(&store, &id).await;
    assert_eq!((seen.state, seen.payload.as_str()), (TaskState::Done, "null"), "it is not needed");
}

pub(super) async fn without_its_source_no_task_of_a_batch_is_put(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let batch = [task("shop", "a"), task("none", "b"), task("shop", "c")];
    let refused = store.put_tasks(&batch).await.expect_err("refused");
    assert!(matches!(&refused, StoreError::NotFound(what) if what.contains("none")), "{refused}");
    assert_eq!(counts(&store, "shop").await, [0; 5]);
    assert_eq!(put(&store, &batch[..1]).await, [true]);

    let held = take(&store).await;
    let ask = Exchange {
        reports: vec![done(&held)],
        claim: Some(ClaimAsk { sources: vec![source("shop"), source("none")], ..request(1) }),
        only: None,
    };
    let refused = store.exchange(&ask).await.expect_err("refused");
    assert!(matches!(&refused, StoreError::NotFound(what) if what.contains("none")), "{refused}");
    assert_eq!(counts(&store, "shop").await, [0, 0, 1, 0, 0], "then nothing was done");
    for refused in [
        store.block_source(&source("none"), LONG).await.map(|_| ()),
        store.pause_source(&source("none"), true).await.map(|_| ()),
        store.revive(&TaskId::of(&source("shop"), "none")).await.map(|_| ()),
    ] {
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    }
}

pub(super) async fn texts_come_back_as_they_went_in(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let key = "https://example.org/?q='\";--%00&x=日本 {tag}";
    let payload = format!("{{\"a\":[1,2.5,null],\"text\":\"{}\"}}", "é\\u0000".repeat(5_000));
    put(&store, &[NewTask { payload: payload.clone(), ..task("shop", key) }]).await;
    let handed = take(&store).await;
    assert_eq!((handed.key.as_str(), &handed.payload), (key, &payload));
    assert_eq!(handed.id, TaskId::of(&source("shop"), key));
    let seen = look(&store, &handed.id).await;
    assert_eq!((seen.key.as_str(), &seen.payload), (key, &payload));
    assert_eq!(store.task(&TaskId("0".repeat(32))).await.expect("answered"), None);
}

pub(super) async fn the_most_urgent_come_first_and_then_the_oldest(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    for (key, priority) in
        [("a0", 0), ("b9", 9), ("c5", 5), ("d9", 9), ("e0", 0), ("f5", 5), ("g1", 1)]
    {
        put(&store, &[NewTask { priority, ..task("shop", key) }]).await;
    }
    let tasks = handed(&store, &request(100)).await;
    let keys: Vec<_> = tasks.iter().map(|task| task.key.as_str()).collect();
    assert_eq!(keys, ["b9", "d9", "c5", "f5", "g1", "a0", "e0"]);
    assert!(tasks.windows(2).all(|two| two[0].token < two[1].token), "{tasks:?}");
}

pub(super) async fn a_task_is_not_handed_out_before_its_time(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let at = view(&store, "shop").await.now + MS * 150;
    put(&store, &[NewTask { at: Some(at), ..task("shop", "later") }]).await;
    put(&store, &[NewTask { at: Some(Stamp(1)), priority: 1, ..task("shop", "past") }]).await;
    assert_eq!(counts(&store, "shop").await, [1, 1, 0, 0, 0]);
    assert_eq!(look(&store, &TaskId::of(&source("shop"), "later")).await.at, Some(at));
    assert_eq!(take(&store).await.key, "past");
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Empty, Some(at)));
    reach(&store, at).await;
    let handed = take(&store).await;
    assert_eq!((handed.key.as_str(), handed.attempt), ("later", 1));
    let seen = look(&store, &handed.id).await;
    assert!(seen.changed >= at && seen.at.is_none(), "{seen:?}");
}

pub(super) async fn done_tasks_are_forgotten_when_too_many_are_newer(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put(&store, &[task("shop", "first")]).await;
    let first = take(&store).await;
    assert_eq!(say_one(&store, done(&first)).await, Reported::Ok);
    put_many(&store, "shop", usize::try_from(DONE_KEPT).expect("small")).await;
    let mut last = None;
    for _ in 0..DONE_KEPT / 100 {
        let mut tasks = handed(&store, &request(100)).await;
        let reports: Vec<_> = last.iter().chain(&tasks).map(done).collect();
        last = tasks.pop();
        // The last of each hundred is reported with the next.
        let answers = say(&store, &reports[..reports.len() - 1]).await;
        assert!(answers.iter().all(|one| *one == Reported::Ok), "{answers:?}");
    }
    assert_eq!(view(&store, "shop").await.done, DONE_KEPT);
    assert_eq!(look(&store, &first.id).await.state, TaskState::Done, "just remembered");
    assert_eq!(say_one(&store, done(&last.expect("a task"))).await, Reported::Ok);
    // A store may forget several at a time.
    let more: Vec<_> = (0..DONE_BEYOND).map(|nth| task("shop", &format!("more-{nth}"))).collect();
    put(&store, &more).await;
    let more = handed(&store, &request(u32::try_from(DONE_BEYOND).expect("small"))).await;
    let more: Vec<_> = more.iter().map(done).collect();
    assert!(say(&store, &more).await.iter().all(|one| *one == Reported::Ok));
    assert_eq!(store.task(&first.id).await.expect("answered"), None, "too many are newer");
    assert_eq!(view(&store, "shop").await.done, DONE_KEPT + DONE_BEYOND + 1);
    assert_eq!(say_one(&store, done(&first)).await, Reported::Unknown);
    assert_eq!(put(&store, &[task("shop", "first")]).await, [true]);
}
