//! `soloist drill`, its page and its API: a real crash, measured, and never by mistake.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::lifecycle::{JOB, Pair};
use crate::support::node::{Ground, Node};
use crate::support::wait::{PATIENCE, until, until_async};
use crate::support::witness::{self, Witness};

/// Far longer than any test: whoever waited for it would fail by its patience.
const LONG_LEASE: &str = "lease_ttl = \"60s\"";

fn refused(ground: &Ground, args: &[&str]) -> String {
    let output = ground.run(args);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(4), "{args:?}: {said}");
    said
}

fn holder<'a>(pair: &'a mut Pair, name: &str) -> &'a mut Node {
    if pair.a.name == name { &mut pair.a } else { &mut pair.b }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_kills_the_holder_with_sigkill_and_measures_who_took_over() {
    let mut pair = Pair::start("stubborn", LONG_LEASE);
    pair.ground.add_user("ada", "admin");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    until_async("the history has the start", async || {
        (!pair.li().runs(JOB).await.is_empty()).then_some(())
    })
    .await;
    let report =
        pair.ground.must(&["drill", JOB, "--user", "ada", "--reason", "exercise", "--json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let second = pair.witness.until_started(2);
    assert_eq!((&report["from"], &report["to"]), (&json!(first.node), &json!(second.node)));
    assert_eq!(report["token"], first.token);
    let ms = |key: &str| report[key].as_u64().unwrap_or_else(|| panic!("{key}: {report}"));
    assert!(ms("released_ms") <= ms("acquired_ms") && ms("acquired_ms") <= ms("takeover_ms"));
    assert!(u128::from(ms("takeover_ms")) < PATIENCE.as_millis(), "{report}");
    assert_eq!(report["released_by_guard"], true);

    let dead = holder(&mut pair, &first.node);
    assert_eq!(dead.wait(), None, "killed by a signal, no exit code");
    let token = pair.li.clone();
    let living = holder(&mut pair, &second.node).api(&token);
    let runs = living.runs(JOB).await;
    assert_eq!((&runs[1]["end"], &runs[1]["token"]), (&json!("lost"), &json!(first.token)));
    let audit = living.get("/api/v1/audit?limit=1").await;
    let entry = audit.to_string();
    assert!(entry.contains("job.drill") && entry.contains("cli:ada"), "{entry}");
    assert!(entry.contains(": exercise\""), "why it was ordered is in the audit: {entry}");

    // The dead come back under their old name, and no order is left for them or for the next run.
    let back = pair.ground.start(&first.node);
    pair.witness.until_more(second.token, 50);
    assert_eq!(back.api(&token).runs(JOB).await.len(), 2);
    assert_eq!(pair.witness.starts(), 2);
    pair.witness.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_without_json_tells_the_steps_in_order_and_warns_first() {
    let pair = Pair::start("beat", LONG_LEASE);
    pair.ground.add_user("ada", "admin");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let output = until("it is there to be crashed", || {
        let output = pair.ground.run(&["drill", JOB, "--user", "ada"]);
        (output.status.code() != Some(4)).then_some(output)
    });
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(err.contains(&format!("the node process {} is killed with kill -9", first.node)));
    assert!(err.contains("service manager"), "{err}");
    let steps = ["ordered", "gave the lease back", "acquired the lease", "started the script"];
    let places: Vec<usize> =
        steps.iter().map(|s| out.find(s).unwrap_or_else(|| panic!("{out}"))).collect();
    assert!(places.is_sorted(), "{out}");
    assert!(out.contains("Taken over in"), "{out}");
    pair.witness.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_that_would_do_harm_is_refused_with_what_to_do() {
    let mut pair = Pair::start("beat", "");
    pair.ground.add_user("ada", "admin");
    let drill = ["drill", JOB, "--user", "ada"];
    assert!(refused(&pair.ground, &drill).contains("soloist why outbound"));
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    assert!(refused(&pair.ground, &["drill", JOB, "--user", "li"]).contains("ask an admin"));
    assert_eq!(pair.ground.run(&["drill", "outbond"]).status.code(), Some(3));
    pair.ground.must(&["hold", JOB, "--user", "ada", "--reason", "stock-taking"]);
    assert!(refused(&pair.ground, &drill).contains("soloist resume outbound"));
    pair.ground.must(&["resume", JOB, "--user", "ada"]);
    let second = pair.witness.until_started(2);
    until_async("it runs again", async || {
        let job = pair.li().get(&format!("/api/v1/jobs/{JOB}")).await;
        (job["run"]["pid"] == second.pid).then_some(())
    })
    .await;
    let other = if second.node == "node-a" { "node-b" } else { "node-a" };
    pair.ground.must(&["drain", other, "--user", "ada"]);
    assert!(refused(&pair.ground, &drill).contains("--force"));
    assert!(pair.witness.living().contains(&second.pid), "nobody was crashed: {first:?}");

    let out = pair.ground.must(&["drill", JOB, "--user", "ada", "--force"]);
    assert!(out.contains("is down until a node"), "{out}");
    assert_eq!(holder(&mut pair, &second.node).wait(), None);
    until("its script is gone", || pair.witness.living().is_empty().then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn page_and_api_order_a_drill_for_admins_and_show_what_it_measured() {
    let mut pair = Pair::start("beat", LONG_LEASE);
    pair.ground.add_user("ada", "admin");
    let ada = pair.ground.token("ada");
    let path = format!("/api/v1/jobs/{JOB}/drill");
    let (status, problem) = pair.a.api(&ada).call(Method::POST, &path, None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let (status, _) = pair.li().call(Method::POST, &path, None).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "an operator does not crash nodes");
    let survivor = if first.node == "node-a" { &pair.b } else { &pair.a };
    let (url, api) = (survivor.url.clone(), survivor.api(&ada));
    until_async("the page offers it", async || {
        (api.get(&format!("/api/v1/jobs/{JOB}")).await["run"] != Value::Null).then_some(())
    })
    .await;

    let client = crate::support::http::client().build().expect("a client");
    let page = client.get(format!("{url}/jobs/{JOB}")).bearer_auth(&ada);
    let text = page.send().await.expect("an answer").text().await.expect("text");
    let warning = format!("the node process {} is killed with kill -9", first.node);
    assert!(text.contains(&warning) && text.contains("service manager"), "{text}");
    let form = client.post(format!("{url}/jobs/{JOB}/drill")).bearer_auth(&ada);
    let form = form.header("content-type", "application/x-www-form-urlencoded").body("");
    let text = form.send().await.expect("an answer").text().await.expect("text");
    assert!(text.contains("name=\"confirm\"") && text.contains(&warning), "{text}");
    assert!(pair.witness.living().contains(&first.pid), "asked back, nothing done");
    let dull = client.get(format!("{url}/jobs/{JOB}")).bearer_auth(&pair.li);
    let dull = dull.send().await.expect("an answer").text().await.expect("text");
    assert!(!dull.contains("kill -9"), "operators are not offered it");

    let (status, ordered) = api.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!((status, &ordered["token"]), (StatusCode::ACCEPTED, &json!(first.token)));
    let second = pair.witness.until_started(2);
    let drill = until_async("the result is there", async || {
        let drill = api.get(&path).await["drill"].clone();
        drill["takeover_ms"].is_u64().then_some(drill)
    })
    .await;
    assert_eq!((&drill["to"], &drill["by"]), (&json!(second.node), &json!("ada")));
    let shown = format!("{} had started it again {} ms", second.node, drill["takeover_ms"]);
    until_async("the page shows it", async || {
        let page = client.get(format!("{url}/jobs/{JOB}")).bearer_auth(&pair.li);
        let text = page.send().await.expect("an answer").text().await.expect("text");
        text.contains(&shown).then_some(())
    })
    .await;
    assert_eq!(holder(&mut pair, &first.node).wait(), None);
    pair.witness.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_on_one_file_are_drilled_too() {
    let jobs = witness::job(JOB, "beat", LONG_LEASE);
    let ground = Ground::new("sqlite:soloist.db", &jobs);
    witness::place(&ground);
    ground.add_user("ada", "admin");
    let nodes = [ground.start("node-a"), ground.start("node-b")];
    ground.must(&["on", JOB, "--user", "ada"]);
    let witness = Witness::of(&ground, JOB);
    let first = witness.until_started(1);
    let report = until("it is there to be crashed", || {
        let output = ground.run(&["drill", JOB, "--user", "ada", "--json"]);
        output.status.success().then_some(output.stdout)
    });
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let second = witness.until_started(2);
    assert_eq!((&report["from"], &report["to"]), (&json!(first.node), &json!(second.node)));
    witness.check();
    drop(nodes);
}
