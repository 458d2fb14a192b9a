//! The test of the tests: every bug that `soloist::sabotage` can plant must make its scenario fail.
//!
//! `cargo test --features full --test faults -- sabotage`. Each scenario runs as this program started again, with the
//! bug named in its environment; without a bug the same scenarios pass, or the suite itself would have failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use soloist::sabotage::{Bug, VARIABLE};

use crate::machine::{Step, Tries};

/// The word on the command line.
pub(crate) const WORD: &str = "sabotage";
/// Scenarios wait more than they work.
const AT_ONCE: usize = 3;

/// What must find each bug.
fn found_by(bug: Bug) -> &'static str {
    match bug {
        Bug::RelativeDeadline => "late_message",
        Bug::NoDeadline | Bug::TrustFromReply => "paused_node",
        Bug::LeaseNeverEnds => "cut_node",
        Bug::NodeDeathUnseen => "double_forked_daemon",
        Bug::ProcessGroupOnly => "stubborn_hand_over",
        Bug::NoReaping => "comet",
        Bug::GuardDeathIsProof => "guard_killed",
        Bug::FrozenGuardUnseen => "guard_frozen_node_cut",
        Bug::ReleaseBeforeProof => "stubborn_stop",
        Bug::RenewalEndsWithError => "redis_frozen",
        Bug::MonotonicClock => "suspended_machine",
        Bug::NoQuarantine | Bug::TokenForgotten => "flushall_cut_holder",
        Bug::TokenNotCompared => "stale_token",
        Bug::FenceOpen => "guard_frozen_node_dead",
    }
}

/// Plants one bug after the other; how many were not found.
pub(crate) fn run(names: &[String]) -> usize {
    if !cfg!(debug_assertions) {
        println!(
            "sabotage: a release has no planted bugs: cargo test --features full --test faults -- {WORD}"
        );
        return 1;
    }
    let chosen = |bug: &&Bug| {
        names.is_empty() || names.iter().any(|part| bug.name().contains(part.as_str()))
    };
    let bugs: Vec<Bug> = Bug::ALL.iter().filter(chosen).copied().collect();
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    missed.fetch_add(usize::from(!is_found(*bug)), Ordering::Relaxed);
                }
            });
        }
    });
    let missed = missed.into_inner();
    println!("sabotage: {} bugs planted, {} found", bugs.len(), bugs.len() - missed);
    missed
}

/// Plants a bug until it is found, or was missed on a machine that was calm: a busy one takes away the milliseconds that many a
/// bug is about.
fn is_found(bug: Bug) -> bool {
    let mut tries = Tries::of(&format!("sabotage {}", bug.name()));
    loop {
        tries.begin();
        let found = || plant(bug).unwrap_or_else(|missed| panic!("{missed}"));
        let line = match tries.end(catch_unwind(AssertUnwindSafe(found))) {
            Step::Again(_) => continue,
            Step::Passed(line) => line,
            Step::NotJudged(missed) | Step::Failed(missed) => {
                println!("{}: {missed}", bug.name());
                return false;
            }
        };
        println!("{}: {line}", bug.name());
        return true;
    }
}

/// Who found a bug that was planted, and how.
fn plant(bug: Bug) -> Result<String, String> {
    let scenario = found_by(bug);
    let exe = std::env::current_exe().expect("this program");
    let output = Command::new(exe).arg(scenario).env(VARIABLE, bug.name()).output();
    let output = output.expect("this program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    // Only a scenario that says what is wrong has found it: a crash of the test would prove nothing.
    let verdict = said.lines().position(|line| line.starts_with(&format!("{scenario}: FAILED")));
    let complained = String::from_utf8_lossy(&output.stderr);
    if let Some(line) = complained.lines().find(|line| line.starts_with(">> not judged")) {
        // Wrong it was each time; only whose fault that is the machine kept from being seen.
        return Ok(format!("found by {scenario}, on a machine that stood still: {line}"));
    }
    let Some(verdict) = verdict.filter(|_| !output.status.success()) else {
        return Err(format!("NOT FOUND by {scenario}:\n{said}"));
    };
    let mut lines = said.lines().skip(verdict);
    if let Some((_, kept)) = lines.next().and_then(|line| line.split_once("records are in ")) {
        // Nobody wants the records of what was meant to fail.
        std::fs::remove_dir_all(kept).ok();
    }
    let wrong = lines.next().unwrap_or_default().trim();
    Ok(format!("found by {scenario}: {wrong}"))
}
