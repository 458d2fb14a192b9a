//! Exactly one, proved: real nodes, a real store, scripts that write down what they do, and every fault we can make.
//!
//! `cargo test --features full --test faults` runs the named scenarios and the measured take-overs; with `-- --all` random rounds on every store, too. The
//! last line is the verdict. The test binary takes arguments of its own, as it is also the script that the nodes run:
//!
//! ```text
//! faults [--all]            without `--all`, no random rounds
//! faults NAME...            the scenarios whose names contain one of these; `rounds`, `take_over`, `dispatch_redis`,
//!                           `dispatch_sqlite` and `checker` count; `--seed N` repeats a `dispatch_`
//! faults round --seed N     one random round (also SEED=N); `--store cluster`, `sqlite`, `postgres`, `mariadb`,
//!                           `postgres+zookeeper`, `mariadb+zookeeper` or `redis+zookeeper`: on that store
//! faults sabotage [BUG...]  every planted bug must be found (by a debug build, which has them)
//! faults --soak 2h          random rounds until the time is over; `--store` as above
//! ```
//!
//! A failure keeps its directory, with every record and the log of every node, and prints the command that repeats
//! it. docs/faults.md says what each fault does.

mod acts;
mod cluster;
mod dice;
mod dispatch;
mod ensemble;
mod faults;
mod file;
#[path = "../it/support/machine.rs"]
#[allow(
    dead_code,
    reason = "shared with tests/it and tests/turns, whose tests are judged in other ways"
)]
mod machine;
#[path = "../it/support/mariadb.rs"]
#[allow(dead_code, reason = "shared with tests/it, which does more with it")]
mod mariadb;
mod measure;
mod members;
mod network;
mod node;
mod place;
#[path = "../it/support/postgres.rs"]
#[allow(dead_code, reason = "shared with tests/it, which does more with it")]
mod postgres;
mod processes;
mod proxy;
#[path = "../it/support/redis.rs"]
#[allow(dead_code, reason = "shared with tests/it, which does more with it")]
mod redis;
#[path = "../it/support/cluster.rs"]
#[allow(dead_code, reason = "shared with tests/it, which does more with it")]
mod redis_cluster;
mod round;
mod sabotage;
mod scenarios;
mod schedule;
#[path = "../it/support/service.rs"]
#[allow(dead_code, reason = "shared with tests/it, which does more with it")]
mod service;
#[path = "../it/support/small_disk.rs"]
#[allow(dead_code, reason = "shared with tests/it, which fills the disks of servers")]
mod small_disk;
mod sql;
mod store;
#[path = "../it/support/wait.rs"]
#[allow(dead_code, reason = "shared with tests/it, which also waits in asynchronous tests")]
mod wait;
mod witness;
#[path = "../it/support/zookeeper.rs"]
#[allow(dead_code, reason = "shared with tests/it, which does more with it")]
mod zookeeper;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use soloist::clock::boot;
use tempfile::TempDir;

use machine::{Step, Tries};
use place::Place;
use round::Tally;

/// Random rounds of the short set on Redis; on each of [`Place::SHORT`] there is one.
const ROUNDS: u64 = 3;
/// Scenarios wait more than they work.
const AT_ONCE: usize = 3;
/// So do rounds; each has more nodes that work.
const ROUNDS_AT_ONCE: usize = 2;

/// With it the names of all random rounds begin.
const ROUNDS_WORD: &str = "rounds";

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    names: Vec<String>,
    seed: Option<u64>,
    soak: Option<Duration>,
    on: Place,
    list: bool,
    /// Random rounds as well.
    all: bool,
}

fn main() -> ExitCode {
    witness::entry();
    dispatch::entry();
    let asked = asked(std::env::args().skip(1), std::env::var_os("SEED"));
    if asked.list {
        for name in everything().filter(|name| asked.chooses(name)) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    if asked.names.first().is_some_and(|name| name == sabotage::WORD) {
        return if sabotage::run(&asked.names[1..]) == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    network::enter();
    // What went wrong is said once, with the place; a stack trace of the test says nothing more.
    std::panic::set_hook(Box::new(|panic| eprintln!("    {panic}")));
    println!("faults: nodes reach their store through {}", network::in_words());
    let first_seed = asked.seed.unwrap_or_else(|| boot().0 / 1_000_000);
    let mut failures = 0;
    if let Some(time) = asked.soak {
        // Measured on Redis alone.
        if asked.on == Place::REDIS {
            failures += usize::from(!measure::take_overs(60, 15));
        }
        failures += soak(asked.on, first_seed, time);
    } else if asked.names.first().is_some_and(|name| name == "round") {
        failures += rounds(&[(asked.on, 1)], first_seed);
    } else {
        failures += run(&asked, first_seed);
    }
    if failures > 0 {
        println!("faults: {failures} FAILED");
        return ExitCode::FAILURE;
    }
    println!("faults: ok");
    ExitCode::SUCCESS
}

impl Asked {
    fn chooses(&self, name: &str) -> bool {
        match self.names.is_empty() {
            true => self.all || !name.starts_with(ROUNDS_WORD),
            false => self.names.iter().any(|part| name.contains(part.as_str())),
        }
    }
}

/// The names of all that is run, in order.
fn everything() -> impl Iterator<Item = String> {
    let first = ["checker"].into_iter().chain(scenarios::ALL.iter().map(|one| one.name));
    let dispatch = dispatch::STORES.map(|store| format!("dispatch_{store}"));
    let last = ["take_over", ROUNDS_WORD].map(str::to_owned);
    let others = Place::SHORT.map(rounds_on);
    first.map(str::to_owned).chain(dispatch).chain(last).chain(others)
}

/// Flags that `cargo test` hands to every test program mean nothing here.
fn asked(arguments: impl Iterator<Item = String>, seed: Option<std::ffi::OsString>) -> Asked {
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("a seed is a number: {text}"));
    let seed = seed.and_then(|seed| seed.into_string().ok()).map(|seed| number(&seed));
    let mut asked = Asked { seed, ..Asked::default() };
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--seed" => asked.seed = arguments.next().map(|seed| number(&seed)),
            "--soak" => {
                let text = arguments.next().unwrap_or_default();
                let time = humantime::parse_duration(&text);
                asked.soak = Some(time.unwrap_or_else(|error| panic!("--soak {text:?}: {error}")));
            }
            "--store" => {
                let word = arguments.next().unwrap_or_default();
                asked.on = Place::named(&word).unwrap_or_else(|| {
                    panic!("--store {word:?}: one of {:?}", Place::ALL.map(Place::word))
                });
            }
            "--list" => asked.list = true,
            "--all" => asked.all = true,
            // The only ones with a value of their own that is not joined by `=`.
            "--test-threads" | "--format" | "--color" | "--skip" | "--logfile" | "-Z" => {
                arguments.next();
            }
            flag if flag.starts_with('-') => {}
            name => asked.names.push(name.to_owned()),
        }
    }
    asked
}

/// Runs what was asked for; how much of it failed.
fn run(asked: &Asked, first_seed: u64) -> usize {
    let mut failures = 0;
    if asked.chooses("checker") {
        acts::the_checker_finds_every_planted_overlap();
        schedule::the_same_seed_is_the_same_schedule();
        dispatch::the_judge_finds_every_planted_wrong();
        println!("checker: ok, it finds what it is there for");
    }
    let scenarios: Vec<_> = scenarios::ALL.iter().filter(|one| asked.chooses(one.name)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ok = in_directory(scenario.name, |directory| scenario.run(directory));
                    failed.fetch_add(usize::from(!ok), Ordering::Relaxed);
                }
            });
        }
    });
    failures += failed.into_inner();
    // Alone: it needs the whole machine.
    for store in dispatch::STORES {
        let name = format!("dispatch_{store}");
        if asked.chooses(&name) {
            let run = |directory: &Path| dispatch::run(store, first_seed, directory);
            failures += usize::from(!in_directory(&format!("{name} --seed {first_seed}"), run));
        }
    }
    if asked.chooses("take_over") {
        failures += usize::from(!measure::take_overs(8, 3));
    }
    // The ensemble's first: its servers take longest.
    let others = Place::SHORT.iter().rev().map(|place| (*place, 1));
    let chosen = others.chain([(Place::REDIS, ROUNDS)]);
    let chosen: Vec<_> = chosen.filter(|(on, _)| asked.chooses(&rounds_on(*on))).collect();
    failures + rounds(&chosen, first_seed)
}

/// Gives `work` a directory, which is kept if it fails; `work` answers what is to be printed. It is done again when it did not
/// go as it should and the machine spoiled it; what it answers as wrong is wrong at the first time.
fn in_directory(name: &str, mut work: impl FnMut(&Path) -> Result<String, Vec<String>>) -> bool {
    let mut tries = Tries::of(name);
    loop {
        let directory = tempfile::Builder::new().prefix("soloist-faults-").tempdir();
        let directory: TempDir = directory.expect("a directory");
        tries.begin();
        let result = catch_unwind(AssertUnwindSafe(|| work(directory.path())));
        return match tries.end(result) {
            Step::Again(_) => continue,
            Step::NotJudged(_) => true,
            Step::Passed(result) => verdict(name, directory, result),
            Step::Failed(why) => verdict(name, directory, Err(vec![why])),
        };
    }
}

/// Says what came of it; the directory is kept if anything is wrong.
fn verdict(name: &str, directory: TempDir, result: Result<String, Vec<String>>) -> bool {
    let wrongs = match result {
        Ok(line) => {
            println!("{name}: {line}");
            return true;
        }
        Err(wrongs) => wrongs,
    };
    println!(
        "{name}: FAILED, {} wrong; the records are in {}",
        wrongs.len(),
        directory.keep().display()
    );
    for wrong in wrongs.iter().take(5) {
        println!("    {wrong}");
    }
    println!("    again: cargo test --features full --test faults -- {name}");
    false
}

/// The words that repeat a round.
fn name_of(on: Place, seed: u64) -> String {
    let store = match on {
        Place::REDIS => String::new(),
        other => format!("--store {} ", other.word()),
    };
    format!("round {store}--seed {seed}")
}

fn one_round(on: Place, seed: u64, total: &Mutex<Tally>) -> bool {
    in_directory(&name_of(on, seed), |directory| {
        let tally = round::round(on, seed, directory);
        let line = format!(
            "{} faults, {} starts, acting {} % of the time, all back in {} ms, {} overlaps",
            tally.faults(),
            tally.starts,
            tally.busy(),
            tally.slowest_return.as_millis(),
            tally.wrongs.len()
        );
        let wrongs = tally.wrongs.clone();
        total.lock().unwrap_or_else(PoisonError::into_inner).add(tally);
        if wrongs.is_empty() { Ok(line) } else { Err(wrongs) }
    })
}

/// Runs so many rounds on each of the stores; how many failed.
fn rounds(on: &[(Place, u64)], first_seed: u64) -> usize {
    let totals: Vec<Mutex<Tally>> = on.iter().map(|_| Mutex::default()).collect();
    let each = on.iter().zip(&totals);
    let all: Vec<_> = each
        .flat_map(|((place, count), total)| {
            (0..*count).map(move |nth| (*place, first_seed + nth, total))
        })
        .collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..ROUNDS_AT_ONCE {
            scope.spawn(|| {
                while let Some((place, seed, total)) = all.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let ok = one_round(*place, *seed, total);
                    failed.fetch_add(usize::from(!ok), Ordering::Relaxed);
                }
            });
        }
    });
    for ((place, _), total) in on.iter().zip(&totals) {
        summary(*place, &total.lock().unwrap_or_else(PoisonError::into_inner));
    }
    failed.into_inner()
}

fn soak(on: Place, first_seed: u64, time: Duration) -> usize {
    let (begun, total, mut failed) = (boot(), Mutex::default(), 0);
    let mut seed = first_seed;
    while boot().since(begun) < time {
        failed += usize::from(!one_round(on, seed, &total));
        seed += 1;
    }
    summary(on, &total.into_inner().unwrap_or_else(PoisonError::into_inner));
    failed
}

/// The name of all rounds on a store.
fn rounds_on(on: Place) -> String {
    match on {
        Place::REDIS => ROUNDS_WORD.to_owned(),
        other => format!("{ROUNDS_WORD}_{}", other.word().replace('+', "_")),
    }
}

fn summary(on: Place, total: &Tally) {
    for (kind, count) in &total.faults {
        println!("    {count:5} x {kind}");
    }
    println!(
        "{}: {}, faults: {} ({} left out as documented limits, {} found nothing to harm), starts: {}, \
         acting {} % of the time, slowest return: {} ms, wrong: {}",
        rounds_on(on),
        total.rounds,
        total.faults(),
        total.excluded,
        total.without_target,
        total.starts,
        total.busy(),
        total.slowest_return.as_millis(),
        total.wrongs.len()
    );
}
