//! A replica that follows by GTID and is promoted.

use super::*;
use crate::sql::promoted;

/// A primary, and a replica that has all that the primary has now.
async fn pair() -> (MariaServer, MariaServer, String) {
    let log = ["log-bin=log", "sync-binlog=1", "binlog-format=ROW"];
    let primary = MariaServer::start(&[&log[..], &["server-id=1"]].concat());
    let replica = MariaServer::start(&[&log[..], &["server-id=2", "log-slave-updates"]].concat());
    primary.sql(
        "CREATE USER follower@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO follower@'127.0.0.1'",
    );
    let begin = primary.sql("SELECT @@gtid_binlog_pos");
    replica.sql(&format!(
        "RESET MASTER; SET GLOBAL gtid_slave_pos = '{begin}'; \
         CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'follower', MASTER_USE_GTID = slave_pos; \
         START SLAVE; SET GLOBAL read_only = 1",
        primary.port()
    ));
    let url = primary.database();
    let store = Store::connect(&url, &options()).await.expect("it opens");
    store.snapshot(&[job()]).await.expect("an epoch");
    (primary, replica, url)
}

/// The replica has all of it, and follows no longer.
async fn part(primary: &MariaServer, replica: &MariaServer) {
    let all = primary.sql("SELECT @@gtid_binlog_pos");
    let waited = format!("SELECT MASTER_GTID_WAIT('{all}', 20)");
    assert_eq!(replica.sql(&waited), "0", "the replica has not followed");
    replica.sql("STOP SLAVE");
}

const PROMOTE: &str = "RESET SLAVE ALL; SET GLOBAL read_only = 0";

#[tokio::test]
async fn a_promoted_replica_that_never_saw_the_lease_grants_nothing_until_it_is_over() {
    let (mut primary, replica, url) = pair().await;
    part(&primary, &replica).await;
    let store = Store::connect(&url, &options()).await.expect("it opens");
    granted(&store, &ask("node-a", Duration::from_secs(10))).await;
    primary.kill();
    let there = replica.url_of(name_of(&url));
    let Some(StoreError::Unavailable(why)) = Store::connect(&there, &options()).await.err() else {
        panic!("a replica was taken for a primary")
    };
    assert!(why.contains("replica") && why.contains("primary"), "{why}");
    replica.sql(PROMOTE);
    let fresh = Store::connect(&there, &options()).await.expect("it opens");
    let answer = fresh.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}

#[tokio::test]
async fn the_token_of_a_promoted_replica_is_greater_than_that_of_a_primary_that_still_writes() {
    let (primary, replica, url) = pair().await;
    part(&primary, &replica).await;
    let there = replica.url_of(name_of(&url));
    promoted::the_newer_store_has_the_greater_token(&url, &there, || {
        replica.sql(PROMOTE);
    })
    .await;
}
