//! A store that forgot a living run is told again by its holder: the same run, as before, on every way to forget.

use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

const JOB: &str = "outbound";

/// Says its progress once, and ends when it is let go, whatever it is told before.
const SCRIPT: &str = "trap '' TERM; echo run >> starts; echo '::progress 3/10 waiting'; \
    until [ -e go ]; do sleep 0.05; done";

/// Two nodes, and a run that says nothing more.
struct World {
    ground: Ground,
    nodes: [Node; 2],
    li: String,
    /// What was shown before the store forgot.
    before: Value,
}

/// What must be as before.
fn essence(job: &Value) -> Value {
    let lease = &job["lease"];
    json!({
        "state": job["state"], "run": job["run"],
        "lease": { "node": lease["node"], "token": lease["token"], "since": lease["since"] },
    })
}

impl World {
    async fn start(store: &str) -> Self {
        let jobs = format!(
            "[[job]]\nname = {JOB:?}\ncommand = [\"sh\", \"-c\", {SCRIPT:?}]\nlease_ttl = \"2s\"\n\
             min_uptime = \"200ms\"\nstop_grace = \"60s\"\n"
        );
        let ground = Ground::new(store, &jobs);
        ground.add_user("li", "operator");
        let li = ground.token("li");
        let nodes = [ground.start("node-a"), ground.start("node-b")];
        let api = nodes[0].api(&li);
        api.switch(JOB, true).await;
        let before = until_async("it runs and has said how far it is", async || {
            let job = api.get(&format!("/api/v1/jobs/{JOB}")).await;
            let said = job["run"]["progress"]["done"] == 3;
            (said && job["state"] == "running").then_some(job)
        })
        .await;
        Self { ground, nodes, li, before }
    }

    /// What the command line says, which needs no account and reads the store itself; null while that is away.
    fn asked(&self, words: &[&str]) -> Value {
        serde_json::from_slice(&self.ground.run(words).stdout).unwrap_or_default()
    }

    fn shown(&self) -> Value {
        self.asked(&["status", JOB, "--json"])
    }

    fn runs(&self) -> Value {
        self.asked(&["runs", JOB, "--json"])["runs"].clone()
    }

    fn starts(&self) -> usize {
        fs::read_to_string(self.ground.path("starts")).expect("it runs").lines().count()
    }

    /// It runs on and both nodes show that as before; its end is in the history as if nothing had been forgotten.
    async fn goes_on(self) {
        until("the store knows it again", || {
            (essence(&self.shown()) == essence(&self.before)).then_some(())
        });
        for node in &self.nodes {
            let (api, mut last) = (node.api(&self.li), Value::Null);
            until_async("the run is shown as before", async || {
                last = essence(&api.get(&format!("/api/v1/jobs/{JOB}")).await);
                (last == essence(&self.before)).then_some(())
            })
            .await;
        }
        assert_eq!(self.starts(), 1, "a second start");
        let api = self.nodes[1].api(&self.li);
        let runs = api.runs(JOB).await;
        assert_eq!(runs.len(), 1, "{runs:?}");
        assert_eq!((&runs[0]["id"], &runs[0]["ended"]), (&self.before["run"]["id"], &Value::Null));
        api.switch(JOB, false).await;
        self.ends();
    }

    /// It was told to stop, is shown so, and ends as the run that it was.
    fn ends(self) {
        let (run, before) = (|job: &Value| job["run"].clone(), self.before["run"].clone());
        let mut last = Value::Null;
        until("it is shown as the run that it is, stopping", || {
            last = self.shown();
            (last["state"] == "stopping" && run(&last) == before).then_some(())
        });
        assert_eq!(last["lease"]["since"], self.before["lease"]["since"]);
        fs::write(self.ground.path("go"), "").expect("written");
        let runs = until("the end is recorded", || {
            let runs = self.runs();
            (runs[0]["end"] != Value::Null).then_some(runs)
        });
        assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
        assert_eq!(runs[0]["end"], "stopped");
        assert_eq!((&runs[0]["id"], &runs[0]["started"]), (&before["id"], &before["started"]));
        assert_eq!(self.starts(), 1, "a second start");
    }
}

/// Whatever a replica can have missed that is promoted, once the job was switched on.
const OF_THE_RUN: [&str; 4] = [
    "soloist:epoch",
    "soloist:{outbound}:lease",
    "soloist:{outbound}:runs",
    "soloist:{outbound}:log",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_lease_was_forgotten_too_is_shown_as_before() {
    let redis = RedisServer::start(&[]);
    let world = World::start(&redis.url()).await;
    redis.rewrite(JOB, |record| {
        for member in ["lease", "run", "last_line", "log_seq"] {
            record.as_object_mut().expect("an object").remove(member);
        }
        record["token"] = 0.into();
    });
    let gone: u64 = redis.run(&[&["DEL"], &OF_THE_RUN[..]].concat());
    assert!(gone >= 2, "{gone} keys");
    world.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_alone_was_forgotten_is_shown_as_before() {
    let redis = RedisServer::start(&[]);
    let world = World::start(&redis.url()).await;
    // The lease had been confirmed by a replica; what came after it had not.
    redis.rewrite(JOB, |record| drop(record.as_object_mut().expect("an object").remove("run")));
    let mut lease = redis.lease(JOB);
    lease["run"] = Value::Null;
    let key = "soloist:{outbound}:lease";
    // Its members in the order in which the program writes them.
    let members = ["token", "run", "owner", "node", "ttl", "since"]
        .map(|member| format!("\"{member}\":{}", lease[member]));
    redis.run::<()>(&["SET", key, &format!("{{{}}}", members.join(",")), "KEEPTTL"]);
    redis.run::<u64>(&["DEL", "soloist:epoch"]);
    world.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_a_store_that_was_emptied_is_shown_until_its_end() {
    let redis = RedisServer::start(&[]);
    let world = World::start(&redis.url()).await;
    // Nobody wants it any more, as far as this store knows.
    redis.run::<()>(&["FLUSHALL"]);
    world.ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_a_store_that_restarted_empty_is_shown_until_its_end() {
    let mut redis = RedisServer::start(&[]);
    let world = World::start(&redis.url()).await;
    redis.restart();
    world.ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_file_forgot_is_shown_as_before() {
    // As in an older copy: with an older head.
    const RUN: &str = "UPDATE records SET body = json_remove(body, '$.run'), \
        head = substr(head, 1, instr(head, ' ')) || (substr(head, instr(head, ' ') + 1) - 1); \
        UPDATE leases SET text = json_set(text, '$.run', NULL)";
    for forget in [RUN, &format!("{RUN}; DELETE FROM entries; DELETE FROM output")] {
        let world = World::start("sqlite:soloist.db").await;
        let file = Connection::open(world.ground.path("soloist.db")).expect("the file opens");
        file.busy_timeout(std::time::Duration::from_secs(10)).expect("set");
        file.execute_batch(&format!("BEGIN IMMEDIATE; {forget}; COMMIT;")).expect("forgotten");
        drop(file);
        world.goes_on().await;
    }
}
