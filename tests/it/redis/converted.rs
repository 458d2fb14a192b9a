//! A store that the version before wrote becomes one of this version at the first start, with nothing lost.

use std::collections::BTreeSet;
use std::time::Duration;

use soloist::domain::job::RunEnd;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId};
use soloist::domain::rotation::{Reason, Rules, TurnOutcome};
use soloist::domain::time::{Began, StoreTime};
use soloist::store::accounts::{Accounts, Role};
use soloist::store::credentials::Credentials;
use soloist::store::jobs::Jobs;
use soloist::store::journal::{AuditEntry, Journal};
use soloist::store::leases::{Acquired, Leases, Renewal, Renewed};
use soloist::store::nodes::{Beat, Heard, Nodes};
use soloist::store::rotation::{Pass, Rotations as _, Taken, TurnAsk};
use soloist::store::{Options, Store, StoreError};

use super::{connect, li};
use crate::support::redis::RedisServer;

const WRITTEN: &str = include_str!("../stores/redis-schema-1.txt");
const TTL: Duration = Duration::from_secs(30);
const TOKEN: Token = Token(1_838_443_192_742_912);
const RUN: &str = "01M81QMQ2XM1FJQ77QMS5DNT3Z";

/// A server with what version 541e2c5 wrote.
fn as_it_was() -> RedisServer {
    let server = RedisServer::start(&[]);
    for line in WRITTEN.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<String> = serde_json::from_str(line).expect("a command");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        server.run::<::redis::Value>(&words);
    }
    server
}

fn job(name: &str) -> JobName {
    JobName::new(name).expect("a good name")
}

fn the_holder() -> Renewal {
    Renewal {
        job: job("outbound"),
        owner: Owner("a6ceb3583567237cfbc921392335d8d0/6".to_owned()),
        node: NodeName::new("node-a").expect("a good name"),
        token: TOKEN,
        ttl: TTL,
        since: Began { boot: soloist::clock::boot(), at: Some(StoreTime(1_795_354_680_413)) },
        run: Some(RunId(RUN.to_owned())),
    }
}

#[tokio::test]
async fn accounts_credentials_drain_marks_and_the_audit_are_as_they_were() {
    let server = as_it_was();
    let store = connect(&server).await;
    let users = store.users().await.expect("users");
    let users: Vec<_> = users.iter().map(|one| (one.name.as_str(), one.role)).collect();
    assert_eq!(users, [("li", Role::Operator), ("wang", Role::Admin)]);

    let tokens = store.tokens().await.expect("tokens");
    let tokens: Vec<_> = tokens
        .iter()
        .map(|one| (one.id.as_str(), one.expires.is_some(), one.sources.len()))
        .collect();
    assert_eq!(tokens, [("b59d09b8ed70", true, 1), ("d8a9ce8b9c72", false, 0)]);
    let ci = store.token("78de").await.expect("answered").expect("it lasts");
    assert_eq!((ci.user.as_str(), ci.created), ("li", StoreTime(1_795_374_361_474)));
    // Idle for years by now, so that a reader who allows that finds it.
    let years = Duration::from_secs(100 * 366 * 24 * 3600);
    let session = store.session("26d7", years).await.expect("answered").expect("it lasts");
    assert_eq!((session.user.as_str(), session.csrf.as_str()), ("li", "3424"));
    let link = store.link("5bd3", true).await.expect("answered").expect("it lasts");
    assert_eq!(link.user.expect("of an account").as_str(), "wang");

    // Nobody reported since, but the mark stays.
    assert_eq!(store.nodes().await.expect("nodes"), []);
    let heard = store.beat(&beat("node-a")).await.expect("heard");
    assert_eq!(heard, Heard::Welcome { draining: true, told: false });

    let new = AuditEntry { act: "link.new".to_owned(), ..newest(&store).await };
    store.audit(&new).await.expect("noted");
    let acts = store.audits(None, None, 9).await.expect("audits");
    let acts: Vec<_> = acts.iter().map(|one| (one.id, one.target.as_str())).collect();
    assert_eq!(acts, [(3, "li"), (2, "li"), (1, "wang")]);
}

async fn newest(store: &Store) -> AuditEntry {
    store.audits(None, None, 1).await.expect("audits").remove(0)
}

fn beat(node: &str) -> Beat {
    Beat {
        node: NodeName::new(node).expect("a good name"),
        boot: "b".to_owned(),
        version: "0.2.0".to_owned(),
        started: StoreTime(1),
        containment: "subreaper".to_owned(),
        url: String::new(),
        jobs: BTreeSet::new(),
        digest: String::new(),
        holds: Vec::new(),
        vitals: None,
    }
}

#[tokio::test]
async fn every_job_is_as_it_was_and_a_run_goes_on() {
    let server = as_it_was();
    let store = connect(&server).await;
    let jobs = ["outbound", "settlement", "collector", "held"].map(job);
    let snapshot = store.snapshot(&jobs).await.expect("a snapshot");
    let [outbound, settlement, collector, held] = &snapshot.jobs[..] else { panic!("four") };

    let lease = outbound.lease.as_ref().expect("it runs");
    assert_eq!((lease.token, lease.ttl), (TOKEN, TTL));
    assert!(lease.expires_in > TTL / 2 && lease.expires_in <= TTL);
    let run = outbound.run.as_ref().expect("it runs");
    assert_eq!((run.id.as_str(), run.pid), (RUN, 30_217));
    assert_eq!(run.progress.as_ref().map(|progress| progress.done), Some(3));
    assert_eq!((outbound.version, outbound.log_seq), (4, 1));
    assert_eq!(outbound.last_switch.as_ref().unwrap().reason.as_deref(), Some("spring sale"));
    let renewed = store.renew(&[the_holder()]).await.expect("renewed");
    assert!(matches!(renewed[..], [Renewed::Kept { forgot: false, .. }]), "{renewed:?}");

    assert!(settlement.given_up && settlement.crashes == 2 && settlement.lease.is_none());
    let runs = store.runs(&settlement.name, None, 9).await.expect("runs");
    assert_eq!(runs.iter().map(|run| run.end).collect::<Vec<_>>(), [Some(RunEnd::Crashed); 2]);
    assert!(runs[0].token > runs[1].token, "newest first");
    assert_eq!(store.log(&settlement.name, None, 9).await.expect("lines").len(), 2);
    assert!(collector.participants.is_empty() && collector.version == 2);
    assert_eq!(held.hold.as_ref().map(|hold| hold.reason.as_str()), Some("stocktaking"));

    // Tokens go on growing, in history and leases.
    store.participate(&settlement.name, &li(), true, None).await.expect("forgiven");
    let mut ask = super::ask("node-b", TTL);
    ask.job = settlement.name.clone();
    let answer = store.acquire(&ask).await.expect("an answer");
    let Acquired::Granted { token, .. } = answer else { panic!("{answer:?}") };
    assert!(token > settlement.token);

    let mut keys: Vec<String> = server.run(&["KEYS", "soloist:{*"]);
    keys.retain(|key| ![":record", ":lease", ":runs", ":log"].iter().any(|end| key.ends_with(end)));
    assert_eq!(keys, [""; 0]);
    assert_eq!(server.run::<String>(&["GET", "soloist:schema"]), "3");
    drop(store);
    connect(&server).await;
}

#[tokio::test]
async fn who_only_looks_converts_nothing_and_hears_what_to_do() {
    let server = as_it_was();
    let looking = Options { make: false, ..Options::default() };
    let Err(StoreError::Unsupported(why)) = Store::connect(&server.url(), &looking).await else {
        panic!("opened")
    };
    assert!(why.contains("soloist serve"), "{why}");
    assert_eq!(server.run::<String>(&["GET", "soloist:schema"]), "1");
    assert_eq!(server.run::<u8>(&["EXISTS", "soloist:{outbound}:state"]), 1);
}

#[tokio::test]
async fn a_store_is_not_converted_while_a_process_of_the_version_before_uses_it() {
    let server = as_it_was();
    let mut other = ::redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    ::redis::cmd("CLIENT").arg("SETNAME").arg("soloist:leases").exec(&mut other).unwrap();
    let Err(error) = Store::connect(&server.url(), &Options::default()).await else {
        panic!("converted under its feet")
    };
    let StoreError::Unsupported(why) = error else { panic!("{error}") };
    assert!(why.contains("stop every node of that version"), "{why}");
    assert_eq!(server.run::<String>(&["GET", "soloist:schema"]), "1");
    assert_eq!(server.run::<u8>(&["EXISTS", "soloist:{outbound}:state"]), 1);
    drop(other);
    let (url, options) = (server.url(), Options::default());
    super::in_the_end(|| Store::connect(&url, &options)).await;
}

#[tokio::test]
async fn a_rotation_keeps_its_rules_turn_past_and_quota_and_its_tokens_go_on_growing() {
    let server = as_it_was();
    let store = connect(&server).await;
    let name = "supplier".parse().expect("a name");
    let view = store.rotations(Some(&name), 9).await.expect("it is there").remove(0);
    let turn = view.ring.turn.clone().expect("somebody has it");
    assert_eq!(turn.token, Token(1_838_464_539_253_760));
    assert_eq!((turn.kind.as_str(), turn.worker.as_str()), ("orders", "w1"));
    assert_eq!(turn.lease, Duration::from_secs(20));
    let [orders, stock] = &view.rules.types[..] else { panic!("two") };
    assert_eq!((orders.name.as_str(), orders.gap), ("orders", Duration::from_millis(10)));
    assert_eq!(stock.quota.map(|quota| quota.count), Some(2));
    let starts = &view.ring.starts[&stock.name];
    assert_eq!(
        starts.recent.iter().map(|at| at.0).collect::<Vec<_>>(),
        [1_795_375_526_386_474, 1_795_375_526_515_102]
    );
    assert_eq!(view.ring.last_start, Some(turn.since));
    let endings = |nth: usize| (view.types[nth].done, view.types[nth].empty, view.types[nth].lost);
    assert_eq!((endings(0), endings(1)), ((2, 0, 0), (1, 1, 0)));
    let past: Vec<u64> = view.past.iter().map(|past| past.token.0).collect();
    assert_eq!(past.len(), 4);
    assert!(past.is_sorted_by(|a, b| a > b) && past[0] < turn.token.0, "{past:?}");
    let waiters: Vec<_> = view.waiters.iter().map(|one| one.worker.as_str()).collect();
    assert_eq!(waiters, ["w3"], "its place is kept");

    // Its lease was over long ago by the clock of this test, or goes on.
    let pass = Pass {
        rotation: name.clone(),
        turn: turn.token,
        only: None,
        outcome: TurnOutcome::Done,
        next: None,
        not_before: None,
    };
    store.pass_turn(&pass).await.expect("an answer");
    let lease = Duration::from_millis(100);
    let rules = Rules { lease, min_gap: Duration::ZERO, ..view.rules.clone() };
    store.put_rotation(&name, &rules).await.expect("put");
    let ask = TurnAsk {
        rotation: name.clone(),
        kind: orders.name.clone(),
        worker: turn.worker.clone(),
        request: "another".parse().expect("a label"),
        wait: None,
    };
    let said = store.take_turn(&ask).await.expect("an answer");
    // Another server remembers for it now.
    assert!(matches!(said, Taken::Waiting { reason: Reason::Recovery, .. }), "{said:?}");
}
