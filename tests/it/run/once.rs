//! `soloist run --tick` and `--once-per`: once for each tick, whoever starts it, however often, and whoever is killed.

use super::*;
use crate::support::node::Node;

/// Notes that it ran.
const RAN: &str = "echo $SOLOIST_TICK >> ran";

/// A store that hosts share, each with a configuration of its own.
struct Hosts {
    _redis: Option<RedisServer>,
    hosts: Vec<Place>,
}

impl Hosts {
    fn on(store: &str, redis: Option<RedisServer>) -> Self {
        let host =
            |name| Place { ground: Ground::new(store, &format!("node = \"host-{name}\"\n")) };
        Self { _redis: redis, hosts: ["a", "b", "c"].into_iter().map(host).collect() }
    }

    /// Three hosts on each kind of store that needs no more than this machine has.
    fn all() -> Vec<(&'static str, Self, Option<tempfile::TempDir>)> {
        let dir = tempfile::TempDir::new().expect("a directory");
        let file = format!("sqlite:{}", dir.path().join("soloist.db").display());
        let redis = RedisServer::start(&[]);
        let url = redis.url();
        vec![
            ("SQLite", Self::on(&file, None), Some(dir)),
            ("Redis", Self::on(&url, Some(redis)), None),
        ]
    }

    /// How often each tick was run, over all hosts.
    fn ran(&self) -> Vec<String> {
        let lines = self.hosts.iter().flat_map(|host| {
            let text = fs::read_to_string(host.path("ran")).unwrap_or_default();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        lines.collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts `script` for `tick` until that says `part`.
fn until_said(place: &Place, tick: &str, part: &str) -> String {
    until(part, || {
        // Where the store does not know the tick, it would wait for the lease.
        let output = place.run(&["--wait", "2s", "--tick", tick], RAN);
        let said = said(&output);
        (output.status.code() == Some(0) && said.contains(part)).then_some(said)
    })
}

#[test]
fn of_a_hundred_starts_on_three_hosts_at_the_same_moment_one_runs() {
    for (store, hosts, _dir) in Hosts::all() {
        // The store is made, and the last tick is spent.
        assert!(hosts.hosts[0].run(&["--tick", "26"], RAN).status.success(), "{store}");
        let starts: Vec<Running> = (0..100)
            .map(|n| hosts.hosts[n % 3].start(&["--tick", "27"], &format!("{RAN}; sleep 0.3")))
            .collect();
        let (mut told, mut ran) = (0, 0);
        for start in starts {
            let (code, said) = start.end();
            assert_eq!(code, 0, "{store}: {said}");
            if said.contains("the tick \"27\" was started by host-") {
                told += 1;
            } else {
                ran += 1;
            }
        }
        assert_eq!((told, ran), (99, 1), "{store}");
        assert_eq!(hosts.ran().iter().filter(|tick| *tick == "27").count(), 1, "{store}");
        for host in &hosts.hosts {
            let late = host.run(&["--tick", "27"], RAN);
            assert!(said(&late).contains("and was done at "), "{store}: {}", said(&late));
            assert!(said(&late).contains("nothing to do"), "{store}: {}", said(&late));
        }
        let mut ticks = hosts.ran();
        ticks.sort();
        assert_eq!(ticks, ["26", "27"], "{store}");
    }
}

#[test]
fn whoever_comes_while_the_first_runs_ends_at_once_whatever_its_patience() {
    let place = Place::new();
    let first = place.start(&["--ttl", LONG, "--tick", "27"], WAITS);
    let _pid = place.number("pid");
    for options in [vec![], vec!["--wait", "0"], vec!["--wait", LONG], vec!["--retry-failed"]] {
        let late = place.run(&[&options[..], &["--tick", "27"]].concat(), "echo never");
        assert_eq!((late.status.code(), late.stdout.len()), (Some(0), 0), "{}", said(&late));
        assert!(said(&late).contains("and is still running: nothing to do"), "{}", said(&late));
    }
    // Of another tick, it waits as for any lease.
    let mut other = place.start(&["--wait", LONG, "--tick", "28"], RAN);
    other.says("waiting for the lease of deploy");
    // A lock without a tick is the same lock.
    let plain = place.run(&["--wait", "0"], "echo never");
    assert_eq!(plain.status.code(), Some(75));
    place.go();
    assert_eq!(first.end().0, 0);
    assert_eq!(other.end().0, 0);
    assert_eq!(fs::read_to_string(place.path("ran")).expect("it ran"), "28\n");
}

#[test]
fn kill_9_in_mid_run_spends_the_tick_and_retry_failed_runs_it_again() {
    for (store, hosts, _dir) in Hosts::all() {
        let [a, b, _] = hosts.hosts.as_slice() else { panic!("three hosts") };
        let mut first = a.start(&["--ttl", LONG, "--tick", "27"], BEATS);
        let _pid = a.number("pid");
        first.signal(Signal::SIGKILL);
        assert_eq!(first.status().code(), None);
        let told = until_said(b, "27", "was lost");
        for part in ["deploy: the tick \"27\" was started by host-a at 2", "--retry-failed"] {
            assert!(told.contains(part), "{store}: {told}");
        }
        assert_eq!(hosts.ran().len(), 0, "{store}");
        a.until_gone();
        let again = b.run(&["--retry-failed", "--tick", "27"], RAN);
        assert!(again.status.success(), "{store}: {}", said(&again));
        for host in &hosts.hosts {
            let late = host.run(&["--retry-failed", "--tick", "27"], RAN);
            assert!(said(&late).contains("started by host-b"), "{store}: {}", said(&late));
            assert!(said(&late).contains("was done"), "{store}: {}", said(&late));
        }
        assert_eq!(hosts.ran(), ["27"], "{store}");
    }
}

/// Nobody is left who could say how it ended: the lease runs out.
#[test]
fn kill_9_of_the_guard_as_well_is_a_loss_once_the_lease_is_over() {
    let redis = RedisServer::start(&[]);
    let place = Place::on(&redis.url());
    let mut first = place.start(&["--ttl", "1s", "--tick", "27"], WAITS);
    let _pid = place.number("pid");
    let guard = first.guard();
    first.signal(Signal::SIGSTOP);
    kill(guard, Signal::SIGKILL).expect("its guard");
    first.signal(Signal::SIGKILL);
    first.status();
    until_said(&place, "27", "was lost");
    assert!(place.run(&["--retry-failed", "--tick", "27"], RAN).status.success());
    until_said(&place, "27", "was done");
    assert_eq!(fs::read_to_string(place.path("ran")).expect("it ran"), "27\n");
}

#[test]
fn a_command_that_failed_or_was_stopped_is_run_again_only_when_that_is_asked_for() {
    let place = Place::new();
    assert_eq!(place.run(&["--tick", "27"], "exit 3").status.code(), Some(3));
    until_said(&place, "27", "and failed with exit code 3 at ");
    assert_eq!(place.run(&["--tick", "27", "--retry-failed"], "exit 4").status.code(), Some(4));
    until_said(&place, "27", "and failed with exit code 4 at ");
    assert!(place.run(&["--tick", "27", "--retry-failed"], RAN).status.success());
    until_said(&place, "27", "and was done at ");
    assert_eq!(fs::read_to_string(place.path("ran")).expect("it ran"), "27\n");

    let stopped = place.start(&["--tick", "28"], WAITS);
    let _pid = place.number("pid");
    stopped.signal(Signal::SIGINT);
    assert_eq!(stopped.end().0, 128 + 15);
    until_said(&place, "28", "and failed at ");
    assert!(place.run(&["--tick", "28", "--retry-failed"], RAN).status.success());
}

/// The store is away when the command ends, and for longer than `soloist run` waits for it.
#[test]
fn an_end_that_only_the_guard_could_tell_is_the_commands_own() {
    let redis = RedisServer::start(&[]);
    let place = Place::on(&redis.url());
    let running = place.start(&["--ttl", "20s", "--tick", "27"], WAITS);
    let _pid = place.number("pid");
    redis.pause();
    place.go();
    let (code, said) = running.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("its guard goes on trying"), "{said}");
    redis.resume();
    until_said(&place, "27", "and was done at ");
}

#[test]
fn what_was_not_begun_spends_nothing() {
    let place = Place::new();
    let start = |argv: &[&str]| {
        let words = [&["run", "--name", "deploy", "--tick", "27", "--"], argv].concat();
        place.ground.run(&words)
    };
    let missing = start(&["./missing"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(said(&missing).contains("./missing"), "{}", said(&missing));
    // It is there, and the kernel cannot start it.
    let broken = place.path("broken");
    fs::write(&broken, "#!/no/such/shell\n").expect("written");
    let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&broken, runs).expect("ours");
    let failed = start(&["./broken"]);
    assert_eq!(failed.status.code(), Some(127), "{}", said(&failed));
    // A signal while it waits for the lease.
    let holder = place.start(&["--ttl", LONG], WAITS);
    let _pid = place.number("pid");
    let mut waiting = place.start(&["--tick", "27"], RAN);
    waiting.says("waiting for the lease of deploy");
    waiting.signal(Signal::SIGINT);
    assert_eq!(waiting.end().0, 128 + 2);
    place.go();
    assert_eq!(holder.end().0, 0);
    assert!(place.run(&["--tick", "27", "--wait", "0"], RAN).status.success());
    assert_eq!(fs::read_to_string(place.path("ran")).expect("it ran"), "27\n");
}

#[test]
fn who_meets_the_lease_waits_five_seconds_whatever_its_patience() {
    let place = Place::new();
    let holder = place.start(&["--ttl", LONG], WAITS);
    let _pid = place.number("pid");
    let mut second = place.start(&["--wait", "0", "--tick", "27"], RAN);
    second.says("waiting for the lease of deploy");
    let begun = uptime();
    let refused = place.run(&["--wait", "0", "--tick", "28"], RAN);
    assert_eq!(refused.status.code(), Some(75), "{}", said(&refused));
    assert!(uptime() - begun >= 5.0, "{}", said(&refused));
    drop(second);
    let third = place.start(&["--wait", "0", "--tick", "29"], RAN);
    place.go();
    assert_eq!(holder.end().0, 0);
    assert_eq!(third.end().0, 0);
    assert_eq!(fs::read_to_string(place.path("ran")).expect("it ran"), "29\n");
}

/// The second of the day, by the clock of this machine, which is that of a store in a file.
fn second_of_the_day(later: u64) -> [u64; 3] {
    let now = jiff::Timestamp::now().as_second().unsigned_abs();
    let second = (now + later) % 86_400;
    [second % 60, second / 60 % 60, second / 3_600]
}

#[test]
fn once_per_waits_for_the_tick_that_is_due_in_a_moment_and_then_runs_it_once() {
    let place = Place::new();
    let [second, minute, hour] = second_of_the_day(4);
    let expression = format!("{second} {minute} {hour} * * ?");
    let options =
        ["--once-per", &expression, "--zone", "UTC", "--dialect", "quartz", "--wait", LONG];
    let script = "date -u +%S >> started; echo \"$SOLOIST_TICK $SOLOIST_TICK_TIME\"";
    let mut first = place.start(&options, script);
    let waits = first.says("waiting ");
    assert!(waits.contains("for the tick \"deploy@2"), "{waits}");
    let second_host = place.start(&options, script);
    assert_eq!(first.status().code(), Some(0));
    let mut out = String::new();
    first.child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("UTF-8");
    let (code, told) = second_host.end();
    assert_eq!(code, 0, "{told}");
    let started = fs::read_to_string(place.path("started")).expect("it ran");
    let [started] = started.lines().collect::<Vec<_>>()[..] else { panic!("{started}") };
    let late = (started.parse::<u64>().expect("a second") + 60 - second) % 60;
    assert!(late < 30, "due at {second}, started at {started}");
    let late = place.run(&options, script);
    assert!(said(&late).contains("and was done at "), "{}", said(&late));
    let time = format!("T{hour:02}:{minute:02}");
    assert!(said(&late).contains(&time) && said(&late).contains("[UTC]"), "{}", said(&late));
    let all = format!("{out}{told}");
    assert!(all.contains(&format!("{time}:{second:02}")) || second == 0, "{all}");
}

#[test]
fn once_per_is_the_newest_tick_that_is_due() {
    let place = Place::new();
    // Neither in the last minutes of a year nor just behind its begin would this be another one.
    let yearly = ["--once-per", "0 0 1 1 *", "--zone", "UTC"];
    let first = place.run(&yearly, "echo \"$SOLOIST_TICK $SOLOIST_TICK_TIME\"");
    let told = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(told.starts_with("deploy@2") && told.contains("-01-01T00:00[UTC] 2"), "{told}");
    assert!(told.ends_with("-01-01T00:00:00+00:00\n"), "{told}");
    assert!(said(&place.run(&yearly, RAN)).contains("was done"));
    // In another zone it is another tick.
    let there = ["--once-per", "0 0 1 1 *", "--zone", "Asia/Shanghai"];
    assert!(place.run(&there, RAN).status.success());
    let never = ["--once-per", "0 0 0 1 1 ? 2099", "--zone", "UTC", "--dialect", "quartz"];
    let none = place.run(&never, RAN);
    assert_eq!(none.status.code(), Some(1));
    assert!(said(&none).contains("the first one is deploy@2099-01-01T00:00"), "{}", said(&none));
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_option_and_a_remedy() {
    let place = Place::new();
    let long = "x".repeat(201);
    let per = |more: &[&'static str]| [&["--once-per"], more].concat();
    for (options, parts) in [
        (vec!["--tick", ""], ["--tick: ", "it is empty"]),
        (vec!["--tick", "  "], ["--tick: ", "it is empty"]),
        (vec!["--tick", &long], ["--tick: ", "201 bytes"]),
        (vec!["--tick", "a\nb"], ["--tick: \"a\\nb\"", "U+000A"]),
        (vec!["--tick", "a\u{1b}[2J"], ["--tick: ", "U+001B"]),
        (vec!["--tick", "a", "--once-per", "0 0 * * *"], ["--tick", "cannot be used with"]),
        (vec!["--tick", "a", "--zone", "UTC"], ["--zone: ", "--once-per"]),
        (vec!["--tick", "a", "--dialect", "quartz"], ["--dialect: ", "--once-per"]),
        (vec!["--zone", "UTC"], ["--zone: ", "--once-per"]),
        (vec!["--retry-failed"], ["--retry-failed: ", "add --tick"]),
        (per(&["30 2 * * *"]), ["--once-per: ", "--zone Asia/Shanghai"]),
        (per(&["30 2 * * *", "--zone", "Mars"]), ["--zone: zone \"Mars\"", "IANA"]),
        (per(&["30 2 * *", "--zone", "UTC"]), ["--once-per: 30 2 * *", "five fields"]),
        (per(&["61 2 * * *", "--zone", "UTC"]), ["--once-per: 61 2 * * *", "61"]),
        (per(&["0 30 2 * * *", "--zone", "UTC"]), ["--once-per: 0 30 2", "--dialect quartz"]),
        (per(&["0 0 30 2 *", "--zone", "UTC"]), ["--once-per: ", "never comes"]),
        (per(&["@every 15m", "--zone", "UTC"]), ["--once-per: ", "*/15 * * * *"]),
        (per(&["", "--zone", "UTC"]), ["--once-per: ", "empty"]),
        (per(&["0 0 * * *", "--zone", "UTC", "--dialect", "x"]), ["--dialect", "quartz"]),
    ] {
        let output = place.run(&options, RAN);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {told}");
        for part in parts {
            assert!(told.contains(part), "{options:?} lacks {part:?}: {told}");
        }
        assert!(!told.contains("dialect = "), "of a configuration: {told}");
    }
    assert!(!place.path("ran").exists());
}

/// By the nodes in the place of the store.
struct ByNodes<'a> {
    place: &'a Place,
    nodes: Vec<Node>,
    token: String,
}

impl ByNodes<'_> {
    fn run(&self, nth: usize, options: &[&str], script: &str) -> Output {
        let words = [&["--server", &self.nodes[nth].url], &words(options, script)[..]].concat();
        let mut command = self.place.ground.command(&words);
        command.env("SOLOIST_API_TOKEN", &self.token).output().expect("soloist starts")
    }
}

#[test]
fn by_the_nodes_it_is_the_same() {
    let place = Place::new();
    place.ground.add_user("li", "operator");
    let token = place.ground.token("li");
    let nodes = vec![place.ground.start("node-a"), place.ground.start("node-b")];
    let by = ByNodes { place: &place, nodes, token };
    let told = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..12)
            .map(|n| {
                let by = &by;
                scope.spawn(move || by.run(n % 2, &["--tick", "27"], &format!("{RAN}; sleep 0.5")))
            })
            .collect();
        let ends: Vec<Output> = starts.into_iter().map(|one| one.join().expect("ended")).collect();
        for end in &ends {
            assert_eq!(end.status.code(), Some(0), "{}", said(end));
        }
        ends.iter().filter(|end| said(end).contains("the tick \"27\" was started by")).count()
    });
    assert_eq!(told, 11);
    assert_eq!(fs::read_to_string(place.path("ran")).expect("it ran"), "27\n");
    // At the store the same ticks are spent.
    until_said(&place, "27", "was done");
    assert_eq!(by.run(0, &["--tick", "28"], "exit 3").status.code(), Some(3));
    let late = by.run(1, &["--tick", "28"], RAN);
    assert!(said(&late).contains("and failed with exit code 3 at 2"), "{}", said(&late));
    assert!(by.run(1, &["--tick", "28", "--retry-failed"], RAN).status.success());
    until_said(&place, "28", "was done");
    let missing = {
        let words = ["run", "--name", "deploy", "--tick", "29", "--", "./missing"];
        let words = [&["--server", by.nodes[0].url.as_str()], &words[..]].concat();
        let mut command = place.ground.command(&words);
        command.env("SOLOIST_API_TOKEN", &by.token).output().expect("soloist starts")
    };
    assert_eq!(missing.status.code(), Some(127));
    let yearly = ["--once-per", "0 0 1 1 *", "--zone", "UTC"];
    assert!(by.run(0, &yearly, RAN).status.success());
    assert!(said(&by.run(1, &yearly, RAN)).contains("was done"));
    assert!(said(&place.run(&yearly, RAN)).contains("was done"), "at the store, too");
    assert!(by.run(0, &["--tick", "29"], RAN).status.success());
    let ran = fs::read_to_string(place.path("ran")).expect("it ran");
    assert_eq!(ran.lines().count(), 4, "{ran}");
}

/// What comes back is a store with an older picture; the holder tells it what it knows.
#[test]
fn a_store_that_forgot_in_mid_run_learns_the_tick_again() {
    let redis = RedisServer::start(&[]);
    let place = Place::on(&redis.url());
    let first = place.start(&["--ttl", "2s", "--tick", "27"], WAITS);
    let _pid = place.number("pid");
    let _: String = redis.run(&["FLUSHALL"]);
    let late = until_said(&place, "27", "and is still running");
    assert!(late.contains("was started by"), "{late}");
    place.go();
    assert_eq!(first.end().0, 0);
    until_said(&place, "27", "was done");
    assert!(!place.path("ran").exists());
}
