//! Measures what issue 2 promises in milliseconds, with release nodes on a real Redis, and prints Markdown tables.
//!
//! `cargo bench --features full --bench push_and_takeover [-- FLAGS]`
//!
//! | flag | what it does | without it |
//! | --- | --- | --- |
//! | `--switches N` | one job: switched on to started; change to frame on both nodes' sockets | 200 |
//! | `--kills N` | one job: `kill -9` of the holder to started by the other, about 6 s a round | 20 |
//! | `--leases 2,5,30` | the leases of these kills, in seconds | `2,5,30`; with `--beside` only 5 |
//! | `--handovers N` | one job: SIGTERM to the holder to started by the other | 20 |
//! | `--idle SECONDS` | what a thousand idle jobs cost, and the memory of what a node keeps ready | 10 |
//! | `--crowds 50,200` | so many jobs switched on at once, then `kill -9` of the node that runs them | none |
//! | `--rounds N` | of each crowd; the table has their medians | 5 |
//! | `--steps N` | the steps of one take-over, seen from Redis | none |
//! | `--beside PATH` | does everything with an older program too, round by round | |
//!
//! A count of 0 leaves the measurement out.
//!
//! The time of a single job is CLOCK_BOOTTIME of this machine: from before the request was sent (or the signal), to what
//! the script itself wrote as its first act, or to the arrival of the frame. The script is this program, started again as
//! `__script FILE`: no shell and no interpreter stand between the spawn and the first time stamp.

use std::path::Path;

#[path = "push_and_takeover/crowds.rs"]
mod crowds;
#[path = "push_and_takeover/idle.rs"]
mod idle;
#[path = "push_and_takeover/pair.rs"]
mod pair;
#[path = "push_and_takeover/processes.rs"]
mod processes;
#[path = "push_and_takeover/script.rs"]
mod script;
#[path = "push_and_takeover/single.rs"]
mod single;
#[path = "push_and_takeover/steps.rs"]
mod steps;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;
#[path = "push_and_takeover/table.rs"]
mod table;

use pair::{Leaving, Side};
use support::redis::RedisServer;
use table::Table;

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
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(&Flags(words)));
}

/// The words of the command line.
struct Flags(Vec<String>);

impl Flags {
    fn after(&self, flag: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == flag)?;
        Some(self.0.get(at + 1).unwrap_or_else(|| panic!("{flag} wants a value")))
    }

    fn count(&self, flag: &str, default: usize) -> usize {
        self.after(flag).map_or(default, |word| number(flag, word))
    }

    fn list(&self, flag: &str, default: &[usize]) -> Vec<usize> {
        self.after(flag).map_or_else(
            || default.to_vec(),
            |words| words.split(',').map(|word| number(flag, word)).collect(),
        )
    }
}

fn number(flag: &str, word: &str) -> usize {
    word.parse().unwrap_or_else(|_| panic!("{flag}: {word:?} is no number"))
}

async fn measure(flags: &Flags) {
    let beside = flags.after("--beside").map(Path::new);
    let sides = Side::all(beside);
    let leases = flags.list("--leases", if beside.is_some() { &[5] } else { &[2, 5, 30] });

    let mut table = Table::new("milliseconds");
    single::switches(&sides, flags.count("--switches", 200), &mut table).await;
    for lease in leases {
        let kills = flags.count("--kills", 20);
        single::leave(&sides, Leaving::Kill, lease, kills, &mut table).await;
    }
    let handovers = flags.count("--handovers", 20);
    single::leave(&sides, Leaving::Terminate, 5, handovers, &mut table).await;
    table.print();

    steps::measure(&sides, flags.count("--steps", 0)).await;
    crowds::measure(&sides, &flags.list("--crowds", &[]), flags.count("--rounds", 5)).await;

    let seconds = flags.count("--idle", 10);
    for side in sides.iter().filter(|_| seconds > 0) {
        println!("\n{}", idle::measure(side, "Redis", &RedisServer::start(&[]).url(), seconds));
        println!("{}", idle::measure(side, "SQLite", "sqlite:soloist.db", seconds));
    }
}
