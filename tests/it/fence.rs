//! `soloist fence`: a stale run cannot write, whatever it is in the middle of.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::guarded::{SOLOIST, number_in, runs, until};

fn fence(directory: &Path, token: Option<&str>, script: &str) -> Command {
    let mut command = Command::new(SOLOIST);
    command.args(["fence", "sink.fence", "--", "sh", "-c", script]).current_dir(directory);
    match token {
        Some(token) => command.env("SOLOIST_TOKEN", token),
        None => command.env_remove("SOLOIST_TOKEN"),
    };
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(directory: &Path, token: &str, script: &str) -> Output {
    fence(directory, Some(token), script).output().expect("it can be started")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn start(directory: &Path, token: &str, script: &str) -> Child {
    fence(directory, Some(token), script).spawn().expect("it can be started")
}

#[test]
fn a_stale_token_is_refused_and_its_command_never_runs() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for token in ["1835019492704256", "1835019492704256", "1835019492704257"] {
        assert_eq!(run(at, token, "echo shipped >> sink").status.code(), Some(0));
    }
    let refused = run(at, "1835019492704256", "echo shipped >> sink");
    assert_eq!(refused.status.code(), Some(4));
    let words = words(&refused);
    assert!(words.contains("1835019492704256 is stale"), "{words}");
    assert!(words.contains("1835019492704257") && words.contains("must end"), "{words}");
    assert_eq!(fs::read_to_string(at.join("sink")).unwrap().lines().count(), 3);
}

#[test]
fn a_new_fence_is_its_users_alone_and_one_of_old_keeps_its_mode() {
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    for umask in ["000", "022", "077"] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sink.fence");
        let script = format!("umask {umask}; exec {SOLOIST} fence sink.fence -- true");
        for token in ["7", "8"] {
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).env("SOLOIST_TOKEN", token).current_dir(directory.path());
            assert!(shell.status().unwrap().success());
            assert_eq!(mode(&file), 0o600, "umask {umask}");
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(run(directory.path(), "9", "true").status.success());
        assert_eq!(mode(&file), 0o644);
        assert_eq!(run(directory.path(), "8", "true").status.code(), Some(4), "it is the same");
    }
}

#[test]
fn the_exit_code_and_output_are_those_of_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let output = run(at, "7", "echo $SOLOIST_TOKEN; echo oh >&2; exit 33");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(33), &b"7\n"[..]));
    assert_eq!(words(&output), "oh\n");
    assert_eq!(run(at, "7", "kill -TERM $$").status.code(), Some(128 + 15));
    let mut missing = Command::new(SOLOIST);
    missing.args(["fence", "f", "--", "no-such-command"]).current_dir(at);
    let missing = missing.env("SOLOIST_TOKEN", "7").output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(words(&missing).contains("no-such-command"));
}

#[test]
fn without_a_token_nothing_runs() {
    let directory = tempfile::tempdir().unwrap();
    for token in [None, Some(""), Some("abc"), Some("-1")] {
        let output = fence(directory.path(), token, "touch ran").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{token:?}");
        assert!(words(&output).contains("soloist run"), "{}", words(&output));
    }
    assert!(!directory.path().join("ran").exists());
    assert!(!directory.path().join("sink.fence").exists());
}

#[test]
fn a_file_that_is_no_fence_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let data = "OrderID,ShippedDate\n10248,1996-07-16\n";
    fs::write(at.join("sink.fence"), data).unwrap();
    let output = run(at, "7", "touch ran");
    assert_eq!(output.status.code(), Some(1));
    assert!(words(&output).contains("is not a fence"), "{}", words(&output));
    assert_eq!(fs::read_to_string(at.join("sink.fence")).unwrap(), data);
    assert!(!at.join("ran").exists());
    let mut nowhere = Command::new(SOLOIST);
    nowhere.args(["fence", "no/such/place", "--", "true"]).current_dir(at);
    let nowhere = nowhere.env("SOLOIST_TOKEN", "7").output().unwrap();
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(words(&nowhere).contains("directory must exist"), "{}", words(&nowhere));
}

#[test]
fn writers_of_one_sink_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let script = "n=$(cat count 2>/dev/null || echo 0); sleep 0.02; echo $((n + 1)) > count";
    let writers: Vec<Child> = (0..20).map(|_| start(at, "7", script)).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(number_in(&at.join("count")), Some(20));
}

#[tokio::test]
async fn of_runs_that_race_only_the_newest_writes_last() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let writers: Vec<Child> = (1..=20)
        .map(|token| start(at, &token.to_string(), "echo $SOLOIST_TOKEN >> sink"))
        .collect();
    for mut writer in writers {
        assert!(matches!(writer.wait().unwrap().code(), Some(0 | 4)));
    }
    let written: Vec<u64> =
        fs::read_to_string(at.join("sink")).unwrap().lines().map(|l| l.parse().unwrap()).collect();
    assert!(written.is_sorted(), "an older token wrote after a newer one: {written:?}");
    assert_eq!(written.last(), Some(&20));
}

#[tokio::test]
async fn the_sink_stays_locked_while_the_command_of_a_killed_fence_lives() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut old = start(at, "7", "echo $$ > new; mv new pid; exec sleep 300");
    until("the old command runs", || at.join("pid").exists()).await;
    old.kill().unwrap();
    old.wait().unwrap();
    let command = number_in(&at.join("pid")).unwrap();
    let mut new = start(at, "8", "touch new-wrote");
    let waiting = || fs::read_to_string("/proc/locks").unwrap().contains("->");
    until("the new one waits for the lock", waiting).await;
    assert!(runs(command) && new.try_wait().unwrap().is_none() && !at.join("new-wrote").exists());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(command), nix::sys::signal::SIGKILL).unwrap();
    assert!(new.wait().unwrap().success());
}
