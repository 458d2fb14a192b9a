//! `--with redisson`: Soloist's Java library beside Redisson, two JVMs each, on one Redis. [`COLUMNS`] says what is compared.
//!
//! Both are driven by one program, `redisson/Peer.java`, over its standard input. The witness is a file outside: each holder appends a line for each
//! act, with O_APPEND and CLOCK_BOOTTIME. An overlap is an act of the first holder that stands after the first act of the second one.
//!
//! Separate from the other peers because those are commands that wrap a child; here the holder itself is the program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use soloist::clock;
use soloist::domain::time::Boot;
use tempfile::TempDir;

use super::http::{Door, Program};
use super::lives::{Beat, beats};
use super::support::node::{Ground, Node};
use super::support::redis::RedisServer;
use super::support::wait::{until, within};
use super::{installed, root};

/// As `redisson/pom.xml` pins it.
const VERSION: &str = "3.52.0";
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a take-over may take beyond the lease.
const BEYOND: Duration = Duration::from_secs(10);
/// How long both are watched after the first one goes on.
const WATCH: Duration = Duration::from_secs(3);
/// What a waiter gets to stand in line; neither library says when it does.
const IN_LINE: Duration = Duration::from_millis(500);
/// Of each JVM, before its pairs are counted; and how long they are counted.
const WARM_UP: &str = "pairs 4 1000";
const COUNTED: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Redisson,
    Soloist,
    /// With a life line.
    Watched,
}

/// A library with a lease.
struct Column {
    name: &'static str,
    library: Library,
    lease: Duration,
    /// Whether the lease is the library's own: then it is told nothing, and a third of the rounds is enough.
    own: bool,
}

const fn column(name: &'static str, library: Library, seconds: u64, own: bool) -> Column {
    Column { name, library, lease: Duration::from_secs(seconds), own }
}

const COLUMNS: [Column; 6] = [
    column("Redisson, 30 s (its default)", Library::Redisson, 30, true),
    column("Redisson, 2 s", Library::Redisson, 2, false),
    column("Soloist, 10 s (its default)", Library::Soloist, 10, true),
    column("Soloist, 2 s", Library::Soloist, 2, false),
    column("Soloist, life line, 10 s (its default)", Library::Watched, 10, true),
    column("Soloist, life line, 2 s", Library::Watched, 2, false),
];

const ROWS: [&str; 7] = [
    "`kill -9` of the holder -> the other works, ms: p50 / max",
    "until the kernel had ended that JVM, ms: p50 / max",
    "SIGTERM to the holder -> the other works, ms: p50 / max",
    "paused past its lease, woken: both work, ms: p50 / max",
    "the same, asking before each act, ms: p50 / max",
    "handed from one to the other and back, ms: p50 / p99",
    "acquire + release a second: 1 thread / 16 threads",
];

/// How often, which columns (those with this word in their name), and another `soloist` than the one that cargo built.
pub(crate) struct Plan<'a> {
    pub kills: usize,
    pub pauses: usize,
    pub hands: usize,
    pub only: Option<&'a str>,
    pub program: Option<&'a Path>,
}

/// Measures and prints, or says in a sentence why not.
pub(crate) fn compare(plan: &Plan<'_>) {
    let classpath = match prepare() {
        Ok(classpath) => classpath,
        Err(why) => {
            println!("Not measured: Redisson {VERSION} cannot be had: {why}");
            return;
        }
    };
    println!("Load average before: {}", load());
    let redis = RedisServer::start(&[]);
    let mut table: Vec<(&str, [String; ROWS.len()])> = Vec::new();
    for (nth, column) in COLUMNS.iter().enumerate() {
        if plan.only.is_none_or(|only| column.name.contains(only)) {
            let site = Site::start(&redis, plan.program, column, nth, &classpath);
            table.push((column.name, measure(&site, plan)));
        }
    }
    println!(
        "Redisson {VERSION}; {} rounds of signals, {} of pauses, a third with own defaults; {} hand-overs.\n",
        plan.kills, plan.pauses, plan.hands
    );
    println!("| | {} |", table.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" | "));
    println!("|{}", " --- |".repeat(table.len() + 1));
    for (nth, row) in ROWS.iter().enumerate() {
        let cells: Vec<&str> = table.iter().map(|(_, cells)| cells[nth].as_str()).collect();
        println!("| {row} | {} |", cells.join(" | "));
    }
    bare(&redis, plan.program);
    println!("\nLoad average after: {}", load());
}

/// What the JVMs of the last run said.
fn log() -> PathBuf {
    installed().join("redisson/jvms.log")
}

/// Fetches and compiles; the class path, or why it cannot be had.
fn prepare() -> Result<String, String> {
    let (own, here) = (installed().join("redisson"), root().join("benches/peers/redisson"));
    let (jars, classes) = (own.join("jars"), own.join("classes"));
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(here.join("pom.xml")).arg("dependency:copy-dependencies");
    maven.arg(format!("-DoutputDirectory={}", jars.display()));
    carry_out(&mut maven, "maven")?;
    let library = root().join("clients/java/soloist-client/src/main/java/io/soloist/client");
    let sources = std::fs::read_dir(library).expect("the library").flatten();
    let all = format!("{}/*", jars.display());
    let mut compiler = Command::new("javac");
    compiler.args(["--release", "17", "-cp", &all, "-d"]).arg(&classes);
    compiler.args(sources.map(|entry| entry.path())).arg(here.join("Peer.java"));
    carry_out(&mut compiler, "default-jdk-headless")?;
    std::fs::write(log(), "").map_err(|error| format!("{}: {error}", log().display()))?;
    Ok(format!("{}:{all}", classes.display()))
}

/// Runs it to its end; else one line of why not.
fn carry_out(command: &mut Command, package: &str) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| {
        format!("{name} cannot be started ({error}); Debian: apt-get install {package}")
    })?;
    // Maven says what is wrong on its standard output.
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    let line = said.iter().flat_map(|said| said.lines()).find(|line| line.len() > 10);
    if output.status.success() {
        return Ok(());
    }
    let line = line.unwrap_or("it did not say why");
    Err(format!("{name} failed: {}", line.split_once("[ERROR] ").map_or(line, |(_, why)| why)))
}

/// Two nodes on that Redis.
struct Cluster {
    nodes: Vec<Node>,
    token: String,
    socket: PathBuf,
    _ground: Ground,
}

impl Cluster {
    fn start(redis: &RedisServer, program: Option<&Path>, nth: usize, watched: bool) -> Self {
        let more = if watched { "lifeline = \"line.sock\"\n" } else { "" };
        let ground = Ground::new(&redis.url(), more);
        let ground = match program {
            Some(program) => ground.with_program(program),
            None => ground,
        };
        // All clusters have one store, so each has an account and names of its own.
        let user = format!("li-{nth}");
        ground.add_user(&user, "operator");
        let token = ground.token(&user);
        let socket = ground.path("line.sock");
        let first = ground.start(&format!("node-{nth}-a"));
        if watched {
            until("somebody listens", || UnixStream::connect(&socket).ok().map(drop));
        }
        let nodes = vec![first, ground.start(&format!("node-{nth}-b"))];
        Self { nodes, token, socket, _ground: ground }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(Node::kill);
        // The watcher outlives its nodes; it is the process that listens.
        let line = UnixStream::connect(&self.socket);
        if let Some(peer) =
            line.ok().and_then(|line| getsockopt(&line, sockopt::PeerCredentials).ok())
        {
            // It may have ended by itself.
            kill(Pid::from_raw(peer.pid()), Signal::SIGTERM).ok();
        }
    }
}

/// What a column is measured on.
struct Site<'a> {
    column: &'a Column,
    classpath: &'a str,
    redis: String,
    cluster: Option<Cluster>,
    directory: TempDir,
}

impl<'a> Site<'a> {
    fn start(
        redis: &RedisServer,
        program: Option<&Path>,
        column: &'a Column,
        nth: usize,
        classpath: &'a str,
    ) -> Self {
        let ours = column.library != Library::Redisson;
        let watched = column.library == Library::Watched;
        let cluster = ours.then(|| Cluster::start(redis, program, nth, watched));
        let directory = TempDir::new().expect("a directory");
        Self { column, classpath, redis: redis.url(), cluster, directory }
    }

    /// A JVM whose acts go to the file of that name.
    fn peer(&self, holder: &str, file: &str) -> Peer {
        let lease = if self.column.own { 0 } else { self.column.lease.as_millis() };
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-cp", self.classpath, "Peer"]);
        match &self.cluster {
            None => command.args(["redisson", self.redis.trim_end_matches("/0"), "none"]),
            Some(cluster) => {
                let urls: Vec<&str> = cluster.nodes.iter().map(|node| node.url.as_str()).collect();
                let watched = self.column.library == Library::Watched;
                let socket = if watched { cluster.socket.as_path() } else { Path::new("") };
                command.env("SOLOIST_LIFELINE", socket);
                command.args(["soloist", &urls.join(","), &cluster.token])
            }
        };
        command.args([&lease.to_string(), holder]).arg(self.file(file)).arg(ahead().to_string());
        let log = std::fs::OpenOptions::new().append(true).create(true).open(log());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.expect("a log"));
        let mut child = command.spawn().expect("java starts");
        let (commands, stdout) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Who asked may have gone.
                sender.send(line).ok();
            }
        });
        Peer { child, commands: commands.expect("a pipe"), answers }
    }

    fn file(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Two JVMs want the lock `name`; the first one works.
    fn pair(&self, name: &str, does: &str) -> [Peer; 2] {
        let mut pair = [self.peer("first", name), self.peer("second", name)];
        pair[0].ask(&format!("{does} {name}"));
        until("the first works", || {
            self.first_of("second", name).xor(self.first_of("first", name))
        });
        pair[1].ask(&format!("{does} {name}"));
        std::thread::sleep(IN_LINE);
        assert!(self.first_of("second", name).is_none(), "only one works");
        pair
    }

    fn first_of(&self, holder: &str, file: &str) -> Option<Boot> {
        beats(&self.file(file)).into_iter().find(|act| act.holder == holder).map(|act| act.at)
    }

    /// From `since` to the second one's first act.
    fn taken_over(&self, name: &str, since: Boot) -> Option<Duration> {
        let at = within(self.column.lease + BEYOND, || self.first_of("second", name));
        at.map(|at| at.since(since))
    }

    /// From the signal to the other's first act, and to the end of the first JVM.
    fn ended(&self, signal: Signal, nth: usize, of: usize) -> [Option<Duration>; 2] {
        let name = format!("{}-{signal}-{nth}", self.prefix()).to_lowercase();
        let mut pair = self.pair(&name, "ask");
        // Both renew at least every third of a lease. The rounds see all phases alike.
        let phase = self.column.lease.mul_f64((nth as f64 + 0.5) / of as f64 / 3.0);
        std::thread::sleep(phase);
        let before = clock::boot();
        pair[0].signal(signal);
        let ended = match signal {
            Signal::SIGKILL => pair[0].child.wait().ok().map(|_| clock::boot().since(before)),
            _ => None,
        };
        [self.taken_over(&name, before), ended]
    }

    /// For how long both worked after the first one was woken under a lease that had passed on.
    fn paused(&self, does: &str, nth: usize) -> Option<Duration> {
        let name = format!("{}-{does}-{nth}", self.prefix());
        let pair = self.pair(&name, does);
        let before = clock::boot();
        pair[0].signal(Signal::SIGSTOP);
        self.taken_over(&name, before)?;
        std::thread::sleep(self.column.lease.saturating_sub(clock::boot().since(before)));
        std::thread::sleep(IN_LINE);
        let woken = clock::boot();
        pair[0].signal(Signal::SIGCONT);
        std::thread::sleep(WATCH);
        let acts = beats(&self.file(&name));
        drop(pair);
        Some(overlap(&acts, woken))
    }

    fn handed(&self, hands: usize) -> Vec<Duration> {
        let name = format!("{}-handed", self.prefix());
        let mut pair = [self.peer("first", &name), self.peer("second", &name)];
        pair[0].ask(&format!("take {name}"));
        let mut hand = |nth: usize| {
            let [first, second] = &mut pair;
            let (has, gets) = if nth.is_multiple_of(2) { (first, second) } else { (second, first) };
            gets.say(&format!("take {name}"));
            std::thread::sleep(IN_LINE / 2);
            let gave = has.ask("give");
            Boot(gets.answer()).since(Boot(gave))
        };
        // The first ones only make both JVMs warm.
        (0..hands + 10).map(&mut hand).skip(10).collect()
    }

    /// Of one JVM, by 1 and by 16 threads, a second.
    fn pairs(&self) -> [f64; 2] {
        let mut peer = self.peer("first", "pairs");
        peer.ask(WARM_UP);
        [1, 16].map(|threads| {
            let count = peer.ask(&format!("pairs {threads} {}", COUNTED.as_millis()));
            count as f64 / COUNTED.as_secs_f64()
        })
    }

    /// Of the names of locks: the columns have one Redis.
    fn prefix(&self) -> String {
        let words = self.column.name.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.join("-").to_lowercase()
    }
}

/// An act of the first that stands after the second one's first is an overlap, whatever its clock says.
fn overlap(acts: &[Beat], woken: Boot) -> Duration {
    let begun = acts.iter().position(|act| act.holder == "second").unwrap_or(acts.len());
    let last = acts[begun..].iter().rev().find(|act| act.holder == "first");
    // Less than the clock can show is not nothing.
    last.map_or(Duration::ZERO, |act| act.at.since(woken).max(Duration::from_millis(1)))
}

/// A JVM that runs `Peer`.
struct Peer {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
}

impl Peer {
    fn say(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("it reads");
    }

    /// What it answers: a number, or 0.
    fn answer(&self) -> u64 {
        let answer = self.answers.recv_timeout(PATIENCE).expect("it answers");
        answer.parse().unwrap_or_default()
    }

    fn ask(&mut self, command: &str) -> u64 {
        self.say(command);
        self.answer()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("our own child");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn measure(site: &Site<'_>, plan: &Plan<'_>) -> [String; ROWS.len()] {
    let rounds = |count: usize| if site.column.own { count.div_ceil(3) } else { count };
    let (kills, pauses) = (rounds(plan.kills), rounds(plan.pauses));
    let tell = |what: &str, outcome: &dyn std::fmt::Debug| {
        eprintln!("{}, {what}: {outcome:?}, load {}", site.column.name, load());
    };
    let killed: Vec<_> = (0..kills).map(|nth| site.ended(Signal::SIGKILL, nth, kills)).collect();
    tell("kill -9", &killed);
    let stopped: Vec<_> = (0..kills).map(|nth| site.ended(Signal::SIGTERM, nth, kills)).collect();
    tell("SIGTERM", &stopped);
    let [blind, asking] = ["work", "ask"].map(|does| {
        let outcomes: Vec<_> = (0..pauses).map(|nth| site.paused(does, nth)).collect();
        tell("paused", &outcomes);
        spans(&outcomes, 100)
    });
    let handed: Vec<_> = site.handed(plan.hands).into_iter().map(Some).collect();
    let [one, sixteen] = site.pairs();
    let first = |all: &[[Option<Duration>; 2]], at: usize| {
        spans(&all.iter().map(|one| one[at]).collect::<Vec<_>>(), 100)
    };
    [
        first(&killed, 0),
        first(&killed, 1),
        first(&stopped, 0),
        blind,
        asking,
        spans(&handed, 99),
        format!("{one:.0} / {sixteen:.0}"),
    ]
}

/// p50 and another percentile in ms, and how often it was never.
fn spans(all: &[Option<Duration>], percent: usize) -> String {
    let mut times: Vec<Duration> = all.iter().flatten().copied().collect();
    times.sort_unstable();
    let never = all.len() - times.len();
    if times.is_empty() {
        return "never".to_owned();
    }
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).max(1);
        format!("{:.0}", times[rank - 1].as_secs_f64() * 1000.0)
    };
    let text = format!("{} / {}", at(50), at(percent));
    if never > 0 { format!("{text}, {never} never") } else { text }
}

/// Pairs over HTTP by hand, at the first of two nodes, and what each costs that node.
fn bare(redis: &RedisServer, program: Option<&Path>) {
    let cluster = Cluster::start(redis, program, COLUMNS.len(), false);
    let node = &cluster.nodes[0];
    let address = node.url.trim_start_matches("http://").to_owned();
    let door = Door { address, token: cluster.token.as_str().into() };
    println!(
        "\n| acquire + release over bare HTTP | pairs a second | ms of the node's CPU a pair |"
    );
    println!("| --- | --- | --- |");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(pairs(&door, 1, Duration::from_secs(1)));
    for connections in [1, 16] {
        let before = cpu_ms(node.pid());
        let count = runtime.block_on(pairs(&door, connections, COUNTED)) as f64;
        let cost = (cpu_ms(node.pid()) - before) / count;
        println!(
            "| {connections} connections | {:.0} | {cost:.2} |",
            count / COUNTED.as_secs_f64()
        );
    }
}

async fn pairs(door: &Door, connections: usize, long: Duration) -> usize {
    let until = clock::boot() + long;
    let mut all = tokio::task::JoinSet::new();
    for nth in 0..connections {
        let door = door.clone();
        all.spawn(async move {
            let mut program = Program::at(&door, &format!("bare-{nth}")).await;
            let mut count = 0;
            while clock::boot() < until {
                let lease = program.take(&format!("bare-{nth}"), 10_000).await;
                program.release(&lease).await;
                count += 1;
            }
            count
        });
    }
    all.join_all().await.into_iter().sum()
}

/// proc_pid_stat(5), fields 14 and 15, which are hundredths of a second.
fn cpu_ms(pid: Pid) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = &stat[stat.rfind(')').expect("a name") + 2..];
    let ticks = rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() * 10.0
}

/// What CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC, which `System.nanoTime` reads, in nanoseconds.
fn ahead() -> u64 {
    let mono = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux");
    let mono = Duration::new(mono.tv_sec() as u64, mono.tv_nsec() as u32);
    clock::boot().0.saturating_sub(mono.as_nanos() as u64)
}

/// The first three words of proc_loadavg(5).
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").expect("Linux");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
