//! What only PostgreSQL can do to a store: settings that are refused, a replica that is promoted, a server that is killed, connections
//! that are cut; and two nodes of the program itself on it.

mod doctor;
mod faults;
mod laws;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use soloist::clock;
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, UserName};
use soloist::domain::time::Began;
use soloist::store::events::{Events as _, StoreEvent};
use soloist::store::jobs::Jobs as _;
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _, Renewal, Renewed};
use soloist::store::{Options, Store, StoreError};

use crate::support::machine::{in_time, judged};
use crate::support::node::Ground;
use crate::support::postgres::PostgresServer;
use crate::support::wait::until_async;
use crate::support::witness::{self, Witness};

judged! {
    a_change_is_heard_by_the_bell_and_not_by_the_sweep
}

pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn job() -> JobName {
    JobName::new("outbound").expect("a good name")
}

pub(crate) fn options() -> Options {
    Options { timeout: Duration::from_secs(10), ..Options::default() }
}

pub(crate) fn ask(node: &str, ttl: Duration) -> Acquire {
    Acquire {
        job: job(),
        owner: Owner(format!("owner-of-{node}")),
        node: NodeName::new(node).expect("a good name"),
        ttl,
        condition: Condition::None,
        seen: Token(0),
    }
}

pub(crate) async fn granted(store: &Store, ask: &Acquire) -> Token {
    match store.acquire(ask).await.expect("an answer") {
        Acquired::Granted { token, .. } => token,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn renew(store: &Store, ask: &Acquire, token: Token) -> Renewed {
    let renewal = Renewal {
        job: ask.job.clone(),
        owner: ask.owner.clone(),
        node: ask.node.clone(),
        token,
        ttl: ask.ttl,
        since: Began::at_boot(clock::boot()),
        run: None,
    };
    until_async("a renewal is answered", async || {
        store.renew(std::slice::from_ref(&renewal)).await.ok().map(|answers| answers[0])
    })
    .await
}

pub(crate) async fn refusal(url: &str) -> String {
    match soloist::stores::connect(url, &options()).await.err() {
        Some(StoreError::Unsupported(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_keep_the_promise_is_refused_with_a_remedy() {
    let server = PostgresServer::start(&["fsync=off"]);
    let why = refusal(&server.database()).await;
    assert!(why.contains("fsync = on"), "{why}");
    let shared = PostgresServer::shared();
    shared.psql(
        "postgres",
        "CREATE DATABASE old_words ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'",
    );
    let why = refusal(&shared.url_of("old_words")).await;
    assert!(why.contains("createdb -E UTF8"), "{why}");
    let why = refusal(&shared.url_of("nowhere")).await;
    assert!(why.contains("createdb"), "{why}");
    let url = shared.database();
    let name = url.rsplit('/').next().expect("its name");
    shared.psql(name, "CREATE TABLE soloist.orders ()");
    let why = refusal(&url).await;
    assert!(why.contains("another program") && why.contains("?schema=NAME"), "{why}");
    shared.psql(name, "CREATE SCHEMA later AUTHORIZATION soloist; CREATE TABLE later.soloist_store (number BIGINT); \
         INSERT INTO later.soloist_store VALUES (99); GRANT SELECT ON later.soloist_store TO soloist");
    let newer = soloist::stores::connect(&format!("{url}?schema=later"), &options()).await.err();
    assert!(matches!(newer, Some(StoreError::NewerSchema { found: 99, .. })), "{newer:?}");
}

#[tokio::test]
async fn who_only_looks_makes_no_store() {
    let url = PostgresServer::shared().database();
    let looking = Options { make: false, ..options() };
    let absent = soloist::stores::connect(&url, &looking).await.err();
    assert!(matches!(absent, Some(StoreError::Absent(_))), "{absent:?}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'soloist'";
    let name = url.rsplit('/').next().expect("its name");
    assert_eq!(PostgresServer::shared().psql(name, tables), "0");
}

#[tokio::test]
async fn synchronous_commit_off_is_set_right_on_our_own_connections() {
    let server = PostgresServer::start(&["synchronous_commit=off"]);
    let store = soloist::stores::connect(&server.database(), &options()).await.expect("it opens");
    let found = store.examine().await.expect("looked at");
    let said = found.iter().find(|one| one.check == "persistence").expect("persistence");
    assert!(said.what.contains("synchronous_commit on"), "{said:?}");
}

#[tokio::test]
async fn a_promoted_replica_that_never_saw_the_lease_grants_nothing_until_it_is_over() {
    let mut primary = PostgresServer::start(&[]);
    let url = primary.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    store.snapshot(&[job()]).await.expect("an epoch");
    let replica = primary.replica();
    granted(&store, &ask("node-a", Duration::from_secs(10))).await;
    primary.kill();
    let there = replica.url_of(url.rsplit('/').next().expect("its name"));
    let Some(StoreError::Unavailable(why)) =
        soloist::stores::connect(&there, &options()).await.err()
    else {
        panic!("a replica was taken for a primary")
    };
    assert!(why.contains("replica"), "{why}");
    assert_eq!(replica.psql("postgres", "SELECT pg_promote()"), "t");
    let fresh = soloist::stores::connect(&there, &options()).await.expect("it opens");
    let answer = fresh.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}

#[tokio::test]
async fn a_server_that_was_killed_has_forgotten_no_lease() {
    let mut server = PostgresServer::start(&[]);
    let url = server.database();
    let (holder, other) = (
        soloist::stores::connect(&url, &options()).await.expect("it opens"),
        soloist::stores::connect(&url, &options()).await.expect("it opens"),
    );
    let mine = ask("node-a", LONG);
    let token = granted(&holder, &mine).await;
    server.restart();
    assert!(matches!(renew(&holder, &mine, token).await, Renewed::Kept { .. }));
    let answer =
        until_async("an answer", async || other.acquire(&ask("node-b", LONG)).await.ok()).await;
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
}

#[tokio::test]
async fn connections_that_are_cut_come_back_and_half_of_nothing_is_done() {
    let server = PostgresServer::start(&[]);
    cut_again_and_again(&server.database(), || {
        server.psql("postgres", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'soloist%'");
    })
    .await;
}

/// Acts at the store at `url` go on, and each is done or not, while `cut` ends all connections of the user.
pub(crate) async fn cut_again_and_again(url: &str, cut: impl Fn()) {
    let store = soloist::stores::connect(url, &options()).await.expect("it opens");
    let li = UserName::new("li").expect("a good name");
    let (writer, over) = (store.clone(), Arc::new(AtomicBool::new(false)));
    let (done, ended) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&over));
    let count = Arc::clone(&done);
    let load = tokio::spawn(async move {
        let mut on = false;
        while !ended.load(Ordering::Relaxed) {
            on = !on;
            // Of some the outcome is unknown.
            if writer.participate(&job(), &li, on, None).await.is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        // The last one is asked until it is told.
        while writer.participate(&job(), &li, true, None).await.is_err() {}
    });
    for nth in 1..=12 {
        let before = done.load(Ordering::Relaxed);
        cut();
        until_async(&format!("acts go on after cut {nth}"), async || {
            (done.load(Ordering::Relaxed) > before + 1).then_some(())
        })
        .await;
    }
    over.store(true, Ordering::Relaxed);
    load.await.expect("it ends");
    let fresh = soloist::stores::connect(url, &options()).await.expect("it opens");
    let record = fresh.snapshot(&[job()]).await.expect("a snapshot").jobs.remove(0);
    assert_eq!(record.participants.len(), 1, "{record:?}");
}

#[tokio::test]
async fn a_database_that_lets_nobody_in_is_unavailable_and_then_the_lease_is_still_held() {
    let server = PostgresServer::start(&[]);
    let url = server.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    let token = granted(&store, &mine).await;
    let name = url.rsplit('/').next().expect("its name");
    server.psql("postgres", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"));
    server.psql("postgres", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'soloist%'");
    let refused = store.acquire(&ask("node-b", LONG)).await.err();
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
    server.psql("postgres", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"));
    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_take_a_job_over_within_the_lease_and_run_it_once() {
    let server = PostgresServer::start(&[]);
    one_takes_over_from_the_other(&server.database()).await;
}

/// Two nodes at the store at `url`, of which one is killed.
pub(crate) async fn one_takes_over_from_the_other(url: &str) {
    let ground = Ground::new(url, &witness::job("outbound", "stubborn", "lease_ttl = \"60s\""));
    witness::place(&ground);
    ground.add_user("li", "operator");
    let li = ground.token("li");
    let (mut a, mut b) = (ground.start("node-a"), ground.start("node-b"));
    let seen = Witness::of(&ground, "outbound");
    a.api(&li).switch("outbound", true).await;
    let first = seen.until_started(1);
    // A minute of lease: whoever waited for it would fail the test by its patience.
    let (dying, _) = if first.node == a.name { (&mut a, &mut b) } else { (&mut b, &mut a) };
    dying.kill();
    let second = seen.until_started(2);
    assert_ne!(second.node, first.node);
    assert!(second.token > first.token);
    assert_eq!(seen.living_under(first.token), [0; 0]);
    seen.check();
}

async fn a_change_is_heard_by_the_bell_and_not_by_the_sweep() {
    let server = PostgresServer::start(&[]);
    changes_are_heard_by_the_bell(&server.database()).await;
}

/// Of ten changes another process hears eight within 300 ms. The sweep comes once a second: alone it would do that in one of 600 tries.
pub(crate) async fn changes_are_heard_by_the_bell(url: &str) {
    let writer = soloist::stores::connect(url, &options()).await.expect("the store");
    let reader = soloist::stores::connect(url, &options()).await.expect("the store");
    let mut heard = reader.subscribe(&[job()]).await.expect("subscribed");
    let mut until = async |wanted: fn(&StoreEvent) -> bool| {
        while !wanted(&heard.recv().await.expect("the subscription lives")) {}
    };
    until(|event| *event == StoreEvent::Subscribed).await;
    let li: UserName = "li".parse().expect("a name");
    let mut spans = Vec::new();
    for nth in 0..10 {
        let begun = clock::boot();
        let switched = writer.participate(&job(), &li, nth % 2 == 0, None).await;
        assert!(switched.expect("an answer"));
        until(|event| matches!(event, StoreEvent::Job(_))).await;
        spans.push(clock::boot().since(begun));
    }
    let soon = spans.iter().filter(|span| **span < Duration::from_millis(300)).count();
    in_time(soon >= 8, || format!("by the bell only {soon} of {spans:?}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_while_the_server_is_killed_and_comes_back() {
    let mut server = PostgresServer::start(&[]);
    a_run_outlives(&server.database(), || server.restart()).await;
}

/// A run at the store at `url` goes on while its server ends and comes back.
pub(crate) async fn a_run_outlives(url: &str, restart: impl FnOnce()) {
    let ground = Ground::new(url, &witness::job("outbound", "beat", "lease_ttl = \"30s\""));
    witness::place(&ground);
    ground.add_user("li", "operator");
    let li = ground.token("li");
    let (a, _b) = (ground.start("node-a"), ground.start("node-b"));
    let seen = Witness::of(&ground, "outbound");
    a.api(&li).switch("outbound", true).await;
    let first = seen.until_started(1);
    restart();
    seen.until_more(first.token, 100);
    assert_eq!(seen.starts(), 1, "the script was not touched");
    seen.check();
}
