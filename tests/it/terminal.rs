//! Comfort at a terminal: completions, manual pages, the version, colours, a first configuration. And that a program is spared it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::CommandFactory as _;
use soloist::cli::Cli;
use tempfile::TempDir;

use crate::support::node::{Ground, SOLOIST};

#[expect(dead_code, reason = "cargo calls its main")]
#[path = "../../build.rs"]
mod build;

/// `soloist ARGS` in `dir`, with nothing of this process's environment but where commands are.
fn soloist(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(SOLOIST);
    command.args(args).current_dir(dir).env_clear().env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null());
    command
}

/// Its exit code, and what it said on both ways.
fn said(mut command: Command) -> (i32, String, String) {
    let output = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("not killed"), text(output.stdout), text(output.stderr))
}

fn must(command: Command) -> String {
    let (code, out, err) = said(command);
    assert_eq!(code, 0, "{out}{err}");
    out
}

/// Runs it on a terminal on which `typed` is typed; gives its exit code and what the terminal showed.
fn on_terminal(mut command: Command, typed: &str) -> (i32, String) {
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let end = || terminal.slave.try_clone().expect("its other end");
    command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
    let mut child = command.spawn().expect("it starts");
    // Or the last end that is open would be ours, and reading would never end.
    drop((command, terminal.slave));
    let mut master = File::from(terminal.master);
    master.write_all(typed.as_bytes()).expect("typed");
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = master.read(&mut part) {
        shown.extend_from_slice(&part[..read]);
    }
    let code = child.wait().expect("it ends").code().expect("not killed");
    (code, String::from_utf8(shown).expect("UTF-8").replace("\r\n", "\n"))
}

/// Every command that can be typed, as its words behind `soloist`, with its definition.
fn commands() -> Vec<(Vec<String>, clap::Command)> {
    fn walk(of: &clap::Command, words: &[String], found: &mut Vec<(Vec<String>, clap::Command)>) {
        for command in of.get_subcommands().filter(|command| command.get_name() != "help") {
            let words: Vec<String> =
                words.iter().cloned().chain([command.get_name().to_owned()]).collect();
            found.push((words.clone(), command.clone()));
            walk(command, &words, found);
        }
    }
    let mut found = Vec::new();
    walk(&Cli::command(), &[], &mut found);
    assert!(found.len() > 40, "commands were found: {}", found.len());
    found
}

#[test]
fn completions_are_right_for_every_shell_that_is_here_and_know_every_command() {
    let dir = TempDir::new().expect("a directory");
    let mut checked = 0;
    for shell in ["bash", "zsh", "fish"] {
        let script = must(soloist(dir.path(), &["completions", shell]));
        for (words, _) in commands() {
            let word = words.last().expect("a word");
            assert!(script.contains(word.as_str()), "{shell} does not know {words:?}");
        }
        let file = dir.path().join(shell);
        std::fs::write(&file, script).expect("written");
        // Bash is everywhere, the others are not.
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(output) => {
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && errors.is_empty(), "{shell}: {errors}");
                checked += 1;
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{shell}"),
        }
    }
    assert!(checked > 0, "bash is missing");
    let (code, out, _) = said(soloist(dir.path(), &["completions", "tcsh"]));
    assert_eq!((code, out.as_str()), (2, ""));
}

#[test]
fn bash_completes_a_command_and_an_option() {
    let dir = TempDir::new().expect("a directory");
    std::fs::write(dir.path().join("s"), must(soloist(dir.path(), &["completions", "bash"])))
        .expect("written");
    let completed = |words: &str, last: &str, before: &str| {
        let count = words.split(' ').count() - 1;
        let script = format!(
            "source ./s; COMP_WORDS=({words}); COMP_CWORD={count}; _soloist soloist {last} {before}; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &script]).current_dir(dir.path());
        must(bash)
    };
    assert_eq!(completed("soloist stat", "stat", "soloist").trim(), "status");
    assert_eq!(completed("soloist user ad", "ad", "user").trim(), "add");
    assert!(completed("soloist nodes --js", "--js", "nodes").contains("--json"));
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = TempDir::new().expect("a directory");
    let page = must(soloist(dir.path(), &["man"]));
    assert!(page.contains(".TH soloist 1"), "{page}");
    for part in ["Exit codes", "SOLOIST_SERVER", "soloist\\-doctor(1)"] {
        assert!(page.contains(part), "{part}");
    }
    must(soloist(dir.path(), &["man", "--dir", "share/man1"]));
    let pages = dir.path().join("share/man1");
    let mut expected = vec!["soloist.1".to_owned()];
    expected.extend(commands().iter().map(|(words, _)| format!("soloist-{}.1", words.join("-"))));
    for name in &expected {
        let page = std::fs::read_to_string(pages.join(name));
        let page = page.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".TH ") && page.contains(".SH SYNOPSIS"), "{name}");
    }
    let written = std::fs::read_dir(&pages).expect("a directory").count();
    assert_eq!(written, expected.len());
    let (code, _, error) = said(soloist(dir.path(), &["man", "--dir", "/proc/nothing/here"]));
    assert!(code == 1 && error.contains("/proc/nothing/here"), "{error}");
}

#[test]
fn what_needs_no_configuration_is_not_kept_from_work_by_a_broken_one() {
    let dir = TempDir::new().expect("a directory");
    std::fs::write(dir.path().join("soloist.toml"), "listen = [[[").expect("written");
    for args in [&["man"][..], &["completions", "fish"]] {
        let mut command = soloist(dir.path(), args);
        command.env("SOLOIST_SERVER", "https://jobs.example.org");
        assert!(must(command).len() > 1_000, "{args:?}");
        let with = [&["--server", "http://127.0.0.1:1"], args].concat();
        assert_eq!(said(soloist(dir.path(), &with)).0, 2, "{args:?}");
    }
}

#[test]
fn the_version_says_which_build_this_is() {
    let dir = TempDir::new().expect("a directory");
    let long = must(soloist(dir.path(), &["--version"]));
    let version = env!("CARGO_PKG_VERSION");
    assert!(long.starts_with(&format!("soloist {version} (commit ")), "{long}");
    assert!(long.contains(" build for ") && long.lines().count() == 1, "{long}");
    assert_eq!(must(soloist(dir.path(), &["-V"])), format!("soloist {version}\n"));
}

#[test]
fn a_build_is_described_by_its_sources_and_never_by_the_clock() {
    let facts = |commit: Option<&str>, epoch: Option<&str>| build::Facts {
        commit: commit.map(str::to_owned),
        epoch: epoch.map(str::to_owned),
        profile: "release".to_owned(),
        target: "a-b-c".to_owned(),
    };
    let said = |commit, epoch| build::described(&facts(commit, epoch));
    assert_eq!(said(None, None), "commit unknown, release build for a-b-c");
    assert_eq!(said(Some("0123abc-dirty"), None), "commit 0123abc-dirty, release build for a-b-c");
    for (epoch, date) in [
        ("0", "1970-01-01"),
        ("951782400", "2000-02-29"),
        ("951868800", "2000-03-01"),
        ("1767225599", "2025-12-31"),
        ("4107542400", "2100-03-01"),
    ] {
        let expected = format!("commit abc, {date}, release build for a-b-c");
        assert_eq!(said(Some("abc"), Some(epoch)), expected);
    }
    // What cannot be a commit or an instant is left out.
    let unknown = "commit unknown, release build for a-b-c";
    assert_eq!(said(Some("a\nb"), Some("yesterday")), unknown);
    assert_eq!(said(Some(""), Some("-1")), unknown);
}

/// What changes while a build runs makes cargo build all of it again the next time.
#[test]
fn a_build_of_a_fresh_checkout_is_described_and_changes_nothing_there() {
    let dir = TempDir::new().expect("a directory");
    let git = |words: &[&str]| {
        let who =
            ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").args(who).args(words).current_dir(dir.path()).output();
        let output = output.expect("git starts");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    };
    git(&["init", "-q"]);
    assert_eq!(build::of_git(dir.path()), None, "it has no commit");
    let file = dir.path().join("file");
    std::fs::write(&file, "one").expect("written");
    git(&["add", "file"]);
    git(&["commit", "-q", "-m", "one"]);
    // As new as the index: git cannot tell by its time whether it was changed.
    let index = dir.path().join(".git/index");
    let now = |path: &Path| std::fs::metadata(path).and_then(|of| of.modified()).expect("its time");
    File::options()
        .write(true)
        .open(&file)
        .and_then(|it| it.set_modified(now(&index)))
        .expect("set");
    let before = (now(&index), std::fs::read(&index).expect("read"));
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    assert_eq!(build::of_git(dir.path()), Some(commit.clone()));
    assert!(before == (now(&index), std::fs::read(&index).expect("read")), "the index was written");
    std::fs::write(&file, "two").expect("written");
    assert_eq!(build::of_git(dir.path()), Some(format!("{commit}-dirty")));
    git(&["tag", "v1"]);
    assert!(build::of_git(dir.path()).expect("a commit").starts_with(&commit), "tags say nothing");
}

/// Who lists something says by the first word of its help that it does.
#[test]
fn everything_that_lists_takes_json() {
    let mut listing = 0;
    for (words, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        if command.has_subcommands() || !["List ", "Show "].iter().any(|w| about.starts_with(w)) {
            continue;
        }
        listing += 1;
        let json = command.get_arguments().any(|arg| arg.get_long() == Some("json"));
        assert!(json, "soloist {} has no --json", words.join(" "));
    }
    assert!(listing >= 12, "listings were found: {listing}");
}

#[test]
fn states_have_colours_on_a_terminal_that_wants_them_and_nowhere_else() {
    let ground = Ground::new("sqlite:soloist.db", "[[job]]\nname = \"o\"\ncommand = [\"true\"]\n");
    ground.must(&["link"]);
    let plain = ground.must(&["status"]);
    assert!(plain.contains("off") && !plain.contains('\x1b'), "{plain:?}");
    let status = |name: &str, value: &str| {
        let mut command = ground.command(&["status"]);
        command.env_remove("NO_COLOR").env(name, value);
        let (code, shown) = on_terminal(command, "");
        assert_eq!(code, 0, "{shown}");
        shown
    };
    let coloured = status("UNRELATED", "1");
    assert!(coloured.contains("\x1b[2moff\x1b[0m"), "{coloured:?}");
    assert_eq!(coloured.matches('\x1b').count(), 2, "states only: {coloured:?}");
    assert_eq!(coloured.replace("\x1b[2m", "").replace("\x1b[0m", ""), plain, "columns line up");
    assert_eq!(status("NO_COLOR", "1"), plain);
}

#[test]
fn a_first_configuration_is_written_without_questions_and_never_over_another() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("soloist.toml");
    let (code, out, error) = said(soloist(dir.path(), &["init"]));
    assert!(code == 2 && out.is_empty() && error.contains("--yes"), "{code} {out}{error}");
    assert!(!file.exists(), "without answers nothing is written");

    let said_next = must(soloist(dir.path(), &["init", "--yes"]));
    assert!(said_next.contains("soloist.toml is written") && said_next.contains("soloist check"));
    assert_eq!(must(soloist(dir.path(), &["check"])), "soloist.toml: 1 job, no problems\n");
    let written = std::fs::read_to_string(&file).expect("a file");

    let (code, _, error) = said(soloist(dir.path(), &["init", "--yes"]));
    assert!(code == 4 && error.contains("exists"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), written);

    // A dangling link is something, too.
    std::os::unix::fs::symlink("elsewhere.toml", dir.path().join("link.toml")).expect("a link");
    assert_eq!(said(soloist(dir.path(), &["--config", "link.toml", "init", "--yes"])).0, 4);
    assert!(!dir.path().join("elsewhere.toml").exists());
}

#[test]
fn a_store_on_the_command_line_is_taken_and_a_wrong_one_leaves_no_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().expect("a directory");
    let store = "redis://:pa55word@127.0.0.1:1/0";
    must(soloist(dir.path(), &["--store", store, "--config", "r.toml", "init", "--yes"]));
    let file = dir.path().join("r.toml");
    assert!(std::fs::read_to_string(&file).expect("a file").contains(store));
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it holds a password");
    let wrong = ["--store", "ldap://h", "--config", "w.toml", "init", "--yes"];
    let (code, _, error) = said(soloist(dir.path(), &wrong));
    assert!(code == 2 && error.contains("ldap"), "{error}");
    assert!(!dir.path().join("w.toml").exists());
}

#[test]
fn three_questions_are_asked_and_a_wrong_answer_is_asked_again() {
    let dir = TempDir::new().expect("a directory");
    let typed =
        "\nOut Bound\noutbound\nsh -c 'echo \"hi\"; sleep 1' | tee\nsh -c 'echo \"hi\"; sleep 1'\n";
    let (code, shown) = on_terminal(soloist(dir.path(), &["init"]), typed);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("there is no shell"), "{shown}");
    let file = std::fs::read_to_string(dir.path().join("soloist.toml")).expect("a file");
    let file: toml::Table = file.parse().expect("TOML");
    assert_eq!(file["store"].as_str(), Some("sqlite:data/soloist.db"));
    assert_eq!(file["job"][0]["name"].as_str(), Some("outbound"));
    assert_eq!(file["job"][0]["command"][2].as_str(), Some("echo \"hi\"; sleep 1"));
    assert_eq!(must(soloist(dir.path(), &["check"])), "soloist.toml: 1 job, no problems\n");
    // End of input (Ctrl-D) is no answer.
    let (code, shown) = on_terminal(soloist(dir.path(), &["--config", "n.toml", "init"]), "\x04");
    assert!(code == 4 && shown.contains("nothing was written"), "{code} {shown}");
    assert!(!dir.path().join("n.toml").exists());
}
