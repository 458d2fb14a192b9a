//! The deadline: absolute, kept without the node, never moved backwards.

use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::lease::Timing;
use soloist::runner::child::{Cause, ChildEvent, Spec};
use soloist::store::journal::Stream;

use super::{code, signal};
use crate::support::guarded::{DAEMON, Guarded, much_later, runs};
use crate::support::machine::{in_time, judged, within};

judged! {
    at_the_deadline_the_whole_tree_is_dead
    term_comes_before_the_deadline_so_that_a_script_may_clean_up
    a_deadline_moves_forwards_and_never_backwards
}

/// The node kills as well when its guard is late by a quarter of the kill time: long enough here that only the guard
/// is seen at work, on a busy machine too.
fn patient(spec: &mut Spec) {
    spec.timing = Timing::from_ttl(Duration::from_secs(60)).expect("safe times");
}

async fn at_the_deadline_the_whole_tree_is_dead() {
    let deadline = boot() + Duration::from_millis(1_500);
    let script = format!("trap '' TERM; {DAEMON} echo ready; while :; do sleep 0.05; done");
    let mut guarded = Guarded::start_spec(deadline, &script, patient);
    guarded.until_line("ready").await;
    let gone = guarded.until_gone().await;
    let late = boot().since(deadline);
    assert_eq!((gone.exit, gone.cause), (signal(9), Cause::Deadline));
    assert!(boot() >= deadline, "killed before its deadline");
    within(late, Duration::from_millis(400), "the tree is dead after the deadline");
    assert!(!runs(guarded.pid_in("daemon.pid")));
}

async fn term_comes_before_the_deadline_so_that_a_script_may_clean_up() {
    let deadline = boot() + Duration::from_secs(3);
    let script = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done";
    let mut guarded = Guarded::start_spec(deadline, script, |spec| {
        spec.timing = Timing::from_ttl(Duration::from_secs(10)).expect("an answer");
        spec.program.stop_grace = Duration::from_millis(800);
    });
    let gone = guarded.until_gone().await;
    assert_eq!((gone.exit, gone.cause), (code(0), Cause::Deadline));
    assert_eq!(guarded.lines(Stream::Stdout), ["bye"]);
    in_time(boot() < deadline, || "gone before the deadline".to_owned());
}

async fn a_deadline_moves_forwards_and_never_backwards() {
    let deadline = boot() + Duration::from_millis(1_000);
    let mut guarded = Guarded::start_until(deadline, "echo ready; sleep 1.5; echo done");
    guarded.until_line("ready").await;
    guarded.child.extend(much_later());
    guarded.child.extend(boot() + Duration::from_millis(10));
    guarded.child.extend(deadline);
    let gone = guarded.until_gone().await;
    assert_eq!((gone.exit, gone.cause), (code(0), Cause::Itself));
    assert_eq!(guarded.lines(Stream::Stdout), ["ready", "done"]);
}

#[tokio::test]
async fn nothing_is_started_after_its_deadline() {
    let mut guarded = Guarded::start_spec(boot(), "touch ran", patient);
    let Some(ChildEvent::Failed { error }) = guarded.next().await else { panic!("it started") };
    assert!(error.contains("the lease ran out"), "{error}");
    assert!(!guarded.directory.path().join("ran").exists());
}
