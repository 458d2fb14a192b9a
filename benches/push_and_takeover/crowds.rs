//! Many jobs at once: switched on together, and taken over together from a node that dies.
//!
//! The script is the smallest there is, because a thousand of them start at once: a shell makes an empty file and waits for
//! its end without another process. The file's time is when it began, up to a tick of the kernel too early (some ms).
//! `run.started` of the API is not used: what it means, the begin of the run or the word of it, differs between versions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use soloist::clock;

use super::pair::{Side, end, know_each_other, wall_us};
use super::processes::{Cpu, Family};
use super::support::api::Api;
use super::support::node::Node;
use super::support::redis::RedisServer;
use super::support::wait::PATIENCE;
use super::table::rank;

/// How many requests are under way at a time: enough that the node always has something to do.
const CALLERS: usize = 32;
/// Between two looks at all jobs: looking costs something.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a job may take, one after the other.
const PATIENCE_PER_JOB: Duration = Duration::from_millis(200);
/// How often the CPU time is noted, so that it can be told for the instant of the last start.
const NOTE_EVERY: Duration = Duration::from_millis(20);

/// What one round showed: first, p50, p99 and last start in ms, user and system CPU in ms a job.
type Figures = [f64; 6];

/// What is measured in a round.
const KINDS: [&str; 3] = [
    "switched on: each from its own request",
    "switched on: all from the first request",
    "`kill -9` of the node that runs them",
];

pub(crate) async fn measure(sides: &[Side], sizes: &[usize], rounds: usize) {
    if sizes.is_empty() || rounds == 0 {
        return;
    }
    let mut table = String::new();
    for &jobs in sizes {
        let mut seen = vec![[const { Vec::<Figures>::new() }; KINDS.len()]; sides.len()];
        for nth in 1..=rounds {
            for (side, seen) in sides.iter().zip(&mut seen) {
                let round = round(side, jobs).await;
                eprintln!("{jobs} jobs, round {nth}, {}: {round:.1?}", side.label);
                seen.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
            }
        }
        for (nth, kind) in KINDS.iter().enumerate() {
            for (side, seen) in sides.iter().zip(&seen) {
                let cells: Vec<String> = (0..6).map(|at| median(&seen[nth], at)).collect();
                let cells = cells.join(" | ");
                writeln!(table, "| {jobs} | {kind} | {} | {cells} |", side.label)
                    .expect("a string");
            }
        }
    }
    println!(
        "\nCrowds: medians of {rounds} rounds, lease 5 s, one node that runs all and then a second one that takes over. Requests by HTTP, {CALLERS} at a time. \
         CPU is that of the whole machine, the bench's own requests included, from the first request or the kill to the last start.\n\n\
         | jobs | milliseconds to start | soloist | first | p50 | p99 | last | user CPU a job | system CPU a job |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n{table}"
    );
}

fn median(rounds: &[Figures], at: usize) -> String {
    let mut all: Vec<f64> = rounds.iter().map(|figures| figures[at]).collect();
    all.sort_by(f64::total_cmp);
    let digits = if at < 4 { 0 } else { 2 };
    format!("{:.digits$}", rank(&all, 50))
}

/// Nodes that are gone before their Redis is, also after a failure.
struct Nodes(Vec<Node>);

impl Drop for Nodes {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

async fn round(side: &Side, count: usize) -> [Figures; 3] {
    // It looks like a store that is old: a young one would grant nothing for a lease.
    let (redis, marks) = (RedisServer::start(&[]), Marks::new());
    let mut jobs = "lease_ttl = \"5s\"\n".to_owned();
    let names: Vec<String> = (0..count).map(|nth| format!("job-{nth}")).collect();
    for name in &names {
        let command = marks.command();
        writeln!(jobs, "[[job]]\nname = {name:?}\ncommand = {command}").expect("a string");
    }
    let ground = side.ground(&redis.url(), &jobs);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let mut nodes = Nodes(vec![ground.start("node-1")]);
    let first = nodes.0[0].api(&token);
    know_each_other(&first, &["node-1"], None).await;

    let (cpu, from_us) = (Watch::start(), wall_us());
    let sent = switch_all_on(&first, &names).await;
    let starts = marks.all_at("node-1", count).await;
    let spent = cpu.spent(from_us, &starts, count);
    let own = figures(starts.iter().map(|(job, at)| at - sent[job]), spent);
    let together = figures(starts.values().map(|at| at - from_us), spent);

    nodes.0.push(ground.start("node-2"));
    let second = nodes.0[1].api(&token);
    know_each_other(&second, &["node-1", "node-2"], None).await;
    all_shown(&second, count).await;
    let mut dying = nodes.0.remove(0);
    let left_behind = Family::of(dying.pid());
    let (cpu, from_us) = (Watch::start(), wall_us());
    dying.kill();
    let starts = marks.all_at("node-2", count).await;
    let spent = cpu.spent(from_us, &starts, count);
    left_behind.ended();
    [own, together, figures(starts.values().map(|at| at - from_us), spent)]
}

/// Files that say when each job began at each node, in memory.
struct Marks(tempfile::TempDir);

impl Marks {
    fn new() -> Self {
        let directory = tempfile::TempDir::new_in("/dev/shm").expect("a directory in memory");
        let mode = nix::sys::stat::Mode::S_IRWXU;
        nix::unistd::mkfifo(&directory.path().join("end"), mode).expect("a pipe");
        Self(directory)
    }

    /// The command of every job, as TOML.
    fn command(&self) -> String {
        let directory = self.0.path().display();
        // Nobody ever writes to the pipe, so the shell waits until it is opened, that is for good.
        let script = format!(": > {directory}/$SOLOIST_JOB.$SOLOIST_NODE; : < {directory}/end");
        format!("[\"/bin/sh\", \"-c\", {script:?}]")
    }

    /// When each job began at `node`, in microseconds of the wall clock; waits for all.
    async fn all_at(&self, node: &str, count: usize) -> HashMap<String, i64> {
        let look = async || {
            let entries = std::fs::read_dir(self.0.path()).expect("it is ours");
            let files = entries.map(|entry| entry.expect("an entry"));
            let begun = files.filter_map(|file| {
                let name = file.file_name().into_string().ok()?;
                let job = name.strip_suffix(node)?.strip_suffix('.')?;
                let about = file.metadata().expect("nobody removes it");
                Some((job.to_owned(), about.mtime() * 1_000_000 + about.mtime_nsec() / 1_000))
            });
            begun.collect::<HashMap<_, _>>()
        };
        all_of(count, &format!("started at {node}"), look, HashMap::len).await
    }
}

/// Waits until `api` shows the run of every job.
async fn all_shown(api: &Api, count: usize) {
    let look = async || {
        let jobs = api.get("/api/v1/jobs").await;
        let jobs = jobs["jobs"].as_array().expect("jobs");
        jobs.iter().filter(|job| job["run"]["pid"].is_u64()).count()
    };
    all_of(count, "shown as running", look, |shown| *shown).await;
}

fn patience(count: usize) -> Duration {
    PATIENCE + PATIENCE_PER_JOB * u32::try_from(count).expect("a crowd")
}

/// What `look` finds once it is about all.
async fn all_of<T>(
    count: usize,
    what: &str,
    look: impl AsyncFn() -> T,
    size: impl Fn(&T) -> usize,
) -> T {
    let patience = patience(count);
    let begun = clock::boot();
    loop {
        let found = look().await;
        if size(&found) == count {
            return found;
        }
        let patient = clock::boot().since(begun) < patience;
        assert!(patient, "after {patience:?} only {} of {count} are {what}", size(&found));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// From times in microseconds. The time of a file may be a little too early.
fn figures(times: impl Iterator<Item = i64>, (user, system): (f64, f64)) -> Figures {
    let mut sorted: Vec<f64> = times.map(|us| (us as f64 / 1000.0).max(0.0)).collect();
    sorted.sort_by(f64::total_cmp);
    [sorted[0], rank(&sorted, 50), rank(&sorted, 99), rank(&sorted, 100), user, system]
}

/// Switches every job on, and says when each request was sent.
async fn switch_all_on(api: &Api, names: &[String]) -> HashMap<String, i64> {
    let (names, next) = (Arc::new(names.to_vec()), Arc::new(AtomicUsize::new(0)));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (api, names, next) = (api.clone(), Arc::clone(&names), Arc::clone(&next));
        callers.spawn(async move {
            let mut sent = Vec::new();
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                sent.push((name.clone(), wall_us()));
                api.switch(name, true).await;
            }
            sent
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

/// Notes the machine's CPU time now and then, until it is asked.
struct Watch {
    over: Arc<AtomicBool>,
    notes: std::thread::JoinHandle<Vec<(i64, Cpu)>>,
}

impl Watch {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&over);
        let first = (wall_us(), Cpu::now());
        let notes = std::thread::spawn(move || {
            let mut notes = vec![first];
            while !its.load(Ordering::Relaxed) {
                std::thread::sleep(NOTE_EVERY);
                notes.push((wall_us(), Cpu::now()));
            }
            notes
        });
        Self { over, notes }
    }

    /// User and system time a job, in ms, until the last of `starts`.
    fn spent(self, from_us: i64, starts: &HashMap<String, i64>, count: usize) -> (f64, f64) {
        self.over.store(true, Ordering::Relaxed);
        let notes = self.notes.join().expect("it only reads");
        let last = starts.values().copied().max().unwrap_or(from_us);
        let (first, end) = (notes[0].1, notes.iter().find(|(at, _)| *at >= last));
        let end = end.or(notes.last()).expect("the first at least").1;
        let each = |spent: Duration| spent.as_secs_f64() * 1000.0 / count as f64;
        (each(end.user - first.user), each(end.system - first.system))
    }
}
