//! Scripts that try to get away.

use std::process::Command;
use std::time::Duration;

use soloist::domain::job::Exit;
use soloist::runner::child::Cause;

use super::{code, signal};
use crate::support::guarded::{DAEMON, Gone, Guarded, runs};

const GRACE: Duration = Duration::from_millis(200);

/// Forks and ends for ever, each time in a new process; bounded in case it wins.
const COMET: &str = r#"
comet() {
    [ "$1" -gt 0 ] || exit 0
    echo > comet.flies
    comet $(($1 - 1)) &
    exit 0
}
trap '' TERM
comet 20000 &
until [ -e comet.flies ]; do :; done
echo ready
wait
sleep 300
"#;

#[tokio::test]
async fn a_daemon_dies_with_the_stop_of_its_script() {
    let mut guarded = Guarded::start(&format!("{DAEMON} echo ready; sleep 300"));
    guarded.until_line("ready").await;
    let daemon = guarded.pid_in("daemon.pid");
    guarded.child.stop(GRACE);
    let gone = guarded.until_gone().await;
    assert_eq!((gone.cause, runs(daemon)), (Cause::Stopped, false));
}

#[tokio::test]
async fn what_a_script_leaves_behind_is_killed_and_counted() {
    let mut guarded = Guarded::start(&format!("{DAEMON} exit 5"));
    let gone = guarded.until_gone().await;
    assert_eq!((gone.exit, gone.cause), (code(5), Cause::Itself));
    // The daemon, and on a slow machine those between it and the script, who are just going.
    assert!((1..=4).contains(&gone.processes_killed), "{gone:?}");
    assert!(!runs(guarded.pid_in("daemon.pid")));
}

#[tokio::test]
async fn a_script_that_crashes_at_once_is_gone_at_once() {
    let mut guarded = Guarded::start("kill -KILL $$");
    let gone = guarded.until_gone().await;
    assert_eq!(gone, Gone { exit: signal(9), processes_killed: 0, cause: Cause::Itself });
    let mut guarded = Guarded::start("kill -40 $$");
    let exit: Exit = guarded.until_gone().await.exit;
    assert!(!exit.is_success(), "a signal without a name: {exit:?}");
}

#[tokio::test]
async fn a_comet_that_forks_and_ends_for_ever_is_caught() {
    let mut guarded = Guarded::start(COMET);
    guarded.until_line("ready").await;
    guarded.child.kill();
    assert_eq!(guarded.until_gone().await.cause, Cause::Kill);
}

#[tokio::test]
async fn a_crowd_that_ignores_term_is_killed_to_the_last() {
    let script = "trap '' TERM; for i in $(seq 200); do setsid sleep 300 & done; echo ready; wait";
    let mut guarded = Guarded::start(script);
    guarded.until_line("ready").await;
    guarded.child.stop(GRACE);
    let gone = guarded.until_gone().await;
    assert_eq!((gone.exit, gone.processes_killed), (signal(9), 200));
}

#[tokio::test]
async fn a_process_whose_name_is_no_text_is_killed() {
    let script = r"setsid sh -c 'printf '\''\377) Z 1 ('\'' > /proc/$$/comm; trap : TERM; echo ready; while :; do sleep 1; done' & wait; sleep 300";
    let mut guarded = Guarded::start(script);
    guarded.until_line("ready").await;
    guarded.child.stop(GRACE);
    assert_eq!(guarded.until_gone().await.cause, Cause::Stopped);
}

#[tokio::test]
async fn a_process_whose_first_thread_has_ended_is_no_zombie() {
    let program = r#"
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        static void *live(void *x) { puts("ready"); fflush(stdout); for (;;) pause(); return x; }
        int main(void) {
            pthread_t t;
            signal(SIGTERM, SIG_IGN);
            if (fork()) { for (;;) pause(); }
            pthread_create(&t, 0, live, 0);
            pthread_exit(0);
        }
    "#;
    let directory = tempfile::tempdir().unwrap();
    let (source, binary) = (directory.path().join("x.c"), directory.path().join("x"));
    std::fs::write(&source, program).unwrap();
    let built = Command::new("cc").arg(&source).arg("-o").arg(&binary).arg("-pthread").status();
    assert!(built.unwrap().success(), "cc, which links Rust programs, builds this one");
    let mut guarded = Guarded::start(&format!("exec {}", binary.display()));
    guarded.until_line("ready").await;
    guarded.child.stop(GRACE);
    let gone = guarded.until_gone().await;
    assert_eq!((gone.exit, gone.processes_killed), (signal(9), 1));
}
