//! A guard that is killed or frozen: its node does its work.

use std::time::Duration;

use nix::sys::signal::Signal;
use soloist::clock::boot;
use soloist::domain::containment::Containment;
use soloist::domain::time::Boot;
use soloist::runner::child::Cause;

use super::signal;
use crate::support::guarded::{DAEMON, Guarded, contained_by, levels, much_later, runs};
use crate::support::machine::{judged, within};

judged! {
    a_guard_that_is_killed_leaves_nobody_behind
    a_guard_that_misses_three_acknowledgements_is_killed_with_its_tree
    a_frozen_guard_does_not_outlive_the_lease_when_nothing_is_renewed
    a_burst_of_renewals_says_nothing_against_a_guard
}

async fn started(deadline: Boot, level: Containment) -> (Guarded, i32) {
    let script = format!("trap '' TERM; {DAEMON} echo ready; while :; do sleep 0.05; done");
    let mut guarded = Guarded::start_spec(deadline, &script, |spec| {
        spec.program.containment = contained_by(level);
    });
    guarded.until_line("ready").await;
    let daemon = guarded.pid_in("daemon.pid");
    (guarded, daemon)
}

async fn a_guard_that_is_killed_leaves_nobody_behind() {
    for level in levels() {
        let (mut guarded, daemon) = started(much_later(), level).await;
        let asked = boot();
        guarded.signal_guard(Signal::SIGKILL);
        let gone = guarded.until_gone().await;
        assert_eq!((gone.exit, gone.cause), (signal(9), Cause::GuardLost), "{level}");
        // In a namespace the kernel is often first, and there is nobody left to count.
        assert!(gone.processes_killed >= 1 || level == Containment::PidNamespace, "{level}");
        assert!(!runs(daemon), "{level}");
        within(boot().since(asked), Duration::from_secs(2), &format!("nobody is left by {level}"));
    }
}

async fn a_guard_that_misses_three_acknowledgements_is_killed_with_its_tree() {
    for level in levels() {
        let (mut guarded, daemon) = started(much_later(), level).await;
        guarded.signal_guard(Signal::SIGSTOP);
        guarded.child.extend(much_later());
        let gone = guarded.until_gone().await;
        assert_eq!((gone.cause, runs(daemon)), (Cause::GuardLost, false), "{level}");
    }
}

async fn a_frozen_guard_does_not_outlive_the_lease_when_nothing_is_renewed() {
    let deadline = boot() + Duration::from_millis(1_500);
    let (mut guarded, daemon) = started(deadline, levels()[0]).await;
    guarded.signal_guard(Signal::SIGSTOP);
    let gone = guarded.until_gone().await;
    assert_eq!((gone.cause, runs(daemon)), (Cause::GuardLost, false));
    // With a lease of one second, 510 ms are left of it at the deadline.
    within(boot().since(deadline), Duration::from_millis(510), "nobody outlives the lease");
}

async fn a_burst_of_renewals_says_nothing_against_a_guard() {
    let mut guarded = Guarded::start("echo ready; sleep 1; exit 0");
    guarded.until_line("ready").await;
    for _ in 0..50 {
        guarded.child.extend(much_later());
    }
    assert_eq!(guarded.until_gone().await.cause, Cause::Itself);
}
