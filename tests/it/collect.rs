//! `soloist collect`: every task to one command at a time, every way a command can end, and every way a collector can.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use soloist::domain::dispatch::TaskState;
use soloist::domain::name::{RunId, SourceName};
use soloist::store::dispatch::{Dispatch as _, TaskId, TaskView};

use crate::support::guarded::{alive, runs as lives};
use crate::support::machine::{in_time, judged};
use crate::support::wait::until;
use crate::support::worker::{Running, Site, WAITS};

judged! {
    three_collectors_of_four_slots_run_every_task_once
    three_collectors_of_four_slots_run_every_task_once_on_a_file
}

/// Writes down its task and attempt, in one write.
const NOTES: &str = r#"echo "$SOLOIST_TASK_KEY $SOLOIST_ATTEMPT" >> noted"#;

/// A directory, a store, and the source `pages` with some rules.
struct Place {
    site: Site,
}

impl Deref for Place {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl Place {
    /// On a Redis of its own.
    fn new(rules: &[&str]) -> Self {
        Self { site: Site::on_redis() }.with(rules)
    }

    /// On a file.
    fn on_file(rules: &[&str]) -> Self {
        Self { site: Site::on_file() }.with(rules)
    }

    fn with(self, rules: &[&str]) -> Self {
        let place = self;
        place.ground.must(&[&["source", "set", "pages"], rules].concat());
        place
    }

    /// Puts a task for each of `keys`.
    fn put(&self, keys: &[&str]) {
        let mut put = self.ground.command(&["task", "put", "--source", "pages"]);
        let mut put = put.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let text = keys.join("\n");
        put.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
        assert!(put.wait().expect("it ends").success());
    }

    /// Runs `script` on every task until none is left.
    fn collect_all(&self, script: &str) -> Output {
        let words = words(&["--until-empty"], script);
        self.ground.command(&words).output().expect("soloist starts")
    }

    fn start(&self, options: &[&str], script: &str) -> Running {
        self.site.start(&words(options, script))
    }

    /// One of the numbers of the source, as `soloist source list --json` says it.
    fn count(&self, name: &str) -> u64 {
        let text = self.ground.must(&["source", "list", "--json"]);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["sources"][0][name].as_u64().expect("a number")
    }

    fn task(&self, key: &str) -> TaskView {
        let id = TaskId::of(&SourceName::new("pages").expect("a name"), key);
        let task = self.ask(async |store| store.task(&id).await);
        task.expect("an answer").unwrap_or_else(|| panic!("no task {key}"))
    }
}

fn words<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut words = vec!["collect", "--source", "pages"];
    words.extend(options);
    words.extend(["--", "sh", "-c", script]);
    words
}

async fn three_collectors_of_four_slots_run_every_task_once() {
    every_task_runs_once(&Place::new(&["--lease", "30s"]));
}

async fn three_collectors_of_four_slots_run_every_task_once_on_a_file() {
    every_task_runs_once(&Place::on_file(&["--lease", "30s"]));
}

fn every_task_runs_once(place: &Place) {
    let keys: Vec<String> = (0..60).map(|n| format!("page-{n:02}")).collect();
    place.put(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let collectors: Vec<Running> =
        (0..3).map(|_| place.start(&["--parallel", "4", "--until-empty"], NOTES)).collect();
    for collector in collectors {
        let (code, said) = collector.end();
        assert_eq!(code, 0, "{said}");
        // On a machine without a free core the store may need its second.
        in_time(said.is_empty(), || said.clone());
    }
    let mut noted = place.lines("noted");
    noted.sort_unstable();
    assert_eq!(noted, keys.iter().map(|key| format!("{key} 1")).collect::<Vec<_>>());
    assert_eq!((place.count("done"), place.count("in_flight")), (60, 0));
}

#[test]
fn the_exit_code_of_the_command_is_the_result_of_the_task() {
    let place = Place::new(&["--lease", "30s", "--max-attempts", "2", "--backoff", "10ms"]);
    place.put(&["good", "later", "never", "wrong", "fails", "killed"]);
    let output = place.collect_all(
        r#"echo "$SOLOIST_TASK_KEY $SOLOIST_ATTEMPT" >> noted
        case $SOLOIST_TASK_KEY$SOLOIST_ATTEMPT in
            good1 | later2) exit 0 ;;
            later1 | never*) exit 75 ;;
            wrong*) echo first >&2; printf "no such\tpage" >&2; exit 65 ;;
            fails*) exit 3 ;;
            killed*) kill -KILL $$ ;;
        esac"#,
    );
    assert!(output.status.success());
    let ran: BTreeSet<String> = place.lines("noted").into_iter().collect();
    let twice = ["fails 1", "fails 2", "good 1", "killed 1", "killed 2", "later 1", "later 2"];
    let expected = [&twice[..], &["never 1", "never 2", "wrong 1"]].concat();
    assert_eq!(ran.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    for key in ["good", "later"] {
        assert_eq!(place.task(key).state, TaskState::Done, "{key}");
    }
    for (key, error) in [
        ("never", "ended with exit code 75"),
        ("wrong", "no such page"),
        ("fails", "ended with exit code 3"),
        ("killed", "was killed by signal 9"),
    ] {
        let task = place.task(key);
        assert_eq!((task.state, task.error.as_deref()), (TaskState::Dead, Some(error)), "{key}");
    }
}

#[test]
fn the_command_gets_its_task_whole_and_nothing_of_the_stores_address() {
    let place = Place::new(&["--lease", "30s"]);
    // The worst that there is: every sign of it has to be escaped on its way.
    let payload = format!("[{}\"\"]", "\"\\\\\\\"\",".repeat(9_000));
    place.put(&[&format!("a b\u{fc}\t{payload}")]);
    let output = place.collect_all("cat > payload; env");
    assert_eq!(fs::read_to_string(place.ground.path("payload")).expect("a payload"), payload);
    let env = String::from_utf8(output.stdout).expect("UTF-8");
    let task = place.task("a b\u{fc}");
    let (id, token) = (&task.id.0, task.token);
    for line in [
        format!("SOLOIST_TASK={id}"),
        "SOLOIST_TASK_KEY=a b\u{fc}".to_owned(),
        "SOLOIST_SOURCE=pages".to_owned(),
        "SOLOIST_ATTEMPT=1".to_owned(),
        format!("SOLOIST_TASK_TOKEN={token}"),
        format!("SOLOIST_TOKEN={token}"),
    ] {
        assert!(env.lines().any(|own| own == line), "{line} in {env}");
    }
    assert!(!env.contains("redis://") && !env.contains("SOLOIST_JOB"), "{env}");
}

#[test]
fn lines_of_commands_that_run_at_once_are_not_mixed_and_none_is_lost() {
    let place = Place::new(&["--lease", "30s"]);
    place.put(&["a", "b", "c", "d"]);
    let mut command = place.ground.command(&words(
        &["--parallel", "4", "--until-empty"],
        r#"for n in $(seq 1 300); do printf %0500d 0 | tr 0 $SOLOIST_TASK_KEY; echo; done; printf end"#,
    ));
    let output = command.output().expect("soloist starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for key in ["a", "b", "c", "d"] {
        let whole = key.repeat(500);
        assert_eq!(text.lines().filter(|line| *line == whole).count(), 300, "{key}");
    }
    assert_eq!(text.lines().filter(|line| *line == "end").count(), 4);
    assert_eq!(text.lines().count(), 4 * 301);
}

#[test]
fn the_gap_is_kept_over_all_collectors_by_the_stores_clock() {
    let place = Place::new(&["--lease", "30s", "--gap", "60ms"]);
    let keys: Vec<String> = (0..15).map(|n| n.to_string()).collect();
    place.put(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let note = r#"echo "$SOLOIST_TOKEN" >> tokens"#;
    let collectors: Vec<Running> =
        (0..3).map(|_| place.start(&["--parallel", "2", "--until-empty"], note)).collect();
    for collector in collectors {
        assert_eq!(collector.end().0, 0);
    }
    // A token begins with the millisecond of its grant.
    let mut starts: Vec<u64> = place
        .lines("tokens")
        .iter()
        .map(|token| token.parse::<u64>().expect("a token") / 1_024)
        .collect();
    starts.sort_unstable();
    assert_eq!(starts.len(), 15);
    for pair in starts.windows(2) {
        // Both are cut to whole milliseconds.
        assert!(pair[1] - pair[0] >= 59, "{starts:?}");
    }
}

#[test]
fn the_guard_of_a_killed_collector_ends_its_command_and_reports_its_task() {
    // Far longer than this test is patient.
    let place = Place::new(&["--lease", "5m"]);
    place.put(&["page"]);
    let fled = "( setsid sh -c 'echo $SOLOIST_RUN > run.new; mv run.new run; exec sleep 300' & )";
    let mut first =
        place.start(&[], &format!("{fled}; until [ -e run ]; do sleep 0.01; done; {WAITS}"));
    place.number("pid");
    let run = RunId(place.lines("run")[0].clone());
    assert!(alive(&run).len() > 1, "the command, and who fled from it");
    first.child.kill().expect("our own child");
    let second = place.start(&["--until-empty"], NOTES);
    let left = until("it is run again", || (!place.lines("noted").is_empty()).then(|| alive(&run)));
    assert_eq!(left, [0; 0], "of the killed collector nothing is left by then");
    assert_eq!(second.end().0, 0);
    assert_eq!(place.lines("noted"), ["page 2"]);
    assert_eq!(place.task("page").state, TaskState::Done);
}

#[test]
fn tasks_of_a_collector_killed_with_its_guards_are_run_again_after_the_lease() {
    let place = Place::new(&["--lease", "2s"]);
    place.put(&["page"]);
    let first = place.start(&[], WAITS);
    let command = place.number("pid");
    let guards = first.guards();
    first.signal(Signal::SIGSTOP);
    assert!(!guards.is_empty());
    for guard in guards {
        kill(guard, Signal::SIGKILL).expect("its guard");
    }
    drop(first);
    let second = place.start(&["--until-empty"], NOTES);
    let alive =
        until("it is run again", || (!place.lines("noted").is_empty()).then(|| lives(command)));
    assert!(!alive, "of the killed collector nothing is left by then");
    assert_eq!(second.end().0, 0);
    assert_eq!(place.lines("noted"), ["page 2"]);
}

#[test]
fn a_collector_told_to_stop_lets_its_commands_end_and_claims_nothing_more() {
    let place = Place::new(&["--lease", "30s"]);
    place.put(&["one", "two"]);
    let mut collector = place.start(&["--stop-grace", "60s"], WAITS);
    place.number("pid");
    collector.signal(Signal::SIGTERM);
    collector.says("stopping");
    place.go();
    assert_eq!(collector.end().0, 0);
    assert_eq!((place.count("done"), place.count("ready")), (1, 1));
}

#[test]
fn a_collector_told_to_stop_gives_back_unworked_what_does_not_end() {
    let place = Place::new(&["--lease", "5m"]);
    place.put(&["one", "two", "three"]);
    let mut collector = place.start(
        &["--parallel", "2", "--stop-grace", "5m"],
        r#"trap "" TERM; echo $$ > pid-$SOLOIST_TASK_KEY; while :; do sleep 0.05; done"#,
    );
    let commands = ["pid-one", "pid-two"].map(|name| place.number(name));
    collector.signal(Signal::SIGTERM);
    collector.says("stopping");
    collector.signal(Signal::SIGTERM);
    assert_eq!(collector.end().0, 0);
    assert_eq!(commands.map(lives), [false, false]);
    assert_eq!((place.count("ready"), place.count("in_flight")), (3, 0));
    for key in ["one", "two"] {
        assert_eq!(place.task(key).attempt, 0, "{key}");
    }
}

#[test]
fn a_command_whose_lease_was_lost_is_killed_at_once() {
    let place = Place::new(&["--lease", "9s"]);
    place.put(&["page"]);
    let script = format!("trap 'echo > term; exit' TERM; {WAITS}");
    let mut collector = place.start(&["--max", "1"], &script);
    let command = place.number("pid");
    let (_, claim, _) = place.task("page").held.expect("it is in hand");
    place.ask(async |store| store.give_back(&claim, None).await.expect("an answer"));
    collector.says("lost");
    assert!(!lives(command));
    // Before the end of the lease it would have been asked to end.
    assert!(!place.ground.path("term").exists(), "it was killed by its deadline only");
    assert_eq!(collector.end().0, 0);
}

#[test]
fn a_command_is_killed_before_its_lease_ends_when_the_store_is_gone() {
    let place = Place::new(&["--lease", "3s"]);
    place.put(&["page"]);
    let beats = "echo $$ > pid.new; mv pid.new pid; \
        while :; do read -r up _ </proc/uptime; echo $up > beat.new; mv beat.new beat; sleep 0.02; done";
    let mut collector = place.start(&["--max", "1"], beats);
    let command = place.number("pid");
    let before: f64 = uptime();
    let redis = place.redis();
    redis.pause();
    until("the command is killed", || (!lives(command)).then_some(()));
    let last = fs::read_to_string(place.ground.path("beat")).expect("a beat");
    let last: f64 = last.trim().parse().expect("a number");
    // No extension was sent after the store was paused.
    assert!(last < before + 3.0, "it lived until {last}, paused at {before}");
    redis.resume();
    collector.says("could not be extended");
    assert_eq!(collector.end().0, 0);
}

/// CLOCK_BOOTTIME as scripts read it.
fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").expect("/proc");
    text.split(' ').next().expect("a number").parse().expect("a number")
}

#[test]
fn what_cannot_be_done_says_what_to_do() {
    let place = Place::new(&["--lease", "500ms"]);
    let said = |words: &[&str]| {
        let output = place.ground.run(words);
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (code, text) = said(&["collect", "--source", "nowhere", "--", "true"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("soloist source set nowhere"), "{text}");
    let (code, text) = said(&["collect", "--source", "pages", "--", "true"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--lease 30s"), "{text}");
    for wrong in [&["collect", "--source", "pages"][..], &["collect", "--", "true"]] {
        assert_eq!(said(wrong).0, Some(2), "{wrong:?}");
    }
    let (code, text) = said(&["task", "put", "--source", "nowhere", "--key", "x"]);
    assert_eq!(code, Some(3), "{text}");
    let (code, text) = said(&["task", "put", "--source", "pages", "--key", "x", "--payload", "{"]);
    assert_eq!(code, Some(2), "{text}");
    let (code, text) = said(&["source", "set", "pages", "--cap", "0"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("cap"), "{text}");
    // A command that is not there must not use up the attempts of tasks that others could do.
    place.ground.must(&["source", "set", "pages", "--lease", "30s"]);
    fs::write(place.ground.path("no-interpreter"), "#!/no/such/interpreter\n").expect("written");
    must_be_executable(&place.ground.path("no-interpreter"));
    fs::write(place.ground.path("not-executable"), "").expect("written");
    for until_empty in [&["--until-empty"][..], &[]] {
        for missing in ["./missing", "no-such-command", "./not-executable"] {
            let words = [&["collect", "--source", "pages"], until_empty, &["--", missing]].concat();
            let (code, text) = said(&words);
            assert_eq!(code, Some(127), "{text}");
            assert!(text.contains(missing.trim_start_matches("./")), "{text}");
        }
    }
    place.put(&["page"]);
    for missing in ["./missing", "./no-interpreter"] {
        let (code, text) = said(&["collect", "--source", "pages", "--", missing]);
        assert_eq!(code, Some(127), "{text}");
        assert!(text.contains(missing), "{text}");
        assert_eq!((place.task("page").state, place.task("page").attempt), (TaskState::Ready, 0));
    }
}

fn must_be_executable(file: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(file, mode).expect("its permissions");
}

#[test]
fn the_same_lines_are_put_once() {
    let place = Place::new(&[]);
    place.put(&["a", "b\t{\"x\":1}", "", "a"]);
    place.put(&["a", "b"]);
    assert_eq!(place.count("ready"), 2);
    assert_eq!(place.task("b").payload, "{\"x\":1}");
    let put = ["task", "put", "--source", "pages", "--key", "c", "--priority", "9", "--json"];
    let answer: Value = serde_json::from_str(&place.ground.must(&put)).expect("JSON");
    assert_eq!(answer["tasks"][0]["status"], "created");
    assert_eq!(answer["tasks"][0]["id"], place.task("c").id.0.as_str());
    place.ground.must(&[&put[..5], &["later", "--at", "2199-05-04T01:02:03+02:00"]].concat());
    let later = place.task("later");
    assert_eq!(later.state, TaskState::Due);
    assert_eq!(later.at.map(|at| at.0), Some(7_237_206_123_000_000));
    let output = place.ground.run(&[&put[..5], &["wrong", "--at", "tomorrow"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("RFC 3339"), "{said}");
}

#[test]
fn the_example_crawls_every_page_once_and_never_too_soon() {
    the_example_works(&Place::new(&[]));
}

#[test]
fn the_example_works_on_a_file() {
    the_example_works(&Place::on_file(&[]));
}

fn the_example_works(place: &Place) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/collect/run.sh");
    let output = Command::new("sh")
        .arg(script)
        .current_dir(place.ground.path(""))
        .env("SOLOIST", env!("CARGO_BIN_EXE_soloist"))
        // Less than in the example: a busy machine may start one command late and the next at once.
        .env("GAP_MS", "10")
        // With what every Debian has, and an installed soloist: nothing is built.
        .env("PATH", "/usr/bin:/bin")
        .env("STORE", place.store())
        .env("STATE", place.ground.path(""))
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("asked 24 times: 24 pages, 0 answers 429, 0 pages asked"), "{said}");
    let pages: BTreeSet<String> = place.lines("pages.txt").into_iter().collect();
    assert_eq!(pages.len(), 24);
}
