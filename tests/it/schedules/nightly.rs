//! `examples/nightly`, as its page says: a retry, an overlap, a run by hand and a lost node.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::machine::judged;
use crate::support::node::SOLOIST;
use crate::support::wait::{PATIENCE, until, within};

judged! {
    the_nightly_example_shows_what_its_page_says
}

/// All of it shows within two minutes.
const MINUTES: Duration = Duration::from_secs(150);

/// `sh examples/nightly/run.sh`, until it is dropped.
struct Example {
    shell: Child,
    state: TempDir,
}

impl Example {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/nightly/run.sh");
        let state = TempDir::new().expect("a directory");
        let said = std::fs::File::create(state.path().join("said")).expect("a file");
        let shell = Command::new("sh")
            .arg(script)
            .env("SOLOIST", SOLOIST)
            .env("STATE", state.path())
            .env("PORTS", "0 0")
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(said)
            .spawn()
            .expect("a shell");
        Self { shell, state }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.state.path().join("said")).unwrap_or_default()
    }

    /// The process that it has printed of that node.
    fn pid(&self, node: &str) -> Pid {
        let said = self.said();
        let rest = said.split_once(&format!("{node} is process ")).expect("printed").1;
        Pid::from_raw(rest.split(':').next().and_then(|pid| pid.parse().ok()).expect("a number"))
    }

    /// What it prints as `s`.
    fn s(&self, args: &[&str]) -> (bool, String) {
        let output = Command::new(SOLOIST)
            .arg("--config")
            .arg(self.state.path().join("soloist.toml"))
            .args(args)
            .output()
            .expect("soloist starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    /// The newest entry that is wanted.
    fn tick(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = within(MINUTES, || {
            let (good, said) = self.s(&["ticks", "settle", "--json"]);
            let list: Value = serde_json::from_str(&said).ok().filter(|_| good)?;
            list["ticks"].as_array()?.iter().find(|tick| wanted(tick)).cloned()
        });
        found.unwrap_or_else(|| {
            panic!("no {what}: {:?}, {}", self.s(&["ticks", "settle"]), self.said())
        })
    }

    /// Ctrl-C.
    fn interrupt(&mut self) {
        let shell = Pid::from_raw(i32::try_from(self.shell.id()).expect("a process id"));
        kill(shell, Signal::SIGTERM).expect("our own child");
        until("all of it has ended", || self.shell.try_wait().expect("our own child"));
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        if self.shell.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.interrupt();
        }
    }
}

async fn the_nightly_example_shows_what_its_page_says() {
    let mut example = Example::start();
    let begun = within(PATIENCE, || example.said().contains("In a second terminal:").then_some(()));
    assert!(begun.is_some(), "{}", example.said());
    let settle = ["trigger", "settle", "--user", "li", "--param", "day=2026-11-11", "--wait"];
    let (good, said) = example.s(&settle);
    assert!(good, "{said}");
    let settled = std::fs::read_to_string(example.state.path().join("settled.txt"));
    let settled = settled.expect("it wrote");
    assert!(settled.contains("2026-11-11 settle@hand:"), "{settled}");

    let at = |tick: &Value, second: &str| {
        tick["tick"].as_str().is_some_and(|name| name.ends_with(&format!(":{second}Z")))
    };
    let retried = example.tick("retry", |tick| tick["outcome"] == "done" && tick["attempt"] == 2);
    assert!(at(&retried, "40"), "{retried}");
    let open = example.tick("tick of a whole minute", |tick| {
        at(tick, "00") && tick["outcome"] == "running" && tick["started"].is_string()
    });
    let (_, status) = example.s(&["status", "settle", "--json"]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let holder = status["lease"]["node"].as_str().expect("a node");
    kill(example.pid(holder), Signal::SIGKILL).expect("a process of ours");
    let name = open["tick"].clone();
    let done =
        example.tick("end of that tick", |tick| tick["tick"] == name && tick["outcome"] == "done");
    assert_eq!(done["attempt"], 2, "the other node went on: {done}");
    let skipped = example.tick("overlap", |tick| tick["outcome"] == "skipped");
    assert!(skipped["why"].as_str().is_some_and(|why| why.contains("was still open")), "{skipped}");
    let other = if holder == "node-a" { "node-b" } else { "node-a" };
    let other = example.pid(other);
    example.interrupt();
    assert!(kill(other, None).is_err(), "nothing is left of it");
}
