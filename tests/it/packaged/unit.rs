//! `deploy/soloist.service`: what a node and its guards need of a unit, and the script that waits for guards.

use std::process::Command;
use std::time::Duration;

use super::{path, text};
use crate::support::wait::until;

/// The values of a key, in order; an empty one takes back those before it, as systemd reads it.
fn values(unit: &str, key: &str) -> Vec<String> {
    let prefix = format!("{key}=");
    unit.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
}

fn only(unit: &str, key: &str) -> String {
    match values(unit, key).as_slice() {
        [one] => one.clone(),
        other => panic!("{key}: {other:?}"),
    }
}

#[test]
fn the_unit_gives_guards_and_scripts_the_time_they_need() {
    let unit = text("deploy/soloist.service");
    assert_eq!(only(&unit, "Type"), "notify");
    // The watcher of programs, and its socket, outlive a restart.
    assert_eq!(only(&unit, "KillMode"), "process");
    assert_eq!(only(&unit, "RuntimeDirectoryPreserve"), "yes");
    assert_eq!(only(&unit, "Restart"), "on-failure");
    let seconds = |key| only(&unit, key).parse::<u64>().expect("seconds");
    // The packaged configuration, and ten seconds more for the rest of the node.
    let grace = Duration::from_secs(2);
    assert!(seconds("TimeoutStopSec") >= grace.as_secs() + 10);
    assert!(seconds("WatchdogSec") >= 10, "a starved machine is not a hung node");
    for key in ["ExecStop", "ExecStopPost"] {
        assert_eq!(only(&unit, key), "-/usr/lib/soloist/await-guards.sh");
    }
    let reload = values(&unit, "ExecReload");
    assert!(reload[0].ends_with(" check") && reload[1].contains("kill -HUP"), "{reload:?}");
    assert!(only(&unit, "ExecStart").contains("--config /etc/soloist/soloist.toml"));
}

#[test]
fn the_unit_takes_away_only_what_guards_do_without() {
    let unit = text("deploy/soloist.service");
    for needed in ["RestrictNamespaces", "ProtectProc", "ProcSubset", "ProtectControlGroups"] {
        assert!(values(&unit, needed).is_empty(), "{needed}: guards need what it forbids");
    }
    for taken in ["NoNewPrivileges", "PrivateDevices", "ProtectKernelModules", "LockPersonality"] {
        assert_eq!(only(&unit, taken), "yes", "{taken}");
    }
    assert_eq!(only(&unit, "User"), "soloist");
    assert_eq!(only(&unit, "CapabilityBoundingSet"), "");
    // What the drop-in for root gives back was taken by the unit.
    let root = text("deploy/soloist.service.root.conf");
    let kill = text("deploy/soloist.service.kill.conf");
    for line in
        root.lines().chain(kill.lines()).filter(|line| line.contains('=') && !line.starts_with('#'))
    {
        let (key, value) = line.split_once('=').expect("a setting");
        assert_ne!(values(&unit, key), [value], "{key} says what the unit says");
        assert!(!values(&unit, key).is_empty(), "{key} is not in the unit");
    }
}

/// Runs the script in this process's own cgroup, as systemd does in the unit's.
fn await_guards(main: Option<u32>) -> std::process::Child {
    let mut command = Command::new("sh");
    command.arg(path("deploy/await-guards.sh")).env_remove("MAINPID");
    if let Some(pid) = main {
        command.env("MAINPID", pid.to_string());
    }
    command.spawn().expect("it starts")
}

#[test]
fn an_orderly_stop_does_not_wait_for_guards() {
    let mut waiting = await_guards(Some(std::process::id()));
    let status = until("it ends", || waiting.try_wait().expect("our own child"));
    assert!(status.success());
}

/// A guard is known by its title, whatever its program is. This one has its work done after a second.
#[test]
fn after_a_crash_the_unit_waits_until_its_guards_are_gone() {
    use std::os::unix::process::CommandExt as _;
    let mut guard = Command::new("sleep");
    let mut guard = guard.arg0("soloist guard of test").arg("1").spawn().expect("it starts");
    let titled = || {
        let title = std::fs::read(format!("/proc/{}/cmdline", guard.id())).unwrap_or_default();
        title.starts_with(b"soloist guard of test").then_some(())
    };
    until("the guard has its title", titled);
    let mut waiting = await_guards(None);
    let status = until("it ends", || waiting.try_wait().expect("our own child"));
    assert!(status.success());
    assert!(guard.try_wait().expect("our own child").is_some(), "it did not wait for the guard");
}
