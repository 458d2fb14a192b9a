//! Soloist beside peers, on this machine, in one run: take-over, and what becomes of the child when the lock is lost.
//!
//! `cargo bench --features full --bench peers [-- --kills N --pauses N --only NAME]`, or `-- --with redisson` for our Java library beside that one (`--hands N`;
//! `--program PATH`: nodes of another `soloist`).
//!
//! Every system runs the same child (this program again, which writes down every 5 ms that it lives) on two holders
//! that want the same lock for [`TTL`]. The wrappers around the libraries lie in `benches/peers/`, use each library the
//! way its own page shows, with automatic renewal, and are installed under `target/peers/`. What cannot be installed
//! or started is said, never left out in silence.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use soloist::clock;

#[expect(dead_code, reason = "the bench of leases renews, too")]
#[path = "leases/http.rs"]
mod http;
#[path = "peers/link.rs"]
mod link;
#[path = "peers/lives.rs"]
mod lives;
#[path = "peers/redisson.rs"]
mod redisson;
#[path = "peers/round.rs"]
mod round;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;
#[path = "peers/systems.rs"]
mod systems;
#[path = "peers/table.rs"]
mod table;

use round::{Act, Outcome, Round};
use systems::System;

/// Of every lock. The systems' own defaults differ; the table names them.
pub const TTL: Duration = Duration::from_secs(5);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, file] = words.as_slice()
        && word == lives::WORD
    {
        lives::child(Path::new(file));
    }
    if !words.iter().any(|word| word == "--bench") {
        println!("this measures only under `cargo bench`");
        return;
    }
    let after = |flag: &str| {
        let at = words.iter().position(|word| word == flag);
        at.and_then(|at| words.get(at + 1)).map(String::as_str)
    };
    let count = |flag: &str, default: usize| {
        after(flag).and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let (kills, pauses) = (count("--kills", 10), count("--pauses", 3));
    let only = after("--only");
    if let Some(with) = after("--with") {
        assert!(with == "redisson", "--with knows redisson, not {with}");
        let (hands, program) = (count("--hands", 100), after("--program").map(Path::new));
        redisson::compare(&redisson::Plan { kills, pauses, hands, only, program });
        return;
    }

    let begun = clock::boot();
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for system in systems::all() {
        if only.is_some_and(|only| !system.name.contains(only)) {
            continue;
        }
        match (system.prepare)() {
            Ok(version) => rows.push(measure(&system, &version, kills, pauses)),
            Err(why) => missing.push(format!("{}: {why}", system.name)),
        }
    }
    println!("{}", table::render(&rows, kills, pauses));
    for missing in &missing {
        println!("Not measured: {missing}");
    }
    println!("The run took {:.0?}.", clock::boot().since(begun));
    assert!(only.is_some() || rows.len() > 2, "Soloist and at least two others");
}

fn measure(system: &System, version: &str, kills: usize, pauses: usize) -> table::Row {
    let outcomes = |act: Act, count: usize| -> Vec<Outcome> {
        (1..=count)
            .map(|nth| {
                let outcome = Round::begin(system).carry_out(act);
                eprintln!("{} {act:?} {nth}: {outcome:?}", system.name);
                outcome
            })
            .collect()
    };
    table::Row {
        name: format!("{} {version}", system.name),
        defaults: system.defaults,
        killed: outcomes(Act::Kill, kills),
        stopped: outcomes(Act::Terminate, kills),
        paused: outcomes(Act::Pause, pauses),
        cut: outcomes(Act::CutOff, pauses),
    }
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where peers are installed.
fn installed() -> PathBuf {
    root().join("target/peers")
}

/// Runs a command to its end; what it said, or why not.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(format!("{command:?}: {}", said(&output.stderr)))
    }
}
