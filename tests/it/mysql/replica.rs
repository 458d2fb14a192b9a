//! A replica that follows by GTID and is promoted.

use super::*;
use crate::sql::promoted;

/// What an administrator says of replication. MariaDB and MySQL have no word in common here.
struct Words {
    options: &'static [&'static str],
    /// What the primary has committed.
    position: &'static str,
    /// Follows a primary at `{port}` from `{begin}` on.
    follow: &'static str,
    /// Answers 0 when everything up to `{all}` is there.
    has: &'static str,
    stop: &'static str,
    promote: &'static str,
}

const MARIADB: Words = Words {
    options: &["log-bin=log", "sync-binlog=1", "binlog-format=ROW", "log-slave-updates"],
    position: "SELECT @@gtid_binlog_pos",
    follow: "RESET MASTER; SET GLOBAL gtid_slave_pos = '{begin}'; \
         CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'follower', MASTER_USE_GTID = slave_pos; \
         START SLAVE; SET GLOBAL read_only = 1",
    has: "SELECT MASTER_GTID_WAIT('{all}', 20)",
    stop: "STOP SLAVE",
    promote: "RESET SLAVE ALL; SET GLOBAL read_only = 0",
};

const MYSQL: Words = Words {
    options: &[
        "log-bin=log",
        "sync-binlog=1",
        "gtid-mode=ON",
        "enforce-gtid-consistency=ON",
        "skip-replica-start",
    ],
    position: "SELECT REPLACE(@@GLOBAL.gtid_executed, '\n', '')",
    follow: "RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '{begin}'; \
         CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'follower', \
         SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1; \
         START REPLICA; SET GLOBAL read_only = 1",
    has: "SELECT WAIT_FOR_EXECUTED_GTID_SET('{all}', 20)",
    stop: "STOP REPLICA",
    promote: "RESET REPLICA ALL; SET GLOBAL read_only = 0",
};

fn words() -> &'static Words {
    if MAKE.is_mysql() { &MYSQL } else { &MARIADB }
}

/// A primary, and a replica that has all that the primary has now.
async fn pair() -> (MariaServer, MariaServer, String) {
    let words = words();
    let primary = MariaServer::start(&[words.options, &["server-id=1"]].concat());
    let replica = MariaServer::start(&[words.options, &["server-id=2"]].concat());
    primary.sql(
        "CREATE USER follower@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO follower@'127.0.0.1'",
    );
    let begin = primary.sql(words.position);
    let follow = words.follow.replace("{begin}", &begin);
    replica.sql(&follow.replace("{port}", &primary.port().to_string()));
    let url = primary.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    store.snapshot(&[job()]).await.expect("an epoch");
    (primary, replica, url)
}

/// The replica has all of it, and follows no longer.
async fn part(primary: &MariaServer, replica: &MariaServer) {
    let all = primary.sql(words().position);
    let waited = words().has.replace("{all}", &all);
    assert_eq!(replica.sql(&waited), "0", "the replica has not followed");
    replica.sql(words().stop);
}

#[tokio::test]
async fn a_promoted_replica_that_never_saw_the_lease_grants_nothing_until_it_is_over() {
    let (mut primary, replica, url) = pair().await;
    part(&primary, &replica).await;
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    granted(&store, &ask("node-a", Duration::from_secs(10))).await;
    primary.kill();
    let there = replica.url_of(name_of(&url));
    let Some(StoreError::Unavailable(why)) =
        soloist::stores::connect(&there, &options()).await.err()
    else {
        panic!("a replica was taken for a primary")
    };
    assert!(why.contains("replica") && why.contains("primary"), "{why}");
    replica.sql(words().promote);
    let fresh = soloist::stores::connect(&there, &options()).await.expect("it opens");
    let answer = fresh.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}

#[tokio::test]
async fn the_token_of_a_promoted_replica_is_greater_than_that_of_a_primary_that_still_writes() {
    let (primary, replica, url) = pair().await;
    part(&primary, &replica).await;
    let there = replica.url_of(name_of(&url));
    promoted::the_newer_store_has_the_greater_token(&url, &there, || {
        replica.sql(words().promote);
    })
    .await;
}
