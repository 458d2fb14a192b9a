//! What only MySQL and MariaDB can do to a store: settings that are refused, a server that is killed, connections that are cut; and two nodes of the program itself on it. MariaDB is what it is tried on; `tests/run --mysql` tries it on MySQL.

mod doctor;
mod faults;
mod galera;
mod laws;
mod replica;

use std::time::Duration;

use soloist::domain::name::{JobName, UserName};
use soloist::store::jobs::Jobs as _;
use soloist::store::leases::{Acquire, Acquired, Leases as _, Renewed};
use soloist::store::{Options, Store, StoreError};

use crate::postgres::{
    LONG, a_run_outlives, ask, changes_are_heard_by_the_bell, cut_again_and_again, granted, job,
    one_takes_over_from_the_other, options, refusal, renew,
};
use crate::sql::name_of;
use crate::support::machine::judged;
use crate::support::mariadb::{MAKE, MariaServer, RIGHTS};
use crate::support::wait::until_async;

judged! {
    a_change_is_heard_by_the_bell_and_not_by_the_sweep
}

#[tokio::test]
async fn what_cannot_keep_the_promise_is_refused_with_a_remedy() {
    let server = MariaServer::start(&[]);
    let url = server.database();
    for (set, back, remedy) in [
        (
            "innodb_flush_log_at_trx_commit = 2",
            "innodb_flush_log_at_trx_commit = 1",
            "set innodb_flush_log_at_trx_commit = 1",
        ),
        ("max_allowed_packet = 1048576", "max_allowed_packet = 16777216", "64M"),
    ] {
        server.sql(&format!("SET GLOBAL {set}"));
        let why = refusal(&url).await;
        assert!(why.contains(remedy), "{why}");
        server.sql(&format!("SET GLOBAL {back}"));
    }
    let store = soloist::stores::connect(&url, &options()).await.expect("now it opens");
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
    let why = store.describe().await.err();
    assert!(matches!(why, Some(StoreError::Unsupported(_))), "set later: {why:?}");
    let found = store.examine().await.expect("looked at");
    let said = found.iter().find(|one| one.check == "persistence").expect("persistence");
    assert!(said.what.contains("innodb_flush_log_at_trx_commit is 0"), "{said:?}");
}

#[tokio::test]
async fn a_binary_log_and_a_clock_that_stands_still_are_looked_at() {
    let server = MariaServer::start(&["log-bin=log", "sync-binlog=0", "sysdate-is-now"]);
    let url = server.database();
    let why = refusal(&url).await;
    assert!(why.contains("set sync_binlog = 1"), "{why}");
    server.sql("SET GLOBAL sync_binlog = 1; SET GLOBAL binlog_format = 'STATEMENT'");
    let why = refusal(&url).await;
    assert!(why.contains("binlog_format = ROW or MIXED"), "{why}");
    server.sql("SET GLOBAL binlog_format = 'MIXED'");
    let why = refusal(&url).await;
    assert!(why.contains("sysdate-is-now"), "{why}");
}

#[tokio::test]
async fn a_store_works_with_a_binary_log() {
    let server = MariaServer::start(&["log-bin=log", "sync-binlog=1"]);
    let store = soloist::stores::connect(&server.database(), &options()).await.expect("it opens");
    granted(&store, &ask("node-a", LONG)).await;
    let li = UserName::new("li").expect("a good name");
    assert!(store.participate(&job(), &li, true, None).await.expect("switched"));
}

#[tokio::test]
async fn what_is_in_the_database_must_be_ours() {
    let server = MariaServer::shared();
    let why = refusal(&server.url_of("nowhere_at_all")).await;
    assert!(why.contains("GRANT") || why.contains("CREATE DATABASE"), "{why}");
    let url = server.database();
    server.sql(&format!("CREATE TABLE {}.orders (n BIGINT)", name_of(&url)));
    let why = refusal(&url).await;
    assert!(why.contains("another program") && why.contains("Soloist alone"), "{why}");
    let url = server.database();
    let name = name_of(&url);
    server.sql(&format!(
        "CREATE TABLE {name}.soloist_store (number BIGINT, done BIGINT); INSERT INTO {name}.soloist_store VALUES (99, 1)"
    ));
    let newer = soloist::stores::connect(&url, &options()).await.err();
    assert!(matches!(newer, Some(StoreError::NewerSchema { found: 99, .. })), "{newer:?}");
    let url = server.database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    server.sql(&format!("ALTER TABLE {}.rings ENGINE = MyISAM", name_of(&url)));
    let why = refusal(&url).await;
    assert!(why.contains("ALTER TABLE rings ENGINE = InnoDB"), "{why}");
}

#[tokio::test]
async fn each_right_that_is_documented_is_needed() {
    let server = MariaServer::start(&[]);
    for right in RIGHTS.split(", ") {
        let url = server.database();
        server.sql(&format!("REVOKE {right} ON {}.* FROM soloist@'127.0.0.1'", name_of(&url)));
        let why = refusal(&url).await;
        assert!(why.contains("GRANT SELECT"), "{right}: {why}");
    }
    let name = server.empty_database();
    let why = refusal(&server.url_of(&name)).await;
    assert!(why.contains("GRANT SELECT"), "{why}");
}

#[tokio::test]
async fn a_wrong_password_is_told_from_a_server_that_is_away() {
    let server = MariaServer::shared();
    let url = server.database();
    let wrong = url.replace("sesame", "mellon");
    let store = soloist::stores::named(&wrong, &options()).await.expect("a good URL");
    assert!(store.refuses_login().await);
    let store = soloist::stores::named(&url, &options()).await.expect("a good URL");
    assert!(!store.refuses_login().await);
    let Some(StoreError::Unavailable(why)) =
        soloist::stores::connect(&wrong, &options()).await.err()
    else {
        panic!("let in")
    };
    assert!(why.contains("password in the store URL") && !why.contains("mellon"), "{why}");
}

#[tokio::test]
async fn who_only_looks_makes_no_store() {
    let url = MariaServer::shared().database();
    let looking = Options { make: false, ..options() };
    let absent = soloist::stores::connect(&url, &looking).await.err();
    assert!(matches!(absent, Some(StoreError::Absent(_))), "{absent:?}");
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema";
    let tables = MariaServer::shared().sql(&format!("{tables} = '{}'", name_of(&url)));
    assert_eq!(tables, "0");
}

#[tokio::test]
async fn tables_whose_making_was_cut_off_are_gone_on_with() {
    let server = MariaServer::shared();
    let url = server.database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    let name = name_of(&url);
    for cut in ["DELETE FROM", "UPDATE"] {
        let set = if cut == "UPDATE" { "SET done = 0" } else { "" };
        let gone = format!("DROP TABLE {name}.rings, {name}.waits");
        server.sql(&format!("{cut} {name}.soloist_store {set}; {gone}"));
        let looking = Options { make: false, ..options() };
        let absent = soloist::stores::connect(&url, &looking).await.err();
        assert!(matches!(absent, Some(StoreError::Absent(_))), "{absent:?}");
        let store = soloist::stores::connect(&url, &options()).await.expect("it opens again");
        let mine = ask("node-a", LONG);
        granted(&store, &mine).await;
        store.release(&mine.job, &mine.owner).await.expect("given back");
        let number = server.sql(&format!("SELECT number, done FROM {name}.soloist_store"));
        assert_eq!(number, "1\t1");
    }
}

#[tokio::test]
async fn a_step_that_lacks_a_right_names_it_and_is_gone_on_with_once_it_is_there() {
    let server = MariaServer::start(&[]);
    let url = server.database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    let steps = &["ALTER TABLE sources ALTER COLUMN ready SET DEFAULT 0;\n"];
    let later = Options { steps, ..options() };
    let why = match soloist::stores::connect(&url, &later).await.err() {
        Some(StoreError::Unsupported(why)) => why,
        other => panic!("not refused: {other:?}"),
    };
    assert!(why.contains("GRANT ALTER ON"), "{why}");
    let before = soloist::stores::connect(&url, &options()).await.err();
    let is_newer = matches!(before, Some(StoreError::NewerSchema { found: 2, known: 1 }));
    assert!(is_newer, "what is begun is not for the version before: {before:?}");
    let name = name_of(&url);
    server.sql(&format!("GRANT ALTER ON {name}.* TO soloist@'127.0.0.1'"));
    soloist::stores::connect(&url, &later).await.expect("it is finished");
    server.sql(&format!("REVOKE ALTER ON {name}.* FROM soloist@'127.0.0.1'"));
    soloist::stores::connect(&url, &later).await.expect("it opens without that right from now on");
}

/// `prepare` and `execute` so far, of the whole server.
fn prepared(server: &MariaServer) -> [u64; 2] {
    ["prepare", "execute"].map(|what| {
        let said = server.sql(&format!("SHOW GLOBAL STATUS LIKE 'Com_stmt_{what}'"));
        said.split_whitespace().last().and_then(|n| n.parse().ok()).expect("a number")
    })
}

async fn take_and_give_back_often(store: &Store) {
    for _ in 0..20 {
        let mine = ask("node-a", LONG);
        granted(store, &mine).await;
        store.release(&mine.job, &mine.owner).await.expect("given back");
    }
}

#[tokio::test]
async fn the_server_reads_a_grant_once_a_connection_and_where_it_keeps_no_statement_each_time() {
    let server = MariaServer::start(&[]);
    let store = soloist::stores::connect(&server.database(), &options()).await.expect("it opens");
    let before = prepared(&server);
    take_and_give_back_often(&store).await;
    let after = prepared(&server);
    let [read, carried_out] = [after[0] - before[0], after[1] - before[1]];
    assert!(carried_out >= 40, "grants, and what is given back: {carried_out}");
    assert!(read <= 12, "a few texts on a few connections: {read}");
    server.sql("SET GLOBAL max_prepared_stmt_count = 0");
    let other = soloist::stores::connect(&server.database(), &options()).await.expect("it opens");
    take_and_give_back_often(&other).await;
    assert_eq!(prepared(&server)[1], after[1], "not one was prepared");
}

/// A ring says everything that came while the one before could not be written.
#[tokio::test(flavor = "multi_thread")]
async fn a_ring_may_be_long() {
    const JOBS: usize = 400;
    let server = MariaServer::shared();
    let url = server.database();
    let patient = Options { timeout: Duration::from_secs(60), ..options() };
    let store = soloist::stores::connect(&url, &patient).await.expect("it opens");
    let rings = format!("{}.rings", name_of(&url));
    let lock = format!("LOCK TABLES {rings} WRITE; SELECT SLEEP(60)");
    let locking = std::thread::spawn(move || server.sql(&lock));
    let asleep =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(60)%'";
    let sleeper =
        until_async("the table is locked", async || server.sql(asleep).trim().parse::<u64>().ok())
            .await;
    for nth in 0..JOBS {
        let job = JobName::new(&format!("job-{nth}")).expect("a good name");
        granted(&store, &Acquire { job, ..ask("node-a", LONG) }).await;
    }
    server.sql(&format!("KILL QUERY {sleeper}"));
    // To MariaDB's client that is an error.
    drop(locking.join());
    let heard = format!("SELECT COALESCE(SUM(JSON_LENGTH(hint, '$.jobs')), 0) FROM {rings}");
    let all = JOBS.to_string();
    until_async("all is told", async || (server.sql(&heard).trim() == all).then_some(())).await;
    let longest = server.sql(&format!("SELECT MAX(CHAR_LENGTH(hint)) FROM {rings}"));
    assert!(longest.trim().parse::<usize>().expect("a number") > 20_000, "{longest}");
}

#[tokio::test]
async fn whoever_is_woken_by_the_last_act_of_a_process_is_told_by_the_commit() {
    let url = MariaServer::shared().database();
    crate::conformance::whoever_is_woken_by_a_last_act_is_told(&url).await;
}

#[tokio::test]
async fn an_emptied_store_that_is_in_use_grants_nothing_until_every_lease_is_over() {
    let server = MariaServer::shared();
    let url = server.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    granted(&store, &ask("node-a", LONG)).await;
    server.sql(&format!("DELETE FROM {0}.epoch; DELETE FROM {0}.jobs", name_of(&url)));
    // It never saw the lease; but somebody is there.
    let fresh = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let answer = fresh.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}

#[tokio::test]
async fn another_server_with_the_same_tables_grants_nothing_until_every_lease_is_over() {
    let mut server = MariaServer::start(&[]);
    let url = server.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    granted(&store, &ask("node-a", Duration::from_secs(10))).await;
    // As a replica is another one, which had not seen the newest yet.
    server.sql(&format!("DELETE FROM {}.jobs", name_of(&url)));
    server.become_another();
    let answer = store.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    let fresh = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let answer = fresh.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}

#[tokio::test]
async fn a_server_that_was_killed_has_forgotten_no_lease() {
    let mut server = MariaServer::start(&[]);
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
    let server = MariaServer::start(&[]);
    cut_again_and_again(&server.database(), || server.cut_all()).await;
}

async fn a_change_is_heard_by_the_bell_and_not_by_the_sweep() {
    let server = MariaServer::start(&[]);
    changes_are_heard_by_the_bell(&server.database()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_take_a_job_over_within_the_lease_and_run_it_once() {
    let server = MariaServer::start(&[]);
    one_takes_over_from_the_other(&server.database()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_while_the_server_is_killed_and_comes_back() {
    let mut server = MariaServer::start(&[]);
    let url = server.database();
    a_run_outlives(&url, || server.restart()).await;
}
