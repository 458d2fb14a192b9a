//! Rotations measured: how long it takes from a pass to the next grant, with 1, 300 and 3,000 waiters.
//!
//! `cargo bench --features full --bench rotation [-- --only inside|http|recipe --turns N]`
//!
//! Inside a node, through a node's HTTP, and beside the usual recipe (a hash that names whose turn it is, asked again and
//! again) on the same Redis in the same run. What grows with the waiters is the point; the seconds depend on this machine.

#[path = "rotation/crowd.rs"]
mod crowd;
#[path = "rotation/http.rs"]
mod http;
#[path = "rotation/inside.rs"]
mod inside;
#[path = "rotation/recipe.rs"]
mod recipe;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use support::redis::RedisServer;

const WAITERS: [usize; 3] = [1, 300, 3_000];
/// Types of work that take turns.
const TYPES: [&str; 3] = ["invoice", "order", "stock"];

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
    let turns = after("--turns").and_then(|word| word.parse().ok()).unwrap_or(2_000);
    let only = after("--only").map(String::as_str);
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!(
        "| waiters | how | p50 ms | p99 ms | max ms | Redis CPU, us a turn | stolen by the host |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for waiters in WAITERS {
        if wanted("inside") {
            runtime.block_on(inside::measure(waiters, turns)).print(waiters, "inside a node");
        }
        if wanted("http") {
            runtime.block_on(http::measure(waiters, turns)).print(waiters, "HTTP long poll");
        }
        if wanted("recipe") {
            // So many pollers leave the processor no time for more.
            let turns = if waiters > 1_000 { turns.min(200) } else { turns };
            runtime.block_on(recipe::measure(waiters, turns)).print(waiters, "polling recipe");
        }
    }
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

/// Time that a hypervisor gave to others, in seconds of one core (proc_stat(5), eighth of the first line).
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux");
    let ticks = stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.expect("a number") / 100.0
}
