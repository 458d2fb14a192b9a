//! Tasks and turns by the client libraries.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::json;

use super::driver::{Driver, Language};
use super::witness::Acts;
use crate::support::machine::judged;
use crate::support::node::Ground;
use crate::support::wait::{until, until_async};

judged! {
    every_task_is_done_once_whoever_collects
    types_take_turns_whatever_language_they_are_in
}

async fn every_task_is_done_once_whoever_collects() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    ground.add_user("fetcher", "collector");
    let (token, theirs) = (ground.token("li"), ground.token("fetcher"));
    let node = ground.start("node-a");
    let api = node.api(&token);
    let rules = json!({ "lease_ms": 1500, "backoff": { "first_ms": 10, "max_ms": 50 } });
    let (status, said) = api.call(Method::PUT, "/api/v1/sources/shop", Some(rules)).await;
    assert!(status.is_success(), "{said}");
    let put = async |tasks: Vec<serde_json::Value>| {
        let (status, said) =
            api.call(Method::POST, "/api/v1/tasks", Some(json!({ "tasks": tasks }))).await;
        assert!(status.is_success(), "{said}");
    };
    let acts = Acts::of(&ground, "shop");
    let mut collectors = Vec::new();
    for language in Language::ALL {
        collectors.push(Driver::start(
            language,
            "collect",
            &[&node.url],
            &theirs,
            "shop",
            acts.file(),
            "1.5",
        ));
    }
    // One by one, until each has done something: a machine that starts slowly must not find all done.
    let (mut first, mut came) = (0, BTreeSet::new());
    while came.len() < 3 {
        put(vec![json!({ "source": "shop", "key": format!("first{first}") })]).await;
        first += 1;
        until("that is done", || (acts.all().len() == first).then_some(()));
        came.extend(acts.all().into_iter().map(|act| act.node));
    }
    let payload = |nth: usize| match nth {
        // Longer than the lease: it must be extended.
        0..3 => json!({ "slow": 4 }),
        3..9 => json!({ "fail": 2 }),
        9..12 => json!({ "dead": true }),
        _ => json!(null),
    };
    put((0..90)
        .map(|nth| json!({ "source": "shop", "key": format!("k{nth}"), "payload": payload(nth) }))
        .collect())
    .await;
    let source = until_async("all is done", async || {
        let source = api.get("/api/v1/sources/shop").await;
        (source["done"] == 87 + first && source["dead"] == 3).then_some(source)
    })
    .await;
    assert_eq!(source["expired"], 0, "a task was lost: {source}");
    for collector in &mut collectors {
        collector.close();
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for act in acts.all() {
        *times.entry(act.word).or_default() += 1;
    }
    assert_eq!(times.len(), 87 + first);
    assert!(times.values().all(|count| *count == 1), "{times:?}");
}

async fn types_take_turns_whatever_language_they_are_in() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    let types: Vec<_> = Language::ALL.iter().map(|each| json!({ "name": each.word() })).collect();
    let rules = json!({ "types": types, "lease_ms": 1500, "min_gap_ms": 10 });
    let (status, said) =
        node.api(&token).call(Method::PUT, "/api/v1/rotations/api", Some(rules)).await;
    assert!(status.is_success(), "{said}");
    let acts = Acts::of(&ground, "api");
    let mut workers = Language::ALL.map(|language| {
        let name = format!("api/{}", language.word());
        Driver::start(language, "turn", &[&node.url], &token, &name, acts.file(), "ask")
    });
    until("each had ten turns", || {
        let acts = acts.all();
        let turns = |language: Language| {
            acts.iter()
                .filter(|act| act.word == language.word())
                .map(|act| act.token)
                .collect::<BTreeSet<_>>()
                .len()
        };
        Language::ALL.iter().all(|language| turns(*language) >= 10).then_some(())
    });
    for worker in &mut workers {
        worker.close();
    }
    acts.judge();
    let turns = node.api(&token).get("/api/v1/rotations/api").await;
    for each in turns["types"].as_array().expect("types") {
        assert_eq!((&each["lost"], &each["failed"]), (&json!(0), &json!(0)), "{turns}");
    }
}
