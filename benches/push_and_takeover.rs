//! Measures what issue 2 promises in milliseconds, with release nodes on a real Redis, and prints the table.
//!
//! `cargo bench --bench push_and_takeover [-- --switches N --kills N --handovers N --idle SECONDS]`
//!
//! Every time is CLOCK_BOOTTIME of this machine: from before the request was sent (or the signal), to what the script
//! itself wrote as its first act, or to the arrival of the frame. The script is this program, started again as
//! `__script FILE`: no shell and no interpreter stand between the spawn and the first time stamp.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use soloist::clock;
use soloist::domain::time::Boot;
use tokio::sync::mpsc;

#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use support::api::{Api, Live};
use support::node::{Ground, Node};
use support::redis::RedisServer;
use support::wait::{PATIENCE, until};

const JOB: &str = "outbound";

/// How often each thing is measured.
struct Counts {
    switches: usize,
    kills: usize,
    handovers: usize,
    idle: u64,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, file] = words.as_slice()
        && word == "__script"
    {
        script(Path::new(file));
    }
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let count = |flag: &str, default: usize| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let counts = Counts {
        switches: count("--switches", 200),
        kills: count("--kills", 20),
        handovers: count("--handovers", 20),
        idle: count("--idle", 10) as u64,
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(&counts));
}

/// The job: says when it began and under which token, then waits for its end.
fn script(file: &Path) -> ! {
    let now = clock::boot();
    #[expect(clippy::disallowed_methods, reason = "a script reads what its node gives it")]
    let token = std::env::var("SOLOIST_TOKEN").unwrap_or_default();
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(file).expect("a file");
    log.write_all(format!("{token} {}\n", now.0).as_bytes()).expect("written");
    loop {
        std::thread::park();
    }
}

async fn measure(counts: &Counts) {
    let mut table = Table::default();
    switches(counts.switches, &mut table).await;
    for ttl in ["2s", "5s", "30s"] {
        leave(Leaving::Kill, ttl, counts.kills, &mut table).await;
    }
    leave(Leaving::Terminate, "5s", counts.handovers, &mut table).await;
    print!("\n{}", table.text);
    println!("\n{}", idle("Redis", &RedisServer::start(&[]).url(), counts.idle));
    println!("{}", idle("SQLite", "sqlite:soloist.db", counts.idle));
}

/// A ground whose job is this program.
fn ground(store: &str, lease_ttl: &str) -> (Ground, Starts) {
    let own = std::env::current_exe().expect("our own path").display().to_string();
    let starts = Starts::new();
    let file = starts.file.display().to_string();
    let jobs = format!(
        "lease_ttl = \"{lease_ttl}\"\n[[job]]\nname = \"{JOB}\"\ncommand = [{own:?}, \"__script\", {file:?}]\n"
    );
    let ground = Ground::new(store, &jobs);
    ground.add_user("li", "operator");
    ground.add_user("wang", "operator");
    (ground, starts)
}

/// Where scripts write their starts: in memory, because a busy disk holds up the first write of a new file for some
/// hundred milliseconds, which would be measured as Soloist's.
struct Starts {
    _directory: tempfile::TempDir,
    file: PathBuf,
}

impl Starts {
    fn new() -> Self {
        let directory = tempfile::TempDir::new_in("/dev/shm").expect("a directory in memory");
        let file = directory.path().join("starts");
        Self { _directory: directory, file }
    }
}

impl std::ops::Deref for Starts {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.file
    }
}

/// The starts that scripts wrote, in order: token and time.
fn starts(file: &Path) -> Vec<(u64, Boot)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let (token, at) = line.split_once(' ')?;
        Some((token.parse().ok()?, Boot(at.parse().ok()?)))
    };
    let starts: Vec<(u64, Boot)> = text.lines().filter_map(line).collect();
    assert!(starts.windows(2).all(|two| two[0].0 < two[1].0), "tokens grow: {starts:?}");
    starts
}

/// When start number `nth` (from 1) was.
fn start(file: &Path, nth: usize) -> Boot {
    until("the script starts", || starts(file).get(nth - 1).map(|(_, at)| *at))
}

/// Frames as they arrive, with the time of arrival.
struct Arrivals {
    frames: mpsc::UnboundedReceiver<(Boot, Value)>,
    reader: tokio::task::JoinHandle<()>,
}

impl Arrivals {
    fn on(mut live: Live) -> Self {
        let (send, frames) = mpsc::unbounded_channel();
        let reader = tokio::spawn(async move {
            loop {
                let frame = live.frame().await;
                let arrived = (clock::boot(), frame["job"].clone());
                if frame["type"] == "job" && send.send(arrived).is_err() {
                    return;
                }
            }
        });
        Self { frames, reader }
    }

    /// When the first frame arrived whose job is as wanted.
    async fn of(&mut self, wanted: impl Fn(&Value) -> bool) -> Boot {
        let reading = async {
            loop {
                let (at, job) = self.frames.recv().await.expect("the socket is open");
                if wanted(&job) {
                    return at;
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the frame comes")
    }

    /// Hangs up before the node does.
    async fn close(self) {
        self.reader.abort();
        self.reader.await.ok();
    }
}

fn has(job: &Value, user: &str) -> bool {
    job["participants"].as_array().is_some_and(|all| all.iter().any(|one| one["user"] == user))
}

async fn switches(count: usize, table: &mut Table) {
    let redis = RedisServer::start(&[]);
    let (ground, file) = ground(&redis.url(), "5s");
    let (a, b) = (ground.start("node-a"), ground.start("node-b"));
    let (li, wang) = (a.api(&ground.token("li")), b.api(&ground.token("wang")));
    let (mut at_a, mut at_b) = (Arrivals::on(li.live().await), Arrivals::on(wang.live().await));

    let mut to_start = Vec::new();
    for nth in 1..=count {
        let (before, _) = (clock::boot(), li.switch(JOB, true).await);
        to_start.push(start(&file, nth).since(before));
        li.switch(JOB, false).await;
        for frames in [&mut at_a, &mut at_b] {
            frames.of(|job| job["state"] == "off").await;
        }
    }
    table.row("participation on -> script started", &to_start, Some(50));

    li.switch(JOB, true).await;
    start(&file, count + 1);
    let mut to_frames = Vec::new();
    for nth in 0..count {
        let on = nth % 2 == 0;
        let (before, _) = (clock::boot(), wang.switch(JOB, on).await);
        let first = at_a.of(|job| has(job, "wang") == on).await;
        let second = at_b.of(|job| has(job, "wang") == on).await;
        to_frames.push(first.max(second).since(before));
    }
    table.row("change -> frame on both nodes' sockets", &to_frames, Some(50));
    at_a.close().await;
    at_b.close().await;
}

/// How a holder leaves.
#[derive(Clone, Copy)]
enum Leaving {
    Kill,
    /// The script ends at once on TERM, so all of it is the hand-over.
    Terminate,
}

async fn leave(how: Leaving, ttl: &str, count: usize, table: &mut Table) {
    let redis = RedisServer::start(&[]);
    let (ground, file) = ground(&redis.url(), ttl);
    let token = ground.token("li");
    let mut nodes = vec![ground.start("node-1"), ground.start("node-2")];
    nodes[0].api(&token).switch(JOB, true).await;
    start(&file, 1);
    let mut takeovers = Vec::new();
    for nth in 1..=count {
        let holder = holder(&nodes[0].api(&token), &file).await;
        let at = nodes.iter().position(|node| node.name == holder).expect("one of ours");
        let mut leaving = nodes.remove(at);
        let before = clock::boot();
        match how {
            Leaving::Kill => leaving.kill(),
            Leaving::Terminate => leaving.signal(nix::sys::signal::Signal::SIGTERM),
        }
        takeovers.push(start(&file, nth + 1).since(before));
        if let Leaving::Terminate = how {
            leaving.wait();
        }
        // The dead one's name is taken for as long as its last report is fresh.
        nodes.push(ground.start(&format!("node-{}", nth + 2)));
    }
    let (what, wanted) = match how {
        Leaving::Kill => ("kill -9", 150),
        Leaving::Terminate => ("SIGTERM", 50),
    };
    table.row(&format!("{what} -> other started, lease {ttl}"), &takeovers, Some(wanted));
}

/// The node whose run is shown under the newest token.
async fn holder(api: &Api, file: &Path) -> String {
    let newest = starts(file).last().map(|(token, _)| *token);
    let mut live = api.live().await;
    let job = live.until(JOB, "the newest run is shown", |job| {
        job["lease"]["token"].as_u64() == newest && job["run"]["pid"].is_u64()
    });
    job.await["lease"]["node"].as_str().expect("a holder").to_owned()
}

/// A node with a thousand jobs that nobody wants.
fn idle(kind: &str, store: &str, seconds: u64) -> String {
    let mut jobs = String::new();
    for nth in 0..1000 {
        writeln!(jobs, "[[job]]\nname = \"job-{nth}\"\ncommand = [\"true\"]").expect("a string");
    }
    let ground = Ground::new(store, &jobs);
    let before = clock::boot();
    let node = ground.start("node-a");
    let started = clock::boot().since(before);
    // A node that has just started is busy with it; two seconds later it is idle.
    std::thread::sleep(Duration::from_secs(2));
    let (cpu, at) = (cpu_time(&node), clock::boot());
    std::thread::sleep(Duration::from_secs(seconds));
    let spent = (cpu_time(&node) - cpu).as_secs_f64() / clock::boot().since(at).as_secs_f64();
    format!(
        "1,000 idle jobs on {kind}: listening after {} ms (wanted < 1000), {:.1} MiB resident (wanted < 100), {:.2} % of a core over {seconds} s (wanted < 2)",
        started.as_millis(),
        resident_kib(&node) as f64 / 1024.0,
        spent * 100.0
    )
}

/// proc_pid_stat(5), fields 14 and 15, in hundredths of a second on every Linux that Rust's standard library runs on.
fn cpu_time(node: &Node) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", node.pid())).expect("it runs");
    let rest = &stat[stat.rfind(')').expect("a name") + 2..];
    let ticks: u64 = rest.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn resident_kib(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

#[derive(Default)]
struct Table {
    text: String,
}

impl Table {
    fn row(&mut self, what: &str, times: &[Duration], wanted_p99_ms: Option<u64>) {
        if self.text.is_empty() {
            self.text = format!(
                "{:<42} {:>5} {:>9} {:>9} {:>9}  wanted p99\n",
                "milliseconds", "n", "p50", "p99", "max"
            );
        }
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        // Nearest rank: with fewer than a hundred measurements, p99 is the maximum.
        let rank = |percent: usize| {
            let at = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len());
            sorted[at - 1].as_secs_f64() * 1000.0
        };
        let wanted = wanted_p99_ms.map_or(String::new(), |ms| format!("<= {ms}"));
        let row = format!(
            "{what:<42} {:>5} {:>9.2} {:>9.2} {:>9.2}  {wanted}\n",
            sorted.len(),
            rank(50),
            rank(99),
            rank(100)
        );
        eprint!("{row}");
        self.text.push_str(&row);
    }
}
