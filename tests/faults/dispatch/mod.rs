//! Dispatch under load and faults: ten thousand tasks, every kind of rule, two nodes, ten collectors, all of which die.
//!
//! Collectors are processes of their own (`collector`) that speak HTTP as any client does and write a ledger; nodes and
//! collectors are killed with -9 and frozen, and the connections to Redis cut, at random from a printed seed, while
//! every reading of the sources is held against the law that nothing is lost. When all is done the ledger is judged
//! (`checks`): one live claim per task, only the current token's result, gap, window and cap by the store's clock,
//! every task done exactly once. `planted` shows that the judge finds what it is there for.

mod checks;
mod collector;
mod field;
mod http;
mod ledger;
mod planted;
mod sources;

pub(crate) use collector::entry;
pub(crate) use planted::the_judge_finds_every_planted_wrong;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use soloist::clock::boot;
use soloist::store::dispatch::TaskId;

use crate::dice::Dice;
use field::Field;

/// The stores it is held against; the scenario's name is `dispatch_` and this.
pub(crate) const STORES: [&str; 2] = ["redis", "sqlite"];
/// Longer than any run takes, on a machine with other things to do, too.
const PATIENCE: Duration = Duration::from_secs(240);
const FAULTS_END: Duration = Duration::from_secs(20);

/// Runs it on `store`; what is to be printed, or everything that is wrong.
pub(crate) fn run(store: &str, seed: u64, directory: &Path) -> Result<String, Vec<String>> {
    let mut field = Field::start(store, seed, directory);
    let tasks = field.put_tasks();
    let begun = boot();
    field.send_collectors();
    let mut dice = Dice::new(seed);
    let mut faults: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut next_fault = begun + Duration::from_millis(700);
    let mut done = false;
    while !done && boot().since(begun) < PATIENCE {
        thread::sleep(Duration::from_millis(100));
        field.keep_up();
        if boot() >= next_fault && boot().since(begun) < FAULTS_END {
            *faults.entry(field.harm(&mut dice)).or_default() += 1;
            next_fault = boot() + dice.between(300, 1_100);
        }
        if boot().since(begun) > FAULTS_END / 2 {
            field.compare_holdings_once();
        }
        done = field.look();
    }
    let lasted = boot().since(begun);
    let mut wrongs = field.end();
    if !done {
        wrongs.push(format!("not all tasks are done after {PATIENCE:?}: {:?}", field.newest));
    }
    let calls = ledger::calls(field.ledger());
    let verdict = checks::judge(&calls, &sources::by_name(&sources::ALL), &tasks, 1_000);
    for (source, seen) in &verdict.grants {
        let started = field.started.get(source).copied().unwrap_or(0);
        if *seen > started {
            wrongs.push(format!("{source}: {seen} leases were seen, {started} are counted"));
        }
    }
    let seen: u64 = verdict.grants.values().sum();
    let unseen = field.started.values().sum::<u64>().saturating_sub(seen);
    wrongs.extend(verdict.wrongs);
    if !wrongs.is_empty() {
        // Only the first few are printed.
        std::fs::write(directory.join("wrongs.txt"), wrongs.join("\n")).expect("a file");
        wrongs.insert(
            0,
            format!("seed {seed}; {} faults: {faults:?}", faults.values().sum::<usize>()),
        );
        return Err(wrongs);
    }
    Ok(format!(
        "ok, {} tasks done once each in {:.1} s, {seen} leases seen and {unseen} not, {} results accepted, {} stale, {} of {} \
         calls without an answer, {} readings without a loss, clocks tied to {} us, seed {seed}, faults: {faults:?}",
        tasks.len(),
        lasted.as_secs_f64(),
        verdict.accepted,
        verdict.stale,
        verdict.unanswered,
        calls.len(),
        field.readings,
        verdict.clock_room,
    ))
}

/// All tasks: id to source.
fn all_tasks() -> BTreeMap<String, String> {
    let mut tasks = BTreeMap::new();
    for source in &sources::ALL {
        let name = source.name.parse().expect("a name");
        for number in 0..source.tasks {
            tasks.insert(TaskId::of(&name, &key(number)).0, source.name.to_owned());
        }
    }
    tasks
}

/// Of the task with that number, in each source.
fn key(number: usize) -> String {
    format!("order {number}")
}
