//! The guard: real scripts, real signals, real deaths.

mod deadline;
mod escapes;
mod levels;
mod lost;
mod node_death;
mod secrets;
mod suspend;
mod unreadable;
mod zoo;

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::job::{Exit, Progress};
use soloist::runner::child::{Cause, ChildEvent};
use soloist::store::journal::Stream;

use crate::support::guarded::{Gone, Guarded, much_later, runs};
use crate::support::machine::{judged, within};

judged! {
    a_script_that_ignores_term_is_killed_when_its_grace_is_over
}

const SIGKILL: i32 = 9;

fn code(code: i32) -> Exit {
    Exit { code: Some(code), signal: None }
}

fn signal(signal: i32) -> Exit {
    Exit { code: None, signal: Some(signal) }
}

#[tokio::test]
async fn a_script_that_ends_tells_its_code_after_all_its_output() {
    let script = "echo one; echo two; echo ::progress 3/8 order 10248; printf last; exit 7";
    let mut guarded = Guarded::start(script);
    let gone = guarded.until_gone().await;
    assert_eq!(gone, Gone { exit: code(7), processes_killed: 0, cause: Cause::Itself });
    assert!(matches!(guarded.heard[0], ChildEvent::Started { .. }));
    assert_eq!(guarded.lines(Stream::Stdout), ["one", "two", "last"]);
    let progress = Progress { done: 3, total: 8, note: "order 10248".to_owned() };
    assert!(guarded.heard.contains(&ChildEvent::Progress(progress)));
    let mut guarded = Guarded::start("echo oh >&2; kill -USR1 $$");
    assert_eq!(guarded.until_gone().await.exit, signal(10));
    assert_eq!(guarded.lines(Stream::Stderr), ["oh"]);
}

#[tokio::test]
async fn a_script_knows_its_run_and_token_and_nothing_more() {
    let mut guarded = Guarded::start_spec(much_later(), "env | sort; read x; echo $?", |spec| {
        spec.program.env.insert("ORDERS".into(), "a b".into());
    });
    let run = guarded.run.clone();
    guarded.until_gone().await;
    let mut lines = guarded.lines(Stream::Stdout);
    assert_eq!(lines.pop().as_deref(), Some("1"), "its standard input is empty");
    lines.retain(|line| {
        !["PATH=", "PWD=", "OLDPWD=", "_=", "SHLVL="].iter().any(|own| line.starts_with(own))
    });
    let expected = [
        "ORDERS=a b".to_owned(),
        "SOLOIST_JOB=outbound".to_owned(),
        "SOLOIST_NODE=node-a".to_owned(),
        format!("SOLOIST_RUN={run}"),
        "SOLOIST_TOKEN=4711".to_owned(),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_script_that_hears_term_has_its_grace_to_clean_up() {
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut guarded = Guarded::start(script);
    guarded.until_line("ready").await;
    guarded.child.stop(Duration::from_secs(10));
    let gone = guarded.until_gone().await;
    assert_eq!((gone.exit, gone.cause), (code(3), Cause::Stopped));
    assert_eq!(guarded.lines(Stream::Stdout), ["ready", "bye"]);
}

async fn a_script_that_ignores_term_is_killed_when_its_grace_is_over() {
    let mut guarded = Guarded::start("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    guarded.until_line("ready").await;
    let (grace, asked) = (Duration::from_millis(300), boot());
    guarded.child.stop(grace);
    let gone = guarded.until_gone().await;
    let took = boot().since(asked);
    assert_eq!((gone.exit, gone.cause), (signal(SIGKILL), Cause::Stopped));
    assert!(took >= grace, "{took:?}");
    within(took, grace * 4, "KILL after the grace");
}

#[tokio::test]
async fn kill_waits_for_no_grace_and_a_second_stop_can_only_hurry() {
    let deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let mut guarded = Guarded::start(deaf);
    guarded.until_line("ready").await;
    guarded.child.stop(Duration::from_secs(3_600));
    guarded.child.kill();
    assert_eq!(guarded.until_gone().await.exit, signal(SIGKILL));
    let mut guarded = Guarded::start(deaf);
    guarded.until_line("ready").await;
    guarded.child.stop(Duration::from_millis(100));
    guarded.child.stop(Duration::from_secs(3_600));
    assert_eq!(guarded.until_gone().await.cause, Cause::Stopped);
}

#[tokio::test]
async fn a_stopped_script_hears_term_too() {
    let script =
        "trap 'echo bye; exit 0' TERM; echo ready; kill -STOP $$; while :; do sleep 0.05; done";
    let mut guarded = Guarded::start(script);
    guarded.until_line("ready").await;
    guarded.child.stop(Duration::from_secs(10));
    assert_eq!(guarded.until_gone().await.exit, code(0));
    assert_eq!(guarded.lines(Stream::Stdout), ["ready", "bye"]);
}

#[tokio::test]
async fn what_cannot_be_started_is_explained_with_its_remedy() {
    let missing = |argv: &str, dir: Option<&str>| {
        let (argv, dir) = (argv.to_owned(), dir.map(Into::into));
        Guarded::start_spec(much_later(), "", move |spec| {
            spec.program.argv = vec![argv.into()];
            spec.program.dir = dir.unwrap_or_else(|| spec.program.dir.clone());
        })
    };
    for (mut guarded, words) in [
        (missing("no-such-command", None), ["\"no-such-command\"", "not found", "install it"]),
        (missing("true", Some("/no/such/place")), ["/no/such/place", "does not exist", "make it"]),
        (missing("/etc/passwd", None), ["\"/etc/passwd\"", "may not be executed", "chmod +x"]),
    ] {
        let Some(ChildEvent::Failed { error }) = guarded.next().await else { panic!("no failure") };
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        assert!(guarded.next().await.is_none_or(|event| panic!("{event:?}")));
    }
}

#[tokio::test]
async fn a_script_whose_first_line_names_no_interpreter_says_so() {
    for (text, words) in [
        ("#!/bin/sh\r\ntrue\r\n", ["the first line ends with a carriage return", "Unix line ends"]),
        ("#!/no/such/python\ntrue\n", ["\"/no/such/python\"", "install it"]),
    ] {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("ship.sh");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let dir = place.path().to_owned();
        let mut guarded = Guarded::start_spec(much_later(), "", move |spec| {
            (spec.program.argv, spec.program.dir) = (vec!["./ship.sh".into()], dir);
        });
        let Some(ChildEvent::Failed { error }) = guarded.next().await else { panic!("no failure") };
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[tokio::test]
async fn a_flood_that_nobody_reads_costs_bounded_memory_and_ends() {
    let mut guarded = Guarded::start("yes x | head -n 200000; echo over >&2");
    let Some(ChildEvent::Started { pid }) = guarded.next().await else { panic!("no start") };
    let pid = i32::try_from(pid).unwrap();
    crate::support::guarded::until("the script ends unread", || !runs(pid)).await;
    assert!(guarded.events.len() <= 1_024, "{}", guarded.events.len());
    let gone = guarded.until_gone().await;
    assert_eq!((gone.exit, gone.cause), (code(0), Cause::Itself));
    let left_out: usize = guarded
        .lines(Stream::Soloist)
        .iter()
        .map(|remark| remark.split(' ').next().unwrap().parse::<usize>().unwrap())
        .sum();
    let kept = guarded.lines(Stream::Stdout).len() + guarded.lines(Stream::Stderr).len();
    assert_eq!(kept + left_out, 200_001);
    assert!(left_out > 0);
}
