//! Ticks of jobs with a schedule (contract 13) that programs do: each once, in time, and what follows a failure, a death and off.
//!
//! A driver writes what it was told of a tick as its first act; `clients/python/tests/driver.py` says how.

use std::collections::HashSet;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::driver::{Driver, Language};
use super::witness::Acts;
use crate::support::api::Api;
use crate::support::machine::{holds, in_time, judged};
use crate::support::node::{Ground, Node};
use crate::support::wait::{until, until_async};
use crate::support::witness::Act;

judged! {
    each_tick_runs_once_over_two_programs_in_time_and_with_its_parameters
    a_tick_that_failed_is_done_again_by_its_retries_and_no_more
    a_tick_whose_program_dies_or_ends_follows_under_the_next_attempt_unless_it_is_spent
    off_stops_the_work_and_its_tick_has_failed
}

const PARAMETERS: &str = "params = { mode = { type = \"choice\", of = [\"fast\", \"full\"], default = \"full\" }, n = { type = \"int\", default = 7 } }\n";

struct Site {
    api: Api,
    token: String,
    node: Node,
    ground: Ground,
}

impl Site {
    /// Jobs that are due every two seconds, by their names and what else is said of them.
    fn new(jobs: &[(String, String)]) -> Self {
        let job = |(name, more): &(String, String)| {
            format!(
                "[[job]]\nname = {name:?}\nrunner = \"external\"\nevery = \"2s\"\nstop_grace = \"1s\"\n{more}\n"
            )
        };
        let ground =
            Ground::new("sqlite:soloist.db", &jobs.iter().map(job).collect::<Vec<_>>().concat());
        ground.add_user("li", "operator");
        let token = ground.token("li");
        for (name, _) in jobs {
            ground.must(&["on", name, "--user", "li"]);
        }
        let node = ground.start("node-a");
        Self { api: node.api(&token), token, node, ground }
    }

    fn start(&self, language: Language, acts: &Acts, mode: &str) -> Driver {
        let (addresses, name) = ([self.node.url.as_str()], acts.name());
        Driver::start(language, "scheduled", &addresses, &self.token, name, acts.file(), mode)
    }

    /// Waits until the entry of a tick says what is wanted of it.
    async fn until_entry(&self, begin: &Begin, wanted: impl Fn(&Value) -> bool) -> Value {
        let (job, _) = begin.tick.split_once('@').expect("the name of a tick");
        until_async(&format!("the entry of {} is as it must be", begin.tick), async || {
            let answer = self.api.get(&format!("/api/v1/jobs/{job}/ticks")).await;
            let entries = answer["ticks"].as_array().expect("ticks").clone();
            entries.into_iter().find(|entry| entry["tick"] == *begin.tick && wanted(entry))
        })
        .await
    }
}

/// The first act of a tick.
#[derive(Debug, Clone)]
struct Begin {
    act: Act,
    tick: String,
    attempt: u64,
    /// How long after it was due the work began, in milliseconds.
    since: u64,
    params: String,
}

/// What has begun so far.
fn begins(acts: &Acts) -> Vec<Begin> {
    let begin = |act: Act| {
        let word = act.word.strip_prefix("begin|")?.to_owned();
        let parts: Vec<&str> = word.split('|').collect();
        let [tick, attempt, late, since, params] = parts.as_slice() else {
            panic!("odd act {act:?}")
        };
        let [attempt, late, since] =
            [attempt, late, since].map(|number| number.parse().expect("a number"));
        holds(late <= since, || format!("it began before it was granted: {act:?}"));
        let (tick, params) = ((*tick).to_owned(), (*params).to_owned());
        Some(Begin { act, tick, attempt, since, params })
    };
    acts.all().into_iter().filter_map(begin).collect()
}

/// Waits for the beginning of a tick that `wanted` accepts.
fn begun(acts: &Acts, what: &str, wanted: impl Fn(&Begin) -> bool) -> Begin {
    until(&format!("{}: {what}", acts.name()), || begins(acts).into_iter().find(&wanted))
}

/// Jobs of each language by these kinds.
fn jobs(kinds: &[(&str, &str)]) -> Vec<(String, String)> {
    let of = |language: Language| {
        kinds
            .iter()
            .map(move |(kind, more)| (format!("{kind}-{}", language.word()), (*more).to_owned()))
    };
    Language::ALL.into_iter().flat_map(of).collect()
}

/// The next of the three.
fn another(language: Language) -> Language {
    let at = Language::ALL.iter().position(|each| *each == language).expect("one of them");
    Language::ALL[(at + 1) % 3]
}

/// The work that waits for its next tick wakes when that is due; the first one was perhaps due before a program could start.
fn in_good_time(all: &[Begin]) {
    for begin in all.iter().skip(1).filter(|begin| begin.attempt == 1) {
        in_time(begin.since < 1000, || format!("not within a second: {begin:?}"));
    }
}

async fn each_tick_runs_once_over_two_programs_in_time_and_with_its_parameters() {
    let site = Site::new(&jobs(&[("each", &format!("lease_ttl = \"10s\"\n{PARAMETERS}"))]));
    let mut programs = Vec::new();
    let mut all = Vec::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, &format!("each-{}", language.word()));
        for one in [language, another(language)] {
            programs.push(site.start(one, &acts, "quick"));
        }
        all.push(acts);
    }
    for acts in &all {
        let seen = until(&format!("{}: six ticks have begun", acts.name()), || {
            Some(begins(acts)).filter(|seen| seen.len() > 5)
        });
        let names: HashSet<&str> = seen.iter().map(|begin| begin.tick.as_str()).collect();
        holds(names.len() == seen.len(), || format!("one ran twice: {seen:#?}"));
        for begin in &seen {
            holds(begin.attempt == 1, || format!("{begin:?}"));
            assert_eq!(begin.params, "mode=full,n=7", "{begin:?}");
        }
        in_good_time(&seen);
        for begin in &seen {
            let entry = site.until_entry(begin, |entry| entry["outcome"] == "done").await;
            holds(entry["attempt"] == 1, || format!("{entry}"));
        }
        acts.judge();
    }
    for program in &mut programs {
        program.close();
    }
}

/// Failed work holds up neither the next attempt nor the next tick.
async fn a_tick_that_failed_is_done_again_by_its_retries_and_no_more() {
    let more = "lease_ttl = \"10s\"\nretries = 1\nbackoff = { first = \"100ms\", max = \"1s\" }\n";
    let site = Site::new(&jobs(&[("once", more), ("always", more)]));
    let mut programs = Vec::new();
    for language in Language::ALL {
        for (kind, mode) in [("once", "fail-1"), ("always", "fail-9")] {
            let acts = Acts::of(&site.ground, &format!("{kind}-{}", language.word()));
            let program = site.start(language, &acts, mode);
            programs.push((kind, acts, program));
        }
    }
    for (kind, acts, _) in &programs {
        let second = begun(acts, "a second attempt", |begin| begin.attempt == 2);
        let first = begun(acts, "its first", |begin| begin.tick == second.tick);
        assert!(first.attempt == 1 && first.act.token < second.act.token, "{first:?} {second:?}");
        let outcome = if *kind == "once" { "done" } else { "failed" };
        let entry = site.until_entry(&second, |entry| entry["outcome"] == outcome).await;
        assert_eq!(entry["attempt"], 2, "{entry}");
        let later = until("four more ticks have failed", || {
            let all = begins(acts);
            (all.iter().filter(|begin| begin.attempt == 2).count() > 4).then_some(all)
        });
        holds(later.iter().all(|begin| begin.attempt < 3), || format!("{later:#?}"));
        in_good_time(&later);
        acts.judge();
    }
    for (_, _, program) in &mut programs {
        program.close();
    }
}

/// A tick that its own program stops was begun: it is a loss as that of a program that dies, and never given back as unused.
async fn a_tick_whose_program_dies_or_ends_follows_under_the_next_attempt_unless_it_is_spent() {
    // Who ends says so: nobody waits for a lease that outlasts the patience of this test.
    let keys =
        |lease, on_loss| format!("lease_ttl = \"{lease}\"\nretries = 3\non_loss = \"{on_loss}\"\n");
    let kinds = [
        ("killed-again", &*keys("2s", "again")),
        ("killed-spent", &*keys("2s", "spent")),
        ("ended-again", &*keys("5m", "again")),
        ("ended-spent", &*keys("5m", "spent")),
    ];
    let site = Site::new(&jobs(&kinds));
    for language in Language::ALL {
        let scenes = kinds.map(|(kind, _)| {
            let acts = Acts::of(&site.ground, &format!("{kind}-{}", language.word()));
            let program = site.start(language, &acts, "polite");
            (kind, acts, program)
        });
        for (kind, acts, mut program) in scenes {
            let pid = program.id();
            let first = begun(&acts, "it begins", |begin| begin.act.pid == pid);
            assert!(acts.goes_on(first.act.token, 10), "{kind}, {language:?}: it works");
            let mut second = site.start(another(language), &acts, "polite");
            let pid = second.id();
            if kind.starts_with("killed") {
                program.signal(Signal::SIGKILL);
                program.wait();
            } else {
                program.close();
            }
            // Which it may have lost before on a machine that stood still.
            let last = begins(&acts).pop().filter(|begin| begin.act.pid != pid).unwrap_or(first);
            let next = begun(&acts, "the other goes on", |begin| begin.act.pid == pid);
            let seen = format!("{kind}, {language:?}: {last:?}, then {next:?}");
            if kind.ends_with("again") {
                holds(next.tick == last.tick && next.attempt == last.attempt + 1, || seen.clone());
            } else {
                holds(next.tick != last.tick && next.attempt == 1, || seen.clone());
                site.until_entry(&last, |entry| entry["outcome"] == "lost").await;
            }
            assert!(next.act.token > last.act.token, "{seen}");
            second.close();
            acts.judge();
            site.ground.must(&["off", acts.name(), "--user", "li"]);
        }
    }
}

async fn off_stops_the_work_and_its_tick_has_failed() {
    let site = Site::new(&jobs(&[("off", "lease_ttl = \"10s\"\nretries = 3\n")]));
    let mut live = site.api.live().await;
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, &format!("off-{}", language.word()));
        let mut program = site.start(language, &acts, "polite");
        let first = begun(&acts, "it begins", |_| true);
        assert!(acts.goes_on(first.act.token, 10), "{language:?}: it works");
        site.api.switch(acts.name(), false).await;
        live.until_state(acts.name(), "off").await;
        let count = acts.all().len();
        let entry = site.until_entry(&first, |entry| entry["outcome"] == "failed").await;
        assert_eq!(entry["attempt"], 1, "{entry}");
        // On again: the same program, another tick.
        site.api.switch(acts.name(), true).await;
        let next = begun(&acts, "it begins again", |begin| begin.act.token > first.act.token);
        holds(next.tick != first.tick && next.attempt == 1, || format!("{first:?} {next:?}"));
        let between = acts.all().into_iter().skip(count).find(|act| act.token == first.act.token);
        assert!(between.is_none(), "nothing is done once it is off: {between:?}");
        let said = program.close();
        assert!(said.contains("ends: off"), "{language:?}: {said}");
        acts.judge();
    }
}
