//! `docs/embedding.md`: the calls as they stand there, in both languages; and the example of the warehouse.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::driver::clients;
use crate::support::machine::judged;
use crate::support::node::{Ground, SOLOIST};
use crate::support::wait::until;

judged! { the_warehouse_ships_every_order_once_though_a_copy_is_killed }

fn repository(path: &str) -> std::path::PathBuf {
    clients("..").join(path)
}

#[test]
fn the_calls_that_leases_are_explained_with_work() {
    for page in ["docs/embedding.md", "docs/embedding.zh.md"] {
        let text = std::fs::read_to_string(repository(page)).expect("the page");
        let script = text.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
        let script = script.expect("a block of calls");
        let ground = Ground::new("sqlite:soloist.db", "");
        ground.add_user("li", "operator");
        let node = ground.start("node-a");
        let said = ground.must_sh(script, &node);
        for part in ["\"token\":", "\"expires_in_ms\":5000,\"stop\":null", "\"released\":true"] {
            assert!(said.contains(part), "{page}: {part}: {said}");
        }
    }
}

/// Ends what it started, by its process id.
struct Ended(Vec<i32>);

impl Drop for Ended {
    fn drop(&mut self) {
        for id in &self.0 {
            // It may have ended already.
            kill(Pid::from_raw(*id), Signal::SIGTERM).ok();
        }
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

async fn the_warehouse_ships_every_order_once_though_a_copy_is_killed() {
    let state = tempfile::TempDir::new().expect("a directory");
    let ports = [free_port(), free_port()];
    let said = std::fs::File::create(state.path().join("said")).expect("a file");
    let mut run = Command::new("sh")
        .arg(repository("examples/java-warehouse/run.sh"))
        .env("STATE", state.path())
        .env("SOLOIST", SOLOIST)
        .env("LISTEN", format!("127.0.0.1:{}", free_port()))
        .env("PORTS", format!("{} {}", ports[0], ports[1]))
        .env("PAUSE_MS", "100")
        .stdin(Stdio::null())
        .stdout(said.try_clone().expect("another descriptor"))
        .stderr(said)
        .spawn()
        .expect("a shell");
    let mut ended = Ended(vec![i32::try_from(run.id()).expect("a process id")]);
    let text = |name: &str| std::fs::read_to_string(state.path().join(name)).unwrap_or_default();
    let shipped = || {
        let text = text("shipped.csv");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| line.rsplit(',').map(str::to_owned).collect())
            .collect::<Vec<Vec<String>>>()
    };
    until("it says where to sign in", || {
        text("said").contains("works once, for 30 minutes\n").then_some(())
    });
    until("it has said all", || {
        text("said").lines().filter(|line| line.contains("login?link")).nth(1).map(drop)
    });
    let switch = |word: &str| {
        let config = state.path().join("soloist.toml");
        let output = Command::new(SOLOIST)
            .arg("--config")
            .arg(config)
            .args([word, "outbound", "--user", "li"])
            .output();
        assert!(output.expect("soloist starts").status.success(), "{word}");
    };
    switch("on");
    until("five orders are shipped", || (shipped().len() >= 5).then_some(()));
    let first = shipped()[0][1].clone();
    let port = first.trim_start_matches("warehouse-").to_owned();
    let said = text("said");
    let line = said.lines().find(|line| line.contains(&format!(":{port}/"))).expect("where it is");
    let id = line
        .split("kill -9 ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("its process id");
    kill(Pid::from_raw(id.parse().expect("a number")), Signal::SIGKILL).expect("a copy");
    let orders =
        std::fs::read_to_string(repository("examples/outbound/orders.csv")).expect("the orders");
    let wanted: BTreeSet<&str> =
        orders.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    until("all orders are shipped", || (shipped().len() >= wanted.len()).then_some(()));
    let copies: BTreeSet<String> = shipped().into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(copies.len(), 2, "the other went on: {copies:?}");
    let file = text("shipped.csv");
    let numbers: Vec<&str> = file.lines().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(numbers.iter().copied().collect::<BTreeSet<_>>(), wanted);
    assert_eq!(numbers.len(), wanted.len(), "one was shipped twice");
    switch("off");
    kill(Pid::from_raw(i32::try_from(run.id()).expect("a process id")), Signal::SIGTERM)
        .expect("our own child");
    ended.0.clear();
    until("all has ended", || run.try_wait().expect("our own child"));
}
