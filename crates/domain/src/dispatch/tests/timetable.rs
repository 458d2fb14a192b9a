//! What becomes of a task and of a claim: timetables of hours and days, played in milliseconds.

use std::time::Duration;

use super::shop::*;
use crate::dispatch::{
    Answer, Backoff, ClaimOwner, DONE_KEPT, Exchange, Halt, NewTask, PastEvent, REMEMBERED, Reason,
    Report, Reported, Rules, TaskId, TaskOutcome, TaskState,
};
use crate::lease::Token;
use crate::time::Stamp;

#[test]
fn keys_are_unique_and_the_most_urgent_come_first_then_the_oldest() {
    let mut store = stocked(&[("a", free(), 0)]);
    let urgent = |key, priority| NewTask { priority, ..task("a", key) };
    let later = NewTask { at: Some(START + HOUR), priority: 9, ..task("a", "later") };
    let batch =
        [urgent("x", 0), urgent("y", 5), urgent("x", 9), urgent("z", 9), urgent("w", 5), later];
    assert_eq!(store.put(&batch, START), Ok(vec![true, true, false, true, true, true]));
    assert_eq!(store.put(&batch[..1], START), Ok(vec![false]));
    let before = store.clone();
    let bad = [task("a", "new"), task("none", "new")];
    assert_eq!(store.put(&bad, START), Err(Halt::NoSource(source("none"))));
    assert_eq!(store, before, "then none is put");
    let tasks = handed(&mut store, &ask("1", 3, &[]), START);
    assert_eq!(keys(&store, &tasks), ["z", "y", "w"]);
    let tasks = handed(&mut store, &ask("2", 3, &[]), START + HOUR);
    assert_eq!(keys(&store, &tasks), ["later", "x"]);
}

#[test]
fn what_a_silent_collector_held_comes_first_in_its_old_order_an_attempt_older() {
    let mut store = stocked(&[("a", Rules { lease: HOUR, max_attempts: 2, ..free() }, 5)]);
    let first = handed(&mut store, &ask("1", 2, &[]), START);
    let second = handed(&mut store, &ask("2", 1, &[]), START + SECOND);
    assert_eq!(store.next(), Some(START + HOUR));
    assert_eq!(store.pump(Stamp((START + HOUR).0 - 1)), 0);
    let now = START + 2 * HOUR;
    assert_eq!(store.report(&report(&second[0], TaskOutcome::Done), now), Reported::Stale);
    assert_eq!(store.pump(now), 3);
    assert_eq!(store.pump(now), 0, "done twice it does no more than once");
    let tasks = handed(&mut store, &ask("3", 4, &[]), now);
    assert_eq!(keys(&store, &tasks), ["a-0", "a-1", "a-2", "a-3"]);
    assert_eq!(tasks.iter().map(|task| task.attempt).collect::<Vec<_>>(), [2, 2, 2, 1]);
    assert!(tasks[0].token > second[0].token);
    let before = store.clone();
    assert_eq!(store.report(&report(&first[0], TaskOutcome::Done), now), Reported::Stale);
    store.seen.clone_from(&before.seen);
    assert_eq!(store, before, "a stale result changes nothing");
    // A claim acts on what ran out by itself; attempts are used up.
    let tasks = handed(&mut store, &ask("4", 9, &[]), now + HOUR);
    assert_eq!(keys(&store, &tasks), ["a-3", "a-4"]);
    let dead = &store.tasks[&first[0].id];
    assert_eq!((dead.state, dead.attempt), (TaskState::Dead, 2));
    let events: Vec<_> = store.pasts[&dead.id].iter().map(|past| past.event).collect();
    assert_eq!(events, [PastEvent::Expired, PastEvent::Died]);
}

#[test]
fn a_task_to_be_tried_again_waits_longer_each_time_until_it_dies_and_is_revived() {
    let backoff = Backoff { first: HOUR, max: 3 * HOUR };
    let rules = Rules { backoff, max_attempts: 4, ..free() };
    let mut store = stocked(&[("a", rules, 1)]);
    let mut now = START;
    for (attempt, wait) in [(1, 1), (2, 2), (3, 3)] {
        let one = handed(&mut store, &ask(&attempt.to_string(), 1, &[]), now).remove(0);
        assert_eq!(one.attempt, attempt);
        let error = Some(format!("failure {attempt}"));
        let again = Report { error, ..report(&one, TaskOutcome::Retry) };
        assert_eq!(store.report(&again, now), Reported::Ok);
        assert_eq!(store.report(&report(&one, TaskOutcome::Dead), now), Reported::Ok, "repeated");
        let due = now + HOUR * wait;
        let early = ask(&format!("early-{attempt}"), 1, &[]);
        assert_eq!(nothing(&mut store, &early, now), (Reason::Empty, Some(due)));
        now = due;
    }
    let last = handed(&mut store, &ask("4", 1, &[]), now).remove(0);
    assert_eq!(store.report(&report(&last, TaskOutcome::Retry), now), Reported::Ok);
    let dead = store.tasks[&last.id].clone();
    assert_eq!((dead.state, dead.error.as_deref()), (TaskState::Dead, Some("failure 3")));
    assert_eq!(store.pasts[&last.id][3].error, None, "this time it gave no reason");
    store.revive(&last.id, now).unwrap();
    store.revive(&last.id, now).unwrap();
    let revived = handed(&mut store, &ask("5", 1, &[]), now).remove(0);
    assert_eq!((revived.attempt, revived.error.clone()), (1, None));
    assert!(revived.token > last.token);
    assert_eq!(store.pasts[&last.id].len(), 5);
    let none = TaskId("none".to_owned());
    assert_eq!(store.revive(&none, now), Err(Halt::NoTask(none)));
}

#[test]
fn a_recrawl_is_armed_again_each_day_and_a_collector_may_say_when_to_try_again() {
    let mut store = stocked(&[("a", Rules { max_attempts: 2, ..free() }, 0)]);
    store.put(&[NewTask { every: Some(24 * HOUR), ..task("a", "page") }], START).unwrap();
    for day in 0..5 {
        let now = START + 24 * HOUR * day;
        let first = handed(&mut store, &ask(&format!("{day}a"), 1, &[]), now).remove(0);
        assert_eq!(first.attempt, 1);
        let again = Report { delay: Some(Duration::ZERO), ..report(&first, TaskOutcome::Retry) };
        assert_eq!(store.report(&again, now), Reported::Ok);
        let second = handed(&mut store, &ask(&format!("{day}b"), 1, &[]), now).remove(0);
        assert_eq!(store.report(&report(&second, TaskOutcome::Done), now), Reported::Ok);
        assert_eq!(store.report(&report(&first, TaskOutcome::Done), now), Reported::Stale, "older");
        assert_eq!(store.tasks[&first.id].at, Some(now + 24 * HOUR));
    }
    let source = &store.sources[&source("a")];
    assert_eq!((source.finished, source.done, source.retried), (5, 0, 5));
}

#[test]
fn the_same_request_has_the_same_answer_until_all_of_it_is_over() {
    let mut store = stocked(&[("a", Rules { lease: HOUR, ..free() }, 3)]);
    let request = ask("1", 2, &[]);
    let first = store.claim(&request, START);
    assert_eq!(store.claim(&request, START + HOUR / 2), first);
    let Answer::Granted { tasks, lease_until, .. } = first else { panic!("granted") };
    assert_eq!(lease_until, START + HOUR);
    let now = START + HOUR / 2;
    assert_eq!(store.extend(&request.id(), None, now).unwrap().kept.len(), 2);
    assert_eq!(store.report(&report(&tasks[0], TaskOutcome::Done), now), Reported::Ok);
    let left = store.claim(&request, START + HOUR);
    let Answer::Granted { tasks: left, lease_until, .. } = left else { panic!("granted") };
    assert_eq!((left[0].id.clone(), left.len()), (tasks[1].id.clone(), 1));
    assert_eq!(lease_until, now + HOUR, "as extended");
    let over = now + HOUR;
    let extended = store.extend(&request.id(), None, over).unwrap();
    assert_eq!((extended.kept, extended.lost), (vec![], vec![tasks[1].id.clone()]));
    let again = handed(&mut store, &request, over);
    assert_eq!(keys(&store, &again), ["a-1", "a-2"], "a new request, and the same claim");
    assert_eq!(store.give_back(&request.id(), None, true, over), 0, "somebody may have it");
    for task in &again {
        assert_eq!(store.report(&report(task, TaskOutcome::Done), over), Reported::Ok);
    }
    let finished = Err(Halt::NoClaim(request.id()));
    assert_eq!(store.extend(&request.id(), None, over), finished);
    // A final answer of nothing is remembered, too.
    assert_eq!(nothing(&mut store, &request, over), (Reason::Empty, None));
    store.put(&[task("a", "new")], over).unwrap();
    assert_eq!(nothing(&mut store, &request, over + SECOND), (Reason::Empty, None));
    assert_eq!(handed(&mut store, &request, over + REMEMBERED).len(), 1);
}

#[test]
fn what_is_given_back_was_not_tried_and_stands_where_it_stood() {
    let mut store = stocked(&[("a", free(), 4)]);
    let request = ask("1", 3, &[]);
    let tasks = handed(&mut store, &request, START);
    let other = ClaimOwner::of("other");
    assert_eq!(store.give_back(&request.id(), Some(&other), false, START), 0);
    let stranger = store.extend(&request.id(), Some(&other), START);
    assert_eq!(stranger, Err(Halt::NoClaim(request.id())));
    assert_eq!(store.report(&report(&tasks[0], TaskOutcome::Done), START), Reported::Ok);
    assert_eq!(store.give_back(&request.id(), None, true, START), 2);
    assert_eq!(store.give_back(&request.id(), None, false, START), 0);
    assert_eq!(store.report(&report(&tasks[1], TaskOutcome::Done), START), Reported::Stale);
    let again = handed(&mut store, &request, START);
    assert_eq!(keys(&store, &again), ["a-1", "a-2", "a-3"]);
    assert!(again.iter().all(|task| task.attempt == 1));
}

#[test]
fn nobody_reports_what_is_in_the_claim_of_another() {
    let mut store = stocked(&[("a", free(), 1)]);
    let one = handed(&mut store, &ask("1", 1, &[]), START).remove(0);
    let reports = vec![report(&one, TaskOutcome::Done)];
    let only = Some(ClaimOwner::of("other"));
    let theirs = Exchange { reports, only, claim: None };
    assert_eq!(store.exchange(&theirs, START).unwrap().0, [Reported::Stale]);
    let wrong = Report { token: Token(one.token.0 - 1), ..report(&one, TaskOutcome::Done) };
    assert_eq!(store.report(&wrong, START), Reported::Stale);
    let unknown = Report { id: TaskId("none".to_owned()), ..wrong };
    assert_eq!(store.report(&unknown, START), Reported::Unknown);
    assert_eq!(store.report(&report(&one, TaskOutcome::Done), START), Reported::Ok);
}

#[test]
fn done_tasks_are_forgotten_when_too_many_are_newer() {
    let mut store = stocked(&[("a", free(), 1)]);
    let first = handed(&mut store, &ask("first", 1, &[]), START).remove(0);
    assert_eq!(store.report(&report(&first, TaskOutcome::Done), START), Reported::Ok);
    // As if so many had been done since.
    for _ in 0..DONE_KEPT - 1 {
        store.done.push(first.id.clone());
    }
    store.put(&[task("a", "last")], START).unwrap();
    let last = handed(&mut store, &ask("last", 1, &[]), START).remove(0);
    assert_eq!(store.report(&report(&last, TaskOutcome::Done), START), Reported::Ok);
    assert_eq!(store.report(&report(&first, TaskOutcome::Done), START), Reported::Unknown);
    assert_eq!(store.put(&[task("a", "a-0")], START), Ok(vec![true]));
}
