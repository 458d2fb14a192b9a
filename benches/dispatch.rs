//! Dispatch measured: claim and done beside BullMQ on one Redis, and on a SQLite file; the latency of a claim over HTTP; and memory.
//!
//! `cargo bench --features full --bench dispatch [-- --only store|sqlite|http|million --tasks N --rounds N --million]`
//!
//! Everything runs on this machine: what is compared by the second depends on who else uses its cores, Redis CPU per
//! task hardly does. BullMQ is installed under `target/peers/`. What cannot be installed is said, never left out in
//! silence.

use std::path::{Path, PathBuf};

#[path = "dispatch/bullmq.rs"]
mod bullmq;
#[path = "dispatch/http.rs"]
mod http;
#[path = "dispatch/million.rs"]
mod million;
#[path = "dispatch/ours.rs"]
mod ours;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;
#[path = "dispatch/table.rs"]
mod table;

use support::redis::RedisServer;
use table::{Figure, Row};

/// Tasks in collectors' hands at the same time.
const IN_FLIGHT: [usize; 3] = [50, 1_000, 10_000];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let after = |flag: &str| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1))
    };
    let count = |flag: &str, default: usize| {
        after(flag).and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let only = after("--only").map(String::as_str);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("load average before: {}", load());
    if only.is_none_or(|only| only == "store") {
        runtime.block_on(beside_bullmq(count("--tasks", 50_000), count("--rounds", 3)));
    }
    if only.is_none_or(|only| only == "sqlite") {
        runtime.block_on(on_a_file(count("--tasks", 20_000), count("--rounds", 3)));
    }
    if only.is_none_or(|only| only == "http") {
        runtime.block_on(http::measure(count("--rate", 3_000), count("--seconds", 20)));
    }
    if only == Some("million") || words.iter().any(|word| word == "--million") {
        runtime.block_on(million::measure());
    }
    println!("load average after: {}", load());
}

async fn beside_bullmq(tasks: usize, rounds: usize) {
    let peer = bullmq::install();
    let server = RedisServer::start(&[]);
    let mut rows: Vec<Row> = Vec::new();
    for in_flight in IN_FLIGHT {
        let mut row = Row { in_flight, systems: Vec::new() };
        for round in 0..rounds {
            let mut note = |name: String, figure: Figure| {
                eprintln!("{in_flight} in flight, round {}: {name}: {figure:?}", round + 1);
                row.note(name, figure);
            };
            match &peer {
                Ok(version) => {
                    note(format!("BullMQ {version}"), bullmq::run_on(&server, in_flight, tasks));
                }
                Err(why) => println!("Not measured: BullMQ: {why}"),
            }
            for (batch, sources) in [(1, 1), (10, 1), (10, 100)] {
                let name = format!("Soloist, batch {batch}, sources {sources}");
                let load = ours::Load { in_flight, batch, sources, tasks, round };
                note(name, ours::run_on(&server.url(), || redis_cpu(&server), &load).await);
            }
        }
        rows.push(row);
    }
    println!("{}", table::render(&rows, "Redis", tasks, rounds));
}

/// The same load on a SQLite file in the directory for temporary files. A build of another commit, in turns with this one, is
/// the peer.
async fn on_a_file(tasks: usize, rounds: usize) {
    let mut row = Row { in_flight: IN_FLIGHT[0], systems: Vec::new() };
    for round in 0..rounds {
        for (batch, sources) in [(1, 1), (10, 1), (10, 100)] {
            let dir = tempfile::tempdir().expect("a directory");
            let url = format!("sqlite:{}", dir.path().join("soloist.db").display());
            let load = ours::Load { in_flight: row.in_flight, batch, sources, tasks, round };
            let figure = ours::run_on(&url, own_cpu, &load).await;
            eprintln!("SQLite, round {}: batch {batch}, sources {sources}: {figure:?}", round + 1);
            row.note(format!("Soloist on SQLite, batch {batch}, sources {sources}"), figure);
        }
    }
    println!("{}", table::render(&[row], "process", tasks, rounds));
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}

/// Redis' own CPU time so far, in seconds.
fn redis_cpu(server: &RedisServer) -> f64 {
    let info: String = server.run(&["INFO", "cpu"]);
    let of = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|text| text.trim().parse::<f64>().ok()).expect("a figure of INFO")
    };
    of("used_cpu_user:") + of("used_cpu_sys:")
}

/// This process' CPU time so far, in seconds.
fn own_cpu() -> f64 {
    let used = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
    let used = used.expect("getrusage");
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(used.user_time()) + seconds(used.system_time())
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where peers are installed.
fn installed() -> PathBuf {
    root().join("target/peers")
}
