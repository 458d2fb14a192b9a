//! What others can see of a guard and its script, and what happens when a person starts a guard.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use crate::support::guarded::{Guarded, SECRET, SOLOIST};

#[tokio::test]
async fn no_secret_stands_in_arguments_environment_or_files_of_guard_and_script() {
    let mut guarded = Guarded::start("echo ready; exec sleep 300");
    guarded.until_line("ready").await;
    let (guard, script) = (guarded.child.guard_pid().to_string(), guarded.pid().to_string());
    for pid in [&guard, &script] {
        for file in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(SECRET), "{pid}/{file}");
        }
    }
    assert_eq!(fs::read(format!("/proc/{guard}/environ")).unwrap(), b"");
    let title = fs::read(format!("/proc/{guard}/cmdline")).unwrap();
    assert_eq!(String::from_utf8_lossy(&title), "soloist guard of outbound\0__guard\0");
    let sockets = fs::read_dir(format!("/proc/{script}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count();
    assert_eq!(sockets, 0, "the script has no way to its guard's socket");
    let session = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned()
    };
    assert_eq!((session(&guard), session(&script)), (guard.clone(), script.clone()));
    guarded.child.kill();
    guarded.until_gone().await;
}

#[tokio::test]
async fn a_guard_started_by_hand_does_nothing_and_says_so() {
    let by_hand = |input: Stdio| {
        let output = Command::new(SOLOIST).arg("__guard").stdin(input).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for input in [Stdio::null(), Stdio::piped()] {
        let (code, words) = by_hand(input);
        assert_eq!(code, Some(2));
        assert!(words.contains("never by hand") && words.contains("soloist run"), "{words}");
    }
    let pair = |kind| socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC).unwrap();
    let (ours, theirs): (OwnedFd, OwnedFd) = pair(SockType::SeqPacket);
    drop(ours);
    let (code, words) = by_hand(theirs.into());
    assert_eq!(code, Some(2), "{words}");
    let (ours, theirs) = pair(SockType::SeqPacket);
    nix::unistd::write(&ours, b"{\"plan\":null}").unwrap();
    let (code, words) = by_hand(theirs.into());
    assert_eq!(code, Some(2), "{words}");
}
