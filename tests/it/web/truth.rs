//! What every page says before anything else: a store out of reach, a node that is lost, and never a guess.

use std::time::Duration;

use serde_json::Value;
use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId};
use soloist::domain::time::{Began, StoreTime};
use soloist::store::accounts::Role;
use soloist::store::jobs::Jobs;
use soloist::store::journal::{AuditEntry, Ended, Journal, Started, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases};
use soloist::store::nodes::{Beat, Heard, Nodes};

use super::live::{connect, hear_type, of_a_page};
use super::{On, Server};
use crate::support::wait::until_async;

on_every_store! {
    a_lost_node_and_who_took_its_jobs_stand_on_every_page
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_out_of_reach_is_told_on_every_socket_at_once_and_again_when_it_is_back() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    assert_eq!(server.get("/api/v1/jobs", &token).await.status(), 200);
    let mut socket = connect(&server, &token).await;
    hear_type(&mut socket, "snapshot").await;
    server.redis.pause();
    let away = hear_type(&mut socket, "store").await;
    assert_eq!(away["reachable"], false, "{away}");
    let since: jiff::Timestamp = away["since"].as_str().unwrap().parse().unwrap();
    assert!(!away["detail"].as_str().unwrap().is_empty());

    // Whoever comes now hears it, too: after the snapshot, as if it had been there.
    let mut late = connect(&server, &token).await;
    hear_type(&mut late, "snapshot").await;
    let told = hear_type(&mut late, "store").await;
    assert_eq!((&told["reachable"], &told["since"]), (&Value::from(false), &away["since"]));

    server.redis.resume();
    for socket in [&mut socket, &mut late] {
        let back = hear_type(socket, "store").await;
        assert_eq!((&back["reachable"], &back["detail"]), (&Value::from(true), &Value::Null));
        let again: jiff::Timestamp = back["since"].as_str().unwrap().parse().unwrap();
        assert!(again >= since, "{again} {since}");
    }
    let mut calm = connect(&server, &token).await;
    super::live::heard_nothing(&mut calm, "store").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_the_store_says_so_and_takes_nothing_unread_for_nothing() {
    let mut server = Server::start().await;
    let (mut socket, cookie, _) = of_a_page(&server, "li", Role::Admin).await;
    let calm = hear_type(&mut socket, "truth").await;
    assert_eq!((&calm["n"], &calm["store"], &calm["html"]), (&0.into(), &true.into(), &"".into()));
    let page = async |path: &str, language: &str| {
        let ask = server.ask("GET", path).header("cookie", &cookie);
        let response = ask.header("accept-language", language).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    };
    let job = page("/jobs/outbound", "en").await;
    for said in ["It has not run yet", "No output yet.", "data-store=\"ok\""] {
        assert!(job.contains(said), "{said}");
    }
    assert!(!job.contains("data-fact=\"store\"") && job.contains("<title>Outbound"), "{job}");
    beat(&server, "node-a").await;
    until_async("a node is listed, and holds nothing", async || {
        page("/nodes", "en").await.contains("<dd>no script;").then_some(())
    })
    .await;

    server.redis.stop();
    let told = hear_type(&mut socket, "truth").await;
    assert_eq!((&told["n"], &told["store"]), (&1.into(), &false.into()), "{told}");
    assert!(told["html"].as_str().unwrap().contains("what you see is old"), "{told}");
    let page = async |path: &str, language: &str| {
        let ask = server.ask("GET", path).header("cookie", &cookie);
        ask.header("accept-language", language).send().await.unwrap().text().await.unwrap()
    };
    for path in ["/", "/jobs/outbound", "/nodes", "/dispatch", "/rotations", "/alerts", "/audit"] {
        let html = page(path, "en").await;
        for said in ["data-fact=\"store\"", "data-store=\"away\"", "<title>(1!) ", "icon-trouble"] {
            assert!(html.contains(said), "{path} lacks {said}: {html}");
        }
        for guess in [
            "It has not",
            "No output yet.",
            "No node has reported",
            "No acts",
            "No source yet",
            "No alert is set up",
            "<dd>no script;",
        ] {
            assert!(!html.contains(guess), "{path} says {guess}");
        }
    }
    assert_eq!(page("/jobs/outbound", "en").await.matches("Could not be read").count(), 3);
    assert!(page("/jobs/outbound", "zh").await.contains("读取失败"));
    assert!(page("/nodes", "zh").await.contains("<dd>未知</dd>"), "what it holds");
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

async fn beat(server: &Server, name: &str) {
    beat_of(server, name, &["outbound"]).await;
}

/// A node reports, which may run these jobs.
pub(super) async fn beat_of(server: &Server, name: &str, jobs: &[&str]) {
    let beat = Beat {
        node: node(name),
        boot: format!("boot of {name}"),
        version: "0".to_owned(),
        started: StoreTime(0),
        containment: "subreaper".to_owned(),
        url: String::new(),
        digest: String::new(),
        jobs: jobs.iter().map(|job| JobName::new(job).unwrap()).collect(),
        holds: Vec::new(),
        unfit: Default::default(),
        vitals: None,
        watched: None,
    };
    assert!(matches!(server.store().beat(&beat).await.unwrap(), Heard::Welcome { .. }));
}

/// Takes the lease of a job for a node, as soon as it can be had.
async fn take(server: &Server, job: &JobName, name: &str, seen: Token) -> Token {
    let ask = Acquire {
        job: job.clone(),
        owner: Owner(name.to_owned()),
        node: node(name),
        ttl: Duration::from_secs(60),
        condition: Condition::Wanted,
        seen,
    };
    loop {
        match server.store().acquire(&ask).await.unwrap() {
            Acquired::Granted { token, .. } => return token,
            Acquired::Quarantined { wait } => tokio::time::sleep(wait).await,
            other => panic!("{other:?}"),
        }
    }
}

async fn a_lost_node_and_who_took_its_jobs_stand_on_every_page(on: On) {
    let server = Server::on(on).await;
    let (mut socket, cookie, _) = of_a_page(&server, "li", Role::Operator).await;
    let job = JobName::new("outbound").unwrap();
    let li = "li".parse().unwrap();
    server.store().participate(&job, &li, true, None).await.unwrap();
    let token = take(&server, &job, "node-b", Token(0)).await;
    let run = RunId("01JLOST".to_owned());
    let began = Began::at_boot(soloist::clock::boot());
    let node_b = node("node-b");
    let started =
        Started { job: job.clone(), token, run: run.clone(), node: node_b, pid: 1, began };
    server.store().record_started(&started).await.unwrap();
    beat(&server, "node-a").await;
    beat(&server, "node-b").await;
    // Its guard sees the node die, and says so.
    let ended = Ended {
        job: job.clone(),
        owner: Owner("node-b".to_owned()),
        token,
        run,
        exit: Exit { code: None, signal: Some(9) },
        end: RunEnd::Lost,
        processes_killed: 1,
        then: Then::Nothing,
        began: None,
    };
    server.store().record_ended(&ended).await.unwrap();
    take(&server, &job, "node-a", token).await;
    let told = loop {
        beat(&server, "node-a").await;
        let next = tokio::time::timeout(Duration::from_secs(1), hear_type(&mut socket, "truth"));
        if let Ok(frame) = next.await
            && frame["n"] == 1
        {
            break frame;
        }
    };
    assert_eq!(told["store"], true);
    let html = told["html"].as_str().unwrap();
    for said in ["data-fact=\"lost\"", "<strong>node-b</strong> lost at", "took 1 job in"] {
        assert!(html.contains(said), "{said}: {html}");
    }
    for path in ["/", "/jobs/outbound", "/audit/nowhere"] {
        let page = server.ask("GET", path).header("cookie", &cookie).send().await.unwrap();
        assert!(page.text().await.unwrap().contains("<strong>node-b</strong> lost at"), "{path}");
    }
    let nodes = server.ask("GET", "/nodes").header("cookie", &cookie);
    let nodes = nodes.header("accept-language", "en").send().await.unwrap().text().await.unwrap();
    let held = nodes.split("data-once-held>").nth(1).unwrap().split("</p>").next().unwrap();
    assert!(held.starts_with("Held <strong>outbound</strong> until <time"), "{held}");
    assert!(held.ends_with("; now on <strong>node-a</strong>."), "{held}");
    assert_eq!(nodes.matches("data-once-held").count(), 1, "of the lost node alone: {nodes}");
    // It is back: nothing to say.
    beat(&server, "node-b").await;
    while hear_type(&mut socket, "truth").await["n"] != 0 {
        beat(&server, "node-a").await;
        beat(&server, "node-b").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_one_node_nothing_is_offered_that_cannot_be() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let job = JobName::new("outbound").unwrap();
    server.store().participate(&job, &"li".parse().unwrap(), true, None).await.unwrap();
    take(&server, &job, "node-a", Token(0)).await;
    beat(&server, "node-a").await;
    let until = async |path: &str, says: &str, never: &str| {
        let mut html = String::new();
        for _ in 0..200 {
            html = server.page(path, &token, "en").await;
            if html.contains(says) && !html.contains(never) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{path} does not say {says:?}, or says {never:?}: {html}");
    };
    until("/jobs/outbound", "no other living node may run it", "/jobs/outbound/move").await;
    let ask = server.ask("POST", "/nodes/node-a/drain").bearer_auth(&token);
    let ask = ask.header("content-type", "application/x-www-form-urlencoded").body("on=true");
    let question = ask.send().await.unwrap().text().await.unwrap();
    assert!(question.contains("outbound has nowhere to go"), "{question}");

    beat(&server, "node-b").await;
    until("/jobs/outbound", "/jobs/outbound/move", "no other living node may run it").await;
    let ask = server.ask("POST", "/nodes/node-a/drain").bearer_auth(&token);
    let ask = ask.header("content-type", "application/x-www-form-urlencoded").body("on=true");
    let question = ask.send().await.unwrap().text().await.unwrap();
    assert!(!question.contains("nowhere to go"), "{question}");
}

#[tokio::test(flavor = "multi_thread")]
async fn noted_rules_are_read_as_words_and_an_error_in_the_readers_language() {
    let server = Server::start().await;
    let (_, cookie, _) = of_a_page(&server, "li", Role::Admin).await;
    let entry = AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: "li".to_owned(),
        from: "terminal".to_owned(),
        act: "source.put".to_owned(),
        target: "pages".to_owned(),
        reason: Some(r#"{"gap_ms":1000,"window":null,"cap":2,"lease_ms":30000,"max_attempts":5,"backoff":{"first_ms":1000,"max_ms":300000},"paused":false}"#.to_owned()), kind: soloist::store::journal::Kind::Person, count: 1, until: None };
    server.store().audit(&entry).await.unwrap();
    let page = async |path: &str, language: &str| {
        let ask = server.ask("GET", path).header("cookie", &cookie);
        ask.header("accept-language", language).send().await.unwrap().text().await.unwrap()
    };
    let audit = page("/audit", "en").await;
    assert!(audit.contains("one start per 1 s · 2 at once · lease 30 s"), "{audit}");
    assert!(!audit.contains("gap_ms"), "{audit}");
    for (path, says) in [("/nowhere", "这个地址下没有内容"), ("/jobs/nowhere", "没有任务 nowhere")]
    {
        let error = page(path, "zh").await;
        assert!(error.contains(says) && error.contains("<html lang=\"zh\""), "{error}");
        assert!(error.contains("<nav class=\"nav\"") && error.contains("li 的账号"), "{error}");
    }
    assert!(page("/nowhere", "en").await.contains("There is nothing at this address."));
}
