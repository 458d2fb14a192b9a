//! A store that was put back as it was while nodes live: they know what ran since, and no tick runs again.

use serde_json::{Value, json};

use super::faults::check_told;
use super::{Stage, ask};
use crate::support::machine::{holds, judged};
use crate::support::redis::RedisServer;
use crate::support::wait::{PATIENCE, until, until_async, within};

judged! {
    a_store_that_was_put_back_as_it_was_runs_no_tick_again
    a_file_that_was_put_back_as_it_was_runs_no_tick_again
    a_redis_that_was_emptied_during_a_run_runs_its_tick_no_second_time
}

/// Keeps all that Redis has of the job under other names, and puts it back in one step. The store forgets what it said of itself, too.
const KEEP: &str = "for _, k in ipairs(redis.call('KEYS', 'soloist:*settle*')) do redis.call('COPY', k, 'kept:' .. k, 'REPLACE') end";
const PUT_BACK: &str = "for _, k in ipairs(redis.call('KEYS', 'soloist:*settle*')) do redis.call('DEL', k) end \
    for _, k in ipairs(redis.call('KEYS', 'kept:*')) do redis.call('COPY', k, string.sub(k, 6), 'REPLACE') end \
    redis.call('DEL', 'soloist:epoch')";

async fn a_store_that_was_put_back_as_it_was_runs_no_tick_again() {
    for at_work in [false, true] {
        let redis = RedisServer::start(&[]);
        let url = redis.url();
        let eval = |stage: &Stage, script: &str| {
            stage.redis.run::<Option<()>>(&["EVAL", script, "0"]);
        };
        put_back(&url, redis, at_work, |stage| eval(stage, KEEP), |stage| eval(stage, PUT_BACK))
            .await;
    }
}

async fn a_file_that_was_put_back_as_it_was_runs_no_tick_again() {
    let sqlite3 = |stage: &Stage, command: &str| {
        let copy = stage.ground.path("copy.db");
        until("the copy is made", || {
            let done = std::process::Command::new("sqlite3")
                .args(["-cmd", ".timeout 10000"])
                .arg(stage.ground.path("soloist.db"))
                .arg(format!(".{command} '{}'", copy.display()))
                .status();
            done.expect("sqlite3 starts").success().then_some(())
        });
    };
    for at_work in [false, true] {
        let redis = RedisServer::start(&[]);
        let (keep, restore) =
            (|stage: &Stage| sqlite3(stage, "backup"), |stage: &Stage| sqlite3(stage, "restore"));
        put_back("sqlite:soloist.db", redis, at_work, keep, restore).await;
    }
}

async fn a_redis_that_was_emptied_during_a_run_runs_its_tick_no_second_time() {
    for by_hand in [true, false] {
        let rest = "while [ ! -e go ]; do sleep 0.05; done";
        let stage = Stage::start("every = \"10s\"\nmissed = \"all\"", rest);
        if by_hand {
            ask(&stage.li, json!({})).await.expect("taken in");
        } else {
            stage.li.switch("settle", true).await;
        }
        let act = stage.until_acts(1).remove(0);
        let name = act.split(' ').next().expect("a name").to_owned();
        stage.redis.run::<()>(&["FLUSHALL"]);
        let told = |wanted: &dyn Fn(&Value) -> bool| {
            until("its tick is told", || {
                let output = stage.ground.run(&["ticks", "settle", "--json"]);
                let list: Value = serde_json::from_slice(&output.stdout).ok()?;
                list["ticks"].as_array()?.iter().find(|one| wanted(one)).cloned()
            })
        };
        told(&|one| one["tick"] == *name);
        std::fs::write(stage.ground.path("go"), "").expect("a file");
        let over = told(&|one| one["tick"] == *name && one["outcome"] != "running");
        // The switches are gone with the rest: a run is stopped that nobody wants any more, and says so, or that the store forgot it.
        let done = by_hand && over["outcome"] == "done";
        let told = ["failed", "lost"].iter().any(|word| over["outcome"] == *word);
        assert!(done || told && over["why"].is_string(), "{over}");
        assert_eq!(over["attempt"], 1, "{over}");
        stage.check_once();
        assert_eq!(stage.acts().len(), 1, "{:?}", stage.acts());
    }
}

/// A store is kept, and put back after some more ticks: between two of them, or while one runs.
async fn put_back(
    url: &str,
    redis: RedisServer,
    at_work: bool,
    keep: impl Fn(&Stage),
    restore: impl Fn(&Stage),
) {
    // What is taken for missed is run, all of it.
    let keys = "every = \"2s\"\nmissed = \"all\"\nmissed_window = \"5m\"";
    let rest = "sleep 0.8\necho \"$SOLOIST_TICK $SOLOIST_ATTEMPT end\" >> acts";
    let stage = Stage::on(url, redis, keys, rest);
    stage.li.switch("settle", true).await;
    stage.until_acts(4);
    keep(&stage);
    stage.until_acts(10);
    until_async("it is at work, or not", async || {
        let job = stage.li.get("/api/v1/jobs/settle").await;
        (job["run"].is_null() != at_work).then_some(())
    })
    .await;
    let before = stage.acts().len();
    restore(&stage);
    stage.until_acts(before + 6);
    until("it is switched off", || {
        stage.ground.run(&["off", "settle", "--user", "li"]).status.success().then_some(())
    });
    let acts = stage.acts();
    // A run in mid work is lost with its lease: its tick follows under the next attempt. One that had ended is over.
    let twice = acts.iter().enumerate().find(|(nth, act)| {
        let tick = act.split(' ').next().unwrap_or_default();
        let ended = |before: &String| before.starts_with(tick) && before.ends_with(" end");
        let again = *nth >= before && acts[..before].iter().any(ended);
        acts[..*nth].contains(act) || act.ends_with(" begin") && again
    });
    holds(twice.is_none(), || format!("{twice:?} ran twice: {acts:#?}"));
    let acts = acts.join("\n");
    let mut wrong = String::new();
    let told = within(PATIENCE, || {
        let output = stage.ground.run(&["ticks", "settle", "--limit", "500", "--json"]);
        let list: Value = serde_json::from_slice(&output.stdout).ok()?;
        let checked = check_told("every = \"2s\"", list["ticks"].as_array()?, &acts);
        checked.map_err(|why| wrong = format!("{why}: {list:#}")).ok()
    });
    assert!(told.is_some(), "{wrong}");
}
