//! Laws of results: what is accepted, what becomes of a task, and what happens to one whose collector fell silent.

use std::time::Duration;

use soloist::domain::dispatch::{Backoff, Reason, Rules, TaskOutcome, TaskState};
use soloist::domain::lease::Token;
use soloist::domain::name::SourceName;
use soloist::store::StoreError;
use soloist::store::dispatch::{
    ClaimOwner, Dispatch, Exchange, Handed, NewTask, Past, PastEvent, Report, Reported, TaskId,
};

use super::dispatch::*;
use super::*;

/// A lease that runs out during a test.
fn brief() -> Rules {
    Rules { lease: SHORT, ..free() }
}

fn events(past: &[Past]) -> Vec<(PastEvent, u32)> {
    past.iter().map(|one| (one.event, one.attempt)).collect()
}

pub(super) async fn a_result_is_accepted_once_and_its_repetition_changes_nothing(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 2).await;
    let tasks = handed(&store, &request(2)).await;
    let stranger = Report { token: Token(tasks[0].token.0 - 1), ..done(&tasks[0]) };
    let unknown = Report { id: TaskId("ab".repeat(16)), ..done(&tasks[0]) };
    let all = [unknown, stranger, done(&tasks[0]), done(&tasks[0]), done(&tasks[1])];
    let answers = say(&store, &all).await;
    use Reported::{Ok, Stale, Unknown};
    assert_eq!(answers, [Unknown, Stale, Ok, Ok, Ok]);
    let before = view(&store, "shop").await;
    assert_eq!((before.done, before.finished, before.in_flight), (2, 2, 0));
    // Even if it says something else now.
    assert_eq!(say_one(&store, report(&tasks[0], TaskOutcome::Dead)).await, Ok);
    let future = Report { token: Token(tasks[0].token.0 + 5_000), ..done(&tasks[0]) };
    assert_eq!(say_one(&store, future).await, Stale);
    assert_eq!(look(&store, &tasks[0].id).await.state, TaskState::Done);
    assert_eq!(counts(&store, "shop").await, [0, 0, 0, 0, 2]);
}

pub(super) async fn a_task_to_be_tried_again_waits_for_its_backoff(fresh: Fresh) {
    let backoff = Backoff { first: MS * 10, max: MS * 30 };
    let store = shop(&fresh, &Rules { backoff, max_attempts: 0, ..free() }).await;
    put_many(&store, "shop", 1).await;
    let mut newest = Token(0);
    for (before, wait) in [10, 20, 30, 30].into_iter().enumerate() {
        let task = take(&store).await;
        assert_eq!(task.attempt as usize, before + 1);
        assert!(task.token > newest);
        newest = task.token;
        let again = report(&task, TaskOutcome::Retry);
        assert_eq!(say_one(&store, again.clone()).await, Reported::Ok);
        let seen = look(&store, &task.id).await;
        let at = seen.changed + MS * wait;
        assert_eq!((seen.state, seen.at, seen.held), (TaskState::Due, Some(at), None));
        assert_eq!(counts(&store, "shop").await, [0, 1, 0, 0, 0]);
        reach(&store, at).await;
        if before == 3 {
            take(&store).await;
            assert_eq!(say_one(&store, again).await, Reported::Ok, "this was accepted already");
        }
    }
    assert_eq!(view(&store, "shop").await.retried, 4);
    assert_eq!(counts(&store, "shop").await, [0, 0, 1, 0, 0]);
}

pub(super) async fn a_collector_may_say_when_to_try_again(fresh: Fresh) {
    let backoff = Backoff { first: LONG, max: LONG };
    let store = shop(&fresh, &Rules { backoff, ..free() }).await;
    put_many(&store, "shop", 1).await;
    let task = take(&store).await;
    let soon = Report {
        delay: Some(MS * 300),
        error: Some("HTTP 503".to_owned()),
        ..report(&task, TaskOutcome::Retry)
    };
    assert_eq!(say_one(&store, soon).await, Reported::Ok);
    let seen = look(&store, &task.id).await;
    let at = seen.changed + MS * 300;
    assert_eq!((seen.at, seen.attempt), (Some(at), 1));
    assert_eq!(seen.error.as_deref(), Some("HTTP 503"));
    let past = Past {
        at: seen.changed,
        event: PastEvent::Retried,
        attempt: 1,
        collector: Some(collector("c-1")),
        error: Some("HTTP 503".to_owned()),
    };
    assert_eq!(seen.history, [past]);
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Empty, Some(at)));
    reach(&store, at).await;
    let again = take(&store).await;
    assert_eq!((&again.id, again.attempt), (&task.id, 2));
}

pub(super) async fn the_last_attempt_leads_to_death_and_a_revival_begins_anew(fresh: Fresh) {
    let backoff = Backoff { first: Duration::ZERO, max: Duration::ZERO };
    let store = shop(&fresh, &Rules { backoff, max_attempts: 2, ..free() }).await;
    define(&store, "other", &free()).await;
    put(&store, &[task("shop", "a"), task("shop", "b"), task("other", "c")]).await;
    let tasks = handed(&store, &request(3)).await;
    let find = |key| tasks.iter().find(|task| task.key == key).expect("granted");
    assert_eq!(say_one(&store, report(find("b"), TaskOutcome::Dead)).await, Reported::Ok);
    assert_eq!(say_one(&store, report(find("c"), TaskOutcome::Dead)).await, Reported::Ok);
    assert_eq!(say_one(&store, report(find("a"), TaskOutcome::Retry)).await, Reported::Ok);
    let second = take(&store).await;
    assert_eq!(second.attempt, 2);
    let error = Some("no such page".to_owned());
    let last = Report { error, ..report(&second, TaskOutcome::Retry) };
    assert_eq!(say_one(&store, last).await, Reported::Ok);
    assert_eq!(counts(&store, "shop").await, [0, 0, 0, 2, 0]);
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Empty, None));

    let keys = async |source: Option<&SourceName>, skip, limit| {
        let dead = store.dead(source, skip, limit).await.expect("answered");
        dead.into_iter().map(|task| task.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(None, 0, 10).await, ["a", "c", "b"], "newest first");
    assert_eq!(keys(None, 1, 1).await, ["c"]);
    assert_eq!(keys(Some(&source("shop")), 0, 10).await, ["a", "b"]);
    assert_eq!(keys(Some(&source("shop")), 1, 10).await, ["b"]);

    let revived = store.revive(&second.id).await.expect("revived");
    assert_eq!((revived.state, revived.attempt), (TaskState::Ready, 0));
    assert_eq!(revived.error, None, "its history has it");
    assert_eq!(revived.history[1].error.as_deref(), Some("no such page"));
    assert_eq!(
        events(&revived.history),
        [(PastEvent::Retried, 1), (PastEvent::Died, 2), (PastEvent::Revived, 2)]
    );
    assert_eq!(counts(&store, "shop").await, [1, 0, 0, 1, 0]);
    let once_more = store.revive(&second.id).await.expect("left as it is");
    assert_eq!(once_more, revived);
    let third = take(&store).await;
    assert_eq!((&third.id, third.attempt), (&second.id, 1));
    assert!(third.token > second.token);
    assert_eq!(store.revive(&third.id).await.expect("left as it is").state, TaskState::Leased);
    assert_eq!(say_one(&store, done(&third)).await, Reported::Ok);
    assert_eq!(counts(&store, "shop").await, [0, 0, 0, 1, 1]);
}

pub(super) async fn a_recrawl_is_armed_again_with_its_attempts_from_zero(fresh: Fresh) {
    let backoff = Backoff { first: Duration::ZERO, max: Duration::ZERO };
    let store = shop(&fresh, &Rules { backoff, max_attempts: 2, ..free() }).await;
    put(&store, &[NewTask { every: Some(MS * 20), ..task("shop", "page") }]).await;
    for round in 1..=3 {
        let first = take(&store).await;
        assert_eq!(first.attempt, 1, "round {round}");
        assert_eq!(say_one(&store, report(&first, TaskOutcome::Retry)).await, Reported::Ok);
        let second = take(&store).await;
        assert_eq!((&second.id, second.attempt), (&first.id, 2));
        assert_eq!(say_one(&store, done(&second)).await, Reported::Ok);
        let seen = look(&store, &first.id).await;
        let at = seen.changed + MS * 20;
        assert_eq!((seen.state, seen.attempt, seen.at), (TaskState::Due, 0, Some(at)));
        assert_eq!(counts(&store, "shop").await, [0, 1, 0, 0, 0], "due again instead of done");
        assert_eq!(view(&store, "shop").await.finished, round);
        assert_eq!(say_one(&store, done(&second)).await, Reported::Ok, "repeated");
        assert_eq!(say_one(&store, done(&first)).await, Reported::Stale, "older");
        reach(&store, at).await;
    }
}

pub(super) async fn a_lease_that_ran_out_counts_and_its_task_comes_first(fresh: Fresh) {
    let store = shop(&fresh, &brief()).await;
    put(&store, &[NewTask { priority: 3, ..task("shop", "a") }, task("shop", "b")]).await;
    let lost = take(&store).await;
    put(&store, &[NewTask { priority: 3, ..task("shop", "c") }]).await;
    let end = look(&store, &lost.id).await.held.expect("held").2;
    expire(&store, 1).await;
    let seen = look(&store, &lost.id).await;
    assert_eq!((seen.state, seen.attempt, seen.held), (TaskState::Ready, 1, None));
    assert!(seen.changed >= end, "not before its end");
    assert_eq!(events(&seen.history), [(PastEvent::Expired, 1)]);
    assert_eq!(seen.history[0].collector, Some(collector("c-1")));
    let after = view(&store, "shop").await;
    assert_eq!((after.expired, after.in_flight, after.ready), (1, 0, 3));
    assert_eq!(say_one(&store, done(&lost)).await, Reported::Stale, "nobody else has it yet");

    let again = take(&store).await;
    assert_eq!((&again.id, again.attempt), (&lost.id, 2), "before `c`, which is as urgent");
    assert!(again.token > lost.token);
    assert_eq!(say_one(&store, done(&lost)).await, Reported::Stale);
    assert_eq!(look(&store, &lost.id).await.state, TaskState::Leased);
    assert_eq!(take(&store).await.key, "c");
}

pub(super) async fn leases_that_ran_out_together_come_back_in_their_old_order(fresh: Fresh) {
    let store = shop(&fresh, &brief()).await;
    put_many(&store, "shop", 9).await;
    let first = handed(&store, &request(6)).await;
    let second = handed(&store, &request(2)).await;
    define(&store, "shop", &free()).await;
    let end = look(&store, &second[0].id).await.held.expect("held").2;
    reach(&store, end).await;
    let again = handed(&store, &request(9)).await;
    let keys = |tasks: &[Handed]| tasks.iter().map(|task| task.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&again)[..8], [keys(&first), keys(&second)].concat());
}

pub(super) async fn an_error_is_remembered_of_the_attempt_that_reported_it(fresh: Fresh) {
    let backoff = Backoff { first: Duration::ZERO, max: Duration::ZERO };
    let store = shop(&fresh, &Rules { backoff, max_attempts: 3, ..brief() }).await;
    put_many(&store, "shop", 1).await;
    let error = Some("HTTP 503".to_owned());
    let first = take(&store).await;
    let again = Report { error: error.clone(), ..report(&first, TaskOutcome::Retry) };
    // A machine that is busy may lose the lease; then there is nothing to see here.
    if say_one(&store, again).await == Reported::Stale {
        return;
    }
    take(&store).await;
    expire(&store, 1).await;
    take(&store).await;
    expire(&store, 1).await;
    let dead = look(&store, &first.id).await;
    assert_eq!((dead.state, &dead.error), (TaskState::Dead, &error), "the newest one reported");
    let errors: Vec<_> = dead.history.iter().map(|past| (past.event, past.error.clone())).collect();
    let silent = [(PastEvent::Expired, None), (PastEvent::Died, None)];
    assert_eq!(errors, [[(PastEvent::Retried, error)].as_slice(), &silent].concat());
}

pub(super) async fn a_claim_acts_on_leases_that_ran_out_by_itself(fresh: Fresh) {
    let store = shop(&fresh, &Rules { max_attempts: 2, ..brief() }).await;
    put_many(&store, "shop", 1).await;
    for attempt in 1..=2 {
        let task = take(&store).await;
        assert_eq!(task.attempt, attempt);
        let end = look(&store, &task.id).await.held.expect("held").2;
        reach(&store, end).await;
        assert_eq!(say_one(&store, done(&task)).await, Reported::Stale);
    }
    assert_eq!(nothing(&store, &request(1)).await, (Reason::Empty, None));
    assert_eq!(counts(&store, "shop").await, [0, 0, 0, 1, 0], "its attempts are used up");
    assert_eq!(view(&store, "shop").await.expired, 2);
    let id = TaskId::of(&source("shop"), "shop-0000");
    let events = events(&look(&store, &id).await.history);
    assert_eq!(events, [(PastEvent::Expired, 1), (PastEvent::Died, 2)]);
}

pub(super) async fn the_newest_twenty_failures_are_kept(fresh: Fresh) {
    let backoff = Backoff { first: Duration::ZERO, max: Duration::ZERO };
    let store = shop(&fresh, &Rules { backoff, max_attempts: 0, ..free() }).await;
    put_many(&store, "shop", 1).await;
    for attempt in 1..=23 {
        let task = take(&store).await;
        let error = Some(format!("failure {attempt}"));
        let again = Report { error, ..report(&task, TaskOutcome::Retry) };
        assert_eq!(say_one(&store, again).await, Reported::Ok);
    }
    let seen = look(&store, &TaskId::of(&source("shop"), "shop-0000")).await;
    let attempts: Vec<_> = seen.history.iter().map(|past| past.attempt).collect();
    assert_eq!(attempts, (4..=23).collect::<Vec<_>>());
    assert_eq!(seen.error.as_deref(), Some("failure 23"));
}

pub(super) async fn nobody_can_report_what_is_in_the_claim_of_another(fresh: Fresh) {
    let store = shop(&fresh, &free()).await;
    put_many(&store, "shop", 2).await;
    let mine = handed(&store, &request_by("mine", 1)).await.remove(0);
    let theirs = handed(&store, &request_by("theirs", 1)).await.remove(0);
    let only = Some(ClaimOwner::of("mine"));
    let reports = vec![done(&theirs), done(&mine)];
    let ask = Exchange { reports, only: only.clone(), claim: None };
    let answer = store.exchange(&ask).await.expect("answered");
    assert_eq!(answer.reports, [Reported::Stale, Reported::Ok]);
    assert_eq!(look(&store, &theirs.id).await.state, TaskState::Leased);
    assert_eq!(counts(&store, "shop").await, [0, 0, 1, 0, 1]);
    assert_eq!(say_one(&store, done(&theirs)).await, Reported::Ok);
}

pub(super) async fn results_make_room_for_the_claim_in_the_same_step(fresh: Fresh) {
    let store = shop(&fresh, &Rules { cap: Some(2), ..free() }).await;
    put_many(&store, "shop", 5).await;
    let mut ask = Exchange { claim: Some(request(10)), ..Exchange::default() };
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let answer = store.exchange(&ask).await.expect("exchanged");
        assert!(answer.reports.iter().all(|one| *one == Reported::Ok), "{answer:?}");
        let tasks = match answer.claimed.expect("asked") {
            soloist::store::dispatch::Claimed::Granted { tasks, .. } => tasks,
            _ => Vec::new(),
        };
        sizes.push(tasks.len());
        let reports = tasks.iter().map(done).collect();
        ask = Exchange { reports, claim: Some(request(10)), only: None };
    }
    assert_eq!(sizes, [2, 2, 1, 0]);
    assert_eq!(counts(&store, "shop").await, [0, 0, 0, 0, 5]);
}

pub(super) async fn a_result_counts_whatever_its_node_remembers_of_the_task(fresh: Fresh) {
    let store = shop(&fresh, &brief()).await;
    let (other, fresh_one) = (fresh.connect().await, fresh.connect().await);
    put_many(&store, "shop", 3).await;
    // One node remembers a claim that is over, one the present one, one nothing.
    let lost = handed(&store, &request(3)).await;
    reach(&store, look(&store, &lost[2].id).await.held.expect("held").2).await;
    define(&store, "shop", &free()).await;
    let ask = request(3);
    let tasks = handed(&other, &ask).await;
    assert!(tasks.iter().map(|task| &task.id).eq(lost.iter().map(|task| &task.id)));
    for (nth, node) in [&store, &other, &fresh_one].into_iter().enumerate() {
        assert_eq!(say_one(node, done(&lost[nth])).await, Reported::Stale);
        assert_eq!(say_one(node, done(&tasks[nth])).await, Reported::Ok);
        assert_eq!(say_one(node, done(&tasks[nth])).await, Reported::Ok, "once more");
        let left: Vec<_> = tasks[nth + 1..].iter().map(|task| task.id.clone()).collect();
        match store.extend(&ask.id(), None).await {
            Ok(extended) => assert_eq!(extended.kept, left),
            Err(StoreError::NotFound(_)) => assert!(left.is_empty(), "it names {left:?}"),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(counts(&store, "shop").await, [0, 0, 0, 0, 3]);
}
