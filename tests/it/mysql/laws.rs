//! The laws of `tests/it/sql` on MariaDB.

use super::*;
use crate::sql::{clock, cuts, disk, doubted, name_of, old, stopped};

judged! {
    a_lease_is_renewed_by_another_connection_within_a_third_of_it
    a_listener_alone_that_is_cut_holds_up_no_renewal_and_hears_again
    a_process_that_is_stopped_in_any_state_of_a_call_holds_nobody_up_for_longer_than_a_second
    dispatch_keeps_its_pace_beside_a_transaction_that_does_not_end
}

#[tokio::test]
async fn a_clock_that_is_set_grants_a_held_job_to_nobody() {
    for offset in ["+3600", "-3600"] {
        let server = MariaServer::start_with_a_clock();
        let url = server.database();
        clock::an_hour_grants_a_held_job_to_nobody(
            &url,
            offset,
            |offset| server.set_clock(offset),
            || server.sql("SELECT UNIX_TIMESTAMP()").parse().expect("a number"),
        )
        .await;
    }
}

#[tokio::test]
async fn a_process_that_has_not_heard_of_a_quarantine_grants_nothing_in_it() {
    let server = MariaServer::shared();
    let url = server.database();
    let until = "FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000) + 60000";
    let epoch = format!("{}.epoch", name_of(&url));
    let doubt = format!("UPDATE {epoch} SET until_ms = {until}, version = version + 1");
    doubted::nothing_is_granted(&url, || drop(server.sql(&doubt))).await;
}

async fn a_lease_is_renewed_by_another_connection_within_a_third_of_it() {
    let server = MariaServer::shared();
    cuts::a_lease_is_renewed_after_a_cut(server.port(), &server.database()).await;
}

async fn a_listener_alone_that_is_cut_holds_up_no_renewal_and_hears_again() {
    let server = MariaServer::shared();
    cuts::a_listener_alone_is_cut(server.port(), &server.database(), "FROM rings WHERE").await;
}

async fn a_process_that_is_stopped_in_any_state_of_a_call_holds_nobody_up_for_longer_than_a_second()
{
    let server = MariaServer::start(&[]);
    stopped::nobody_waits_for_long(server.port(), || server.database()).await;
}

#[tokio::test]
async fn a_disk_that_is_full_is_unavailable_and_leaves_no_half_transition() {
    let mut server = MariaServer::start_on_a_small_disk(250);
    let url = server.database();
    let disk = server.disk();
    disk::a_full_disk_fails_in_words(&url, &disk, || server.come_back()).await;
}

async fn dispatch_keeps_its_pace_beside_a_transaction_that_does_not_end() {
    let server = MariaServer::start(&[]);
    let url = server.database();
    let mut old = mysql_async::Conn::from_url(&url).await.expect("it listens");
    let begin = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT count(*) FROM information_schema.tables";
    mysql_async::prelude::Queryable::query_drop(&mut old, begin).await.expect("begun");
    let open = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_isolation_level = 'REPEATABLE READ'";
    assert_eq!(server.sql(open), "1");
    old::dispatch_keeps_its_pace(&url).await;
}
