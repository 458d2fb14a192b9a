//! Which level of containment is chosen, what a script sees on it, and how nodes and `soloist run` tell and use it.

use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::clock::boot;
use soloist::domain::containment::Containment;
use soloist::runner::child::ChildEvent;
use soloist::store::journal::Stream;

use super::{code, signal};
use crate::support::guarded::{
    Guarded, available, levels, much_later, outside, runs, until as until_async,
};
use crate::support::machine::{judged, within};
use crate::support::node::Ground;
use crate::support::wait::until;
use crate::support::witness::{self, Witness};

judged! {
    a_level_costs_milliseconds_at_most
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let after_name = stat.rsplit_once(')').expect("a name").1;
    after_name.split_whitespace().nth(1).and_then(|pid| pid.parse().ok()).expect("a parent")
}

#[test]
fn the_strongest_level_that_the_machine_offers_is_chosen() {
    let available = available();
    // Asked in another way than the program under test asks.
    let unshare = ["--pid", "--mount", "--fork", "--mount-proc", "true"];
    let namespace = Command::new("unshare").args(unshare).status().is_ok_and(|s| s.success());
    let mount = fs::read_to_string("/proc/mounts").unwrap();
    let mount = mount.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (_, at, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2").then(|| at.to_owned())
    });
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_owned();
    let cgroup = mount.is_some_and(|mount| {
        let trial = format!("{mount}{own}/soloist-test-{}", std::process::id());
        let works = fs::create_dir(&trial).is_ok()
            && fs::metadata(format!("{trial}/cgroup.kill")).is_ok()
            && nix::unistd::geteuid().is_root();
        fs::remove_dir(&trial).ok();
        works
    });
    assert!(!namespace || available.pid_namespace.is_ok(), "{available:?}");
    assert!(!cgroup || available.cgroup.is_ok(), "{available:?}");
    assert_eq!(available.strongest(), levels()[0]);
    println!("here: {}; {available:?}", available.strongest());
}

#[tokio::test]
async fn on_every_level_a_script_is_known_by_its_own_number_and_ends_as_it_ends() {
    for level in levels() {
        let script = "echo $$ > own; read up _ </proc/uptime; sleep 300 & kill -0 $! && [ -d /proc/$! ] && kill $!; wait; [ \"$(cut -d' ' -f1 /proc/$$/stat)\" = $$ ] && echo sane; exit 42";
        let mut guarded = Guarded::start_on(level, script);
        let gone = guarded.until_gone().await;
        assert_eq!((gone.exit, gone.processes_killed), (code(42), 0), "{level}");
        assert_eq!(guarded.lines(Stream::Stdout), ["sane"], "{level} {:?}", guarded.heard);
        let own = fs::read_to_string(guarded.directory.path().join("own")).unwrap();
        assert_eq!(own.trim(), guarded.pid().to_string(), "{level}: $$ is the number outside");
        for number in [9, 15, 40] {
            let mut guarded = Guarded::start_on(level, &format!("kill -{number} $$; sleep 300"));
            assert_eq!(guarded.until_gone().await.exit, signal(number), "{level}");
        }
    }
}

#[tokio::test]
async fn the_next_processes_never_get_the_number_of_a_dead_run() {
    for level in levels() {
        for _ in 0..40 {
            let mut guarded = Guarded::start_on(level, "exit 0");
            guarded.until_gone().await;
            let next = || {
                let mut process = Command::new("true").spawn().expect("a process");
                process.wait().expect("its end");
                i32::try_from(process.id()).expect("a number")
            };
            let next = [next(), next(), next()];
            assert!(!next.contains(&guarded.pid()), "{level}: {} is in {next:?}", guarded.pid());
        }
    }
}

#[tokio::test]
async fn killing_a_namespace_takes_one_look_at_its_processes_and_none_at_the_machine() {
    if available().pid_namespace.is_err() {
        eprintln!("NOT TESTED HERE: pid namespaces: {available:?}", available = available());
        return;
    }
    let crowd = 400;
    let script = format!(
        "trap '' TERM; i=0; while [ $i -lt {crowd} ]; do i=$((i + 1)); sleep 300 & done; echo ready; wait"
    );
    let mut guarded = Guarded::start_on(Containment::PidNamespace, &script);
    guarded.until_line("ready").await;
    // proc_pid_io(5); the guard stays until it is dismissed.
    let io = format!("/proc/{}/io", guarded.child.guard_pid());
    let reads = || {
        let io = fs::read_to_string(&io).expect("the guard lives");
        let reads = io.lines().find_map(|line| line.strip_prefix("syscr: "));
        reads.and_then(|reads| reads.parse::<u32>().ok()).expect("a number")
    };
    let before = reads();
    // Each of them wakes the guard once more.
    for _ in 0..50 {
        guarded.child.kill();
    }
    assert_eq!(guarded.until_gone().await.processes_killed, crowd);
    let took = reads() - before;
    assert!(took < 10 * crowd, "{took} reads to kill {crowd} processes");
}

#[tokio::test]
async fn in_a_namespace_a_script_sees_nobody_else_and_can_mount_nothing() {
    if available().pid_namespace.is_err() {
        eprintln!("NOT TESTED HERE: pid namespaces: {available:?}", available = available());
        return;
    }
    let script = "ls /proc | grep -c '^[0-9]' ; mkdir m; mount -t tmpfs none m && touch m/mounted; echo ready; sleep 300";
    let mut guarded = Guarded::start_on(Containment::PidNamespace, script);
    guarded.until_line("ready").await;
    let seen: usize = guarded.lines(Stream::Stdout)[0].parse().unwrap();
    assert!(seen <= 5, "{seen}");
    // It has no CAP_SYS_ADMIN, also as root; had it, its mounts would stay in its own mount namespace (MS_SLAVE).
    assert!(!guarded.directory.path().join("m/mounted").exists());
    guarded.child.kill();
    guarded.until_gone().await;
}

#[tokio::test]
async fn a_run_that_must_fall_back_says_so_and_one_that_may_not_is_not_started() {
    // A cgroup that cannot be made stands for every level that worked at the start and does not now.
    let broken = |demanded: bool| {
        Guarded::start_spec(much_later(), "echo ready; sleep 300", |spec| {
            spec.program.containment.level = Containment::Cgroup;
            spec.program.containment.cgroups = Some("/proc/no-cgroup-here".into());
            spec.program.containment.demanded = demanded;
        })
    };
    let mut guarded = broken(false);
    guarded.until_line("ready").await;
    let said = guarded.lines(Stream::Soloist);
    assert!(said.iter().any(|line| line.contains("contained by subreaper only")), "{said:?}");
    guarded.child.kill();
    guarded.until_gone().await;
    let mut guarded = broken(true);
    let Some(ChildEvent::Failed { error }) = guarded.next().await else { panic!("it started") };
    assert!(error.contains("demanded") && error.contains("containment = \"auto\""), "{error}");
}

/// Kills node and guard so that neither sees the other die.
fn kill_both(node: &mut crate::support::node::Node, guard: i32) {
    node.signal(Signal::SIGSTOP);
    kill(Pid::from_raw(guard), Signal::SIGKILL).expect("our guard");
    node.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_kills_what_outlived_its_earlier_life_before_it_campaigns() {
    for level in levels().into_iter().filter(|level| *level != Containment::PidNamespace) {
        let jobs = witness::job("outbound", "stubborn", "lease_ttl = \"2s\"");
        let jobs = format!("containment = \"{}\"\n{jobs}", super::node_death::word(level));
        let ground = Ground::new("sqlite:soloist.db", &jobs);
        witness::place(&ground);
        let witness = Witness::of(&ground, "outbound");
        let mut node = ground.start("node-a");
        ground.add_user("li", "operator");
        ground.must(&["on", "outbound", "--user", "li"]);
        let first = witness.until_started(1);
        until("the grandchild beats", || {
            witness.acts().iter().any(|act| act.pid != first.pid).then_some(())
        });
        let nodes = ground.must(&["status", "--json"]);
        assert!(nodes.contains("outbound"), "{nodes}");
        kill_both(&mut node, parent(first.pid));
        until("the script is dead", || (!runs(first.pid)).then_some(()));
        assert!(!witness.living_under(first.token).is_empty(), "{level}: the grandchild lives on");
        let _again = ground.start("node-b");
        assert_eq!(witness.living_under(first.token), [0; 0], "{level}");
        let second = witness.until_started(2);
        assert!(second.token > first.token);
        witness.check();
    }
}

#[test]
fn a_level_that_does_not_exist_is_refused_by_the_configuration() {
    let ground = Ground::new("sqlite:soloist.db", "containment = \"jail\"\n");
    let output = ground.run(&["check"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("containment") && said.contains("pid-namespace"), "{said}");
}

#[tokio::test]
async fn soloist_run_kills_an_orphan_without_a_mark_when_its_guard_is_killed() {
    for level in levels() {
        let text = format!("containment = \"{}\"\n", super::node_death::word(level));
        let ground = Ground::new("sqlite:soloist.db", &text);
        let script = "echo $$ > own; echo $SOLOIST_RUN > run; env -i setsid sh -c 'echo $$ > nameless.new; mv nameless.new nameless.pid; exec /bin/sleep 300' & wait; sleep 300";
        let mut command = ground.command(&["run", "--name", "once", "--", "sh", "-c", script]);
        let mut once = command.spawn().unwrap();
        let number = |file: &str| crate::support::guarded::number_in(&ground.path(file));
        until_async("the orphan lives", || number("nameless.pid").is_some()).await;
        let run = fs::read_to_string(ground.path("run")).unwrap().trim().to_owned();
        let run = soloist::domain::name::RunId(run);
        let nameless = outside(&run, number("nameless.pid").unwrap());
        assert!(runs(nameless), "{level}");
        let mut guard = parent(number("own").unwrap());
        if level == Containment::PidNamespace {
            guard = parent(guard);
        }
        assert_eq!(parent(guard), i32::try_from(once.id()).unwrap(), "{level}");
        kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap();
        let status = once.wait().unwrap();
        assert!(!runs(nameless), "{level}: the orphan is dead when `soloist run` returns");
        assert!(!status.success(), "{level}: {status:?}");
    }
}

async fn a_level_costs_milliseconds_at_most() {
    for level in levels() {
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let begun = boot();
            let mut guarded = Guarded::start_on(level, "while :; do read x; sleep 60; done");
            while guarded.heard.is_empty() {
                let event = guarded.next().await.expect("an answer");
                guarded.heard.push(event);
            }
            starts.push(boot().since(begun));
            let asked = boot();
            guarded.child.kill();
            guarded.until_gone().await;
            ends.push(boot().since(asked));
        }
        starts.sort();
        ends.sort();
        println!(
            "{level}: started in {:?} (best {:?}), killed in {:?} (best {:?}), p50 of 20",
            starts[10], starts[0], ends[10], ends[0]
        );
        // Bounds for a machine that does ten other things; the figures printed are what counts.
        within(
            starts[10].max(ends[10]),
            Duration::from_secs(1),
            &format!("a start or end by {level}"),
        );
    }
}
