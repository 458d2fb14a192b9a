//! A store that the version before wrote becomes one of this version at the first start, with nothing lost.

use std::time::Duration;

use soloist::domain::job::RunEnd;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId};
use soloist::domain::time::{Began, StoreTime};
use soloist::store::jobs::Jobs;
use soloist::store::journal::Journal;
use soloist::store::leases::{Acquired, Leases, Renewal, Renewed};
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
    assert_eq!(server.run::<String>(&["GET", "soloist:schema"]), "2");
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
