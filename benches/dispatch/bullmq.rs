//! BullMQ: installed from npm, run by `bullmq.mjs`.

use std::process::Command;

use super::support::redis::RedisServer;
use super::table::Figure;
use super::{installed, root};

const BULLMQ: &str = "6.7.0";
const IOREDIS: &str = "5.11.0";

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(format!("{command:?}: {}", said(&output.stderr)))
    }
}

/// Its version, or why it cannot be measured.
pub(crate) fn install() -> Result<String, String> {
    run(Command::new("node").arg("--version"))
        .map_err(|why| format!("{why}; Debian: apt-get install nodejs npm"))?;
    let directory = installed().join("bullmq");
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    run(Command::new("npm")
        .current_dir(&directory)
        .args(["install", "--no-audit", "--no-save"])
        .args([format!("bullmq@{BULLMQ}"), format!("ioredis@{IOREDIS}")]))?;
    Ok(BULLMQ.to_owned())
}

/// One run.
pub(crate) fn run_on(server: &RedisServer, in_flight: usize, tasks: usize) -> Figure {
    let said = run(Command::new("node")
        .current_dir(installed().join("bullmq"))
        .arg(root().join("benches/dispatch/bullmq.mjs"))
        .args([server.url(), in_flight.to_string(), tasks.to_string()]))
    .unwrap_or_else(|why| panic!("{why}"));
    let last = said.lines().last().unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(last).expect("JSON");
    let number = |name: &str| value[name].as_f64().expect("a figure");
    Figure {
        tasks,
        seconds: number("seconds"),
        cpu: number("cpu"),
        in_flight: number("in_flight") as usize,
    }
}
