//! Jobs that know the time, end to end: two nodes, one store, real scripts. A tick runs once for each attempt, and leaves an entry
//! whatever becomes of it.
//!
//! `losses`: what a node that ends, dies or stands still costs. `restored`: a store that was put back as it was. `nightly`: the example.

mod losses;
mod nightly;
mod restored;

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::machine::{in_time, judged};
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

mod faults;

judged! {
    every_tick_runs_once_over_two_nodes_and_is_told
    the_holder_is_killed_and_its_tick_is_done_again_under_the_next_attempt
    a_spent_tick_is_told_as_lost_at_once_and_never_run_again
    a_crash_is_retried_for_the_same_tick
    what_was_due_while_no_node_lived_is_made_up_for_as_the_file_says
    an_overlap_is_skipped_or_waits_or_replaces
    a_run_by_hand_gets_its_parameters_and_waits_for_nobody_to_want_the_job
    a_tick_of_a_schedule_that_was_changed_may_be_run_by_its_name
}

/// Each line: `TICK ATTEMPT`, and what the script adds.
const SCRIPT: &str = "#!/bin/sh\necho \"$SOLOIST_TICK $SOLOIST_ATTEMPT begin\" >> acts\n";

struct Stage {
    redis: RedisServer,
    ground: Ground,
    a: Node,
    b: Node,
    li: Api,
}

impl Stage {
    /// Two nodes on one Redis; the job `settle` with these keys, whose script goes on with `rest`.
    fn start(keys: &str, rest: &str) -> Self {
        let redis = RedisServer::start(&[]);
        let url = redis.url();
        Self::on(&url, redis, keys, rest)
    }

    /// The same on another store.
    fn on(url: &str, redis: RedisServer, keys: &str, rest: &str) -> Self {
        let lease = if keys.contains("lease_ttl") { "" } else { "lease_ttl = \"2s\"\n" };
        let job = format!(
            "[[job]]\nname = \"settle\"\ncommand = [\"sh\", \"settle.sh\"]\n{lease}{keys}\n"
        );
        let ground = Ground::new(url, &job);
        std::fs::write(ground.path("settle.sh"), format!("{SCRIPT}{rest}\n")).expect("a script");
        let (a, b) = (ground.start("node-a"), ground.start("node-b"));
        ground.add_user("li", "operator");
        let li = a.api(&ground.token("li"));
        Self { redis, ground, a, b, li }
    }

    fn acts(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.ground.path("acts")).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    fn until_acts(&self, count: usize) -> Vec<String> {
        until(&format!("{count} acts"), || Some(self.acts()).filter(|acts| acts.len() >= count))
    }

    /// How often each tick began under each attempt.
    fn check_once(&self) {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for act in self.acts().into_iter().filter(|act| act.ends_with(" begin")) {
            *seen.entry(act).or_default() += 1;
        }
        assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    }

    async fn ticks(&self, api: &Api) -> Vec<Value> {
        let answer = api.get("/api/v1/jobs/settle/ticks?limit=500").await;
        answer["ticks"].as_array().expect("ticks").clone()
    }

    /// The first entry of that outcome, once there is one.
    async fn until_told(&self, api: &Api, outcome: &str) -> Value {
        until_async(&format!("a tick is {outcome}"), async || {
            self.ticks(api).await.into_iter().find(|tick| tick["outcome"] == outcome)
        })
        .await
    }

    fn holder(&mut self, node: &str) -> (&mut Node, Api) {
        let token = self.li.token().to_owned();
        match node == self.a.name {
            true => (&mut self.a, self.b.api(&token)),
            false => (&mut self.b, self.a.api(&token)),
        }
    }

    async fn at_work(&self) -> String {
        until_async("somebody is at work", async || {
            let job = self.li.get("/api/v1/jobs/settle").await;
            job["run"]["id"].as_str()?;
            job["lease"]["node"].as_str().map(ToOwned::to_owned)
        })
        .await
    }
}

async fn every_tick_runs_once_over_two_nodes_and_is_told() {
    let stage = Stage::start("every = \"1s\"", "");
    stage.li.switch("settle", true).await;
    stage.until_acts(6);
    stage.li.switch("settle", false).await;
    stage.check_once();
    let ticks = stage.ticks(&stage.li).await;
    let done: Vec<&Value> = ticks.iter().filter(|tick| tick["outcome"] == "done").collect();
    assert!(done.len() >= 5, "{ticks:?}");
    // None is left out between the first and the last.
    let due = |tick: &Value| {
        let due = tick["due"].as_str().expect("an instant");
        due.parse::<jiff::Timestamp>().expect("RFC 3339").as_second()
    };
    let oldest = due(done.last().expect("one"));
    let told: u64 = ticks.iter().map(|tick| tick["count"].as_u64().expect("a number")).sum();
    let span = u64::try_from(due(&ticks[0]) - oldest).expect("in order");
    assert!(told > span || ticks[0]["count"].as_u64() > Some(1), "{told} of {span}: {ticks:?}");
    let late = done.iter().filter_map(|tick| tick["late_ms"].as_u64()).max();
    in_time(late < Some(500), || format!("late by {late:?} ms"));
    let job = stage.li.get("/api/v1/jobs/settle").await;
    assert_eq!(job["schedule"]["expressions"], json!(["every 1s"]), "{job}");
    assert!(job["schedule"]["last"]["tick"].is_string(), "{job}");
    let next = stage.li.get("/api/v1/jobs/settle/next?count=3").await;
    assert_eq!(next["next"].as_array().map(Vec::len), Some(3), "also of one that is off");
}

async fn the_holder_is_killed_and_its_tick_is_done_again_under_the_next_attempt() {
    let mut stage = Stage::start("every = \"1h\"", "[ \"$SOLOIST_ATTEMPT\" = 2 ] || sleep 60");
    ask(&stage.li, json!({})).await.expect("taken in");
    let holder = stage.at_work().await;
    let (dying, survivor) = stage.holder(&holder);
    dying.kill();
    let done = stage.until_told(&survivor, "done").await;
    assert_eq!(done["attempt"], 2, "{done}");
    assert_eq!(done["by"], "li", "{done}");
    assert_eq!(stage.acts().len(), 2, "{:?}", stage.acts());
    stage.check_once();
}

async fn a_spent_tick_is_told_as_lost_at_once_and_never_run_again() {
    let mut stage = Stage::start("every = \"1h\"\non_loss = \"spent\"", "sleep 60");
    let tick = ask(&stage.li, json!({})).await.expect("taken in");
    let holder = stage.at_work().await;
    let (dying, survivor) = stage.holder(&holder);
    dying.kill();
    let lost = stage.until_told(&survivor, "lost").await;
    assert_eq!((&lost["tick"], &lost["attempt"]), (&json!(tick), &json!(1)), "{lost}");
    assert!(lost["why"].as_str().is_some_and(|why| why.contains("was lost")), "{lost}");
    assert_eq!(stage.acts().len(), 1, "{:?}", stage.acts());
}

async fn a_crash_is_retried_for_the_same_tick() {
    let keys = "every = \"1h\"\nretries = 2\nbackoff = { first = \"200ms\", max = \"1s\" }";
    let stage = Stage::start(keys, "[ \"$SOLOIST_ATTEMPT\" = 3 ]");
    ask(&stage.li, json!({})).await.expect("taken in");
    let done = stage.until_told(&stage.li, "done").await;
    assert_eq!(done["attempt"], 3, "{done}");
    stage.check_once();
    let names: Vec<String> =
        stage.acts().iter().map(|act| act.split(' ').next().expect("a name").to_owned()).collect();
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
}

async fn what_was_due_while_no_node_lived_is_made_up_for_as_the_file_says() {
    for (missed, first) in [("once", "covered"), ("all", "done"), ("skip", "missed")] {
        let most = if missed == "all" { "missed_most = 50\n" } else { "" };
        let keys = format!("every = \"1s\"\nmissed = \"{missed}\"\n{most}missed_window = \"60s\"");
        let mut stage = Stage::start(&keys, "");
        stage.li.switch("settle", true).await;
        stage.until_acts(2);
        stage.a.kill();
        stage.b.kill();
        let before = stage.acts().len();
        // Longer than the grace of a tick.
        let begun = soloist::clock::boot();
        until("some ticks have passed", || {
            (soloist::clock::boot().since(begun).as_secs() >= 6).then_some(())
        });
        assert_eq!(stage.acts().len(), before, "nobody runs it");
        stage.a = stage.ground.start("node-a");
        let li = stage.a.api(stage.li.token());
        let told = stage.until_told(&li, first).await;
        if missed == "skip" {
            assert_eq!(told["why"], "nobody took it in time", "{told}");
        }
        stage.until_acts(before + 1);
        stage.check_once();
        let mut names: Vec<String> = Vec::new();
        for tick in stage.ticks(&li).await {
            let name = tick["tick"].as_str().expect("a name").to_owned();
            assert!(!names.contains(&name), "{name} has two entries");
            names.push(name);
        }
    }
}

async fn an_overlap_is_skipped_or_waits_or_replaces() {
    for (overlap, told) in [("skip", "skipped"), ("queue", "skipped"), ("replace", "failed")] {
        let keys = format!("every = \"1s\"\noverlap = \"{overlap}\"\nstop_grace = \"1s\"");
        let stage = Stage::start(&keys, "sleep 3.4\necho \"$SOLOIST_TICK end\" >> acts");
        stage.li.switch("settle", true).await;
        stage.until_acts(3);
        let entry = stage.until_told(&stage.li, told).await;
        assert!(entry["why"].is_string(), "{overlap}: {entry}");
        let acts = stage.acts();
        let begun = acts.iter().filter(|act| act.ends_with("begin")).count();
        let ended = acts.iter().filter(|act| act.ends_with("end")).count();
        match overlap {
            "replace" => assert_eq!(ended, 0, "{acts:?}"),
            _ => assert!(begun - ended <= 1, "never two: {acts:?}"),
        }
        stage.check_once();
    }
}

async fn ask(api: &Api, body: Value) -> Result<String, (StatusCode, String)> {
    let (status, answer) = api.call(Method::POST, "/api/v1/jobs/settle/runs", Some(body)).await;
    match status {
        StatusCode::ACCEPTED => Ok(answer["tick"].as_str().expect("a name").to_owned()),
        status => Err((status, answer["detail"].as_str().unwrap_or_default().to_owned())),
    }
}

async fn a_run_by_hand_gets_its_parameters_and_waits_for_nobody_to_want_the_job() {
    let params = r#"params = { day = { type = "date", default = "yesterday" }, mode = { type = "choice", of = ["fast", "full"] } }"#;
    let keys = format!("schedule = \"30 2 * * *\"\nzone = \"Asia/Shanghai\"\n{params}");
    let rest = "echo \"$SOLOIST_PARAM_DAY $SOLOIST_PARAM_MODE\" >> acts\nwhile [ ! -e go ]; do sleep 0.05; done";
    let stage = Stage::start(&keys, rest);
    let (status, why) = ask(&stage.li, json!({})).await.expect_err("mode has no default");
    assert!(status == StatusCode::BAD_REQUEST && why.contains("mode"), "{status} {why}");
    let wrong = json!({"params": {"mode": "slow"}});
    let (status, why) = ask(&stage.li, wrong).await.expect_err("no such value");
    assert!(status == StatusCode::BAD_REQUEST && why.contains("fast or full"), "{why}");
    let asked = json!({"params": {"mode": "full", "day": "2026-11-11"}, "request_id": "one"});
    let tick = ask(&stage.li, asked.clone()).await.expect("taken in");
    assert!(tick.starts_with("settle@hand:"), "{tick}");
    let acts = stage.until_acts(2);
    assert_eq!(acts[1], "2026-11-11 full");
    assert_eq!(ask(&stage.li, asked).await.as_deref(), Ok(&*tick), "the same request");
    // A second one waits, and is taken back.
    let second = json!({"params": {"mode": "fast"}});
    let second = ask(&stage.li, second).await.expect("it waits");
    let job = stage.li.get("/api/v1/jobs/settle").await;
    assert_eq!(job["schedule"]["asked"][0]["tick"], second.as_str(), "{job}");
    let path = format!("/api/v1/jobs/settle/runs/{second}");
    let (status, _) = stage.li.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = stage.li.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "nothing waits any more");
    std::fs::write(stage.ground.path("go"), "").expect("a file");
    let done = stage.until_told(&stage.li, "done").await;
    assert_eq!(done["params"]["mode"], "full", "{done}");
    let job = stage.li.get("/api/v1/jobs/settle").await;
    assert_eq!(job["state"], "off", "nobody wants it: {job}");
    stage.ground.must(&["hold", "settle", "--user", "li", "--reason", "stocktaking"]);
    let held = json!({"params": {"mode": "fast"}});
    let (status, why) = ask(&stage.li, held).await.expect_err("held");
    assert!(status == StatusCode::CONFLICT && why.contains("held by li"), "{status} {why}");
    assert_eq!(stage.acts().len(), 2, "{:?}", stage.acts());
}

async fn a_tick_of_a_schedule_that_was_changed_may_be_run_by_its_name() {
    let stage = Stage::start("every = \"1s\"", "[ -e go ]");
    stage.li.switch("settle", true).await;
    let failed = stage.until_told(&stage.li, "failed").await;
    stage.li.switch("settle", false).await;
    let file = stage.ground.path("soloist.toml");
    let text = std::fs::read_to_string(&file).expect("the file");
    let yearly = "schedule = \"30 2 1 1 *\"\nzone = \"UTC\"";
    std::fs::write(&file, text.replace("every = \"1s\"", yearly)).expect("written");
    for node in [&stage.a, &stage.b] {
        node.signal(nix::sys::signal::Signal::SIGHUP);
        let li = node.api(stage.li.token());
        until_async("it goes by the new file", async || {
            let job = li.get("/api/v1/jobs/settle").await;
            (job["schedule"]["expressions"] == json!(["30 2 1 1 *"])).then_some(())
        })
        .await;
    }
    std::fs::write(stage.ground.path("go"), "").expect("a file");
    assert_eq!(ask(&stage.li, json!({"tick": failed["tick"]})).await, Ok(name_of(&failed)));
    let done = stage.until_told(&stage.li, "done").await;
    assert_eq!((name_of(&done), &done["attempt"]), (name_of(&failed), &json!(2)), "{done}");
    stage.check_once();
    let never = json!({"tick": "settle@2020-01-01T00:00:00Z"});
    let (status, why) = ask(&stage.li, never).await.expect_err("it has no entry");
    assert!(status == StatusCode::NOT_FOUND && why.contains("is no tick of settle"), "{why}");
}

fn name_of(tick: &Value) -> String {
    tick["tick"].as_str().expect("a name").to_owned()
}

/// What `soloist check` says of one job with these keys.
fn check(keys: &str) -> (bool, String) {
    let job = format!("[[job]]\nname = \"settle\"\ncommand = [\"true\"]\n{keys}\n");
    let output = Ground::new("sqlite:x.db", &job).run(&["check"]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn what_can_never_be_meant_is_refused_with_the_remedy() {
    let zone = "zone = \"Asia/Shanghai\"\n";
    for (keys, words) in [
        ("schedule = \"30 2 * * *\"", "zone"),
        (&format!("{zone}schedule = \"0 0 9 ? * 2-6\""), "dialect"),
        (&format!("{zone}schedule = \"0 0 30 2 *\""), "never"),
        (&format!("{zone}schedule = \"30 2 * * *\"\nevery = \"1h\""), "goes not with"),
        (&format!("{zone}schedule = \"30 2 * * *\"\nrepeat = \"1s\""), "goes not with"),
        ("every = \"1m\"\njitter = \"2m\"", "jitter"),
        ("every = \"1m\"\ncalendar = \"cn\"", "calendars are not built yet"),
        ("every = \"1m\"\nmissed = \"twice\"", "\"skip\" or \"once\" or \"all\""),
        ("missed = \"skip\"", "counts only beside schedule"),
        ("at = \"2026-12-01T08:00:00\"", "offset"),
        ("every = \"1m\"\nmissed_window = \"9999999999999d\"", "3650d"),
        (
            "every = \"1m\"\nparams = { n = { type = \"int\", min = 5, max = 1 } }",
            "1 is less than min 5, so no value fits",
        ),
        (
            "every = \"1m\"\nparams = { c = { type = \"choice\", of = [] } }",
            "is empty, so no value fits",
        ),
        ("every = \"1m\"\nenv = { SOLOIST_PARAM_X = \"1\" }", "set by Soloist"),
    ] {
        let (good, said) = check(keys);
        assert!(!good && said.contains(words), "{keys}: {said}");
    }
    let (good, said) = check("at = \"2026-01-01T00:00:00Z\"");
    assert!(
        good && said.contains("warning: ") && said.contains("no tick comes any more"),
        "{said}"
    );
    let (good, said) = check(&format!("{zone}schedule = [\"30 2 * * 1-5\", \"0 9 * * *\"]"));
    assert!(good && said.matches("+08:00[Asia/Shanghai]").count() == 5, "{said}");
}
