//! `soloist turn` and `soloist rotation`: one turn at a time, in order and never too soon, and every way a turn can end.

use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use soloist::domain::lease::Token;
use soloist::domain::name::RotationName;
use soloist::domain::rotation::TurnOutcome;
use soloist::store::rotation::{Kept, Pass, Rotations as _};

use crate::support::guarded::runs as lives;
use crate::support::machine::{in_time, judged};
use crate::support::wait::until;
use crate::support::witness::Witness;
use crate::support::worker::{Running, Site, WAITS};

/// Writes down what it does, as `support::witness` reads it, and its type.
const ACTS: &str = r#"
say() { read -r up _ </proc/uptime; echo "$SOLOIST_TOKEN $SOLOIST_NODE $$ $up $1" >> turns.acts; }
say start; echo "$SOLOIST_TYPE" >> types; sleep 0.02; say end
"#;
/// Says when it lives, by CLOCK_BOOTTIME, and leaves a grandchild that fled twice.
const BEATS: &str = r#"
( setsid sh -c '( setsid sh -c "echo \$\$ > fled.new; mv fled.new fled; exec sleep 300" & )' )
until [ -s fled ]; do sleep 0.01; done
echo $$ > pid.new; mv pid.new pid
while :; do read -r up _ </proc/uptime; echo "$up" > beat.new; mv beat.new beat; sleep 0.02; done
"#;
/// Nobody who waits for the end of such a lease would see it within the patience of a test.
const LONG: [&str; 2] = ["--lease", "5m"];

/// A directory, a store, and the rotation `api` with the types `a`, `b`, `c` and some rules.
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
    fn on_redis(rules: &[&str]) -> Self {
        Self { site: Site::on_redis() }.with(rules)
    }

    /// On a file.
    fn on_file(rules: &[&str]) -> Self {
        Self { site: Site::on_file() }.with(rules)
    }

    fn with(self, rules: &[&str]) -> Self {
        let types = ["--type", "a", "--type", "b", "--type", "c"];
        self.ground.must(&[&["rotation", "set", "api"], &types[..], rules].concat());
        self
    }

    /// Runs `script` for one turn of `kind` to its end.
    fn turn(&self, kind: &str, options: &[&str], script: &str) -> Output {
        self.ground.command(&words(kind, options, script)).output().expect("soloist starts")
    }

    fn start(&self, kind: &str, options: &[&str], script: &str) -> Running {
        self.site.start(&words(kind, options, script))
    }

    /// The rotation as `soloist rotation list --json` says it.
    fn rotation(&self) -> Value {
        let text = self.ground.must(&["rotation", "list", "api", "--json"]);
        serde_json::from_str(&text).expect("JSON")
    }

    /// How many turns of `kind` ended as done, empty, failed and lost.
    fn ended(&self, kind: &str) -> [u64; 4] {
        let rotation = self.rotation();
        let types = rotation["types"].as_array().expect("types");
        let kind = types.iter().find(|one| one["name"] == kind).expect("a type");
        ["done", "empty", "failed", "lost"].map(|how| kind[how].as_u64().expect("a number"))
    }

    /// Waits until turns of `kind` ended so often each: on a store that is slow it is the guard that passes, and later.
    fn until_ended(&self, kind: &str, ends: [u64; 4]) {
        until(&format!("{kind} ended as {ends:?}"), || (self.ended(kind) == ends).then_some(()));
    }

    fn waiting(&self) -> usize {
        self.rotation()["waiters"].as_array().expect("a list").len()
    }

    fn until_waiting(&self, count: usize) {
        until(&format!("{count} wait"), || (self.waiting() == count).then_some(()));
    }

    /// Passes the present turn, as its worker would.
    fn take_away(&self) {
        let holder = &self.rotation()["holder"]["turn"];
        let turn = Token(holder.as_str().expect("a turn").parse().expect("a number"));
        let pass = Pass {
            rotation: RotationName::new("api").expect("a name"),
            turn,
            only: None,
            outcome: TurnOutcome::Done,
            next: None,
            not_before: None,
        };
        let kept = self.ask(async |store| store.pass_turn(&pass).await.expect("an answer"));
        assert!(matches!(kept, Kept::Yes(_)), "{kept:?}");
    }

    /// When the script of [`BEATS`] lived last.
    fn last_beat(&self) -> f64 {
        self.lines("beat")[0].parse().expect("a number")
    }
}

fn words<'a>(kind: &'a str, options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut words = vec!["turn", "--rotation", "api", "--type", kind];
    words.extend(options);
    words.extend(["--", "sh", "-c", script]);
    words
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// CLOCK_BOOTTIME as scripts read it.
fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").expect("/proc");
    text.split(' ').next().expect("a number").parse().expect("a number")
}

#[test]
fn turns_come_one_at_a_time_in_order_and_never_sooner_than_the_gap() {
    take_turns(&Place::on_redis(&["--lease", "30s", "--min-gap", "60ms"]));
}

#[test]
fn turns_come_one_at_a_time_in_order_and_never_sooner_than_the_gap_on_a_file() {
    take_turns(&Place::on_file(&["--lease", "30s", "--min-gap", "60ms"]));
}

fn take_turns(place: &Place) {
    let first = place.start("c", &[], WAITS);
    place.number("pid");
    let waiting: Vec<Running> = ["c", "c", "c", "b", "b", "b", "a", "a", "a"]
        .map(|kind| place.start(kind, &[], ACTS))
        .into_iter()
        .collect();
    place.until_waiting(waiting.len());
    place.go();
    assert_eq!(first.end(), (0, String::new()));
    for running in waiting {
        let (code, said) = running.end();
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("waiting for a turn of"), "{said}");
    }
    assert_eq!(place.lines("types"), ["a", "b", "c", "a", "b", "c", "a", "b", "c"]);
    let witness = Witness::of(&place.ground, "turns");
    witness.check();
    let acts = witness.acts();
    let words: Vec<&str> = acts.iter().map(|act| act.word.as_str()).collect();
    assert_eq!(words, ["start", "end"].repeat(9), "nobody starts before the end of another");
    // A token begins with the millisecond of its grant, cut to a whole one.
    let starts = acts.iter().step_by(2).map(|act| act.token / 1_024).collect::<Vec<_>>();
    for pair in starts.windows(2) {
        assert!(pair[1] - pair[0] >= 59, "{starts:?}");
    }
    assert_eq!(["a", "b", "c"].map(|kind| place.ended(kind)[0]), [3, 3, 4]);
}

#[test]
fn the_exit_code_is_the_commands_and_says_how_the_turn_is_passed() {
    let place = Place::on_file(&LONG);
    let output =
        place.turn("a", &["--empty-code", "9"], r"printf 'a\0b'; printf 'e\r' >&2; exit 3");
    assert_eq!((output.stdout, output.stderr), (b"a\0b".to_vec(), b"e\r".to_vec()));
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(place.ended("a"), [0, 0, 1, 0]);
    assert_eq!(place.turn("a", &["--empty-code", "9"], "exit 9").status.code(), Some(9));
    assert_eq!(place.ended("a"), [0, 1, 1, 0]);
    assert_eq!(place.turn("a", &[], "exit 9").status.code(), Some(9));
    assert_eq!(place.turn("a", &[], "kill -KILL $$").status.code(), Some(128 + 9));
    let missing = ["turn", "--rotation", "api", "--type", "a", "--", "./missing"];
    let missing = place.ground.run(&missing);
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("install it"), "{}", text(&missing.stderr));
    assert_eq!(place.ended("a"), [0, 1, 4, 0]);
    assert!(place.turn("a", &[], "true").status.success());
    assert_eq!(place.ended("a"), [1, 1, 4, 0]);
    assert_eq!(place.rotation()["holder"], Value::Null);
}

#[test]
fn the_command_gets_its_turn_and_nothing_of_the_stores_address() {
    let place = Place::on_file(&LONG);
    let output =
        place.turn("b", &["--worker", "desk/7"], "env; tr '\\0' '\\n' </proc/$PPID/environ");
    let env = text(&output.stdout);
    let turn = place.rotation()["turns"][0]["turn"].as_str().expect("a turn").to_owned();
    for line in [
        "SOLOIST_ROTATION=api".to_owned(),
        "SOLOIST_TYPE=b".to_owned(),
        "SOLOIST_WORKER=desk/7".to_owned(),
        format!("SOLOIST_TURN={turn}"),
        format!("SOLOIST_TOKEN={turn}"),
    ] {
        assert!(env.lines().any(|own| own == line), "{line} in {env}");
    }
    assert!(env.contains("SOLOIST_NODE=") && env.contains("SOLOIST_RUN="), "{env}");
    assert!(!env.contains("soloist.db") && !env.contains("SOLOIST_JOB"), "{env}");
}

#[test]
fn whoever_does_not_have_the_turn_in_time_is_told_who_has_it_and_leaves_nothing_behind() {
    let place = Place::on_file(&LONG);
    let first = place.start("a", &["--worker", "slow"], WAITS);
    place.number("pid");
    for wait in ["0", "100ms"] {
        let refused = place.turn("b", &["--wait", wait], "echo never");
        let said = text(&refused.stderr);
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(75), 0), "{said}");
        assert!(said.contains("not had in time: slow has it as a"), "{said}");
        assert_eq!(place.waiting(), 0);
    }
    place.go();
    assert_eq!(first.end().0, 0);
    place.ground.must(&["rotation", "set", "api", "--type", "a", "--min-gap", "1h"]);
    let refused = place.turn("a", &["--wait", "0"], "echo never");
    assert_eq!(refused.status.code(), Some(75));
    assert!(text(&refused.stderr).contains("the gap lasts"), "{}", text(&refused.stderr));
}

#[test]
fn a_signal_while_waiting_leaves_nothing_behind() {
    leave_while_waiting(&Place::on_redis(&LONG));
}

#[test]
fn a_signal_while_waiting_leaves_nothing_behind_on_a_file() {
    leave_while_waiting(&Place::on_file(&LONG));
}

fn leave_while_waiting(place: &Place) {
    let first = place.start("a", &[], WAITS);
    place.number("pid");
    let mut second = place.start("b", &[], "echo never > never");
    second.says("waiting for a turn of b in rotation api");
    place.until_waiting(1);
    second.signal(Signal::SIGTERM);
    assert_eq!(second.end().0, 128 + 15);
    assert_eq!(place.waiting(), 0);
    place.go();
    assert_eq!(first.end().0, 0);
    assert!(!place.ground.path("never").exists());
    assert_eq!(place.rotation()["holder"], Value::Null);
}

#[test]
fn a_stopping_signal_asks_the_command_first_and_then_the_turn_goes_on() {
    let place = Place::on_file(&LONG);
    let asked = format!("trap 'echo > asked; exit 0' TERM; {WAITS}");
    // No disk stands still for so long that the command would be killed before it can write.
    let running = place.start("a", &["--stop-grace", "4m"], &asked);
    let pid = place.number("pid");
    let next = place.start("b", &[], "echo next > next");
    place.until_waiting(1);
    running.signal(Signal::SIGTERM);
    let (code, said) = running.end();
    assert_eq!(code, 0, "{said}");
    assert!(place.ground.path("asked").exists() && !lives(pid));
    let (code, said) = next.end();
    assert_eq!(code, 0, "long before the lease would have run out: {said}");
    place.until_ended("a", [0, 0, 1, 0]);
    place.until_ended("b", [1, 0, 0, 0]);

    fs::remove_file(place.ground.path("pid")).expect("the first one's");
    let deaf = format!("trap 'echo > deaf' TERM; {WAITS}");
    let running = place.start("c", &["--stop-grace", "5m"], &deaf);
    let pid = place.number("pid");
    running.signal(Signal::SIGINT);
    until("TERM has come", || place.ground.path("deaf").exists().then_some(()));
    running.signal(Signal::SIGINT);
    let (code, said) = running.end();
    assert_eq!(code, 128 + 9, "the second one does not wait: {said}");
    assert!(!lives(pid));
    place.until_ended("c", [0, 0, 1, 0]);
}

#[test]
fn kill_9_ends_the_whole_tree_and_the_guard_passes_the_turn() {
    let place = Place::on_file(&LONG);
    let mut running = place.start("a", &[], BEATS);
    let pids = [place.number("pid"), place.number("fled")];
    let after = place.start("b", &[], "read -r up _ </proc/uptime; echo $up > after");
    place.until_waiting(1);
    running.child.kill().expect("our own child");
    assert_eq!(after.end().0, 0, "long before the lease would have run out");
    let after: f64 = place.lines("after")[0].parse().expect("a number");
    assert!(place.last_beat() <= after && !lives(pids[0]));
    assert_eq!(place.ended("a"), [0, 0, 1, 0]);
}

#[test]
fn when_the_guard_is_killed_too_the_turn_goes_on_at_the_end_of_its_lease() {
    let place = Place::on_file(&["--lease", "2s"]);
    let running = place.start("a", &[], WAITS);
    let pid = place.number("pid");
    let next = place.start("b", &[], "exit 5");
    place.until_waiting(1);
    let guards = running.guards();
    running.signal(Signal::SIGSTOP);
    assert!(!guards.is_empty());
    for guard in guards {
        kill(guard, Signal::SIGKILL).expect("its guard");
    }
    drop(running);
    assert_eq!(next.end().0, 5);
    assert!(!lives(pid), "of the killed one nothing is left by then");
    assert_eq!(place.ended("a"), [0, 0, 0, 1]);
}

#[test]
fn a_command_whose_turn_was_lost_is_killed_at_once() {
    let place = Place::on_file(&["--lease", "9s"]);
    let running = place.start("a", &[], &format!("trap 'echo > term; exit' TERM; {WAITS}"));
    let pid = place.number("pid");
    place.take_away();
    let (code, said) = running.end();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("lost to another") && !lives(pid), "{said}");
    // Before the end of the lease it would have been asked to end.
    assert!(!place.ground.path("term").exists(), "it was killed by its deadline only");
    assert_eq!(place.ended("a"), [1, 0, 0, 0], "as it was passed");
}

#[test]
fn a_frozen_turn_loses_its_command_before_its_lease_and_says_so_later() {
    let place = Place::on_file(&["--lease", "2s"]);
    let running = place.start("a", &[], BEATS);
    let pid = place.number("pid");
    let next = place.start("b", &[], "read -r up _ </proc/uptime; echo $up > after");
    place.until_waiting(1);
    running.signal(Signal::SIGSTOP);
    assert_eq!(next.end().0, 0);
    let after: f64 = place.lines("after")[0].parse().expect("a number");
    assert!(place.last_beat() < after && !lives(pid));
    running.signal(Signal::SIGCONT);
    let (code, said) = running.end();
    assert_eq!(code, 76, "{said}");
    assert!(place.last_beat() < after);
}

#[test]
fn without_the_store_the_command_is_dead_before_the_turn_can_be_anothers() {
    let place = Place::on_redis(&["--lease", "2s"]);
    let redis = place.redis();
    let running = place.start("a", &[], BEATS);
    let pid = place.number("pid");
    redis.pause();
    // An extension that the store had read already counts from its answer at the latest.
    let end_of_lease = uptime() + 2.0;
    let (code, said) = running.end();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("not extended in time") && !lives(pid), "{said}");
    assert!(place.last_beat() < end_of_lease, "{} and {end_of_lease}", place.last_beat());
    redis.resume();
    assert!(place.turn("b", &["--wait", "20s"], "true").status.success());
}

#[test]
fn whoever_passes_may_name_who_comes_next() {
    let place = Place::on_file(&LONG);
    let first = place.start("a", &["--next", "c"], WAITS);
    place.number("pid");
    let others = ["b", "c"].map(|kind| place.start(kind, &[], ACTS));
    place.until_waiting(2);
    place.go();
    assert_eq!(first.end().0, 0);
    others.into_iter().for_each(|other| assert_eq!(other.end().0, 0));
    assert_eq!(place.lines("types"), ["c", "b"]);
}

#[test]
fn rules_that_change_meanwhile_are_kept_to() {
    let place = Place::on_file(&LONG);
    let first = place.start("a", &["--next", "c"], WAITS);
    let pid = place.number("pid");
    let mut second = place.start("b", &[], "echo never");
    second.says("waiting");
    place.until_waiting(1);
    // Neither the type of the one, nor that of the other, nor the next is left.
    place.ground.must(&["rotation", "set", "api", "--type", "d", "--lease", "5m"]);
    let (code, said) = second.end();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("a type b of rotation api") && said.contains("it has: d"), "{said}");
    assert!(lives(pid), "whoever has the turn keeps it");
    place.go();
    let (code, said) = first.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("no type c any more"), "{said}");
    assert!(place.turn("d", &["--wait", "0"], "true").status.success(), "it was passed");
}

#[test]
fn what_cannot_be_done_says_what_to_do() {
    let place = Place::on_file(&["--lease", "500ms"]);
    let said = |words: &[&str]| {
        let output = place.ground.run(words);
        (output.status.code(), text(&output.stderr))
    };
    let turn = |rotation: &'static str, kind: &'static str| {
        ["turn", "--rotation", rotation, "--type", kind, "--", "true"]
    };
    let (code, text) = said(&turn("nowhere", "a"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("soloist rotation set nowhere"), "{text}");
    let (code, text) = said(&turn("api", "x"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("it has: a, b, c"), "{text}");
    let (code, text) =
        said(&["turn", "--rotation", "api", "--type", "a", "--next", "x", "--", "true"]);
    assert_eq!(code, Some(3), "{text}");
    let (code, text) = said(&turn("api", "a"));
    assert_eq!(code, Some(2), "{text}");
    for part in ["500ms", "renewal period", "--lease 30s"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (code, text) = said(&["rotation", "list", "nowhere"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("soloist rotation set nowhere"), "{text}");
    for (wrong, part) in [
        (&["rotation", "set", "r"][..], "--type"),
        (&["rotation", "set", "r", "--type", "a", "--type", "a"], "each type once"),
        (&["rotation", "set", "r", "--type", "a,every=2s"], "quota=10/1m"),
        (&["rotation", "set", "r", "--type", "a", "--lease", "1ms"], "lease_ms"),
        (&["rotation", "set", "r", "--type", "a", "--skip", "some"], "never"),
        (&["turn", "--rotation", "api", "--type", "a"], "CMD"),
    ] {
        let (code, text) = said(wrong);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_list_says_who_has_the_turn_who_waits_and_how_the_last_ones_ended() {
    let place = Place::on_file(&LONG);
    assert_eq!(place.turn("c", &["--worker", "early"], "exit 1").status.code(), Some(1));
    let first = place.start("a", &["--worker", "slow"], WAITS);
    place.number("pid");
    let second = place.start("b", &["--worker", "late"], "true");
    place.until_waiting(1);
    let all = place.ground.must(&["rotation", "list"]);
    for part in ["slow as a for", "b, after that turn", "a > b > c, lease 5m"] {
        assert!(all.contains(part), "{part} in {all}");
    }
    let one = place.ground.must(&["rotation", "list", "api"]);
    for part in ["slow as a for", "Next: b", "held", "late", "early", "failed"] {
        assert!(one.contains(part), "{part} in {one}");
    }
    let json = place.rotation();
    assert_eq!(json["holder"]["worker"], "slow");
    assert_eq!((&json["next"]["type"], &json["next"]["reason"]), (&"b".into(), &"held".into()));
    assert_eq!(json["order"], serde_json::json!(["b", "c", "a"]));
    assert_eq!(json["waiters"][0]["worker"], "late");
    assert_eq!(
        (&json["turns"][0]["type"], &json["turns"][0]["outcome"]),
        (&"c".into(), &"failed".into())
    );
    let list = place.ground.must(&["rotation", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["rotations"][0]["name"], "api");
    place.go();
    assert_eq!((first.end().0, second.end().0), (0, 0));
}

judged! {
    the_example_alternates_and_never_calls_too_soon
    the_example_works_on_a_file
}

async fn the_example_alternates_and_never_calls_too_soon() {
    the_example_works(&Place::on_redis(&LONG));
}

async fn the_example_works_on_a_file() {
    the_example_works(&Place::on_file(&LONG));
}

fn the_example_works(place: &Place) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rotation/run.sh");
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
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("; 0 answers 429"), "{said}");
    // A job that is not there again within the gap of 600 ms is absent, and the other one's turn comes once more.
    in_time(said.contains(", 0 times twice in a row"), || format!("they alternate: {said}"));
}
