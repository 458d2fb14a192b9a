//! A node that ends, dies or stands still: no tick is lost without a word, none runs twice, and no two at once.

use nix::sys::signal::{Signal, kill};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::faults::{check_told, guards_of};
use super::{Stage, ask};
use crate::support::api::Api;
use crate::support::machine::judged;
use crate::support::wait::{PATIENCE, until, until_async, within};

judged! {
    a_guard_that_is_killed_alone_is_a_loss_and_no_crash
    the_end_of_its_node_and_a_move_pass_a_tick_on_at_once
    a_node_that_dies_or_stands_still_costs_no_tick_of_each_second
    the_script_of_a_node_that_dies_is_gone_before_that_of_the_next_tick_begins
}

/// Nobody saw how the run ended, though its node lives.
async fn a_guard_that_is_killed_alone_is_a_loss_and_no_crash() {
    for on_loss in ["again", "spent"] {
        let keys = format!("every = \"1h\"\nretries = 0\non_loss = \"{on_loss}\"");
        let mut stage = Stage::start(&keys, "[ \"$SOLOIST_ATTEMPT\" = 2 ] || sleep 60");
        ask(&stage.li, json!({})).await.expect("taken in");
        stage.until_acts(1);
        let holder = stage.at_work().await;
        let (node, _) = stage.holder(&holder);
        let guards = guards_of(node);
        assert!(!guards.is_empty(), "it has a guard");
        for guard in guards {
            kill(guard, Signal::SIGKILL).expect("its guard can be killed");
        }
        let (outcome, attempt) = if on_loss == "again" { ("done", 2) } else { ("lost", 1) };
        let told = stage.until_told(&stage.li, outcome).await;
        assert_eq!(told["attempt"], attempt, "{told}");
        if on_loss == "spent" {
            assert_eq!(told["why"], format!("its guard on {holder} died"), "{told}");
        }
        let runs = stage.li.get("/api/v1/jobs/settle/runs").await;
        let first = runs["runs"].as_array().and_then(|runs| runs.last()).expect("a run");
        assert_eq!(first["end"], "lost", "{runs}");
        stage.check_once();
    }
}

async fn the_end_of_its_node_and_a_move_pass_a_tick_on_at_once() {
    for (on_loss, moved) in [("again", false), ("again", true), ("spent", false)] {
        // Nobody waits for a lease that outlasts the patience of this test.
        let keys = format!("every = \"1h\"\nlease_ttl = \"2m\"\non_loss = \"{on_loss}\"");
        let rest = "[ \"$SOLOIST_ATTEMPT\" = 2 ] || sleep 60";
        let mut stage = Stage::start(&keys, rest);
        ask(&stage.li, json!({})).await.expect("taken in");
        stage.until_acts(1);
        let holder = stage.at_work().await;
        let (ending, mut other) = stage.holder(&holder);
        if moved {
            other = ending.api(other.token());
            let path = "/api/v1/jobs/settle/move";
            let (status, said) = other.call(Method::POST, path, Some(json!({}))).await;
            assert_eq!(status, StatusCode::ACCEPTED, "{said}");
        } else {
            assert_eq!(ending.terminate(), Some(0));
        }
        if on_loss == "spent" {
            let lost = stage.until_told(&other, "lost").await;
            assert_eq!((&lost["attempt"], stage.acts().len()), (&json!(1), 1), "{lost}");
            assert_eq!(lost["why"], format!("it was stopped on {holder}"), "{lost}");
            continue;
        }
        let done = stage.until_told(&other, "done").await;
        assert_eq!(done["attempt"], 2, "{done}");
        let runs = other.get("/api/v1/jobs/settle/runs").await;
        assert_eq!(runs["runs"][1]["end"], "stopped", "{runs}");
        assert_ne!(runs["runs"][0]["node"], *holder, "{runs}");
        stage.check_once();
    }
}

impl Stage {
    /// Waits until ticks are told that start so many seconds from now.
    async fn until_seconds_are_told(&self, api: &Api, seconds: i64) {
        let until = jiff::Timestamp::now().as_second() + seconds;
        until_async("those ticks are told", async || {
            let ticks = self.ticks(api).await;
            let newest = ticks.first()?["due"].as_str()?.parse::<jiff::Timestamp>().ok()?;
            (newest.as_second() >= until).then_some(())
        })
        .await;
    }

    /// Switches it off, and holds what ran against what is told: each second has one entry, which says why if it did not run.
    async fn judge_each_second(&self, api: &Api) {
        api.switch("settle", false).await;
        self.check_once();
        let acts = self.acts().join("\n");
        let mut wrong = String::new();
        let told = within(PATIENCE, || {
            let output = self.ground.run(&["ticks", "settle", "--limit", "500", "--json"]);
            let list: Value = serde_json::from_slice(&output.stdout).ok()?;
            let checked = check_told("every = \"1s\"", list["ticks"].as_array()?, &acts);
            checked.map_err(|why| wrong = format!("{why}: {list:#}")).ok()?;
            Some(list["ticks"].as_array()?.clone())
        });
        let told = told.unwrap_or_else(|| panic!("{wrong}"));
        for tick in told.iter().filter(|tick| tick["outcome"] != "done") {
            assert!(tick["why"].is_string(), "{tick}");
        }
    }
}

/// XXL-JOB loses what its dead server had in memory, and what was due while it stood still.
async fn a_node_that_dies_or_stands_still_costs_no_tick_of_each_second() {
    for dies in [true, false] {
        let mut stage = Stage::start("every = \"1s\"", "sleep 0.3");
        stage.li.switch("settle", true).await;
        stage.until_acts(3);
        let holder = stage.at_work().await;
        let (struck, other) = stage.holder(&holder);
        if dies {
            struck.kill();
        } else {
            struck.signal(Signal::SIGSTOP);
            let since = soloist::clock::boot();
            until("it stood still for some seconds", || {
                (soloist::clock::boot().since(since).as_secs() >= 5).then_some(())
            });
            struck.signal(Signal::SIGCONT);
        }
        stage.until_seconds_are_told(&other, 14).await;
        stage.judge_each_second(&other).await;
    }
}

/// XXL-JOB calls another executor while the script of the first still runs.
async fn the_script_of_a_node_that_dies_is_gone_before_that_of_the_next_tick_begins() {
    // The kernel says whether two are at work at once: a lock ends with the last process that has it, also one that was left behind.
    let rest = "exec 9>lock\nflock -n 9 || echo OVERLAP >> acts\nsleep 60 &\nsleep 1.4";
    for on_loss in ["again", "spent"] {
        let mut stage = Stage::start(&format!("every = \"1s\"\non_loss = \"{on_loss}\""), rest);
        stage.li.switch("settle", true).await;
        stage.until_acts(1);
        let holder = stage.at_work().await;
        let (dying, other) = stage.holder(&holder);
        dying.kill();
        let before = stage.acts().len();
        stage.until_acts(before + 3);
        other.switch("settle", false).await;
        let acts = stage.acts();
        assert!(!acts.iter().any(|act| act == "OVERLAP"), "{acts:?}");
        stage.check_once();
    }
}
