//! `soloist doctor` on stores and machines that are well, and on some that are not.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

const JOBS: &str = "[[job]]\nname = \"outbound\"\ncommand = [\"true\"]\n";

/// The exit code and the findings.
pub(crate) fn examined(ground: &Ground, args: &[&str]) -> (i32, Vec<Value>) {
    let output = ground.run(&[&["doctor", "--json"], args].concat());
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = answer["findings"].as_array().expect("findings").clone();
    let bad = findings.iter().filter(|finding| finding["verdict"] == "bad").count();
    assert_eq!(answer["bad"], bad);
    assert_eq!(output.status.code(), Some(i32::from(bad > 0)), "{answer}");
    for finding in &findings {
        let said = finding["remedy"].is_string() || finding["verdict"] == "ok";
        let self_told = ["configuration", "files", "servers"].map(Value::from);
        assert!(said || self_told.contains(&finding["check"]), "no remedy: {finding}");
    }
    (output.status.code().expect("it ended"), findings)
}

#[track_caller]
pub(crate) fn found<'a>(findings: &'a [Value], check: &str, verdict: &str) -> &'a str {
    let of = |f: &&Value| f["check"] == check && f["verdict"] == verdict;
    let finding = findings.iter().find(of);
    finding.unwrap_or_else(|| panic!("no {verdict} {check}: {findings:#?}"))["what"]
        .as_str()
        .expect("words")
}

#[test]
fn an_embedded_store_is_well_and_says_what_it_cannot_do() {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    ground.add_user("li", "operator");
    let (code, findings) = examined(&ground, &[]);
    assert_eq!(code, 0);
    for check in [
        "configuration",
        "commands",
        "store",
        "persistence",
        "journal",
        "clock rate",
        "containment",
    ] {
        found(&findings, check, "ok");
    }
    assert!(found(&findings, "store", "ok").contains("SQLite 3."));
    assert!(found(&findings, "replication", "ok").contains("no other machine can take over"));
    found(&findings, "nodes", "warn");
    let text = ground.must(&["doctor"]);
    assert!(text.contains("warn  nodes") && text.contains("-> start one: soloist serve"), "{text}");
}

/// At a provider people choose their names: whoever is called so first would get what was meant for somebody else.
#[test]
fn a_name_among_operators_that_is_no_account_yet_is_named_where_a_first_sign_in_makes_accounts() {
    let provider = "public_url = \"https://jobs.example.org\"\n\
        oidc = { issuer = \"https://login.example.org\", client_id = \"soloist\", roles = { viewer = [\"staff\"] }, create_accounts = true }\n";
    let jobs = "[[job]]\nname = \"outbound\"\ncommand = [\"true\"]\noperators = [\"li\", \"boss\", \"@shift\"]\nviewers = [\"*\"]\n\
        [[job]]\nname = \"labels\"\ncommand = [\"true\"]\nviewers = [\"boss\"]\n";
    let said = |provider: &str, boss: bool| {
        let ground = Ground::new("sqlite:soloist.db", &format!("{provider}{jobs}"));
        for name in ["li", "boss"].iter().take(1 + usize::from(boss)) {
            ground.add_user(name, "operator");
        }
        let findings = examined(&ground, &[]).1.into_iter();
        let said = findings.map(|finding| finding["what"].to_string());
        said.filter(|what| what.contains("no account yet")).collect::<Vec<_>>()
    };
    let named = said(provider, false);
    let [only] = &named[..] else { panic!("{named:?}") };
    assert!(only.contains("of labels, outbound name boss, which is no account yet"), "{only}");
    assert_eq!(said(provider, true), [""; 0], "it is there");
    assert_eq!(said("", false), [""; 0], "only an admin makes accounts");
}

#[test]
fn a_redis_is_asked_for_persistence_eviction_and_replicas() {
    let redis = RedisServer::start(&["--maxmemory", "100mb", "--maxmemory-policy", "noeviction"]);
    let ground = Ground::new(&redis.url(), JOBS);
    let (code, findings) = examined(&ground, &[]);
    assert_eq!(code, 0);
    found(&findings, "persistence", "warn");
    found(&findings, "eviction", "ok");
    found(&findings, "memory", "ok");
    assert!(found(&findings, "replication", "ok").contains("no replica"));
    // Whether it is well is the machine's affair; that it was measured is doctor's.
    let latency = findings.iter().find(|finding| finding["check"] == "latency");
    let latency = latency.unwrap_or_else(|| panic!("no latency: {findings:#?}"));
    assert!(["ok", "warn"].map(Value::from).contains(&latency["verdict"]), "{latency}");
    assert!(latency["what"].as_str().expect("words").contains("50 round trips"), "{latency}");
    found(&findings, "clock offset", "ok");
    redis.run::<String>(&["CONFIG", "SET", "appendonly", "yes"]);
    let _nodes = [ground.start("node-a"), ground.start("node-b")];
    let (_, findings) = examined(&ground, &[]);
    found(&findings, "persistence", "ok");
    assert!(found(&findings, "nodes", "ok").starts_with("2 alive"));
}

#[tokio::test(flavor = "multi_thread")]
async fn eviction_that_is_set_later_is_seen_by_doctor_and_readyz() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), JOBS);
    let node = ground.start("node-a");
    let ready = async || {
        crate::support::http::get(format!("{}/readyz", node.url)).await.expect("an answer")
    };
    assert_eq!(ready().await.status(), 200);
    redis.run::<String>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    // A node asks its store at most twice a second for it.
    let answer = until_async("readyz says so", async || {
        let answer = ready().await;
        (answer.status() == 503).then_some(answer)
    })
    .await;
    assert!(answer.text().await.expect("text").contains("maxmemory-policy"));
    let (code, findings) = examined(&ground, &[]);
    assert_eq!(code, 1);
    assert!(found(&findings, "store", "bad").contains("maxmemory-policy"));
}

#[test]
fn a_store_out_of_reach_is_one_finding_and_the_rest_is_looked_at() {
    let ground = Ground::new("redis://u:sesame@127.0.0.1:1/0", JOBS);
    let (code, findings) = examined(&ground, &[]);
    assert_eq!(code, 1);
    let bad: Vec<_> = findings.iter().filter(|f| f["verdict"] == "bad").collect();
    assert_eq!(bad.len(), 1, "{findings:#?}");
    assert!(!findings.iter().any(|f| f.to_string().contains("sesame")));
    for check in ["commands", "descriptors", "containment"] {
        assert!(findings.iter().any(|f| f["check"] == check), "{check}");
    }
}

#[test]
fn a_file_that_others_may_change_or_a_command_that_is_missing_is_found() {
    let ground = Ground::new("sqlite:soloist.db", JOBS);
    let file = ground.path("soloist.toml");
    for (mode, who) in [(0o660, "group"), (0o606, "others")] {
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("changed");
        let (_, findings) = examined(&ground, &[]);
        assert!(found(&findings, "configuration", "warn").contains(who));
    }
    let ground = Ground::new("sqlite:soloist.db", &JOBS.replace("\"true\"", "\"no-such-thing\""));
    let findings = examined(&ground, &[]).1;
    let named =
        findings.iter().any(|f| f["verdict"] != "ok" && f.to_string().contains("no-such-thing"));
    assert!(named, "{findings:#?}");
}
