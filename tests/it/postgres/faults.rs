//! What stands between a node and its PostgreSQL, and what the server does to single transactions.

use soloist::store::StoreError;
use soloist::store::jobs::Jobs as _;
use soloist::store::leases::{Acquired, Leases as _, Renewed};

use super::*;
use crate::support::certificate;
use crate::support::postgres::Pooler;

#[tokio::test]
async fn a_pooler_in_transaction_mode_is_refused_also_when_it_is_idle() {
    let server = PostgresServer::start(&[]);
    let url = server.database();
    let pooler = Pooler::before(&server, "transaction");
    let there = pooler.url_of(&url);
    // The second time it has connections to give.
    for _ in 0..3 {
        let why = refusal(&there).await;
        assert!(why.contains("pooler") && why.contains("server itself"), "{why}");
    }
    soloist::stores::connect(&url, &options()).await.expect("the server itself opens");
    let session = Pooler::before(&server, "session");
    let store =
        soloist::stores::connect(&session.url_of(&url), &options()).await.expect("it opens");
    granted(&store, &ask("node-a", LONG)).await;
}

#[tokio::test]
async fn a_server_without_room_for_a_connection_is_unavailable_with_a_remedy() {
    let server = PostgresServer::start(&[]);
    let url = server.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    let token = granted(&store, &mine).await;
    server.psql("postgres", "ALTER ROLE soloist CONNECTION LIMIT 0");
    server.psql("postgres", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'soloist%'");
    let said =
        until_async("the limit is met", async || match store.acquire(&ask("node-b", LONG)).await {
            Err(StoreError::Unavailable(why)) => {
                Some(why).filter(|why| why.contains("connections"))
            }
            other => panic!("{other:?}"),
        })
        .await;
    assert!(said.contains("max_connections"), "{said}");
    server.psql("postgres", "ALTER ROLE soloist CONNECTION LIMIT -1");
    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_unavailable_with_a_remedy() {
    let server = PostgresServer::start(&[]);
    let url = server.database();
    server.psql("postgres", "ALTER ROLE soloist SET default_transaction_read_only = on");
    let Some(StoreError::Unavailable(why)) = soloist::stores::connect(&url, &options()).await.err()
    else {
        panic!("tables were made")
    };
    assert!(why.contains("takes no writes") && why.contains("primary"), "{why}");
    server.psql("postgres", "ALTER ROLE soloist SET default_transaction_read_only = off");
    soloist::stores::connect(&url, &options()).await.expect("it opens");
}

/// Every third update of a job fails as `state`, and is tried again.
async fn every_third_fails(state: &str) {
    let server = PostgresServer::shared();
    let url = server.database();
    let name = url.rsplit('/').next().expect("its name");
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    // What a sequence gave is not taken back by the failure.
    server.psql(
        name,
        &format!(
            "CREATE SEQUENCE soloist.tries; GRANT USAGE ON soloist.tries TO soloist; \
             CREATE FUNCTION soloist.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('soloist.tries') % 3 = 0 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '{state}'; END IF; \
             RETURN new; END $$; \
             CREATE TRIGGER fails BEFORE UPDATE ON soloist.jobs FOR EACH ROW EXECUTE FUNCTION soloist.fail()"
        ),
    );
    let li = UserName::new("li").expect("a good name");
    for nth in 0..30_u32 {
        let changed = store.participate(&job(), &li, nth % 2 == 0, None).await;
        assert!(changed.expect("tried again"), "each is done once");
    }
    let tries: u32 =
        server.psql(name, "SELECT last_value FROM soloist.tries").parse().expect("a number");
    assert!(tries >= 44, "the fault was met: {tries}");
    let record = store.snapshot(&[job()]).await.expect("a snapshot").jobs.remove(0);
    assert_eq!((record.version, record.participants.len()), (30, 0));
}

#[tokio::test]
async fn a_deadlock_and_a_conflict_are_tried_again_and_done_once() {
    every_third_fails("40P01").await;
    every_third_fails("40001").await;
}

#[tokio::test]
async fn a_lock_that_somebody_else_holds_for_seconds_is_waited_for() {
    let server = PostgresServer::shared();
    let url = server.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    let token = granted(&store, &mine).await;
    let name = url.rsplit('/').next().expect("its name").to_owned();
    let there = name.clone();
    let holder = std::thread::spawn(move || {
        let hold = "BEGIN; SELECT job FROM soloist.jobs FOR UPDATE; SELECT pg_sleep(2); COMMIT";
        PostgresServer::shared().psql(&there, hold)
    });
    let held = format!(
        "SELECT 1 FROM pg_stat_activity WHERE datname = '{name}' AND wait_event = 'PgSleep'"
    );
    until_async("it is locked", async || (server.psql("postgres", &held) == "1").then_some(()))
        .await;
    let answer = store.acquire(&ask("node-b", LONG)).await.expect("longer than lock_timeout");
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
    holder.join().expect("it let go");
}

#[tokio::test]
async fn a_server_with_a_certificate_is_reached_by_tls_and_by_nothing_else() {
    let (ours, strangers) =
        (certificate::signed_for("postgres"), certificate::signed_for("postgres"));
    let file = |directory: &tempfile::TempDir, name: &str| {
        directory.path().join(name).display().to_string()
    };
    let plain = PostgresServer::shared().database();
    let trusting = |ca: &str| format!("?sslmode=verify-full&sslrootcert={ca}");
    let why = refusal(&(plain + &trusting(&file(&ours, "ca.pem")))).await;
    assert!(why.contains("speaks no TLS") && why.contains("sslmode=disable"), "{why}");
    let (cert, key) = (file(&ours, "cert.pem"), file(&ours, "key.pem"));
    let server = PostgresServer::start(&[
        "ssl=on",
        &format!("ssl_cert_file={cert}"),
        &format!("ssl_key_file={key}"),
    ]);
    let url = server.database();
    let secure = url.clone() + &trusting(&file(&ours, "ca.pem"));
    let store = soloist::stores::connect(&secure, &options()).await.expect("it opens");
    granted(&store, &ask("node-a", LONG)).await;
    let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE usename = 'soloist' AND NOT ssl";
    assert_eq!(server.psql("postgres", plain), "0");
    let stranger = url.clone() + &trusting(&file(&strangers, "ca.pem"));
    let why = soloist::stores::connect(&stranger, &options())
        .await
        .err()
        .expect("it is not trusted")
        .to_string();
    assert!(why.contains("certificate") && why.contains("sslrootcert=FILE"), "{why}");
    let elsewhere = secure.replace("127.0.0.1", "localhost");
    let why = soloist::stores::connect(&elsewhere, &options())
        .await
        .err()
        .expect("another name")
        .to_string();
    assert!(why.contains("certificate") && why.contains("sslrootcert=FILE"), "{why}");
}
