//! Laws of claims: the same request, extending, giving back, and who is seen to hold what.

use soloist::domain::dispatch::{Reason, Rules, SEEN_EVERY, TaskState};
use soloist::domain::name::RequestId;
use soloist::store::StoreError;
use soloist::store::dispatch::{
    ClaimAsk, ClaimId, ClaimOwner, Claimed, Dispatch, Exchange, Extended, Handed, Reported, Sources,
};

use super::dispatch::*;
use super::*;
use crate::support::machine::holds;

fn ids(tasks: &[Handed]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.0.as_str()).collect()
}

pub(super) async fn a_claim_says_until_when_it_lasts(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    define(&store, "quick", &Rules { lease: LONG / 2, ..free() }).await;
    put(&store, &[task("shop", "a"), task("quick", "b")]).await;
    let ask = request(2);
    let Claimed::Granted { claim, lease_until, tasks } = claim(&store, &ask).await else {
        panic!("nothing was granted");
    };
    assert_eq!(claim, ask.id());
    assert_eq!(tasks.len(), 2);
    for task in &tasks {
        let seen = look(&store, &task.id).await;
        let lease = if task.key == "a" { LONG } else { LONG / 2 };
        let until = seen.changed + lease;
        assert_eq!(seen.held, Some((collector("c-1"), claim.clone(), until)), "exactly");
        assert_eq!((seen.state, seen.token, seen.attempt), (TaskState::Leased, task.token, 1));
        if task.key == "b" {
            assert_eq!(lease_until, until, "the earliest end");
        }
    }
}

pub(super) async fn the_same_request_gets_the_same_answer_and_no_second_lease(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 10).await;
    let ask = request(3);
    let first = claim(&store, &ask).await;
    // Asked again by a node that made another id for the claim.
    let again = ask.clone();
    for _ in 0..3 {
        assert_eq!(claim(&store, &again).await, first);
    }
    assert_eq!(counts(&store, "shop").await, [7, 0, 3, 0, 0]);
    assert_eq!(view(&store, "shop").await.started, 3);
    let Claimed::Granted { tasks, .. } = first else { panic!("nothing was granted") };
    assert_eq!(say_one(&store, done(&tasks[1])).await, Reported::Ok);
    match claim(&store, &again).await {
        Claimed::Granted { claim, tasks: left, .. } => {
            assert_eq!(claim, ask.id());
            assert_eq!(left, [tasks[0].clone(), tasks[2].clone()], "without what is finished");
        }
        other => panic!("{other:?}"),
    }
    // Of another collector it is another request.
    let other = ClaimAsk { collector: collector("c-2"), ..request(1) };
    let other = ClaimAsk { request: ask.request.clone(), ..other };
    assert!(!ids(&tasks).contains(&handed(&store, &other).await[0].id.0.as_str()));
}

pub(super) async fn of_twenty_askers_with_one_request_all_get_the_same(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 50).await;
    let ask = request(2);
    let askers: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            let ask = ask.clone();
            tokio::spawn(async move { claim(&store, &ask).await })
        })
        .collect();
    let mut answers = Vec::new();
    for asker in askers {
        answers.push(asker.await.expect("no panic"));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(counts(&store, "shop").await, [48, 0, 2, 0, 0]);
}

pub(super) async fn a_final_answer_of_nothing_is_remembered(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let ask = request(1);
    assert_eq!(nothing(&store, &ask).await, (Reason::Empty, None));
    put_many(&store, "shop", 1).await;
    assert_eq!(nothing(&store, &ask).await, (Reason::Empty, None));
    assert_eq!(counts(&store, "shop").await, [1, 0, 0, 0, 0]);
    take(&store).await;
}

pub(super) async fn a_request_is_new_when_the_lease_is_over(fresh: Fresh) {
    let store = shop(&fresh, &Rules { lease: SHORT, ..free() }).await;
    put_many(&store, "shop", 1).await;
    let ask = request(1);
    let lost = handed(&store, &ask).await.remove(0);
    let end = look(&store, &lost.id).await.held.expect("held").2;
    reach(&store, end).await;
    let again = ask.clone();
    let second = handed(&store, &again).await.remove(0);
    assert_eq!((&second.id, second.attempt), (&lost.id, 2));
    let kept = store.extend(&ask.id(), None).await.expect("the same claim again").kept;
    assert_eq!(kept, [lost.id]);
}

pub(super) async fn a_request_is_new_in_the_step_that_finishes_its_claim(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 4).await;
    let ask = request(2);
    let first = handed(&store, &ask).await;
    let reports = first.iter().map(done).collect();
    let next = Exchange { reports, claim: Some(ask.clone()), only: None };
    match store.exchange(&next).await.expect("exchanged").claimed {
        Some(Claimed::Granted { claim, tasks, .. }) => {
            assert_eq!((claim, tasks.len()), (ask.id(), 2));
            let kept = store.extend(&ask.id(), None).await.expect("it is known").kept;
            assert_eq!(kept, tasks.into_iter().map(|task| task.id).collect::<Vec<_>>());
        }
        other => panic!("{other:?}"),
    }
}

pub(super) async fn a_repeated_answer_lasts_as_long_as_its_claim_was_extended(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 2).await;
    let ask = request(2);
    let Claimed::Granted { lease_until: first, .. } = claim(&store, &ask).await else {
        panic!("nothing was granted");
    };
    let extended = store.extend(&ask.id(), None).await.expect("extended").lease_until;
    match claim(&store, &ask).await {
        Claimed::Granted { lease_until, tasks, .. } => {
            assert_eq!((Some(lease_until), tasks.len()), (extended, 2));
            assert!(lease_until > first);
        }
        other => panic!("{other:?}"),
    }
}

pub(super) async fn extending_keeps_what_is_held_and_names_what_is_lost(fresh: Fresh) {
    let store = shop(&fresh, &Rules { lease: SHORT, ..free() }).await;
    define(&store, "slow", &free()).await;
    put(&store, &[task("shop", "a"), task("slow", "b"), task("slow", "c")]).await;
    let ask = request(3);
    let tasks = handed(&store, &ask).await;
    let id = |key| tasks.iter().find(|task| task.key == key).expect("granted").id.clone();
    let end = look(&store, &id("a")).await.held.expect("held").2;
    let before = look(&store, &id("b")).await.held.expect("held").2;
    let finished = tasks.iter().find(|task| task.key == "c").expect("granted");
    assert_eq!(say_one(&store, done(finished)).await, Reported::Ok);
    reach(&store, end).await;
    let extended = store.extend(&ask.id(), None).await.expect("extended");
    let after = look(&store, &id("b")).await.held.expect("held").2;
    assert!(after > before, "for another lease from now");
    let (kept, lost) = (vec![id("b")], vec![id("a")]);
    assert_eq!(extended, Extended { kept, lost, lease_until: Some(after) });
    // Whoever has it next: it stays lost.
    assert_eq!(take(&store).await.id, id("a"));
    assert_eq!(store.extend(&ask.id(), None).await.expect("extended").lost, [id("a")]);
    assert_eq!(look(&store, &id("a")).await.attempt, 2);
}

pub(super) async fn an_extended_lease_lasts_longer(fresh: Fresh) {
    let store = shop(&fresh, &Rules { lease: MS * 400, ..free() }).await;
    put_many(&store, "shop", 1).await;
    let ask = request(1);
    let task = handed(&store, &ask).await.remove(0);
    let first_end = look(&store, &task.id).await.held.expect("held").2;
    // Slow machines may lose it; then there is nothing to see here.
    let mut end = first_end;
    while end <= first_end + MS * 400 {
        let extended = store.extend(&ask.id(), None).await.expect("extended");
        let Some(until) = extended.lease_until else {
            assert_eq!(extended.lost, [task.id]);
            return;
        };
        assert!(until >= end);
        end = until;
        store.pump().await.expect("pumped");
        breathe(&store).await;
    }
    reach(&store, first_end).await;
    assert_eq!(store.pump().await.expect("pumped").expired, 0, "the first end counts no more");
    assert_eq!(say_one(&store, done(&task)).await, Reported::Ok);
}

/// The answer to an extension may be lost: then the collector trusts what it was told before.
pub(super) async fn a_claim_is_extended_by_what_it_was_granted_whatever_the_rules_say_since(
    fresh: Fresh,
) {
    let store = shop(&fresh, &Rules { lease: MS * 600_000, ..free() }).await;
    define(&store, "quick", &Rules { lease: MS * 400_000, ..free() }).await;
    put(&store, &[task("shop", "a"), task("quick", "b"), task("shop", "c")]).await;
    let ask = request(3);
    let tasks = handed(&store, &ask).await;
    // What was reported is struck from the claim, and the others keep their own lengths.
    let reported = tasks.iter().find(|task| task.key == "c").expect("it was handed out");
    assert_eq!(say_one(&store, done(reported)).await, Reported::Ok);
    for lease in [MS * 100, MS * 3_600_000] {
        for name in ["shop", "quick"] {
            define(&store, name, &Rules { lease, ..free() }).await;
        }
        for _ in 0..2 {
            let extended = store.extend(&ask.id(), None).await.expect("extended");
            assert_eq!((extended.kept.len(), extended.lost.len()), (2, 0));
            let end = |key: &str| {
                let id = tasks.iter().find(|task| task.key == key).expect("handed out").id.clone();
                let store = &store;
                async move { look(store, &id).await.held.expect("held").2 }
            };
            let (long, short) = (end("a").await, end("b").await);
            assert_eq!(short + MS * 200_000, long, "each as long as it was granted");
            assert_eq!(extended.lease_until, Some(short));
        }
    }
    // What is granted from now on is as the rules say now.
    define(&store, "shop", &Rules { lease: MS * 100, ..free() }).await;
    put(&store, &[task("shop", "d")]).await;
    let next = request(1);
    let brief = handed(&store, &next).await.remove(0);
    let end = look(&store, &brief.id).await.held.expect("held").2;
    reach(&store, end).await;
    assert_eq!(store.pump().await.expect("pumped").expired, 1);
    assert_eq!(handed(&store, &request(2)).await[0].id, brief.id);
}

pub(super) async fn the_same_request_of_another_owner_is_another(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 2).await;
    let ask = request(1);
    let mine = handed(&store, &ask).await.remove(0);
    let replayed = ClaimAsk { owner: ClaimOwner::of("stranger"), ..ask.clone() };
    let theirs = handed(&store, &replayed).await.remove(0);
    assert_ne!(theirs.id, mine.id, "the answer to somebody else's request is not told");
    assert_ne!(ask.id(), replayed.id());
    assert_eq!(handed(&store, &ask).await[0].token, mine.token, "and it still is answered so");
    // What gave nothing is remembered for each, too.
    let empty = request(1);
    nothing(&store, &empty).await;
    put(&store, &[task("shop", "new")]).await;
    let other = ClaimAsk { owner: ClaimOwner::of("stranger"), ..empty.clone() };
    assert_eq!(handed(&store, &other).await.len(), 1);
    nothing(&store, &empty).await;
}

pub(super) async fn only_its_owner_can_extend_or_give_back(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 1).await;
    let ask = request(1);
    let task = handed(&store, &ask).await.remove(0);
    let (own, stranger) = (ClaimOwner::of("test"), ClaimOwner::of("stranger"));
    let refused = store.extend(&ask.id(), Some(&stranger)).await;
    assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    assert_eq!(store.give_back(&ask.id(), Some(&stranger)).await.expect("no error"), 0);
    let kept = store.extend(&ask.id(), Some(&own)).await.expect("extended").kept;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0], task.id);
    assert_eq!(say_one(&store, done(&task)).await, Reported::Ok);
    for claim in [&ask.id(), &ClaimId(unique("claim"))] {
        let refused = store.extend(claim, None).await;
        assert!(
            matches!(refused, Err(StoreError::NotFound(_))),
            "finished or unknown: {refused:?}"
        );
        assert_eq!(store.give_back(claim, None).await.expect("no error"), 0);
    }
}

pub(super) async fn what_never_arrived_goes_back_unless_the_request_was_answered_again(
    fresh: Fresh,
) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 2).await;
    let Claimed::Granted { claim: lost, .. } = claim(&store, &request(1)).await else {
        panic!("nothing was granted");
    };
    assert_eq!(store.give_back_unseen_claim(&lost).await.expect("given back"), 1);
    assert_eq!(counts(&store, "shop").await, [2, 0, 0, 0, 0]);
    let asked_twice = request(2);
    let Claimed::Granted { claim: first, .. } = claim(&store, &asked_twice).await else {
        panic!("nothing was granted");
    };
    let Claimed::Granted { tasks, .. } = claim(&store, &asked_twice).await else {
        panic!("the same is granted");
    };
    assert_eq!(store.give_back_unseen_claim(&first).await.expect("no error"), 0, "somebody has it");
    for task in &tasks {
        assert_eq!(say_one(&store, done(task)).await, Reported::Ok);
    }
    assert_eq!(store.give_back_unseen_claim(&first).await.expect("no error"), 0, "it is over");
}

pub(super) async fn what_is_given_back_was_not_tried(fresh: Fresh) {
    let store = shop(&fresh, &Rules { max_attempts: 1, ..free() }).await;
    put_many(&store, "shop", 3).await;
    let ask = request(3);
    let tasks = handed(&store, &ask).await;
    assert_eq!(say_one(&store, done(&tasks[0])).await, Reported::Ok);
    assert_eq!(store.give_back(&ask.id(), Some(&ClaimOwner::of("test"))).await.expect("back"), 2);
    assert_eq!(counts(&store, "shop").await, [2, 0, 0, 0, 1]);
    assert_eq!(say_one(&store, done(&tasks[1])).await, Reported::Stale);
    let seen = look(&store, &tasks[1].id).await;
    assert_eq!((seen.state, seen.attempt, seen.history.len()), (TaskState::Ready, 0, 0));
    assert_eq!(store.give_back(&ask.id(), None).await.expect("no error"), 0, "once");
    // The request that it answered is forgotten.
    let again = ask;
    let tasks = handed(&store, &again).await;
    assert_eq!(tasks.iter().map(|task| task.attempt).collect::<Vec<_>>(), [1, 1]);
}

pub(super) async fn twenty_claimers_never_share_a_task(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    let other = fresh.connect().await;
    for name in ["a", "b", "c"] {
        define(&store, name, &Rules { cap: Some(7), ..free() }).await;
        put_many(&store, name, 100).await;
    }
    put_many(&store, "shop", 100).await;
    let claimers: Vec<_> = (0..20)
        .map(|n| {
            let store = if n % 2 == 0 { store.clone() } else { other.clone() };
            tokio::spawn(async move {
                let who = format!("c-{n}");
                let (mut mine, mut reports) = (Vec::new(), Vec::new());
                for round in 0..200 {
                    let claim = Some(request_by(&who, 1 + round % 4));
                    let ask = Exchange { reports: std::mem::take(&mut reports), claim, only: None };
                    let answer = store.exchange(&ask).await.expect("exchanged");
                    assert!(answer.reports.iter().all(|one| *one == Reported::Ok));
                    if let Some(Claimed::Granted { tasks, .. }) = answer.claimed {
                        reports = tasks.iter().map(done).collect();
                        mine.extend(tasks.into_iter().map(|task| (task.token, task.id.0)));
                    } else if ask.reports.is_empty() {
                        break;
                    }
                }
                mine
            })
        })
        .collect();
    let mut all = Vec::new();
    for claimer in claimers {
        all.extend(claimer.await.expect("no panic"));
    }
    // Those who found only full sources left early; the rest of the work is done here.
    for _ in 0..400 {
        let Claimed::Granted { tasks, .. } = claim(&store, &request(100)).await else { break };
        assert!(say(&store, &tasks.iter().map(done).collect::<Vec<_>>()).await.len() <= 100);
        all.extend(tasks.into_iter().map(|task| (task.token, task.id.0)));
    }
    let tasks: std::collections::HashSet<_> = all.iter().map(|(_, task)| task).collect();
    holds(tasks.len() == all.len(), || format!("of {} claims {} tasks", all.len(), tasks.len()));
    assert_eq!(tasks.len(), 400);
    for name in ["a", "b", "c", "shop"] {
        assert_eq!(counts(&store, name).await, [0, 0, 0, 0, 100]);
    }
}

pub(super) async fn collectors_are_seen_with_what_they_hold(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    define(&store, "quick", &Rules { lease: LONG / 2, ..free() }).await;
    put(&store, &[task("shop", "a"), task("quick", "b"), task("quick", "c")]).await;
    let tasks = handed(&store, &request_by("b-holder", 2)).await;
    nothing(&store, &ClaimAsk { sources: vec![source("shop")], ..request_by("a-poller", 2) }).await;
    let seen = store.collectors().await.expect("collectors");
    let names: Vec<_> = seen.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a-poller", "b-holder"]);
    assert_eq!((seen[0].in_flight, seen[0].holds.len()), (0, 0));
    assert!(seen[0].seen >= seen[1].seen);
    assert_eq!(seen[1].in_flight, 2);
    let keys: Vec<_> = seen[1].holds.iter().map(|held| held.1.as_str()).collect();
    assert_eq!(keys, ["b", "a"], "the earliest end first");
    let first = &seen[1].holds[0];
    let quick = tasks.iter().find(|task| task.key == "b").expect("granted");
    let end = look(&store, &quick.id).await.held.expect("held").2;
    assert_eq!((&first.0, &first.2, first.3), (&quick.id, &source("quick"), end));
    let before = seen[1].seen;
    // To the second: a store need not write it down with every request.
    reach(&store, before + MS * 1_100).await;
    assert_eq!(say_one(&store, done(quick)).await, Reported::Ok);
    nothing(&store, &ClaimAsk { sources: vec![source("shop")], ..request_by("b-holder", 2) }).await;
    let after = store.collectors().await.expect("collectors");
    assert!(after[1].seen > before && after[1].in_flight == 1, "{after:?}");
}

pub(super) async fn a_collector_that_calls_again_at_once_is_not_noted_again(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    nothing(&store, &request(1)).await;
    let before = store.collectors().await.expect("collectors")[0].seen;
    nothing(&store, &request(1)).await;
    let after = store.collectors().await.expect("collectors")[0].seen;
    // A machine that was busy in between shows nothing.
    let now = view(&store, "shop").await.now;
    assert!(after == before || now >= before + SEEN_EVERY, "{before:?}, {after:?}, {now:?}");
}

pub(super) async fn labels_of_any_printable_kind_are_kept_apart(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 4).await;
    let mut tasks = Vec::new();
    for (who, what) in [("a:b", "c"), ("a", "b:c"), ("a/{b}", "c"), ("A:b", "c")] {
        let ask =
            ClaimAsk { request: RequestId::new(what).expect("a good label"), ..request_by(who, 1) };
        tasks.extend(handed(&store, &ask).await);
    }
    assert_eq!(ids(&tasks).iter().collect::<std::collections::HashSet<_>>().len(), 4);
}
