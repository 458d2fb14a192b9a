//! When tasks may start, of which source, and who is woken: timetables of hours, played in milliseconds.

use std::time::Duration;

use super::shop::*;
use crate::dispatch::{
    Answer, Exchange, Halt, NewTask, Reason, Reported, Rules, TaskOutcome, Window, exchange,
};
use crate::name::Waiter;
use crate::time::Stamp;

#[test]
fn a_claim_of_a_hundred_is_divided_alike_and_the_next_begins_where_it_ended() {
    let mut store = stocked(&["a", "b", "c"].map(|name| (name, free(), 200)));
    let mut shares = |request: &str, max| {
        let tasks = handed(&mut store, &ask(request, max, &[]), START);
        ["a", "b", "c"].map(|name| tasks.iter().filter(|task| task.source == source(name)).count())
    };
    assert_eq!(shares("1", 100), [34, 33, 33]);
    assert_eq!(shares("2", 100), [33, 34, 33]);
    assert_eq!(shares("3", 1), [0, 0, 1]);
    assert_eq!(shares("4", 4), [2, 1, 1]);
}

#[test]
fn what_one_source_cannot_give_is_divided_among_the_others() {
    let window = Some(Window { count: 2, span: HOUR });
    let mut store = stocked(&[
        ("a", free(), 5),
        ("b", free(), 200),
        ("c", Rules { cap: Some(3), ..free() }, 200),
        ("d", Rules { gap: HOUR, ..free() }, 200),
        ("e", Rules { window, ..free() }, 200),
        ("f", free(), 200),
    ]);
    let tasks = handed(&mut store, &ask("1", 100, &[]), START);
    let shares = ["a", "b", "c", "d", "e", "f"]
        .map(|name| tasks.iter().filter(|task| task.source == source(name)).count());
    assert_eq!(shares, [5, 45, 3, 1, 2, 44]);
    let first = ["a", "b", "c", "d", "e", "f"].map(|name| store.shut(&source(name), START));
    let reasons = first.map(|shut| shut.map(|shut| (shut.reason, shut.until)));
    let (day, hour) = (Some(START + 24 * HOUR), Some(START + HOUR));
    let expected = [(Reason::Cap, day), (Reason::Gap, hour), (Reason::Gap, hour)];
    assert_eq!(reasons[0], Some((Reason::Empty, None)));
    assert_eq!(reasons[2..5], expected.map(Some));
    assert_eq!([reasons[1], reasons[5]], [None; 2]);
}

#[test]
fn a_claim_of_ten_looks_at_ten_of_ten_thousand_tasks() {
    let mut store = stocked(&[("a", free(), 5_000), ("b", free(), 5_000)]);
    let first = handed(&mut store, &ask("1", 10, &[]), START);
    let reports = first.iter().map(|task| report(task, TaskOutcome::Done)).collect();
    let next = Exchange { reports, claim: Some(ask("2", 10, &[])), only: None };
    let (change, looked) = store.decide(START, |sets| exchange(sets, &next, START)).unwrap();
    assert_eq!((change.tasks.len(), looked.tasks.len()), (20, 20));
    assert_eq!((looked.sources.len(), looked.claims.len()), (2, 2));
}

#[test]
fn starts_keep_a_gap_of_hours_to_the_microsecond() {
    let mut store = stocked(&[("a", Rules { gap: 3 * HOUR, ..free() }, 3)]);
    for nth in 0..3 {
        let now = START + 3 * HOUR * nth;
        let early = Stamp(now.0 - 1);
        if nth > 0 {
            let request = format!("early {nth}").replace(' ', "-");
            let answer = nothing(&mut store, &ask(&request, 9, &[]), early);
            assert_eq!(answer, (Reason::Gap, Some(now)));
            assert_eq!(store.next(), Some(now));
        }
        assert_eq!(handed(&mut store, &ask(&nth.to_string(), 9, &[]), now).len(), 1);
    }
    let now = START + 6 * HOUR;
    assert_eq!(nothing(&mut store, &ask("end", 9, &[]), now), (Reason::Empty, None));
    // The gap outlasts the empty queue.
    store.put(&[task("a", "new")], now + HOUR).unwrap();
    let opens = (Reason::Gap, Some(now + 3 * HOUR));
    assert_eq!(nothing(&mut store, &ask("new", 9, &["a"]), now + HOUR), opens);
}

#[test]
fn a_window_slides_and_new_rules_count_at_once() {
    let window = |count| Rules { window: Some(Window { count, span: 24 * HOUR }), ..free() };
    let mut store = stocked(&[("a", window(3), 9)]);
    assert_eq!(handed(&mut store, &ask("1", 1, &[]), START).len(), 1);
    assert_eq!(handed(&mut store, &ask("2", 9, &[]), START + HOUR).len(), 2);
    let opens = (Reason::Gap, Some(START + 24 * HOUR));
    assert_eq!(nothing(&mut store, &ask("3", 9, &[]), START + 2 * HOUR), opens);
    store.define(&source("a"), &window(4), START + 3 * HOUR);
    assert_eq!(handed(&mut store, &ask("4", 9, &[]), START + 3 * HOUR).len(), 1);
    assert_eq!(handed(&mut store, &ask("5", 9, &[]), START + 24 * HOUR).len(), 1);
    let opens = (Reason::Gap, Some(START + 25 * HOUR));
    assert_eq!(nothing(&mut store, &ask("6", 9, &[]), START + 24 * HOUR), opens);
    // Without a window nothing is counted, and what started before is forgotten.
    store.define(&source("a"), &free(), START + 24 * HOUR);
    store.define(&source("a"), &window(1), START + 24 * HOUR);
    assert_eq!(handed(&mut store, &ask("7", 9, &[]), START + 24 * HOUR).len(), 1);
}

#[test]
fn a_block_and_a_pause_serve_nobody_and_lose_nothing() {
    let mut store = stocked(&[("a", free(), 2)]);
    store.block(&source("a"), 2 * HOUR, START).unwrap();
    let (early, opens) = (START + HOUR, START + 2 * HOUR);
    let blocked = (Reason::Blocked, Some(opens));
    assert_eq!(nothing(&mut store, &ask("1", 9, &[]), early), blocked);
    store.pause(&source("a"), true, early).unwrap();
    assert_eq!(nothing(&mut store, &ask("2", 9, &[]), early), (Reason::Paused, None));
    store.pause(&source("a"), false, early).unwrap();
    assert_eq!(nothing(&mut store, &ask("3", 9, &[]), early), blocked);
    // No node pumps: the claim sees by itself that it opened.
    assert_eq!(handed(&mut store, &ask("4", 1, &[]), opens).len(), 1);
    store.block(&source("a"), HOUR, opens).unwrap();
    store.block(&source("a"), Duration::ZERO, opens).unwrap();
    assert_eq!(handed(&mut store, &ask("5", 1, &[]), opens).len(), 1);
    let none = Err(Halt::NoSource(source("none")));
    assert_eq!(store.block(&source("none"), HOUR, opens), none);
    assert_eq!(store.pause(&source("none"), true, opens), none);
}

#[test]
fn the_reason_is_of_the_source_that_opens_first() {
    let mut store = stocked(&[
        ("a", Rules { cap: Some(1), lease: 5 * HOUR, ..Rules::default() }, 2),
        ("b", Rules { gap: 7 * HOUR, ..free() }, 2),
        ("c", Rules { paused: true, ..free() }, 1),
        ("d", free(), 0),
    ]);
    store.put(&[NewTask { at: Some(START + HOUR), ..task("d", "later") }], START).unwrap();
    let tasks = handed(&mut store, &ask("1", 9, &[]), START);
    assert_eq!(tasks.len(), 2);
    let at = |hours| Some(START + HOUR * hours);
    assert_eq!(nothing(&mut store, &ask("2", 9, &[]), START), (Reason::Cap, at(5)));
    assert_eq!(nothing(&mut store, &ask("3", 9, &["c", "b"]), START), (Reason::Gap, at(7)));
    assert_eq!(nothing(&mut store, &ask("4", 9, &["c", "d"]), START), (Reason::Paused, None));
    assert_eq!(nothing(&mut store, &ask("5", 9, &["d"]), START), (Reason::Empty, at(1)));
    // The lease that ends first may be one that is given up in this very step.
    let dead = Exchange {
        reports: vec![report(&tasks[0], TaskOutcome::Retry)],
        claim: Some(ask("6", 9, &["a"])),
        only: None,
    };
    let answer = store.exchange(&dead, START).unwrap().1.unwrap();
    assert!(matches!(answer, Answer::Granted { ref tasks, .. } if tasks.len() == 1), "{answer:?}");
}

#[test]
fn as_many_are_woken_as_tasks_may_start_and_a_promise_lapses() {
    let mut store = stocked(&[("a", free(), 0), ("b", free(), 0)]);
    for (name, sources) in [("w1", &["b"][..]), ("w2", &[]), ("w3", &["a"]), ("w4", &["a", "b"])] {
        nothing(&mut store, &waiting(name, sources, HOUR), START);
    }
    nothing(&mut store, &waiting("w5", &[], SECOND), START);
    store.put(&[task("a", "1"), task("a", "2")], START).unwrap();
    assert_eq!(woken(&mut store), ["w2", "w3"]);
    assert_eq!(handed(&mut store, &waiting("w2", &[], HOUR), START).len(), 1);
    let lapses = START + Duration::from_millis(100);
    store.pump(Stamp(lapses.0 - 1));
    assert!(woken(&mut store).is_empty(), "one is promised to w3");
    assert_eq!(store.next(), Some(lapses));
    store.pump(lapses);
    assert_eq!(woken(&mut store), ["w4"]);
    store.leave_queues(&Waiter("w1".to_owned()), lapses);
    let late = START + SECOND;
    store.put(&[task("b", "1")], late).unwrap();
    assert!(woken(&mut store).is_empty(), "the time of w5 is over");
    // A claim that asks finds it, and does not wait.
    let mut any = waiting("w6", &["b"], HOUR);
    any.max = 9;
    assert_eq!(handed(&mut store, &any, late).len(), 1);
}

#[test]
fn whoever_reports_and_asks_in_one_step_comes_before_who_waits() {
    let mut store = stocked(&[("a", Rules { cap: Some(1), ..free() }, 3)]);
    let one = handed(&mut store, &ask("1", 1, &[]), START).remove(0);
    let cap = (Reason::Cap, Some(START + 24 * HOUR));
    assert_eq!(nothing(&mut store, &waiting("w1", &[], HOUR), START), cap);
    let reports = vec![report(&one, TaskOutcome::Done)];
    let next = Exchange { reports, claim: Some(ask("2", 1, &[])), only: None };
    let answer = store.exchange(&next, START).unwrap().1.unwrap();
    let Answer::Granted { tasks, .. } = answer else { panic!("{answer:?}") };
    assert!(woken(&mut store).is_empty());
    assert_eq!(store.report(&report(&tasks[0], TaskOutcome::Done), START), Reported::Ok);
    assert_eq!(woken(&mut store), ["w1"]);
}

#[test]
fn sources_enter_the_ring_in_the_order_in_which_they_could_be_served() {
    let gap = |hours| Rules { gap: HOUR * hours, ..free() };
    let mut store = stocked(&[("a", gap(3), 2), ("b", gap(1), 2), ("c", free(), 0)]);
    store.put(&[NewTask { at: Some(START + 2 * HOUR), ..task("c", "c") }], START).unwrap();
    assert_eq!(handed(&mut store, &ask("1", 9, &[]), START).len(), 2);
    // No transition looks for hours.
    let now = START + 9 * HOUR;
    let tasks = handed(&mut store, &ask("2", 9, &[]), now);
    assert_eq!(keys(&store, &tasks), ["b-1", "c", "a-1"]);
}
