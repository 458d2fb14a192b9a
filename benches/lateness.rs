//! How late a tick's script starts: one job that is due each second, a thousand that are due in the same second, and what a
//! thousand scheduled jobs cost at rest, on Redis and SQLite; beside it Debian's cron on the same machine.
//!
//! `cargo bench --features full --bench lateness [-- --ticks N --jobs N --crowds N --rest SECONDS --cron MINUTES]`
//!
//! The script is this program again: its first act is to write how long ago its tick was due, into memory. Two nodes run.
//! cron gets a table and a `/run` of its own in a mount namespace, which needs root and `cron`; where that is not given the
//! bench says so and measures the rest. A count of 0 leaves the measurement out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::json;

use soloist::clock;

#[expect(dead_code, reason = "another bench uses the rest of it")]
#[path = "push_and_takeover/processes.rs"]
mod processes;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use processes::cpu_time;
use support::node::{Ground, Node};
use support::redis::RedisServer;
use support::wait::until;

/// The first argument that makes this program the script.
const WORD: &str = "__tick";
/// How many switches are under way at a time.
const CALLERS: usize = 16;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, file] = words.as_slice()
        && word == WORD
    {
        return script(Path::new(file));
    }
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let count = |flag: &str, default: usize| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("| due -> script started, ms | p50 | p99 | last |\n| --- | --- | --- | --- |");
    let (jobs, crowds) = (count("--jobs", 1_000), count("--crowds", 3));
    for store in ["Redis", "SQLite"] {
        runtime.block_on(each_second(store, count("--ticks", 100)));
        runtime.block_on(crowd(store, jobs, crowds));
    }
    cron(count("--cron", 5));
    let seconds = count("--rest", 30);
    for store in ["Redis", "SQLite"].into_iter().filter(|_| seconds > 0) {
        for scheduled in [false, true] {
            runtime.block_on(rest(store, jobs, scheduled, seconds));
        }
    }
}

/// The address of an empty store, and its server.
fn empty(store: &str) -> (String, Option<RedisServer>) {
    let redis = (store == "Redis").then(|| RedisServer::start(&[]));
    (redis.as_ref().map_or_else(|| "sqlite:soloist.db".to_owned(), RedisServer::url), redis)
}

/// Writes when the tick was due and how many microseconds ago that is; under cron the minute that began last.
#[expect(clippy::disallowed_methods, reason = "a script reads what its node gives it")]
fn script(file: &Path) {
    let now = Timestamp::now().as_microsecond();
    let told = std::env::var("SOLOIST_TICK_TIME").ok();
    let due = told.map_or(now - now.rem_euclid(60_000_000), |text| {
        text.parse::<Timestamp>().expect("an instant").as_microsecond()
    });
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(file).expect("a file");
    log.write_all(format!("{due} {}\n", now - due).as_bytes()).expect("written");
}

/// Where scripts write, in memory: a busy disk would be measured as Soloist's.
struct Starts {
    directory: tempfile::TempDir,
}

impl Starts {
    fn new() -> Self {
        Self { directory: tempfile::TempDir::new_in("/dev/shm").expect("a directory in memory") }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("starts")
    }

    fn job(&self, name: &str, keys: &str) -> String {
        let own = std::env::current_exe().expect("our own path");
        format!(
            "[[job]]\nname = {name:?}\ncommand = [{own:?}, {WORD:?}, {:?}]\n{keys}\n",
            self.file()
        )
    }

    /// The microseconds of each start, by the instant at which its tick was due.
    fn by_due(&self) -> BTreeMap<i64, Vec<i64>> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        let mut all: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        for (due, late) in whole.filter_map(|line| line.split_once(' ')) {
            let late = late.parse().expect("a number");
            all.entry(due.parse().expect("a number")).or_default().push(late);
        }
        all
    }
}

fn print(what: &str, late: &mut [i64]) {
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100] as f64 / 1_000.0;
    println!("| {what} ({} starts) | {:.1} | {:.1} | {:.1} |", late.len(), at(50), at(99), at(100));
}

async fn switch_on(ground: &Ground, node: &Node, names: &[String]) {
    ground.add_user("li", "operator");
    let api = node.api(&ground.token("li"));
    let one = |name: &String| {
        let (api, path) = (api.clone(), format!("/api/v1/jobs/{name}/participation"));
        async move {
            let (status, said) = api.call(Method::PUT, &path, Some(json!({"on": true}))).await;
            assert_eq!(status, StatusCode::OK, "{said}");
        }
    };
    futures_util::stream::iter(names).map(one).buffer_unordered(CALLERS).collect::<()>().await;
}

/// One job, due each second.
async fn each_second(store: &str, ticks: usize) {
    if ticks == 0 {
        return;
    }
    let (url, _server) = empty(store);
    let starts = Starts::new();
    let ground = Ground::new(&url, &starts.job("tick", "every = \"1s\""));
    let (a, _b) = (ground.start("node-a"), ground.start("node-b"));
    switch_on(&ground, &a, &["tick".to_owned()]).await;
    // The first ones meet a node that has just started.
    let warm = 5;
    let end = clock::boot() + Duration::from_secs(ticks as u64 + 60);
    while starts.by_due().len() < ticks + warm && clock::boot() < end {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mut late: Vec<i64> = starts.by_due().into_values().skip(warm).flatten().collect();
    print(&format!("Soloist, {store}: one job each second"), &mut late);
}

/// Many jobs that are due in the same second.
async fn crowd(store: &str, jobs: usize, crowds: usize) {
    if crowds == 0 {
        return;
    }
    let (url, _server) = empty(store);
    let starts = Starts::new();
    let names: Vec<String> = (0..jobs).map(|nth| format!("crowd-{nth}")).collect();
    let text: String = names.iter().map(|name| starts.job(name, "every = \"30s\"")).collect();
    let ground = Ground::new(&url, &text);
    let (a, _b) = (ground.start("node-a"), ground.start("node-b"));
    switch_on(&ground, &a, &names).await;
    let on = Timestamp::now().as_microsecond();
    let end = clock::boot() + Duration::from_secs(30 * (crowds as u64 + 2));
    let whole = || -> Vec<Vec<i64>> {
        let all = starts.by_due().into_iter().filter(|(due, late)| *due > on && late.len() == jobs);
        all.map(|(_, late)| late).collect()
    };
    while whole().len() < crowds && clock::boot() < end {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let whole = whole();
    assert!(!whole.is_empty(), "no tick was run for all of {jobs} jobs");
    for (nth, mut late) in whole.into_iter().enumerate() {
        print(&format!("Soloist, {store}: {jobs} jobs at once, time {}", nth + 1), &mut late);
    }
}

/// The same by cron: one line, and as many lines as jobs.
fn cron(minutes: usize) {
    if minutes == 0 {
        return;
    }
    for lines in [1, 1_000] {
        let starts = Starts::new();
        let own = std::env::current_exe().expect("our own path");
        let line = format!("* * * * * {} {WORD} {}\n", own.display(), starts.file().display());
        let table = starts.directory.path().join("root");
        std::fs::write(&table, line.repeat(lines)).expect("a table");
        let script = format!(
            "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/spool/cron && mkdir /var/spool/cron/crontabs && \
             mount -t tmpfs tmpfs /etc/cron.d && cp {table} /var/spool/cron/crontabs/root && chmod 600 /var/spool/cron/crontabs/root && \
             mount --bind /dev/null /etc/crontab && exec cron -f",
            table = table.display()
        );
        let mut cron = Command::new("unshare");
        cron.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]);
        let child = cron.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => return println!("cron is not measured: unshare: {error}"),
        };
        let end = clock::boot() + Duration::from_secs(60 * minutes as u64 + 30);
        let enough =
            || starts.by_due().values().filter(|late| late.len() == lines).count() >= minutes;
        while !enough() && clock::boot() < end {
            if let Some(status) = child.try_wait().expect("its state") {
                println!("cron is not measured: root and the package cron are needed ({status})");
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        child.kill().expect("our own child");
        child.wait().expect("it has ended");
        let mut late: Vec<i64> = starts.by_due().into_values().flatten().collect();
        match late.is_empty() {
            true => println!("cron started nothing"),
            false => print(&format!("cron: {lines} lines each minute"), &mut late),
        }
    }
}

/// What a node costs whose jobs wait for their ticks, or that nobody wants.
async fn rest(store: &str, jobs: usize, scheduled: bool, seconds: usize) {
    let (url, _server) = empty(store);
    let mut text = String::new();
    let names: Vec<String> = (0..jobs).map(|nth| format!("rest-{nth}")).collect();
    let keys = if scheduled { "zone = \"Asia/Shanghai\"\nschedule = \"H H * * *\"" } else { "" };
    for name in &names {
        writeln!(text, "[[job]]\nname = {name:?}\ncommand = [\"true\"]\n{keys}").expect("a string");
    }
    let ground = Ground::new(&url, &text);
    let node = ground.start("node-a");
    if scheduled {
        switch_on(&ground, &node, &names).await;
    }
    // A node that has just started, or was just asked much, is busy with it.
    until("the node is at rest", || {
        let before = cpu_time(node.pid());
        std::thread::sleep(Duration::from_secs(1));
        (cpu_time(node.pid()) - before < Duration::from_millis(60)).then_some(())
    });
    let (cpu, at) = (cpu_time(node.pid()), clock::boot());
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let share = (cpu_time(node.pid()) - cpu).as_secs_f64() / clock::boot().since(at).as_secs_f64();
    let kind = if scheduled { "with a schedule, on" } else { "that nobody wants" };
    println!("{jobs} jobs {kind}, {store}: {:.2} % of a core over {seconds} s", share * 100.0);
}
