//! Leases for programs over HTTP, measured on real nodes (`soloist serve`): two on one Redis, and one on SQLite.
//!
//! `cargo bench --features full --bench leases [-- --rounds N --only WHAT --on redis|sqlite --quick]`
//!
//! | `--only` | what |
//! | --- | --- |
//! | `wake` | a release to the next one's grant, with 1 and 1,000 who wait |
//! | `stop` | a switch at the other node to the answer of the holder's renewal |
//! | `silent` | the last renewal of a holder that falls silent to the next one's grant; in the first round only |
//! | `pairs` | acquire and release, beside the store's own and beside `SET NX PX` with compare-and-delete |
//! | `renew` | what 2,000 leases cost that one node renews |
//!
//! Figures are medians of the rounds; `--quick` is one short round that shows only that all of it works. Clients speak HTTP by hand over kept connections, so that the
//! processor is left to nodes and Redis. The times are CLOCK_BOOTTIME of this machine, from before a request is sent to the whole answer.

#[path = "leases/http.rs"]
mod http;
#[path = "leases/pairs.rs"]
mod pairs;
#[path = "leases/renewals.rs"]
mod renewals;
#[path = "leases/silent.rs"]
mod silent;
#[path = "leases/stop.rs"]
mod stop;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;
#[path = "leases/table.rs"]
mod table;
#[path = "leases/wake.rs"]
mod wake;
#[path = "leases/world.rs"]
mod world;

use table::Sheets;
use world::{Kind, World};

/// How much is measured.
struct Plan {
    rounds: usize,
    /// Who waits, and how many wakes are noted.
    wakes: [(usize, usize); 2],
    stops: usize,
    silences: usize,
    pair_seconds: u64,
    leases: usize,
    renewal_seconds: u64,
}

const WHOLE: Plan = Plan {
    rounds: 5,
    wakes: [(1, 200), (1_000, 400)],
    stops: 100,
    silences: 20,
    pair_seconds: 2,
    leases: 2_000,
    renewal_seconds: 15,
};

const QUICK: Plan = Plan {
    rounds: 1,
    wakes: [(1, 20), (50, 50)],
    stops: 10,
    silences: 2,
    pair_seconds: 1,
    leases: 100,
    renewal_seconds: 4,
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let after = |flag: &str| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)).map(String::as_str)
    };
    let plan = if words.iter().any(|word| word == "--quick") { QUICK } else { WHOLE };
    let rounds = after("--rounds").and_then(|word| word.parse().ok()).unwrap_or(plan.rounds);
    let wanted = |flag: &str, name: &str| after(flag).is_none_or(|only| only == name);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut sheets = Sheets::default();
    println!("load average before: {}", load());
    let (begun, before) = (soloist::clock::boot(), stolen());
    for round in 1..=rounds {
        for kind in [Kind::Redis, Kind::Sqlite] {
            if wanted("--on", kind.word()) {
                eprintln!("round {round}, {}, load average {}", kind.label(), load());
                runtime.block_on(measure(
                    &plan,
                    kind,
                    round,
                    |what| wanted("--only", what),
                    &mut sheets,
                ));
            }
        }
    }
    sheets.print(rounds);
    let lasted = soloist::clock::boot().since(begun).as_secs_f64();
    let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    println!(
        "load average after: {}; the host took {:.1} % of the machine away meanwhile",
        load(),
        (stolen() - before) / lasted / cores * 100.0
    );
}

async fn measure(
    plan: &Plan,
    kind: Kind,
    round: usize,
    wanted: impl Fn(&str) -> bool,
    sheets: &mut Sheets,
) {
    let world = World::start(kind).await;
    let label = kind.label();
    if wanted("wake") {
        for (waiters, wakes) in plan.wakes {
            let spans = wake::measure(&world, waiters, wakes).await;
            let what = format!("release -> the next one's grant, {waiters} waiting");
            sheets.times.note(&format!("{label} | {what} | {wakes} | 10"), &table::times(spans));
        }
    }
    if wanted("stop") {
        let spans = stop::measure(&world, plan.stops).await;
        let what = match kind {
            Kind::Redis => "switched off at the other node -> the holder's renewal answers",
            Kind::Sqlite => "switched off -> the holder's renewal answers",
        };
        sheets.times.note(&format!("{label} | {what} | {} | 20", plan.stops), &table::times(spans));
    }
    if wanted("silent") && round == 1 {
        for (name, what) in [("silent", "own name"), (world::BRIEF, "job")] {
            let spans = silent::measure(&world, name, plan.silences).await;
            let what = format!(
                "last renewal of a silent holder -> the next one's grant, lease 1 s, {what}"
            );
            let row = format!("{label} | {what} | {} | 1,300 (max)", plan.silences);
            sheets.times.note(&row, &table::times(spans));
        }
    }
    if wanted("pairs") {
        for clients in [1, 16] {
            let seconds = plan.pair_seconds;
            let over = pairs::over_http(&world, clients, seconds).await;
            sheets.pairs.note(&format!("{label} | {clients} | HTTP, one node"), &over);
            let over = pairs::in_the_store(&world, clients, seconds).await;
            sheets.pairs.note(&format!("{label} | {clients} | the store's own calls"), &over);
            if let Some(redis) = &world.redis {
                let plain = pairs::plain(redis, clients, seconds).await;
                let what = "`SET NX PX`, compare-and-delete";
                sheets.pairs.note(&format!("{label} | {clients} | {what}"), &plain);
            }
        }
    }
    if wanted("renew") {
        let figures = renewals::measure(&world, plan.leases, plan.renewal_seconds).await;
        sheets.renewals.note(&format!("{label} | {}", plan.leases), &figures);
    }
}

/// The first three words of proc_loadavg(5).
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").expect("Linux");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Time that a hypervisor gave to others, in seconds of one core (proc_stat(5), eighth of the first line).
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux");
    let ticks = stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.expect("a number") / 100.0
}
