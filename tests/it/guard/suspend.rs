//! A machine that sleeps: its leases run out at the store meanwhile, and CLOCK_MONOTONIC stands still.
//!
//! A machine cannot be suspended by a test; but in a time namespace (time_namespaces(7)) CLOCK_BOOTTIME may be ahead of
//! CLOCK_MONOTONIC by an hour, just as after an hour of suspend.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::time::Boot;
use soloist::runner::child::{Child, ChildEvent};
use tempfile::TempDir;

use crate::support::guarded::{PATIENCE, SOLOIST, spec};

const AN_HOUR: Duration = Duration::from_secs(3_600);

/// `unshare` with what this machine allows; `None` when it allows no time namespace at all.
fn unshare() -> Option<&'static str> {
    ["unshare --time", "unshare --user --map-root-user --time"].into_iter().find(|command| {
        let mut words = command.split(' ');
        let mut unshare = Command::new(words.next().unwrap_or_default());
        unshare.args(words).args(["--boottime", "3600", "--fork", "true"]);
        let status = unshare.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}

/// What becomes of a script whose guard wakes after an hour of sleep.
async fn after_an_hour_of_sleep(unshare: &str, deadline: Boot) -> ChildEvent {
    let directory = TempDir::new().expect("a directory");
    let sleeper: PathBuf = directory.path().join("sleeper");
    let text = format!("#!/bin/sh\nexec {unshare} --boottime 3600 --fork {SOLOIST} \"$@\"\n");
    std::fs::write(&sleeper, text).expect("written");
    std::fs::set_permissions(&sleeper, PermissionsExt::from_mode(0o755)).expect("executable");
    let (_child, mut events) =
        Child::spawn_with(&sleeper, spec(directory.path(), "true"), deadline).expect("a guard");
    let event = tokio::time::timeout(PATIENCE, events.recv()).await.expect("an event in time");
    event.expect("an event")
}

#[tokio::test]
async fn time_spent_in_suspend_counts() {
    let Some(unshare) = unshare() else {
        println!(
            "NOT SHOWN HERE: this machine allows no time namespace, not even to a user of its own"
        );
        return;
    };
    let slept_through = after_an_hour_of_sleep(unshare, boot() + Duration::from_secs(60)).await;
    let ChildEvent::Failed { error } = slept_through else { panic!("{slept_through:?}") };
    assert!(error.contains("the lease ran out"), "{error}");
    let in_time = after_an_hour_of_sleep(unshare, boot() + AN_HOUR + Duration::from_secs(60)).await;
    assert!(matches!(in_time, ChildEvent::Started { .. }), "{in_time:?}");
}
