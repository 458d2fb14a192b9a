//! What a node keeps ready for its runs: it comes back when it is killed, nobody has to wait for it, and nothing of it
//! outlives its node.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::lifecycle::{JOB, Pair};
use crate::support::machine::{in_time, judged};
use crate::support::nobody;
use crate::support::node::{Ground, Node, SOLOIST};
use crate::support::wait::until;
use crate::support::witness::{self, Witness};

judged! {
    guards_wait_for_their_plan_and_one_that_is_taken_is_replaced
    a_job_starts_although_its_nursery_or_the_next_guard_was_just_killed
    a_lease_is_given_back_without_the_agent
    nothing_that_was_kept_ready_outlives_its_node
    a_container_does_not_end_before_the_last_guard_of_a_killed_node
    guards_wait_and_say_whose_they_are_under_the_seccomp_profile_of_a_container
}

/// What a process calls itself.
fn title(pid: Pid) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = line.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(first).trim_end().to_owned()
}

fn everybody() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.map(Pid::from_raw).collect()
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok().map(Pid::from_raw)
}

/// Children of `node`, or of one of them, that call themselves so. (Names are shared by the nodes of other tests.)
fn below(node: &Node, is: impl Fn(&str) -> bool) -> Vec<Pid> {
    let all = everybody();
    let children: Vec<Pid> =
        all.iter().copied().filter(|pid| parent(*pid) == Some(node.pid())).collect();
    let of = |pid: &Pid| parent(*pid).is_some_and(|up| up == node.pid() || children.contains(&up));
    all.into_iter().filter(|pid| of(pid) && is(&title(*pid))).collect()
}

fn nursery(node: &Node) -> Option<Pid> {
    below(node, |title| title.starts_with("soloist nursery of ")).first().copied()
}

fn agent(node: &Node) -> Option<Pid> {
    below(node, |title| title.starts_with("soloist release agent of ")).first().copied()
}

/// Guards, not their inits, which bear the same name one floor below.
fn warm(node: &Node) -> Vec<Pid> {
    let all = below(node, |title| title.ends_with(", without a plan"));
    all.into_iter().filter(|pid| parent(*pid) == Some(node.pid())).collect()
}

/// One that has just gone by itself is gone as well.
fn kill_all(guards: &[Pid]) {
    for guard in guards {
        kill(*guard, Signal::SIGKILL).ok();
    }
}

fn until_ready(node: &Node) -> (Pid, Vec<Pid>) {
    until("guards wait for their plan", || {
        let warm = warm(node);
        (warm.len() >= 2).then_some((nursery(node)?, warm))
    })
}

async fn guards_wait_for_their_plan_and_one_that_is_taken_is_replaced() {
    let mut pair = Pair::start("beat", "");
    // The other one cannot take it.
    assert_eq!(pair.b.terminate(), Some(0));
    let (_, before) = until_ready(&pair.a);
    pair.li().switch(JOB, true).await;
    let _first = pair.witness.until_started(1);
    let guard = until("a guard says whose it is", || {
        below(&pair.a, |title| title == format!("soloist guard of {JOB}"))
            .into_iter()
            .find(|pid| parent(*pid) == Some(pair.a.pid()))
    });
    assert!(before.contains(&guard), "{guard} waited before it was needed: {before:?}");
    until("another waits in its place", || (warm(&pair.a).len() >= before.len()).then_some(()));
    pair.witness.check();
}

async fn a_job_starts_although_its_nursery_or_the_next_guard_was_just_killed() {
    let mut pair = Pair::start("beat", "");
    assert_eq!(pair.b.terminate(), Some(0));
    let (first, warm) = until_ready(&pair.a);
    let li = pair.li();
    kill(first, Signal::SIGKILL).expect("our own node's");
    kill_all(&warm);
    li.switch(JOB, true).await;
    let _first = pair.witness.until_started(1);
    let second = until("the nursery is there again", || {
        nursery(&pair.a).filter(|pid| *pid != first).filter(|_| agent(&pair.a).is_some())
    });
    let (_, warm) = until_ready(&pair.a);
    li.switch(JOB, false).await;
    li.live().await.until_state(JOB, "off").await;
    kill_all(&warm);
    li.switch(JOB, true).await;
    let _second = pair.witness.until_started(2);
    assert_eq!(nursery(&pair.a), Some(second), "dead guards are no reason to start another");
    pair.witness.check();
}

async fn a_lease_is_given_back_without_the_agent() {
    let mut pair = Pair::start("beat", "lease_ttl = \"60s\"");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let holder = if pair.a.name == first.node { &mut pair.a } else { &mut pair.b };
    let agent = until("its agent is there", || agent(holder));
    // It is asked, and does not answer.
    kill(agent, Signal::SIGSTOP).expect("our own node's");
    holder.kill();
    let second = pair.witness.until_started(2);
    in_time(second.at - first.at < 50.0, || "long before the lease".to_owned());
    kill(agent, Signal::SIGKILL).expect("our own node's");
    pair.witness.check();
}

async fn nothing_that_was_kept_ready_outlives_its_node() {
    let mut pair = Pair::start("beat", "");
    for node in [&mut pair.a, &mut pair.b] {
        let (nursery, warm) = until_ready(node);
        let agent = until("its agent is there", || agent(node));
        let inits =
            everybody().into_iter().filter(|pid| parent(*pid).is_some_and(|up| warm.contains(&up)));
        let all: Vec<Pid> = inits.chain(warm.iter().copied()).chain([nursery, agent]).collect();
        assert!(all.len() >= 4, "{all:?}");
        if node.name == "node-a" {
            node.kill();
        } else {
            assert_eq!(node.terminate(), Some(0));
        }
        until("all of them are gone", || {
            let left = all.iter().find(|pid| title(**pid).starts_with("soloist "));
            left.is_none().then_some(())
        });
    }
}

/// The first process of the image, `deploy/entrypoint.sh`.
async fn a_container_does_not_end_before_the_last_guard_of_a_killed_node() {
    let ground = Ground::new(
        "sqlite:soloist.db",
        "[[job]]\nname = \"entry\"\ncommand = [\"sleep\", \"1000\"]\n",
    );
    ground.add_user("li", "operator");
    let log = ground.path("log");
    let programs = Path::new(SOLOIST).parent().expect("a directory").display();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/entrypoint.sh");
    let mut first = Command::new("sh")
        .args([script, "serve", "--listen", "127.0.0.1:0", "--node", "node-a"])
        .current_dir(ground.path(""))
        .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"))
        .stdout(Stdio::null())
        .stderr(File::create(&log).expect("a log"))
        .spawn()
        .expect("a shell");
    let shell = Pid::from_raw(i32::try_from(first.id()).expect("a process id"));
    until("the node listens", || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        said.contains("listening on").then_some(())
    });
    ground.must(&["on", "entry", "--user", "li"]);
    let children = |of: Pid| everybody().into_iter().filter(move |pid| parent(*pid) == Some(of));
    let node = children(shell).next().expect("the node");
    let guard = until("the job has its guard", || {
        children(node).find(|pid| title(*pid) == "soloist guard of entry")
    });
    let nursery = children(node).find(|pid| title(*pid).starts_with("soloist nursery"));
    let nursery = nursery.expect("the node has one");
    kill(guard, Signal::SIGSTOP).expect("our own node's");
    kill(node, Signal::SIGKILL).expect("our own");
    until("the nursery is gone", || title(nursery).is_empty().then_some(()));
    let early = first.try_wait().expect("our own child");
    kill(guard, Signal::SIGCONT).expect("it is still there");
    assert_eq!(early, None, "it ended while a guard was at work");
    let ended = until("it ends after the last guard", || first.try_wait().expect("our own child"));
    assert_eq!(ended.code(), Some(137), "as the node did");
}

/// What the profiles of containers do: clone3(2) is not there for whoever may not make namespaces, and older ones forbid
/// process_vm_writev(2).
const IN_A_CONTAINER: &str = r#"#!/usr/bin/env python3
import ctypes, os, platform, struct, sys
CLONE3, WRITEV = 435, 271 if platform.machine() == "aarch64" else 311
ENOSYS, EPERM, ALLOW = 0x00050000 | 38, 0x00050000 | 1, 0x7FFF0000
filters = [
    (0x20, 0, 0, 0),
    (0x15, 0, 1, CLONE3), (0x06, 0, 0, ENOSYS),
    (0x15, 0, 1, WRITEV), (0x06, 0, 0, EPERM),
    (0x06, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filters))
program = ctypes.create_string_buffer(struct.pack("@HP", len(filters), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
pointer = ctypes.c_void_p(ctypes.addressof(program))
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, pointer, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv("SOLOIST", ["SOLOIST", *sys.argv[1:]])
"#;

async fn guards_wait_and_say_whose_they_are_under_the_seccomp_profile_of_a_container() {
    let jobs = witness::job(JOB, "beat", "");
    let Some(ground) = nobody::ground("sqlite:soloist.db", &jobs) else { return };
    let program = ground.path("soloist-in-a-container");
    let as_nobody = ground.path("soloist-as-nobody");
    let text = IN_A_CONTAINER.replace("SOLOIST", as_nobody.to_str().expect("a path"));
    fs::write(&program, text).expect("written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("ours");
    let ground = ground.with_program(&program);
    witness::place(&ground);
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let (_, before) = until_ready(&node);
    assert!(agent(&node).is_some(), "the agent is there, too");
    let witness = Witness::of(&ground, JOB);
    node.api(&ground.token("li")).switch(JOB, true).await;
    let _first = witness.until_started(1);
    let guard = until("a guard says whose it is", || {
        below(&node, |title| title == format!("soloist guard of {JOB}")).first().copied()
    });
    assert!(before.contains(&guard), "{guard} waited before it was needed: {before:?}");
}
