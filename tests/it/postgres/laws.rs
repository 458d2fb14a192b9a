//! The laws of `tests/it/sql` on PostgreSQL.

use super::*;
use crate::sql::{clock, cuts, disk, doubted, name_of, old, promoted, stopped};

judged! {
    a_lease_is_renewed_by_another_connection_within_a_third_of_it
    a_listener_alone_that_is_cut_holds_up_no_renewal_and_hears_again
    a_process_that_is_stopped_in_any_state_of_a_call_holds_nobody_up_for_longer_than_a_second
    dispatch_keeps_its_pace_beside_a_transaction_that_does_not_end
}

#[tokio::test]
async fn a_clock_that_is_set_grants_a_held_job_to_nobody() {
    for offset in ["+3600", "-3600"] {
        let server = PostgresServer::start_with_a_clock();
        let url = server.database();
        let now = "SELECT extract(epoch FROM clock_timestamp())::bigint";
        clock::an_hour_grants_a_held_job_to_nobody(
            &url,
            offset,
            |offset| server.set_clock(offset),
            || server.psql("postgres", now).parse().expect("a number"),
        )
        .await;
    }
}

#[tokio::test]
async fn a_process_that_has_not_heard_of_a_quarantine_grants_nothing_in_it() {
    let server = PostgresServer::shared();
    let url = server.database();
    let until = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 60000";
    let doubt = format!("UPDATE soloist.epoch SET until_ms = {until}, version = version + 1");
    doubted::nothing_is_granted(&url, || drop(server.psql(name_of(&url), &doubt))).await;
}

async fn a_lease_is_renewed_by_another_connection_within_a_third_of_it() {
    let server = PostgresServer::shared();
    cuts::a_lease_is_renewed_after_a_cut(server.port(), &server.database()).await;
}

async fn a_listener_alone_that_is_cut_holds_up_no_renewal_and_hears_again() {
    let server = PostgresServer::shared();
    cuts::a_listener_alone_is_cut(server.port(), &server.database(), "LISTEN").await;
}

async fn a_process_that_is_stopped_in_any_state_of_a_call_holds_nobody_up_for_longer_than_a_second()
{
    let server = PostgresServer::start(&[]);
    stopped::nobody_waits_for_long(server.port(), || server.database()).await;
}

#[tokio::test]
async fn a_disk_that_is_full_is_unavailable_and_leaves_no_half_transition() {
    let mut server = PostgresServer::start_on_a_small_disk();
    let url = server.database();
    let disk = server.disk();
    disk::a_full_disk_fails_in_words(&url, &disk, || server.come_back()).await;
}

#[tokio::test]
async fn the_token_of_a_promoted_replica_is_greater_than_that_of_a_primary_that_still_writes() {
    let primary = PostgresServer::start(&[]);
    let url = primary.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    store.snapshot(&[job()]).await.expect("an epoch");
    let replica = primary.replica();
    let there = replica.url_of(name_of(&url));
    promoted::the_newer_store_has_the_greater_token(&url, &there, || {
        assert_eq!(replica.psql("postgres", "SELECT pg_promote()"), "t");
    })
    .await;
}

async fn dispatch_keeps_its_pace_beside_a_transaction_that_does_not_end() {
    let server = PostgresServer::start(&[]);
    let url = server.database();
    let _old = old_transaction(&server, name_of(&url)).await;
    old::dispatch_keeps_its_pace(&url).await;
}

/// A transaction that keeps what it saw, until it is dropped.
pub(super) async fn old_transaction(
    server: &PostgresServer,
    database: &str,
) -> tokio_postgres::Client {
    let url = format!("postgres://postgres@127.0.0.1:{}/{database}", server.port());
    let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
    let (client, connection) = connected.expect("it listens");
    tokio::spawn(connection);
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
    client.batch_execute(begin).await.expect("begun");
    let holds = "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND state = 'idle in transaction'";
    assert_eq!(server.psql("postgres", holds), "1");
    client
}

#[tokio::test]
async fn each_right_that_is_documented_is_needed_and_they_are_enough() {
    let server = PostgresServer::start(&[]);
    let given = "GRANT CONNECT ON DATABASE";
    server.closed_database("closed");
    let why = refusal(&server.url_of("closed")).await;
    assert!(why.contains(given) && why.contains("CREATE SCHEMA"), "{why}");
    server.psql("postgres", "GRANT CONNECT ON DATABASE closed TO soloist");
    let why = refusal(&server.url_of("closed")).await;
    assert!(why.contains(given) && why.contains("CREATE SCHEMA"), "{why}");
    // As for the conformance suite.
    server.psql("closed", "CREATE SCHEMA soloist AUTHORIZATION soloist");
    let store =
        soloist::stores::connect(&server.url_of("closed"), &options()).await.expect("it opens");
    granted(&store, &ask("node-a", LONG)).await;
    let more = "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls \
                OR EXISTS (SELECT 1 FROM pg_auth_members WHERE member = pg_roles.oid) \
                FROM pg_roles WHERE rolname = 'soloist'";
    assert_eq!(server.psql("postgres", more), "f");
}
