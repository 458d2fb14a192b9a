//! The stores of servers beside each other: the figures that a store must keep, each with durable settings, in one table.
//!
//! `cargo bench --features full --bench stores [-- --only WHAT --on redis|postgres|mariadb|zookeeper --quick]`; `--only` and `--on` may be there more than once.
//!
//! | `--only` | what |
//! | --- | --- |
//! | `acquire` | a lease taken on one connection, counted in fsyncs that are timed in between |
//! | `switch` | switched on -> the script started, two nodes |
//! | `kill` | `kill -9` of the holder -> started by the other node, lease 5 s |
//! | `dispatch` | tasks claimed and done, 50 in flight by tens |
//! | `leases` | what 10,000 leases of 30 s cost the server |
//! | `idle` | what 1,000 jobs that nobody wants cost a node and the server |
//!
//! ZooKeeper, three servers with a session for each node, stands beside PostgreSQL and MariaDB in `switch` and `kill`. Redis keeps an append-only file, synced every second, as docs/stores.md asks for; "Redis, always" syncs before each answer, as the others
//! do. Stores take turns within each measurement, or are measured at the same time where they only wait. `acquire` and `switch` are measured in
//! rounds, in turns with each other, and their figures are medians of the rounds. `--quick` shows that all of
//! it works, in a minute, and nothing else.

use std::path::Path;

#[path = "stores/calls.rs"]
mod calls;
#[path = "stores/disk.rs"]
mod disk;
#[path = "stores/kept.rs"]
mod kept;
#[path = "stores/nodes.rs"]
mod nodes;
#[path = "dispatch/ours.rs"]
mod ours;
#[expect(dead_code, reason = "another bench uses the rest of it")]
#[path = "push_and_takeover/pair.rs"]
mod pair;
#[expect(dead_code, reason = "another bench uses the rest of it")]
#[path = "push_and_takeover/processes.rs"]
mod processes;
#[path = "push_and_takeover/script.rs"]
mod script;
#[path = "stores/server.rs"]
mod server;
#[path = "stores/sheet.rs"]
mod sheet;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;
/// What `ours` gives back.
mod table {
    /// One run.
    pub(crate) struct Figure {
        pub tasks: usize,
        pub seconds: f64,
        /// Of the server, in seconds.
        pub cpu: f64,
        #[expect(dead_code, reason = "another bench shows it")]
        pub in_flight: usize,
    }
}

use server::Kind;
use sheet::Sheet;

/// How much is measured.
struct Plan {
    /// Of these two, each with servers of its own.
    rounds: usize,
    acquires: usize,
    switches: usize,
    kills: usize,
    tasks: usize,
    dispatches: usize,
    leases: usize,
    lease_seconds: u64,
    /// A node that has just started reads the history of fifty jobs a second.
    idle_settling: u64,
    idle_seconds: u64,
}

const WHOLE: Plan = Plan {
    rounds: 5,
    acquires: 1_000,
    switches: 100,
    kills: 16,
    tasks: 20_000,
    dispatches: 2,
    leases: 10_000,
    lease_seconds: 20,
    idle_settling: 25,
    idle_seconds: 20,
};

const QUICK: Plan = Plan {
    rounds: 1,
    acquires: 50,
    switches: 5,
    kills: 1,
    tasks: 500,
    dispatches: 1,
    leases: 200,
    lease_seconds: 4,
    idle_settling: 3,
    idle_seconds: 3,
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, file] = words.as_slice()
        && word == script::WORD
    {
        script::run(Path::new(file));
    }
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    // Without the flag everything; each time that it is there one more.
    let named = |flag: &str, what: &str| {
        let mut all = words.windows(2).filter(|two| two[0] == flag).peekable();
        all.peek().is_none() || all.any(|two| two[1] == what)
    };
    let plan = if words.iter().any(|word| word == "--quick") { QUICK } else { WHOLE };
    let wanted = |what: &str| named("--only", what);
    let on = |kind: &Kind| named("--on", kind.word());
    let all: Vec<Kind> = Kind::ALL.into_iter().filter(on).collect();
    // What is not on the disk before the answer is no measure for nodes: Redis as it should be set up is.
    let nodes: Vec<Kind> = all.iter().copied().filter(|kind| *kind != Kind::RedisAlways).collect();
    // The figures of ZooKeeper are those of nodes; what else there is lies with the server beside it.
    let calls: Vec<Kind> = all.iter().copied().filter(|kind| !kind.coordinated()).collect();
    let set_up: Vec<Kind> = nodes.iter().copied().filter(|kind| !kind.coordinated()).collect();

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (begun, stolen) = (soloist::clock::boot(), disk::stolen());
    println!("load average before: {}", disk::load());
    let mut sheet = Sheet::new(&all);
    runtime.block_on(async {
        let (mut acquired, mut switched) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            if wanted("acquire") {
                acquired.push(calls::acquire(&calls, plan.acquires).await);
            }
            if wanted("switch") {
                switched.push(nodes::switch(&nodes, plan.switches).await);
            }
        }
        if wanted("acquire") {
            calls::tell_acquired(acquired, &mut sheet);
        }
        if wanted("switch") {
            nodes::tell_switched(&switched, &mut sheet);
        }
        if wanted("kill") {
            nodes::kill(&nodes, plan.kills, &mut sheet).await;
        }
        if wanted("dispatch") {
            calls::dispatch(&calls, plan.tasks, plan.dispatches, &mut sheet).await;
        }
        if wanted("leases") {
            kept::measure(&set_up, plan.leases, plan.lease_seconds, &mut sheet).await;
        }
        if wanted("idle") {
            let (settling, seconds) = (plan.idle_settling, plan.idle_seconds);
            nodes::idle(&set_up, settling, seconds, &mut sheet);
        }
    });
    println!("{}", sheet.render());
    let lasted = soloist::clock::boot().since(begun).as_secs_f64();
    let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    println!(
        "load average after: {}; {lasted:.0} s, of which the host took {:.1} % of the machine away",
        disk::load(),
        (disk::stolen() - stolen) / lasted / cores * 100.0
    );
}
