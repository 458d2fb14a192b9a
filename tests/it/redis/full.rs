//! A server that may evict, has no memory left, or cannot save: said in words, and a lease that is held stays held.

use std::collections::HashMap;
use std::path::Path;

use soloist::store::jobs::Jobs;
use soloist::store::leases::{Leases, Renewed};
use soloist::store::{Options, Store, StoreError};

use super::{
    TTL, ask, connect, granted, granted_in_the_end, in_the_end, job, li, renew_one, renewal,
};
use crate::lifecycle::JOB;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};
use crate::support::witness::{self, Witness};

#[tokio::test]
async fn a_server_that_may_evict_leases_is_refused_with_the_command_that_helps() {
    for policy in ["allkeys-lru", "volatile-lru", "volatile-ttl"] {
        let server = RedisServer::start(&["--maxmemory-policy", policy]);
        let refused = soloist::stores::connect(&server.url(), &Options::default()).await.err();
        let Some(StoreError::Unsupported(why)) = refused else { panic!("{policy} is accepted") };
        assert!(why.contains("CONFIG SET maxmemory-policy noeviction"), "{why}");
        assert!(why.contains(policy), "{why}");
        server.run::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        connect(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_set_while_a_node_runs_is_said_on_readyz() {
    let server = RedisServer::start(&[]);
    let ground = Ground::new(&server.url(), &witness::job(JOB, "beat", ""));
    witness::place(&ground);
    let node = ground.start("node-a");
    let ready = async || {
        let answer =
            crate::support::http::get(format!("{}/readyz", node.url)).await.expect("it answers");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    };
    until_async("it is ready", async || (ready().await.0 == 200).then_some(())).await;
    server.run::<()>(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    // A node asks its store at most twice a second for it.
    let text = until_async("readyz says so", async || {
        let (status, text) = ready().await;
        (status == 503).then_some(text)
    })
    .await;
    assert!(text.contains("volatile-lru") && text.contains("noeviction"), "{text}");
    server.run::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    until_async("and that it is ready again", async || (ready().await.0 == 200).then_some(()))
        .await;
}

/// What a call that writes says of a server in trouble.
async fn refusal(store: &Store) -> String {
    match store.acquire(&ask("node-b", TTL)).await {
        Err(StoreError::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_memory_a_lease_is_still_renewed_and_a_new_one_refused_in_words() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut held = ask("node-a", TTL);
    held.job = soloist::domain::name::JobName::new("inbound").expect("a good name");
    let token = granted(&store, &held).await;
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let described = store.describe().await.expect_err("it takes no writes").to_string();
    for why in [refusal(&store).await, described] {
        assert!(why.contains("out of memory") && why.contains("raise maxmemory"), "{why}");
    }
    for _ in 0..3 {
        let renewed = renew_one(&store, &renewal(&held, token)).await;
        assert!(matches!(renewed, Renewed::Kept { .. }));
    }
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    granted_in_the_end(&store, &ask("node-b", TTL)).await;
}

/// Makes saving fail as a full disk does: what is to be replaced cannot be.
fn fill_disk(server: &RedisServer) -> impl Fn() {
    server.run::<()>(&["CONFIG", "SET", "save", "3600 1"]);
    let place: HashMap<String, String> = server.run(&["CONFIG", "GET", "dir"]);
    let file = Path::new(&place["dir"]).join("dump.rdb");
    std::fs::create_dir(&file).expect("in the way");
    save(server, "rdb_last_bgsave_status:err");
    move || std::fs::remove_dir(&file).expect("out of the way")
}

fn save(server: &RedisServer, outcome: &str) {
    server.run::<String>(&["SET", "something", "to save"]);
    server.run::<String>(&["BGSAVE"]);
    until(outcome, || {
        server.run::<String>(&["INFO", "persistence"]).contains(outcome).then_some(())
    });
}

#[tokio::test]
async fn a_disk_that_is_full_is_said_in_words_and_the_lease_is_renewed_once_it_is_not() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut held = ask("node-a", TTL);
    held.job = soloist::domain::name::JobName::new("inbound").expect("a good name");
    let token = granted(&store, &held).await;
    let free = fill_disk(&server);
    let renewed = store.renew(&[renewal(&held, token)]).await.map(drop);
    let switched = store.participate(&job(), &li(), true, None).await.map(drop);
    for answer in [renewed, switched, Err(StoreError::Unavailable(refusal(&store).await))] {
        let Err(StoreError::Unavailable(why)) = answer else { panic!("{answer:?}") };
        assert!(why.contains("cannot save to disk") && why.contains("free space"), "{why}");
    }
    free();
    server.run::<String>(&["BGSAVE"]);
    let mine = renewal(&held, token);
    assert!(matches!(renew_one(&store, &mine).await, Renewed::Kept { .. }));
    let (job, li) = (job(), li());
    assert!(in_the_end(|| store.participate(&job, &li, true, None)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_ended_in_time_when_the_disk_of_the_store_is_full_and_readyz_says_why() {
    let server = RedisServer::start(&[]);
    let ground = Ground::new(&server.url(), &witness::job(JOB, "beat", "lease_ttl = \"2s\""));
    witness::place(&ground);
    ground.add_user("li", "operator");
    let li = ground.token("li");
    let node = ground.start("node-a");
    let witness = Witness::of(&ground, JOB);
    node.api(&li).switch(JOB, true).await;
    let first = witness.until_started(1);
    let free = fill_disk(&server);
    until_async("/readyz says why", async || {
        let answer =
            crate::support::http::get(format!("{}/readyz", node.url)).await.expect("it answers");
        let (status, text) = (answer.status(), answer.text().await.expect("a text"));
        (status == 503 && text.contains("cannot save to disk")).then_some(())
    })
    .await;
    until("the script was ended", || witness.living().is_empty().then_some(()));
    assert_eq!(witness.starts(), 1);
    free();
    server.run::<String>(&["BGSAVE"]);
    let second = witness.until_started(2);
    assert!(second.token > first.token);
    witness.check();
}
