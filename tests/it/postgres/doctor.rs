//! `soloist doctor` on a PostgreSQL that is well, and on those that are refused or deserve a warning.

use super::laws::old_transaction;
use super::*;
use crate::sql::doctor::{says, says_well};
use crate::sql::name_of;
use crate::support::postgres::Pooler;

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_what_is_well() {
    let url = PostgresServer::shared().database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    let checks = ["store", "persistence", "replication", "transactions"];
    let findings = says_well(&url, &checks);
    assert!(findings.iter().any(|one| one.to_string().contains("PostgreSQL 1")), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_what_is_refused_and_the_remedy() {
    let unsafe_ = PostgresServer::start(&["fsync=off"]);
    says(&unsafe_.database(), "bad", "fsync = on");
    let server = PostgresServer::start(&[]);
    let url = server.database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    let pooler = Pooler::before(&server, "transaction");
    says(&pooler.url_of(&url), "bad", "pool in session mode");
    let replica = server.replica();
    says(&replica.url_of(name_of(&url)), "bad", "name the address of the primary");
    let latin = "CREATE DATABASE old_words ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'";
    server.psql("postgres", latin);
    says(&server.url_of("old_words"), "bad", "createdb -E UTF8");
    let taken = server.database();
    server.psql(name_of(&taken), "CREATE TABLE soloist.orders ()");
    says(&taken, "bad", "?schema=NAME");
    server.closed_database("closed");
    says(&server.url_of("closed"), "bad", "GRANT CONNECT");
    says(&server.url_of("nowhere"), "bad", "createdb");
    server.psql("postgres", "ALTER ROLE soloist SET default_transaction_read_only = on");
    says(&url, "bad", "takes no writes");
    server.psql("postgres", "ALTER ROLE soloist CONNECTION LIMIT 0");
    says(&url, "bad", "raise max_connections");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_warns_of_replicas_that_nobody_waits_for_and_of_old_transactions() {
    let server = PostgresServer::start_with_a_clock();
    let url = server.database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    let _old = old_transaction(&server, name_of(&url)).await;
    let findings = says_well(&url, &["transactions"]);
    let hidden = findings.iter().any(|one| one.to_string().contains("GRANT pg_read_all_stats"));
    assert!(hidden, "{findings:#?}");
    server.psql("postgres", "GRANT pg_read_all_stats TO soloist");
    server.set_clock("+660");
    let minutes = "SELECT extract(epoch FROM clock_timestamp() - min(xact_start))::bigint / 60 \
                   FROM pg_stat_activity WHERE state = 'idle in transaction'";
    until_async("its minutes have passed", async || {
        (server.psql("postgres", minutes) == "11").then_some(())
    })
    .await;
    says(&url, "warn", "a transaction is open for 11 minutes");
    server.psql("postgres", "ALTER ROLE soloist SET synchronous_commit = local");
    server.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'other'");
    server.psql("postgres", "SELECT pg_reload_conf()");
    until_async("it waits for a replica", async || {
        (server.psql("postgres", "SHOW synchronous_standby_names") == "other").then_some(())
    })
    .await;
    says(&url, "warn", "set synchronous_commit = on");
}
