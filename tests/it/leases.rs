//! What is held is listed by every node and by the command line: jobs, whoever defines them, and what `soloist run` holds,
//! wherever that was started.

use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

const OUTBOUND: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"600\"]\n";
const LABELS: &str = "[[job]]\nname = \"labels\"\ncommand = [\"sleep\", \"600\"]\n";

/// `soloist run --name deploy -- sleep 600`, under way.
struct Deploy(Child);

impl Deploy {
    fn start(ground: &Ground) -> Self {
        let mut command = ground.command(&["run", "--name", "deploy", "--", "sleep", "600"]);
        command.env("SOLOIST_NODE", "cron-1").stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("soloist starts"))
    }

    /// Asks it to stop, and waits until it has.
    fn stop(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a process id"));
        kill(pid, Signal::SIGTERM).expect("our own child");
        until("soloist run ends", || self.0.try_wait().expect("our own child"));
    }
}

impl Drop for Deploy {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to end.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Name, kind and node of each.
fn brief(answer: &Value) -> Vec<[&str; 3]> {
    let leases = answer["leases"].as_array().expect("leases");
    leases
        .iter()
        .map(|lease| ["name", "kind", "node"].map(|part| lease[part].as_str().expect("a text")))
        .collect()
}

fn on_the_command_line(ground: &Ground) -> Value {
    serde_json::from_str(&ground.must(&["lease", "list", "--json"])).expect("JSON")
}

async fn until_held(api: &Api, wanted: &[[&str; 3]]) -> Value {
    until_async(&format!("these are held: {wanted:?}"), async || {
        let answer = api.get("/api/v1/leases").await;
        (brief(&answer) == wanted).then_some(answer)
    })
    .await
}

const DEPLOY: [&str; 3] = ["deploy", "command", "cron-1"];

#[tokio::test(flavor = "multi_thread")]
async fn what_soloist_run_holds_is_listed_while_it_runs_and_not_after() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("vera", "viewer");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("vera"));
    assert_eq!(api.get("/api/v1/leases").await, json!({"leases": []}));
    let empty = ground.must(&["lease", "list"]);
    assert!(empty.contains("A lease is") && empty.contains("soloist run --name"), "{empty}");

    let deploy = Deploy::start(&ground);
    let held = until_held(&api, &[DEPLOY]).await;
    let listed = on_the_command_line(&ground);
    for part in ["name", "kind", "holder", "node", "token", "since"] {
        assert_eq!(listed["leases"][0][part], held["leases"][0][part], "{listed}");
    }
    let table = ground.must(&["lease", "list"]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = table.lines().map(words).collect();
    assert_eq!(
        lines[0],
        ["NAME", "KIND", "HOLDER", "TOKEN", "SINCE", "LEFT", "WATCHED"],
        "{table}"
    );
    let token = held["leases"][0]["token"].to_string();
    assert_eq!(lines[1][..4], [DEPLOY[0], DEPLOY[1], DEPLOY[2], &token], "{table}");
    assert_eq!((lines.len(), lines[1].len()), (2, 8), "SINCE is two words: {table}");

    deploy.stop();
    assert_eq!(api.get("/api/v1/leases").await, json!({"leases": []}));
    assert_eq!(ground.must(&["lease", "list"]), empty);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_listed_as_a_job_on_every_node_whoever_defines_it() {
    let redis = RedisServer::start(&[]);
    let (one, two) = (Ground::new(&redis.url(), OUTBOUND), Ground::new(&redis.url(), LABELS));
    one.add_user("li", "operator");
    let li = one.token("li");
    let (a, b) = (one.start("node-a"), two.start("node-b"));
    let deploy = Deploy::start(&two);
    let (at_a, at_b) = (a.api(&li), b.api(&li));
    at_a.switch("outbound", true).await;
    at_b.switch("labels", true).await;
    let all = [DEPLOY, ["labels", "job", "node-b"], ["outbound", "job", "node-a"]];
    let held = until_held(&at_a, &all).await;
    until_held(&at_b, &all).await;
    for ground in [&one, &two] {
        assert_eq!(brief(&on_the_command_line(ground)), all);
    }
    let job = at_a.get("/api/v1/jobs/outbound").await;
    for part in ["node", "token", "since"] {
        assert_eq!(held["leases"][2][part], job["lease"][part], "as in the Job: {job}");
    }
    deploy.stop();
    at_b.switch("labels", false).await;
    until_held(&at_a, &all[2..]).await;
}

/// A node runs on for a month: libfaketime sets its clocks, also the one that cannot be set.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_nobody_has_used_for_a_month_are_forgotten_by_a_node_that_runs() {
    let ground = Ground::new("sqlite:soloist.db", OUTBOUND);
    ground.add_user("li", "operator");
    ground.must(&["hold", "outbound", "--user", "li", "--reason", "stocktaking"]);
    let clock = ground.path("clock");
    let set = |days: u32| {
        // In one step: an empty file would be another clock.
        std::fs::write(ground.path("clock.new"), format!("+{days}d")).expect("a file");
        std::fs::rename(ground.path("clock.new"), &clock).expect("renamed");
    };
    set(0);
    let library = crate::support::service::faketime();
    let clocks = [
        ("LD_PRELOAD", &*library),
        ("FAKETIME_TIMESTAMP_FILE", &*clock),
        ("FAKETIME_NO_CACHE", Path::new("1")),
    ];
    // Who makes the token has the clocks of the node that is to believe it.
    let token = ground.command(&["token", "new", "--user", "li"]).envs(clocks).output();
    let token = String::from_utf8(token.expect("soloist starts").stdout).expect("UTF-8");
    let node = ground.start_with("node-a", &clocks);
    let li = node.api(token.trim());
    let ask = json!({"holder": "shop-7f", "request_id": "one"});
    let (status, grant) = li.call(Method::POST, "/api/v1/leases/order-7", Some(ask)).await;
    assert_eq!(status, StatusCode::OK, "{grant}");
    let end = json!({"secret": grant["secret"]});
    let (status, said) = li.call(Method::POST, "/api/v1/leases/order-7/release", Some(end)).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let kept = || {
        let names = std::process::Command::new("sqlite3")
            .args(["-cmd", ".timeout 10000"])
            .arg(ground.path("soloist.db"))
            .arg("SELECT job FROM records WHERE job IN ('order-7', 'outbound')")
            .output();
        String::from_utf8(names.expect("sqlite3 starts").stdout).expect("UTF-8")
    };
    assert_eq!(kept(), "order-7\noutbound\n");
    let mut days = 28;
    until("it is forgotten", || {
        // A round a day; one in which the clock is found to have jumped removes nothing.
        days += 1;
        set(days);
        (kept() == "outbound\n").then_some(())
    });
    assert!(days >= 30, "after {days} days");
}
