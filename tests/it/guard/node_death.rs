//! A node that dies or freezes: its guards kill, prove, and give the lease back. Every node here is a process of its
//! own, this test binary started once more.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::clock::boot;
use soloist::domain::containment::Containment;
use soloist::domain::job::RunEnd;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId};
use soloist::domain::time::Began;
use soloist::runner::child::{Child, ChildEvent, become_subreaper};
use soloist::store::journal::{Journal, Started};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases};
use soloist::store::{Options, Store};
use tempfile::TempDir;

use crate::support::guarded::{
    DAEMON, SOLOIST, alive, available, contained_by, levels, much_later, number_in, outside, runs,
    spec, until,
};
use crate::support::machine::{holds, judged, within};
use crate::support::redis::RedisServer;

judged! {
    the_tree_of_a_killed_node_is_dead_at_once
    the_guard_of_a_killed_node_releases_the_lease_after_the_tree_is_dead
}

const DIRECTORY: &str = "SOLOIST_TEST_NODE";
const TTL: Duration = Duration::from_secs(30);

/// Not a test: what the others start. Its orders are files in a directory, and so are its words.
#[tokio::test]
#[ignore = "the other tests start it as a node of its own"]
async fn a_node() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    become_subreaper();
    let script = fs::read_to_string(directory.join("script")).unwrap();
    let mut spec = spec(&directory, &script);
    let level = fs::read_to_string(directory.join("level")).unwrap();
    spec.program.containment = contained_by(level.parse().unwrap());
    if let Ok(url) = fs::read_to_string(directory.join("store")) {
        spec.program.store_url = url;
    }
    let mut deadline = much_later();
    if let Some(ms) = number_in(&directory.join("deadline")) {
        deadline = boot() + Duration::from_millis(u64::try_from(ms).unwrap());
    }
    if let Ok(lease) = fs::read_to_string(directory.join("lease")) {
        let mut lines = lease.lines();
        spec.program.store_url = lines.next().unwrap().to_owned();
        spec.owner = Owner(lines.next().unwrap().to_owned());
        spec.token = Token(lines.next().unwrap().parse().unwrap());
        spec.run = RunId(lines.next().unwrap().to_owned());
    }
    fs::write(directory.join("run"), spec.run.as_str()).unwrap();
    let (child, mut events) = Child::spawn_with(Path::new(SOLOIST), spec, deadline).unwrap();
    fs::write(directory.join("guard"), child.guard_pid().to_string()).unwrap();
    let mut said = fs::File::create(directory.join("events")).unwrap();
    while let Some(event) = events.recv().await {
        writeln!(said, "{event:?}").unwrap();
        if matches!(event, ChildEvent::Gone { .. }) {
            // As a node that is about to record the end: the guard is not dismissed yet.
            std::future::pending::<()>().await;
        }
    }
}

pub(super) struct Node {
    pub(super) directory: TempDir,
    process: std::process::Child,
}

impl Node {
    /// Starts one that runs `script`, and waits until the script has made the file `ready`.
    pub(super) async fn start(script: &str, orders: &[(&str, &str)]) -> Self {
        Self::start_by("exec \"$@\"", script, orders).await
    }

    async fn start_by(starter: &str, script: &str, orders: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().expect("a node of its own");
        for (file, text) in orders {
            fs::write(directory.path().join(file), text).expect("a node of its own");
        }
        fs::write(directory.path().join("script"), script).expect("a node of its own");
        if orders.iter().all(|(file, _)| *file != "level") {
            let level = word(available().strongest());
            fs::write(directory.path().join("level"), level).expect("a node of its own");
        }
        let process = Command::new("sh")
            .args(["-c", starter, "sh"])
            .arg(std::env::current_exe().expect("a node of its own"))
            .args(["--exact", "guard::node_death::a_node", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(fs::File::create(directory.path().join("output")).expect("a node of its own"))
            .process_group(0)
            .spawn()
            .expect("a node of its own");
        let node = Self { directory, process };
        until("the script runs", || node.path("ready").exists()).await;
        until("its guard is known", || number_in(&node.path("guard")).is_some()).await;
        node
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).expect("a node of its own")
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.process.id()).expect("a node of its own")), signal)
            .expect("a node of its own");
    }

    pub(super) fn number(&self, file: &str) -> i32 {
        number_in(&self.path(file)).expect("a node of its own")
    }

    /// The process whose number the script wrote to a file, by our numbers.
    pub(super) fn process(&self, file: &str) -> i32 {
        outside(&self.run(), self.number(file))
    }

    pub(super) fn run(&self) -> RunId {
        RunId(fs::read_to_string(self.path("run")).expect("a node of its own"))
    }

    async fn until_it_says(&self, words: &str) {
        let said = || fs::read_to_string(self.path("events")).unwrap_or_default();
        until(words, || said().contains(words)).await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn with_daemon() -> String {
    format!("trap '' TERM; {DAEMON} touch ready; while :; do sleep 0.05; done")
}

async fn the_tree_of_a_killed_node_is_dead_at_once() {
    let node = Node::start(&with_daemon(), &[]).await;
    let (run, daemon) = (node.run(), node.process("daemon.pid"));
    let asked = boot();
    node.signal(Signal::SIGKILL);
    until("the tree is dead", || alive(&run).is_empty() && !runs(daemon)).await;
    within(boot().since(asked), Duration::from_secs(1), "the tree is dead");
}

#[tokio::test]
async fn the_tree_of_a_paused_node_is_dead_at_the_deadline_and_the_node_hears_of_it() {
    let node = Node::start(&with_daemon(), &[("deadline", "3000")]).await;
    let (run, daemon) = (node.run(), node.process("daemon.pid"));
    node.signal(Signal::SIGSTOP);
    until("the tree is dead", || alive(&run).is_empty() && !runs(daemon)).await;
    node.signal(Signal::SIGCONT);
    node.until_it_says("cause: Deadline").await;
}

#[tokio::test]
async fn an_orphan_of_a_killed_guard_is_found_without_its_mark() {
    let script = "env -i setsid sh -c 'echo $$ > nameless.new; mv nameless.new nameless.pid; exec /bin/sleep 300' &
        until [ -s nameless.pid ]; do sleep 0.01; done; touch ready; wait";
    let node = Node::start(script, &[("level", "subreaper")]).await;
    let nameless = node.number("nameless.pid");
    assert!(!alive(&node.run()).contains(&nameless) && runs(nameless));
    kill(Pid::from_raw(node.number("guard")), Signal::SIGKILL).unwrap();
    node.until_it_says("cause: GuardLost").await;
    assert!(!runs(nameless));
    assert!(!Path::new(&format!("/proc/{nameless}")).exists(), "and the node has reaped it");
}

#[tokio::test]
async fn children_that_a_node_had_before_it_was_a_node_are_left_alone() {
    let starter = "sleep 301 & echo $! > elder; sleep 0.05; exec \"$@\"";
    let starter = format!("cd \"${DIRECTORY}\"; {starter}");
    let node = Node::start_by(&starter, &with_daemon(), &[]).await;
    kill(Pid::from_raw(node.number("guard")), Signal::SIGKILL).unwrap();
    node.until_it_says("cause: GuardLost").await;
    let elder = node.number("elder");
    assert!(runs(elder));
    kill(Pid::from_raw(elder), Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn a_script_is_not_deaf_because_its_node_was_started_deaf() {
    let script = "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status; cat /proc/self/oom_score_adj; touch ready; exit 5";
    let starter = "trap '' HUP INT QUIT TERM USR1 USR2 PIPE CHLD XFSZ XCPU TSTP; exec \"$@\"";
    let node = Node::start_by(starter, script, &[]).await;
    node.until_it_says("code: Some(5)").await;
    let said = fs::read_to_string(node.path("events")).unwrap();
    let ignored = said.split("SigIgn:\\t").nth(1).unwrap().get(..16).unwrap();
    // The C library keeps 32 and 33 for itself.
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff, 0, "{said}");
    assert!(said.contains("SigBlk:\\t0000000000000000") && said.contains("\"300\""), "{said}");
}

#[tokio::test]
async fn a_script_inherits_no_file_that_its_node_was_started_with() {
    let starter = "exec 7</etc/passwd; exec \"$@\"";
    let script = "touch ready; sleep 300";
    let node = Node::start_by(starter, script, &[]).await;
    let files = |pid: i32| -> Vec<PathBuf> {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
    };
    assert!(files(i32::try_from(node.process.id()).unwrap()).contains(&"/etc/passwd".into()));
    for pid in alive(&node.run()).into_iter().chain([node.number("guard")]) {
        assert!(!files(pid).contains(&"/etc/passwd".into()), "{pid}: {:?}", files(pid));
    }
}

/// How a level is written in a configuration.
pub(super) fn word(level: Containment) -> &'static str {
    match level {
        Containment::PidNamespace => "pid-namespace",
        Containment::Cgroup => "cgroup",
        Containment::Subreaper => "subreaper",
    }
}

/// A Redis with a lease of 30 seconds, its job, and the orders for a node that runs under it.
async fn leased() -> (RedisServer, Store, JobName, String) {
    let redis = RedisServer::start(&[]);
    let (store, job, lease) = leased_at(&redis.url()).await;
    (redis, store, job, lease)
}

async fn leased_at(url: &str) -> (Store, JobName, String) {
    let store =
        soloist::stores::connect(url, &Options::default()).await.expect("the store answers");
    let (job, node) = (
        JobName::new("outbound").expect("the store answers"),
        NodeName::new("node-a").expect("the store answers"),
    );
    let ask = Acquire {
        job: job.clone(),
        owner: Owner("the-owner".to_owned()),
        node: node.clone(),
        ttl: TTL,
        condition: Condition::None,
        seen: Token(0),
    };
    let token = loop {
        match store.acquire(&ask).await.expect("the store answers") {
            Acquired::Granted { token, .. } => break token,
            Acquired::Quarantined { wait } => tokio::time::sleep(wait).await,
            other => panic!("{other:?}"),
        }
    };
    let run = RunId(ulid::Ulid::generate().to_string());
    let began = Began::at_boot(boot());
    let started = Started { job: job.clone(), token, run: run.clone(), node, pid: 1, began };
    store.record_started(&started).await.expect("the store answers");
    let lease = format!("{url}\nthe-owner\n{token}\n{run}\n");
    (store, job, lease)
}

async fn until_released(store: &Store, job: &JobName) {
    let end = boot() + TTL / 2;
    while store.observe(std::slice::from_ref(job)).await.expect("the store answers")[0]
        .lease_left
        .is_some()
    {
        assert!(boot() < end, "the lease was not released");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let runs = store.runs(job, None, 10).await.expect("the store answers");
    assert_eq!((runs.len(), runs[0].end), (1, Some(RunEnd::Lost)), "{runs:?}");
}

async fn the_guard_of_a_killed_node_releases_the_lease_after_the_tree_is_dead() {
    for level in levels() {
        let (_redis, store, job, lease) = leased().await;
        kill_and_see_it_released(store, job, lease, level).await;
    }
    let directory = TempDir::new().expect("an answer");
    let url = format!("sqlite:{}", directory.path().join("soloist.db").display());
    let (store, job, lease) = leased_at(&url).await;
    kill_and_see_it_released(store, job, lease, available().strongest()).await;
}

async fn kill_and_see_it_released(store: Store, job: JobName, lease: String, level: Containment) {
    let orders = [("lease", lease.as_str()), ("level", word(level))];
    let node = Node::start(&with_daemon(), &orders).await;
    let (run, daemon) = (node.run(), node.process("daemon.pid"));
    let asked = boot();
    node.signal(Signal::SIGKILL);
    until_released(&store, &job).await;
    let took = boot().since(asked);
    let dead = alive(&run).is_empty() && !runs(daemon);
    holds(dead, || "released before they were dead".to_owned());
    println!("{level}: kill -9 to released: {took:?}");
    within(took, Duration::from_secs(2), "the lease is released");
}

#[tokio::test]
async fn a_node_that_dies_between_the_end_and_its_record_is_stood_in_for() {
    let (_redis, store, job, lease) = leased().await;
    let node = Node::start("touch ready; exit 6", &[("lease", &lease)]).await;
    node.until_it_says("code: Some(6)").await;
    assert!(store.observe(std::slice::from_ref(&job)).await.unwrap()[0].lease_left.is_some());
    node.signal(Signal::SIGKILL);
    until_released(&store, &job).await;
    assert_eq!(store.runs(&job, None, 1).await.unwrap()[0].exit.code, Some(6));
}

#[tokio::test]
async fn a_guard_keeps_trying_while_the_store_is_away() {
    let (redis, store, job, lease) = leased().await;
    let node = Node::start(&with_daemon(), &[("lease", &lease)]).await;
    let (run, guard) = (node.run(), node.number("guard"));
    redis.pause();
    node.signal(Signal::SIGKILL);
    until("the tree is dead", || alive(&run).is_empty()).await;
    assert!(runs(guard), "the guard waits for the store");
    redis.resume();
    until_released(&store, &job).await;
    until("the guard is gone", || !runs(guard)).await;
}
