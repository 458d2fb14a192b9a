//! SIGHUP: sent by a process it reloads the configuration, sent by the kernel (the terminal is gone) it ends the node in
//! order.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::api::Api;
use crate::support::node::{Ground, SOLOIST};
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
pub(crate) struct Logged {
    child: Child,
    log: PathBuf,
    pub(crate) url: String,
}

impl Logged {
    pub(crate) fn start(ground: &Ground) -> Self {
        Self::of(ground, ground.command(&["serve", "--node", "node-a"]))
    }

    fn of(ground: &Ground, mut command: Command) -> Self {
        let log = ground.path("log");
        let child = command
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("soloist starts");
        let url = until("it listens", || address(&std::fs::read_to_string(&log).ok()?));
        Self { child, log, url }
    }

    pub(crate) fn hang_up(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(pid, Signal::SIGHUP).expect("our own child");
    }

    pub(crate) fn until_said(&self, what: &str) -> String {
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

/// Nobody may ever write into a pipe, and a file system may not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_is_refused_at_a_reload_and_one_that_does_not_end_is_told_and_holds_up_nothing() {
    let ground = Ground::new("sqlite:soloist.db", &job("outbound", "one", ""));
    let (file, cert) = (ground.path("soloist.toml"), ground.path("cert.pem"));
    let mut node = Logged::start(&ground);
    let make_pipe = |path: &PathBuf| {
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    };
    std::fs::remove_file(&file).expect("removed");
    make_pipe(&file);
    node.hang_up();
    let log = node.until_said("the configuration is not taken");
    assert!(log.contains("soloist.toml") && log.contains("is no regular file"), "{log}");

    std::fs::remove_file(&file).expect("removed");
    make_pipe(&cert);
    let tls = "tls = { cert = \"cert.pem\", key = \"cert.pem\" }\n";
    write(&ground, "sqlite:soloist.db", &format!("{tls}{}", job("outbound", "one", "")));
    until("a second hangup is answered", || {
        node.hang_up();
        std::thread::sleep(std::time::Duration::from_millis(100));
        std::fs::read_to_string(&node.log).ok()?.contains("is still being read").then_some(())
    });
    // What it was asked meanwhile is done when that has ended.
    let both = [job("outbound", "one", ""), job("labels", "labels", "")].concat();
    write(&ground, "sqlite:soloist.db", &both);
    std::fs::write(&cert, "").expect("the reader is there");
    let log = node.until_said("the configuration is read again");
    assert!(log.contains("labels"), "{log}");

    // And one that hangs does not keep it from its end.
    write(&ground, "sqlite:soloist.db", &format!("{tls}{}", job("outbound", "one", "")));
    node.hang_up();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let pid = Pid::from_raw(i32::try_from(node.child.id()).expect("a process id"));
    kill(pid, Signal::SIGTERM).expect("our own child");
    let status = until("it ends", || node.child.try_wait().expect("our own child"));
    assert_eq!(status.code(), Some(0));
}

/// How a node is told its file: README does it without a word, in the directory of the file.
const TOLD: [&str; 3] = ["in its directory", "--config", "SOLOIST_CONFIG"];

fn told(ground: &Ground, how: &str) -> Command {
    let mut command = Command::new(SOLOIST);
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SOLOIST_"))
    {
        command.env_remove(name);
    }
    command.args(["serve", "--node", "node-a"]).current_dir(ground.path("")).stdin(Stdio::null());
    match how {
        "--config" => command.arg("--config").arg(ground.path("soloist.toml")),
        "SOLOIST_CONFIG" => command.env("SOLOIST_CONFIG", ground.path("soloist.toml")),
        _ => &mut command,
    };
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_empty_or_unreadable_changes_nothing_however_the_node_was_told_it() {
    type Fault = fn(&std::path::Path);
    type Do = Box<dyn Fn(&std::path::Path)>;
    let write = |text: &'static [u8]| {
        move |file: &std::path::Path| std::fs::write(file, text).expect("written")
    };
    for how in TOLD {
        let ground = Ground::new("sqlite:soloist.db", &job("outbound", "one", ""));
        let file = ground.path("soloist.toml");
        let good = std::fs::read(&file).expect("a file");
        ground.add_user("li", "operator");
        let token = ground.token("li");
        let node = Logged::of(&ground, told(&ground, how));
        let api = Api::new(&node.url, &token);
        api.switch("outbound", true).await;
        until_act(&ground, "one start");
        let run = until_async("its run is told", async || {
            let run = shown(&api, "outbound").await?["run"]["id"].clone();
            run.is_string().then_some(run)
        })
        .await;
        let gone: Fault = |file| std::fs::remove_file(file).expect("removed");
        let directory: Fault = |file| {
            std::fs::remove_file(file).expect("removed");
            std::fs::create_dir(file).expect("made");
        };
        let dangling: Fault = |file| {
            std::fs::remove_file(file).expect("removed");
            std::os::unix::fs::symlink("away.toml", file).expect("a link");
        };
        let faults: [(&str, Do, &str); 8] = [
            ("gone", Box::new(gone), "cannot be read"),
            ("a directory", Box::new(directory), "cannot be read"),
            ("a link to nothing", Box::new(dangling), "cannot be read"),
            ("empty", Box::new(write(b"")), "no_jobs = true"),
            ("blank", Box::new(write(b" \n\t\r\n")), "no_jobs = true"),
            ("comments", Box::new(write(b"# store = \"sqlite:x\"\n")), "no_jobs = true"),
            ("without jobs", Box::new(write(b"lease_ttl = \"9s\"\n")), "no_jobs = true"),
            ("not UTF-8", Box::new(write(b"# \xff\n")), "is not UTF-8"),
        ];
        for (nth, (fault, make, said)) in faults.iter().enumerate() {
            make(&file);
            node.hang_up();
            let log = until(&format!("{fault} is refused"), || {
                let log = std::fs::read_to_string(ground.path("log")).ok()?;
                (log.matches("the configuration is not taken").count() > nth).then_some(log)
            });
            let last =
                log.lines().rfind(|line| line.contains("soloist.toml") && line.contains("ERROR"));
            assert!(last.is_some_and(|line| line.contains(said)), "{how}, {fault}: {log}");
            let now = shown(&api, "outbound").await.expect("a job");
            assert_eq!(now["run"]["id"], run, "{how}, {fault}");
            if file.is_dir() {
                std::fs::remove_dir(&file).expect("ours");
            } else {
                std::fs::remove_file(&file).ok();
            }
            std::fs::write(&file, &good).expect("written");
        }
        node.hang_up();
        node.until_said("the configuration is read again");
        assert!(!acts(&ground).contains("one term"), "{}", acts(&ground));
        // The word, and it is done.
        std::fs::write(&file, "no_jobs = true\n").expect("written");
        node.hang_up();
        until_act(&ground, "one term");
        // What it began with it needs, also when it has no jobs.
        std::fs::remove_file(&file).expect("removed");
        node.hang_up();
        until("the missing file is said", || {
            let log = std::fs::read_to_string(ground.path("log")).ok()?;
            (log.matches("the configuration is not taken").count() > faults.len()).then_some(())
        });
    }
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
    let mut terminal = Command::new("script")
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
