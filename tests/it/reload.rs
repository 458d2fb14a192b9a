//! SIGHUP: sent by a process it reloads the configuration, sent by the kernel (the terminal is gone) it ends the node in
//! order.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::api::Api;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

/// A script that notes its start and TERM, and exits with 0 when the file `stop-WORD` is there.
fn script(word: &str) -> String {
    format!(
        "trap 'echo {word} term >> acts; exit 0' TERM; echo {word} start >> acts; until [ -e stop-{word} ]; do sleep 0.02; done"
    )
}

fn job(name: &str, word: &str, more: &str) -> String {
    format!(
        "[[job]]\nname = {name:?}\ncommand = [\"sh\", \"-c\", {:?}]\nrepeat = \"10ms\"\nmin_uptime = \"0s\"\n{more}\n",
        script(word)
    )
}

/// A node whose log goes to a file.
struct Logged {
    child: Child,
    log: PathBuf,
    url: String,
}

impl Logged {
    fn start(ground: &Ground) -> Self {
        let log = ground.path("log");
        let child = ground
            .command(&["serve", "--node", "node-a"])
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("soloist starts");
        let url = until("it listens", || address(&std::fs::read_to_string(&log).ok()?));
        Self { child, log, url }
    }

    fn hang_up(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(pid, Signal::SIGHUP).expect("our own child");
    }

    fn until_said(&self, what: &str) -> String {
        until(&format!("the log says {what:?}"), || {
            let log = std::fs::read_to_string(&self.log).ok()?;
            log.contains(what).then_some(log)
        })
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn address(log: &str) -> Option<String> {
    let (_, rest) = log.split_once("listening on ")?;
    Some(rest.split_whitespace().next()?.to_owned())
}

fn acts(ground: &Ground) -> String {
    std::fs::read_to_string(ground.path("acts")).unwrap_or_default()
}

fn until_act(ground: &Ground, act: &str) {
    until(act, || acts(ground).lines().any(|line| line == act).then_some(()));
}

fn write(ground: &Ground, store: &str, rest: &str) {
    let text = format!("store = {store:?}\nlisten = \"127.0.0.1:0\"\n{rest}");
    std::fs::write(ground.path("soloist.toml"), text).expect("written");
}

async fn shown(api: &Api, name: &str) -> Option<Value> {
    let jobs = api.get("/api/v1/jobs").await;
    jobs["jobs"].as_array()?.iter().find(|job| job["name"] == name).cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_hangup_by_a_process_the_run_goes_on_and_the_next_is_by_the_new_definition() {
    let redis = RedisServer::start(&[]);
    let before = [job("outbound", "one", ""), job("extra", "extra", "")].concat();
    let ground = Ground::new(&redis.url(), &before);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = Logged::start(&ground);
    let api = Api::new(&node.url, &token);
    for (name, word) in [("outbound", "one"), ("extra", "extra")] {
        api.switch(name, true).await;
        until_act(&ground, &format!("{word} start"));
    }
    let run = shown(&api, "outbound").await.expect("a job")["run"]["id"].clone();
    let more = "title = \"After\"\nlease_ttl = \"9s\"";
    let after = [job("outbound", "two", more), job("labels", "labels", "")].concat();
    write(&ground, &format!("{}1", redis.url()), &after);
    let mut live = api.live().await;
    node.hang_up();
    let log = node.until_said("the configuration is read again");
    assert!(log.contains("store has changed in the configuration and needs a restart"), "{log}");

    // At once: the title, a job that came, one that went and was stopped with its grace.
    while live.frame().await["jobs"].as_array().is_none_or(|jobs| jobs.len() != 2) {}
    assert_eq!(live.job("outbound")["title"], "After");
    until_act(&ground, "extra term");
    assert!(shown(&api, "extra").await.is_none());
    assert_eq!(live.job("outbound")["run"]["id"], run, "it goes on");
    api.switch("labels", true).await;
    until_act(&ground, "labels start");
    assert!(
        !acts(&ground).contains("one term") && !acts(&ground).contains("two"),
        "{}",
        acts(&ground)
    );

    // With the next run: the command and the lease.
    File::create(ground.path("stop-one")).expect("a file");
    until_act(&ground, "two start");
    let longer = |job: &Value| job["lease"]["expires_in_ms"].as_u64() > Some(6_000);
    live.until("outbound", "its lease is longer", longer).await;
    assert!(!acts(&ground).contains("one term"), "{}", acts(&ground));
    // What was wanted is still wanted when the job comes back.
    write(&ground, &redis.url(), &before);
    File::create(ground.path("stop-extra")).expect("a file");
    node.hang_up();
    until("extra runs again", || (acts(&ground).matches("extra start").count() > 1).then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_configuration_changes_nothing_and_every_problem_is_logged() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), &job("outbound", "one", ""));
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = Logged::start(&ground);
    let api = Api::new(&node.url, &token);
    api.switch("outbound", true).await;
    until_act(&ground, "one start");
    let broken = job("outbound", "two", "title = \"After\"\nlease_ttl = \"10ms\"\ncolour = 1");
    write(&ground, &redis.url(), &broken);
    node.hang_up();
    let log = node.until_said("the configuration is not taken");
    for part in ["soloist.toml:", "job.outbound.lease_ttl", "job.outbound.colour"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    File::create(ground.path("stop-one")).expect("a file");
    until("it runs again", || (acts(&ground).matches("one start").count() > 1).then_some(()));
    assert!(!acts(&ground).contains("two"), "{}", acts(&ground));
    assert_eq!(shown(&api, "outbound").await.expect("a job")["title"], "outbound");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_closes_ends_the_node_in_order() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), &job("outbound", "one", ""));
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let serve = ground.command(&["serve", "--node", "node-a"]);
    let words: Vec<String> = std::iter::once(serve.get_program())
        .chain(serve.get_args())
        .map(|word| format!("'{}'", word.to_str().expect("UTF-8")))
        .collect();
    // script(1) of util-linux gives it a terminal of its own.
    let mut terminal = std::process::Command::new("script")
        .args(["-qefc", &format!("exec {}", words.join(" ")), "/dev/null"])
        .current_dir(ground.path("."))
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .stdout(File::create(ground.path("log")).expect("a file"))
        .spawn()
        .expect("script(1) is installed");
    let url =
        until("it listens", || address(&plain(&std::fs::read_to_string(ground.path("log")).ok()?)));
    let api = Api::new(&url, &token);
    api.switch("outbound", true).await;
    until_act(&ground, "one start");
    let _left_over = LeftOver(Pid::from_raw(until("the node is its child", || {
        let pid = terminal.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    })));
    until_async("the run is known", async || {
        shown(&api, "outbound").await?["run"]["id"].is_string().then_some(())
    })
    .await;
    terminal.kill().expect("our own child");
    terminal.wait().expect("and waited for");
    until_act(&ground, "one term");
    let end = until("the end is recorded", || {
        let runs: Value =
            serde_json::from_str(&ground.must(&["runs", "outbound", "--json"])).ok()?;
        runs["runs"][0]["end"].as_str().map(str::to_owned)
    });
    assert_eq!(end, "stopped", "not lost");
    until("the node has left", || ground.must(&["nodes"]).contains("No node").then_some(()));
}

/// A node that is nobody's child once its terminal is gone.
struct LeftOver(Pid);

impl Drop for LeftOver {
    fn drop(&mut self) {
        // It should have ended by itself.
        kill(self.0, Signal::SIGKILL).ok();
    }
}

/// Without the colours of a terminal.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}
